"""Pull in runs: every unvisited vertex with edges in a run looks for a parent there.

As pull.py, for a graph whose edges pass by in runs (rows.py). A row that is cut, or one of
several that a delegate has, may be looked at by two threads at once; the vertex belongs to the
one that sets its bit.
"""

import numpy as np
from numba import njit

from ..base.bitmap import contains, mask
from ..base.numbering import past_word, to_global
from ..bfs.push import claim
from .rows import row_of


@njit(nogil=True, cache=True)
def pull_block(offsets, edges, start, stop, rows, targets, marks, level):
    """Run on several runs at once; arguments and result as push_block's.

    The rows are incoming edges: their targets are the candidates for a parent.
    """
    found = 0
    examined = 0
    row = row_of(offsets, start)
    last = offsets.shape[0] - 1
    while row < last and np.int64(offsets[row]) < stop:
        v = to_global(rows, row)
        unvisited = ~marks.visited[v >> np.uint32(6)]
        if unvisited == 0:
            row = past_word(rows, row, v)
            continue
        if unvisited & mask(v) and not contains(marks.found, v):
            first = max(np.int64(offsets[row]), start) - start
            end = min(np.int64(offsets[row + 1]), stop) - start
            for e in range(first, end):
                examined += 1
                u = to_global(targets, edges[e])
                if contains(marks.visited, u):
                    if claim(marks.found, v):
                        marks.distance[v] = level
                        marks.parent[v] = u
                        found += 1
                    break
        row += 1
    return found, examined
