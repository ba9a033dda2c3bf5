"""Edges in any order into compressed sparse rows, whose neighbours rise: by two transpositions.

A transposition goes through rows in some order, so it leaves the neighbours of each row of what it
makes in that order. It costs a random write for an edge, where sorting costs several.
"""

import numpy as np

from ..base.compiled import OFFSETS, i64s, kernel, u32s


@kernel(u32s, i64s)
def count(ends, counts):
    """How often each vertex is an end; added to ``counts``."""
    for end in ends:
        counts[end] += 1


@kernel(u32s, u32s, u32s, i64s, u32s, u32s)
def scatter(sources, targets, weights, room, into, into_weights):
    """Each edge to the row of its source. room: where the next one of each row goes; moves on.

    weights: of the edges, or (0,), as is into_weights then.
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
    """Each row's vertex to the rows of its targets, row by row in ``order``. The rest as above."""
    weighted = weights.shape[0] > 0
    for vertex in order:
        for i in range(np.int64(offsets[vertex]), np.int64(offsets[vertex + np.uint32(1)])):
            at = room[targets[i]]
            room[targets[i]] = at + 1
            into[at] = vertex
            if weighted:
                into_weights[at] = weights[i]
