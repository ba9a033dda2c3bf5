"""Levels of a community search by operations: on disk, in several subgraphs, or of several ranks
(levels.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.pieces.operators import Amounts, AmountsWithin, BestGain, ByteOr
from ...kernels.pieces.tally import NO_LABEL
from ...kernels.programs.communities import (
    CLASSES,
    add_by_label,
    do_moves,
    find_classes,
)
from ..engines.operations.contract import Contracted
from ..engines.operations.operations import Operations
from ..engines.operations.spill import StoredSums
from ..engines.operations.tally import Pickers, PlacedRule
from ..engines.operations.vectors import Vector, VectorType
from ..engines.ranks.edges import RowsOnDisk
from .host_level import NO_BOUNDS, Contracting, HostLevel, Moves, Visit
from .labelling import HOST
from .levels import Level

NUMBERS = VectorType(np.uint32)
LABELS = VectorType(np.uint32, ghosts=True)
BITS = VectorType(np.uint8, ghosts=True)
TURNS = VectorType(np.uint8, ghosts=True)
SUMS = VectorType(np.uint64, ghosts=True)

_CLASSES_MOVED = ByteOr(np.uint8(0), np.uint8((1 << CLASSES) - 1))
_NOTHING = Vector(np.empty(0, np.uint8), np.empty(0, np.uint8))
_LEFT_BYTES = 4 + 8 + 8  # of a vertex on disk: label, mass, offset


class SpreadLevel(HostLevel):
    """Level 0, of any layout. order: the global id of each number."""

    def __init__(
        self,
        contractions: Contracting,
        operations: Operations,
        amounts: Amounts,
        order: NDArray[np.uint32],
    ) -> None:
        super().__init__(amounts, len(order))
        self._contractions = contractions
        self._operations, self._order = operations, order
        adjacencies = operations.graph.adjacencies
        self.on_disk = any(isinstance(a.rows, RowsOnDisk) for a in adjacencies)
        self._labels: Vector | None = None
        self._class_of = np.empty(0, np.uint8)
        self._make_labels()

    def _make_labels(self) -> Vector:
        """Return the vector of labels, which is made if it was freed."""
        if self._labels is None:
            self._numbers, self._labels = (self._operations.vector(v) for v in (NUMBERS, LABELS))
            self._operations.put_numbers(self._numbers, self._order)
        return self._labels

    def _free_labels(self) -> None:
        del self._numbers
        self._labels = None

    def _make_room(self) -> None:
        operations = self._operations
        self._make_labels()
        self._picked, self._turns = operations.vector(NUMBERS), operations.vector(TURNS)
        self._moved, self._marks = operations.vector(BITS), operations.vector(BITS)

    def _free_room(self) -> None:
        self._forget_communities()
        self._picked = self._turns = self._moved = self._marks = _NOTHING
        self._class_of = np.empty(0, np.uint8)
        self._operations.forget_tallies()

    def left_bytes(self) -> int:
        return 0

    def strengths(self) -> NDArray[np.uint64]:
        return self._by_number(self._sums_within(lambda word: word.fill(1)))

    def _visit_within(self, visit: Visit) -> int:
        def set_word(word: Any, label: Any) -> None:
            word[:] = label
            word += np.uint64(1)

        operations = self._operations
        labels = self._make_labels()
        sums = self._sums_within(lambda word: operations.each(set_word, word, reads=[labels]))
        self._marks.fill(0)
        return self._visit_sums(visit, sums)

    def _sums_within(self, fill: Callable[[Vector], None]) -> Vector:
        """Return what the edges of each vertex to others with the same word amount to. fill: fills
        the words.
        """
        self._make_labels()
        word, sums = (self._operations.vector(SUMS) for _ in range(2))
        fill(word)
        self._operations.gather_across(AmountsWithin(self.amounts), word, sums)
        return sums

    def _visit_sums(self, visit: Visit, sums: Vector) -> int:
        if self._operations.communicator.size == 1:  # no list of all of them is held
            self._operations.each(visit, reads=[self._numbers, sums])
            return int(sums.own.sum(dtype=np.uint64))
        numbers, told = self._operations.list_where(_all, self._numbers, sums)
        for at in HOST.windows(self.count):
            visit(numbers[at], told[at])
        return int(told.sum(dtype=np.uint64))

    def split(self) -> NDArray[np.uint32]:
        groups = np.empty(self.count, np.uint32)
        groups[self._order] = self.label
        return HOST.named_by_least(self._operations.join(groups)[self._order])

    def between(self, label: NDArray[np.uint32], labels: int) -> Contracted:
        self._set_labels(label)
        pairs = labels * labels // 2
        return self._operations.contract(self._make_labels(), self.amounts, pairs)

    def contract(self, label: NDArray[np.uint32], labels: int) -> Level | None:
        self._free_room()
        self._set_labels(label)
        found = self._contractions.pair_sums(labels, self.left_bytes())
        self._operations.add_pairs(found, self._make_labels(), self.amounts, loops=True)
        self._free_labels()
        if self._operations.communicator.rank:
            return None
        inside = np.zeros(labels, np.uint64)
        self._add_inside(inside, label)
        return self._contractions.level_of(found, labels, inside, self.left_bytes())

    def _by_number(self, vector: Vector) -> NDArray[Any]:
        """Return the values of all vertices, on all ranks."""
        values = np.empty(self.count, vector.own.dtype)

        def take(numbers: Any, told: Any) -> None:
            values[numbers] = told

        if self._operations.communicator.size == 1:  # no list of all of them is held
            self._operations.each(take, reads=[self._numbers, vector])
        else:
            take(*self._operations.list_where(_all, self._numbers, vector))
        return values

    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        self._set(self._make_labels(), label)

    def _set(self, vector: Vector, by_number: NDArray[Any]) -> None:
        """Set the values of all vertices."""

        def set_values(into: Any, numbers: Any) -> None:
            into[:] = by_number[numbers]

        self._operations.each(set_values, vector, reads=[self._numbers])

    def _move_class(self, i: int) -> int:
        vertices, labels = self._picks(i, self._rule(self.label, NO_BOUNDS, NO_BOUNDS))
        self._apply(self.label, vertices, labels)
        self._note_moved(vertices, i)
        return len(vertices)

    def _join_class(self, i: int, groups: NDArray[np.uint32]) -> int:
        joining = self._listed_class(i)
        joining = joining[self._alone[joining]]
        if not len(joining):
            return 0
        groups[joining] = UNREACHED
        vertices, labels = self._picks(i, self._rule(self.refined, self.label, groups))
        still_alone = self._alone[vertices]
        vertices, labels = vertices[still_alone], labels[still_alone]
        groups[joining] = self.label[joining]
        self._apply(self.refined, vertices, labels)
        self._alone[vertices] = self._alone[labels] = False
        return len(vertices)

    def _apply(self, label: NDArray[np.uint32], vertices: NDArray, labels: NDArray) -> None:
        do_moves(vertices, labels, label, self.mass, self._totals)
        self._put_labels(vertices, labels)

    def _put_labels(self, vertices: NDArray[np.uint32], labels: NDArray[np.uint32]) -> None:
        self._operations.put(self._make_labels(), self._order[vertices], labels)

    def marks(self) -> NDArray[np.uint8]:
        return self._by_number(self._marks)

    def set_marks(self, marks: NDArray[np.uint8]) -> None:
        self._set(self._marks, marks)

    def _mark_all(self) -> None:
        def mark(marks: Any, degree: Any) -> None:
            marks[:] = degree > 0

        self._operations.each(mark, self._marks, reads=[self._operations.degrees()])

    def _note_moved(self, vertices: NDArray[np.uint32], i: int) -> None:
        """Note which vertices of a class have moved, for ``_end_marking``."""
        bits = np.full(len(vertices), 1 << i, np.uint8)
        self._operations.put(self._moved, self._ids_of(vertices), bits)

    def _end_marking(self) -> None:
        """Mark the neighbours of all vertices that have moved, by one spread of their classes. A
        vertex that was listed has looked at its neighbours when its own class had its turn: only
        those count that have moved since, or at the same time.
        """

        def mark(marks: Any, turns: Any) -> None:
            marks[:] = marks >> (np.maximum(turns, 1) - np.uint8(1)) != 0

        operations = self._operations
        places = operations.where(self._moved)
        operations.spread(_CLASSES_MOVED, self._moved, self._marks, True, places)
        operations.each(mark, self._marks, reads=[self._turns])
        self._moved.fill(0, places)

    def _ids_of(self, vertices: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the global ids of vertices that are given by number."""
        return self._order[vertices]

    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        def list_marked(turns: Any, marks: Any, numbers: Any) -> None:
            find_classes(np.ascontiguousarray(numbers), stamp, turns)
            turns += 1
            turns *= marks != 0

        if chosen is None:
            self._operations.each(list_marked, self._turns, reads=[self._marks, self._numbers])
            return
        self._class_of = np.empty(self.count, np.uint8)
        for at in HOST.windows(self.count):
            find_classes(_numbers_at(at), stamp, self._class_of[at])
        self._class_of[~chosen] = CLASSES
        class_of = self._class_of

        def list_chosen(turns: Any, numbers: Any) -> None:
            turns[:] = (class_of[numbers] + np.uint8(1)) % np.uint8(CLASSES + 1)

        self._operations.each(list_chosen, self._turns, reads=[self._numbers])

    def _listed_class(self, i: int) -> NDArray[np.signedinteger]:
        """Return the numbers of the chosen vertices of a class."""
        return np.flatnonzero(self._class_of == i)

    def _picks(self, i: int, rule: BestGain) -> Moves:
        """Return the moves that the listed vertices of a class pick, those of all ranks, and take
        their marks away. rule: without ``numbers``.
        """

        def begin(picked: Any, marks: Any, turns: Any) -> None:
            picked[:] = NO_LABEL
            marks[turns == i + 1] = 0

        vectors = self._picked, self._marks
        self._operations.each(begin, *vectors, reads=[self._turns])
        vectors = self._make_labels(), self._picked
        pickers = Pickers(self._turns, i + 1)
        self._operations.tally(self._placed(rule), self.amounts, *vectors, pickers)
        return self._list_moves()

    def _placed(self, rule: BestGain) -> PlacedRule:
        """Return a rule that knows the numbers of places."""
        numbers = self._numbers.own, self._numbers.shared
        return PlacedRule(*(rule._replace(numbers=part) for part in numbers))

    def _list_moves(self) -> Moves:
        vectors = self._numbers, self._picked, self._make_labels()
        numbers, picks, _ = self._operations.list_where(_is_other, *vectors)
        return numbers, picks


class DiskLevel(SpreadLevel):
    """A level above level 0, on disk. Its numbers are its places, so labels by number are those by
    place, too. inside: what the edges inside each vertex amount to, in both directions.
    """

    def __init__(
        self,
        contractions: Contracting,
        operations: Operations,
        amounts: Amounts,
        inside: StoredSums,
    ) -> None:
        HostLevel.__init__(self, amounts, inside.count)
        self._contractions, self._operations = contractions, operations
        self._inside = inside
        self.on_disk = True
        self._labels = Vector(self.label, np.empty(0, np.uint32))

    @property
    def amount_inside(self) -> int:
        return self._inside.total

    def left_bytes(self) -> int:
        return _LEFT_BYTES * self.count

    def split(self) -> NDArray[np.uint32]:
        return HOST.named_by_least(self._operations.join(self.label))

    def _make_labels(self) -> Vector:
        assert self._labels is not None
        return self._labels

    def _free_labels(self) -> None:
        self._set_labels(self.label)

    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        self._make_labels().own = label

    def _put_labels(self, vertices: NDArray[np.uint32], labels: NDArray[np.uint32]) -> None:
        """Do nothing: the labels are the given ones themselves."""

    def _visit_sums(self, visit: Visit, sums: Vector) -> int:
        for at in HOST.windows(self.count):
            visit(_numbers_at(at), sums.own[at])
        return int(sums.own.sum(dtype=np.uint64))

    def _add_inside(self, into: NDArray[np.uint64], label: NDArray[np.uint32]) -> None:
        for at in HOST.windows(self.count):
            add_by_label(label[at], self._inside.read(at), into)

    def _by_number(self, vector: Vector) -> NDArray[Any]:
        return vector.own

    def _set(self, vector: Vector, by_number: NDArray[Any]) -> None:
        vector.own[:] = by_number

    def _ids_of(self, vertices: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return vertices

    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        is_listed = self._marks.own if chosen is None else chosen
        for at in HOST.windows(self.count):
            turns = self._turns.own[at]
            find_classes(_numbers_at(at), stamp, turns)
            turns += 1
            turns *= is_listed[at] != 0

    def _listed_class(self, i: int) -> NDArray[np.signedinteger]:
        return np.flatnonzero(self._turns.own == i + 1)

    def _placed(self, rule: BestGain) -> PlacedRule:
        return PlacedRule(rule, rule)

    def _list_moves(self) -> Moves:
        found: list[Moves] = []
        for at in HOST.windows(self.count):
            picked = self._picked.own[at]
            moving = np.flatnonzero(_is_other(None, picked, self._make_labels().own[at]))
            found.append(((moving + at.start).astype(np.uint32), picked[moving]))
        numbers, labels = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return numbers, labels


def _numbers_at(at: slice) -> NDArray[np.uint32]:
    return np.arange(at.start, at.stop, dtype=np.uint32)


def _all(numbers: Any, values: Any) -> Any:
    return np.ones(len(numbers), np.bool_)


def _is_other(numbers: Any, picked: Any, label: Any) -> Any:
    return (picked != NO_LABEL) & (picked != label)
