"""Push in runs: follow the edges of a run that leave the frontier.

As push.py, for a graph whose edges pass by in runs (rows.py).
"""

import numpy as np
from numba import njit

from ..base.bitmap import contains, mask
from ..base.numbering import past_word, to_global
from ..bfs.push import claim
from .rows import row_of


@njit(nogil=True, cache=True)
def push_block(offsets, edges, start, stop, rows, targets, marks, level):
    """Run on several runs at once.

    offsets: uint32 or uint64 (rows + 1,), of the whole subgraph. edges: uint32, its targets
    ``start <= e < stop``. rows, targets: Numbering. marks: Marks. level: of what is found.
    Returns (found, examined): vertices, edges.
    """
    found = 0
    examined = 0
    row = row_of(offsets, start)
    last = offsets.shape[0] - 1
    while row < last and np.int64(offsets[row]) < stop:
        u = to_global(rows, row)
        word = marks.frontier[u >> np.uint32(6)]
        if word == 0:
            row = past_word(rows, row, u)
            continue
        if word & mask(u):
            first = max(np.int64(offsets[row]), start) - start
            end = min(np.int64(offsets[row + 1]), stop) - start
            examined += end - first
            for e in range(first, end):
                v = to_global(targets, edges[e])
                if not contains(marks.visited, v) and claim(marks.found, v):
                    marks.distance[v] = level
                    marks.parent[v] = u
                    found += 1
        row += 1
    return found, examined
