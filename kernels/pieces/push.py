"""Push in pieces: follow the edges at hand that leave the frontier.

As bfs/push.py, for subgraphs. Places in ``targets`` are unsigned: Numba would test others for being
negative, which took a tenth of a push. And tuples are taken apart before the loop: it would count
references of their arrays there, which took half of it.
"""

import numpy as np

from ..base.bitmap import contains, mask
from ..base.compiled import i64, kernel
from ..base.numbering import past_word, renumber
from ..bfs.push import claim
from .piece import ENDS, PIECE, START, keep


@kernel(PIECE, i64, i64, START, ENDS)
def push_piece(piece, first, last, start, ends):
    """Run on several pieces, or on other rows of one, at once.

    piece: Piece. first, last: the rows ``first <= row < last`` of it. start: Start, of the rows.
    ends: Ends, of the targets. Returns (found, examined): vertices, edges.
    """
    offsets, targets, first_edge, last_edge = piece
    rows, ids, frontier = start
    places, visited, found, vertices, parents = ends
    new = 0
    examined = 0
    row = first
    while row < last:
        u = renumber(rows, row)
        word = frontier[u >> np.uint32(6)]
        if word == 0:
            row = past_word(rows, row, u)
            continue
        if word & mask(u):
            begin = max(np.int64(offsets[row]), first_edge) - first_edge
            end = min(np.int64(offsets[row + 1]), last_edge) - first_edge
            examined += end - begin
            parent = renumber(ids, u)
            for e in range(begin, end):
                v = renumber(places, targets[np.uintp(e)])
                if not contains(visited, v) and claim(found, v):
                    keep(vertices, parents, new, v, parent)
                    new += 1
        row += 1
    return new, examined
