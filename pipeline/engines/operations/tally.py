"""Tallies of a rank: each vertex picks one of its neighbours' labels (kernels/pieces/tally.py).

If all edges are in memory as one subgraph, threads go through its rows. Otherwise the edges of a
vertex may be in several subgraphs, pieces and ranks. The vertices are then taken by *windows*, on
which all ranks agree: each rank makes entries of the edges that it has and sends them to the owners
of the vertices, who pick. A window has so few edges that its entries fit in memory; a vertex that
alone has more is gone through several times, each time for another class of labels. Delegates are
owned by the ranks in turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import renumber_all
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces.operators import Amounts, Rule
from ....kernels.pieces.piece import NO_WEIGHTS, Piece
from ....kernels.pieces.tally import (
    EDGES_A_TURN,
    NO_LABEL,
    Entries,
    Picks,
    Table,
    group_entries,
    make_table,
    pick_of_entries,
    scatter_labels,
    tally_class,
    tally_piece,
    tally_turns,
)
from ....kernels.prepare.merge import count as count_ends
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Chosen, Rows, Visits
from ..ranks.graph import Adjacency, RankGraph, Side
from ..ranks.routes import count_of, owned
from ..ranks.state import Ghosts, Vertices
from .marks import mark_range
from .vectors import Vector

How = Literal["gather", "scatter"]
""""gather": entries for the rows of a subgraph, of their targets' labels. "scatter": entries for
the targets, of the rows' labels.
"""

Note = Callable[[int, int], None]
"""Function that counts edges visited, and bytes read."""

WINDOW_EDGES = 1 << 19
"""The most edges of a window, except for edges of short rows that are whole."""

_ENTRY_BYTES = 16
_COPIES = 6  # of entries: made, trimmed, by owner, received, joined, grouped
_TABLES_BYTES = 32 << 20
_SHORT = 1 << 14
_SHORT_COST = 8
"""Whole rows up to _SHORT edges give entries only where the pieces that are read from disk cut
them: an eighth of the edges at most.
"""

_MOST_THREADS, _LABEL_BYTES = 1 << 10, 12

_LONG = 1 << 20
"""Number of edges of a row that several threads tally together."""

_FIRST_CUTS, _CUTS = 256, 16


class Way(NamedTuple):
    """A way to make entries of a subgraph's edges. into: the side whose vertices pick. labels: the
    side whose vertices have the labels.
    """

    adjacency: Adjacency
    how: How

    @property
    def into(self) -> Side:
        adjacency = self.adjacency
        return adjacency.source if self.how == "gather" else adjacency.target

    @property
    def labels(self) -> Side:
        adjacency = self.adjacency
        return adjacency.target if self.how == "gather" else adjacency.source


class Window(NamedTuple):
    """Vertices that pick together: ``first <= v < last``, by global id, or by number of delegate if
    ``shared``. classes: the number of classes of labels that are gone through apart.
    """

    shared: bool
    first: int
    last: int
    classes: int


def tally_bytes(vertices: int) -> int:
    """Return the bytes that a tally holds beside its vectors."""
    counts = 8 * vertices  # of edges that are scattered, when windows are made
    entries = _COPIES * _ENTRY_BYTES * WINDOW_EDGES
    return max(counts, entries) + min(_TABLES_BYTES, _MOST_THREADS * _LABEL_BYTES * vertices)


class Tallies:
    """The tallies of a rank. ways: all ways that tell a vertex of its edges, each edge once. total:
    adds up numbers over all ranks.
    """

    def __init__(
        self,
        graph: RankGraph,
        communicator: Communicator,
        team: Team,
        ways: Sequence[Way],
        total: Callable[[Any], NDArray],
        note: Note,
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._ways = ways
        self._total = total
        self._note = note
        self._tables: list[Table] = []
        self._starts: NDArray[np.int64] | None = None
        self._made_windows: list[Window] | None = None
        self.sent = 0

    # All edges in memory as one subgraph

    def pick_whole(
        self,
        rule: Rule,
        amounts: Amounts,
        leaving: Rows,
        entering: Rows | None,
        x: NDArray[np.uint32],
        y: NDArray[np.uint32],
    ) -> None:
        """Set ``y`` to the labels that vertices prefer. leaving, entering: the rows of the whole
        graph; ``entering`` is None if the graph is undirected.
        """
        pieces = leaving.piece, _no_piece(leaving) if entering is None else entering.piece
        degrees = [rows.offsets for rows in (leaving, entering) if rows is not None]
        if self._starts is None:
            self._starts = _starts(degrees)
        most = _LONG if self._team.threads > 1 else 1 << 62
        taken = no_turns(self._team.threads)

        def pick_turns() -> None:
            with self._table() as table:
                tally_turns(rule, amounts, *pieces, self._starts, most, x, y, table, taken)

        self._team.run(pick_turns)
        for row in _rows_above(degrees, most):
            y[row] = self._pick_long(rule, amounts, pieces, row, x)
        self._note(sum(int(offsets[-1]) for offsets in degrees), 0)

    def _pick_long(
        self, rule: Rule, amounts: Amounts, pieces: tuple[Piece, Piece], row: int, x: NDArray
    ) -> int:
        """Return the label that a row prefers; each thread takes another class of labels."""
        classes = self._team.threads

        def pick_class(kind: int) -> tuple[int, int]:
            with self._table() as table:
                return tally_class(rule, amounts, *pieces, row, kind, classes, x, table)

        found = self._team.map(pick_class, range(classes))
        labels = np.array([label for label, _ in found if label != NO_LABEL], np.uint32)
        sums = np.array([total for label, total in found if label != NO_LABEL], np.uint64)
        picks = _no_picks(1)
        entries = Entries(np.full(len(labels), row, np.uint32), labels, sums)
        with self._table() as table:
            pick_of_entries(rule, entries, np.array([0, len(labels)]), row, 0, 1, picks, table)
        return picks.labels[0]

    # Edges in several places

    def pick_by_windows(
        self, rule: Rule, amounts: Amounts, x: Vector, y: Vector, whole: bool
    ) -> None:
        """Set ``y`` to the labels that vertices prefer. The ghosts of ``x`` are known. whole: as in
        tally_piece.
        """
        for window in self._windows(whole):
            self._communicator.check()
            low, high = self._places_here(window)
            picks = _no_picks(high - low)
            for kind in range(window.classes):
                entries = self._received(
                    [
                        self._sorted_by_owner(way.into, made)
                        for way in self._ways
                        for made in self._made(rule, amounts, way, window, kind, x, y, whole)
                    ]
                )
                self._pick(rule, entries, low, picks)
            values = y.own
            if window.shared:
                values = y.shared[self._communicator.rank :: self._communicator.size]
            picked = picks.labels != NO_LABEL
            values[low:high][picked] = picks.labels[picked]
        self._share(y.shared)

    def _made(
        self,
        rule: Rule,
        amounts: Amounts,
        way: Way,
        window: Window,
        kind: int,
        x: Vector,
        y: Vector,
        whole: bool,
    ) -> list[Entries]:
        """Return the entries that one way gives for labels of a class, for vertices of a window."""
        graph, side = self._graph, way.into
        low, high = self._places(window, side.segment)
        if low == high:
            return []
        rows, labels = way.adjacency.rows, x.at(way.labels.segment, graph)
        share = kind, window.classes

        def tally(piece: Piece, queue: NDArray, first: int, last: int, most: int) -> Entries:
            entries = _room_for(most)
            picked = y.at(side.segment, graph) if whole else labels
            rows_here = piece, queue, first, last, whole, picked, low, high
            places = way.labels.places, labels, side.places
            with self._table() as table:
                given = rule, amounts, *rows_here, *places, *share, table, entries
                count = tally_piece(*given)
            return _trimmed(entries, count)

        def scatter(piece: Piece, *_: Any) -> Entries:
            entries = _room_for(piece.end - piece.begin)
            places = way.labels.places, labels, side.places
            count = scatter_labels(amounts, piece, low, high, *places, *share, entries)
            return _trimmed(entries, count)

        if way.how == "scatter":
            visits, edges = rows.every(self._team, scatter), int(rows.offsets[-1])
        else:
            bits = mark_range(side.segment.count, low, high)
            active = rows.active(self._team, Chosen(side.places, bits, side.count))
            visits, edges = rows.push(self._team, active, tally), active.edges
        self._note(edges, visits.read)
        return visits.results

    def _sorted_by_owner(self, side: Side, entries: Entries) -> list[Entries]:
        """Return entries by the rank that owns their vertices, with the places that they have
        there.
        """
        graph, ranks = self._graph, self._communicator.size
        if side.segment is graph.own:
            none = _trimmed(entries, 0)
            return [entries if rank == graph.rank else none for rank in range(ranks)]
        places = entries.places
        if side.segment is graph.shared:
            owner, places = places % np.uint32(ranks), places // np.uint32(ranks)
        else:
            segment = side.segment.segment
            local, i = np.divmod(places, np.uint32(len(segment)))
            partition = segment.start + i.astype(np.int64) * segment.step
            owner = partition % ranks
            held = np.array([len(owned(r, ranks, graph.partitions)) for r in range(ranks)])
            places = (local * held[owner] + partition // ranks).astype(np.uint32)
        here = [np.flatnonzero(owner == rank) for rank in range(ranks)]
        return [Entries(places[at], entries.labels[at], entries.sums[at]) for at in here]

    def _received(self, made: list[list[Entries]]) -> Entries:
        """Send entries to the owners of their vertices. made: by rank. Returns those received."""
        messages: list[Message] = []
        for rank in range(self._communicator.size):
            messages.append(list(_joined([entries[rank] for entries in made])))
            if rank != self._communicator.rank:
                self.sent += sum(array.nbytes for array in messages[-1])
        made.clear()
        if self._communicator.size == 1:
            return Entries(*messages[0])
        return _joined([Entries(*came) for came in self._communicator.exchange(messages)])

    def _pick(self, rule: Rule, entries: Entries, low: int, picks: Picks) -> None:
        """Have the vertices from place ``low`` on prefer labels of entries to their picks."""
        offsets = np.zeros(len(picks.labels) + 1, np.int64)
        grouped = _room_for(len(entries.places))
        group_entries(entries, low, offsets, grouped)
        turns = np.arange(0, len(entries.places) + EDGES_A_TURN, EDGES_A_TURN)
        bounds = np.unique(np.append(np.searchsorted(offsets, turns), [0, len(offsets) - 1]))
        bounds = np.minimum(bounds, len(offsets) - 1)

        def pick(i: int) -> None:
            with self._table() as table:
                first, last = bounds[i : i + 2]
                pick_of_entries(rule, grouped, offsets, low, first, last, picks, table)

        self._team.map(pick, range(len(bounds) - 1))

    def _share(self, values: NDArray[np.uint32]) -> None:
        """Tell all ranks the values of the delegates that this rank owns."""
        ranks = self._communicator.size
        if ranks > 1 and len(values):
            mine = values[self._communicator.rank :: ranks].copy()
            self.sent += (ranks - 1) * mine.nbytes
            for rank, (came,) in enumerate(self._communicator.exchange([[mine]] * ranks)):
                values[rank::ranks] = came

    # Windows

    def _places(self, window: Window, segment: Vertices | Ghosts) -> tuple[int, int]:
        """Return the range of a window's places in a segment."""
        graph = self._graph
        if (segment is graph.shared) != window.shared:
            return 0, 0
        if window.shared:
            return window.first, window.last
        held = graph.held if segment is graph.own else segment.segment
        first, last = (count_of(held, v, graph.partitions) for v in (window.first, window.last))
        return first, last

    def _places_here(self, window: Window) -> tuple[int, int]:
        """Return the range of places of the window's vertices that this rank owns."""
        if not window.shared:
            return self._places(window, self._graph.own)
        rank, ranks = self._communicator.rank, self._communicator.size
        first, last = (len(range(rank, d, ranks)) for d in (window.first, window.last))
        return first, last

    def _windows(self, whole: bool) -> list[Window]:
        """Return the windows, which are made at their first use, on all ranks at the same time.
        whole: as in tally_piece.
        """
        if self._made_windows is None:
            self._made_windows = self._make_windows(whole)
        return self._made_windows

    def _make_windows(self, whole: bool) -> list[Window]:
        graph = self._graph
        shared = [graph.shared.count] if graph.shared is not None else []
        before = [_EdgesBefore(way, self._team) for way in self._ways]
        pieces = [
            piece
            for is_shared, count in [(False, graph.vertices), *((True, n) for n in shared)]
            for piece in self._pieces(before, is_shared, count)
        ]
        return list(self._merged(pieces, whole))

    def _pieces(
        self, before: list[_EdgesBefore], shared: bool, count: int
    ) -> Iterator[tuple[Window, int]]:
        """Yield ranges of vertices that have no more than WINDOW_EDGES edges, or are one vertex,
        with the number of their edges.
        """
        cuts = np.unique(np.linspace(0, count, _FIRST_CUTS + 1).astype(np.int64))
        while True:
            edges = self._total(self._edges_between(before, shared, cuts))
            divided = np.flatnonzero((edges > WINDOW_EDGES) & (np.diff(cuts) > 1))
            if not len(divided):
                break
            more = [np.linspace(cuts[i], cuts[i + 1], _CUTS + 1).astype(np.int64) for i in divided]
            cuts = np.unique(np.concatenate([cuts, *more]))
        for first, last, number in zip(cuts, cuts[1:], edges, strict=False):
            yield Window(shared, int(first), int(last), 1), int(number)

    def _edges_between(
        self, before: list[_EdgesBefore], shared: bool, cuts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the number of this rank's edges between one cut and the next."""
        edges = np.zeros(len(cuts), np.int64)
        for way, edges_before in zip(self._ways, before, strict=True):
            places = [
                self._places(Window(shared, int(cut), int(cut), 1), way.into.segment)[0]
                for cut in cuts
            ]
            edges += edges_before(np.array(places))
        return np.diff(edges)

    def _merged(self, pieces: list[tuple[Window, int]], whole: bool) -> Iterator[Window]:
        """Yield windows that are as large as they may be. whole: whether rows are."""
        window, held = None, 0
        for piece, edges in pieces:
            cost = -(-edges // _SHORT_COST) if whole and self._is_short(piece) else edges
            if window is not None and window.shared == piece.shared and held + cost <= WINDOW_EDGES:
                window, held = window._replace(last=piece.last), held + cost
                continue
            if window is not None:
                yield window
            window, held = piece._replace(classes=max(1, -(-cost // WINDOW_EDGES))), cost
        if window is not None:
            yield window

    def _is_short(self, piece: Window) -> bool:
        """Return whether the only subgraph has short rows alone in a piece."""
        offsets = self._ways[0].adjacency.rows.offsets[piece.first : piece.last + 1]
        return int(np.diff(offsets).max(initial=0)) <= _SHORT

    @contextlib.contextmanager
    def _table(self) -> Iterator[Table]:
        """Lend a table to a thread."""
        try:
            table = self._tables.pop()
        except IndexError:
            table = make_table(self._graph.vertices, _TABLES_BYTES // self._team.threads)
        try:
            yield table
        finally:
            self._tables.append(table)


class _EdgesBefore:
    """The number of a way's edges whose vertices that pick have places below a cut."""

    def __init__(self, way: Way, team: Team) -> None:
        adjacency = way.adjacency
        self._places = way.into.places
        self._rows = way.into.count
        self._offsets = adjacency.rows.offsets
        if way.how == "scatter":
            counts = np.zeros(way.into.count + 1, np.int64)
            count_targets(adjacency, counts[1:])
            self._offsets = np.cumsum(counts, out=counts)
        self._order: NDArray[np.uint32] | None = None
        if len(self._places.table):  # delegates, which may be in any order
            order = np.argsort(self._places.table)
            degrees = np.diff(self._offsets.astype(np.int64))[order]
            self._offsets = np.concatenate([[0], np.cumsum(degrees)])
            self._order = self._places.table[order]

    def __call__(self, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._order is not None:
            return self._offsets[np.searchsorted(self._order, cuts)].astype(np.int64)
        low, high = np.zeros(len(cuts), np.int64), np.full(len(cuts), self._rows)
        while (low < high).any():  # numbers rise with rows
            middle = np.minimum((low + high) // 2, max(0, self._rows - 1))
            below = renumber_all(self._places, middle.astype(np.uint32)) < cuts
            low = np.where((low < high) & below, middle + 1, low)
            high = np.where((low < high) & ~below, middle, high)
        return self._offsets[low].astype(np.int64)


def count_targets(adjacency: Adjacency, counts: NDArray[np.int64]) -> Visits:
    """Add to ``counts`` the number of edges to each target of a subgraph."""
    return adjacency.rows.every(Team(1), lambda piece, *_: count_ends(piece.targets, counts))


def _no_piece(rows: Rows) -> Piece:
    return Piece(rows.offsets[:0], rows.targets[:0], 0, 0, NO_WEIGHTS)


def _no_picks(count: int) -> Picks:
    return Picks(np.full(count, NO_LABEL, np.uint32), np.zeros(count, np.uint64))


def _room_for(count: int) -> Entries:
    return Entries(
        np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.uint64)
    )


def _trimmed(entries: Entries, count: int) -> Entries:
    return Entries(*(array[:count].copy() for array in entries))


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(*(np.concatenate(arrays) for arrays in zip(_room_for(0), *parts, strict=True)))


def _starts(degrees: list[NDArray]) -> NDArray[np.int64]:
    """Return the first row of each turn, and the end. degrees: offsets, whose sum cuts turns."""
    offsets = degrees[0] if len(degrees) == 1 else sum(o.astype(np.int64) for o in degrees)
    begins = np.arange(0, int(offsets[-1]), EDGES_A_TURN, dtype=offsets.dtype)
    starts = np.searchsorted(offsets, begins)
    return np.append(np.unique(starts), len(offsets) - 1).astype(np.int64)


def _rows_above(degrees: list[NDArray], most: int) -> list[int]:
    """Return the rows that have more edges than ``most``."""
    if sum(int(offsets[-1]) for offsets in degrees) <= most:
        return []
    edges = sum(np.diff(offsets).astype(np.int64) for offsets in degrees)
    return np.flatnonzero(edges > most).tolist()
