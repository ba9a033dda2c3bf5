"""Pull in pieces: the unvisited rows at hand look for a parent among their edges.

As bfs/pull.py, for subgraphs. A row that is cut, or one of several that a delegate has, may be
looked at by two threads at once.
"""

import numpy as np
from numba import njit

from ..base.bitmap import contains, mask
from ..base.numbering import past_word, renumber
from ..bfs.push import claim
from .piece import keep


@njit(nogil=True, cache=True)
def pull_piece(piece, first, last, start, ends):
    """As push_piece, the other way: the rows are incoming edges, ``ends`` is theirs.

    start: of the targets, the candidates for a parent.
    """
    new = 0
    examined = 0
    row = first
    while row < last:
        v = renumber(ends.places, row)
        unvisited = ~ends.visited[v >> np.uint32(6)]
        if unvisited == 0:
            row = past_word(ends.places, row, v)
            continue
        if unvisited & mask(v) and not contains(ends.found, v):
            begin = max(np.int64(piece.offsets[row]), piece.begin) - piece.begin
            end = min(np.int64(piece.offsets[row + 1]), piece.end) - piece.begin
            for e in range(begin, end):
                examined += 1
                u = renumber(start.places, piece.targets[np.uintp(e)])
                if contains(start.bits, u):
                    if claim(ends.found, v):
                        keep(ends, new, v, renumber(start.ids, u))
                        new += 1
                    break
        row += 1
    return new, examined
