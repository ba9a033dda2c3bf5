"""Paths between pairs that judges find anew.

Written apart from the programs that are judged, and simply: a search from a target, against edges,
corrects distances until none changes (Bellman: On a routing problem, 1958); then the least shortest
path is followed from the source.
"""

import numpy as np

from ..base.compiled import booleans, f64, f64s, i64, i64s, kernel, u32s

EDGE_BYTES = 2 * (4 + 8)
"""Bytes for each edge, in rows of both directions."""

SEARCH_BYTES = 8 + 4 + 4 + 1
"""Bytes of the arrays that ``label_from`` is given, for each vertex."""


@kernel(u32s, u32s, f64s, i64s, u32s, f64s)
def put_edges(sources, targets, weights, room, rows, heavy):
    """Put the target and the weight of each edge into its source's row. room: where each row goes
    on.
    """
    for e in range(sources.shape[0]):
        u = np.uintp(sources[e])
        rows[room[u]] = targets[e]
        heavy[room[u]] = weights[e]
        room[u] += 1


@kernel(i64s, u32s, f64s, i64, f64s, u32s, u32s, booleans)
def label_from(offsets, rows, heavy, first, distance, hops, queue, waits):
    """Find the least sum of weights of a path from a vertex to each one, and the fewest edges of
    such a path. Returns the number of edges looked at.

    distance, hops: by vertex; all distances are infinite before. queue: room for all vertices.
    waits: False everywhere before and after.
    """
    distance[first], hops[first] = 0.0, 0
    queue[0] = first
    head, count = np.int64(0), np.int64(1)
    looked = np.int64(0)
    while count > 0:
        u = queue[head]
        head = head + 1 if head + 1 < queue.shape[0] else 0
        count -= 1
        waits[u] = False
        for e in range(offsets[u], offsets[np.int64(u) + 1]):
            v = rows[e]
            through, edges = distance[u] + heavy[e], np.int64(hops[u]) + 1
            looked += 1
            if through < distance[v] or (through == distance[v] and edges < np.int64(hops[v])):
                distance[v], hops[v] = through, edges
                if not waits[v]:
                    waits[v] = True
                    at = head + count
                    queue[at if at < queue.shape[0] else at - queue.shape[0]] = v
                    count += 1
    return looked


@kernel(i64s, u32s, f64s, u32s, f64s, u32s, i64, u32s)
def follow_least(offsets, rows, heavy, number, distance, hops, source, path):
    """Write the least shortest path from a vertex to the vertex at distance 0 to ``path``.

    number: of vertices, by rising id. distance, hops: to the path's end, as ``label_from`` has
    found them. path: room for one vertex more than the edges.
    """
    u = np.uint32(source)
    for step in range(path.shape[0]):
        path[step] = u
        least = np.int64(-1)
        for e in range(offsets[u], offsets[np.int64(u) + 1]):
            v = rows[e]
            if (
                heavy[e] + distance[v] == distance[u]
                and np.int64(hops[v]) + 1 == np.int64(hops[u])
                and (least < 0 or number[v] < number[least])
            ):
                least = np.int64(v)
        if least < 0:
            break
        u = np.uint32(least)


@kernel(i64s, u32s, f64s, u32s, f64s, booleans, f64, booleans)
def check_steps(offsets, rows, heavy, vertex, distance, begins, slack, wrong):
    """Mark, in ``wrong``, the rows that are not one edge after the row before.

    vertex, distance: of the rows. begins: the rows that a path begins with, which are not looked
    at. slack: relative rounding error of distances.
    """
    for i in range(1, vertex.shape[0]):
        if begins[i]:
            continue
        u, v = vertex[i - 1], vertex[i]
        fits = False
        for e in range(offsets[u], offsets[np.int64(u) + 1]):
            off = abs(distance[i - 1] + heavy[e] - distance[i])
            if rows[e] == v and off <= slack * distance[i]:
                fits = True
        wrong[i] = not fits
