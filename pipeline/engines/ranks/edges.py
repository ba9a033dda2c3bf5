"""The edges of a rank's subgraphs, in memory or on disk, and visits along them.

A visit sees a *piece* of a subgraph: all of its targets, where they are in memory, else a run of
pages that was read. On disk, the pages that hold edges of active rows (push: of the frontier; pull:
of unvisited vertices) are marked, and those alone are read. A team has twice as many threads as
there are cores, each with a buffer of its own: while some wait for the disk others compute, which
is all the reading ahead that is needed, and memory is bounded by the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import Numbering
from ....kernels.base.team import Team
from ....kernels.pieces.active import cut_turns, mark_pages
from ....kernels.pieces.piece import Piece, row_of
from ....partition.store.edge_stream import EdgeStream, PageRun, run_bytes, stream_index_bytes
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store

EDGES_A_TURN = 1 << 16
"""Edges that a thread follows at once, or few more."""

ROWS_A_TURN = 1 << 14
"""Rows that a thread looks at at once, to pull; on disk _ROWS_TO_MARK are marked."""

_ROWS_TO_MARK = 1 << 18
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def stream_team(threads: int) -> Team:
    """The threads that read and compute, for ``threads`` cores."""
    return Team(2 * threads)


class Looked(NamedTuple):
    """edges: examined. read: bytes from disk. skipped: blocks there without an active page."""

    edges: int = 0
    read: int = 0
    skipped: int = 0


def total(looks: Iterable[Looked]) -> Looked:
    """
    >>> total([Looked(1, 20), Looked(3, 40, 5)])
    Looked(edges=4, read=60, skipped=5)
    """
    return Looked(*(sum(column) for column in zip(Looked(), *looks, strict=True)))


class Visits(NamedTuple):
    """results: of each visit. read, skipped: see Looked."""

    results: list
    read: int = 0
    skipped: int = 0


class Active(NamedTuple):
    """Active rows of a subgraph: rows that have edges, and those edges. where: see ``push``."""

    rows: int
    edges: int
    where: NDArray


Visit = Callable[[Piece, int, int, int], Any]
"""Called with a piece, the rows ``first <= row < last`` of it, and how many vertices it finds at
most."""


class Rows(NamedTuple):
    """Compressed sparse rows in memory."""

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]

    def active(
        self, team: Team, places: Numbering, wanted: NDArray[np.uint64], inverted: bool = False
    ) -> Active:
        """The rows of the vertices in a bitmap, or of those not in it. places: of rows there.

        where: turns, as cut_turns has them.
        """
        turns = np.empty((len(self.targets) // EDGES_A_TURN + 2, 2), np.int64)
        flip = _ALL if inverted else np.uint64(0)
        rows, edges, count = cut_turns(self.offsets, places, wanted, flip, EDGES_A_TURN, turns)
        return Active(rows, edges, turns[: count + 1].copy())

    def push(self, team: Team, where: NDArray, visit: Visit) -> Visits:
        """Visit active rows, as ``active`` gave them."""
        piece = Piece(*self, 0, len(self.targets))
        turns = list(pairwise(where.tolist()))
        done = team.map(lambda t: visit(piece, t[0][0], t[1][0], t[1][1] - t[0][1]), turns)
        return Visits(done)

    def pull(
        self, team: Team, places: Numbering, known: NDArray[np.uint64], visit: Visit
    ) -> Visits:
        """Visit all rows. known: bitmap of those that need no visit; places: of rows there."""
        piece, count = Piece(*self, 0, len(self.targets)), len(self.offsets) - 1

        def turn(first: int) -> Any:
            last = min(first + ROWS_A_TURN, count)
            return visit(piece, first, last, last - first)

        return Visits(team.map(turn, range(0, count, ROWS_A_TURN)))


class RowsOnDisk(NamedTuple):
    """Compressed sparse rows whose targets are read when they are visited.

    buffers: of all rows of a rank, for as many runs as its threads read at once; made when they are
    needed. check: called before each run, which may take as long as a superstep in memory. Visits
    raise InputError, naming the file, where a block is damaged.
    """

    offsets: NDArray[np.unsignedinteger]
    stream: EdgeStream
    buffers: list[NDArray[np.uint8]]
    check: Callable[[], None]

    def active(
        self, team: Team, places: Numbering, wanted: NDArray[np.uint64], inverted: bool = False
    ) -> Active:
        """As that of Rows; where: pages, uint8, nonzero where active."""
        pages = np.zeros(self.stream.pages, np.uint8)
        counts = self._mark(team, places, wanted, inverted, pages, counting=True)
        return Active(sum(rows for rows, _ in counts), sum(edges for _, edges in counts), pages)

    def push(self, team: Team, where: NDArray, visit: Visit) -> Visits:
        """As that of Rows."""

        def one(run: PageRun) -> tuple[Any, int]:
            self.check()
            try:
                buffer = self.buffers.pop()
            except IndexError:
                buffer = np.empty(run_bytes(), np.uint8)
            try:
                begin, targets, read = self.stream.read(run, buffer)
                end = begin + len(targets)
                first, last = row_of(self.offsets, begin), row_of(self.offsets, end - 1) + 1
                piece = Piece(self.offsets, targets, begin, end)
                return visit(piece, first, last, len(targets)), read
            finally:
                self.buffers.append(buffer)

        done = team.map(one, self.stream.runs(where))
        skipped = self.stream.idle_blocks(where)
        return Visits([result for result, _ in done], sum(read for _, read in done), skipped)

    def pull(
        self, team: Team, places: Numbering, known: NDArray[np.uint64], visit: Visit
    ) -> Visits:
        """As that of Rows."""
        pages = np.zeros(self.stream.pages, np.uint8)
        self._mark(team, places, known, True, pages, counting=False)
        return self.push(team, pages, visit)

    def _mark(
        self,
        team: Team,
        places: Numbering,
        wanted: NDArray[np.uint64],
        inverted: bool,
        pages: NDArray[np.uint8],
        counting: bool,
    ) -> list[tuple[int, int]]:
        """Active rows and their edges, if these count, of some rows after the other."""
        flip = _ALL if inverted else np.uint64(0)
        rows, starts = len(self.offsets) - 1, self.stream.page_starts

        def part(first: int) -> tuple[int, int]:
            last = min(first + _ROWS_TO_MARK, rows)
            marking = places, wanted, flip, starts, pages, counting
            count, edges = mark_pages(self.offsets, first, last, *marking)
            return count, int(edges)

        return team.map(part, range(0, rows, _ROWS_TO_MARK))


AnyRows = Rows | RowsOnDisk


class Loader(NamedTuple):
    """Loads a rank's subgraphs. check: called before each of them, and see RowsOnDisk.

    buffers: None where edges are loaded, too.
    """

    store: Store
    team: Team
    check: Callable[[], None]
    buffers: list[NDArray[np.uint8]] | None

    def rows(self, partition: int, name: str) -> AnyRows:
        """Reads and verifies them; of targets that stay on disk nothing yet."""
        self.check()
        if self.buffers is None:
            return Rows(*self.store.subgraph(partition, name, self.team))
        offsets = self.store.offsets(partition, name, self.team)
        stream = EdgeStream(self.store, partition, name)
        return RowsOnDisk(offsets, stream, self.buffers, self.check)


def on_disk_bytes(store: Store, parts: Iterable[int], threads: int) -> int:
    """What RowsOnDisk of partitions hold beside offsets, searched for ``threads`` cores."""
    places = [(p, n) for p in parts for n in kept_subgraphs(store.info.grid, store.info.directed)]
    return sum(stream_index_bytes(store, *place) for place in places) + 2 * threads * run_bytes()
