"""Pull: every unvisited vertex looks for one parent among its incoming edges (bottom-up step).

Works through the bitmap of visited vertices word by word and stops at a vertex's first
visited neighbour; neighbours are stored hub first, so that is mostly the first one. The
test is against *visited*, not against the frontier: an unvisited vertex has no neighbour
visited earlier than the frontier, so both give the same answer and no frontier bitmap is
needed (operand reuse; Yang, Buluc, Owens: Implementing Push-Pull Efficiently in GraphBLAS).
Vertices found go into ``after``, so that none is taken for a parent in its own level.
"""

import numpy as np

from ..base.bitmap import contains
from ..base.compiled import OFFSETS, i32s, i64, i64s, kernel, u32s, u64s
from ..base.intrinsics import fetch_add, trailing_zeros

WORDS_A_TURN = 64


@kernel(OFFSETS, u32s, OFFSETS, u64s, u64s, i32s, u32s, i64, i64s)
def pull(
    reverse_offsets,
    reverse_targets,
    offsets,
    before,
    after,
    distance,
    parent,
    level,
    cursor,
):
    """Pull one level. Run by several threads at once; ``cursor``: int64, one zero before the first
    starts.

    Returns (found, forward, backward, examined): vertices found, edges that leave them,
    edges that enter them, edges looked at.
    """
    count = 0
    forward = 0
    backward = 0
    examined = 0
    words = before.shape[0]
    while True:
        first = fetch_add(cursor, 0, WORDS_A_TURN)
        if first >= words:
            break
        for w in range(first, min(first + WORDS_A_TURN, words)):
            unvisited = ~before[w]
            reached = np.uint64(0)
            while unvisited:
                bit = unvisited & (~unvisited + np.uint64(1))
                v = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(unvisited))
                unvisited ^= bit
                start = reverse_offsets[v]
                stop = reverse_offsets[v + 1]
                for e in range(start, stop):
                    u = reverse_targets[e]
                    if contains(before, u):
                        distance[v] = level
                        parent[v] = u
                        reached |= bit
                        examined += np.int64(e) - np.int64(start) + 1
                        count += 1
                        forward += np.int64(offsets[v + 1]) - np.int64(offsets[v])
                        backward += np.int64(stop) - np.int64(start)
                        break
                else:
                    examined += np.int64(stop) - np.int64(start)
            after[w] = before[w] | reached
    return count, forward, backward, examined
