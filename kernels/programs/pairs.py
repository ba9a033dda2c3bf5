"""Distances between given pairs of vertices by one thread, of a graph in memory.

Each pair is searched for from both of its ends at once, a level at a time on the side whose level
has fewer vertices (Pohl: Bi-directional Search, Machine Intelligence 6, 1971).
"""

import numpy as np

from ..base.compiled import i32s, inlined, kernel, u32s
from ..pieces.piece import PIECE


@inlined
def _advance(piece, level, other, queue, first, last):
    """Find the next level of one side. Returns (hops between the ends if the sides meet, else -1;
    the end of the queue; edges looked at).

    The first vertex that the other side has seen, too, is on a shortest path: had the sides met on
    a shorter one, a level before would have found it.
    """
    edges = np.int64(0)
    end = last
    for j in range(first, last):
        u = queue[j]
        for e in range(piece.offsets[u], piece.offsets[u + 1]):
            v = piece.targets[e]
            edges += 1
            if level[v] < 0:
                level[v] = level[u] + 1
                queue[end] = v
                end += 1
                if other[v] >= 0:
                    return level[v] + other[v], end, edges
    return -1, end, edges


@kernel(PIECE, PIECE, u32s, u32s, i32s, i32s, i32s, u32s, u32s, allocates=False)
def hops_between(leaving, entering, sources, targets, hops, level, level_back, queue, queue_back):
    """Write the distance in hops from ``sources[i]`` to ``targets[i]`` to ``hops[i]``, -1 where
    there is no path. Returns the number of edges looked at.

    leaving, entering: all edges, by the vertices that they leave and enter; rows and targets are
    places. level, level_back: int32, by place; -1, and so again afterwards. queue, queue_back: room
    for all places.
    """
    edges = np.int64(0)
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        level[source] = 0
        level_back[target] = 0
        queue[0] = source
        queue_back[0] = target
        first, last, first_back, last_back = 0, 1, 0, 1
        hops[i] = -1
        if source == target:
            hops[i] = 0
        while hops[i] < 0 and first < last and first_back < last_back:
            if last - first <= last_back - first_back:
                hops[i], end, looked = _advance(leaving, level, level_back, queue, first, last)
                first, last = last, end
            else:
                hops[i], end, looked = _advance(
                    entering, level_back, level, queue_back, first_back, last_back
                )
                first_back, last_back = last_back, end
            edges += looked
        for j in range(last):
            level[queue[j]] = -1
        for j in range(last_back):
            level_back[queue_back[j]] = -1
    return edges
