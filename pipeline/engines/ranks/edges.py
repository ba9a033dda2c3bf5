"""The edges of a rank's subgraphs, in memory or on disk, and visits along them.

A visit sees a *piece* of a subgraph: all of its targets if they are in memory, else a run of pages
that was read. On disk only the pages that hold edges of active rows are read; these are rows of the
frontier for a push, of unvisited vertices for a pull. A team has twice as many threads as there are
cores, each with its own buffer. While some threads wait for the disk, others compute: no other
read-ahead is needed, and the buffers bound the memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.graph import Graph
from ....kernels.base.numbering import Numbering, by_rule
from ....kernels.base.team import Team
from ....kernels.pieces.active import cut_turns, mark_pages
from ....kernels.pieces.piece import NO_WEIGHTS, Piece, row_of
from ....kernels.pieces.vertices import add_all, numbers_in
from ....partition.store.edge_stream import (
    EdgeStream,
    PageRun,
    Stream,
    run_bytes,
    stream_index_bytes,
)
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store
from ....partition.store.whole import WholeGraph
from .packing import NONE, joined

EDGES_A_TURN = 1 << 16
"""Number of edges that a thread follows at once, about."""

_FEWEST_EDGES_A_TURN = 1 << 13
_TURNS_A_THREAD = 4
"""Where edges are few, a thread follows fewer at once: each has so many turns, about."""

ROWS_A_TURN = 1 << 14
"""Number of rows that a thread pulls at once. On disk, a thread marks pages for _ROWS_TO_MARK rows
at once.
"""

_ROWS_TO_MARK = 1 << 18
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def stream_team(threads: int) -> Team:
    """Return the team of threads that read and compute, for ``threads`` cores."""
    return Team(2 * threads)


class EdgeCounts(NamedTuple):
    """Counts of a visit. edges: edges examined. read: bytes read from disk. skipped: blocks on disk
    that have no active page.
    """

    edges: int = 0
    read: int = 0
    skipped: int = 0


def total(looks: Iterable[EdgeCounts]) -> EdgeCounts:
    """Return the sums of several counts.

    >>> total([EdgeCounts(1, 20), EdgeCounts(3, 40, 5)])
    EdgeCounts(edges=4, read=60, skipped=5)
    """
    return EdgeCounts(*(sum(column) for column in zip(EdgeCounts(), *looks, strict=True)))


class Visits(NamedTuple):
    """The outcome of visits. results: of each visit. read, skipped: as in EdgeCounts."""

    results: list
    read: int = 0
    skipped: int = 0


class Active(NamedTuple):
    """Active rows of a subgraph. rows: the number of active rows that have edges. edges: the number
    of their edges.

    where: for Rows, the bounds of turns in ``queue`` (as in cut_turns); for RowsOnDisk, uint8
    (pages,), nonzero for active pages. queue: the rows, for Rows.
    """

    rows: int
    edges: int
    where: NDArray
    queue: NDArray[np.uint32]


NO_ROWS = Active(0, 0, np.zeros((1, 2), np.int64), NONE)


class Chosen:
    """A choice of a segment's vertices as rows of a subgraph, as a bitmap and as a list. One of the
    two is given; the other is made at its first use.

    places: numbering from the subgraph's ``rows`` rows to places in the segment. bits: bitmap by
    place. listed: the chosen rows; rising if made from a bitmap.
    """

    def __init__(
        self,
        places: Numbering,
        bits: NDArray[np.uint64] | None,
        rows: int,
        lists: Sequence[NDArray[np.uint32]] = (),
    ) -> None:
        self.places = places
        self._bits = bits
        self._rows = rows
        self._lists = lists
        self._listed: NDArray[np.uint32] | None = None

    @classmethod
    def of_lists(cls, lists: Sequence[NDArray[np.uint32]], rows: int) -> Chosen:
        """Return the choice of the listed rows of a subgraph whose rows are numbered by place."""
        return cls(by_rule(), None, rows, lists)

    @property
    def bits(self) -> NDArray[np.uint64]:
        if self._bits is None:
            self._bits = np.zeros(-(-self._rows // WORD), np.uint64)
            for listed in self._lists:
                add_all(listed, self.places, self._bits)
        return self._bits

    @property
    def listed(self) -> NDArray[np.uint32]:
        if self._listed is not None:
            return self._listed
        if self._bits is None:
            listed = joined(self._lists)
        else:
            listed = numbers_in(self._bits, self.places, self._rows)
        self._listed = listed
        return listed


Visit = Callable[[Piece, NDArray[np.uint32], int, int, int], Any]
"""Function that is called with a piece, rows of the piece as in push_piece (``queue``, ``first``,
``last``), and a bound on the vertices that it finds.
"""


class Rows(NamedTuple):
    """Compressed sparse rows in memory. weights: uint32, the bits of each target's weight, or (0,);
    uint64 for sums of weights.
    """

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]
    weights: NDArray[np.unsignedinteger] = NO_WEIGHTS

    @property
    def unweighted(self) -> Rows:
        """Return the rows without weights."""
        return self._replace(weights=NO_WEIGHTS)

    @property
    def piece(self) -> Piece:
        """Return all rows as one piece."""
        return Piece(self.offsets, self.targets, 0, len(self.targets), self.weights)

    def active(self, team: Team, chosen: Chosen) -> Active:
        """Return the active rows for a choice of vertices."""
        queue = chosen.listed
        if not len(queue):
            return NO_ROWS
        turns = np.empty((len(self.targets) // EDGES_A_TURN + 2, 2), np.int64)
        rows, edges, count = cut_turns(self.offsets, queue, EDGES_A_TURN, turns)
        return Active(rows, edges, turns[: count + 1].copy(), queue)

    def between(self, team: Team, first: int, last: int) -> Active:
        """Return the rows ``first <= r < last`` as active rows."""
        listed = np.arange(first, last, dtype=np.uint32)
        return self.active(team, Chosen.of_lists([listed], len(self.offsets) - 1))

    def push(self, team: Team, active: Active, visit: Visit) -> Visits:
        """Visit active rows."""
        if not active.edges:
            return Visits([])
        piece, queue = self.piece, active.queue
        turns = list(pairwise(active.where.tolist()))
        done = team.map(lambda t: visit(piece, queue, t[0][0], t[1][0], t[1][1] - t[0][1]), turns)
        return Visits(done)

    def pull(
        self, team: Team, places: Numbering, known: NDArray[np.uint64], visit: Visit
    ) -> Visits:
        """Visit all rows. known: bitmap of the places that need no visit. places: numbering from
        rows to places.
        """
        piece, count = self.piece, len(self.offsets) - 1

        def turn(first: int) -> Any:
            last = min(first + ROWS_A_TURN, count)
            return visit(piece, NONE, first, last, last - first)

        return Visits(team.map(turn, range(0, count, ROWS_A_TURN)))

    def every(self, team: Team, visit: Visit) -> Visits:
        """Visit all edges in pieces, which may cut a row: several for each thread, so that none
        waits long for another one.
        """
        edges = len(self.targets)
        at_once = edges // (_TURNS_A_THREAD * team.threads)
        at_once = min(EDGES_A_TURN, max(_FEWEST_EDGES_A_TURN, at_once))

        def turn(begin: int) -> Any:
            end = min(begin + at_once, edges)
            targets, weights = self.targets[begin:end], self.weights[begin:end]
            return visit(Piece(self.offsets, targets, begin, end, weights), NONE, 0, 0, end - begin)

        return Visits(team.map(turn, range(0, edges, at_once)))


class RowsOnDisk(NamedTuple):
    """Compressed sparse rows whose targets are read during visits.

    buffers: shared by all rows of a rank, one for each run that its threads read at once; made as
    needed. check: called before each run, which may take as long as a superstep in memory. weights:
    read with the targets; None without weights. Visits raise InputError, which names the file, for
    a damaged block.
    """

    offsets: NDArray[np.unsignedinteger]
    stream: Stream
    buffers: list[NDArray[np.uint8]]
    check: Callable[[], None]
    weights: Stream | None = None

    @property
    def unweighted(self) -> RowsOnDisk:
        """Return the rows without weights, which are then not read."""
        return self._replace(weights=None)

    def active(self, team: Team, chosen: Chosen) -> Active:
        """Return the active rows for a choice of vertices, as pages."""
        pages = np.zeros(self.stream.pages, np.uint8)
        counts = self._mark(team, chosen.places, chosen.bits, False, pages, counting=True)
        rows, edges = sum(rows for rows, _ in counts), sum(edges for _, edges in counts)
        return Active(rows, edges, pages, NONE)

    def between(self, team: Team, first: int, last: int) -> Active:
        """Return the rows ``first <= r < last`` as active rows."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        starts, pages = self.stream.page_starts, np.zeros(self.stream.pages, np.uint8)
        if begin < end:
            first_page = int(np.searchsorted(starts, begin, side="right")) - 1
            pages[first_page : int(np.searchsorted(starts, end, side="left"))] = 1
        return Active(last - first, end - begin, pages, NONE)

    def push(self, team: Team, active: Active, visit: Visit) -> Visits:
        """Visit active rows, as Rows does."""
        return self._read(team, active.where, visit)

    def pull(
        self, team: Team, places: Numbering, known: NDArray[np.uint64], visit: Visit
    ) -> Visits:
        """Visit the rows of unknown vertices, as Rows does; others only where they share a page
        with these.
        """
        pages = np.zeros(self.stream.pages, np.uint8)
        self._mark(team, places, known, True, pages, counting=False)
        return self._read(team, pages, visit)

    def every(self, team: Team, visit: Visit) -> Visits:
        """Visit every edge, as Rows does."""
        return self._read(team, np.ones(self.stream.pages, np.uint8), visit)

    def _read(self, team: Team, pages: NDArray[np.uint8], visit: Visit) -> Visits:
        """Read the active pages run by run, and visit all rows that have edges in them."""

        def visit_run(run: PageRun) -> tuple[Any, int]:
            self.check()
            with self._buffer() as buffer, self._buffer(self.weights is None) as weight_buffer:
                begin, targets, read = self.stream.read(run, buffer)
                weights = NO_WEIGHTS
                if self.weights is not None:
                    _, weights, weights_read = self.weights.read(run, weight_buffer)
                    read += weights_read
                end = begin + len(targets)
                first, last = row_of(self.offsets, begin), row_of(self.offsets, end - 1) + 1
                piece = Piece(self.offsets, targets, begin, end, weights)
                return visit(piece, NONE, first, last, len(targets)), read

        done = team.map(visit_run, self.stream.runs(pages))
        skipped = self.stream.idle_blocks(pages)
        return Visits([result for result, _ in done], sum(read for _, read in done), skipped)

    @contextlib.contextmanager
    def _buffer(self, none: bool = False) -> Iterator[NDArray[np.uint8]]:
        """Lend a buffer for a run; an empty array if ``none``."""
        if none:
            yield NONE.view(np.uint8)
            return
        try:
            buffer = self.buffers.pop()
        except IndexError:
            buffer = np.empty(self.stream.run_bytes, np.uint8)
        try:
            yield buffer
        finally:
            self.buffers.append(buffer)

    def _mark(
        self,
        team: Team,
        places: Numbering,
        wanted: NDArray[np.uint64],
        inverted: bool,
        pages: NDArray[np.uint8],
        counting: bool,
    ) -> list[tuple[int, int]]:
        """Mark the pages of the wanted rows, in parallel. Returns for each part of the rows the
        number of active rows and of their edges, if counting.
        """
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
    """A loader of a rank's subgraphs. check: called before each subgraph, and as in RowsOnDisk.
    buffers: None if edges are loaded into memory. weighted: whether weights are loaded. loaded: the
    whole graph of one partition, if it is in memory already.
    """

    store: Store | WholeGraph
    team: Team
    check: Callable[[], None]
    buffers: list[NDArray[np.uint8]] | None
    weighted: bool = False
    loaded: Graph | None = None

    def rows(self, partition: int, name: str) -> AnyRows:
        """Read and verify a subgraph. If targets stay on disk, only the offsets are read now."""
        self.check()
        if self.buffers is None:
            rows = Rows(*self._subgraph(partition, name))
            if not self.weighted:
                return rows
            return rows._replace(weights=self.store.weights(partition, name, self.team))
        assert isinstance(self.store, Store)
        offsets = self.store.offsets(partition, name, self.team)
        stream = EdgeStream(self.store, partition, name)
        weights = EdgeStream(self.store, partition, name, weights=True) if self.weighted else None
        return RowsOnDisk(offsets, stream, self.buffers, self.check, weights)

    def _subgraph(self, partition: int, name: str) -> tuple[NDArray, NDArray[np.uint32]]:
        if self.loaded is None:
            return self.store.subgraph(partition, name, self.team)
        if name.startswith("reverse"):
            return self.loaded.reverse_offsets, self.loaded.reverse_targets
        return self.loaded.offsets, self.loaded.targets


def on_disk_bytes(store: Store, parts: Iterable[int], threads: int, weighted: bool = False) -> int:
    """Return the bytes that the RowsOnDisk of partitions hold beside offsets, when they are
    searched on ``threads`` cores.
    """
    places = [(p, n) for p in parts for n in kept_subgraphs(store.info.grid, store.info.directed)]
    indexes = sum(stream_index_bytes(store, *place) for place in places)
    return (1 + weighted) * (indexes + 2 * threads * run_bytes())
