"""Functions of labels: numbers below the number of vertices, of which each vertex has one. Arrays
are in host memory here, and on a device in kernels/gpu_pieces/labelling.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.programs.communities import add_by_label, least_by_label, number_labels
from ..engines.operations.operations import WINDOW


class Labelling(Protocol):
    """The functions of labels where a program's arrays are."""

    def put(self, values: NDArray) -> Any:
        """Return an array, which is in host memory, where the program's arrays are."""
        ...

    def fetch(self, values: Any) -> NDArray:
        """Return an array in host memory."""
        ...

    def identity(self, count: int) -> Any:
        """Return the numbers from 0 on: uint32 (count,)."""
        ...

    def windows(self, count: int) -> Iterator[slice]:
        """Yield slices that together make ``count`` values, so that little memory is taken at
        once.
        """
        ...

    def numbered(self, label: Any) -> tuple[Any, int]:
        """Return labels as numbers from 0 on, by rising label, and how many there are.

        >>> HostLabelling().numbered(np.array([4, 1, 4, 1, 1], np.uint32))
        (array([1, 0, 1, 0, 0], dtype=uint32), 2)
        """
        ...

    def least_of_each(self, label: Any, values: Any, labels: int) -> Any:
        """Return the least value of each label, which is below ``labels``; UNREACHED where there is
        none. label, values: uint32, of each vertex; values None: its place.
        """
        ...

    def named_by_least(self, label: Any) -> Any:
        """Return labels of which each is the least place that it stands at.

        >>> HostLabelling().named_by_least(np.array([4, 1, 4, 1, 1], np.uint32))
        array([0, 1, 0, 1, 1], dtype=uint32)
        """
        ...

    def sums(self, label: Any, values: Any, labels: int) -> Any:
        """Return the sum of the values of each label: uint64 (labels,). values: uint64, of each
        vertex; None: each counts 1.
        """
        ...


class HostLabelling:
    """The functions of labels in host memory: Labelling describes them."""

    def put(self, values: NDArray) -> NDArray:
        return values

    def fetch(self, values: NDArray) -> NDArray:
        return values

    def identity(self, count: int) -> NDArray[np.uint32]:
        return np.arange(count, dtype=np.uint32)

    def windows(self, count: int) -> Iterator[slice]:
        for first in range(0, count, WINDOW):
            yield slice(first, min(first + WINDOW, count))

    def numbered(self, label: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], int]:
        number = np.zeros(int(label.max(initial=0)) + 1, np.uint32)
        labels = number_labels(label, number)
        return number[label], labels

    def least_of_each(
        self, label: NDArray[np.uint32], values: NDArray[np.uint32] | None, labels: int
    ) -> NDArray[np.uint32]:
        least = np.full(labels, UNREACHED, np.uint32)
        least_by_label(label, self.identity(len(label)) if values is None else values, least)
        return least

    def named_by_least(self, label: NDArray[np.uint32]) -> NDArray[np.uint32]:
        labels = int(label.max(initial=0)) + 1
        return self.least_of_each(label, None, labels)[label]

    def sums(
        self, label: NDArray[np.uint32], values: NDArray[np.uint64] | None, labels: int
    ) -> NDArray[np.uint64]:
        if values is None:
            return np.bincount(label, minlength=labels).astype(np.uint64)
        sums = np.zeros(labels, np.uint64)
        add_by_label(label, values, sums)
        return sums


HOST = HostLabelling()
