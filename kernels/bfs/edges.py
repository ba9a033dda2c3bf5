"""A search over edges in no order: scans first, rows of the edges that are left when they pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..base import bitmap
from ..base.compiled import compile_kernels
from ..base.graph import UNREACHED, Graph
from ..base.team import Team
from ..prepare import rows as row_kernels
from ..prepare.rows import count_ends, fill_rows
from . import scan as scan_kernels
from .scan import scan, settle
from .state import SearchState

Edges = tuple[NDArray[np.uint32], ...]
"""Sources and targets of edges: arrays of one length."""


class EdgeSearch:
    """A search between two supersteps over batches of edges, as ``SearchState`` is over a graph.

    batches: pairs of uint32 arrays, sources and targets; overwritten as the search goes on. Only
    the first ``lengths[i]`` edges of batch i can still reach something.
    distance, parent, visited, level: as in SearchState, the frontier being the vertices at
    distance ``level``.
    """

    def __init__(
        self,
        batches: Sequence[Edges],
        vertices: int,
        source: int,
        directed: bool,
    ) -> None:
        self.batches = batches
        self.lengths = [len(src) for src, _ in batches]
        self.directed = directed
        self.distance = np.full(vertices, -1, np.int32)
        self.parent = np.full(vertices, UNREACHED, np.uint32)
        self.visited = bitmap.empty(vertices)
        self.visited[source // bitmap.WORD] |= np.uint64(1 << source % bitmap.WORD)
        self.distance[source] = 0
        self.level = 0

    def go_on_from(
        self, distance: NDArray[np.int32], parent: NDArray[np.uint32], level: int
    ) -> None:
        """Take the place of a search that had come to ``level``. This search writes to the arrays
        given.
        """
        self.distance, self.parent, self.level = distance, parent, level
        self.visited = bitmap.empty(len(distance))
        bitmap.add_where(self.visited, distance, 0, level)

    def advance(self, team: Team) -> tuple[int, int]:
        """Search one level by a scan. Returns the number of vertices found and of edges
        examined.
        """
        examined = sum(self.lengths)

        def scan_batch(i: int) -> int:
            src, dst = self.batches[i]
            return scan(src, dst, self.lengths[i], self.visited, self.parent, self.directed)

        self.lengths = team.map(scan_batch, range(len(self.batches)))
        self.level += 1
        marks = self.visited, self.parent, self.distance
        found = sum(team.run(settle, *marks, self.level, np.zeros(1, np.int64)))
        return found, examined

    def by_rows(self, team: Team) -> SearchState:
        """Go on in rows: return the same search over the edges that are left, from its frontier."""
        n = len(self.distance)
        graph = plain_rows(self.batches, self.lengths, n, self.directed, team)
        return SearchState.saved(graph, self.distance, self.parent, self.level)


def plain_rows(
    batches: Sequence[Edges], lengths: Sequence[int], vertices: int, directed: bool, team: Team
) -> Graph:
    """Make rows of the first ``lengths[i]`` edges of batch i: unsorted, with duplicates and
    loops.
    """
    if directed:
        forward = _rows(batches, lengths, vertices, team, 0, 1, both_ends=False)
        return Graph(*forward, *_rows(batches, lengths, vertices, team, 1, 0, both_ends=False))
    return Graph.undirected(*_rows(batches, lengths, vertices, team, 0, 1, both_ends=True))


def _rows(
    batches: Sequence[Edges],
    lengths: Sequence[int],
    vertices: int,
    team: Team,
    row: int,
    target: int,
    both_ends: bool,
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint32]]:
    """Return offsets and targets of rows by one end of the edges, or by both."""
    entries = sum(lengths) * (2 if both_ends else 1)
    offsets = np.zeros(vertices + 1, np.uint32 if entries < 2**32 else np.uint64)
    targets = np.empty(entries, np.uint32)
    cuts = np.linspace(0, vertices, team.threads + 1).astype(np.int64)

    def each_range(fill, *arrays) -> None:
        def over_batches(part: int) -> None:
            for batch, length in zip(batches, lengths, strict=True):
                ends = batch[row], batch[target], length, both_ends
                fill(*ends, cuts[part], cuts[part + 1], *arrays)

        team.map(over_batches, range(team.threads))

    each_range(count_ends, offsets[1:])
    np.cumsum(offsets, out=offsets)
    each_range(fill_rows, offsets[:-1].copy(), targets)
    return offsets, targets


def compile_edge_search(rows: int) -> None:
    """Compile the kernels of ``EdgeSearch`` for ``rows`` input rows."""
    offsets = {np.uint32} if 2 * rows < 2**32 else {np.uint32, np.uint64}
    compile_kernels(bitmap, scan_kernels, row_kernels, offsets=offsets)
