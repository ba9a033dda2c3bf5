"""Compressed sparse rows of unordered edges, as they come: not sorted, duplicates kept.

These rows are cheaper by far than a store's rows. They are good for the one search that scans
(scan.py) leave off because the graph has many levels. Each thread counts and fills the rows of its
own range of vertices, so none waits for another.
"""

from ..base.compiled import OFFSETS, boolean, i64, kernel, u32s


@kernel(u32s, u32s, i64, boolean, i64, i64, OFFSETS)
def count_ends(src, dst, length, both_ends, first, last, degree):
    """Count the first ``length`` edges at their source, if it is in a range, and, if ``both_ends``,
    at their target.
    """
    for i in range(length):
        u = src[i]
        if first <= u < last:
            degree[u] += 1
        if both_ends:
            v = dst[i]
            if first <= v < last:
                degree[v] += 1


@kernel(u32s, u32s, i64, boolean, i64, i64, OFFSETS, u32s)
def fill_rows(src, dst, length, both_ends, first, last, at, targets):
    """Write each edge's other end at ``at[end]``, which moves on, for ends in a range."""
    for i in range(length):
        u = src[i]
        v = dst[i]
        if first <= u < last:
            targets[at[u]] = v
            at[u] += 1
        if both_ends and first <= v < last:
            targets[at[v]] = u
            at[v] += 1
