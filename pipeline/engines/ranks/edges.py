"""The edges of a rank's subgraphs, in memory or on disk, and visits along them.

A visit sees a *piece* of a subgraph: all of its targets, where they are in memory, else a run of
pages that was read. What is on disk is searched as one process does (disk.py): pages that
hold edges of active rows are marked, and read by a team of more threads than there are cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import by_rule
from ....kernels.base.team import Team
from ....kernels.pieces.mark_pages import mark_pages_of
from ....kernels.pieces.rows import row_of
from ....partition.store.edge_stream import EdgeStream, PageRun, run_bytes, stream_index_bytes
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store, stem_of
from ..streamed_graph import StreamedRows

ROWS_A_TURN = 1 << 14
"""Rows that a thread takes at once."""


class Piece(NamedTuple):
    """Compressed sparse rows, of whose edges ``begin <= e < end`` are at hand.

    offsets: of the whole subgraph. targets: uint32 (end - begin,). The first and the last row of
    the edges may be cut.
    """

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]
    begin: int
    end: int


class Looked(NamedTuple):
    """edges: examined. read: bytes from disk. skipped: blocks there without an active page."""

    edges: int = 0
    read: int = 0
    skipped: int = 0


class Visits(NamedTuple):
    """results: of each visit. read, skipped: see Looked."""

    results: list
    read: int
    skipped: int

    def looked(self, edges: Iterable[int]) -> Looked:
        """edges: that each visit examined."""
        return Looked(int(sum(edges)), self.read, self.skipped)


def total(looks: Iterable[Looked]) -> Looked:
    """
    >>> total([Looked(1, 20), Looked(3, 40, 5)])
    Looked(edges=4, read=60, skipped=5)
    """
    return Looked(*(sum(column) for column in zip(Looked(), *looks, strict=True)))


Push = Callable[[Piece, NDArray[np.uint32]], Any]
"""Called with a piece and rows of a queue that have edges in it."""

Pull = Callable[[Piece, int, int], Any]
"""Called with a piece and the rows ``first <= row < last`` of it."""


class Rows(NamedTuple):
    """Compressed sparse rows in memory."""

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]

    @property
    def _piece(self) -> Piece:
        return Piece(*self, 0, len(self.targets))

    def push(self, team: Team, queue: NDArray[np.uint32], visit: Push) -> Visits:
        """Visit the rows in ``queue``."""
        piece = self._piece
        parts = [queue[i : i + ROWS_A_TURN] for i in range(0, len(queue), ROWS_A_TURN)]
        return Visits(team.map(lambda part: visit(piece, part), parts), 0, 0)

    def pull(self, team: Team, visit: Pull, *known: NDArray[np.uint64]) -> Visits:
        """Visit all rows. known: bitmaps of those that need no visit."""
        piece, count = self._piece, len(self.offsets) - 1
        turns = range(0, count, ROWS_A_TURN)
        done = team.map(lambda i: visit(piece, i, min(i + ROWS_A_TURN, count)), turns)
        return Visits(done, 0, 0)


class RowsOnDisk(NamedTuple):
    """Compressed sparse rows whose targets are read when they are visited.

    buffers: of all rows of a rank, for as many runs as its threads read at once; made when they are
    needed. check: called before each run, which may take as long as a superstep in memory.
    """

    offsets: NDArray[np.unsignedinteger]
    stream: EdgeStream
    buffers: list[NDArray[np.uint8]]
    check: Callable[[], None]

    def push(self, team: Team, queue: NDArray[np.uint32], visit: Push) -> Visits:
        """As that of Rows; InputError, naming the file, where a block is damaged."""
        queue = np.sort(queue)  # a run finds its rows by search
        active = np.zeros(self.stream.pages, np.uint8)
        mark_pages_of(self.offsets, queue, self.stream.page_starts, active)

        def some(piece: Piece, first: int, last: int) -> Any:
            part = queue.searchsorted(np.array([first, last], np.uint32))
            return visit(piece, queue[part[0] : part[1]])

        return self._visit(team, active, some)

    def pull(self, team: Team, visit: Pull, *known: NDArray[np.uint64]) -> Visits:
        """As that of Rows; InputError, naming the file, where a block is damaged."""
        rows = StreamedRows(self.offsets, by_rule(), by_rule(), self.stream)
        active = rows.pages_apart(np.bitwise_or.reduce(known), team)
        return self._visit(team, active, visit)

    def _visit(self, team: Team, active: NDArray[np.uint8], visit: Pull) -> Visits:
        """Visit the rows that have edges in active pages, a run at a time."""

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
                return visit(Piece(self.offsets, targets, begin, end), first, last), read
            finally:
                self.buffers.append(buffer)

        done = team.map(one, self.stream.runs(active))
        skipped = self.stream.idle_blocks(active)
        return Visits([result for result, _ in done], sum(read for _, read in done), skipped)


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
    index = sum(stream_index_bytes(store, *place) for place in places)
    # Of one superstep's visits: the queue in order, and a bitmap of rows that need no visit.
    rows = max(store.files[f"{stem_of(*place)}.offsets.npy"].bytes // 4 for place in places)
    return index + 2 * threads * run_bytes() + 4 * rows + rows // 8
