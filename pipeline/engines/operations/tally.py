"""Tallies of a rank: each vertex picks one of its neighbours' labels (kernels/pieces/tally.py).

If all edges are in memory as one subgraph, threads go through its rows. Otherwise the edges of a
vertex may be in several subgraphs, pieces and ranks. The vertices are then taken by *windows*, on
which all ranks agree: each rank makes entries of the edges that it has and sends them to the owners
of the vertices, who pick. A window has so few edges that its entries fit in memory. A vertex with
more edges takes several passes, each for another class of labels. Delegates are owned by the ranks
in turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.numbering import renumber_all
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces.gather import count_targets as count_ends
from ....kernels.pieces.operators import Amounts, BestGain, Rule
from ....kernels.pieces.piece import NO_WEIGHTS, Piece
from ....kernels.pieces.tally import (
    ALL,
    EDGES_A_TURN,
    NO_LABEL,
    Among,
    Entries,
    Picks,
    Table,
    cut_rows,
    group_entries,
    make_table,
    pick_of_entries,
    scatter_labels,
    tally_class,
    tally_piece,
    tally_turns,
)
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Active, AnyRows, Chosen, Rows, RowsOnDisk
from ..ranks.graph import Adjacency, RankGraph, Side
from ..ranks.routes import count_of, owned
from ..ranks.state import Ghosts, Vertices
from .marks import add
from .vectors import Vector

How = Literal["gather", "scatter"]
""""gather": from the targets of a subgraph to its rows. "scatter": from the rows to the targets."""

Note = Callable[[int, int], None]
"""Function that counts edges visited, and bytes read."""

WINDOW_EDGES = 1 << 19
"""The most edges of a window, except for edges of short rows that are whole; also the most
vertices.
"""

_ENTRY_BYTES = 16
_COPIES = 6  # of entries: made, trimmed, by owner, received, joined, grouped
_PICK_BYTES = 12 + 8 + 1
_TABLES_BYTES = 32 << 20
_SMALL_TABLE_BYTES = 1 << 20
_MOST_THREADS, _LABEL_BYTES = 1 << 10, 12

_SHORT = 1 << 14
_EDGES_FOR_ENTRY = 8
"""Whole rows up to _SHORT edges give entries only where the pieces that are read from disk cut
them: one for so many edges at most.
"""

_LONG = 1 << 20
"""Number of edges of a row that several threads tally together."""

_FIRST_CUTS, _CUTS = 256, 16


class Way(NamedTuple):
    """A way for labels to go along a subgraph's edges."""

    adjacency: Adjacency
    how: How

    @property
    def picking(self) -> Side:
        """Return the side whose vertices pick."""
        adjacency = self.adjacency
        return adjacency.source if self.how == "gather" else adjacency.target

    @property
    def labelled(self) -> Side:
        """Return the side whose vertices have the labels."""
        adjacency = self.adjacency
        return adjacency.target if self.how == "gather" else adjacency.source


class PlacedRule(NamedTuple):
    """A rule that knows vertices by their places. own: for own vertices. shared: for all shared
    vertices.
    """

    own: BestGain
    shared: BestGain


class Pickers(NamedTuple):
    """The vertices that pick: those whose turn it is. turns: uint8, with ghosts, which are known.
    turn: the one that it is now.
    """

    turns: Vector
    turn: int


class Window(NamedTuple):
    """Vertices that pick together: ``first <= v < last``, by global id, or by number of delegate if
    ``shared``. classes: the number of classes of labels, each of which takes a pass.
    """

    shared: bool
    first: int
    last: int
    classes: int


def tally_bytes(vertices: int, directed: bool) -> int:
    """Return the bytes that a tally holds beside its vectors."""
    # Degrees; in a directed graph those of both directions, and counts of edges that are scattered.
    making_windows = (2 * 4 + 4 if directed else 4) * vertices
    return max(making_windows, tallying_bytes(vertices))


def tallying_bytes(vertices: int) -> int:
    """Return the bytes that a tally holds beside its vectors, but at its start."""
    in_window = (_COPIES * _ENTRY_BYTES + _PICK_BYTES) * WINDOW_EDGES
    tables = min(_TABLES_BYTES, _MOST_THREADS * _LABEL_BYTES * vertices)
    return in_window + tables


class Tallies:
    """The tallies of a rank. ways: all ways that tell a vertex of its edges, each edge once.
    degrees: returns the number of edges by which each vertex is told. total: adds up numbers over
    all ranks.
    """

    def __init__(
        self,
        graph: RankGraph,
        communicator: Communicator,
        team: Team,
        ways: Sequence[Way],
        degrees: Callable[[], Vector],
        total: Callable[[Any], NDArray],
        note: Note,
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._ways = ways
        self._degrees = degrees
        self._total = total
        self._note = note
        self._tables: list[Table] = []
        self._turns: tuple[NDArray[np.int64], list[int]] | None = None
        self._windows: list[Window] | None = None
        self._scattered: dict[int, _Scattered] = {}
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
        pickers: Pickers | None = None,
    ) -> None:
        """Set ``y`` to the labels that vertices prefer. leaving, entering: the rows of the whole
        graph; ``entering`` is None if the graph is undirected. pickers: None for all vertices.
        """
        among = ALL if pickers is None else Among(pickers.turns.own, pickers.turn)
        pieces = leaving.piece, _no_piece(leaving) if entering is None else entering.piece
        if self._turns is None:
            self._turns = _cut(*pieces, _LONG if self._team.threads > 1 else 1 << 62)
        starts, long_rows = self._turns
        most = _LONG if long_rows else 1 << 62
        taken = no_turns(self._team.threads)

        def pick_turns() -> None:
            with self._table(rule) as table:
                tally_turns(rule, amounts, *pieces, starts, most, among, x, y, table, taken)

        self._team.run(pick_turns)
        for row in long_rows:
            if pickers is not None and pickers.turns.own[row] != pickers.turn:
                continue
            y[row] = self._pick_long(rule, amounts, pieces, row, x)
        self._note(sum(len(piece.targets) for piece in pieces), 0)

    def _pick_long(
        self, rule: Rule, amounts: Amounts, pieces: tuple[Piece, Piece], row: int, x: NDArray
    ) -> int:
        """Return the label that a row prefers; each thread takes another class of labels."""
        classes = self._team.threads

        def pick_class(label_class: int) -> tuple[int, int]:
            with self._table(rule) as table:
                return tally_class(rule, amounts, *pieces, row, label_class, classes, x, table)

        found = self._team.map(pick_class, range(classes))
        labels = np.array([label for label, _ in found if label != NO_LABEL], np.uint32)
        sums = np.array([total for label, total in found if label != NO_LABEL], np.uint64)
        picks = _no_picks(1)
        entries = Entries(np.full(len(labels), row, np.uint32), labels, sums)
        with self._table(rule) as table:
            pick_of_entries(rule, entries, np.array([0, len(labels)]), row, 0, 1, picks, table)
        return picks.labels[0]

    # Edges in several places

    def pick_by_windows(
        self,
        rule: Rule | PlacedRule,
        amounts: Amounts,
        x: Vector,
        y: Vector,
        whole: bool,
        pickers: Pickers | None = None,
    ) -> None:
        """Set ``y`` to the labels that vertices prefer. The ghosts of ``x`` are known. whole:
        whether each row has all edges of its vertex. pickers: None for all vertices.
        """
        if self._windows is None:  # all ranks make them at the same time
            self._windows = self._make_windows(whole)
        for scattered in self._scattered.values():
            scattered.clear()
        for number, window in enumerate(self._windows):
            self._communicator.check()
            low, high = self._places_here(window)
            picks = _no_picks(high - low)
            window_rule = self._rule_of(rule, window)
            for label_class in range(window.classes):
                given = window_rule, amounts, number, window, label_class, x, y, whole, pickers
                pass_ = _Pass(*given)
                entries = self._exchange(
                    [
                        self._by_owner(way.picking, entries)
                        for way in self._ways
                        for entries in self._make_entries(pass_, way)
                    ]
                )
                self._pick(window_rule, entries, low, picks)
            values = y.own
            if window.shared:
                values = y.shared[self._communicator.rank :: self._communicator.size]
            picked = picks.labels != NO_LABEL
            values[low:high][picked] = picks.labels[picked]
        self._share(y.shared)

    def _rule_of(self, rule: Rule | PlacedRule, window: Window) -> Rule:
        """Return the rule for the vertices of a window that this rank owns, by their places."""
        if not isinstance(rule, PlacedRule):
            return rule
        if not window.shared:
            return rule.own
        mine = slice(self._communicator.rank, None, self._communicator.size)
        return rule.shared._replace(numbers=rule.shared.numbers[mine].copy())

    def _make_entries(self, pass_: _Pass, way: Way) -> list[Entries]:
        """Return the entries that one way gives for the vertices of a window."""
        low, high = self._places(pass_.window, way.picking.segment)
        if low == high:
            return []
        if way.how == "scatter":
            return self._scatter(pass_, way)
        graph, rows, labelled = self._graph, way.adjacency.rows, way.labelled
        labels, among = pass_.x.at(labelled.segment, graph), pass_.among(way.picking, graph)
        picked = pass_.y.at(way.picking.segment, graph) if pass_.whole else labels

        def tally(piece: Piece, queue: NDArray, first: int, last: int, most: int) -> Entries:
            rows_here = piece, queue, first, last, pass_.whole, picked, low, high, among
            places = labelled.places, labels, way.picking.places
            given = *rows_here, *places, pass_.label_class, pass_.window.classes
            entries, room, count = _room_for(0), most // pass_.window.classes, -1
            while count < 0:  # a class may have more labels than its share
                room = min(most, 2 * room + 1)
                entries = _room_for(room)
                with self._table(pass_.rule) as table:
                    count = tally_piece(pass_.rule, pass_.amounts, *given, table, entries)
            return _trimmed(entries, count)

        active = _rows_between(way.picking, rows, self._team, low, high, among)
        visits = rows.push(self._team, active, tally)
        self._note(active.edges, visits.read)
        return visits.results

    def _scatter(self, pass_: _Pass, way: Way) -> list[Entries]:
        """Return entries for the targets of a subgraph. All its edges are visited at once for as
        many windows as have entries that fit.
        """
        scattered = self._scattered[id(way.adjacency)]
        number, classes = pass_.number, pass_.window.classes
        if classes > 1:
            return [self._scatter_into(pass_, way, *scattered.places(number, number + 1))]
        if number >= scattered.until:
            until = scattered.fitting(number)
            entries = self._scatter_into(pass_, way, *scattered.places(number, until))
            scattered.keep(entries, until)
        return [scattered.take(number)]

    def _scatter_into(self, pass_: _Pass, way: Way, low: int, high: int) -> Entries:
        """Return entries for the targets at places ``low <= p < high``."""
        rows, labelled = way.adjacency.rows, way.labelled
        labels = pass_.x.at(labelled.segment, self._graph)
        among = pass_.among(way.picking, self._graph)
        places = among, labelled.places, labels, way.picking.places
        classes = pass_.label_class, pass_.window.classes

        def scatter(piece: Piece, *_: Any) -> Entries:
            entries = _room_for(piece.end - piece.begin)
            given = pass_.amounts, piece, low, high, *places, *classes
            return _added_up(_trimmed(entries, scatter_labels(*given, entries)))

        visits = rows.every(self._team, scatter)
        self._note(int(rows.offsets[-1]), visits.read)
        return _added_up(_joined(visits.results))

    def _by_owner(self, side: Side, entries: Entries) -> list[Entries]:
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
            assert isinstance(side.segment, Ghosts)
            segment = side.segment.segment
            local, i = np.divmod(places, np.uint32(len(segment)))
            partition = segment.start + i.astype(np.int64) * segment.step
            owner = partition % ranks
            held = np.array([len(owned(r, ranks, graph.partitions)) for r in range(ranks)])
            places = (local * held[owner] + partition // ranks).astype(np.uint32)
        here = [np.flatnonzero(owner == rank) for rank in range(ranks)]
        return [Entries(places[at], entries.labels[at], entries.sums[at]) for at in here]

    def _exchange(self, made: list[list[Entries]]) -> Entries:
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
        """Update the picks of the vertices from place ``low`` on by their entries."""
        offsets = np.zeros(len(picks.labels) + 1, np.int64)
        grouped = _room_for(len(entries.places))
        group_entries(entries, low, offsets, grouped)
        turns = np.arange(0, len(entries.places) + EDGES_A_TURN, EDGES_A_TURN)
        bounds = np.unique(np.append(np.searchsorted(offsets, turns), [0, len(offsets) - 1]))
        bounds = np.minimum(bounds, len(offsets) - 1)

        def pick(i: int) -> None:
            with self._table(rule) as table:
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
        if (segment is self._graph.shared) != window.shared:
            return 0, 0
        if window.shared:
            return window.first, window.last
        first, last = self._cut_places(segment, np.array([window.first, window.last])).tolist()
        return first, last

    def _cut_places(self, segment: Vertices | Ghosts, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of a segment's vertices before each cut, a global id."""
        graph = self._graph
        held = segment.segment if isinstance(segment, Ghosts) else graph.held
        count: Any = count_of  # of arrays, too
        return cuts * 0 + count(held, cuts, graph.partitions)

    def _places_here(self, window: Window) -> tuple[int, int]:
        """Return the range of places of the window's vertices that this rank owns."""
        if not window.shared:
            return self._places(window, self._graph.own)
        rank, ranks = self._communicator.rank, self._communicator.size
        first, last = (len(range(rank, d, ranks)) for d in (window.first, window.last))
        return first, last

    def _make_windows(self, whole: bool) -> list[Window]:
        degree = self._degrees()
        degree.own[self._graph.delegates_here] = 0
        ranges = list(self._cut(degree, False))
        windows = list(_merged(ranges, degree.own if whole else None))
        for way in self._ways:
            if way.how == "scatter":
                self._scattered[id(way.adjacency)] = self._count_scattered(way, windows)
        if self._graph.shared is not None:
            windows += _merged(list(self._cut(degree, True)), None)
        return windows

    def _cut(self, degree: Vector, shared: bool) -> Iterator[tuple[Window, int]]:
        """Yield windows that have no more edges or vertices than WINDOW_EDGES, or are one vertex,
        with the number of their edges.
        """
        graph = self._graph
        count = len(degree.shared) if shared else graph.vertices
        cuts = np.unique(np.linspace(0, count, _FIRST_CUTS + 1).astype(np.int64))
        while True:
            if shared:  # all ranks know all of these
                edges = _sums_between(degree.shared, cuts)
            else:
                places = self._cut_places(graph.own, cuts)
                edges = self._total(_sums_between(degree.own, places)).astype(np.int64)
            size = np.diff(cuts)
            divided = np.flatnonzero((np.maximum(edges, size) > WINDOW_EDGES) & (size > 1))
            if not len(divided):
                break
            more = [np.linspace(cuts[i], cuts[i + 1], _CUTS + 1).astype(np.int64) for i in divided]
            cuts = np.unique(np.concatenate([cuts, *more]))
        for first, last, number in zip(
            cuts.tolist(), cuts[1:].tolist(), edges.tolist(), strict=False
        ):
            yield Window(shared, first, last, 1), number

    def _count_scattered(self, way: Way, windows: list[Window]) -> _Scattered:
        side, counts = way.picking, np.zeros(way.picking.segment.count, np.uint32)
        self._note(0, count_targets(way.adjacency, counts))
        cuts = np.array([*(window.first for window in windows), self._graph.vertices])
        bounds = self._cut_places(side.segment, cuts)
        return _Scattered(bounds, _sums_between(counts, bounds))

    @contextlib.contextmanager
    def _table(self, rule: Rule) -> Iterator[Table]:
        """Lend a table to a thread."""
        try:
            table = self._tables.pop()
        except IndexError:
            room = _TABLES_BYTES // self._team.threads
            if isinstance(rule, BestGain):  # at first, hardly two neighbours have the same label
                room = min(room, _SMALL_TABLE_BYTES)
            table = make_table(self._graph.vertices, room)
        try:
            yield table
        finally:
            self._tables.append(table)


class _Pass(NamedTuple):
    """A pass over the edges of a window. number: of the window. label_class: the class of labels
    that entries are made for.
    """

    rule: Rule
    amounts: Amounts
    number: int
    window: Window
    label_class: int
    x: Vector
    y: Vector
    whole: bool
    pickers: Pickers | None

    def among(self, side: Side, graph: RankGraph) -> Among:
        """Return the vertices of a side that pick."""
        if self.pickers is None:
            return ALL
        return Among(self.pickers.turns.at(side.segment, graph), self.pickers.turn)


class _Scattered:
    """Entries that one visit of a subgraph has made for several windows, sorted by place. bounds:
    places at which windows begin, and the end. edges: the number of edges for each window.
    """

    def __init__(self, bounds: NDArray[np.int64], edges: NDArray[np.int64]) -> None:
        self._bounds = bounds
        self._edges = edges
        self.clear()

    def clear(self) -> None:
        self.keep(_room_for(0), 0)

    def keep(self, entries: Entries, until: int) -> None:
        """Keep the entries of the windows before ``until``."""
        self._entries = entries
        self.until = until

    def places(self, number: int, until: int) -> tuple[int, int]:
        """Return the range of places of the windows ``number <= w < until``."""
        return int(self._bounds[number]), int(self._bounds[until])

    def fitting(self, number: int) -> int:
        """Return the window before which the entries fit in memory, of the windows from ``number``
        on; at least one of them.
        """
        held = np.cumsum(self._edges[number:])
        return number + max(1, int(np.searchsorted(held, WINDOW_EDGES, side="right")))

    def take(self, number: int) -> Entries:
        first, last = np.searchsorted(self._entries.places, self._bounds[number : number + 2])
        return _between(self._entries, first, last)


def _merged(
    ranges: list[tuple[Window, int]], degree: NDArray[np.uint32] | None
) -> Iterator[Window]:
    """Yield windows that are as large as they may be. ranges: windows with their edges. degree: of
    each vertex, if each row has all edges of its vertex; None if not.
    """
    window, entries = None, 0
    for part, edges in ranges:
        more = edges
        if degree is not None and degree[part.first : part.last].max(initial=0) <= _SHORT:
            more = -(-edges // _EDGES_FOR_ENTRY)
        if window is not None:
            fits = entries + more <= WINDOW_EDGES and part.last - window.first <= WINDOW_EDGES
            if fits:
                window, entries = window._replace(last=part.last), entries + more
                continue
            yield window
        window, entries = part._replace(classes=max(1, -(-more // WINDOW_EDGES))), more
    if window is not None:
        yield window


def count_targets(adjacency: Adjacency, counts: NDArray[np.uint32]) -> int:
    """Add to ``counts``, by place, the number of edges to each target of a subgraph. Returns the
    bytes read.
    """
    rows, places = adjacency.rows, adjacency.target.places
    if isinstance(rows, RowsOnDisk):
        rows = rows.unweighted
    visits = rows.every(Team(1), lambda piece, *_: count_ends(piece, places, counts))
    return visits.read


def _rows_between(
    side: Side, rows: AnyRows, team: Team, low: int, high: int, among: Among
) -> Active:
    """Return the active rows of a subgraph: those at places ``low <= p < high``, of which only rows
    on disk are chosen by ``among``.
    """
    table = side.places.table
    if len(among.turns) and isinstance(rows, RowsOnDisk):
        words = np.zeros(-(-len(among.turns) // WORD), np.uint64)
        add(words, low + np.flatnonzero(among.turns[low:high] == among.turn))
        return rows.active(team, Chosen(side.places, words, side.count))
    if len(table):  # delegates, which may be in any order
        listed = np.flatnonzero((table >= low) & (table < high)).astype(np.uint32)
        return rows.active(team, Chosen.of_lists([listed], side.count))
    return rows.between(team, *_numbers_before(side, np.array([low, high])).tolist())


def _numbers_before(side: Side, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of a side's numbers, which rise with places, have places before each cut."""
    low, high = np.zeros(len(cuts), np.int64), np.full(len(cuts), side.count)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, max(0, side.count - 1))
        is_before = renumber_all(side.places, middle.astype(np.uint32)) < cuts
        low, high = (
            np.where((low < high) & is_before, middle + 1, low),
            np.where((low < high) & ~is_before, middle, high),
        )
    return low


def _sums_between(values: NDArray[np.uint32], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of the values from each bound to the next.

    >>> _sums_between(np.array([1, 2, 3], np.uint32), np.array([0, 2, 2, 3]))
    array([3, 0, 3])
    """
    if not len(values):
        return np.zeros(len(bounds) - 1, np.int64)
    starts = np.minimum(bounds[:-1], len(values) - 1)
    sums = np.add.reduceat(values, starts, dtype=np.int64)
    sums[bounds[:-1] == bounds[1:]] = 0
    return sums


def _no_piece(rows: Rows) -> Piece:
    return Piece(rows.offsets[:0], rows.targets[:0], 0, 0, NO_WEIGHTS)


def _no_picks(count: int) -> Picks:
    return Picks(np.full(count, NO_LABEL, np.uint32), np.zeros(count, np.uint64))


def _room_for(count: int) -> Entries:
    return Entries(
        np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.uint64)
    )


def _between(entries: Entries, first: int, last: int) -> Entries:
    places, labels, sums = entries
    return Entries(places[first:last], labels[first:last], sums[first:last])


def _trimmed(entries: Entries, count: int) -> Entries:
    places, labels, sums = _between(entries, 0, count)
    return Entries(places.copy(), labels.copy(), sums.copy())


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(*(np.concatenate(arrays) for arrays in zip(_room_for(0), *parts, strict=True)))


def _added_up(entries: Entries) -> Entries:
    """Return entries with one for each place and label, sorted by place."""
    keys = entries.places.astype(np.uint64) << np.uint64(32) | entries.labels
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if not len(starts):
        return _room_for(0)
    sums = np.add.reduceat(entries.sums[order], starts)
    keys = keys[starts]
    return Entries((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), sums)


def _cut(leaving: Piece, entering: Piece, most: int) -> tuple[NDArray[np.int64], list[int]]:
    """Return the first row of each turn of a whole graph and the end, and the rows with more edges
    than ``most``.
    """
    edges = len(leaving.targets) + len(entering.targets)
    starts = np.empty(edges // EDGES_A_TURN + 2, np.int64)
    long_rows = np.empty(edges // most + 1, np.int64)
    turns, count = cut_rows(leaving, entering, most, starts, long_rows)
    return starts[: turns + 1].copy(), long_rows[:count].tolist()
