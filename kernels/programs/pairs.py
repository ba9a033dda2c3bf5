"""Paths between the two vertices of a pair, by one thread, of a graph in memory.

A pair is searched for from both of its ends at once (Pohl: Bi-directional Search, Machine
Intelligence 6, 1971): without weights a level at a time, on the side whose level has fewer
vertices; with weights by Dijkstra's algorithm, on the side whose heap has fewer.

Of several shortest paths, the one with the fewest edges is meant, and of these the one whose
vertices have the least numbers, from the first vertex that differs. First, vertices on shortest
paths get their distance to the target, from the meeting back to the source. The path then follows
from the source: each next vertex has the least number of those that are nearer to the target by one
edge of a shortest path.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import Struct, boolean, f64, f64s, i32s, i64, inlined, kernel, u8s, u32s
from ..base.intrinsics import prefetch
from ..pieces.piece import PIECE, weight_of

FAR = np.inf

_FORWARD, _BACK = np.uint8(1), np.uint8(2)

_AHEAD = np.uintp(6)
"""Number of vertices of the queue by which fetching runs ahead: a row is fetched into the cache so
many vertices before it is read, and its place as many before that.
"""

AHEAD = 2 * int(_AHEAD)

# Without weights


@inlined
def _next_level(piece, seen, mine, queue, first, last):
    """Find the next level of one side, whose bit in ``seen`` is ``mine``. Returns (the bits of all
    targets, the end of the queue, edges looked at).

    There is no branch for targets that are new: which ones are is anybody's guess.
    """
    offsets, targets = piece.offsets, piece.targets
    edges = np.int64(0)
    end, bits = np.uintp(last), np.uint8(0)
    # Unsigned, as an index that may be negative is looked at each time.
    for j in range(np.uintp(first), np.uintp(last)):
        # What follows the end is of an earlier search, and does no harm.
        prefetch(offsets, np.intp(queue[j + _AHEAD + _AHEAD]))
        prefetch(targets, np.intp(offsets[queue[j + _AHEAD]]))
        u = np.uintp(queue[j])
        start, stop = np.uintp(offsets[u]), np.uintp(offsets[u + np.uintp(1)])
        edges += np.int64(stop - start)
        for e in range(start, stop):
            v = targets[e]
            before = seen[v]
            bits |= before
            queue[end] = v
            end += np.uintp((before & mine) == 0)
            seen[v] = before | mine
    return bits, np.int64(end), edges


@inlined
def _put_level(level, queue, first, last, number):
    """Note the level of the vertices in ``queue[first:last]``, if levels are noted."""
    if level.shape[0] > 0:
        for j in range(first, last):
            level[queue[j]] = number


@kernel(PIECE, PIECE, i64, i64, u8s, u32s, u32s, i32s, i32s, allocates=False)
def hops_between(leaving, entering, source, target, seen, queue, queue_back, level, level_back):
    """Search for a path with the fewest edges. Returns (its edges, -1 if there is no path; vertices
    in ``queue``; vertices in ``queue_back``; edges looked at).

    leaving, entering: all edges, by the vertices that they leave and enter; rows and targets are
    places. seen: uint8, by place; 0 before. queue, queue_back: zeros, or as a search has left them;
    AHEAD entries more than there are vertices. level, level_back: int32, by place, -1 before,
    receive the levels of both sides, for ``trace_hops``; or (0,).

    The sides meet in a vertex of the level that is searched last, so their levels add up to the
    distance.
    """
    edges = np.int64(0)
    seen[source] |= _FORWARD
    seen[target] |= _BACK
    queue[0], queue_back[0] = source, target
    _put_level(level, queue, 0, 1, 0)
    _put_level(level_back, queue_back, 0, 1, 0)
    first, last, first_back, last_back = np.int64(0), np.int64(1), np.int64(0), np.int64(1)
    depth, depth_back = np.int64(0), np.int64(0)
    if source == target:
        return np.int64(0), last, last_back, edges
    while first < last and first_back < last_back:
        if last - first <= last_back - first_back:
            bits, end, looked = _next_level(leaving, seen, _FORWARD, queue, first, last)
            first, last, depth = last, end, depth + 1
            _put_level(level, queue, first, last, depth)
            met = bits & _BACK
        else:
            bits, end, looked = _next_level(
                entering, seen, _BACK, queue_back, first_back, last_back
            )
            first_back, last_back, depth_back = last_back, end, depth_back + 1
            _put_level(level_back, queue_back, first_back, last_back, depth_back)
            met = bits & _FORWARD
        edges += looked
        if met != 0:
            return depth + depth_back, last, last_back, edges
    return np.int64(-1), last, last_back, edges


@inlined
def _mark_before(entering, hops, u, level, level_back, queue_back, end):
    """Give the vertices before ``u`` on shortest paths their level on the other side, and list
    them. Returns (the end of the list, edges looked at).
    """
    first, last = np.int64(entering.offsets[u]), np.int64(entering.offsets[np.int64(u) + 1])
    for e in range(first, last):
        v = entering.targets[e]
        if level[v] >= 0 and level[v] == level[u] - 1 and level_back[v] < 0:
            level_back[v] = hops - level[v]
            queue_back[end] = v
            end += 1
    return end, last - first


@kernel(PIECE, PIECE, i64, u32s, u32s, i32s, i32s, i64, i64, u32s, u32s, allocates=False)
def trace_hops(
    leaving,
    entering,
    hops,
    queue,
    queue_back,
    level,
    level_back,
    count,
    count_back,
    number,
    path,
):
    """Write the vertices of the least shortest path to ``path``, after ``hops_between``. Returns
    the edges looked at.

    count, count_back: of vertices in ``queue`` and ``queue_back``. number: of each place, which
    decides between paths. path: room for ``hops + 1`` vertices.
    """
    edges = np.int64(0)
    head = end = count_back
    depth = np.int64(level[queue[count - 1]])
    j = count - 1
    while j >= 0 and level[queue[j]] == depth:  # where the sides have met
        u = queue[j]
        if level_back[u] == hops - depth:
            end, looked = _mark_before(entering, hops, u, level, level_back, queue_back, end)
            edges += looked
        j -= 1
    while head < end:
        u = queue_back[head]
        end, looked = _mark_before(entering, hops, u, level, level_back, queue_back, end)
        edges += looked
        head += 1
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
    return edges


@kernel(u8s, u32s, i64, i32s, i32s, allocates=False)
def forget_levels(seen, queue, count, level, level_back):
    """Reset what a search knows of the first ``count`` vertices in ``queue``. level, level_back: as
    for ``hops_between``.
    """
    for j in range(count):
        seen[queue[j]] = 0
    if level.shape[0] > 0:
        for j in range(count):
            level[queue[j]] = level_back[queue[j]] = -1


# With weights


class HeapSide(NamedTuple):
    """One side of a search with weights: from the front of the first three arrays a heap with four
    children a vertex, from their back the vertices whose distance is final, in order.

    distance: float64, from this side's end. hops: uint32, the edges of that path, which decide
    between equal distances. vertex: uint32. at: uint32, by place, one more than the index of the
    vertex; 0 if it was not seen.
    """

    distance: NDArray[np.float64]
    hops: NDArray[np.uint32]
    vertex: NDArray[np.uint32]
    at: NDArray[np.uint32]


SIDE = Struct(HeapSide, (f64s, u32s, u32s, u32s))
SIDE_BYTES = 8 + 4 + 4 + 4
"""Bytes of a side for each vertex."""


class Meeting(NamedTuple):
    """The outcome of a search with weights. distance: of the shortest path, infinite if there is
    none. hops: its edges. vertex: a vertex on it that both sides have seen. open, done, open_back,
    done_back: vertices in the heap, and done, of each side. edges: looked at.
    """

    distance: float
    hops: np.int64
    vertex: np.int64
    open: np.int64
    done: np.int64
    open_back: np.int64
    done_back: np.int64
    edges: np.int64


MEETING = Struct(Meeting, (f64, *[i64] * 7))


@inlined
def _less(distance, hops, other, other_hops):
    """Return whether a path is shorter than another one, or as short and of fewer edges."""
    return distance < other or (distance == other and hops < other_hops)


@inlined
def _place(side, index, distance, hops, v):
    side.distance[index] = distance
    side.hops[index] = hops
    side.vertex[index] = v
    side.at[v] = index + 1


@inlined
def _rise(side, distance, hops, v, hole):
    """Put a vertex at the index ``hole`` of the heap, or above."""
    while hole > 0:
        parent = (hole - 1) >> 2
        if not _less(distance, hops, side.distance[parent], side.hops[parent]):
            break
        _place(side, hole, side.distance[parent], side.hops[parent], side.vertex[parent])
        hole = parent
    _place(side, hole, distance, hops, v)


@inlined
def _take_least(side, size, done):
    """Move the nearest vertex from the heap to those that are done. size, done: the numbers of both
    before.
    """
    to = side.vertex.shape[0] - 1 - done
    distance, hops, v = side.distance[size - 1], side.hops[size - 1], side.vertex[size - 1]
    least = side.vertex[0]
    _place(side, to, side.distance[0], side.hops[0], least)
    size -= 1
    if size == 0:
        return least
    hole = np.int64(0)
    while 4 * hole + 1 < size:
        child = 4 * hole + 1
        for c in range(child + 1, min(child + 4, size)):
            if _less(side.distance[c], side.hops[c], side.distance[child], side.hops[child]):
                child = c
        if not _less(side.distance[child], side.hops[child], distance, hops):
            break
        _place(side, hole, side.distance[child], side.hops[child], side.vertex[child])
        hole = child
    _place(side, hole, distance, hops, v)
    return least


@inlined
def _settle(piece, floats, side, other, size, done, best, best_hops, vertex):
    """Take the nearest vertex of one side, and shorten paths along its edges. Returns the size of
    the heap, the best path by both sides (distance, hops, vertex), and the edges looked at.
    """
    far, hops = side.distance[0], side.hops[0] + np.uint32(1)
    u = np.int64(_take_least(side, size, done))
    size -= 1
    final = side.vertex.shape[0] - 1 - done
    edges = np.int64(0)
    for e in range(np.int64(piece.offsets[u]), np.int64(piece.offsets[u + 1])):
        v = piece.targets[e]
        edges += 1
        index = np.int64(side.at[v]) - 1
        if index >= final:
            continue
        through = far + weight_of(piece.weights[e], floats)
        if through > best:
            continue
        if index < 0:
            index = size
            size += 1
        elif not _less(through, hops, side.distance[index], side.hops[index]):
            continue
        _rise(side, through, hops, v, index)
        there = np.int64(other.at[v]) - 1
        if there >= 0:
            whole = through + other.distance[there]
            whole_hops = np.int64(hops) + np.int64(other.hops[there])
            if _less(whole, whole_hops, best, best_hops):
                best, best_hops, vertex = whole, whole_hops, np.int64(v)
    return size, best, best_hops, vertex, edges


@kernel(PIECE, PIECE, boolean, i64, i64, SIDE, SIDE, allocates=False)
def meet(leaving, entering, floats, source, target, side, back):
    """Search for a shortest path. Returns a Meeting.

    leaving, entering: as for ``hops_between``, with weights. floats: whether these are floats.
    side, back: of the source and the target; ``at`` is 0 before. Sums of whole weights are exact
    below 2^53.
    """
    _place(side, 0, 0.0, 0, source)
    _place(back, 0, 0.0, 0, target)
    size, done, size_back, done_back = np.int64(1), np.int64(0), np.int64(1), np.int64(0)
    best, hops, vertex, edges = FAR, np.int64(0), np.int64(-1), np.int64(0)
    if source == target:
        best, vertex = 0.0, source
    while size > 0 and size_back > 0:
        least = side.distance[0] + back.distance[0]
        least_hops = np.int64(side.hops[0]) + np.int64(back.hops[0])
        if not _less(least, least_hops, best, hops):
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
    vertices = side.vertex.shape[0]
    for j in range(vertices - found.done, vertices):  # those that were done last come first
        u = np.int64(side.vertex[j])
        left = found.distance - side.distance[j]
        hops = found.hops - np.int64(side.hops[j])
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            there = np.int64(back.at[leaving.targets[e]]) - 1
            edges += 1
            if (
                there >= 0
                and weight_of(leaving.weights[e], False) + back.distance[there] == left
                and np.int64(back.hops[there]) + 1 == hops
            ):
                index = np.int64(back.at[u]) - 1
                if index < 0:
                    index = vertices - 1 - done_back
                    done_back += 1
                _place(back, index, left, hops, u)
                break
    u = np.int64(source)
    path[0], distance[0] = u, 0.0
    for step in range(1, found.hops + 1):
        left = found.distance - distance[step - 1]
        least = np.int64(-1)
        for e in range(np.int64(leaving.offsets[u]), np.int64(leaving.offsets[u + 1])):
            v = np.int64(leaving.targets[e])
            there = np.int64(back.at[v]) - 1
            edges += 1
            if (
                there >= 0
                and np.int64(back.hops[there]) == found.hops - step
                and weight_of(leaving.weights[e], False) + back.distance[there] == left
                and (least < 0 or number[v] < number[least])
            ):
                least = v
        u = least
        path[step] = u
        distance[step] = found.distance - back.distance[np.int64(back.at[u]) - 1]
    return done_back, edges


@inlined
def _step_back(piece, side, done, u):
    """Return a vertex before ``u`` on a shortest path from a side's end, by float weights, the
    weight of the edge between, and edges looked at. piece: edges that lead to that end.
    """
    here, edges = np.int64(side.at[u]) - 1, np.int64(0)
    final = side.vertex.shape[0] - done
    for e in range(np.int64(piece.offsets[u]), np.int64(piece.offsets[np.int64(u) + 1])):
        v = piece.targets[e]
        weight = weight_of(piece.weights[e], True)
        index = np.int64(side.at[v]) - 1
        edges += 1
        if (
            index >= final
            and side.hops[index] + np.uint32(1) == side.hops[here]
            and side.distance[index] + weight == side.distance[here]
        ):
            return v, weight, edges
    return u, 0.0, edges


@kernel(PIECE, PIECE, SIDE, SIDE, MEETING, u32s, f64s, allocates=False)
def trace_floats(leaving, entering, side, back, found, path, distance):
    """Write the vertices of the shortest path that ``meet`` has found by float weights to ``path``,
    and their distances: sums of weights, from the source on. Returns the edges looked at.
    """
    edges = np.int64(0)
    middle = np.int64(side.hops[np.int64(side.at[found.vertex]) - 1])
    path[middle] = found.vertex
    for step in range(middle - 1, -1, -1):
        path[step], distance[step + 1], looked = _step_back(
            entering, side, found.done, path[step + 1]
        )
        edges += looked
    for step in range(middle + 1, found.hops + 1):
        path[step], distance[step], looked = _step_back(
            leaving, back, found.done_back, path[step - 1]
        )
        edges += looked
    distance[0] = 0.0
    for step in range(1, found.hops + 1):
        distance[step] += distance[step - 1]
    return edges


@kernel(SIDE, i64, i64, allocates=False)
def forget_side(side, size, done):
    """Reset a side. size, done: the vertices in its heap, and those that are done."""
    for j in range(size):
        side.at[side.vertex[j]] = 0
    for j in range(side.vertex.shape[0] - done, side.vertex.shape[0]):
        side.at[side.vertex[j]] = 0
