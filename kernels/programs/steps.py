"""Least paths from a vertex in pieces: the edges at hand of some rows offer paths to their targets.

Paths with as many edges are ranked by the vertices on them. A vertex is offered the ranks of the
least paths to the vertices before it, and the least rank is kept.
"""

import numpy as np

from ..base.bitmap import mask
from ..base.compiled import boolean, i64, kernel, u32s, u64s
from ..base.intrinsics import fetch_min, fetch_or
from ..base.numbering import NUMBERING, past_word, renumber
from ..pieces.piece import PIECE, weight_of


@kernel(
    PIECE,
    boolean,
    boolean,
    u32s,
    i64,
    i64,
    NUMBERING,
    u32s,
    u64s,
    u64s,
    NUMBERING,
    u32s,
    u64s,
    u64s,
)
def offer_ranks(
    piece,
    weighted,
    floats,
    queue,
    first,
    last,
    x_places,
    rank,
    x,
    frontier,
    y_places,
    offered,
    y,
    better,
):
    """Offer the ranks of rows in ``frontier`` to their targets; on several pieces at once.

    weighted: whether only edges of shortest paths count, by ``x`` and ``y``: uint64, bits of the
    distances of rows and targets, by place; else (0,). queue, first, last: as for ``relax_piece``.
    rank: uint32, by place of the rows. offered: uint32, by place of the targets. better: bitmap,
    receives targets whose ``offered`` has become less.
    """
    offsets, targets, begin, end, weights = piece
    listed = queue.shape[0] > 0
    i = first
    while i < last:
        row = np.int64(queue[i]) if listed else i
        u = renumber(x_places, row)
        word = frontier[u >> np.uint32(6)]
        if word == 0 and not listed:
            i = past_word(x_places, row, u)
            continue
        if word & mask(u):
            mine = np.uint32(rank[u])
            distance = np.uint64(x[u]).view(np.float64) if weighted else 0.0
            start = max(np.int64(offsets[row]), begin) - begin
            stop = min(np.int64(offsets[row + 1]), end) - begin
            for e in range(start, stop):
                at = np.uintp(e)
                v = renumber(y_places, targets[at])
                if weighted:
                    through = np.float64(distance + weight_of(weights[at], floats))
                    if through.view(np.uint64) != y[v]:
                        continue
                if mine < offered[v] and mine < fetch_min(offered, np.intp(v), mine):
                    fetch_or(better, np.intp(v >> np.uint32(6)), mask(v))
        i += 1
