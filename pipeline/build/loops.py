"""Self-loops that a build keeps: the weight of each vertex's loops, combined as the weights of rows
that repeat an edge are, or 1 without weights.

While a store is built, the loops of all vertices are one long row whose targets are dense ids. In
the store they are a column of the vertex table.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...partition.disk.scratch import Scratch
from ...partition.input.sources import EdgeSource
from ...partition.input.weights import WeightType
from ...partition.store.runs import NO_OFFSETS, Slice
from ...partition.store.shards import long_row
from ...partition.store.weighing import Weighing

_NO_ROWS = np.empty(0, np.uint16)


@dataclass(frozen=True)
class FoundLoops:
    """The loops of a graph that is being built, in parts in scratch. firsts: the first dense id of
    each part. vertices: the number of vertices with loops. kind: the type of their weights; None
    without weights.
    """

    scratch: Scratch
    firsts: Sequence[int]
    vertices: int
    kind: WeightType | None

    @property
    def weight_type(self) -> np.dtype:
        """Return the type of the loops' weights, which are 1 in a graph without weights."""
        return np.dtype(self.kind or np.uint32)

    def among(self, ids: range) -> tuple[NDArray[np.uint32], NDArray]:
        """Return the dense ids in a range that have loops, and their weights."""
        first, stop = max(0, bisect(self.firsts, ids.start) - 1), bisect(self.firsts, ids.stop)
        found = [self._part(part, ids) for part in range(first, stop)]
        places = np.concatenate([np.empty(0, np.uint32), *(part for part, _ in found)])
        none = np.empty(0, self.weight_type)
        return places, np.concatenate([none, *(weights for _, weights in found)])

    def _part(self, part: int, ids: range) -> tuple[NDArray[np.uint32], NDArray]:
        places, *bits = self.scratch.load(_part_name(part))
        at = slice(*np.searchsorted(places, [ids.start, ids.stop]))
        if not bits:
            return places[at], np.ones(at.stop - at.start, np.uint32)
        return places[at], bits[0][at].view(self.weight_type)


def pick_loops(
    item: tuple[Sequence[int], str], source: EdgeSource, scratch: Scratch, rows: int, weighted: bool
) -> list[str]:
    """Save the rows of some chunks that are self-loops, batch by batch. item: the chunks, and the
    beginning of the names of what is saved. Returns the names.
    """
    chunks, name = item
    names: list[str] = []
    for batch in source.batches(chunks, rows, weights=weighted):
        src, dst, *bits = batch
        places = np.flatnonzero(src == dst)
        if len(places):
            names.append(f"loops-of-{name}-{len(names)}")
            scratch.save(names[-1], np.stack([column[places] for column in (src, *bits)]))
        del batch, src, dst, bits  # freed before the next one is read
    return names


def combine_loops(
    names: Sequence[str], domain: int, scratch: Scratch, weighing: Weighing | None
) -> tuple[list[int], int]:
    """Combine the rows that ``pick_loops`` has saved, and save the loops in parts. A loop of weight
    0 is none. Returns the first dense id of each part, and the number of vertices with loops.
    Raises InputError if a sum of weights is too large.
    """

    def fetch() -> Iterator[Slice]:
        for name in names:
            ids, *bits = scratch.load(name)
            yield Slice(_NO_ROWS, ids, bits[0] if bits else ids[:0], NO_OFFSETS)

    firsts, vertices = [], 0
    for ids, bits in long_row(fetch, domain, weighing):
        columns = [ids] if weighing is None else [column[bits != 0] for column in (ids, bits)]
        if len(columns[0]):
            scratch.save(_part_name(len(firsts)), np.stack(columns))
            firsts.append(int(columns[0][0]))
            vertices += len(columns[0])
    scratch.remove(names)
    return firsts, vertices


def _part_name(part: int) -> str:
    return f"loops-{part}"
