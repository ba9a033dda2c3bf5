"""Scan: one pass over an unordered edge list finds a level (edge-centric step).

No neighbour lists are needed, so nothing has to be built: a graph that is searched once and
has few levels is searched faster this way than it could be prepared (X-Stream: Roy,
Mihailovic, Zwaenepoel, SOSP 2013). An edge with one visited end reaches its other end; an
edge whose use is past is dropped from the list: both ends visited, or a directed one whose
target is.

Threads scan batches of their own and share ``visited``, which no scan changes, and
``parent``, where any of several parents of the same level may win: each is valid.
"""

import numpy as np

from ..base.bitmap import contains
from ..base.compiled import boolean, i32s, i64, i64s, kernel, u32s, u64s
from ..base.graph import UNREACHED
from ..base.intrinsics import fetch_add

WORDS_A_TURN = 256


@kernel(u32s, u32s, i64, u64s, u32s, boolean)
def scan(src, dst, length, visited, parent, directed):
    """Scan the first ``length`` rows, and move those that are still useful to the front. Returns
    their number.

    A vertex without a parent whose bit is not set in ``visited`` is found by this level.
    """
    kept = 0
    for i in range(length):
        u = src[i]
        v = dst[i]
        u_visited = contains(visited, u)
        v_visited = contains(visited, v)
        src[kept] = u
        dst[kept] = v
        if u_visited != v_visited:
            # Its visited end is in the frontier: earlier, this edge would have been used already.
            if u_visited:
                parent[v] = u
            elif not directed:
                parent[u] = v
        elif not u_visited:
            kept += 1
    return kept


@kernel(u64s, u32s, i32s, i64, i64s)
def settle(visited, parent, distance, level, cursor):
    """Put the vertices that a scan found into ``visited``, and set their distance. Returns their
    number.

    Run by several threads at once; ``cursor``: int64, one zero before the first thread starts.
    """
    count = 0
    words = visited.shape[0]
    while True:
        first = fetch_add(cursor, 0, WORDS_A_TURN)
        if first >= words:
            break
        for w in range(first, min(first + WORDS_A_TURN, words)):
            word = visited[w]
            if word == np.uint64(0xFFFFFFFFFFFFFFFF):
                continue
            for b in range(64):
                bit = np.uint64(1) << np.uint64(b)
                if word & bit:
                    continue
                v = w * 64 + b
                if parent[v] != UNREACHED:
                    word |= bit
                    distance[v] = level
                    count += 1
            visited[w] = word
    return count
