"""Arrays that are declared once, so that their contents are known before they are made.

What a run allocates, what its plan counts and what its checkpoint saves follow from the same
declarations, so that none of them can drift from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Array(NamedTuple):
    """A declared array: its name, dtype and length. fill: its first values; None if any values will
    do.

    saved: whether a checkpoint keeps it, as it is more than a step's scratch.

    >>> declared = [Array("distance", np.int32, 5, fill=-1, saved=True), Array("queue", "u4", 5)]
    >>> total_bytes(declared), allocate(declared)["distance"].tolist()
    (40, [-1, -1, -1, -1, -1])
    """

    name: str
    dtype: DTypeLike
    length: int
    fill: Any = None
    saved: bool = False

    @property
    def bytes(self) -> int:
        return self.length * np.dtype(self.dtype).itemsize


def total_bytes(arrays: Iterable[Array]) -> int:
    return sum(array.bytes for array in arrays)


def allocate(arrays: Iterable[Array], xp: Any = np) -> dict[str, Any]:
    """Return the declared arrays by name, newly made. xp: NumPy, or CuPy for the current device."""
    return {
        name: xp.empty(length, dtype) if fill is None else xp.full(length, fill, dtype)
        for name, dtype, length, fill, _ in arrays
    }


class Buffers:
    """Arrays of one thread's task that are used again and again. Getting memory that was not
    touched before took a quarter of the processors' time of a build through files.
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray] = {}

    def take(self, name: str, length: int, dtype: DTypeLike) -> NDArray:
        """Return an array of any content, which takes the place of the array taken by this name
        before.

        >>> buffers = Buffers()
        >>> first = buffers.take("keys", 3, np.uint32)
        >>> np.shares_memory(first, buffers.take("keys", 2, np.uint32))
        True
        """
        kept = self._kept.pop(name, None)
        if kept is None or len(kept) < length:
            del kept  # before there is a larger one
            kept = np.empty(length, dtype)
        self._kept[name] = kept
        return kept[:length]

    def clear(self) -> None:
        self._kept.clear()
