"""Visits along one subgraph of a partition: what a rank of a search does in a superstep.

The visits of Pan, Pearce, Owens (Scalable Breadth-First Search on a GPU Cluster, section V): along
dd, dn and nd every target's state is at hand; along nn a target belongs to any partition and is
sent to it. So it is in a grid of partitions, to one of the same grid row or column. State is by the
local ids of the subgraph's rows and targets; parents are global ids.

All run on several threads at once. A vertex belongs to the thread that sets its bit in ``found``.

Of a subgraph whose edges pass by in runs, some are at hand: ``begin <= e < end``, edge e at
``targets[e - begin]``. ``offsets`` is the whole subgraph's; its first and last row there may be
cut, and their other edges be at hand on other threads. Rows come that have edges there, or none at
all. Places in ``targets`` are unsigned: Numba would test others for being negative, which took a
tenth of a push.
"""

import numpy as np
from numba import njit

from ..base.bitmap import contains, mask
from ..base.numbering import to_global
from ..bfs.push import claim


@njit(nogil=True, cache=True)
def push_rows(offsets, targets, begin, end, queue, rows, visited, found, parent):
    """Follow the edges of the rows in ``queue``.

    queue: uint32, rows of the frontier. rows: Numbering. visited, found: bitmaps, by target, as is
    parent: uint32. Returns (found, examined): vertices, edges.
    """
    new = 0
    examined = 0
    for i in range(queue.shape[0]):
        u = queue[i]
        first = max(np.int64(offsets[u]), begin) - begin
        last = min(np.int64(offsets[np.int64(u) + 1]), end) - begin
        examined += last - first
        for e in range(first, last):
            v = targets[np.uintp(e)]
            if not contains(visited, v) and claim(found, v):
                parent[v] = to_global(rows, u)
                new += 1
    return new, examined


@njit(nogil=True, cache=True)
def pull_rows(
    offsets, targets, begin, end, first, last, numbering, reached, visited, found, parent
):
    """Let the unvisited ones of the rows ``first <= v < last`` look for a parent.

    The rows are incoming edges: their targets are the candidates, numbered by ``numbering``.
    reached: bitmap of the visited ones of these. visited, found, parent: by row. Returns as
    push_rows.
    """
    new = 0
    examined = 0
    for row in range(first, last):
        v = np.uint32(row)
        if contains(visited, v) or contains(found, v):
            continue
        start = max(np.int64(offsets[row]), begin) - begin
        stop = min(np.int64(offsets[row + 1]), end) - begin
        for e in range(start, stop):
            examined += 1
            u = targets[np.uintp(e)]
            if contains(reached, u):
                if claim(found, v):
                    parent[v] = to_global(numbering, u)
                    new += 1
                break
    return new, examined


@njit(nogil=True, cache=True)
def push_away(offsets, targets, begin, end, queue, rows, sent, away, parents):
    """Follow edges whose targets others own, each target once in a search.

    sent: bitmap over all targets. away, parents: uint32, receive the targets and their parents;
    they hold as many as the rows of ``queue`` have edges at hand. Returns (found, examined).
    """
    new = 0
    examined = 0
    for i in range(queue.shape[0]):
        u = queue[i]
        first = max(np.int64(offsets[u]), begin) - begin
        last = min(np.int64(offsets[np.int64(u) + 1]), end) - begin
        examined += last - first
        for e in range(first, last):
            v = targets[np.uintp(e)]
            if claim(sent, v):
                away[new] = v
                parents[new] = to_global(rows, u)
                new += 1
    return new, examined


@njit(nogil=True, cache=True)
def pull_away(offsets, targets, begin, end, first, last, numbering, reached, sent, away, parents):
    """As pull_rows, of rows that others own: those in ``sent`` are left out.

    reached: bitmap; of the frontier is enough, as a vertex with a neighbour of an earlier level is
    visited. away, parents: as push_away's; they hold as
    many as there are rows with edges at hand.
    """
    new = 0
    examined = 0
    for row in range(first, last):
        v = np.uint32(row)
        if contains(sent, v):
            continue
        start = max(np.int64(offsets[row]), begin) - begin
        stop = min(np.int64(offsets[row + 1]), end) - begin
        for e in range(start, stop):
            examined += 1
            u = targets[np.uintp(e)]
            if contains(reached, u):
                if claim(sent, v):
                    away[new] = v
                    parents[new] = to_global(numbering, u)
                    new += 1
                break
    return new, examined


@njit(nogil=True, cache=True)
def sort_by_partition(away, parents, partitions, starts, local, sorted_parents):
    """Bin vertices by their partition, and number them as it does: 32 bits are enough there.

    starts: int64 (partitions + 1,), receives where each partition's begin in ``local`` and
    ``sorted_parents``, both uint32, of the length of ``away``.
    """
    starts[:] = 0
    for i in range(away.shape[0]):
        starts[np.int64(away[i]) % partitions + 1] += 1
    for p in range(partitions):
        starts[p + 1] += starts[p]
    at = starts[:-1].copy()
    for i in range(away.shape[0]):
        p = np.int64(away[i]) % partitions
        local[at[p]] = np.int64(away[i]) // partitions
        sorted_parents[at[p]] = parents[i]
        at[p] += 1


@njit(nogil=True, cache=True)
def admit(vertices, visited, found):
    """Put those of ``vertices`` into ``found`` that are not visited."""
    for i in range(vertices.shape[0]):
        v = vertices[i]
        if not contains(visited, v):
            found[v >> np.uint32(6)] |= mask(v)


@njit(nogil=True, cache=True)
def admit_own(vertices, parents, visited, found, parent):
    """As ``admit``, with parents that are known already; returns how many were put there."""
    new = 0
    for i in range(vertices.shape[0]):
        v = vertices[i]
        if not contains(visited, v) and not contains(found, v):
            found[v >> np.uint32(6)] |= mask(v)
            parent[v] = parents[i]
            new += 1
    return new


@njit(nogil=True, cache=True)
def to_bitmap(vertices, parents, words, before, ordered):
    """Distinct vertices as a bitmap, and their parents by rising vertex.

    words: uint64, zeros. before: int64, of its length, receives the vertices before each word.
    ordered: uint32, receives the parents.
    """
    admit(vertices, words, words)
    count = 0
    for w in range(words.shape[0]):
        before[w] = count
        count += ones(words[w])
    for i in range(vertices.shape[0]):
        v = vertices[i]
        w = v >> np.uint32(6)
        ordered[before[w] + ones(words[w] & (mask(v) - np.uint64(1)))] = parents[i]


@njit(nogil=True, cache=True)
def ones(word):
    """Set bits of a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, cache=True)
def add_all(vertices, numbering, words):
    """Add vertices, given by their local ids, to a bitmap of global ones."""
    for i in range(vertices.shape[0]):
        v = to_global(numbering, vertices[i])
        words[v >> np.uint32(6)] |= mask(v)


@njit(nogil=True, cache=True)
def rows_with_edges(offsets, queue):
    """(rows, edges): how many of the rows in ``queue`` have edges, and these."""
    rows = 0
    edges = 0
    for i in range(queue.shape[0]):
        u = np.int64(queue[i])
        degree = np.int64(offsets[u + 1]) - np.int64(offsets[u])
        rows += degree > 0
        edges += degree
    return rows, edges


@njit(nogil=True, cache=True)
def adopt(vertices, candidates, level, distance, parent, unreached):
    """Take a parent for each vertex that was found at ``level`` and has none yet.

    vertices, candidates: uint32, of one length.
    """
    for i in range(vertices.shape[0]):
        v = vertices[i]
        if distance[v] == level and parent[v] == unreached:
            parent[v] = candidates[i]
