"""Paths between the two vertices of a pair, by one thread, of a graph in memory.

A pair is searched for from both of its ends at once (Pohl: Bi-directional Search, Machine
Intelligence 6, 1971): without weights a level at a time, on the side whose level has fewer
vertices; with weights by Dijkstra's algorithm, on the side whose heap has fewer.

Of several shortest paths, the one with the fewest edges is meant, and of these the one whose
vertices have the least numbers, from the first vertex that differs. First, vertices between the
meeting and the source get their distance to the target, in the reverse of the order in which the
search found them. The path then follows from the source: each next vertex has the least number of
those that are nearer to the target by one edge of a shortest path.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import Struct, boolean, f64, f64s, i32s, i64, inlined, kernel, u32s
from ..pieces.piece import PIECE, weight_of

FAR = np.inf

# Without weights


@inlined
def _next_level(piece, level, other, queue, first, last):
    """Find the next level of one side. Returns (hops between the ends if the sides meet, else -1;
    the end of the queue; edges looked at).

    The first vertex that the other side has seen, too, is on a shortest path: had the sides met on
    a shorter one, a level before would have found it.
    """
    edges = np.int64(0)
    end = last
    for j in range(first, last):
        u = queue[j]
        for e in range(np.int64(piece.offsets[u]), np.int64(piece.offsets[u + 1])):
            v = piece.targets[e]
            edges += 1
            if level[v] < 0:
                level[v] = level[u] + 1
                queue[end] = v
                end += 1
                if other[v] >= 0:
                    return level[v] + other[v], end, edges
    return -1, end, edges


@kernel(PIECE, PIECE, i64, i64, i32s, i32s, u32s, u32s, allocates=False)
def hops_between(leaving, entering, source, target, level, level_back, queue, queue_back):
    """Search for a path with the fewest edges. Returns (its edges, -1 if there is no path; vertices
    in ``queue``; vertices in ``queue_back``; edges looked at).

    leaving, entering: all edges, by the vertices that they leave and enter; rows and targets are
    places. level, level_back: int32, by place; -1 before. queue, queue_back: room for all places.
    """
    edges = np.int64(0)
    level[source] = 0
    level_back[target] = 0
    queue[0] = source
    queue_back[0] = target
    first, last, first_back, last_back = 0, 1, 0, 1
    hops = np.int64(0 if source == target else -1)
    while hops < 0 and first < last and first_back < last_back:
        if last - first <= last_back - first_back:
            hops, end, looked = _next_level(leaving, level, level_back, queue, first, last)
            first, last = last, end
        else:
            hops, end, looked = _next_level(
                entering, level_back, level, queue_back, first_back, last_back
            )
            first_back, last_back = last_back, end
        edges += looked
    return hops, last, last_back, edges


@kernel(PIECE, i64, i32s, i32s, u32s, i64, u32s, i64, u32s, u32s, allocates=False)
def trace_hops(
    leaving, hops, level, level_back, queue, count, queue_back, count_back, number, path
):
    """Write the vertices of the least shortest path to ``path``, after ``hops_between``. Returns
    (vertices in ``queue_back`` afterwards, edges looked at).

    number: of each place, which decides between paths. path: room for ``hops + 1`` vertices.
    """
    edges = np.int64(0)
    for j in range(count - 1, -1, -1):
        u = queue[j]
        left = hops - level[u]
        if left < 1 or level_back[u] >= 0:
            continue
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            edges += 1
            if level_back[leaving.targets[e]] == left - 1:
                level_back[u] = left
                queue_back[count_back] = u
                count_back += 1
                break
    u = queue[0]
    path[0] = u
    for step in range(1, hops + 1):
        least = np.int64(-1)
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            v = leaving.targets[e]
            edges += 1
            if level_back[v] == hops - step and (least < 0 or number[v] < number[least]):
                least = np.int64(v)
        u = np.uint32(least)
        path[step] = u
    return count_back, edges


@kernel(i32s, u32s, i64, allocates=False)
def forget_levels(level, queue, count):
    """Reset the levels of the first ``count`` vertices in ``queue``."""
    for j in range(count):
        level[queue[j]] = -1


# With weights


class HeapSide(NamedTuple):
    """One side of a search with weights; all arrays are by place, but ``heap``.

    distance: float64, from this side's end; the edges of a path decide between equal ones, which
    ``hops`` counts. Both are undefined for vertices that were not seen. at: uint32, 0 for vertices
    that were not seen, DONE for those whose distance is final, else one more than the vertex's
    place in the heap. heap: uint32, from its front a heap with four children a vertex, from its
    back the vertices that are done, in order.
    """

    distance: NDArray[np.float64]
    hops: NDArray[np.uint32]
    at: NDArray[np.uint32]
    heap: NDArray[np.uint32]


SIDE = Struct(HeapSide, (f64s, u32s, u32s, u32s))
SIDE_BYTES = 8 + 4 + 4 + 4
"""Bytes of a side for each vertex."""

DONE = np.uint32((1 << 32) - 1)


class Meeting(NamedTuple):
    """The outcome of a search with weights. distance: of the shortest path, infinite if there is
    none. hops: its edges. vertex: a vertex on it that both sides have seen. open, done, open_back,
    done_back: vertices in the heap, and done, of each side. edges: looked at.
    """

    distance: float
    hops: int
    vertex: int
    open: int
    done: int
    open_back: int
    done_back: int
    edges: int


MEETING = Struct(Meeting, (f64, *[i64] * 7))


@inlined
def _before(side, distance, hops, v):
    """Return whether a path is shorter than that to ``v``, or as short and of fewer edges."""
    return distance < side.distance[v] or (distance == side.distance[v] and hops < side.hops[v])


@inlined
def _rise(side, v, hole):
    """Put ``v`` at the place ``hole`` of the heap, or above."""
    while hole > 0:
        parent = (hole - 1) >> 2
        u = side.heap[parent]
        if not _before(side, side.distance[v], side.hops[v], u):
            break
        side.heap[hole] = u
        side.at[u] = hole + 1
        hole = parent
    side.heap[hole] = v
    side.at[v] = hole + 1


@inlined
def _take_least(side, size, done):
    """Take the nearest vertex out of the heap, which is done then, and return it. size: of the heap
    before. done: the number of vertices that were done before.
    """
    least, v = side.heap[0], side.heap[size - 1]
    size -= 1
    hole = np.int64(0)
    while 4 * hole + 1 < size:
        child = 4 * hole + 1
        for c in range(child + 1, min(child + 4, size)):
            u = side.heap[c]
            if _before(side, side.distance[u], side.hops[u], side.heap[child]):
                child = c
        u = side.heap[child]
        if not _before(side, side.distance[u], side.hops[u], v):
            break
        side.heap[hole] = u
        side.at[u] = hole + 1
        hole = child
    if size > 0:
        side.heap[hole] = v
        side.at[v] = hole + 1
    side.at[least] = DONE
    side.heap[side.heap.shape[0] - 1 - done] = least
    return least


@inlined
def _settle(piece, floats, side, other, size, done, best, best_hops, vertex):
    """Take the nearest vertex of one side, and shorten paths along its edges. Returns the size of
    the heap, the best path by both sides (distance, hops, vertex), and the edges looked at.
    """
    u = _take_least(side, size, done)
    size -= 1
    hops = side.hops[u] + np.uint32(1)
    edges = np.int64(0)
    for e in range(np.int64(piece.offsets[u]), np.int64(piece.offsets[u + 1])):
        v = piece.targets[e]
        edges += 1
        at = side.at[v]
        if at == DONE:
            continue
        through = side.distance[u] + weight_of(piece.weights[e], floats)
        if through > best or (at != 0 and not _before(side, through, hops, v)):
            continue
        side.distance[v] = through
        side.hops[v] = hops
        if at == 0:
            _rise(side, v, size)
            size += 1
        else:
            _rise(side, v, np.int64(at) - 1)
        if other.at[v] != 0:
            whole = through + other.distance[v]
            whole_hops = np.int64(hops) + np.int64(other.hops[v])
            if whole < best or (whole == best and whole_hops < best_hops):
                best, best_hops, vertex = whole, whole_hops, np.int64(v)
    return size, best, best_hops, vertex, edges


@kernel(PIECE, PIECE, boolean, i64, i64, SIDE, SIDE, allocates=False)
def meet(leaving, entering, floats, source, target, side, back):
    """Search for a shortest path. Returns a Meeting.

    leaving, entering: as for ``hops_between``, with weights. floats: whether these are floats.
    side, back: of the source and the target; ``at`` is 0 before. Sums of whole weights are exact
    below 2^53.
    """
    for one, end in ((side, source), (back, target)):
        one.distance[end] = 0.0
        one.hops[end] = 0
        one.at[end] = 1
        one.heap[0] = end
    size, done, size_back, done_back = np.int64(1), np.int64(0), np.int64(1), np.int64(0)
    best, hops, vertex, edges = FAR, np.int64(0), np.int64(-1), np.int64(0)
    if source == target:
        best, vertex = 0.0, source
    while size > 0 and size_back > 0:
        u, v = side.heap[0], back.heap[0]
        least = side.distance[u] + back.distance[v]
        least_hops = np.int64(side.hops[u]) + np.int64(back.hops[v])
        if least > best or (least == best and least_hops >= hops):
            break
        if size <= size_back:
            size, best, hops, vertex, looked = _settle(
                leaving, floats, side, back, size, done, best, hops, vertex
            )
            done += 1
        else:
            size_back, best, hops, vertex, looked = _settle(
                entering, floats, back, side, size_back, done_back, best, hops, vertex
            )
            done_back += 1
        edges += looked
    return Meeting(best, hops, vertex, size, done, size_back, done_back, edges)


@kernel(PIECE, SIDE, SIDE, MEETING, i64, u32s, u32s, f64s, allocates=False)
def trace_whole(leaving, side, back, found, source, number, path, distance):
    """Write the vertices of the least shortest path to ``path``, and their distances from the
    source, after ``meet`` with whole weights. Returns (vertices that ``back`` has done afterwards,
    edges looked at).

    number: as for ``trace_hops``. path, distance: room for ``found.hops + 1`` vertices.
    """
    edges = np.int64(0)
    done_back = found.done_back
    vertices = side.heap.shape[0]
    for j in range(vertices - found.done, vertices):  # those that were done last come first
        u = side.heap[j]
        left = found.distance - side.distance[u]
        hops = found.hops - np.int64(side.hops[u])
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            v = leaving.targets[e]
            edges += 1
            if (
                back.at[v] != 0
                and weight_of(leaving.weights[e], False) + back.distance[v] == left
                and np.int64(back.hops[v]) + 1 == hops
            ):
                back.distance[u] = left
                back.hops[u] = hops
                if back.at[u] == 0:
                    back.at[u] = DONE
                    back.heap[vertices - 1 - done_back] = u
                    done_back += 1
                break
    u = np.uint32(source)
    path[0] = u
    distance[0] = 0.0
    for step in range(1, found.hops + 1):
        least = np.int64(-1)
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            v = leaving.targets[e]
            edges += 1
            if (
                back.at[v] != 0
                and np.int64(back.hops[v]) == found.hops - step
                and weight_of(leaving.weights[e], False) + back.distance[v] == back.distance[u]
                and (least < 0 or number[v] < number[least])
            ):
                least = np.int64(v)
        u = np.uint32(least)
        path[step] = u
        distance[step] = found.distance - back.distance[u]
    return done_back, edges


@inlined
def _step_back(piece, side, u):
    """Return a vertex before ``u`` on a shortest path from a side's end, by float weights, the
    weight of the edge between, and edges looked at. piece: edges that lead to that end.
    """
    edges = np.int64(0)
    for e in range(np.int64(piece.offsets[u]), np.int64(piece.offsets[u + 1])):
        v = piece.targets[e]
        weight = weight_of(piece.weights[e], True)
        edges += 1
        if (
            side.at[v] == DONE
            and side.hops[v] + np.uint32(1) == side.hops[u]
            and side.distance[v] + weight == side.distance[u]
        ):
            return v, weight, edges
    return u, 0.0, edges


@kernel(PIECE, PIECE, SIDE, SIDE, MEETING, u32s, f64s, allocates=False)
def trace_floats(leaving, entering, side, back, found, path, distance):
    """Write the vertices of the shortest path that ``meet`` has found by float weights to ``path``,
    and their distances: sums of weights, from the source on. Returns the edges looked at.
    """
    edges = np.int64(0)
    middle = np.int64(side.hops[found.vertex])
    path[middle] = found.vertex
    for step in range(middle - 1, -1, -1):
        path[step], distance[step + 1], looked = _step_back(entering, side, path[step + 1])
        edges += looked
    for step in range(middle + 1, found.hops + 1):
        path[step], distance[step], looked = _step_back(leaving, back, path[step - 1])
        edges += looked
    distance[0] = 0.0
    for step in range(1, found.hops + 1):
        distance[step] += distance[step - 1]
    return edges


@kernel(SIDE, i64, i64, allocates=False)
def forget_side(side, size, done):
    """Reset a side. size, done: the vertices in its heap, and those that are done."""
    for j in range(size):
        side.at[side.heap[j]] = 0
    for j in range(side.heap.shape[0] - done, side.heap.shape[0]):
        side.at[side.heap[j]] = 0
