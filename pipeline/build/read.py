"""Reading of a Parquet edge list into memory, as batches of dense ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.dictionary.in_memory import Merged, choose_cuts, merge_range, sort_by_range
from ...partition.disk.memory import trim_freed_memory
from ...partition.input import ids
from ...partition.input.edges import CHUNK_ROWS, Chunk, EdgeList
from ...partition.input.ids import Batch, Ids, dense_batches
from ...partition.input.weights import Rounding, total_rounding
from ..run.execute import Executor

_LARGE = 64 << 20  # bytes of both columns in a row group, compressed and uncompressed


@dataclass(frozen=True)
class DenseEdges:
    """An edge list in memory, as batches of dense ids.

    present: uint8 (domain,), 1 for each dense id that is a vertex. self_loops: the number of rows
    that are self-loops; None if not counted. rounding: of weights, if there are any.
    """

    ids: Ids
    present: NDArray[np.uint8]
    batches: list[Batch]
    self_loops: int | None = None
    rounding: Rounding = field(default_factory=Rounding)

    @property
    def rows(self) -> int:
        return sum(len(batch[0]) for batch in self.batches)


def with_bounds(edges: EdgeList, executor: Executor) -> EdgeList:
    """Return the edge list with the bounds of its integer ids. The ids are read if statistics lack
    the bounds.
    """
    if edges.bounds is not None or not pa.types.is_integer(edges.id_type):
        return edges
    chunks = edges.chunks()
    sizes = [chunk.rows for chunk in chunks]
    found = executor.step("bounds", partial(ids.chunk_bounds, edges), chunks, sizes=sizes)
    bounds = min(low for low, _ in found), max(high for _, high in found)
    return replace(edges, bounds=bounds)


def dense_domain(edges: EdgeList) -> int | None:
    """Return the number that all ids are below, if they are dense as they are; None if they need a
    dictionary.
    """
    if edges.bounds is None or not ids.may_be_dense(edges.bounds, edges.rows):
        return None
    ids.check_size(edges.bounds[1] + 1)
    return edges.bounds[1] + 1


def read_edges(
    edges: EdgeList, executor: Executor, projected_bytes: int = 0, count_loops: bool = False
) -> DenseEdges:
    """Read an edge list into memory as dense ids. count_loops: whether self-loops are counted,
    while rows are in the cache.
    """
    edges = with_bounds(edges, executor)
    chunks = edges.chunks()
    sizes = [chunk.rows for chunk in chunks]
    loops: list[int] = []  # counts of pieces, in any order
    roundings: list[tuple[int, float]] = []  # by chunk, in any order

    def counted(batch: Batch) -> Batch:
        if count_loops:
            loops.append(int(np.count_nonzero(batch[0] == batch[1])))
        return batch

    domain = dense_domain(edges)
    if domain is not None:
        present = np.zeros(domain, np.uint8)

        def read(chunk: Chunk) -> list[Batch]:
            rounding = Rounding()
            dense = dense_batches(edges, [chunk], domain, CHUNK_ROWS, present, True, rounding)
            batches = [counted(batch) for batch in dense]
            roundings.append(rounding.as_tuple())
            return batches

        batches = [
            batch
            for part in executor.step("read", read, chunks, projected_bytes, sizes=sizes)
            for batch in part
        ]
        if edges.reading_at_most.held > _LARGE:  # else the allocator would keep it
            trim_freed_memory()
        numbering = ids.compact(batches, Ids(edges.id_type, domain, None), present)
        if numbering.values is not None:
            present = np.ones(numbering.domain, np.uint8)
        counts = sum(loops) if count_loops else None, total_rounding(roundings)
        return DenseEdges(numbering, present, batches, *counts)

    def encode(chunk: Chunk) -> list[tuple[Batch, pa.Array]]:
        rounding = Rounding()
        pieces = list(ids.read_encoded(edges, chunk, rounding, repeats=True))
        roundings.append(rounding.as_tuple())
        return pieces

    encoded = executor.step("read", encode, chunks, projected_bytes, sizes=sizes)
    pieces = dict(enumerate(batch for part in encoded for batch, _ in part))
    dictionaries = [dictionary for part in encoded for _, dictionary in part]
    ends = np.cumsum([0, *map(len, dictionaries)])
    groups = _groups_of(ends)
    del encoded
    merged = _merge(dictionaries, groups, executor)
    ids.check_size(merged.count)

    def number(group: int) -> list[Batch]:
        places, first = merged.places(group), ends[groups[group].start]
        return [
            counted(ids.translate(pieces.pop(i), places[ends[i] - first : ends[i + 1] - first]))
            for i in groups[group]
        ]

    batches = [
        batch for part in executor.step("encode", number, range(len(groups))) for batch in part
    ]
    numbering = Ids(edges.id_type, merged.count, merged.ids())
    present = np.ones(numbering.domain, np.uint8)
    counts = sum(loops) if count_loops else None, total_rounding(roundings)
    return DenseEdges(numbering, present, _cut(batches), *counts)


def _groups_of(ends: NDArray[np.int64]) -> list[range]:
    """Return groups of dictionaries that are merged as one, since many small files have as many
    small dictionaries. ends: how many ids the dictionaries before each have.
    """
    groups, start = [], 0
    for stop in range(1, len(ends)):
        if ends[stop] - ends[start] >= ids.ENCODE_ROWS or stop == len(ends) - 1:
            groups.append(range(start, stop))
            start = stop
    return groups


def _merge(dictionaries: list[pa.Array], groups: Sequence[range], executor: Executor) -> Merged:
    """Merge dictionaries, whose list is emptied, group by group."""
    joined = [
        dictionaries[group.start]
        if len(group) == 1
        else pa.concat_arrays(dictionaries[group.start : group.stop])
        for group in groups
    ]
    dictionaries.clear()
    cuts = choose_cuts(joined)
    ranges = range(len(cuts) + 1)
    total = len(joined) + len(ranges)
    by_range = executor.step(
        "ids", lambda dictionary: sort_by_range(dictionary, cuts), joined, total=total
    )
    joined.clear()
    parts = executor.step("ids", lambda number: merge_range(number, by_range), ranges, total=total)
    return Merged(by_range, parts)


def _cut(batches: list[Batch]) -> list[Batch]:
    """Cut batches to at most CHUNK_ROWS rows, whatever the row groups are, since later steps
    distribute work by batches.
    """
    return [
        tuple(column[first : first + CHUNK_ROWS] for column in batch)
        for batch in batches
        for first in range(0, len(batch[0]), CHUNK_ROWS)
    ]
