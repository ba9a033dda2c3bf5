"""Push: follow the edges that leave the frontier (top-down step).

``push_levels`` walks short frontiers vertex by vertex on one thread, level after level: on a
graph of thousands of tiny levels, returning to Python after each would cost more than the
level. ``push_edges`` is run by several threads at once, each taking runs of equally many
*edges*, found in the prefix sums of the frontier's degrees: no degree distribution unbalances
it (Bisson et al., Parallel Distributed BFS on the Kepler Architecture, section on mapping edges
to threads).

Of several threads a vertex belongs to the one that sets its bit in ``visited``; that one alone
writes its distance and parent, so one search has exactly one parent a vertex.
"""

import numpy as np
from numba import types

from ..base.bitmap import contains, mask
from ..base.compiled import OFFSETS, compiled, i32s, i64, i64s, kernel, u32s, u64s
from ..base.copying import copy_values
from ..base.intrinsics import fetch_add, fetch_or, prefetch

EDGES_A_TURN = 1 << 14
_BUFFER = 1 << 10
_ONE = np.uintp(1)

_AHEAD = np.uintp(6)
"""Number of vertices of the queue by which fetching runs ahead: a row is fetched into the cache so
many vertices before it is read, and its place as many before that.
"""

AHEAD = 2 * int(_AHEAD) + 1


@compiled
def claim(visited, v):
    """Return whether this call put ``v`` into ``visited``."""
    if contains(visited, v):
        return False
    bit = mask(v)
    return fetch_or(visited, np.intp(v >> np.uint32(6)), bit) & bit == 0


@kernel(OFFSETS, u32s, OFFSETS, u32s, u32s, i64, u64s, i32s, u32s, i64, i64, types.int64[:, ::1])
def push_levels(
    offsets,
    targets,
    reverse_offsets,
    queue,
    by,
    frontier,
    visited,
    distance,
    parent,
    level,
    most_work,
    works,
):
    """Push one level, and more while the frontier has at most ``most_work`` edges to follow.

    queue: uint32 (n + AHEAD,), its first ``frontier`` entries the frontier of ``level``; receives
    what is found, level after level. by: uint32 (n + 1,), room for who found it.
    works: int64 (levels, 3), receives what LevelWork holds of each: vertices found, edges that
    leave them, edges that enter them. Returns levels done and the place in ``queue`` of the last
    one's vertices.
    """
    # Unsigned, as an index that may be negative is looked at each time.
    first = np.uintp(0)
    last = np.uintp(frontier)
    done = 0
    while True:
        level += 1
        end = last
        queue[last : last + np.uintp(AHEAD)] = 0  # until vertices are found that stand there
        for i in range(first, last):
            prefetch(offsets, np.intp(queue[i + _AHEAD + _AHEAD]))
            prefetch(targets, np.intp(offsets[queue[i + _AHEAD]]))
            u = queue[i]
            for e in range(np.uintp(offsets[u]), np.uintp(offsets[np.uintp(u) + _ONE])):
                # Without a branch: which targets are new is anybody's guess.
                v = targets[e]
                queue[end] = v
                by[end] = u
                end += np.uintp(contains(visited, v) ^ np.uint64(1))
                visited[v >> np.uint32(6)] |= mask(v)
        forward = np.int64(0)
        backward = np.int64(0)
        for i in range(last, end):
            v = np.uintp(queue[i])
            distance[v] = level
            parent[v] = by[i]
            forward += np.int64(offsets[v + _ONE]) - np.int64(offsets[v])
            backward += np.int64(reverse_offsets[v + _ONE]) - np.int64(reverse_offsets[v])
        first = last
        last = end
        works[done, 0] = np.int64(last - first)
        works[done, 1] = forward
        works[done, 2] = backward
        done += 1
        if done == works.shape[0] or forward == 0 or forward > most_work:
            return done, np.int64(first)


@kernel(OFFSETS, u32s, i64s)
def degree_sums(offsets, frontier, sums):
    """Compute ``sums[i]``, the number of edges that leave ``frontier[:i]``, for i = 0 ..
    len(frontier).
    """
    total = 0
    for i in range(frontier.shape[0]):
        sums[i] = total
        u = frontier[i]
        total += np.int64(offsets[u + 1]) - np.int64(offsets[u])
    sums[frontier.shape[0]] = total


@kernel(OFFSETS, u32s, OFFSETS, u32s, i64s, u64s, i32s, u32s, i64, u32s, i64s)
def push_edges(
    offsets,
    targets,
    reverse_offsets,
    frontier,
    sums,
    visited,
    distance,
    parent,
    level,
    found,
    cursors,
):
    """Push one level. found: uint32, receives the vertices found, in no order.

    cursors: int64, two zeros before the first thread starts: edges taken, vertices found.
    Returns what LevelWork holds of this thread's share: vertices found, edges that leave them,
    edges that enter them.
    """
    count = 0
    forward = 0
    backward = 0
    buffer = np.empty(_BUFFER, np.uint32)
    held = 0
    total = sums[frontier.shape[0]]
    while True:
        k = fetch_add(cursors, 0, EDGES_A_TURN)
        if k >= total:
            break
        stop = min(k + EDGES_A_TURN, total)
        i = np.searchsorted(sums, k, side="right") - 1
        while k < stop:
            u = frontier[i]
            row = np.int64(offsets[u]) - sums[i]
            row_stop = min(stop, sums[i + 1])
            for e in range(row + k, row + row_stop):
                v = targets[e]
                if claim(visited, v):
                    distance[v] = level
                    parent[v] = u
                    forward += np.int64(offsets[v + 1]) - np.int64(offsets[v])
                    backward += np.int64(reverse_offsets[v + 1]) - np.int64(reverse_offsets[v])
                    buffer[held] = v
                    held += 1
                    if held == _BUFFER:
                        at = fetch_add(cursors, 1, held)
                        copy_values(buffer, held, found, at)
                        count += held
                        held = 0
            k = row_stop
            i += 1
    at = fetch_add(cursors, 1, held)
    copy_values(buffer, held, found, at)
    return count + held, forward, backward
