"""Pull in pieces: the unvisited rows at hand look for a parent among their edges.

This works as bfs/pull.py does, for subgraphs. Two threads at once may look at a row that is cut, or
at one of several rows of a delegate.
"""

import numpy as np

from ..base.bitmap import contains, mask
from ..base.compiled import i64, kernel
from ..base.numbering import is_identity, past_word, renumber
from ..bfs.push import claim
from .piece import ENDS, PIECE, START, keep


@kernel(PIECE, i64, i64, START, ENDS)
def pull_piece(piece, first, last, start, ends):
    """Pull into all rows ``first <= row < last``: ``push_piece`` the other way.

    The rows are incoming edges. ends: Ends, of the rows. start: Start, of the targets, the
    candidates for a parent.
    """
    offsets, targets, first_edge, last_edge, _ = piece
    places, ids, reached = start
    rows, visited, found, vertices, parents = ends
    plain = is_identity(places)
    new = 0
    examined = 0
    row = first
    while row < last:
        v = renumber(rows, row)
        unvisited = ~visited[v >> np.uint32(6)]
        if unvisited == 0:
            row = past_word(rows, row, v)
            continue
        if unvisited & mask(v) and not contains(found, v):
            begin = max(np.int64(offsets[row]), first_edge) - first_edge
            end = min(np.int64(offsets[row + 1]), last_edge) - first_edge
            for e in range(begin, end):
                examined += 1
                u = targets[np.uintp(e)]
                if not plain:
                    u = renumber(places, u)
                if contains(reached, u):
                    if claim(found, v):
                        keep(vertices, parents, new, v, renumber(ids, u))
                        new += 1
                    break
        row += 1
    return new, examined
