"""A store as a search out of core sees it: offsets in memory, targets on disk.

A *flow* is what carries a search from one kind of vertex to another: along nd, from normals to
delegates. It pushes along the rows of its own subgraph and pulls along the rows of its reverse:
of the transpose in a directed graph; in an undirected one, where every edge is stored both ways,
nd is the reverse of dn, and nn and dd of themselves. (The two places of an undirected edge may be
different partitions; a flow is all partitions', so it has both.) A directed nn has no reverse
beside delegates and only pushes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.numbering import Numbering, by_table
from ...kernels.base.team import Team
from ...kernels.pieces.mark_pages import mark_pages
from ...partition.store.edge_stream import EdgeStream
from ...partition.store.layout import kept_subgraphs, numberings
from ...partition.store.store import Store

_ROWS_A_TURN = 1 << 18
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Marked(NamedTuple):
    """The active rows of a subgraph: rows that have edges, their edges, and the pages of those.

    pages: uint8, nonzero where active.
    """

    rows: int
    edges: int
    pages: NDArray[np.uint8]


@dataclass(frozen=True)
class StreamedRows:
    """One subgraph of one partition: ``offsets`` of its rows, and how it numbers its vertices."""

    offsets: NDArray[np.unsignedinteger]
    rows: Numbering
    targets: Numbering
    stream: EdgeStream

    def marked(self, wanted: NDArray[np.uint64], team: Team, inverted: bool = False) -> Marked:
        """The rows of the vertices in a bitmap, or of those not in it."""
        active = np.zeros(self.stream.pages, np.uint8)
        counts = self._mark(wanted, team, inverted, active, counting=True)
        return Marked(sum(rows for rows, _ in counts), sum(edges for _, edges in counts), active)

    def pages_apart(self, visited: NDArray[np.uint64], team: Team) -> NDArray[np.uint8]:
        """The pages of the rows of vertices that are not in a bitmap: uint8, nonzero where so."""
        active = np.zeros(self.stream.pages, np.uint8)
        self._mark(visited, team, True, active, counting=False)
        return active

    def _mark(
        self,
        wanted: NDArray[np.uint64],
        team: Team,
        inverted: bool,
        active: NDArray[np.uint8],
        counting: bool,
    ) -> list[tuple[int, int]]:
        flip = _ALL if inverted else np.uint64(0)
        rows = len(self.offsets) - 1

        def part(first: int) -> tuple[int, int]:
            last = min(first + _ROWS_A_TURN, rows)
            count, edges = mark_pages(
                *(self.offsets, first, last, self.rows),
                *(wanted, flip, self.stream.page_starts, active, counting),
            )
            return count, int(edges)

        return team.map(part, range(0, rows, _ROWS_A_TURN))


@dataclass(frozen=True)
class Flow:
    """name: of its subgraph. forward, backward: places in StreamedGraph.subgraphs of the rows that
    it pushes and pulls along; no ``backward`` if it can't pull."""

    name: str
    forward: tuple[int, ...]
    backward: tuple[int, ...]


@dataclass(frozen=True)
class StreamedGraph:
    vertices: int
    partitions: int
    subgraphs: tuple[StreamedRows, ...]
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, store: Store, team: Team) -> StreamedGraph:
        """Reads and verifies the offsets; of the targets nothing yet."""
        info = store.info
        names = kept_subgraphs(info.grid, info.directed)
        delegates = by_table(store.delegates(team))
        subgraphs = []
        places: dict[str, list[int]] = {name: [] for name in names}
        for p in range(info.partitions):
            for name in names:
                places[name].append(len(subgraphs))
                offsets = store.offsets(p, name, team)
                ends = numberings(p, name, info.partitions, info.grid, delegates)
                subgraphs.append(StreamedRows(offsets, *ends, EdgeStream(store, p, name)))
        flows = tuple(
            Flow(name, tuple(places[name]), tuple(places.get(reverse_of(name, info.directed), ())))
            for name in kept_subgraphs(info.grid, directed=False)
        )
        return cls(info.vertices, info.partitions, tuple(subgraphs), flows)


def reverse_of(name: str, directed: bool) -> str:
    """What holds a subgraph's edges by their targets.

    >>> reverse_of("nd", directed=False), reverse_of("nd", directed=True)
    ('dn', 'reverse-nd')
    """
    return f"reverse-{name}" if directed else name[::-1]


def subgraphs_of(store: Store) -> Iterator[tuple[int, str]]:
    """(partition, name) of every subgraph that a search uses."""
    for p in range(store.info.partitions):
        for name in kept_subgraphs(store.info.grid, store.info.directed):
            yield p, name
