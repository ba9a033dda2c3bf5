"""Which pages of a subgraph hold edges of active rows: the others need not be read."""

import numpy as np
from numba import njit

from ..base.numbering import past_word, to_global
from .rows import row_of


@njit(nogil=True, cache=True)
def mark_pages(offsets, first_row, last_row, rows, wanted, flip, page_starts, active, counting):
    """Mark the pages of the rows ``first_row <= r < last_row`` whose vertex is wanted.

    offsets: uint32 or uint64. rows: Numbering. wanted: bitmap, uint64; flip: uint64, all ones if
    the vertices *not* in it are meant, else 0. page_starts: int64 (pages + 1,), the first edge of
    each page. active: uint8 (pages,), set to 1 where marked. counting: whether the result counts;
    if it does not, rows in pages that are marked already are passed over.
    Returns (active rows, edges): rows that have edges, and how many edges those have.
    """
    count = 0
    edges = 0
    page = 0
    row = first_row
    while row < last_row:
        v = to_global(rows, row)
        word = wanted[v >> np.uint32(6)] ^ flip
        if word == 0:
            row = past_word(rows, row, v)
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


@njit(nogil=True, cache=True)
def mark_pages_of(offsets, queue, page_starts, active):
    """Mark the pages of the rows in ``queue``: uint32, rising. The rest as mark_pages has it."""
    page = 0
    for i in range(queue.shape[0]):
        row = np.int64(queue[i])
        start = np.int64(offsets[row])
        stop = np.int64(offsets[row + 1])
        if start == stop:
            continue
        if page_starts[page + 1] <= start:
            page = np.searchsorted(page_starts, start, side="right") - 1
        last = page
        while page_starts[last] < stop:
            active[last] = 1
            last += 1
