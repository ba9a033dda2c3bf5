"""Stores with one change, opened and searched in a separate process, which may die.

    python -m support.fuzz_stores FOLDER SEED FIRST LAST

FOLDER has the stores of ``build_all``. Each case prints a line that describes the case and a line
that tells its end.
"""

from __future__ import annotations

import copy
import faulthandler
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.disk.files import HEADER_BYTES
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.partition.store.manifest import digest
from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines.host.rows import StoreGraph
from delegraph.pipeline.engines.host.search import HostSearchEngine
from delegraph.pipeline.results.store_names import StoreNames

from .graphs import random_edges
from .ranks import search_by_threads, stream_search, streamed
from .stores import edit_manifest, sealed

TEAM = Team(2)
SECONDS = 60  # that a case may take before it counts as a hang
SOURCES = {"names": "7"}
SHAPES: dict[str, dict[str, Any]] = {
    "csr": {},
    "directed": {"directed": True, "order": "none"},
    "names": {"order": "random"},
    "loops": {"loops": "keep"},
    "delegate": {"partitions": 3, "threshold": 25},
    "delegate directed": {"partitions": 2, "threshold": 25, "directed": True},
    "delegate random": {"partitions": 3, "threshold": 25, "order": "random"},
    "2d": {"partitions": 4, "layout": "2d"},
    "1d directed": {"partitions": 3, "layout": "1d", "directed": True, "order": "none"},
}
ODD = [0, 1, -1, 2, 3, 1 << 31, 1 << 32, 1 << 63, 10**30, 0.5, -0.0, float("nan"), float("inf")]
ODD += ["", "x", "../x", "\ud800", "0", None, True, False, [], {}, [1, 2], [[]], {"a": 1}]


def build_all(folder: Path) -> None:
    edges = pa.table(list(random_edges(1, 60, 500)), ["src", "dst"])
    pq.write_table(edges, folder / "edges.parquet")
    names = [column.cast(pa.string()) for column in edges.columns]
    pq.write_table(pa.table(names, ["src", "dst"]), folder / "names.parquet")
    for shape, options in SHAPES.items():
        path = folder / ("names" if shape == "names" else "edges")
        delegraph.build(path.with_suffix(".parquet"), folder / shape, **options)


Told = list[list[tuple[Any, int, Any]]]


def search(path: Path, shape: str) -> Told:
    """Return user ids, distances and the user ids of parents for each way to search."""
    store = open_store(path)
    names = StoreNames(store, TEAM)
    source = names.find(SOURCES.get(shape, 7))
    if source is None:
        raise InputError("the source is not in the graph")
    engine = HostSearchEngine(StoreGraph(store, None), 2)
    engine.load()
    alone = engine.search(source), stream_search(streamed(store), source, TEAM)
    pairs = [(way.distance, way.parent) for way in alone]
    if store.info.partitions > 1:
        pairs.append(search_by_threads(store, source, 2, path.parent / "out")[:2])
    if store.info.loops is not None:
        delegraph.degree(path, device="cpu", threads=2)
    return [_told(names, *arrays) for arrays in pairs]


def _told(names: StoreNames, distance: np.ndarray, parent: np.ndarray) -> list:
    rows = []
    for number in range(len(names.pieces)):
        ids, places = names.piece(number)
        known = distance[places] > 0
        parents = names.decode(pa.array(parent[places], mask=~known))
        rows += zip(ids.to_pylist(), distance[places].tolist(), parents.to_pylist(), strict=True)
    return rows


def same_distances(one: Told, other: Told) -> bool:
    def distances(results: Told) -> list:
        return [[row[:2] for row in way] for way in results]

    return distances(one) == distances(other)


def well_formed(results: Told) -> bool:
    """Return whether parents are vertices nearer to the source, in every way to search.

    Nothing more is certain when an edge stands in the row of one end and not in the row of the
    other, from which it is pulled: the store is then no graph, and only comparing all rows would
    tell.
    """
    for way in results:
        level = {vertex: distance for vertex, distance, _ in way}
        for _, distance, parent in way:
            if distance < -1 or (parent is None) == (distance > 0):
                return False
            if parent is not None and not 0 <= level.get(parent, -1) < distance:
                return False
    return True


def change(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change one thing of a store; return its description, and whether the graph has to stay the
    same.
    """
    kinds = [
        (_field, 4),
        (_numbers, 3),
        (_bytes, 1),
        (_footer, 1),
        (_table, 1),
        (_place, 2),
        (_manifest, 1),
    ]
    weights = np.array([weight for _, weight in kinds])
    kind = kinds[rng.choice(len(kinds), p=weights / weights.sum())][0]
    return kind(path, rng)


def _pick(rng: np.random.Generator, items: Any) -> Any:
    items = list(items)
    return items[rng.integers(len(items))]


def _files(path: Path, ending: str = "") -> list[str]:
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    return [name for name in names if name != "manifest.json" and name.endswith(ending)]


def _field(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    said = ""

    def edit(manifest: dict) -> None:
        nonlocal said
        inside: Any = manifest[_pick(rng, ["graph", "graph", "files"])]
        key = _pick(rng, inside)
        while isinstance(inside[key], dict | list) and inside[key] and rng.random() < 0.8:
            inside = inside[key]
            key = _pick(rng, inside if isinstance(inside, dict) else range(len(inside)))
        old, way = inside[key], rng.random()
        if way < 0.1 and isinstance(inside, dict):
            del inside[key]
        elif way < 0.2 and isinstance(inside, dict):
            inside[_pick(rng, ["x", "../x", "/x", f"{key}0"])] = inside.pop(key)
        elif way < 0.5 and type(old) is int:
            inside[key] = old + _pick(rng, [-old, 1, -1, 4, 8, 1 << 20, 1 << 32])
        elif way < 0.6:
            inside[key] = copy.deepcopy(_pick(rng, manifest["graph"].values()))
        else:
            inside[key] = _pick(rng, ODD)
        said = (
            f"field {key!r}: {str(old)[:50]!r} -> {str(inside.get(key))[:50]!r}"
            if isinstance(inside, dict)
            else f"entry {key}"
        )

    edit_manifest(path, edit)
    return said, True


def _numbers(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change a few numbers of an array."""
    name = _pick(rng, _files(path, ".npy"))
    data = bytearray((path / name).read_bytes())
    numbers = np.frombuffer(data, np.uint32, offset=HEADER_BYTES)
    if len(numbers):
        odd = [0, 1, 2, 19, 20, 58, 59, 60, 61, 1 << 31, (1 << 32) - 1]
        at = rng.integers(len(numbers), size=rng.integers(1, 4))
        possible = np.array(odd, np.uint32) if rng.random() < 0.4 else numbers.copy()
        numbers[at] = rng.choice(possible, len(at))
    (path / name).write_bytes(data)
    sealed(path, name)
    return f"numbers of {name}", False


def _bytes(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    name = _pick(rng, _files(path))
    data = bytearray((path / name).read_bytes())
    for at in rng.integers(len(data), size=rng.integers(1, 9)):
        data[at] = rng.integers(256)
    (path / name).write_bytes(data)
    sealed(path, name)
    return f"bytes of {name}", False


def _footer(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change bytes of the footer of the vertex table's file."""
    data = bytearray((path / "vertices.parquet").read_bytes())
    length = int.from_bytes(data[-8:-4], "little")
    for at in rng.integers(length, size=rng.integers(1, 4)):
        data[-9 - at] = rng.integers(256)
    (path / "vertices.parquet").write_bytes(data)
    sealed(path, "vertices.parquet")
    return "the footer of the vertex table", False


def _table(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change a few values of the vertex table, or a column."""
    table = pq.read_table(path / "vertices.parquet")
    columns, fields = [column.to_pylist() for column in table.columns], list(table.schema)
    i = int(rng.integers(len(columns)))
    way = rng.random()
    if way < 0.6:
        at, other = rng.integers(len(columns[i]), size=2)
        odd = [columns[i][other], columns[i][other], *((0, 60) if i else ())]
        columns[i][at] = _pick(rng, odd)
    elif way < 0.7:
        fields[i] = fields[i].with_type(_pick(rng, [pa.int64(), pa.string(), pa.binary()]))
        columns[i] = pa.array(columns[i], table.schema.field(i).type).cast(pa.string())
        columns[i] = columns[i].cast(fields[i].type)
    elif way < 0.8:
        fields[i], columns[i] = fields[i].with_nullable(True), [None, *columns[i][1:]]
    elif way < 0.9:
        order = rng.permutation(len(columns[i]))
        columns[i] = [columns[i][k] for k in order]
    else:
        count = rng.integers(len(columns[i]))
        columns = [column[:count] for column in columns]
    pq.write_table(pa.table(columns, pa.schema(fields)), path / "vertices.parquet")
    sealed(path, "vertices.parquet")
    return f"column {fields[i].name} of the vertex table", False


def _place(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Replace a file by another one, or by none; sometimes with a manifest that agrees."""
    name = _pick(rng, [*_files(path), "manifest.json"])
    file, data = path / name, (path / name).read_bytes()
    kinds = ["none", "longer", "shorter", "empty", "another", "link", "pipe", "folder", "no folder"]
    kind = _pick(rng, kinds)
    file.unlink()
    if kind in ("longer", "shorter", "empty", "another"):
        less = data[: -_pick(rng, [1, 4, 8])]
        more = data + bytes(_pick(rng, [1, 4, 8]))
        other = (path / _pick(rng, _files(path))).read_bytes()
        file.write_bytes({"longer": more, "shorter": less, "empty": b"", "another": other}[kind])
        if name != "manifest.json" and rng.random() < 0.7:
            sealed(path, name)
    elif kind == "link":
        (path.parent / "elsewhere").write_bytes(data)
        file.symlink_to(path.parent / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "no folder":
        shutil.rmtree(path / "partition-0000")
    return f"{kind} at {name}", False


def _manifest(path: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change bytes of the manifest, or a value in it together with its checksum."""
    file = path / "manifest.json"
    data = bytearray(file.read_bytes())
    way = rng.random()
    if way < 0.3:
        data = data[: rng.integers(len(data))]
    elif way < 0.6:
        data[rng.integers(len(data))] = rng.integers(256)
    elif way < 0.7:
        data = bytearray(len(data))
    else:
        manifest = json.loads(data)
        del manifest["xxh3"]
        manifest[_pick(rng, manifest)] = _pick(rng, ODD)
        manifest["xxh3"] = digest(manifest)
        data = bytearray(json.dumps(manifest).encode())
    file.write_bytes(data)
    return "the manifest's bytes", True


def case(folder: Path, seed: int, number: int, expected: dict[str, Told]) -> None:
    rng = np.random.default_rng([seed, number])
    shape = _pick(rng, SHAPES)
    place = folder / f"case-{seed}-{number}"
    place.mkdir()
    path = Path(shutil.copytree(folder / shape, place / "graph.dg"))
    description, same = change(path, rng)
    print(f"{number}: {shape}: {description}", flush=True)
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        results = search(path, shape)
        right = same_distances(results, expected[shape]) if same else well_formed(results)
        print("right" if right else "WRONG", flush=True)
    except DelegraphError as error:  # of ranks, that another one has met an InputError
        print("refused:" if "\n" not in str(error) else "LINES:", error, flush=True)
    finally:
        faulthandler.cancel_dump_traceback_later()
    shutil.rmtree(place)


def main() -> None:
    folder = Path(sys.argv[1])
    seed, first, last = map(int, sys.argv[2:])
    expected = {shape: search(folder / shape, shape) for shape in SHAPES}
    for number in range(first, last):
        case(folder, seed, number, expected)


if __name__ == "__main__":
    main()
