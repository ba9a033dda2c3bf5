"""Intersections of a rank: the triangles at each vertex (kernels/pieces/intersect.py).

The vertices are cut into *ranges*, by position, whose rows of earlier neighbours fit a bounded
buffer. If the whole graph fits, there is one range. Otherwise ranges are taken in groups, one range
for each rank: this rank's is *resident*, and all ranks together go through the ranges up to it. The
rows of a range are collected from the edges of all ranks each time. So memory does not grow with
the edges. These are read about once for each group, or once for each passing range where a directed
graph has no rows of the edges that enter vertices.

Each rank adds to counts of all vertices, and the sum over ranks is what is right. A group is
finished at once on all ranks, so what is saved is these sums and the number of vertices whose
groups are finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import by_rule, is_identity, renumber_all
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces.intersect import (
    ENTRIES_A_TURN,
    Corners,
    Earlier,
    append_rows,
    collect_piece,
    intersect_turns,
    lookup_bytes,
    make_lookup,
    mark_rows,
    share_joined,
    sort_turns,
)
from ....kernels.prepare.merge import count as count_ends
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Chosen
from ..ranks.graph import Adjacency, RankGraph
from .forests import global_ids
from .tally import How, Note, Way

RANGE_BYTES = 16 << 20
"""The most bytes of a range's rows, except where a program may hold more."""

_COPIES = 4  # of a range: resident, passed, of this rank's edges, received
_LOOKUPS_BYTES = 32 << 20
_ROW_BYTES, _LENGTH_BYTES, _ENTRY_BYTES = 8 + 8, 8, 4 + 1
_VERTEX_BYTES = 4 + 3 * 8 + 2 * 8
"""Bytes for a vertex: its position, its counts, and two results at the end. Its number of entries,
which is let go before, and a sort by degree, before there are counts, take no more.
"""

_WINDOW = 1 << 18
"""Number of values that ranks add up at once."""


def intersect_bytes(vertices: int) -> int:
    """Return the bytes that intersections hold."""
    return _VERTEX_BYTES * vertices + _COPIES * RANGE_BYTES + _LOOKUPS_BYTES


class Range(NamedTuple):
    """Vertices by position: ``first <= v < last``."""

    first: int
    last: int


class Intersections:
    """The intersections of a rank. It is made on all ranks at the same time.

    ways: all ways that tell a vertex of its edges, each edge once. extra_bytes: bytes that may be
    held beside intersect_bytes. corners: what has been counted so far, by position; the sum over
    all ranks counts.
    """

    def __init__(
        self,
        graph: RankGraph,
        communicator: Communicator,
        team: Team,
        ways: Sequence[Way],
        directed: bool,
        extra_bytes: int,
        note: Note,
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._ways = ways
        self._directed = directed
        self._note = note
        self._row_bytes, self._room = _ROW_BYTES, RANGE_BYTES
        if communicator.size == 1:  # only a resident range and a passed one are held
            self._room = (_COPIES * RANGE_BYTES + extra_bytes) // 2
        else:
            self._row_bytes += _LENGTH_BYTES * communicator.size
        self._ids: list[Any] = []
        for adjacency, _ in ways:
            ids = global_ids(adjacency.source), global_ids(adjacency.target)
            self._ids.append((None, None) if all(map(is_identity, ids)) else ids)
        self.sent = 0
        degree = self._degrees()
        self._positions = np.empty(0, np.uint32)
        if (degree[1:] > degree[:-1]).any():
            order = np.argsort(-degree, kind="stable")
            self._positions = np.empty(graph.vertices, np.uint32)
            self._positions[order] = np.arange(graph.vertices, dtype=np.uint32)
            degree = degree[order]
            del order
        edges = np.zeros(graph.vertices if directed else 0, np.int64)
        self.corners = Corners(degree, np.zeros(graph.vertices, np.int64), edges)
        self.part()
        self._entries = np.zeros(graph.vertices, np.int64)
        self._collect(Range(0, graph.vertices), self._entries, np.empty(0, np.uint32))

    @property
    def counts(self) -> dict[str, NDArray[np.int64]]:
        """Return the arrays of ``corners``, which are what has to be saved, by name."""
        return {name: counts for name, counts in self.corners._asdict().items() if len(counts)}

    def add_up(self) -> None:
        """Give all ranks the sums over all ranks. ``part`` is called before more is counted."""
        for counts in self.corners:
            self._add_up(counts)

    def part(self) -> None:
        """Leave the sums over all ranks to rank 0."""
        if self._communicator.rank:
            for counts in self.corners:
                counts[:] = 0

    def by_vertex(self, counts: NDArray) -> NDArray:
        """Return counts by position by global id."""
        return counts[self._positions] if len(self._positions) else counts

    def joined_shares(self, joined: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """Return the share of the pairs of each vertex's neighbours that are joined, and the number
        of pairs of all vertices. joined: of each vertex, like the share by position.
        """
        shares = np.empty(len(joined))

        def share(first: int) -> tuple[int, int]:
            of = slice(first, first + _WINDOW)
            return share_joined(self.corners.neighbours[of], joined[of], shares[of])

        halves = self._team.map(share, range(0, len(joined), _WINDOW))
        return shares, sum((high << 32) + low for high, low in halves)

    def groups(self, done: int) -> Iterator[int]:
        """Count the triangles whose last corners have positions from ``done`` on. Yields the number
        of vertices that are finished after each group of ranges.
        """
        ranks = self._communicator.size
        passed_ranges = self._ranges(0, self._room)
        resident_ranges = self._ranges(done, self._room, least=ranks)
        for i in range(0, len(resident_ranges), ranks):
            group = resident_ranges[i : i + ranks]
            collected = [self._rows(of, [holder]) for holder, of in enumerate(group)]
            resident = next((rows for rows in collected if rows is not None), None)
            del collected
            if resident is not None:
                self._sort(resident, self.corners.neighbours)
            for passed in passed_ranges:
                if passed.first >= group[-1].last:
                    break
                others = resident
                if ranks > 1 or passed != group[0]:
                    others = self._rows(passed, range(ranks))
                    assert others is not None
                    self._sort(others, np.empty(0, np.int64))
                if resident is not None and others is not None:
                    self._intersect(resident, others)
                del others
            yield group[-1].last
        self._entries = np.empty(0, np.int64)

    # Ranges

    def _ranges(self, begin: int, room: int, least: int = 1) -> list[Range]:
        """Return the ranges of the vertices from ``begin`` on. The rows of a range fit ``room``
        bytes, or are the row of one vertex. least: the number of ranges that there are at least,
        about.
        """
        bounds, bytes_held = [begin], 0
        entries = self._entries[begin:].sum(keepdims=True)
        self._add_up(entries)
        total = _ENTRY_BYTES * int(entries[0]) + self._row_bytes * (self._graph.vertices - begin)
        room = min(room, -(-total // least))
        if total == room:
            return [Range(begin, self._graph.vertices)][: total > 0]
        for first, cost in self._costs(begin):
            held = np.cumsum(cost)
            at = 0
            while at < len(held):
                before = int(held[at - 1]) if at else 0
                end = int(np.searchsorted(held, before + room - bytes_held, "right"))
                if end == len(held):
                    bytes_held += int(held[-1]) - before
                    break
                if end + first > bounds[-1]:
                    bounds.append(first + end)
                else:
                    bounds.append(first + end + 1)
                    end += 1
                at, bytes_held = end, 0
        bounds.append(self._graph.vertices)
        return [Range(*ends) for ends in pairwise(bounds) if ends[0] < ends[1]]

    def _costs(self, begin: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the bytes of the rows from position ``begin`` on, by windows with their first
        position.
        """
        for first in range(begin, self._graph.vertices, _WINDOW):
            entries = self._entries[first : first + _WINDOW].copy()
            self._add_up(entries)
            yield first, _ENTRY_BYTES * entries + self._row_bytes

    # Rows

    def _rows(self, of: Range, holders: Sequence[int]) -> Earlier | None:
        """Return the rows of a range, not sorted, on the ranks that are ``holders``, and None on
        others.
        """
        communicator = self._communicator
        communicator.check()
        lengths = self._entries[of.first : of.last]
        part = _room_for(of.first, lengths)
        self._collect(of, part.ends, part.targets)
        if communicator.size == 1:
            return self._with_directions(part)
        messages: list[Message] = [[] for _ in range(communicator.size)]
        for holder in holders:
            messages[holder] = [lengths, part.targets]
            if holder != communicator.rank:
                self.sent += lengths.nbytes + part.targets.nbytes
        came = communicator.exchange(messages)
        if communicator.rank not in holders:
            return None
        rows = _room_for(of.first, np.sum([message[0] for message in came], axis=0))
        for lengths, targets in came:
            ends = np.cumsum(lengths)
            of_rank = Earlier(of.first, ends - lengths, ends, targets, rows.twice)
            append_rows(of_rank, rows.ends, rows.targets)
        return self._with_directions(rows)

    def _with_directions(self, rows: Earlier) -> Earlier:
        if not self._directed:
            return rows
        return rows._replace(twice=np.empty(len(rows.targets), np.uint8))

    def _collect(self, of: Range, ends: NDArray[np.int64], targets: NDArray[np.uint32]) -> None:
        """Collect this rank's edges for the rows of a range, as collect_piece does."""
        for (adjacency, how), ids in zip(self._ways, self._ids, strict=True):
            self._communicator.check()

            def visit(*piece_and_rows: Any, how: How = how, ids: Any = ids) -> None:
                given = how == "gather", *piece_and_rows[:4], *ids, self._positions, *of
                collect_piece(*given, ends, targets)

            rows, side = adjacency.rows, adjacency.source
            if how == "scatter" or of == (0, self._graph.vertices):
                visits, edges = rows.every(self._team, visit), int(rows.offsets[-1])
            else:
                bits = mark_rows(global_ids(side), self._positions, *of, side.count)
                active = rows.active(self._team, Chosen(by_rule(), bits, side.count))
                visits, edges = rows.push(self._team, active, visit), active.edges
            self._note(edges, visits.read)

    def _sort(self, rows: Earlier, neighbours: NDArray[np.int64]) -> None:
        taken = no_turns(self._team.threads)
        self._team.run(sort_turns, rows, neighbours, _turns(rows), taken)

    def _intersect(self, rows: Earlier, others: Earlier) -> None:
        longest = int((rows.ends - rows.starts).max(initial=0))
        threads = min(self._team.threads, max(1, _LOOKUPS_BYTES // lookup_bytes(longest)))
        turns, taken, left = _turns(rows), no_turns(threads), list(range(threads))

        def intersect() -> int:
            try:
                left.pop()
            except IndexError:
                return 0
            return intersect_turns(rows, others, self.corners, make_lookup(longest), turns, taken)

        self._note(sum(self._team.run(intersect)), 0)

    # Vertices

    def _degrees(self) -> NDArray[np.int64]:
        """Return the number of edges that each vertex is told of, by global id."""
        degree = np.zeros(self._graph.vertices, np.int64)
        for adjacency, how in self._ways:
            side, rows = adjacency.source, adjacency.rows
            edges: NDArray = rows.offsets
            if how == "scatter":
                side = adjacency.target
                counts = np.zeros(side.count, np.int64)
                self._note(int(rows.offsets[-1]), _count_targets(adjacency, counts))
                edges = np.append(0, np.cumsum(counts))
            ids = global_ids(side)
            for first in range(0, side.count, _WINDOW):
                last = min(first + _WINDOW, side.count)
                vertices: Any = slice(first, last)
                if not is_identity(ids):
                    vertices = renumber_all(ids, np.arange(first, last, dtype=np.uint32))
                degree[vertices] += np.diff(edges[first : last + 1]).astype(np.int64)
        self._add_up(degree)
        return degree

    def _add_up(self, values: NDArray[np.int64]) -> None:
        """Set values to their sums over all ranks."""
        size = self._communicator.size
        if size == 1:
            return
        for first in range(0, len(values), _WINDOW):
            window = values[first : first + _WINDOW]
            mine = window.copy()
            self.sent += (size - 1) * mine.nbytes
            came = self._communicator.exchange([[mine]] * size)
            np.sum([message[0] for message in came], axis=0, out=window)


def _count_targets(adjacency: Adjacency, counts: NDArray[np.int64]) -> int:
    """Count the edges to each target of a subgraph. Returns the bytes read."""
    return adjacency.rows.every(Team(1), lambda piece, *_: count_ends(piece.targets, counts)).read


def _room_for(first: int, lengths: NDArray[np.int64]) -> Earlier:
    """Return rows of these lengths, with room for their entries."""
    starts = np.cumsum(lengths) - lengths
    targets = np.empty(int(lengths.sum()), np.uint32)
    return Earlier(first, starts, starts.copy(), targets, np.empty(0, np.uint8))


def _turns(rows: Earlier) -> NDArray[np.int64]:
    """Return the first row of each turn, and the end."""
    begins = np.arange(0, len(rows.targets), ENTRIES_A_TURN)
    turns = np.unique(np.searchsorted(rows.starts, begins))
    return np.append(turns, len(rows.starts)).astype(np.int64)


def exact_sum(values: NDArray) -> int:
    """Return the sum of integers below 2^63, however large it is.

    >>> exact_sum(np.full(3, 2**62)) == 3 * 2**62
    True
    """
    low = np.bitwise_and(values, 0xFFFFFFFF, dtype=values.dtype)
    return (int((values >> 32).sum()) << 32) + int(low.sum())
