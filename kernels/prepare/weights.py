"""Weights of rows that are the same edge, combined: the least, the greatest, or their sum.

Bits of either kind rise with the weight. A sum does not depend on the order of rows: floats are
added up by exponent, in integers.
"""

from typing import NamedTuple

import numpy as np

from ..base.compiled import Struct, boolean, compiled, i64, i64s, kernel, u32s, u64s

MIN, MAX, SUM = range(3)
EXPONENTS = 256
"""Number of exponents of floats. A sum in the making is an int64 array with an element for each
exponent; a minimum or maximum has one element.
"""

_BITS = 23
"""Number of bits of a float's mantissa, without the first one."""


class Combining(NamedTuple):
    """The way to combine weights. how: MIN, MAX or SUM. floats: whether they are floats of 32 bits,
    or integers.
    """

    how: int
    floats: bool


COMBINING = Struct(Combining, (i64, boolean))


@compiled
def _add(combining, state, bits, first):
    """Add the bits of a weight to ``state``. first: whether it is the first weight."""
    value = np.int64(bits)
    if combining.how == SUM:
        if combining.floats:
            exponent = value >> _BITS
            mantissa = value & ((1 << _BITS) - 1)
            state[exponent] += mantissa | (1 << _BITS) if exponent else mantissa
        else:
            state[0] += value
    elif first:
        state[0] = value
    elif combining.how == MIN:
        state[0] = min(state[0], value)
    else:
        state[0] = max(state[0], value)


@compiled
def _bits(combining, state):
    """Return the bits of a combined weight; -1 where 32 bits cannot hold it."""
    if combining.how != SUM or not combining.floats:
        return state[0] if state[0] < 1 << 32 else np.int64(-1)
    total = 0.0
    for exponent in range(EXPONENTS - 1):
        total += state[exponent] * 2.0 ** (max(exponent, 1) - 127 - _BITS)
    single = np.float32(total)
    if single == np.float32(np.inf):
        return np.int64(-1)
    return np.int64(single.view(np.uint32))


@kernel(COMBINING, u32s, boolean, i64s)
def add_weights(combining, weights, first, state):
    """Add weights of one edge to ``state``, which is zeros at first. first: whether they are the
    first ones.
    """
    for i in range(weights.shape[0]):
        _add(combining, state, weights[i], first and i == 0)


@kernel(COMBINING, i64s)
def combined(combining, state):
    """Return the bits of the combined weight in ``state``; -1 if it is more than 32 bits can
    say.
    """
    return _bits(combining, state)


@kernel(u64s, u32s, COMBINING, u32s, u32s)
def rows_from_sorted_with(keys, weights, combining, row_counts, positions):
    """Make rows as csr.rows_from_sorted does, and combine the weights of the keys in place.

    Returns the number of keys left; -1 if a sum is more than 32 bits can say.
    """
    state = np.zeros(EXPONENTS, np.int64)
    count = 0
    i = 0
    while i < keys.shape[0]:
        key = keys[i]
        bits = np.int64(weights[i])
        last = i + 1
        while last < keys.shape[0] and keys[last] == key:
            last += 1
        if last > i + 1:
            state[:] = 0
            for j in range(i, last):
                _add(combining, state, weights[j], j == i)
            bits = _bits(combining, state)
            if bits < 0:
                return np.int64(-1)
        row_counts[np.int64(key >> np.uint64(32))] += 1
        positions[count] = np.uint32(key & np.uint64(0xFFFFFFFF))
        weights[count] = np.uint32(bits)
        count += 1
        i = last
    return np.int64(count)
