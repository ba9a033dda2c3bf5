"""Build: the keys of a shard's buckets, from all runs, become its rows of targets.

Each bucket is gathered, sorted by row and position, and rid of duplicates; neighbours stand hub
first then. A row too long to be sorted is marked in a bitmap instead. No task of a build writes
what another one does, so any may run again, anywhere; spans, chunks and runs change time and
memory, never the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...kernels.base import bitmap, sort
from ...kernels.base.compiled import compile_kernels
from ...kernels.base.sort import radix_sort
from ...kernels.prepare import csr, positions
from ..disk.files import ArrayWriter, FileRecord
from ..disk.scratch import Scratch, replacing
from .layout import Layout, Shard, Subgraph, ends_of
from .manifest import targets_file
from .runs import Runs, Slice, with_global_ids

GATHER_EDGES = 1 << 21
"""Keys that a build task fetches from the runs at once."""


def build_shard(
    shard: Shard, runs: Runs, layout: Layout, vertices: int, folder: str, scratch: Scratch
) -> FileRecord:
    """Write a shard's targets into the store ``folder``, and ``counts-SHARD`` (uint32, its rows).

    vertices: of the graph; positions lie below it.
    """
    layout = with_global_ids(layout, scratch)
    subgraph = shard.subgraph
    name = targets_file(subgraph.partition, subgraph.name, shard.number)
    ids = target_ids(subgraph, layout)
    starts = subgraph.ranges.starts
    counts = np.zeros(int(starts[shard.stop] - starts[shard.first]), np.uint32)
    row = 0
    with replacing(Path(folder, name)) as partial, ArrayWriter(partial, np.uint32) as file:
        for first, stop, keys in _fetches(runs, shard):
            base = subgraph.first_bucket
            fetched = runs.buckets(base + first, base + stop)
            if keys > GATHER_EDGES and starts[stop] - starts[first] == 1:
                marked = bitmap.empty(vertices)
                for part in fetched:
                    csr.mark_targets(part.targets, marked)
                for positions in _members(marked, vertices):
                    counts[row] += len(positions)
                    file.append(ids(positions))
                row += 1
                continue
            parts = list(fetched)
            for i in range(first, stop):
                rows = int(starts[i + 1] - starts[i])
                positions = _build_bucket(parts, i - first, counts[row : row + rows], vertices)
                file.append(ids(positions))
                row += rows
        record = file.finish()
    scratch.save(counts_name(shard), counts)
    return record


def counts_name(shard: Shard) -> str:
    return f"counts-{shard.subgraph.partition}-{shard.subgraph.name}-{shard.number}"


def _fetches(runs: Runs, shard: Shard) -> Iterator[tuple[int, int, int]]:
    """(first, stop, keys) of neighbouring ranges of a shard that are fetched together."""
    base = shard.subgraph.first_bucket
    first, held = shard.first, 0
    for i, keys in enumerate(runs.keys(base + shard.first, base + shard.stop).tolist(), first):
        if i > first and held + keys > GATHER_EDGES:
            yield first, i, held
            first, held = i, 0
        held += keys
    if first < shard.stop:
        yield first, shard.stop, held


def _build_bucket(
    parts: Sequence[Slice], bucket: int, rows: NDArray[np.uint32], vertices: int
) -> NDArray[np.uint32]:
    """Sorted targets (positions) of a bucket's rows, without duplicates; counts them in
    ``rows``.
    """
    some = [part.buckets(bucket, bucket + 1) for part in parts]
    keys = np.empty(sum(len(part.rows) for part in some), np.uint64)
    at = 0
    for part in some:
        csr.join_keys(part.rows, part.targets, keys[at : at + len(part.rows)])
        at += len(part.rows)
    position_bits = (vertices - 1).bit_length()
    row_bits = max(len(rows) - 1, 0).bit_length()
    keys = radix_sort(keys, np.empty_like(keys), position_bits, row_bits)
    positions = np.empty(len(keys), np.uint32)
    return positions[: csr.rows_from_sorted(keys, rows, positions)]


def _members(marked: NDArray[np.uint64], vertices: int) -> Iterator[NDArray[np.uint32]]:
    """The vertices in a bitmap, rising, in pieces. (Those past the last one are marked.)"""
    words = 1 << 14
    for first in range(0, len(marked), words):
        some = marked[first : first + words]
        positions = bitmap.members(some) + np.uint32(first * bitmap.WORD)
        yield positions[positions < vertices]


def target_ids(
    subgraph: Subgraph, layout: Layout
) -> Callable[[NDArray[np.uint32]], NDArray[np.uint32]]:
    """From positions to what the subgraph calls its targets (the tables in layout.py and
    grid.py).
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


def compile_build(rows: int) -> None:
    """What the tasks of a build call, of so many input rows."""
    compile_kernels(bitmap, sort, positions, csr, degrees=csr.degree_dtype(rows))
