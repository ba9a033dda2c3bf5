"""Core numbers that a judge finds anew, from rows of its own, by one thread.

Written apart from the program that is judged. Vertices stay sorted by their degrees, and leave in
this order, one by one (Batagelj, Zaversnik: An O(m) Algorithm for Cores Decomposition of Networks,
2003).
"""

import numpy as np

from ..base.compiled import boolean, compiled, i64s, kernel, u32s

CORE_BYTES = 8 + 2 * 4 + 2 * 2 * 8
"""Bytes of the arrays that ``core_numbers`` makes or is given, for each vertex. There are at most
twice as many degrees as vertices, and two arrays of these.
"""


@compiled
def _lower(offsets, targets, v, core, order, place, first):
    """Take the edges in the row of ``v`` from the degrees of its neighbours, which move to the
    place before, in the order of degrees, that has the same degree.
    """
    for e in range(offsets[v], offsets[v + 1]):
        u = targets[e]
        if core[u] > core[v]:
            at = place[u]
            start = first[core[u]]
            other = order[start]
            order[at] = other
            place[other] = at
            order[start] = u
            place[u] = start
            first[core[u]] += 1
            core[u] -= 1


@kernel(i64s, u32s, i64s, u32s, boolean, i64s)
def core_numbers(offsets, targets, other_offsets, other_targets, directed, core):
    """Find the core number of each vertex. core: int64 (n,), receives them.

    offsets, targets: rows of all edges. other_offsets, other_targets: rows of the edges the other
    way, which count, too, if the graph is directed.
    """
    n = core.shape[0]
    for v in range(n):
        core[v] = offsets[v + 1] - offsets[v]
        if directed:
            core[v] += other_offsets[v + 1] - other_offsets[v]
    most = core.max() if n else 0
    first = np.zeros(most + 2, np.int64)
    for v in range(n):
        first[core[v] + 1] += 1
    for degree in range(most + 1):
        first[degree + 1] += first[degree]
    room = first.copy()
    order = np.empty(n, np.uint32)
    place = np.empty(n, np.uint32)
    for v in range(n):
        place[v] = room[core[v]]
        order[place[v]] = v
        room[core[v]] += 1
    for i in range(n):
        v = order[i]
        _lower(offsets, targets, v, core, order, place, first)
        if directed:
            _lower(other_offsets, other_targets, v, core, order, place, first)
