"""Levels of a community search whose arrays are in host memory (levels.py): all that they have in
common.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernels.pieces.operators import Amounts, BestGain
from ...kernels.programs.communities import CLASSES, add_by_label, find_alone
from ..engines.operations.contract import PairSums
from ..engines.operations.operations import Operations
from .labelling import HOST
from .levels import Level

NO_BOUNDS = np.empty(0, np.uint32)

Moves = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""The numbers of vertices, and the communities that they move to."""

Visit = Callable[[Any, NDArray[np.uint64]], None]
"""A function of the numbers of some vertices, and of a value of each. Threads call it at once."""


class Contracting(Protocol):
    """The contractions that levels call (contractions.py, which describes the methods). ground: the
    operations of level 0.
    """

    @property
    def ground(self) -> Operations: ...

    def fits(self, labels: int, edges: int, left: int) -> bool: ...

    def pair_sums(self, labels: int, left: int) -> PairSums: ...

    def level_of(
        self, found: PairSums, labels: int, inside: NDArray[np.uint64], left: int
    ) -> Level: ...


class HostLevel(Level):
    """A level whose arrays are in host memory."""

    mass: NDArray[np.uint64]
    label: NDArray[np.uint32]
    refined: NDArray[np.uint32]

    def __init__(self, amounts: Amounts, count: int) -> None:
        super().__init__(amounts, count)
        self.label = self.refined = np.arange(count, dtype=np.uint32)
        self._alone = np.empty(0, np.bool_)
        self._totals = np.empty(0, np.uint64)

    def begin(self, label: NDArray[np.uint32]) -> None:
        self.label = self.refined = label.copy()
        self._make_room()
        self._totals = HOST.sums(label, self.mass, self.count)
        self._set_labels(self.label)
        self._mark_all()

    def alone(self) -> NDArray[np.uint8]:
        return self._alone.view(np.uint8)

    def take_up_joining(self, refined: NDArray[np.uint32], alone: NDArray[np.uint8]) -> None:
        self.refined, self._alone = refined.copy(), alone.astype(np.bool_)
        self._totals = HOST.sums(refined, self.mass, self.count)
        self._set_labels(self.refined)

    def move(self, stamp: np.uint64) -> int:
        self._list(stamp, None)
        moved = self._move_classes()
        self._end_marking()
        return moved

    def amount_within(self) -> int:
        return self._visit_within(lambda numbers, within: None) + self.amount_inside

    def begin_joining(self) -> int:
        self._alone = np.zeros(self.count, np.bool_)

        def decide(numbers: Any, within: NDArray[np.uint64]) -> None:
            find_alone(
                np.ascontiguousarray(numbers),
                np.ascontiguousarray(within),
                self.mass,
                self._totals,
                self.label,
                self.factor,
                self._alone,
            )

        amount = self._visit_within(decide) + self.amount_inside
        self.refined = np.arange(self.count, dtype=np.uint32)
        self._totals[:] = self.mass
        self._set_labels(self.refined)
        return amount

    def join(self, stamp: np.uint64) -> int:
        groups = self.label.copy()
        self._list(stamp, self._alone)
        return self._join_classes(groups)

    def _move_classes(self) -> int:
        return sum(self._move_class(i) for i in range(CLASSES))

    def _join_classes(self, groups: NDArray[np.uint32]) -> int:
        return sum(self._join_class(i, groups) for i in range(CLASSES))

    def _rule(
        self, mine: NDArray[np.uint32], parts: NDArray[np.uint32], groups: NDArray[np.uint32]
    ) -> BestGain:
        none = np.empty(0, np.uint32)
        return BestGain(self.factor, none, mine, self.mass, self._totals, parts, groups)

    def _forget_communities(self) -> None:
        """Free what ``begin`` makes anew, but for the labels."""
        self.refined, self._totals = self.label, self._totals[:0]
        self._alone = self._alone[:0]

    def _add_inside(self, into: NDArray[np.uint64], label: NDArray[np.uint32]) -> None:
        """Add what the edges inside vertices amount to, by label."""
        if self._loops is not None:
            add_by_label(label[self._loops.numbers], self._loops.amounts, into)

    @abstractmethod
    def left_bytes(self) -> int:
        """Return the bytes that the level still holds when it has been contracted; 0 for level 0,
        which is planned for.
        """

    @abstractmethod
    def _make_room(self) -> None:
        """Allocate what moves need, if it was freed."""

    @abstractmethod
    def _visit_within(self, visit: Visit) -> int:
        """Call a function with what the edges of each vertex to others of its community amount to.
        Returns the sum. No vertex is marked afterwards.
        """

    @abstractmethod
    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        """Take note of the labels of all vertices."""

    @abstractmethod
    def _mark_all(self) -> None:
        """Mark all vertices that have edges."""

    @abstractmethod
    def _end_marking(self) -> None:
        """End a round, of which all classes have had their turn."""

    @abstractmethod
    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        """List the chosen vertices by their classes in a round; None for those that are marked."""

    @abstractmethod
    def _move_class(self, i: int) -> int:
        """Take the marks of the vertices of a class away, and let them move; mark the neighbours of
        those that do, now or in ``_end_marking``. Returns how many move.
        """

    @abstractmethod
    def _join_class(self, i: int, groups: NDArray[np.uint32]) -> int:
        """Let the chosen vertices of a class that are still alone join others. groups: uint32, the
        community of each vertex; UNREACHED for these meanwhile. Returns how many join.
        """
