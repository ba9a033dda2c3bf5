"""A level of a community search on a GPU (levels.py): all of its arrays are on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...kernels.gpu.graph import Array
from ...kernels.gpu_pieces.communities import (
    Places,
    Rounds,
    WeighedRows,
    contract,
    find_tied,
    split,
    sums_within,
    weighed,
)
from ...kernels.gpu_pieces.labelling import DeviceLabelling
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.operators import Amounts
from ..engines.operations.contract import Contracted
from .levels import Level

Note = Callable[[int], None]


class DeviceLevel(Level):
    """A level on a device.

    rows: of all places. order: uint32, the place of each number at level 0; None at other levels,
    where they are the same. inside: uint64, what the edges inside each vertex amount to, in both
    directions; None at level 0, where these are loops. note: called with the number of edges that
    were looked at.
    """

    def __init__(
        self,
        graph: ProgramGraph,
        rows: WeighedRows,
        note: Note,
        order: Array | None = None,
        inside: Array | None = None,
    ) -> None:
        super().__init__(rows.amounts, rows.cut.count)
        self._graph, self._device, self._note = graph, graph.device, note
        self._rows, self._order, self._inside = rows, order, inside
        self._labelling = DeviceLabelling(graph.device)
        self._rounds: Rounds | None = None
        with self._device.use() as cupy:
            self._own = cupy.arange(self.count, dtype=np.uint32)  # the number of each place
            if order is not None:
                self._own[order] = cupy.arange(self.count, dtype=np.uint32)
            self._words, self._bytes = cupy.empty(0, np.uint64), cupy.empty(0, np.uint8)
        own = self._own
        numbers = None if order is None else own
        words, bytes_ = self._words, self._bytes
        self._places = Places(numbers, words, own, own, words, bytes_, bytes_)

    @classmethod
    def ground(cls, graph: ProgramGraph, amounts: Amounts, order: Array, note: Note) -> DeviceLevel:
        """Return level 0. order: as of DeviceLevel."""
        return cls(graph, weighed(graph, amounts), note, order)

    def set_amounts(self, amounts: Amounts) -> None:
        super().set_amounts(amounts)
        self._rows = weighed(self._graph, amounts)

    # Arrays by number

    @property
    def label(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._by_number(self._places.community)

    @label.setter
    def label(self, label: Array) -> None:
        self._places.community = self._by_place(label)

    @property
    def refined(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._by_number(self._places.label)

    @property
    def mass(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._by_number(self._places.mass)

    @mass.setter
    def mass(self, mass: Array) -> None:
        self._places.mass = self._by_place(mass)

    def marks(self) -> Array:
        return self._by_number(self._places.marks)

    def set_marks(self, marks: Array) -> None:
        self._places.marks = self._by_place(marks)

    def alone(self) -> Array:
        return self._places.alone

    def _by_number(self, values: Array) -> Array:
        with self._device.use():
            return values if self._order is None or not len(values) else values[self._order]

    def _by_place(self, values: Array) -> Array:
        with self._device.use():
            return values if self._order is None or not len(values) else values[self._own]

    # Rounds

    def begin(self, label: Array) -> None:
        places, offsets = self._places, self._rows.cut.rows.offsets
        if self._rounds is None:
            room = self._graph.room // 4
            self._rounds = Rounds(self._device, self._rows, self._note, room)
        with self._device.use() as cupy:
            places.community = places.label = self._by_place(label).copy()
            places.totals = self._labelling.sums(label, self.mass, self.count)
            places.marks = (offsets[1:] > offsets[:-1]).astype(np.uint8)
            places.alone = cupy.zeros(self.count, np.uint8)

    def move(self, stamp: np.uint64) -> int:
        return self._run_round(False, stamp)

    def join(self, stamp: np.uint64) -> int:
        return self._run_round(True, stamp)

    def _run_round(self, joins: bool, stamp: np.uint64) -> int:
        assert self._rounds is not None
        return self._rounds.run(self._places, joins, self.factor, stamp)

    def amount_within(self) -> int:
        return self._unmark()[1]

    def begin_joining(self) -> int:
        places = self._places
        within, amount = self._unmark()
        with self._device.use():
            find_tied(self._device, places, self.factor, within)
            places.label = self._own.copy()
            places.totals = self.mass.copy()
        return amount

    def _unmark(self) -> tuple[Array, int]:
        """Take all marks away. Returns what the edges of each vertex inside its community amount
        to, and ``amount_within``.
        """
        within = self._sums_within(self._places.community)
        with self._device.use():
            self._places.marks.fill(0)
            return within, int(within.sum(dtype=np.uint64)) + self.amount_inside

    def take_up_joining(self, refined: Array, alone: Array) -> None:
        with self._device.use():
            self._places.label = self._by_place(refined).copy()
            self._places.alone = alone.copy()
            self._places.totals = self._labelling.sums(refined, self.mass, self.count)

    # The graph between labels

    @property
    def amount_inside(self) -> int:
        inside = super().amount_inside
        if self._inside is None:
            return inside
        with self._device.use():
            return inside + int(self._inside.sum(dtype=np.uint64))

    def contract(self, label: Array, labels: int) -> Level:
        """The rounds' arrays are freed; ``begin`` makes those of level 0 anew."""
        places = self._places
        self._rounds = None
        places.label = places.community
        places.totals, places.marks, places.alone = self._words, self._bytes, self._bytes
        by_place = self._by_place(label)
        inside = self._labelling.sums(by_place, self._sums_within(by_place), labels)
        with self._device.use():
            if self._inside is not None:
                inside += self._labelling.sums(label, self._inside, labels)
            if self._loops is not None:
                of_loops = label[self._loops.numbers]
                inside += self._labelling.sums(of_loops, self._loops.amounts, labels)
        rows = self._contracted(by_place, labels)
        return DeviceLevel(self._graph, rows, self._note, inside=inside)

    def between(self, label: Array, labels: int) -> Contracted:
        rows = self._contracted(self._by_place(label), labels)
        offsets, targets, sums = (
            self._labelling.fetch(array)
            for array in (rows.cut.rows.offsets, rows.cut.rows.near, rows.weights)
        )
        first = np.repeat(np.arange(labels, dtype=np.uint32), np.diff(offsets.astype(np.int64)))
        once = first < targets
        return Contracted(first[once], targets[once], sums[once])

    def _contracted(self, by_place: Array, labels: int) -> WeighedRows:
        self._note(self._rows.cut.rows.edges)
        return contract(self._device, self._rows, by_place, labels, self._graph.room // 4)

    def split(self) -> Array:
        trees = split(self._device, self._rows, self._places.community)
        self._note(self._rows.cut.rows.edges)
        return self._labelling.named_by_least(self._by_number(trees))

    def strengths(self) -> Array:
        return self._by_number(self._sums_within(None))

    def _sums_within(self, label: Array | None) -> Array:
        self._note(self._rows.cut.rows.edges)
        return sums_within(self._device, self._rows, label)
