"""Push in pieces: follow the edges at hand that leave the frontier.

As bfs/push.py, for subgraphs. Places in ``targets`` are unsigned: Numba would test others for being
negative, which took a tenth of a push.
"""

import numpy as np
from numba import njit

from ..base.bitmap import contains, mask
from ..base.numbering import past_word, renumber
from ..bfs.push import claim
from .piece import keep


@njit(nogil=True, cache=True)
def push_piece(piece, first, last, start, ends):
    """Run on several pieces, or on other rows of one, at once.

    piece: Piece. first, last: the rows ``first <= row < last`` of it. start: Start, of the rows.
    ends: Ends, of the targets. Returns (found, examined): vertices, edges.
    """
    new = 0
    examined = 0
    row = first
    while row < last:
        u = renumber(start.places, row)
        word = start.bits[u >> np.uint32(6)]
        if word == 0:
            row = past_word(start.places, row, u)
            continue
        if word & mask(u):
            begin = max(np.int64(piece.offsets[row]), piece.begin) - piece.begin
            end = min(np.int64(piece.offsets[row + 1]), piece.end) - piece.begin
            examined += end - begin
            parent = renumber(start.ids, u)
            for e in range(begin, end):
                v = renumber(ends.places, piece.targets[np.uintp(e)])
                if not contains(ends.visited, v) and claim(ends.found, v):
                    keep(ends, new, v, parent)
                    new += 1
        row += 1
    return new, examined
