"""Vertices that visits found, as lists and as bitmaps: where they are owned, and on their way
there.

``places`` leads from the numbers of a list to those of the bitmap.
"""

import numpy as np
from numba import types

from ..base.bitmap import contains, mask, members, ones, size
from ..base.compiled import i32s, i64, i64s, kernel, u32s, u64s
from ..base.intrinsics import trailing_zeros
from ..base.numbering import NUMBERING, is_identity, past_word, renumber


@kernel(u64s, u64s, u64s, i32s, i64)
def next_level(visited, frontier, found, distance, level):
    """Move newly found vertices to the frontier: mark them as visited, set their distance to
    ``level``, and clear ``found``. Vertices visited before are left out. Returns the number of new
    vertices.
    """
    count = 0
    for w in range(visited.shape[0]):
        word = found[w] & ~visited[w]
        visited[w] |= word
        frontier[w] = word
        found[w] = 0
        while word:
            distance[np.int64(w) * 64 + np.int64(trailing_zeros(word))] = level
            count += 1
            word &= word - np.uint64(1)
    return count


@kernel(u64s, NUMBERING, i64)
def numbers_in(words, places, count):
    """Return, in rising order as uint32, the numbers below ``count`` whose places are set in the
    bitmap ``words``.
    """
    if is_identity(places):
        numbers = members(words)
        done = numbers.shape[0]
        while done and numbers[done - 1] >= count:
            done -= 1
        return numbers[:done]
    numbers = np.empty(min(size(words), count), np.uint32)
    done = 0
    i = 0
    while i < count:
        v = renumber(places, i)
        word = words[v >> np.uint32(6)]
        if word == 0:
            i = past_word(places, i, v)
            continue
        if word & mask(v):
            numbers[done] = i
            done += 1
        i += 1
    return numbers[:done]


@kernel(u32s, NUMBERING, u64s)
def add_all(vertices, places, words):
    """Add vertices to a bitmap."""
    for i in range(vertices.shape[0]):
        v = renumber(places, vertices[i])
        words[v >> np.uint32(6)] |= mask(v)


@kernel(u32s, u32s, NUMBERING, u64s, u64s, u32s)
def admit(vertices, parents, places, visited, found, parent):
    """Put those of ``vertices`` into ``found`` that are neither in ``found`` nor visited. Returns
    their number.

    parents: uint32, of each vertex, or (0,) where they are not known yet.
    """
    new = 0
    for i in range(vertices.shape[0]):
        v = renumber(places, vertices[i])
        if not contains(visited, v) and not contains(found, v):
            found[v >> np.uint32(6)] |= mask(v)
            new += 1
            if parents.shape[0]:
                parent[v] = parents[i]
    return new


@kernel(u32s, u32s, NUMBERING, i64, i32s, u32s, types.uint32)
def adopt(vertices, candidates, places, level, distance, parent, unreached):
    """Take a parent for each vertex that was found at ``level`` and has none yet.

    vertices, candidates: uint32, of one length.
    """
    for i in range(vertices.shape[0]):
        v = renumber(places, vertices[i])
        if distance[v] == level and parent[v] == unreached:
            parent[v] = candidates[i]


@kernel(u32s, u32s, i64, i64s, u32s, u32s)
def sort_by_remainder(vertices, parents, of, starts, quotients, sorted_parents):
    """Sort vertices into bins by their remainder modulo ``of``, and divide them by ``of``.

    starts: int64 (of + 1,), receives where each bin begins in ``quotients`` and
    ``sorted_parents``, both uint32, of the length of ``vertices``.
    """
    starts[:] = 0
    for i in range(vertices.shape[0]):
        starts[np.int64(vertices[i]) % of + 1] += 1
    for p in range(of):
        starts[p + 1] += starts[p]
    at = starts[:-1].copy()
    for i in range(vertices.shape[0]):
        p = np.int64(vertices[i]) % of
        quotients[at[p]] = np.int64(vertices[i]) // of
        sorted_parents[at[p]] = parents[i]
        at[p] += 1


@kernel(u32s, u32s, u64s, i64s, u32s)
def to_bitmap(vertices, parents, words, before, ordered):
    """Write distinct vertices as a bitmap, and their parents in the order of rising vertices.

    words: uint64, zeros. before: int64, of its length, receives the number of vertices before each
    word. ordered: uint32, receives the parents.
    """
    for i in range(vertices.shape[0]):
        words[vertices[i] >> np.uint32(6)] |= mask(vertices[i])
    count = 0
    for w in range(words.shape[0]):
        before[w] = count
        count += ones(words[w])
    for i in range(vertices.shape[0]):
        v = vertices[i]
        w = v >> np.uint32(6)
        ordered[before[w] + ones(words[w] & (mask(v) - np.uint64(1)))] = parents[i]
