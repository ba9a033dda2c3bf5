"""Strong components of a graph in memory, by one thread: a depth-first search.

Vertices get numbers in the order in which the search visits them. A vertex on the path of the
search, or one that waits until its component is complete, keeps the least number that it is known
to reach. If this is its own number when the search leaves it, then it and the vertices that came to
wait after it are a component (Tarjan: Depth-First Search and Linear Graph Algorithms, SIAM Journal
on Computing 1, 1972). One number for each vertex is enough (Pearce: An Improved Algorithm for
Finding the Strongly Connected Components of a Directed Graph, Victoria University of Wellington,
2005). The path stands in arrays, since it can be as long as the graph has vertices.
"""

from typing import NamedTuple

import numpy as np

from ..base.compiled import Struct, i64, kernel, u32s, u64s
from ..pieces.piece import PIECE

_ZERO, _ONE = np.uintp(0), np.uintp(1)
_NEXT = np.uint32(1)

COMPLETE = np.uint32(0xFFFFFFFF)
"""Number of a vertex whose component is complete: greater than all other numbers."""


class Search(NamedTuple):
    """Where a search has got to. start: the vertices before it are visited. depth: the number of
    vertices on the path. waiting: the number of vertices that wait. number: the greatest number on
    the path and among waiting vertices, 0 if there is none.
    """

    start: int
    depth: int
    waiting: int
    number: int


SEARCH = Struct(Search, (i64,) * 4)


@kernel(PIECE, u32s, u32s, u32s, u64s, u32s, SEARCH, i64, allocates=False)
def find_components(piece, component, reached, path, edges, numbers, search, most):
    """Continue a search, until all components are complete, or ``most`` edges have been looked at.
    Returns (Search, edges looked at); at the end, ``start`` is the number of vertices, and
    ``depth`` is 0.

    piece: a whole subgraph at hand, whose rows and targets are places. component: uint32 by place;
    the vertices of each component that is complete receive one of them. reached: uint32 by place,
    the numbers; at first COMPLETE for vertices that are left out, and 0 for all others. path:
    uint32, room for all vertices; the path stands at its beginning, the vertices that wait stand at
    its end. edges, numbers: uint64, uint32, room for all vertices; for each vertex on the path, the
    edge at which the search continues, and the vertex's own number.
    """
    offsets, targets, _, _, _ = piece
    n = np.uintp(component.shape[0])
    start = np.uintp(search.start)
    depth = np.uintp(search.depth)
    top = n - np.uintp(search.waiting)  # the vertex that came last to wait
    number = np.uint32(search.number)
    looked = np.int64(0)
    while looked < most:
        if depth == _ZERO:
            while start < n and reached[start]:
                start += _ONE
            if start == n:
                break
            number += _NEXT
            reached[start] = number
            path[depth] = start
            edges[depth] = offsets[start]
            numbers[depth] = number
            depth += _ONE
        depth -= _ONE
        v = np.uintp(path[depth])
        own = numbers[depth]
        least = reached[v]
        begin = np.uintp(edges[depth])
        e = begin
        stop = np.uintp(offsets[v + _ONE])
        while e < stop:
            w = np.uintp(targets[e])
            there = reached[w]
            if there:
                least = min(least, there)
                e += _ONE
                continue
            w_begin = np.uintp(offsets[w])
            w_stop = np.uintp(offsets[w + _ONE])
            if w_begin == w_stop:
                reached[w] = COMPLETE
                component[w] = w
                e += _ONE
                continue
            looked += np.int64(e - begin)
            reached[v] = least
            path[depth] = v
            edges[depth] = e
            numbers[depth] = own
            depth += _ONE
            number += _NEXT
            reached[w] = number
            v = w
            own = least = number
            begin = e = w_begin
            stop = w_stop
        looked += np.int64(e - begin)
        if least != own:
            reached[v] = least
            top -= _ONE
            path[top] = v
            continue
        reached[v] = COMPLETE
        component[v] = v
        while top < n and reached[path[top]] >= own:
            w = np.uintp(path[top])
            reached[w] = COMPLETE
            component[w] = v
            top += _ONE
        number = own - _NEXT
    return Search(int(start), int(depth), int(n - top), int(number)), looked
