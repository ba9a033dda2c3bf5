"""A search by one thread, of a graph in memory: for searches of few vertices a level, which would
wait for each other's threads longer than they search.
"""

import numpy as np

from ..base.compiled import i64, kernel, u8s, u16s, u32s
from ..base.intrinsics import prefetch
from ..pieces.piece import PIECE

_ONE = np.uintp(1)

_AHEAD = np.uintp(6)
"""Number of vertices of the queue by which fetching runs ahead: a row is fetched into the cache so
many vertices before it is read, and its place as many before that.
"""

AHEAD = 2 * int(_AHEAD)


@kernel(PIECE, i64, i64, u8s, u32s, u8s)
@kernel(PIECE, i64, i64, u16s, u32s, u8s)
@kernel(PIECE, i64, i64, u32s, u32s, u8s)
def search_alone(piece, source, most, distance, queue, seen):
    """Search breadth-first from a vertex, ``most`` levels at most. Returns (vertices reached, sum
    of their distances, the greatest distance, sum of 1 over the distances of the others, edges
    looked at), with -1 for the vertices if a distance is too great for ``distance``.

    The piece is a whole subgraph at hand, whose rows and targets are places. distance: receives the
    distances of vertices that are reached, and the greatest number of its type for others. queue:
    zeros, or as a search has left it; AHEAD entries more than there are vertices. seen: uint8, room
    for whether each vertex was seen.
    """
    offsets, targets, _, _, _ = piece
    distance[:] = (np.int64(1) << np.int64(8 * distance.itemsize)) - 1
    nowhere = np.int64(distance[source])
    seen[:] = 0
    seen[source] = 1
    queue[0] = source
    # Unsigned, as an index that may be negative is looked at each time.
    first = np.uintp(0)
    last = _ONE
    level = 0
    total = edges = np.int64(0)
    harmonic = 0.0
    while first < last and level < most:
        end = last
        for i in range(first, last):
            # What follows the end is of an earlier search, and does no harm.
            prefetch(offsets, np.intp(queue[i + _AHEAD + _AHEAD]))
            prefetch(targets, np.intp(offsets[queue[i + _AHEAD]]))
            u = np.uintp(queue[i])
            distance[u] = level
            start = np.uintp(offsets[u])
            stop = np.uintp(offsets[u + _ONE])
            edges += np.int64(stop - start)
            for e in range(start, stop):
                # Without a branch: which targets are new is anybody's guess.
                v = targets[e]
                queue[end] = v
                end += np.uintp(seen[v] ^ np.uint8(1))
                seen[v] = 1
        if end > last and level + 1 == nowhere:
            return np.int64(-1), total, level, harmonic, edges
        total += (level + 1) * np.int64(end - last)
        harmonic += np.int64(end - last) / (level + 1)
        if end > last:
            level += 1
        first, last = last, end
    for i in range(first, last):
        distance[queue[i]] = level  # of the last level, where there may be more
    return np.int64(last), total, level, harmonic, edges
