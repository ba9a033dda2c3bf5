"""Build: the keys of a shard's buckets, from all runs, become its rows of targets.

The keys of each bucket are gathered, sorted by row and position, and freed of duplicates, so the
neighbours in a row come with hubs first. A row too long to be sorted is marked in a bitmap instead.
No task of a build writes a file that another task writes, so any task may run again, anywhere. The
numbers of spans, chunks and runs change time and memory, never the store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...kernels.base import bitmap, sort
from ...kernels.base.arrays import Buffers
from ...kernels.base.compiled import compile_kernels
from ...kernels.base.sort import radix_sort, radix_sort_with
from ...kernels.prepare import csr, positions, weights
from ..disk.files import ArrayWriter, FileRecord
from ..disk.scratch import Scratch, replacing
from ..input.weights import NO_WEIGHTS, WeightType
from . import long_rows
from .layout import Layout, Shard, Subgraph, ends_of
from .manifest import targets_file, weights_of
from .runs import Runs, Slice, room_for, with_global_ids
from .weighing import Weighing, WeightFacts

GATHER_EDGES = 1 << 21
"""Number of keys that a build task fetches from the runs at once."""


def build_shard(
    shard: Shard,
    runs: Runs,
    layout: Layout,
    vertices: int,
    folder: str,
    scratch: Scratch,
    weighing: Weighing | None = None,
) -> list[FileRecord]:
    """Write a shard's targets into the store ``folder``, and ``counts-SHARD`` (uint32, by row).

    vertices: of the graph; positions are below it. weighing: if not None, a file of weights and
    ``weights-SHARD`` (WeightFacts) are written too. Returns records of the files.
    """
    layout = with_global_ids(layout, scratch)
    subgraph = shard.subgraph
    place = subgraph.partition, subgraph.name, shard.number
    ids = target_ids(subgraph, layout)
    starts = subgraph.ranges.starts
    counts = np.zeros(int(starts[shard.stop] - starts[shard.first]), np.uint32)
    with contextlib.ExitStack() as stack:
        file = open_array(stack, Path(folder, targets_file(*place)), np.uint32)
        weights = None
        if weighing is not None:
            path = Path(folder, weights_of(targets_file(*place)))
            weights = WeightsFile(open_array(stack, path, weighing.kind), weighing.kind)
        for positions, bits in _built(shard, runs, vertices, weighing, counts):
            file.append(ids(positions))
            if weights is not None:
                weights.append(bits)
        records = [file.finish()]
        if weights is not None:
            records.append(weights.file.finish())
            scratch.save(weights_name(shard), weights.facts.as_array())
    scratch.save(counts_name(shard), counts)
    return records


def build_rows(
    shard: Shard,
    runs: Runs,
    layout: Layout,
    vertices: int,
    weighing: Weighing | None,
    targets: NDArray[np.uint32],
    bits: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Build a shard in memory, for a layout that is numbered by position.

    The first elements of ``targets``, and of ``bits`` for weights, receive the shard's values.
    Returns the number of targets of each of its rows.
    """
    ids, starts = target_ids(shard.subgraph, layout), shard.subgraph.ranges.starts
    counts = np.zeros(int(starts[shard.stop] - starts[shard.first]), np.uint32)
    at = 0
    for places, weight_bits in _built(shard, runs, vertices, weighing, counts):
        targets[at : at + len(places)] = ids(places)
        bits[at : at + len(weight_bits)] = weight_bits
        at += len(places)
    return counts


def open_array(stack: contextlib.ExitStack, path: Path, dtype: DTypeLike) -> ArrayWriter:
    return stack.enter_context(ArrayWriter(stack.enter_context(replacing(path)), dtype))


class WeightsFile:
    """The file of a shard's weights, and facts about these weights."""

    def __init__(self, file: ArrayWriter, kind: WeightType) -> None:
        self.file = file
        self.facts = WeightFacts(kind)
        self._kind = kind

    def append(self, bits: NDArray[np.uint32]) -> None:
        self.file.append(bits.view(self._kind))
        self.facts.add(bits)


def _built(
    shard: Shard,
    runs: Runs,
    vertices: int,
    weighing: Weighing | None,
    counts: NDArray[np.uint32],
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Yield the positions of the targets of a shard's rows, in order, and the bits of their
    weights, if there are any. counts: receives the number of targets of each row.
    """
    starts, base = shard.subgraph.ranges.starts, shard.subgraph.first_bucket
    row, buffers = 0, Buffers()
    for first, stop, keys in _fetches(runs, shard):
        fetch = partial(runs.buckets, base + first, base + stop)
        if keys > GATHER_EDGES and starts[stop] - starts[first] == 1:
            buffers.clear()
            for positions, bits in long_row(fetch, vertices, weighing):
                counts[row] += len(positions)
                yield positions, bits
            row += 1
            continue
        parts = list(fetch(room_for(keys, weighing is not None, buffers)))
        for i in range(first, stop):
            rows = int(starts[i + 1] - starts[i])
            bucket = [part.buckets(i - first, i - first + 1) for part in parts]
            yield build_bucket(bucket, counts[row : row + rows], vertices, weighing, buffers)
            row += rows


def long_row(
    fetch: long_rows.Fetch, vertices: int, weighing: Weighing | None
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Yield the positions of the targets of a row that has too many to be sorted at once, in order
    and in parts, and the bits of their weights, if there are any.
    """
    if weighing is None:
        return _marked(fetch(), vertices)
    return long_rows.built(fetch, vertices, weighing.combining, GATHER_EDGES)


def _marked(
    fetched: Iterator[Slice], vertices: int
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    marked = bitmap.empty(vertices)
    for part in fetched:
        csr.mark_targets(part.targets, marked)
    for places in _members(marked, vertices):
        yield places, NO_WEIGHTS


def counts_name(shard: Shard) -> str:
    return f"counts-{shard.subgraph.partition}-{shard.subgraph.name}-{shard.number}"


def weights_name(shard: Shard) -> str:
    return f"weights-{shard.subgraph.partition}-{shard.subgraph.name}-{shard.number}"


def _fetches(runs: Runs, shard: Shard) -> Iterator[tuple[int, int, int]]:
    """Yield (first, stop, keys) of neighbouring ranges of a shard that are fetched together."""
    base = shard.subgraph.first_bucket
    first, held = shard.first, 0
    for i, keys in enumerate(runs.keys(base + shard.first, base + shard.stop).tolist(), first):
        if i > first and held + keys > GATHER_EDGES:
            yield first, i, held
            first, held = i, 0
        held += keys
    if first < shard.stop:
        yield first, shard.stop, held


def build_bucket(
    parts: Sequence[Slice],
    rows: NDArray[np.uint32],
    vertices: int,
    weighing: Weighing | None,
    buffers: Buffers,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the sorted targets (positions) of a bucket's rows, without duplicates, and the bits of
    their weights. rows: receives the number of targets of each row. The returned arrays may be in
    ``buffers``.
    """
    size = sum(len(part.rows) for part in parts)
    keys, spare_keys = (buffers.take(name, size, np.uint64) for name in ("keys", "spare keys"))
    at = 0
    for part in parts:
        csr.join_keys(part.rows, part.targets, keys[at : at + len(part.rows)])
        at += len(part.rows)
    position_bits = (vertices - 1).bit_length()
    row_bits = max(len(rows) - 1, 0).bit_length()
    if weighing is None:
        positions = buffers.take("positions", size, np.uint32)
        keys = radix_sort(keys, spare_keys, position_bits, row_bits)
        return positions[: csr.rows_from_sorted(keys, rows, positions)], NO_WEIGHTS
    bits = np.concatenate([NO_WEIGHTS, *(part.weights for part in parts)])
    spare = spare_keys, buffers.take("spare bits", size, np.uint32)
    keys, bits = radix_sort_with(keys, bits, *spare, position_bits, row_bits)
    return long_rows.without_duplicates(keys, bits, weighing.combining, rows)


def _members(marked: NDArray[np.uint64], vertices: int) -> Iterator[NDArray[np.uint32]]:
    """Yield the vertices in a bitmap, rising, in pieces. (Bits after the last vertex are set, and
    are skipped.)
    """
    words = 1 << 14
    for first in range(0, len(marked), words):
        window = marked[first : first + words]
        positions = bitmap.members(window) + np.uint32(first * bitmap.WORD)
        yield positions[positions < vertices]


def target_ids(
    subgraph: Subgraph, layout: Layout
) -> Callable[[NDArray[np.uint32]], NDArray[np.uint32]]:
    """Return a function from positions to the numbers that the subgraph has for its targets (the
    tables in layout.py and grid.py).
    """
    name = subgraph.name
    target = ends_of(name)[1]
    global_of_position = layout.placement.global_id

    def ids(positions: NDArray[np.uint32]) -> NDArray[np.uint32]:
        if target == "d":
            return positions
        if not layout.numbered_by_position:
            positions = global_of_position[positions]
        if not name.endswith("nn"):
            return positions // np.uint32(layout.partitions)
        return positions if layout.grid is None else layout.grid.in_row(positions)

    return ids


def compile_build(rows: int, weighted: bool, load: bool = True) -> None:
    """Compile the kernels that the tasks of a build call.

    rows: of the input. weighted: whether edges have weights. load: see compile_kernels.
    """
    modules = bitmap, sort, positions, csr, *([weights] if weighted else [])
    compile_kernels(*modules, load=load, degrees=csr.degree_dtype(rows))
