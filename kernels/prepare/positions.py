"""Positions by counting: a vertex's place by falling degree, ties by id.

Few degrees are distinct (their sum is at most twice the rows), so how many vertices have each,
in every span of ids, tells where each span's vertices of a degree begin; then one pass over a
span numbers it. No span needs another one's vertices.
"""

import numpy as np

from ..base.bitmap import contains
from ..base.compiled import DEGREES, i64s, kernel, u32s, u64s
from ..base.graph import UNREACHED

SMALL_DEGREES = 1 << 16


@kernel(DEGREES, u64s, i64s, DEGREES)
def count_small_degrees(degree, looped, counts, large):
    """Count the vertices of each degree below SMALL_DEGREES in ``counts`` (int64). Other degrees go
    to ``large``.

    A vertex has an edge or a self-loop. large: like degree; returns the number of degrees it
    received.
    """
    found = 0
    for v in range(degree.shape[0]):
        d = degree[v]
        if d >= SMALL_DEGREES:
            large[found] = d
            found += 1
        elif d > 0 or contains(looped, np.uint32(v)):
            counts[d] += 1
    return found


@kernel(DEGREES, u64s, DEGREES, i64s, i64s, u32s)
def assign_positions(degree, looped, distinct, class_of_small, following, positions):
    """Number the vertices of a span.

    distinct: the degrees that occur, falling. class_of_small: int64 (SMALL_DEGREES,), place in
    ``distinct`` of a small degree. following: int64, like distinct: the position of the span's next
    vertex of each degree; advanced. positions: uint32, receives positions, UNREACHED where the id
    is no vertex.
    """
    for v in range(degree.shape[0]):
        d = degree[v]
        if d == 0 and not contains(looped, np.uint32(v)):
            positions[v] = UNREACHED
            continue
        if d < SMALL_DEGREES:
            c = class_of_small[d]
        else:
            low = np.int64(0)
            high = np.int64(distinct.shape[0] - 1)
            while low < high:
                middle = (low + high) >> 1
                if distinct[middle] > d:
                    low = middle + 1
                else:
                    high = middle
            c = low
        positions[v] = following[c]
        following[c] += 1
