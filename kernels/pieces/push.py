"""Push in pieces: follow the edges at hand that leave the frontier.

This works as bfs/push.py does, for subgraphs. Places in ``targets`` are unsigned: Numba would test
signed ones for being negative, which took a tenth of a push. Tuples are taken apart before the
loop: inside the loop Numba would count references of their arrays, which took half of a push.
"""

import numpy as np

from ..base.bitmap import contains, mask
from ..base.compiled import i64, kernel, u32s
from ..base.numbering import is_identity, past_word, renumber
from ..bfs.push import claim
from .piece import ENDS, PIECE, START, keep


@kernel(PIECE, u32s, i64, i64, START, ENDS)
def push_piece(piece, queue, first, last, start, ends):
    """Push the frontier's rows along the edges at hand. Run on several pieces, or on different rows
    of one, at once.

    piece: Piece. queue: uint32, rows of the frontier, of which ``queue[first:last]`` are meant; or
    (0,), for the frontier's rows among all rows ``first <= row < last``. start: Start, of the rows.
    ends: Ends, of the targets. Returns (found, examined): the number of vertices found and of edges
    examined.
    """
    offsets, targets, first_edge, last_edge, _ = piece
    rows, ids, frontier = start
    places, visited, found, vertices, parents = ends
    new = 0
    examined = 0
    listed = queue.shape[0] > 0
    plain = is_identity(places)
    i = first
    while i < last:
        row = np.int64(queue[i]) if listed else i
        u = renumber(rows, row)
        word = frontier[u >> np.uint32(6)]
        if word == 0:
            i = past_word(rows, row, u)
            continue
        if word & mask(u):
            begin = max(np.int64(offsets[row]), first_edge) - first_edge
            end = min(np.int64(offsets[row + 1]), last_edge) - first_edge
            examined += end - begin
            parent = renumber(ids, u)
            for e in range(begin, end):
                v = targets[np.uintp(e)]
                if not plain:
                    v = renumber(places, v)
                if not contains(visited, v) and claim(found, v):
                    keep(vertices, parents, new, v, parent)
                    new += 1
        i += 1
    return new, examined
