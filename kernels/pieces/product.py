"""Products of the graph's matrix with a sparse vector, by columns and by rows, under a mask.

A breadth-first search is one product a level over the Boolean semiring (Yang, Buluc, Owens:
Implementing Push-Pull Efficiently in GraphBLAS, sections 3 and 4). A product by columns follows the
edges that leave the vector's vertices: push. In a product by rows each vertex combines what its
neighbours have: pull. Each optimization of the paper's section 5 is an argument: a semiring by type
(structure only), a mask or none, the value at which a row is full (early exit), any vector as
operand. The choice between them is not made here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from ..base.bitmap import contains, mask
from ..base.compiled import OFFSETS, Struct, compiled, i32s, i64, i64s, kernel, u32s, u64s
from ..base.copying import copy_values
from ..base.intrinsics import fetch_add, fetch_or, trailing_zeros
from ..bfs.push import EDGES_A_TURN, claim

WORDS_A_TURN = 8
"""Number of words, of 64 rows each, to which a thread pulls in a turn. It is small, as the rows of
hubs stand together.
"""

VERTICES_A_TURN = 1 << 12
"""Number of vertices of a list to which a thread gives their level in a turn."""

NEVER_FULL = np.uint64(2**64 - 1)
"""The value at which a row is full, in a semiring whose values are all 1. No row has this value, so
that all edges of a row are looked at.
"""

_BUFFER = 1 << 10


class Structure(NamedTuple):
    """The semiring (or, and) of which the pattern alone is read: vectors are bitmaps.

    full: the value of a row that needs no more.
    """

    full: np.uint64


class Values(NamedTuple):
    """The semiring (or, and) of words: each vertex has a word, 0 where a vector has no value, and
    so has each edge.
    """

    full: np.uint64


class Reached(NamedTuple):
    """The vertices found so far. visited: bitmap. values: uint64, by vertex, 0 where the vertex was
    not reached; (0,) for Structure. distance: int32, by vertex.
    """

    visited: NDArray[np.uint64]
    values: NDArray[np.uint64]
    distance: NDArray[np.int32]


STRUCTURE = Struct(Structure, (types.uint64,))
VALUES = Struct(Values, (types.uint64,))
REACHED = Struct(Reached, (u64s, u64s, i32s))


def sent(semiring: Any, values: Any, i: Any) -> Any:
    """Return the value that the i-th vertex of a list sends. Only kernels can call this, or the
    functions below.
    """
    raise NotImplementedError


def held(semiring: Any, x: Any, v: Any) -> Any:
    """Return the value of a vertex in a vector."""
    raise NotImplementedError


def times(semiring: Any, value: Any, entries: Any, edge: Any) -> Any:
    """Return the product of a value and an edge's entry."""
    raise NotImplementedError


def offer(semiring: Any, out: Any, v: Any, value: Any) -> Any:
    """Combine a value with the values that other threads give a vertex. Returns whether it is the
    first one.
    """
    raise NotImplementedError


def put(semiring: Any, out: Any, v: Any, value: Any) -> None:
    """Set the value of a vertex that no other thread knows."""
    raise NotImplementedError


def pattern(semiring: Any, out: Any, word: Any) -> Any:
    """Return a word that says which of 64 vertices have a value."""
    raise NotImplementedError


def take(semiring: Any, out: Any, v: Any) -> Any:
    """Return the value of a vertex, and remove it. For Structure, this removes the values of all
    vertices of its word.
    """
    raise NotImplementedError


@overload(sent)
def _sent(semiring, values, i):
    if semiring.instance_class is Values:
        return lambda semiring, values, i: values[i]
    return lambda semiring, values, i: np.uint64(1)


@overload(held)
def _held(semiring, x, v):
    if semiring.instance_class is Values:
        return lambda semiring, x, v: x[v]
    return lambda semiring, x, v: contains(x, v)


@overload(times)
def _times(semiring, value, entries, edge):
    if semiring.instance_class is Values:
        return lambda semiring, value, entries, edge: value & np.uint64(entries[np.uintp(edge)])
    return lambda semiring, value, entries, edge: value


@overload(offer)
def _offer(semiring, out, v, value):
    if semiring.instance_class is Values:

        def merge(semiring, out, v, value):
            return value & ~out[v] != 0 and fetch_or(out, np.intp(v), value) == 0

        return merge
    return lambda semiring, out, v, value: claim(out, v)


@overload(put)
def _put(semiring, out, v, value):
    if semiring.instance_class is Values:

        def put_value(semiring, out, v, value):
            out[v] = value

        return put_value

    def put_bit(semiring, out, v, value):
        out[v >> np.uint32(6)] |= mask(v)

    return put_bit


@overload(pattern)
def _pattern(semiring, out, word):
    if semiring.instance_class is Values:

        def look(semiring, out, word):
            bits = np.uint64(0)
            for v in range(64 * word, min(64 * word + 64, out.shape[0])):
                if out[v]:
                    bits |= np.uint64(1) << np.uint64(v & 63)
            return bits

        return look
    return lambda semiring, out, word: out[word]


@overload(take)
def _take(semiring, out, v):
    if semiring.instance_class is Values:

        def take_value(semiring, out, v):
            value = out[v]
            out[v] = 0
            return value

        return take_value

    def clear(semiring, out, v):
        out[v >> np.uint32(6)] = 0
        return np.uint64(1)

    return clear


@compiled
def _wanted(masked, vertices, w):
    """Return which of 64 vertices no mask hides; vertices past the last are always hidden."""
    if masked.shape[0]:
        return ~masked[w]
    left = vertices - 64 * w
    full_word = ~np.uint64(0)
    return full_word if left >= 64 else ~(full_word << np.uint64(left))


@kernel(STRUCTURE, OFFSETS, u32s, u32s, i64s, u64s, u32s, u64s, u64s, u32s, i64s)
@kernel(VALUES, OFFSETS, u32s, u32s, i64s, u64s, u32s, u64s, u64s, u32s, i64s)
def push_product(
    semiring, offsets, targets, queue, sums, values, entries, masked, out, listed, cursors
):
    """Multiply by columns (the paper's section 6.2). Run by several threads at once, as
    bfs/push.py.

    queue: the vector's vertices. sums: the number of edges that leave the vertices before each.
    values: uint64, of each vertex of ``queue``. entries: uint32, of each edge. Both are (0,) for
    Structure. masked: bitmap of vertices that need no value, or (0,). out: bitmap, or uint64 by
    vertex, zeros, receives the product. listed: receives the product's vertices, in no order.
    cursors: int64, two zeros. Returns how many vertices this thread listed.
    """
    hiding = masked.shape[0] > 0
    buffer = np.empty(_BUFFER, np.uint32)
    done = 0
    kept = 0
    total = sums[queue.shape[0]]
    while True:
        k = fetch_add(cursors, 0, EDGES_A_TURN)
        if k >= total:
            break
        stop = min(k + EDGES_A_TURN, total)
        i = np.searchsorted(sums, k, side="right") - 1
        while k < stop:
            row = np.int64(offsets[queue[i]]) - sums[i]
            row_stop = min(stop, sums[i + 1])
            value = sent(semiring, values, i)
            for e in range(row + k, row + row_stop):
                v = targets[np.uintp(e)]
                if hiding and contains(masked, v):
                    continue
                if offer(semiring, out, v, times(semiring, value, entries, e)):
                    buffer[kept] = v
                    kept += 1
                    if kept == _BUFFER:
                        at = fetch_add(cursors, 1, kept)
                        copy_values(buffer, kept, listed, at)
                        done += kept
                        kept = 0
            k = row_stop
            i += 1
    at = fetch_add(cursors, 1, kept)
    copy_values(buffer, kept, listed, at)
    return done + kept


@kernel(STRUCTURE, OFFSETS, u32s, u64s, u32s, u64s, u64s, i64s)
@kernel(VALUES, OFFSETS, u32s, u64s, u32s, u64s, u64s, i64s)
def pull_product(semiring, offsets, targets, x, entries, masked, out, cursor):
    """Multiply by rows (the paper's section 6.1), along incoming edges. Run by several threads at
    once.

    x: the vector: bitmap, or uint64 by vertex. entries, masked, out: as for push_product. cursor:
    int64, a zero. Returns the number of edges that this thread looked at.
    """
    vertices = offsets.shape[0] - 1
    words = (vertices + 63) // 64
    full = semiring.full
    examined = 0
    while True:
        first = fetch_add(cursor, 0, WORDS_A_TURN)
        if first >= words:
            return examined
        for w in range(first, min(first + WORDS_A_TURN, words)):
            wanted = _wanted(masked, vertices, w)
            while wanted:
                v = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(wanted))
                wanted &= wanted - np.uint64(1)
                start = np.int64(offsets[v])
                stop = np.int64(offsets[v + 1])
                value = np.uint64(0)
                e = start
                while e < stop and value != full:
                    there = held(semiring, x, targets[np.uintp(e)])
                    value |= times(semiring, there, entries, e)
                    e += 1
                examined += e - start
                if value:
                    put(semiring, out, v, value)


@kernel(STRUCTURE, u32s, u64s, REACHED, i64, OFFSETS, OFFSETS, u32s, i64s)
@kernel(VALUES, u32s, u64s, REACHED, i64, OFFSETS, OFFSETS, u32s, i64s)
def settle_listed(semiring, listed, out, reached, level, offsets, reverse_offsets, queue, cursors):
    """Put the vertices that a push gave, without those visited before, at ``level`` and into
    ``queue``.

    Afterwards ``out`` is zeros again. Run by several threads at once. cursors: int64, two zeros.
    Returns this thread's numbers of vertices, of edges that leave them, and of edges that enter
    them.
    """
    visited, values, distance = reached
    fresh = np.empty(VERTICES_A_TURN, np.uint32)
    count = 0
    forward = 0
    backward = 0
    while True:
        first = fetch_add(cursors, 0, VERTICES_A_TURN)
        if first >= listed.shape[0]:
            return count, forward, backward
        kept = 0
        for i in range(first, min(first + VERTICES_A_TURN, listed.shape[0])):
            v = listed[i]
            value = take(semiring, out, v)
            if claim(visited, v):
                distance[v] = level
                if values.shape[0]:
                    values[v] = value
                forward += np.int64(offsets[v + 1]) - np.int64(offsets[v])
                backward += np.int64(reverse_offsets[v + 1]) - np.int64(reverse_offsets[v])
                fresh[kept] = v
                kept += 1
        at = fetch_add(cursors, 1, kept)
        copy_values(fresh, kept, queue, at)
        count += kept


@kernel(STRUCTURE, u64s, REACHED, i64, OFFSETS, OFFSETS, u64s, i64s)
@kernel(VALUES, u64s, REACHED, i64, OFFSETS, OFFSETS, u64s, i64s)
def settle(semiring, out, reached, level, offsets, reverse_offsets, frontier, cursor):
    """Put the vertices that a pull gave at ``level``, as ``settle_listed`` does for a push.

    frontier: bitmap, receives the vertices. cursor: int64, a zero.
    """
    visited, values, distance = reached
    count = 0
    forward = 0
    backward = 0
    while True:
        first = fetch_add(cursor, 0, WORDS_A_TURN)
        if first >= visited.shape[0]:
            return count, forward, backward
        for w in range(first, min(first + WORDS_A_TURN, visited.shape[0])):
            given = pattern(semiring, out, w)
            new = given & ~visited[w]
            frontier[w] = new
            visited[w] |= new
            while given:
                bit = given & (~given + np.uint64(1))
                v = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(given))
                given ^= bit
                value = take(semiring, out, v)
                if new & bit:
                    distance[v] = level
                    if values.shape[0]:
                        values[v] = value
                    count += 1
                    forward += np.int64(offsets[v + 1]) - np.int64(offsets[v])
                    backward += np.int64(reverse_offsets[v + 1]) - np.int64(reverse_offsets[v])
