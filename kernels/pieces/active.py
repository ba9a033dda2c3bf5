"""The active rows of a subgraph: how many, and where.

Edges in memory are visited in *turns*, rows of about equally many edges. Edges on disk are visited
in pages; pages without active rows need not be read.
"""

import numpy as np
from numba import types

from ..base.compiled import OFFSETS, boolean, i64, i64s, kernel, u8s, u32s, u64, u64s
from ..base.numbering import NUMBERING, past_word, renumber
from .piece import row_of

TURNS = types.int64[:, ::1]


@kernel(OFFSETS, u32s, i64, TURNS)
def cut_turns(offsets, queue, most, turns):
    """Cut a queue of rows into turns of ``most`` edges each, or few more.

    offsets: uint32 or uint64. turns: int64 (edges // most + 2, 2), receives each turn's place in
    ``queue``, and the number of edges before it; one more entry ends the turns. Returns (rows,
    edges, turns): the number of rows that have edges, the number of these edges, and the number of
    turns.
    """
    count = 0
    edges = np.int64(0)
    done = 0
    full = np.int64(0)  # so many edges end a turn
    for i in range(queue.shape[0]):
        row = np.int64(queue[i])
        degree = np.int64(offsets[row + 1]) - np.int64(offsets[row])
        if degree > 0:
            if edges >= full:
                turns[done, 0] = i
                turns[done, 1] = edges
                done += 1
                full = edges + most
            count += 1
            edges += degree
    turns[done, 0] = queue.shape[0]
    turns[done, 1] = edges
    return count, edges, done


@kernel(OFFSETS, i64, i64, NUMBERING, u64s, u64, i64s, u8s, boolean)
def mark_pages(offsets, first_row, last_row, places, wanted, flip, page_starts, active, counting):
    """Mark the pages of the active rows among the rows ``first_row <= r < last_row``.

    places: Numbering. wanted: bitmap, uint64. flip: uint64, all ones if the vertices *not* in it
    are meant, else 0. page_starts: int64 (pages + 1,), the first edge of each page. active: uint8
    (pages,), set to 1 where marked. counting: whether the result counts; if it does not, rows in
    pages that are marked already are passed over. Returns (active rows, edges).
    """
    count = 0
    edges = 0
    page = 0
    row = first_row
    while row < last_row:
        v = renumber(places, row)
        word = wanted[v >> np.uint32(6)] ^ flip
        if word == 0:
            row = past_word(places, row, v)
            continue
        if (word >> np.uint64(v & np.uint32(63))) & np.uint64(1):
            start = np.int64(offsets[row])
            stop = np.int64(offsets[row + 1])
            if start < stop:
                if count == 0:
                    page = np.searchsorted(page_starts, start, side="right") - 1
                count += 1
                edges += stop - start
                while page_starts[page + 1] <= start:
                    page += 1
                last = page
                while page_starts[last] < stop:
                    active[last] = 1
                    last += 1
                if not counting:
                    row = max(row, row_of(offsets, page_starts[last]) - 1)
        row += 1
    return count, edges
