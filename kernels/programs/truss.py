"""Truss numbers of a graph in memory: edges leave in rounds, by rising number of triangles.

The *support* of an edge is the number of triangles that it is in, among the edges that are left. A
round removes the edges whose support is at most k - 2, and takes their triangles from the supports
of the other edges. Once there is no such edge, k rises (Cohen, Trusses: Cohesive Subgraphs for
Social Network Analysis, 2008). All threads share a round, as in Kabir and Madduri, Parallel k-Truss
Decomposition on Multicore Systems, HPEC 2017: of a triangle that loses two edges at once, the edge
with the lesser number tells the third one.

Vertices are numbered by falling degree. Then the common neighbours of the ends of an edge are found
by the row of its second end, which is the shorter one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import Struct, i64, i64s, inlined, kernel, u8s, u32s, u64s
from ..base.intrinsics import fetch_add
from ..base.turns import come, take

EDGES_A_TURN = 1 << 12
_ROUND_TURN = 64

_LEFT, CURRENT, REMOVED = np.uint8(0), np.uint8(1), np.uint8(2)
_ONE = np.uint32(1)
_MINUS_ONE = np.uint32(0xFFFFFFFF)


class Neighbours(NamedTuple):
    """The edges of each vertex. offsets: int64 (n + 1,). vertices: uint32 (2 * m,), each row by
    rising vertex. edges: uint32 (2 * m,), the number of the edge to each of them.
    """

    offsets: NDArray[np.int64]
    vertices: NDArray[np.uint32]
    edges: NDArray[np.uint32]


NEIGHBOURS = Struct(Neighbours, (i64s, u32s, u32s))


@kernel(u64s, i64s, NEIGHBOURS)
def list_neighbours(keys, room, neighbours):
    """List the edges of each vertex. keys: uint64 (m,), rising: the lesser end of each edge in the
    high half, the other one in the low half. room: int64 (n,). neighbours: receives the lists.
    """
    offsets, vertices, edges = neighbours
    offsets[:] = 0
    for key in keys:
        offsets[(key >> np.uint64(32)) + np.uint64(1)] += 1
        offsets[(key & np.uint64(0xFFFFFFFF)) + np.uint64(1)] += 1
    for v in range(room.shape[0]):
        offsets[v + 1] += offsets[v]
        room[v] = offsets[v]
    for e in range(keys.shape[0]):
        u = np.uint32(keys[e] >> np.uint64(32))
        v = np.uint32(keys[e])
        vertices[room[u]] = v
        edges[room[u]] = e
        room[u] += 1
        vertices[room[v]] = u
        edges[room[v]] = e
        room[v] += 1


@inlined
def _find(vertices, first, stop, wanted):
    """Return the first place from ``first`` on whose vertex is not less than ``wanted``, looked for
    in growing steps.
    """
    step = np.int64(1)
    low = first
    while low + step < stop and vertices[low + step] < wanted:
        low += step
        step += step
    high = min(stop, low + step)
    while low < high:
        middle = (low + high) >> 1
        if vertices[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _count(offsets, vertices, key):
    """Return the number of common neighbours of the ends of an edge."""
    u = np.int64(key >> np.uint64(32))
    v = np.int64(key & np.uint64(0xFFFFFFFF))
    at = offsets[u]
    stop = offsets[u + 1]
    count = np.uint32(0)
    for i in range(offsets[v], offsets[v + 1]):
        at = _find(vertices, at, stop, vertices[i])
        if at == stop:
            break
        count += np.uint32(vertices[at] == vertices[i])
    return count


@kernel(u64s, NEIGHBOURS, u32s, i64s, allocates=False)
def count_supports(keys, neighbours, support, taken):
    """Count the triangles of each edge, by several threads at once: see turns.py."""
    offsets, vertices, _ = neighbours
    thread = come(taken)
    turns = (keys.shape[0] + EDGES_A_TURN - 1) // EDGES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = turn * EDGES_A_TURN
        for e in range(first, min(first + EDGES_A_TURN, keys.shape[0])):
            support[e] = _count(offsets, vertices, keys[e])
        turn = take(taken, thread, turns)


@inlined
def _lose(support, edge, level, limit, following, near, counts):
    """Take a triangle from the support of an edge, down to the level. An edge that comes to it is
    appended to ``following``; otherwise one that comes to the limit, to ``near``.
    """
    if support[edge] > level:
        before = fetch_add(support, edge, _MINUS_ONE)
        if before == level + _ONE:
            following[fetch_add(counts, 0, 1)] = edge
        elif before <= level:  # another thread was first
            fetch_add(support, edge, _ONE)
        elif before == limit + _ONE:
            near[fetch_add(counts, 1, 1)] = edge


@kernel(u64s, NEIGHBOURS, u32s, u8s, i64, i64, u32s, u32s, u32s, i64s, i64s, allocates=False)
def remove_edges(
    keys, neighbours, support, state, least, most, current, following, near, counts, taken
):
    """Take the triangles of current edges from the supports of other edges, by several threads at
    once: see turns.py. Returns the number of neighbours looked at.

    support: uint32 (m,). state: uint8 (m,), CURRENT, REMOVED, or 0. least: the support of the
    current edges, which no support comes below. current: uint32, the current edges. following,
    near: uint32 (m,), receive the edges whose supports come to ``least``, and of the others those
    whose supports come to ``most``. counts: int64 (2,), the lengths of both lists.
    """
    offsets, vertices, edges = neighbours
    level = np.uint32(least)
    limit = np.uint32(most)
    count = current.shape[0]
    thread = come(taken)
    turns = (count + _ROUND_TURN - 1) // _ROUND_TURN
    looked = np.int64(0)
    turn = take(taken, thread, turns)
    while turn >= 0:
        for i in range(turn * _ROUND_TURN, min((turn + 1) * _ROUND_TURN, count)):
            e = current[i]
            u = np.int64(keys[e] >> np.uint64(32))
            v = np.int64(keys[e] & np.uint64(0xFFFFFFFF))
            at = offsets[u]
            stop = offsets[u + 1]
            looked += offsets[v + 1] - offsets[v]
            for j in range(offsets[v], offsets[v + 1]):
                g = edges[j]
                if state[g] == REMOVED:
                    continue
                at = _find(vertices, at, stop, vertices[j])
                if at == stop:
                    break
                if vertices[at] != vertices[j]:
                    continue
                f = edges[at]
                if state[f] == REMOVED:
                    continue
                if state[f] == _LEFT and (state[g] == _LEFT or e < g):
                    _lose(support, f, level, limit, following, near, counts)
                if state[g] == _LEFT and (state[f] == _LEFT or e < f):
                    _lose(support, g, level, limit, following, near, counts)
        turn = take(taken, thread, turns)
    return looked
