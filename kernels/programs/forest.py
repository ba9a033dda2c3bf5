"""Components by union-find: a forest of vertices, whose trees join along edges.

forest: uint32, shape (vertices,), by global id; each vertex's parent, roots their own. Roots join
lesser ones, so a tree's root is the least vertex in it, and the end is the same whatever the order
of edges and the number of threads. Joining takes no lock: a root is claimed by compare-and-swap.

Where edges are in memory, most need not be looked at (Sutton, Ben-Nun, Barak: Optimizing Parallel
Graph Connectivity Computation via Subgraph Sampling, IPDPS 2018, Afforest): the first few
neighbours of each vertex are joined; after that nearly all vertices are in one tree, and the rows
of these are passed over, as every edge that leads out of it stands in another row, too.
"""

import numpy as np
from numba import types

from ..base.compiled import OFFSETS, boolean, compiled, i64, i64s, kernel, u32s
from ..base.graph import UNREACHED
from ..base.intrinsics import compare_and_swap
from ..base.numbering import NUMBERING, renumber
from ..base.turns import come, take
from ..pieces.piece import PIECE, row_of

VERTICES_A_TURN = 1 << 14
NEIGHBOURS = 2
"""Number of neighbours of each vertex that are joined at first, as in the paper."""

FEW = 4
"""The greatest number of edges a vertex, each counted once, at which all edges are joined in one
pass. On world_highways, which has 1.5, such a pass takes 0.77 of the time; on cnr-2000, which has
8, 1.7 times as long.
"""


@compiled
def join(forest, u, v):
    """Join the trees of two vertices."""
    first = forest[u]
    second = forest[v]
    while first != second:
        high = max(first, second)
        low = min(first, second)
        above = forest[high]
        if above == low or (above == high and compare_and_swap(forest, np.intp(high), high, low)):
            return
        first = forest[above]
        if first != above:
            forest[high] = first  # half the way next time: long chains would take the square of it
        second = forest[low]


@kernel(u32s, i64s)
def flatten(forest, taken):
    """Make each vertex a child of its root. Run by several threads at once: see turns.py."""
    n = forest.shape[0]
    turns = (n + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    thread = come(taken)
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = turn * VERTICES_A_TURN
        for v in range(first, min(first + VERTICES_A_TURN, n)):
            root = forest[v]
            while forest[root] != root:
                root = forest[root]
            forest[v] = root
        turn = take(taken, thread, turns)


@kernel(OFFSETS, u32s, NUMBERING, NUMBERING, u32s, u32s, i64, i64, types.uint32, boolean, i64s)
@kernel(OFFSETS, u32s, types.none, types.none, u32s, u32s, i64, i64, types.uint32, boolean, i64s)
def join_rows(
    offsets, targets, row_ids, target_ids, forest, groups, skipped, most, known, once, taken
):
    """Join each row to targets of the row, unless it is in the tree ``known``. Run as ``flatten``.

    row_ids, target_ids: numberings from a subgraph's rows and targets to global ids; or both None,
    if its numbers are global ids. groups: uint32, by global id, the group of each vertex; vertices
    of different groups are not joined; (0,) if there are no groups. skipped, most: the number of
    targets of a row that are passed over, and the most that are joined after them. Every edge
    stands in the rows of both its ends, here or in other subgraphs. once: whether the row of the
    greater end is enough.
    """
    rows = offsets.shape[0] - 1
    grouped = groups.shape[0] > 0
    turns = (rows + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    thread = come(taken)
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = turn * VERTICES_A_TURN
        for row in range(first, min(first + VERTICES_A_TURN, rows)):
            start = np.int64(offsets[row]) + skipped
            stop = min(np.int64(offsets[row + 1]), start + most)
            if start >= stop:
                continue
            u = renumber(row_ids, row)
            if forest[u] == known:
                continue
            for e in range(start, stop):
                v = renumber(target_ids, targets[np.uintp(e)])
                if (v < u or not once) and not (grouped and groups[v] != groups[u]):
                    join(forest, u, v)
        turn = take(taken, thread, turns)


@kernel(PIECE, NUMBERING, NUMBERING, u32s, u32s, boolean)
def join_piece(piece, row_ids, target_ids, forest, groups, twice):
    """Join along the edges at hand, on several pieces at once.

    groups: as in ``join_rows``. twice: whether every edge stands in the rows of both its ends; one
    of these rows is enough then.
    """
    offsets, targets, begin, end, _ = piece
    grouped = groups.shape[0] > 0
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        u = renumber(row_ids, row)
        for e in range(edge - begin, upto - begin):
            v = renumber(target_ids, targets[np.uintp(e)])
            if (v < u or not twice) and not (grouped and groups[v] != groups[u]):
                join(forest, u, v)
        edge = upto
        row += 1


@kernel(u32s, i64, u32s)
def join_labels(forest, first, labels):
    """Join each vertex from ``first`` on to its label in another forest."""
    for i in range(labels.shape[0]):
        if labels[i] != np.uint32(first + i):
            join(forest, np.uint32(first + i), labels[i])


@kernel(u32s, u32s, u32s, i64s)
def join_pairs(sources, targets, forest, taken):
    """Join along edges in any order. Run as ``flatten``."""
    edges = sources.shape[0]
    turns = (edges + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    thread = come(taken)
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = turn * VERTICES_A_TURN
        for e in range(first, min(first + VERTICES_A_TURN, edges)):
            join(forest, sources[e], targets[e])
        turn = take(taken, thread, turns)


@kernel(u32s, u32s)
def tree_sizes(forest, sizes):
    """Count the vertices of each tree, at the vertex that names it in ``forest``. A vertex with
    UNREACHED is in no tree.

    sizes: uint32 (vertices,), zeros at first.
    """
    for v in range(forest.shape[0]):
        if forest[v] != UNREACHED:
            sizes[forest[v]] += 1


@kernel(u32s, u32s, u32s)
def first_of_trees(vertices, forest, first):
    """Note in ``first``, by root, the vertex that is met first in each tree; UNREACHED where none
    was met before. forest: flat. Returns the number of trees that are met for the first time.
    """
    met = np.int64(0)
    for i in range(vertices.shape[0]):
        root = forest[vertices[i]]
        if first[root] == UNREACHED:
            first[root] = vertices[i]
            met += 1
    return met


@kernel(u32s, u32s)
def name_by_first(forest, first):
    """Name each vertex by the first vertex of its tree."""
    for v in range(forest.shape[0]):
        forest[v] = first[forest[v]]
