"""Levels of a community search: graphs whose vertices move between communities, and the graph
between communities that each is contracted to.

Arrays of a level are by number. At level 0 numbers follow the user's ids, and all ranks hold the
arrays; the first rank alone has the levels above, in memory (memory_level.py), or on disk where
they do not fit (spread_level.py). On a GPU all arrays are on the device (device_level.py). So
whatever is decided is the same on every engine (kernels/programs/communities.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ...kernels.pieces.operators import Amounts
from ..engines.operations.contract import Contracted


class GroundLoops(NamedTuple):
    """The self-loops of level 0. numbers: of their vertices. amounts: uint64, what they amount to,
    in both directions.
    """

    numbers: Any
    amounts: Any


class Level(ABC):
    """A graph whose vertices move between communities.

    amounts: what its edges amount to. count: the number of vertices. mass: uint64, of each vertex.
    factor: as in BestGain. label: uint32, the community of each vertex: the number of some vertex.
    refined: the same, of parts of communities. on_disk: whether the edges are read from disk.
    """

    mass: Any
    factor: float
    label: Any
    refined: Any
    on_disk = False

    def __init__(self, amounts: Amounts, count: int) -> None:
        self.amounts, self.count = amounts, count
        self._loops: GroundLoops | None = None

    def set_amounts(self, amounts: Amounts) -> None:
        """Set what edges amount to."""
        self.amounts = amounts

    def set_loops(self, loops: GroundLoops | None) -> None:
        """Set the self-loops of level 0, if the graph keeps any."""
        self._loops = loops

    @property
    def amount_inside(self) -> int:
        """Return what the edges inside vertices amount to, in both directions."""
        return 0 if self._loops is None else int(self._loops.amounts.sum(dtype=np.uint64))

    def masses(self) -> Any:
        """Return what the edges of each vertex amount to, with those inside it, at level 0."""
        masses = self.strengths()
        if self._loops is not None:
            masses[self._loops.numbers] += self._loops.amounts
        return masses

    @abstractmethod
    def begin(self, label: Any) -> None:
        """Put the vertices into communities, and mark all of them."""

    @abstractmethod
    def move(self, stamp: np.uint64) -> int:
        """Do a round of moves by the vertices that are marked. Returns the number of moves."""

    @abstractmethod
    def amount_within(self) -> int:
        """Return what the edges inside communities amount to, in both directions. No vertex is
        marked afterwards.
        """

    @abstractmethod
    def begin_joining(self) -> int:
        """Begin to divide the communities into parts; at first each vertex is one. Only vertices
        that are tied to their communities may join others: their edges into the community amount to
        what the masses make one expect, at least. Returns ``amount_within``.
        """

    @abstractmethod
    def join(self, stamp: np.uint64) -> int:
        """Do a round in which vertices that are parts by themselves join others. Returns how many
        do. Vertices that join at once do not join each other, and none leaves a part that it has
        joined or that others have: so parts are connected.
        """

    @abstractmethod
    def contract(self, label: Any, labels: int) -> Level | None:
        """Return the graph between labels, which are the numbers below ``labels``; None on ranks
        other than the first. Of this level, the labels and masses are left; ``begin`` renews level
        0.
        """

    @abstractmethod
    def between(self, label: Any, labels: int) -> Contracted:
        """Return the edges between labels, which are few, on rank 0, and none on other ranks. The
        labels of this level change.
        """

    @abstractmethod
    def split(self) -> Any:
        """Return, on rank 0, the communities, each divided into its connected parts."""

    @abstractmethod
    def strengths(self) -> Any:
        """Return what the edges of each vertex to others amount to."""

    @abstractmethod
    def marks(self) -> Any:
        """Return, as 1 or 0, which vertices are marked."""

    @abstractmethod
    def set_marks(self, marks: Any) -> None:
        """Mark these vertices, and no others."""

    @abstractmethod
    def alone(self) -> Any:
        """Return, as 1 or 0, which vertices may still join parts."""

    @abstractmethod
    def take_up_joining(self, refined: Any, alone: Any) -> None:
        """Go on with parts, and with the vertices that may still join some."""
