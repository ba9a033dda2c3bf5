"""Betweenness from a source that has more shortest paths than a 64-bit float can count, by
operations.

A number of paths is ``value * 2**exponent``, with 1 <= value < 2. A product adds up plain floats,
so all values of a level are first multiplied by one power of two. That keeps a *window* of
exponents in the range of floats; a level with a wider range of exponents takes several products.
Powers of two change no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ....kernels.pieces.operators import Sum
from .marks import PlacesByLevel, VertexPlaces
from .operations import Operations
from .vectors import Counts, Vector, VectorType, vectors_bytes

WINDOW = 900
"""Number of exponents in a window. Its least value is a float, and so is the sum of 2^32 of its
greatest.
"""

_EXPONENTS = VectorType(np.int32)
_DEPENDENCIES = VectorType(np.float64)


class WidePaths:
    """Counts shortest paths again over known levels, and adds up the dependencies of vertices.

    score: receives the dependencies. paths, share, came: vectors of the plain counts, reused.
    paths: values of the numbers of paths; on the way back, the share that a vertex passes to the
    level before it. share: the values of ``paths`` within a window. came: sums of shares.
    """

    def __init__(
        self, operations: Operations, score: Vector, paths: Vector, share: Vector, came: Vector
    ) -> None:
        self._operations = operations
        self._score, self._paths, self._share, self._came = score, paths, share, came
        self._exponents = operations.vector(_EXPONENTS)
        self._depends = operations.vector(_DEPENDENCIES)

    def add(self, levels: PlacesByLevel) -> None:
        """Add the dependencies of one source to the score. levels: all levels of the source."""
        self._share.fill(0)
        self._count(levels)
        self._add_up(levels)

    def _count(self, levels: PlacesByLevel) -> None:
        paths, exponents, each = self._paths, self._exponents, self._operations.each
        paths.fill(0)
        paths.fill(1, levels[0])
        exponents.fill(0)
        for level in range(1, len(levels)):
            before, here = levels[level - 1], levels[level]
            for greatest in self._windows(before, falling=True):
                shift = partial(_put_in_window, greatest - WINDOW + 1, greatest, 1)
                self._gather(shift, before, here, along=True)
                each(partial(_join, greatest), paths, exponents, reads=[self._came], places=here)
            self._share.fill(0, before)

    def _add_up(self, levels: PlacesByLevel) -> None:
        paths, exponents, depends = self._paths, self._exponents, self._depends
        each, last = self._operations.each, len(levels) - 1
        depends.fill(0)
        for level in range(last, 0, -1):
            here = levels[level]
            if level < last:
                after = levels[level + 1]
                for least in self._windows(after, falling=False):
                    shift = partial(_put_in_window, least, least + WINDOW - 1, -1)
                    self._gather(shift, after, here, along=False)
                    reads = paths, exponents, self._came
                    each(partial(_depend, least), depends, reads=reads, places=here)
                self._share.fill(0, after)
            each(_settle, self._score, paths, reads=[depends], places=here)

    def _windows(self, places: VertexPlaces, falling: bool) -> Iterator[int]:
        """Yield the windows that cover the exponents of the vertices in ``places``: the greatest
        exponent of each window, falling, or the least one, rising.
        """
        exponents = self._exponents
        parts = [exponents.own[places.own], exponents.shared[places.shared]]
        left: NDArray[np.int32] = np.concatenate(parts) * np.int32(1 if falling else -1)
        while True:
            mine = float(left.max()) if len(left) else -np.inf
            first = self._operations.everyones(mine).max()
            if first == -np.inf:
                return
            greatest = int(first)
            yield greatest if falling else -greatest
            left = left[left <= greatest - WINDOW]

    def _gather(
        self, shift: Callable[..., None], tell: VertexPlaces, wanted: VertexPlaces, along: bool
    ) -> None:
        """Add up the shares of the vertices in ``tell`` for the vertices in ``wanted``. ``shift``
        chooses the shares of a window.
        """
        reads = self._paths, self._exponents
        self._operations.each(shift, self._share, reads=reads, places=tell)
        self._came.fill(0, wanted)
        self._operations.gather(Sum(), self._share, self._came, along, wanted)


def _put_in_window(
    least: int, greatest: int, sign: int, share: NDArray, values: NDArray, exponents: NDArray
) -> None:
    """Set the share to values times 2**exponent, or divided by it (sign -1); to 0 for exponents
    outside the window. Exponents count from the window's first one, the greatest, or the least if
    sign is -1.
    """
    first = greatest if sign > 0 else least
    within = (exponents >= least) & (exponents <= greatest)
    share[:] = np.where(
        within, np.ldexp(values, np.where(within, sign * (exponents - first), 0)), 0
    )


def _join(greatest: int, paths: NDArray, exponents: NDArray, came: NDArray) -> None:
    """Add the sums of a window to paths. A value of 0 stands for no paths yet."""
    value, came_exponents = np.frexp(came)
    came_exponents += np.int32(greatest)
    none, has_come = paths == 0, came != 0
    upper = np.maximum(exponents, came_exponents)
    np.copyto(upper, came_exponents, where=none)
    np.copyto(upper, exponents, where=~has_come)
    whole = np.ldexp(paths, np.where(none, 0, exponents - upper))
    whole += np.ldexp(value, np.where(has_come, came_exponents - upper, 0))
    value, whole_exponents = np.frexp(whole)
    paths[:] = 2 * value
    exponents[:] = np.where(whole > 0, upper + whole_exponents - 1, 0)


def _depend(
    least: int, depends: NDArray, paths: NDArray, exponents: NDArray, came: NDArray
) -> None:
    """Add the sums of a window to the dependencies."""
    depends += paths * np.ldexp(came, exponents - np.int32(least))


def _settle(score: NDArray, paths: NDArray, depends: NDArray) -> None:
    """Add the dependencies to the score. paths: receives the share that a vertex passes to the
    level before it.
    """
    score += depends
    paths[:] = (1 + depends) / paths


def wide_paths_bytes(counts: Counts) -> int:
    """Return the bytes of WidePaths: its vectors, and the exponents of a level."""
    exponents_of_a_level = 3 * 4 * (counts.own + counts.shared)
    return vectors_bytes(counts, (_EXPONENTS, _DEPENDENCIES)) + exponents_of_a_level
