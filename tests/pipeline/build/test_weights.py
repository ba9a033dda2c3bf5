"""Weights in a store match a plain definition, and their bytes are the same however a store is
built.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.errors import InputError
from delegraph.partition.input.arrow import as_numpy
from delegraph.partition.store import shards
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.api import build
from support.graphs import write_in_parts
from support.marks import slow

TEAM = Team(1)


def write(path, **columns) -> None:
    pq.write_table(pa.table(columns), path)


def random_weighted(seed: int, kind: str, rows: int = 3000, vertices: int = 200):
    """Return edges with many duplicates and ties, as ids and weights; some weights are 0."""
    rng = np.random.default_rng(seed)
    src, dst = (rng.integers(0, vertices, rows) ** 2 // vertices for _ in range(2))
    if kind == "uint32":
        return src, dst, rng.integers(0, 7, rows)
    scales = 2.0 ** rng.integers(-40, 40, rows)
    return src, dst, (rng.integers(0, 7, rows) * scales).astype(np.float32)


def defined(src, dst, weight, duplicates: str, directed: bool) -> dict[tuple[int, int], float]:
    """Return the weight of each edge by definition; an undirected edge is in one direction."""
    weights: dict[tuple[int, int], list[float]] = {}
    for u, v, w in zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True):
        if u != v:
            weights.setdefault((u, v) if directed else (min(u, v), max(u, v)), []).append(w)
    fold = {"min": min, "max": max, "sum": lambda values: float(np.float32(sum(sorted(values))))}
    return {edge: fold[duplicates](values) for edge, values in weights.items()}


def stored(store: Store, name_of: Callable[[Any], Any] = int) -> dict[tuple, float]:
    """Return the weight of each edge of a store, after a check that undirected edges stand there
    twice, alike.
    """
    table = store.vertices(TEAM, ["vertex", "global_id"])
    names: list[Any] = [None] * store.info.vertices
    for vertex, at in zip(table["vertex"].to_pylist(), as_numpy(table["global_id"]), strict=True):
        names[at] = name_of(vertex)
    edges: dict[tuple, float] = {}
    for sources, targets, weights in store.weighted_batches(TEAM):
        assert len(sources) == len(targets) == len(weights)
        for u, v, w in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True):
            assert (names[u], names[v]) not in edges
            edges[names[u], names[v]] = w
    if store.info.directed:
        return edges
    assert all(edges[v, u] == w for (u, v), w in edges.items())
    return {(u, v): w for (u, v), w in edges.items() if u < v}


def same(edges: dict, wanted: dict) -> None:
    assert edges.keys() == wanted.keys()
    np.testing.assert_allclose(
        [edges[edge] for edge in wanted], list(wanted.values()), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("duplicates", ["min", "max", "sum"])
@pytest.mark.parametrize("kind", ["float32", "uint32"])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"partitions": 4, "layout": "2d", "order": "random"},
        {"directed": True, "partitions": 2, "threshold": 12, "order": "none"},
        slow({"partitions": 3, "threshold": 12}),
        slow({"directed": True, "partitions": 3, "layout": "1d"}),
        slow({"directed": True, "partitions": 2, "threshold": 60}),
    ],
    ids=str,
)
def test_weights_are_what_rows_say(tmp_path, duplicates, kind, shape):
    src, dst, weight = random_weighted(1, kind)
    path = tmp_path / "edges.parquet"
    write(path, src=src, dst=dst, w=weight)
    options: dict[str, Any] = {**shape, "weight": "w", "duplicates": duplicates}
    build(path, tmp_path / "graph.dg", device="cpu", **options)
    store = open_store(tmp_path / "graph.dg")
    wanted = defined(src, dst, weight, duplicates, shape.get("directed", False))
    same(stored(store), wanted)
    info = store.info.weights
    assert info is not None
    assert (info.column, info.kind, info.duplicates) == ("w", kind, duplicates)
    assert info.least == pytest.approx(min(wanted.values()))
    assert info.most == pytest.approx(max(wanted.values()))
    assert info.mean == pytest.approx(np.mean(list(wanted.values())))


@pytest.mark.parametrize("names", [str, lambda i: i * 10**12 - 5], ids=["strings", "sparse"])
def test_weights_go_with_ids_of_any_kind(tmp_path, names):
    src, dst, weight = random_weighted(2, "float32")
    path = tmp_path / "edges.parquet"
    ends = ([names(int(i)) for i in column] for column in (src, dst))
    write(path, src=next(ends), dst=next(ends), w=weight)
    wanted = defined(src, dst, weight, "sum", directed=True)
    for scratch in (None, tmp_path / "scratch"):
        place = tmp_path / f"graph-{scratch is None}.dg"
        options: dict[str, Any] = {"scratch": str(scratch)} if scratch else {}
        if scratch:
            scratch.mkdir()
        build(path, place, weight="w", duplicates="sum", directed=True, device="cpu", **options)
        back = {names(int(i)): int(i) for i in {*src.tolist(), *dst.tolist()}}
        same(stored(open_store(place), back.get), wanted)


@pytest.mark.parametrize("duplicates", ["min", "sum"])
def test_bytes_do_not_depend_on_how_it_is_built(tmp_path, monkeypatch, duplicates):
    src, dst, weight = random_weighted(3, "float32", rows=20_000)
    folder = tmp_path / "edges"
    write_in_parts(folder, src, dst, weight)
    stores = []
    ways: list[dict[str, Any]] = [
        {"threads": 1},
        {"threads": 4},
        {"scratch": 1},
        {"scratch": 1 << 12},
    ]
    for way in ways:
        if "scratch" in way:
            monkeypatch.setattr(shards, "GATHER_EDGES", shards.GATHER_EDGES // way["scratch"])
            way["scratch"] = str(tmp_path / f"scratch-{len(stores)}")
            Path(way["scratch"]).mkdir()
        place = tmp_path / f"graph-{len(stores)}.dg"
        build(folder, place, weight="w", duplicates=duplicates, device="cpu", **way)
        files = sorted(file for file in place.rglob("*") if file.is_file())
        stores.append({str(file.relative_to(place)): file.read_bytes() for file in files})
    assert all(files == stores[0] for files in stores)


@pytest.mark.slow
def test_the_same_bytes_by_workers(tmp_path, ok):
    """Workers build the same bytes, and a rank on each finds the same distances."""
    src, dst, weight = random_weighted(3, "uint32", rows=20_000)
    write(tmp_path / "edges.parquet", src=src, dst=dst, w=weight)
    shape = "--weight", "w", "--duplicates", "sum", "--partitions", 3
    for name, flags in (("alone", []), ("together", ["--workers", 2])):
        ok("build", tmp_path / "edges.parquet", "-o", tmp_path / f"{name}.dg", *shape, *flags)
        out = tmp_path / name
        ok("sssp", tmp_path / f"{name}.dg", "-o", out, "--source", int(src[0]), *flags)
        ok("validate", tmp_path / f"{name}.dg", out)
    for file in (tmp_path / "alone.dg").rglob("*.*"):
        if file.is_file():
            other = tmp_path / "together.dg" / file.relative_to(tmp_path / "alone.dg")
            assert file.read_bytes() == other.read_bytes(), file
    columns = [pq.read_table(tmp_path / name)["distance"] for name in ("alone", "together")]
    assert columns[0].equals(columns[1])


@pytest.mark.parametrize("duplicates", ["min", "max", "sum"])
def test_a_long_row_by_parts(tmp_path, monkeypatch, duplicates):
    """A row with more edges than are held at once is built in parts, even if one edge has more
    duplicates than that.
    """
    monkeypatch.setattr(shards, "GATHER_EDGES", 300)
    monkeypatch.setattr("delegraph.partition.store.layout.RANGE_EDGES", 400)
    monkeypatch.setattr("delegraph.partition.store.long_rows.CELLS", 16)
    rng = np.random.default_rng(4)
    dst = np.concatenate([rng.integers(1, 2000, 3000), np.full(1000, 777)])
    weight = rng.random(4000).astype(np.float32)
    path = tmp_path / "edges.parquet"
    write(path, src=np.zeros(4000, np.int64), dst=dst, w=weight)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    build(
        path,
        tmp_path / "graph.dg",
        weight="w",
        duplicates=duplicates,
        device="cpu",
        scratch=str(scratch),
    )
    wanted = defined(np.zeros(4000, np.int64), dst, weight, duplicates, directed=False)
    same(stored(open_store(tmp_path / "graph.dg")), wanted)


@pytest.mark.parametrize(
    ("column", "options", "reason"),
    [
        ([1.0, -2.5], [], "column 'w' of row group 0: weights must be numbers from 0 to 3.4e+38"),
        ([1.0, float("nan")], [], "not nan"),
        ([1.0, 1e300], [], "the weight 1e+300 would become infinite in 32 bits"),
        ([1, -3], [], "integer weights must be from 0 to 4,294,967,295, not -3"),
        ([1, 2**32], [], "not 4294967296"),
        ([1.0, None], [], "holds nulls"),
        (["a", "b"], [], "weights must be numbers or booleans"),
        ([3e38, 3e38], ["--duplicates", "sum"], "add up to more than 32 bits can hold"),
        ([2**31, 2**31], ["--duplicates", "sum"], "add up to more than 32 bits can hold"),
    ],
)
def test_bad_weights_are_refused(tmp_path, delegraph, column, options, reason):
    path = tmp_path / "edges.parquet"
    write(path, src=[0, 0], dst=[1, 1], w=column)
    run = delegraph("build", path, "-o", tmp_path / "graph.dg", "--weight", "w", *options)
    assert run.code == 2
    assert reason in run.err
    assert run.err.count("\n") == 1
    assert not (tmp_path / "graph.dg").exists()


def test_options_that_do_not_go_together(tmp_path):
    path = tmp_path / "edges.parquet"
    write(path, src=[0], dst=[1])
    with pytest.raises(InputError, match="no column named 'w' for weights"):
        build(path, tmp_path / "graph.dg", weight="w")
    with pytest.raises(InputError, match="give their column with weight="):
        build(path, tmp_path / "graph.dg", duplicates="sum")
    with pytest.raises(InputError, match="give another column of weights"):
        build(path, tmp_path / "graph.dg", weight="src")


def test_a_store_with_weights_is_not_one_without(tmp_path, delegraph, ok):
    path, place = tmp_path / "edges.parquet", tmp_path / "graph.dg"
    write(path, src=[0, 1], dst=[1, 2], w=[1.0, 2.0])
    for _ in range(2):
        ok("build", path, "-o", place, "--weight", "w")
    assert "--weight" in delegraph("build", path, "-o", place).err
    other = delegraph("build", path, "-o", place, "--weight", "w", "--duplicates", "max")
    assert "--duplicates" in other.err


WIDE = [0.5, 16777217.0, 0.1, 3.0]
"""Weights, two of which 32 bits do not hold exactly."""


def wide_edges(folder: Path, names: Callable[[int], Any] = int) -> Path:
    """Write four files of the weights ``WIDE``, in row groups of several lengths."""
    src, dst, _ = random_weighted(6, "float32", rows=4000)
    weight = np.array(WIDE * 1000)
    folder.mkdir()
    for part in range(4):
        share = slice(part * 1000, (part + 1) * 1000)
        ends = ([names(int(i)) for i in column[share]] for column in (src, dst))
        table = pa.table({"src": next(ends), "dst": next(ends), "w": weight[share]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=100 * (part + 1))
    return folder


@pytest.mark.parametrize("names", [int, str, lambda i: i * 10**12 - 5], ids=["dense", "str", "far"])
@pytest.mark.parametrize("way", ["memory", "files", "killed", slow("workers")])
def test_rounded_weights_are_counted_however_they_are_read(tmp_path, monkeypatch, names, way):
    edges = wide_edges(tmp_path / "edges", names)
    options: dict[str, Any] = {"weight": "w", "device": "cpu"}
    if way != "memory":
        (tmp_path / "scratch").mkdir()
        options["scratch"] = str(tmp_path / "scratch")
    if way == "workers":
        options["workers"] = 2
    if way == "killed":  # the next attempt knows what the first one has counted

        def killed(*args: Any, **more: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(shards, "build_shard", killed)
            with pytest.raises(KeyboardInterrupt):
                build(edges, tmp_path / "graph.dg", **options)
    built = build(edges, tmp_path / "graph.dg", **options)
    if way == "killed":
        assert "scatter" in built.reused
    info = built.store.info.weights
    assert info is not None
    change = max(1 / 16777217, abs(float(np.float32(0.1)) - 0.1) / 0.1)
    assert (info.rounded, info.greatest_change) == (2000, change)
    line = f"2,000 of 4,000 weights were rounded to 32 bits; the greatest change is {change:.2g} "
    assert f"{line}of the weight" in built.notes


@pytest.mark.parametrize("weight", [1e-46, 1e39])
@pytest.mark.parametrize("way", ["build", "files", "sssp", "pagerank", "open"])
def test_a_weight_that_would_be_lost_is_refused(tmp_path, weight, way):
    """A weight that 32 bits would lose is refused with its file and row group wherever it is read;
    nothing is written.
    """
    edges, out = tmp_path / "edges.parquet", tmp_path / "out"
    write(edges, src=[1, 2], dst=[2, 3], w=[1.0, weight])
    asks: dict[str, Callable[[], Any]] = {
        "build": lambda: delegraph.build(edges, out, weight="w"),
        "files": lambda: delegraph.build(edges, out, weight="w", scratch=tmp_path),
        "sssp": lambda: delegraph.sssp(edges, 1, output=out, weight="w"),
        "pagerank": lambda: delegraph.pagerank(edges, output=out, weight="w"),
        "open": lambda: delegraph.open(edges, weight="w"),
    }
    with pytest.raises(InputError) as error:
        asks[way]()
    line = f"{edges}: column 'w' of row group 0: the weight {weight!r} would become "
    assert str(error.value).startswith(line)
    assert "multiply all weights, for example by" in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def test_integers_and_narrow_floats_are_not_rounded(tmp_path):
    for kind, weights in (("uint32", [16777217, 3]), ("float32", np.array([0.1, 3], np.float32))):
        write(tmp_path / "edges.parquet", src=[1, 2], dst=[2, 3], w=weights)
        built = build(tmp_path / "edges.parquet", tmp_path / kind, weight="w")
        info = built.store.info.weights
        assert info is not None
        assert (info.kind, info.rounded, info.greatest_change) == (kind, 0, 0.0)
        assert not built.notes
