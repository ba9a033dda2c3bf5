"""Reading a store's manifest, and checking it as a schema: names, types and ranges of its fields,
their consistency, and that the files are those of such a graph with the sizes that its counts
imply.

So no number that a search computes from the manifest leads outside an array, and no name outside
the folder.
"""

from __future__ import annotations

import json
import os
import reprlib
import stat
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ..disk import files
from ..disk.files import HEADER_BYTES, FileRecord, read_regular
from ..disk.outputs import MANIFEST, STORE_FORMAT
from ..disk.system_errors import raise_failure
from ..errors import InputError
from ..input.other_formats import advice
from ..input.weights import Duplicates, WeightType
from .grid import Grid
from .layout import MAX_PARTITIONS, SUBGRAPHS, kept_subgraphs
from .manifest import (
    DELEGATES,
    FORMAT_VERSION,
    READ_VERSIONS,
    VERTICES,
    GraphInfo,
    WeightInfo,
    digest,
    offsets_file,
    shards_of,
    weights_of,
)
from .order import Order

_MOST = (1 << 63) - 1
_INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_ID_TYPES = ["string", "large_string", "uuid", "fixed_size_binary[16]", *_INTEGERS]


class Manifest(NamedTuple):
    """A checked manifest. bytes: of the manifest and of all files."""

    info: GraphInfo
    records: dict[str, FileRecord]
    bytes: int


def read_manifest(path: Path) -> Manifest:
    """Read a store's manifest, check its contents, and check that every file is there with its
    size.

    Raises InputError for a path that is no store, a store of another format version, and damage.
    """
    file = path / MANIFEST
    if not os.path.lexists(file):
        told = f"{path}: not a store (no {MANIFEST} in it); 'delegraph build' makes one"
        if instead := advice(str(path)) if path.is_file() else "":
            told += f" of an edge list, but this is {instead}"
        raise InputError(told)
    encoded = read_regular(file)
    try:
        manifest = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {MANIFEST} is damaged; build the store again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != STORE_FORMAT:
        raise InputError(f"{path}: {MANIFEST} is not the manifest of a delegraph store")
    if manifest.get("format_version") not in READ_VERSIONS:
        raise InputError(
            f"{path}: store format {reprlib.repr(manifest.get('format_version'))}; this delegraph "
            f"reads format {FORMAT_VERSION}: build the store again"
        )
    checksum = manifest.pop("xxh3", None)
    if checksum != digest(manifest):
        raise InputError(f"{path}: {MANIFEST} is damaged: it does not match its checksum")
    try:
        _check_names(manifest, ["format", "format_version", "graph", "files"], "the manifest")
        _add_what_is_newer(manifest["format_version"], manifest["graph"])
        info = _graph(manifest["graph"])
        records = _records(manifest["files"], info)
    except _UnfitError as error:
        raise InputError(f"{path}: {MANIFEST} is damaged: {error}; build the store again") from None
    _check_files(path, records)
    total = sum(record.bytes for record in records.values())
    return Manifest(info, records, total + len(encoded))


def _add_what_is_newer(version: int, graph: Any) -> None:
    """Add the fields that an older manifest lacks, as unknown."""
    if not isinstance(graph, dict):
        return
    if version < 6:
        graph["loops"] = None
    if version == 3:
        graph["weights"] = None
    weights = graph.get("weights")
    if version == 4 and isinstance(weights, dict):
        weights |= {"rounded": None, "greatest_change": None}


class _UnfitError(Exception):
    """The error for a value that no store's manifest has."""


def _check(fits: bool, field: str, value: object, rather: str) -> None:
    if not fits:
        raise _UnfitError(f"{field} is {reprlib.repr(value)}, not {rather}")


def _check_names(value: Any, names: list[str], what: str) -> None:
    _check(isinstance(value, dict), what, value, "an object")
    for name in names:
        if name not in value:
            raise _UnfitError(f"{what} lacks {name!r}")
    for name in value.keys() - set(names):
        raise _UnfitError(f"{what} has {reprlib.repr(name)}, which is unknown")


def _check_number(value: object, field: str, least: int = 0, most: int = _MOST) -> None:
    fits = type(value) is int and least <= value <= most
    _check(fits, field, value, f"a whole number from {least:,} to {most:,}")


def _check_one_of(value: object, field: str, known: list[str]) -> None:
    _check(value in known, field, value, f"one of {', '.join(known)}")


def _graph(graph: Any) -> GraphInfo:
    _check_names(graph, [field.name for field in fields(GraphInfo)], "graph")
    for field in ("fingerprint", "src", "dst"):
        value = graph[field]
        _check(isinstance(value, str) and _is_unicode(value), field, value, "a text")
    _check_one_of(graph["id_type"], "id_type", _ID_TYPES)
    _check(type(graph["directed"]) is bool, "directed", graph["directed"], "true or false")
    _check_one_of(graph["order"], "order", list(get_args(Order)))
    chosen_by = ["user", "nn", "delegates", "no delegates"]
    _check_one_of(graph["threshold_chosen_by"], "threshold_chosen_by", chosen_by)
    share = graph["nn_row_share"]
    fits = type(share) in (int, float) and 0 <= share <= 1
    _check(fits, "nn_row_share", share, "a share from 0 to 1")
    _check_number(graph["partitions"], "partitions", 1, MAX_PARTITIONS)
    _check_layout(graph["layout"], graph["grid"], graph["partitions"])
    _check_number(graph["vertices"], "vertices", 1, (1 << 32) - 1)
    most = graph["vertices"] if graph["grid"] is None else 0
    _check_number(graph["delegates"], "delegates", 0, most)
    _check_counts(graph)
    if graph["loops"] is not None:
        _check_number(graph["loops"], "loops", 0, min(graph["self_loops"], graph["vertices"]))
    weights = graph["weights"]
    if weights is not None:
        _check_weights(weights, graph["rows"])
        weights = WeightInfo(**weights)
    grid = graph["grid"] and Grid(*graph["grid"])
    return GraphInfo(
        **{
            **graph,
            "grid": grid,
            "degree_histogram": tuple(graph["degree_histogram"]),
            "weights": weights,
        }
    )


def _check_weights(weights: Any, rows: int) -> None:
    _check_names(weights, [field.name for field in fields(WeightInfo)], "weights")
    _check(isinstance(weights["column"], str), "weights.column", weights["column"], "a text")
    _check_one_of(weights["kind"], "weights.kind", list(get_args(WeightType)))
    _check_one_of(weights["duplicates"], "weights.duplicates", list(get_args(Duplicates)))
    least, mean, most = (weights[name] for name in ("least", "mean", "most"))
    for name in ("least", "mean", "most"):
        value = weights[name]
        _check(type(value) in (int, float), f"weights.{name}", value, "a number")
    fits = 0 <= least <= most and 0 <= mean < float("inf")
    _check(fits, "weights", weights, "of weights that are not negative")
    rounded, change = weights["rounded"], weights["greatest_change"]
    if rounded is None and change is None:
        return
    _check_number(rounded, "weights.rounded", 0, rows)
    fits = type(change) in (int, float) and 0 <= change <= 1 and bool(change) == bool(rounded)
    _check(fits, "weights.greatest_change", change, "a share from 0 to 1")


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    return text.encode(errors="ignore").decode() == text


def _check_layout(layout: object, grid: Any, partitions: int) -> None:
    _check_one_of(layout, "layout", ["delegate", "2d", "1d", "csr"])
    if layout == "delegate":
        _check(grid is None, "grid", grid, "null, as the layout has delegates")
    else:
        fits = isinstance(grid, list) and len(grid) == 2 and all(type(n) is int for n in grid)
        fits = fits and min(grid) > 0 and grid[0] * grid[1] == partitions
        fits = fits and (layout != "1d" or grid[0] == 1)
        _check(fits, "grid", grid, f"one of {partitions} partitions in the layout {layout}")
    alone = layout == "csr"
    _check(alone == (partitions == 1), "layout", layout, f"one of {partitions} partitions")


def _check_counts(graph: dict[str, Any]) -> None:
    """Check the counts of vertices, edges and rows, and that they add up."""
    for field in ("edges", "rows", "self_loops", "duplicates", "threshold"):
        _check_number(graph[field], field)
    rows = graph["edges"] + graph["self_loops"] + graph["duplicates"]
    _check(graph["rows"] == rows, "rows", graph["rows"], f"{rows:,} as edges and what was dropped")
    histogram = graph["degree_histogram"]
    _check(isinstance(histogram, list), "degree_histogram", histogram, "a list")
    for i, vertices in enumerate(histogram):
        _check_number(vertices, f"degree_histogram[{i}]")
    n = graph["vertices"]
    _check(sum(histogram) == n, "degree_histogram", histogram, f"the degrees of {n:,} vertices")
    _check_names(graph["subgraph_edges"], list(SUBGRAPHS), "subgraph_edges")
    for name, entries in graph["subgraph_edges"].items():
        _check_number(entries, f"subgraph_edges.{name}")
    entries = sum(graph["subgraph_edges"].values()) // (1 if graph["directed"] else 2)
    edges = graph["edges"]
    _check(edges == entries, "edges", edges, f"{entries:,} as those of the subgraphs")


def _records(given: Any, info: GraphInfo) -> dict[str, FileRecord]:
    _check(isinstance(given, dict), "files", given, "an object")
    records = {name: _record(name, value) for name, value in given.items()}
    known = set()
    for name, sizes in _fixed_sizes(info):
        known.add(name)
        if name not in records:
            raise _UnfitError(f"files lacks {name!r}")
        size = records[name].bytes
        said = " or ".join(f"{bytes:,}" for bytes in sizes)
        _check(
            not sizes or size in sizes, f"bytes of {name!r}", size, f"{said} by the graph's counts"
        )
    for name in kept_subgraphs(info.grid, info.directed):
        entries = 0
        for partition in range(info.partitions):
            for file in shards_of(records, partition, name):
                known.add(file)
                size = records[file].bytes - HEADER_BYTES
                _check(size >= 0 and size % 4 == 0, f"bytes of {file!r}", size, "those of an array")
                entries += size // 4
                if info.weights is not None:
                    weights = weights_of(file)
                    known.add(weights)
                    if weights not in records:
                        raise _UnfitError(f"files lacks {weights!r}")
                    beside = records[weights].bytes
                    same = beside == size + HEADER_BYTES
                    _check(same, f"bytes of {weights!r}", beside, "those of its targets")
        counted = info.subgraph_edges[name[-2:]]
        said = f"{counted:,} as subgraph_edges says"
        _check(entries == counted, f"the number of targets of {name}", entries, said)
    for name in records.keys() - known:
        raise _UnfitError(f"files has {reprlib.repr(name)}, which is not a file of such a graph")
    return records


def _fixed_sizes(info: GraphInfo) -> Iterator[tuple[str, list[int]]]:
    """Yield the files that a store must have, except those of targets and weights, each with the
    sizes in bytes that it may have.
    """
    yield VERTICES, []
    if info.grid is None:
        yield DELEGATES, [HEADER_BYTES + 4 * info.delegates]
    for partition in range(info.partitions):
        for name in kept_subgraphs(info.grid, info.directed):
            offsets = info.rows_of(partition, name).stop + 1
            sizes = [HEADER_BYTES + width * offsets for width in (4, 8)]
            yield offsets_file(partition, name), sizes


def _record(name: str, value: Any) -> FileRecord:
    _check_names(value, ["bytes", "xxh3"], repr(name))
    _check_number(value["bytes"], f"bytes of {name!r}")
    blocks, checksums = -(-value["bytes"] // files.BLOCK_BYTES), value["xxh3"]
    fits = isinstance(checksums, list) and len(checksums) == blocks
    fits = fits and set(map(type, checksums)) <= {str}
    _check(fits, f"xxh3 of {name!r}", checksums, f"the checksums of {blocks:,} blocks")
    return FileRecord.from_json(value)


def _check_files(path: Path, records: dict[str, FileRecord]) -> None:
    """Check that all files are there, with their sizes, and in this folder rather than behind a
    link.
    """
    for folder in {name.rpartition("/")[0] for name in records}:
        if folder and not stat.S_ISDIR(_found(path / folder).st_mode):
            raise InputError(f"{path / folder}: not a folder; build the store again")
    root = os.fspath(path)
    for name, record in records.items():
        found = _found(f"{root}/{name}")
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path / name}: not a regular file; build the store again")
        if found.st_size != record.bytes:
            raise InputError(
                f"{path / name}: damaged: {found.st_size:,} bytes instead of {record.bytes:,}; "
                "build the store again"
            )


def _found(path: str | Path) -> os.stat_result:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path}: missing from the store; build it again") from error
    except OSError as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
