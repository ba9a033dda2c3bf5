"""Sets of vertices as bitmaps: bit ``v % 64`` of word ``v // 64``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled, i32s, i64, kernel, u32s, u64s
from .intrinsics import trailing_zeros

WORD = 64


def empty(vertices: int) -> NDArray[np.uint64]:
    """Return an empty set over ``vertices`` vertices, as uint64 words.

    The bits past the last vertex are set: in a bitmap of visited vertices they are then
    never taken for a vertex still to be found.

    >>> [hex(int(word)) for word in empty(65)]
    ['0x0', '0xfffffffffffffffe']
    """
    words = np.empty(-(-vertices // WORD), np.uint64)
    clear(words, vertices)
    return words


def clear(words: NDArray[np.uint64], vertices: int) -> None:
    """Make the bitmap ``words`` the empty set over ``vertices`` vertices."""
    words[:] = 0
    if vertices % WORD:
        words[-1] = np.uint64((-1 << vertices % WORD) & 0xFFFFFFFFFFFFFFFF)


@compiled
def contains(words, v):
    """Return 1 if vertex ``v`` (uint32) is in the set, else 0 (uint64)."""
    return (words[v >> np.uint32(6)] >> np.uint64(v & np.uint32(63))) & np.uint64(1)


@compiled
def mask(v):
    """Return the bit of vertex ``v`` (uint32) in its word."""
    return np.uint64(1) << np.uint64(v & np.uint32(63))


@compiled
def ones(word):
    """Count the set bits of a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel(u64s)
def size(words):
    """Count the vertices in the set."""
    count = np.int64(0)
    for w in range(words.shape[0]):
        count += ones(words[w])
    return count


@kernel(u64s)
def members(words):
    """Return the vertices in the set in rising order: uint32, a new array."""
    vertices = np.empty(size(words), np.uint32)
    count = 0
    for w in range(words.shape[0]):
        word = words[w]
        while word:
            vertices[count] = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(word))
            count += 1
            word &= word - np.uint64(1)
    return vertices


@kernel(u64s, u64s, u32s)
def difference(after, before, queue):
    """Write the vertices in ``after`` but not in ``before`` to ``queue``, in rising order. Returns
    their number.
    """
    count = 0
    for w in range(after.shape[0]):
        word = after[w] & ~before[w]
        while word:
            queue[count] = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(word))
            count += 1
            word &= word - np.uint64(1)
    return count


@kernel(u64s, i32s, i64, i64)
def add_where(words, values, low, high):
    """Add the vertices v with ``low <= values[v] <= high`` to the set."""
    for v in range(values.shape[0]):
        if low <= values[v] <= high:
            words[v >> 6] |= np.uint64(1) << np.uint64(v & 63)
