"""A search by one thread, of a graph in memory: for searches of few vertices a level, which would
wait for each other's threads longer than they search.
"""

import numpy as np

from ..base.compiled import i64, kernel, u8s, u16s, u32s
from .piece import PIECE


@kernel(PIECE, i64, i64, u8s, u32s)
@kernel(PIECE, i64, i64, u16s, u32s)
@kernel(PIECE, i64, i64, u32s, u32s)
def search_alone(piece, source, most, distance, queue):
    """Breadth-first from a vertex, ``most`` levels at most; (vertices reached, sum of their
    distances, the greatest one, edges looked at), or -1 for the vertices where a distance is too
    great for ``distance``.

    Of a subgraph whose rows and targets are places, all of it at hand. distance: receives those of
    vertices that are reached, and the greatest number of its type for others. queue: room for all.
    """
    offsets, targets, _, _, _ = piece
    nowhere = (np.int64(1) << np.int64(8 * distance.itemsize)) - 1
    distance[:] = nowhere
    distance[source] = 0
    queue[0] = source
    first = 0
    last = 1
    level = 0
    total = edges = np.int64(0)
    while first < last and level < most:
        end = last
        for i in range(first, last):
            u = queue[i]
            stop = np.int64(offsets[u + 1])
            edges += stop - np.int64(offsets[u])
            for e in range(np.int64(offsets[u]), stop):
                v = targets[np.uintp(e)]
                if distance[v] == nowhere:
                    if level + 1 == nowhere:
                        return np.int64(-1), total, level, edges
                    distance[v] = level + 1
                    queue[end] = v
                    end += 1
        total += (level + 1) * (end - last)
        if end > last:
            level += 1
        first, last = last, end
    return np.int64(last), total, level, edges
