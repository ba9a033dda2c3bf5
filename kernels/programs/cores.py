"""Core numbers of a graph in memory, by one thread: vertices leave in rounds, by rising k.

A *round* removes all vertices whose degrees are at most k, and takes their edges from the degrees
of their neighbours. Once no degree is at most k, k becomes the least degree that is left (Seidman,
Network structure and minimum degree, 1983). A vertex that is removed keeps k in place of its
degree: this is its core number.

Batagelj and Zaversnik (An O(m) Algorithm for Cores Decomposition of Networks, 2003) keep vertices
sorted by their degrees, which moves four numbers for each edge. Here an edge reads and changes one
number. *Near* vertices are listed, whose degrees are below a limit, and only these are looked
through when k rises (a range of the buckets of Dhulipala, Blelloch, Shun: Julienne, 2017). When
none is left, the limit becomes twice the least degree, and all vertices are looked through.
"""

from typing import NamedTuple

import numpy as np

from ..base.compiled import Struct, boolean, compiled, i64, kernel, u32s
from ..base.intrinsics import prefetch
from ..pieces.piece import PIECE

_ONE = np.uintp(1)
_NONE = np.uint32(0xFFFFFFFF)

_PLACES_AHEAD, _ROWS_AHEAD, _DEGREES_AHEAD = np.uintp(24), np.uintp(16), np.uintp(8)
"""Numbers of vertices by which fetching into the cache runs ahead: of a row's place, of the row,
and of the degrees of its first targets.
"""


class Peeling(NamedTuple):
    """What is done, between two rounds. k: of vertices that are removed. limit: of the degrees of
    near vertices. first, last: the vertices that the next round takes edges of, in the queue.
    near: the number of near vertices that are listed. left: the number of vertices that are not
    removed. rounds: how many rounds have removed vertices.
    """

    k: int
    limit: int
    first: int
    last: int
    near: int
    left: int
    rounds: int


PEELING = Struct(Peeling, (i64,) * 7)


@compiled
def _raise_k(degree, queue, near, k, limit, last, listed):
    """Raise k to the least degree that is greater, and append the vertices with this degree to the
    queue. Returns (k, limit, last, listed).
    """
    least = _NONE
    kept = np.uintp(0)
    for i in range(listed):
        v = near[i]
        if degree[v] > k:
            near[kept] = v
            kept += _ONE
            least = min(least, degree[v])
    if kept:
        listed = np.uintp(0)
        for i in range(kept):
            v = near[i]
            if degree[v] == least:
                queue[last] = v
                last += _ONE
            else:
                near[listed] = v
                listed += _ONE
        return least, limit, last, listed
    for v in range(degree.shape[0]):
        if degree[v] > k:
            least = min(least, degree[v])
    limit = max(np.uint32(2 * least), np.uint32(least + 1))  # the first one may be beyond 32 bits
    for v in range(degree.shape[0]):
        if k < degree[v] < limit:
            if degree[v] == least:
                queue[last] = v
                last += _ONE
            else:
                near[kept] = v
                kept += _ONE
    return least, limit, last, kept


@compiled
def _take_edges(piece, degree, queue, near, k, limit, first, end, last, listed):
    """Take the edges in the rows ``queue[first:end]`` from the degrees of their targets. Targets
    whose degrees become k are appended to the queue, and those whose degrees come below the limit
    are listed. Returns (last, listed, edges).
    """
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    if targets.shape[0] == 0:
        return last, listed, edges
    next_k = np.uint32(k + np.uint32(1))
    last_edge = np.uintp(targets.shape[0]) - _ONE
    for i in range(first, end):
        prefetch(offsets, np.intp(queue[min(i + _PLACES_AHEAD, end - _ONE)]))
        ahead = np.uintp(offsets[queue[min(i + _ROWS_AHEAD, end - _ONE)]])
        prefetch(targets, np.intp(min(ahead, last_edge)))
        ahead = np.uintp(offsets[queue[min(i + _DEGREES_AHEAD, end - _ONE)]])
        prefetch(degree, np.intp(targets[min(ahead, last_edge)]))
        prefetch(degree, np.intp(targets[min(ahead + _ONE, last_edge)]))
        row = np.uintp(queue[i])
        stop = np.uintp(offsets[row + _ONE])
        e = np.uintp(offsets[row])
        edges += np.int64(stop - e)
        while e < stop:
            u = np.uintp(targets[e])
            here = degree[u]
            if here > k:
                degree[u] = here - np.uint32(1)
                if here == next_k:
                    queue[last] = u
                    last += _ONE
                elif here == limit:
                    near[listed] = u
                    listed += _ONE
            e += _ONE
    return last, listed, edges


@kernel(PIECE, PIECE, boolean, u32s, u32s, u32s, PEELING, i64)
def peel(rows, other_rows, directed, degree, queue, near, peeling, most):
    """Remove vertices round by round, until none is left, or a round ends after ``most`` edges.
    Returns (Peeling, edges looked at).

    rows: Piece, a whole subgraph at hand, whose rows and targets are places. other_rows: the edges
    the other way, which count, too, if the graph is directed. degree: uint32 by place; 0 for
    vertices that need no core number, which therefore is 0. Receives core numbers: of vertices that
    are removed, and of all others degrees among those that are left. queue, near: uint32, room for
    all vertices. In the queue are the vertices that were removed, in the order of their rounds.
    peeling: where the last call ended; at first no field but ``left`` is other than 0.
    """
    k = np.uint32(peeling.k)
    limit = np.uint32(peeling.limit)
    first = np.uintp(peeling.first)
    last = np.uintp(peeling.last)
    listed = np.uintp(peeling.near)
    left = peeling.left
    rounds = peeling.rounds
    looked = np.int64(0)
    while left and looked < most:
        end = last
        if first == end:
            k, limit, last, listed = _raise_k(degree, queue, near, k, limit, last, listed)
        else:
            last, listed, edges = _take_edges(
                rows, degree, queue, near, k, limit, first, end, last, listed
            )
            looked += edges
            if directed:
                last, listed, edges = _take_edges(
                    other_rows, degree, queue, near, k, limit, first, end, last, listed
                )
                looked += edges
            first = end
        left -= np.int64(last - end)
        rounds += last > end
    done = Peeling(int(k), int(limit), int(first), int(last), int(listed), left, rounds)
    return done, looked
