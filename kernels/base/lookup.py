"""Places of integers in a sorted array.

A table says where the integers with equal leading bits begin. If the integers are spread evenly,
one look at the table and one or two at the array find an integer, however many there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import i64, i64s, kernel, u8s, u32s

LOOKUP_BYTES = 8 + 4 * 2
"""The most bytes that a lookup takes for each integer."""


class Lookup(NamedTuple):
    """A table for finding integers. values: int64, rising. starts: uint32, by the bits from
    ``shift`` on of a value's difference from the least value: where such values begin.
    """

    values: NDArray[np.int64]
    starts: NDArray[np.uint32]
    shift: int


def lookup_of(values: NDArray[np.int64]) -> Lookup:
    """Make the lookup of ``values``: rising, at least one. Unsigned values are given by their bits,
    in the order of unsigned numbers from the least on.
    """
    spread = (int(values[-1]) - int(values[0])) % 2**64
    shift = max(0, spread.bit_length() - len(values).bit_length())
    starts = np.zeros((spread >> shift) + 2, np.uint32)
    _fill(values, shift, starts)
    return Lookup(values, starts, shift)


def find(lookup: Lookup, wanted: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the place of each wanted value, 0 if it is not there, and whether it is there.

    >>> places, there = find(lookup_of(np.array([-5, 2, 9])), np.array([9, 3, -5, 100]))
    >>> places.tolist(), there.tolist()
    ([2, 0, 0, 0], [True, False, True, False])
    """
    places, there = np.zeros(len(wanted), np.uint32), np.zeros(len(wanted), np.uint8)
    _find(*lookup, np.ascontiguousarray(wanted), places, there)
    return places, there.view(bool)


@kernel(i64s, i64, u32s)
def _fill(values, shift, starts):
    least = np.uint64(values[0])
    bucket = 0
    for i in range(values.shape[0]):
        value_bucket = np.int64((np.uint64(values[i]) - least) >> np.uint64(shift))
        while bucket < value_bucket:
            bucket += 1
            starts[bucket] = i
    while bucket + 1 < starts.shape[0]:
        bucket += 1
        starts[bucket] = values.shape[0]


@kernel(i64s, u32s, i64, i64s, u32s, u8s)
def _find(values, starts, shift, wanted, places, there):
    least = np.uint64(values[0])
    spread = np.uint64(values[values.shape[0] - 1]) - least
    for i in range(wanted.shape[0]):
        distance = np.uint64(wanted[i]) - least
        if distance > spread:
            continue
        bucket = np.int64(distance >> np.uint64(shift))
        low = np.int64(starts[bucket])
        high = np.int64(starts[bucket + 1])
        while high - low > 1:
            middle = (low + high) // 2
            if np.uint64(values[middle]) - least <= distance:
                low = middle
            else:
                high = middle
        if low < high and values[low] == wanted[i]:
            places[i] = low
            there[i] = 1
