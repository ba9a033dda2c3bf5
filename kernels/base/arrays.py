"""Arrays that are declared once: what they hold is known before they are made.

What a run allocates, what its plan counts and what its checkpoint saves follow from the same
declarations, so that none of them can drift from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike


class Array(NamedTuple):
    """name, dtype and length of an array; fill: its first values, None where any do.

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
    """By name. xp: NumPy, or CuPy for the current device."""
    return {
        name: xp.empty(length, dtype) if fill is None else xp.full(length, fill, dtype)
        for name, dtype, length, fill, _ in arrays
    }
