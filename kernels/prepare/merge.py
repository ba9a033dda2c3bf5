"""Compressed sparse rows made from edges in any order by two transpositions, so that the neighbours
in each row rise.

A transposition goes through rows in some order, so the neighbours in each row of its result stand
in that order. It costs a random write for each edge, where sorting costs several.
"""

import numpy as np

from ..base.compiled import OFFSETS, i64s, kernel, u32s


@kernel(u32s, i64s)
def count(ends, counts):
    """Count how often each vertex is an end, and add this to ``counts``."""
    for end in ends:
        counts[end] += 1


@kernel(u32s, u32s, u32s, i64s, u32s, u32s)
def scatter(sources, targets, weights, room, into, into_weights):
    """Write each edge's target to the row of its source. room: where the next entry of each row
    goes; moves on.

    weights: of the edges, or (0,); ``into_weights`` is (0,) then, too.
    """
    weighted = weights.shape[0] > 0
    for i in range(sources.shape[0]):
        at = room[sources[i]]
        room[sources[i]] = at + 1
        into[at] = targets[i]
        if weighted:
            into_weights[at] = weights[i]


@kernel(OFFSETS, u32s, u32s, u32s, i64s, u32s, u32s)
def transpose(offsets, targets, weights, order, room, into, into_weights):
    """Write each row's vertex to the rows of its targets, row by row in ``order``. weights, room
    and into_weights: as for ``scatter``.
    """
    weighted = weights.shape[0] > 0
    for vertex in order:
        for i in range(np.int64(offsets[vertex]), np.int64(offsets[vertex + np.uint32(1)])):
            at = room[targets[i]]
            room[targets[i]] = at + 1
            into[at] = vertex
            if weighted:
                into_weights[at] = weights[i]
