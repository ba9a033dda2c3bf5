"""Levels of a community search: graphs whose vertices move between communities, and the graph
between communities that each is contracted to.

Arrays of a level are by number. At level 0 numbers follow the user's ids, and all ranks hold the
arrays; the first rank alone has the levels above, in memory, or on disk where their edges do not
fit. So whatever is decided is the same on every engine (kernels/programs/communities.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.numbering import by_rule
from ...kernels.base.team import Team
from ...kernels.base.turns import no_turns
from ...kernels.pieces.operators import (
    Amounts,
    AmountsWithin,
    BestGain,
    ListedAmounts,
    Or,
)
from ...kernels.pieces.piece import Piece
from ...kernels.pieces.tally import NO_LABEL, Table, make_table
from ...kernels.programs.communities import (
    CLASSES,
    VERTICES_A_TURN,
    add_inside,
    count_contracted,
    do_moves,
    fill_contracted,
    fill_rows,
    find_classes,
    list_by_class,
    list_members,
    list_moves,
    mark_neighbours,
    pick_moves,
)
from ..engines.operations.contract import PairSums, add_pairs
from ..engines.operations.forests import join_in_rows
from ..engines.operations.operations import WINDOW, Operations
from ..engines.operations.spill import Pairs, Spill, write_rows
from ..engines.operations.tally import Pickers, PlacedRule
from ..engines.operations.vectors import Vector, VectorType
from ..engines.ranks.edges import Rows, RowsOnDisk
from ..engines.ranks.graph import graph_of_rows
from ..ranks.communicator import SingleCommunicator
from .hierarchy import least_of_each

NUMBERS = VectorType(np.uint32)
LABELS = VectorType(np.uint32, ghosts=True)
WORDS = VectorType(np.uint64, ghosts=True)
TURNS = VectorType(np.uint8, ghosts=True)

_MARKED = Or(np.uint64(0), np.uint64(1))

ROOM = 16 << 20
"""Bytes that the edges of a graph between communities may always take in memory."""

MOST_READERS = 16
"""The most threads that read a level on disk."""

_ALONE = Team(1)
_NO_BOUNDS = np.empty(0, np.uint32)
_LABEL_BYTES = 8 + 4  # of a table
TABLES_BYTES = 64 << 20
_TABLE_BYTES = 1 << 20
"""Bytes of a thread's table of sums: it stays in a core's cache."""
_EDGE_BYTES = 4 + 8
_SERIAL_EDGES = 1 << 15
"""Number of edges of a graph that is not worth more than one thread."""

Moves = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""The numbers of vertices, and the communities that they move to."""


class Level(ABC):
    """A graph whose vertices move between communities.

    amounts: what its edges amount to. inside: uint64, what the edges inside each vertex amount to,
    in both directions. mass: uint64, of each vertex. factor: as in BestGain. label: uint32, the
    community of each vertex: the number of some vertex. refined: the same, of parts of communities.
    on_disk: whether the edges are read from disk.
    """

    mass: NDArray[np.uint64]
    factor: float
    on_disk: bool

    def __init__(self, amounts: Amounts, inside: NDArray[np.uint64]) -> None:
        self.amounts, self.inside = amounts, inside
        self.label = self.refined = np.arange(len(inside), dtype=np.uint32)
        self._alone = np.empty(0, np.bool_)
        self._totals = np.empty(0, np.uint64)

    @property
    def count(self) -> int:
        """Return the number of vertices."""
        return len(self.inside)

    def begin(self, label: NDArray[np.uint32]) -> None:
        """Put the vertices into communities, and mark all of them."""
        self.label = label.copy()
        self._totals = np.zeros(len(label), np.uint64)
        np.add.at(self._totals, label, self.mass)
        self._set_labels(self.label)
        self._mark_all()

    def alone(self) -> NDArray[np.uint8]:
        """Return, as 1 or 0, which vertices may still join parts."""
        return self._alone.astype(np.uint8)

    def take_up_joining(self, refined: NDArray[np.uint32], alone: NDArray[np.uint8]) -> None:
        """Go on with parts, and with the vertices that may still join some."""
        self.refined, self._alone = refined.copy(), alone.astype(np.bool_)
        self._totals = np.zeros(len(refined), np.uint64)
        np.add.at(self._totals, refined, self.mass)
        self._set_labels(self.refined)

    def move(self, stamp: np.uint64) -> int:
        """Do a round of moves by the vertices that are marked. Returns the number of moves."""
        moved = 0
        self._list(stamp, None)
        for i in range(CLASSES):
            rule = self._rule(self.label, _NO_BOUNDS, _NO_BOUNDS)
            vertices, labels = self._picks(i, rule)
            self._apply(self.label, vertices, labels)
            self._mark_neighbours(vertices)
            moved += len(vertices)
        return moved

    def begin_joining(self, within: NDArray[np.uint64]) -> None:
        """Begin to divide the communities into parts; at first each vertex is one. Only vertices
        that are tied to their communities may join others: their edges into the community amount to
        what the masses make one expect, at least. within: what these edges amount to.
        """
        self._alone = np.empty(self.count, np.bool_)
        for first in range(0, self.count, WINDOW):  # so that little memory is taken
            at = slice(first, first + WINDOW)
            others = (self._totals[self.label[at]] - self.mass[at]).astype(np.float64)
            expected = self.mass[at].astype(np.float64) * self.factor * others
            self._alone[at] = (within[at] > 0) & (within[at].astype(np.float64) >= expected)
        self.refined = np.arange(len(self.label), dtype=np.uint32)
        self._totals[:] = self.mass
        self._set_labels(self.refined)

    def join(self, stamp: np.uint64) -> int:
        """Do a round in which vertices that are parts by themselves join others. Returns how many
        do. Vertices that join at once do not join each other, and none leaves a part that it has
        joined or that others have: so parts are connected.
        """
        joined, groups = 0, self.label.copy()
        numbers = np.arange(self.count, dtype=np.uint32)
        alone, bounds = np.empty(self.count, np.uint32), np.empty(CLASSES + 1, np.int64)
        list_by_class(self._alone.view(np.uint8), numbers, stamp, bounds, alone)
        self._list(stamp, self._alone)
        for i in range(CLASSES):
            joining = alone[bounds[i] : bounds[i + 1]]
            joining = joining[self._alone[joining]]
            if not len(joining):
                continue
            groups[joining] = UNREACHED
            rule = self._rule(self.refined, self.label, groups)
            vertices, labels = self._picks(i, rule)
            still_alone = self._alone[vertices]
            vertices, labels = vertices[still_alone], labels[still_alone]
            groups[joining] = self.label[joining]
            self._apply(self.refined, vertices, labels)
            self._alone[vertices] = self._alone[labels] = False
            joined += len(vertices)
        return joined

    def _rule(
        self, mine: NDArray[np.uint32], parts: NDArray[np.uint32], groups: NDArray[np.uint32]
    ) -> BestGain:
        none = np.empty(0, np.uint32)
        return BestGain(self.factor, none, mine, self.mass, self._totals, parts, groups)

    def _apply(self, label: NDArray[np.uint32], vertices: NDArray, labels: NDArray) -> None:
        do_moves(vertices, labels, label, self.mass, self._totals)
        self._put_labels(vertices, labels)

    @abstractmethod
    def sums_within(self) -> NDArray[np.uint64]:
        """Return what the edges of each vertex to others of its community amount to. No vertex is
        marked afterwards.
        """

    @abstractmethod
    def split(self) -> NDArray[np.uint32]:
        """Return, on rank 0, the communities, each divided into its connected parts."""

    @abstractmethod
    def contract(self, label: NDArray[np.uint32], labels: int) -> Level | None:
        """Return the graph between labels, which are the numbers below ``labels``; None on ranks
        other than the first. Of this level, the labels and masses are left; ``begin`` renews level
        0.
        """

    @abstractmethod
    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        """Take note of the labels of all vertices."""

    @abstractmethod
    def _put_labels(self, vertices: NDArray[np.uint32], labels: NDArray[np.uint32]) -> None:
        """Take note of new labels of some vertices."""

    @abstractmethod
    def marks(self) -> NDArray[np.uint8]:
        """Return, as 1 or 0, which vertices are marked."""

    @abstractmethod
    def set_marks(self, marks: NDArray[np.uint8]) -> None:
        """Mark these vertices, and no others."""

    @abstractmethod
    def strengths(self) -> NDArray[np.uint64]:
        """Return what the edges of each vertex amount to; those inside it count twice."""

    @abstractmethod
    def _mark_all(self) -> None:
        """Mark all vertices that have edges."""

    @abstractmethod
    def _mark_neighbours(self, vertices: NDArray[np.uint32]) -> None:
        """Mark the neighbours of some vertices."""

    @abstractmethod
    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        """List the chosen vertices by their classes in a round; None for those that are marked."""

    @abstractmethod
    def _picks(self, i: int, rule: BestGain) -> Moves:
        """Return the moves that the listed vertices of a class pick, those of all ranks, and take
        their marks away. rule: without ``numbers``.
        """


class Contractions(NamedTuple):
    """The contractions of a run. ground: the operations of level 0. spill: for the files of levels
    on disk.
    """

    ground: Operations
    spill: Spill

    @property
    def room(self) -> int:
        """Return the bytes that the edges of levels above level 0 may take in memory."""
        return self.ground.extra_bytes + ROOM

    def pair_sums(self, labels: int, extra_bytes: int) -> PairSums:
        """Return sums of pairs of labels that make a level, of which there are none yet. labels:
        their number. extra_bytes: as in PairSums.
        """
        is_first = self.ground.communicator.rank == 0
        return PairSums(labels, extra_bytes, spill=self.spill, both_ways=is_first)

    def level_of(self, found: PairSums, labels: int, room: int) -> Level:
        """Return the level whose edges are pairs of labels, of which those inside a label count
        twice. room: bytes that its edges may take in memory.
        """
        pairs = found.held()
        if pairs is None or 2 * _EDGE_BYTES * len(pairs.keys) > room:
            return self._level_on_disk(found, labels)
        level = self._level_in_memory(pairs, labels)
        self.spill.clear()
        return level

    def _level_in_memory(self, pairs: Pairs, labels: int) -> MemoryLevel:
        is_inside = pairs.keys >> np.uint64(32) == pairs.keys & np.uint64(0xFFFFFFFF)
        inside = np.zeros(labels, np.uint64)
        inside[pairs.keys[is_inside].astype(np.uint32)] = pairs.sums[is_inside]
        keys, pair_sums = pairs.keys[~is_inside], pairs.sums[~is_inside]
        first, other = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
        degrees = np.bincount(first, minlength=labels) + np.bincount(other, minlength=labels)
        offsets, edges = _offsets(degrees), 2 * len(first)
        targets, sums = np.empty(edges, np.uint32), np.empty(edges, np.uint64)
        fill_rows(first, other, pair_sums, offsets[:-1].astype(np.int64), targets, sums)
        piece = Piece(offsets, targets, 0, edges, sums)
        return MemoryLevel(self, piece, ListedAmounts(), inside)

    def _level_on_disk(self, found: PairSums, labels: int) -> SpreadLevel:
        ground, runs = self.ground, found.put_away()
        self.spill.clear(keep=runs.folder)
        offsets = [a.rows.offsets.dtype for a in ground.graph.adjacencies]
        widest = max(offsets, key=lambda dtype: dtype.itemsize)  # kernels are compiled for it
        check = ground.communicator.check
        rows, inside = write_rows(runs.folder, labels, runs.merged(), widest, check)
        operations = Operations(
            graph_of_rows(rows),
            SingleCommunicator(),
            Team(min(ground.team.threads, MOST_READERS)),
            directed=False,
            extra_bytes=ground.extra_bytes,
            note=ground.note,
        )
        order = np.arange(labels, dtype=np.uint32)
        return SpreadLevel(self, operations, ListedAmounts(), order, inside)


class MemoryLevel(Level):
    """A level in memory. piece: its rows, by place. order: the place of each number at level 0;
    None at other levels, where they are the same.
    """

    on_disk = False

    def __init__(
        self,
        contractions: Contractions,
        piece: Piece,
        amounts: Amounts,
        inside: NDArray[np.uint64],
        order: NDArray[np.uint32] | None = None,
    ) -> None:
        super().__init__(amounts, inside)
        team = contractions.ground.team
        self._team = team if len(piece.targets) > _SERIAL_EDGES else Team(1)
        self._contractions, self._note = contractions, contractions.ground.note
        self._piece = piece
        self._is_ground = order is not None
        self._order = self._numbers = np.arange(self.count, dtype=np.uint32)
        if order is not None:
            self._order, self._numbers = order, np.empty_like(order)
            self._numbers[order] = np.arange(self.count, dtype=np.uint32)
        self._labels = self.label  # by place
        self._marked = np.zeros(self.count, np.uint8)
        self._listed, self._picked, self._movers, self._moves = np.empty((4, self.count), np.uint32)
        self._bounds = np.zeros(CLASSES + 1, np.int64)
        self._tables: list[Table] = []

    @property
    def _room(self) -> int:
        """Return the bytes that may be held beside this level."""
        bytes_here = 0 if self._is_ground else _EDGE_BYTES * len(self._piece.targets)
        return self._contractions.room - bytes_here

    def row(self, number: int) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the neighbours of a vertex, and what its edges to them amount to, of a level above
        level 0.
        """
        first, last = self._piece.offsets[number : number + 2].tolist()
        return self._piece.targets[first:last], self._piece.weights[first:last]

    def sums_within(self) -> NDArray[np.uint64]:
        return self._add_inside(self._labels)

    def strengths(self) -> NDArray[np.uint64]:
        return self._add_inside(np.zeros(self.count, np.uint32)) + self.inside

    def split(self) -> NDArray[np.uint32]:
        self._set_labels(self.label)
        offsets, targets, *_ = self._piece
        trees = join_in_rows(offsets, targets, self._team, self._labels)
        self._note(len(targets))
        return named_by_least(trees[self._order])

    def contract(self, label: NDArray[np.uint32], labels: int) -> Level:
        self._tables.clear()
        by_place = label[self._numbers]
        bounds, members = np.empty(labels + 1, np.int64), np.empty(self.count, np.uint32)
        list_members(by_place, bounds, members)
        lists = self.amounts, self._piece, by_place, bounds, members
        tables = self._contraction_tables(labels)
        degrees = np.empty(labels, np.int64)
        self._run(tables, count_contracted, *lists, degrees)
        offsets = _offsets(degrees)
        edges = int(offsets[-1])
        if _EDGE_BYTES * edges > self._room:
            tables.clear()
            return self._contract_by_pairs(by_place, labels)
        targets, sums = np.empty(edges, np.uint32), np.empty(edges, np.uint64)
        inside = np.zeros(labels, np.uint64)
        into = offsets[:-1].astype(np.int64)
        self._run(tables, fill_contracted, *lists, into, targets, sums, inside)
        np.add.at(inside, label, self.inside)
        piece = Piece(offsets, targets, 0, edges, sums)
        return MemoryLevel(self._contractions, piece, ListedAmounts(), inside)

    def _contract_by_pairs(self, by_place: NDArray[np.uint32], labels: int) -> Level:
        found = self._contractions.pair_sums(labels, self._room - ROOM)
        offsets, targets, _, _, weights = self._piece
        rows, ends = Rows(offsets, targets, weights), (by_rule(), by_place)
        add_pairs(found, rows, self._contractions.ground.team, self.amounts, ends, ends)
        level = self._contractions.level_of(found, labels, self._room)
        np.add.at(level.inside, by_place[self._order], self.inside)
        return level

    def _add_inside(self, by_place: NDArray[np.uint32]) -> NDArray[np.uint64]:
        sums = np.empty(self.count, np.uint64)
        taken = no_turns(self._team.threads)
        self._team.run(add_inside, self.amounts, self._piece, by_place, sums, taken)
        self._note(len(self._piece.targets))
        return sums[self._order]

    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        self._labels = label[self._numbers] if self._is_ground else label

    def _put_labels(self, vertices: NDArray[np.uint32], labels: NDArray[np.uint32]) -> None:
        if self._is_ground:  # elsewhere these are the given labels themselves
            self._labels[self._order[vertices]] = labels

    def marks(self) -> NDArray[np.uint8]:
        return self._marked[self._order]

    def set_marks(self, marks: NDArray[np.uint8]) -> None:
        self._marked[self._order] = marks

    def _mark_all(self) -> None:
        self._marked[:] = np.diff(self._piece.offsets) > 0

    def _mark_neighbours(self, vertices: NDArray[np.uint32]) -> None:
        places = self._order[vertices]
        team = self._team if len(places) > VERTICES_A_TURN else _ALONE
        taken = no_turns(team.threads)
        self._note(
            sum(team.run(mark_neighbours, self._piece.unweighted, places, self._marked, taken))
        )

    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        marked = self._marked if chosen is None else chosen[self._numbers].view(np.uint8)
        list_by_class(marked, self._numbers, stamp, self._bounds, self._listed)

    def _picks(self, i: int, rule: BestGain) -> Moves:
        places = self._listed[self._bounds[i] : self._bounds[i + 1]]
        if not self._tables:
            self._tables = _make_tables(self.count, self._team.threads)
        tables = self._tables if len(places) > VERTICES_A_TURN else self._tables[:1]
        rule = rule._replace(numbers=self._numbers)
        rows = self._piece, places, self._labels, self._marked, self._picked
        self._note(self._run(tables, pick_moves, rule, self.amounts, *rows))
        lists = self._labels, self._numbers, self._movers, self._moves
        moves = list_moves(places, self._picked, *lists)
        return self._movers[:moves], self._moves[:moves]

    def _run(self, tables: list[Table], kernel: Any, *arguments: Any) -> int:
        """Run a kernel by as many threads as there are tables. Returns the sum of what it does."""
        taken = no_turns(len(tables))
        left = list(tables)

        def run() -> int:
            try:
                table = left.pop()
            except IndexError:
                return 0
            return kernel(*arguments, table, taken) or 0

        return sum((self._team if len(tables) > 1 else _ALONE).run(run))

    def _contraction_tables(self, labels: int) -> list[Table]:
        """Return tables with sums by label, for as many threads as there is room for."""
        each = _LABEL_BYTES * labels
        threads = min(self._team.threads, max(1, TABLES_BYTES // max(1, each)))
        return [make_table(labels, each) for _ in range(threads)]


class SpreadLevel(Level):
    """A level by operations: on disk, or level 0 in several subgraphs, or of several ranks. order:
    the global id of each number.
    """

    def __init__(
        self,
        contractions: Contractions,
        operations: Operations,
        amounts: Amounts,
        order: NDArray[np.uint32],
        inside: NDArray[np.uint64],
    ) -> None:
        super().__init__(amounts, inside)
        self._contractions = contractions
        self._operations, self._order = operations, order
        adjacencies = operations.graph.adjacencies
        self.on_disk = any(isinstance(a.rows, RowsOnDisk) for a in adjacencies)
        self._is_freed = True
        self._make_vectors()

    def _make_vectors(self) -> None:
        if not self._is_freed:
            return
        operations, self._is_freed = self._operations, False
        self._numbers, self._picked = (operations.vector(NUMBERS) for _ in range(2))
        self._labels = operations.vector(LABELS)
        self._word, self._marks = operations.vector(WORDS), operations.vector(WORDS)
        self._turns = operations.vector(TURNS)
        operations.put_numbers(self._numbers, self._order)

    def _free(self) -> None:
        """Free what the levels above may need room for."""
        del self._numbers, self._picked, self._labels, self._word, self._marks, self._turns
        self._is_freed = True
        self._operations.forget_tallies()
        self.refined, self._totals = self.refined[:0], self._totals[:0]

    def begin(self, label: NDArray[np.uint32]) -> None:
        self._make_vectors()
        super().begin(label)

    def sums_within(self) -> NDArray[np.uint64]:
        def set_word(word: Any, label: Any) -> None:
            word[:] = label
            word += np.uint64(1)

        self._operations.each(set_word, self._word, reads=[self._labels])
        return self._add_within()

    def strengths(self) -> NDArray[np.uint64]:
        self._word.fill(1)
        return self._add_within()

    def split(self) -> NDArray[np.uint32]:
        groups = np.empty(self.count, np.uint32)
        groups[self._order] = self.label
        return named_by_least(self._operations.join(groups)[self._order])

    def contract(self, label: NDArray[np.uint32], labels: int) -> Level | None:
        operations, contractions = self._operations, self._contractions
        self._set_labels(label)
        found = contractions.pair_sums(labels, operations.extra_bytes)
        operations.add_pairs(found, self._labels, self.amounts, loops=True)
        self._free()
        if operations.communicator.rank:
            return None
        level = contractions.level_of(found, labels, contractions.room)
        if self.inside.any():
            np.add.at(level.inside, label, self.inside)
        return level

    def _add_within(self) -> NDArray[np.uint64]:
        self._marks.fill(0)
        self._operations.gather_across(AmountsWithin(self.amounts), self._word, self._marks)
        sums = self._by_number(self._marks)
        self._word.fill(0)
        self._marks.fill(0)
        return sums

    def _by_number(self, vector: Vector) -> NDArray[Any]:
        """Return the values of all vertices, on all ranks."""
        values = np.empty(self.count, vector.own.dtype)
        if self._operations.communicator.size == 1:  # no list of all of them is held

            def take(numbers: Any, told: Any) -> None:
                values[numbers] = told

            self._operations.each(take, reads=[self._numbers, vector])
            return values
        numbers, told = self._operations.list_where(_all, self._numbers, vector)
        values[numbers] = told
        return values

    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        def set_label(into: Any, numbers: Any) -> None:
            into[:] = label[numbers]

        self._operations.each(set_label, self._labels, reads=[self._numbers])

    def _put_labels(self, vertices: NDArray[np.uint32], labels: NDArray[np.uint32]) -> None:
        self._operations.put(self._labels, self._order[vertices], labels)

    def marks(self) -> NDArray[np.uint8]:
        return self._by_number(self._marks).astype(np.uint8)

    def set_marks(self, marks: NDArray[np.uint8]) -> None:
        def mark(into: Any, numbers: Any) -> None:
            into[:] = marks[numbers]

        self._operations.each(mark, self._marks, reads=[self._numbers])

    def _mark_all(self) -> None:
        def mark(marks: Any, degree: Any) -> None:
            marks[:] = degree > 0

        self._operations.each(mark, self._marks, reads=[self._operations.degrees()])

    def _mark_neighbours(self, vertices: NDArray[np.uint32]) -> None:
        ones = np.ones(len(vertices), np.uint64)
        places = self._operations.put(self._word, self._order[vertices], ones)
        self._operations.spread(_MARKED, self._word, self._marks, True, places)
        self._word.fill(0, places)

    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        def list_marked(turns: Any, marks: Any, numbers: Any) -> None:
            find_classes(np.ascontiguousarray(numbers), stamp, turns)
            turns += 1
            turns *= marks != 0

        if chosen is None:
            self._operations.each(list_marked, self._turns, reads=[self._marks, self._numbers])
            return

        def list_chosen(turns: Any, numbers: Any) -> None:
            find_classes(np.ascontiguousarray(numbers), stamp, turns)
            turns += 1
            turns *= chosen[numbers]

        self._operations.each(list_chosen, self._turns, reads=[self._numbers])

    def _picks(self, i: int, rule: BestGain) -> Moves:
        def begin(picked: Any, marks: Any, turns: Any) -> None:
            picked[:] = NO_LABEL
            marks[turns == i + 1] = 0

        vectors = self._picked, self._marks
        self._operations.each(begin, *vectors, reads=[self._turns])
        rules = (rule._replace(numbers=n) for n in (self._numbers.own, self._numbers.shared))
        pickers = Pickers(self._turns, i + 1)
        self._operations.tally(
            PlacedRule(*rules), self.amounts, self._labels, self._picked, pickers
        )
        vectors = self._numbers, self._picked, self._labels
        numbers, picks, _ = self._operations.list_where(_is_other, *vectors)
        return numbers, picks


def named_by_least(label: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return labels of which each is the least place that it stands at.

    >>> named_by_least(np.array([4, 1, 4, 1, 1], np.uint32))
    array([0, 1, 0, 1, 1], dtype=uint32)
    """
    places = np.arange(len(label), dtype=np.uint32)
    return least_of_each(label, places, int(label.max(initial=0)) + 1)[label]


def _all(numbers: Any, marks: Any) -> Any:
    return np.ones(len(numbers), np.bool_)


def _is_other(numbers: Any, picked: Any, label: Any) -> Any:
    return (picked != NO_LABEL) & (picked != label)


def _make_tables(labels: int, count: int) -> list[Table]:
    room = min(_TABLE_BYTES, TABLES_BYTES // count)
    return [make_table(labels, room) for _ in range(count)]


def _offsets(degrees: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    offsets = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets.astype(np.uint32 if offsets[-1] < 1 << 32 else np.uint64)
