"""Compressed sparse rows made from edges: degrees, placing, sorting, dropping duplicates.

Vertices are known here by their **position**, their place in the degree order (0 is the vertex
of highest degree): the delegates are then the positions below ``delegates``, and neighbours
sorted by position are sorted hub first.

Edges are placed by Algorithm 1 of Pan, Pearce, Owens (Scalable Breadth-First Search on a
GPU Cluster), or in a grid of partitions (partition/store/grid.py), and become keys, a row and the
target's position, grouped by bucket; a bucket is a range of rows of one subgraph of one partition.
With one partition and no delegates, that is a plain CSR cut into ranges of rows.
"""

from typing import NamedTuple

import numpy as np

from ..base.bitmap import mask
from ..base.compiled import DEGREES, Struct, boolean, compiled, i64, i64s, kernel, u16s, u32s, u64s
from ..base.graph import UNREACHED

SUBGRAPHS = ("nn", "nd", "dn", "dd")
"""Names of the subgraphs, at index ``2 * (source is a delegate) + (target is a delegate)``."""

SLOTS = 2 * len(SUBGRAPHS)
"""Number of places for a partition's subgraphs: the four, then their transposes (of directed
graphs).
"""


def degree_dtype(rows: int) -> type[np.unsignedinteger]:
    """Return the type that holds any degree of a graph of ``rows`` input rows."""
    return np.uint32 if rows < 2**31 else np.uint64


class Placement(NamedTuple):
    """The numbers by which ``scatter`` places edges in partitions.

    partitions: int; number of partitions P. A vertex with global id v belongs to partition
        v mod P, where its local id is v div P.
    columns: int; of the grid, which has no delegates; 0 where there is none.
    delegates: int; positions below it are delegates.
    delegate_degree: uint32 or uint64 (delegates,); their degree, by position.
    global_id: uint32 (n,) by position, or (0,) when global ids are positions.
    first_bucket: int64 (P * SLOTS + 1,); first bucket of each slot, -1 for a slot not kept.
    normal_*, delegate_*: the ranges of rows that local ids and delegates fall into, as
        ``range_of`` takes them.
    """

    partitions: int
    columns: int
    delegates: int
    delegate_degree: np.ndarray
    global_id: np.ndarray
    first_bucket: np.ndarray
    normal_table: np.ndarray
    normal_shift: int
    normal_starts: np.ndarray
    delegate_table: np.ndarray
    delegate_shift: int
    delegate_starts: np.ndarray


_RANGES = (u32s, i64, i64s)
_PLACEMENT = Struct(Placement, (i64, i64, i64, DEGREES, u32s, i64s, *_RANGES, *_RANGES))


@kernel(u32s, u32s, i64, DEGREES, u64s)
def count_degrees(src, dst, first, degree, looped):
    """Add each row's two ends to ``degree``. Returns the number of self-loops, which count for
    nothing.

    degree: of the ids from ``first`` on; other ids are passed over. looped: bitmap over the same
    ids, receives those with a self-loop: they are vertices, with edges or without.
    """
    loops = 0
    size = np.uint32(degree.shape[0])
    for i in range(src.shape[0]):
        u = np.uint32(src[i] - first)
        v = np.uint32(dst[i] - first)
        if u == v:
            if u < size:
                loops += 1
                looped[u >> np.uint32(6)] |= mask(u)
            continue
        if u < size:
            degree[u] += 1
        if v < size:
            degree[v] += 1
    return loops


@kernel(u32s, u32s, i64, DEGREES)
def count_sources(src, dst, first, out_degree):
    """Add each row's source to ``out_degree``, self-loops excepted, as ``count_degrees``."""
    size = np.uint32(out_degree.shape[0])
    for i in range(src.shape[0]):
        u = np.uint32(src[i] - first)
        if u < size and src[i] != dst[i]:
            out_degree[u] += 1


@kernel(u32s, i64, u32s, u32s)
def translate(ids, first, table, into):
    """Set ``into[i] = table[ids[i] - first]`` where the table holds ids[i]; other entries are left
    alone.

    Returns whether no id that the table holds is UNREACHED there. ``into`` may be ``ids`` when the
    table holds all.
    """
    known = True
    size = np.uint32(table.shape[0])
    for i in range(ids.shape[0]):
        at = np.uint32(ids[i] - first)
        if at < size:
            value = table[at]
            known &= value != UNREACHED
            into[i] = value
    return known


@compiled
def range_of(row, table, shift, starts):
    """Return which of some consecutive ranges holds ``row``: r with ``starts[r] <= row < starts[r +
    1]``.

    table: uint32; table[g] is the range of row ``g << shift``, its last entry the last range.
    """
    low = np.int64(table[row >> shift])
    high = np.int64(table[(row >> shift) + 1])
    while low < high:
        middle = (low + high + 1) >> 1
        if starts[middle] <= row:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(DEGREES, i64s, i64, i64, i64s)
def cut_rows(edges, repeats, most_edges, most_rows, starts):
    """Cut rows into ranges of at most ``most_rows`` rows and ``most_edges`` edges.

    A row of more edges is a range of its own. edges: the number of edges of each row; or, if
    ``repeats`` is not empty, of as many rows each as it says. starts: int64, receives the first row
    of each range and, after the last one, the number of rows. Returns the number of ranges.
    """
    ranges = 0
    row = np.int64(0)
    rows_held = np.int64(0)
    edges_held = np.int64(0)
    for i in range(edges.shape[0]):
        row_edges = np.int64(edges[i])
        left = np.int64(repeats[i]) if repeats.shape[0] else np.int64(1)
        while left > 0:
            fit = min(left, most_rows - rows_held)
            if row_edges > 0 or edges_held > most_edges:
                fit = min(fit, (most_edges - edges_held) // max(row_edges, np.int64(1)))
            if fit <= 0 and rows_held == 0:
                fit = np.int64(1)
            if fit > 0:
                if rows_held == 0:
                    starts[ranges] = row
                    ranges += 1
                row += fit
                rows_held += fit
                edges_held += fit * row_edges
                left -= fit
            if left > 0:
                rows_held = np.int64(0)
                edges_held = np.int64(0)
    starts[ranges] = row
    return ranges


@kernel(u32s, u32s, u32s, i64, i64s, i64s)
def histogram_of_first_position(u, v, table, shift, starts, histogram):
    """Count edges by the degree class of the lower of their two positions (the higher degree).

    table, shift, starts: the ranges of positions of one degree, as ``range_of`` takes them.
    """
    for i in range(u.shape[0]):
        if u[i] != v[i]:
            histogram[range_of(min(u[i], v[i]), table, shift, starts)] += 1


@compiled
def _global_id(global_id, position):
    if global_id.shape[0] == 0:
        return position
    return global_id[position]


@compiled
def place(partitions, columns, delegates, delegate_degree, global_id, u, v):
    """Return the slot of the edge between positions u -> v: its partition and its subgraph.

    In a grid this is the row of v, the column of u, and nn; else Algorithm 1 decides.
    """
    if partitions == 1:
        return 0
    if columns:
        row = _global_id(global_id, v) // np.uint32(columns) % np.uint32(partitions // columns)
        column = _global_id(global_id, u) % np.uint32(columns)
        return (np.int64(row) * columns + column) * SLOTS
    u_is_delegate = u < delegates
    v_is_delegate = v < delegates
    if not u_is_delegate:
        owned = _global_id(global_id, u)
    elif not v_is_delegate:
        owned = _global_id(global_id, v)
    elif delegate_degree[u] != delegate_degree[v]:
        owned = _global_id(global_id, max(u, v))  # the higher position has the lower degree
    else:
        owned = min(_global_id(global_id, u), _global_id(global_id, v))
    subgraph = 2 * np.int64(u_is_delegate) + np.int64(v_is_delegate)
    return np.int64(owned % np.uint32(partitions)) * SLOTS + subgraph


@compiled
def _row(partitions, columns, delegates, global_id, u):
    """Return the row of the vertex at position u: as a delegate, by its local id, or within its
    grid column.
    """
    if u < delegates:
        return u
    row = _global_id(global_id, u)
    return row if partitions == 1 else row // np.uint32(columns or partitions)


@kernel(u32s, u32s, u32s, _PLACEMENT, boolean, i64s, u16s, u32s, u32s)
def scatter(u, v, weights, placement, directed, offsets, rows, targets, placed):
    """Turn edges between positions u[i] and v[i] into keys grouped by bucket, without self-loops.

    A row of the input becomes two keys. If undirected, these are an edge each way; if directed, the
    edge and, where the store keeps one, its entry in the transpose of the same subgraph (in a grid,
    of the subgraph that has the edge the other way).

    weights: uint32, of each edge, or (0,). offsets: int64 (buckets + 1,), overwritten: bucket b's
    keys are offsets[b] .. offsets[b + 1]. rows (uint16), targets, placed (uint32): at least twice
    as long as there are edges; they receive, for each key, its row within the bucket's range, its
    target's position, and its weight, if there are any.
    """
    # Unpacked once: each look into the tuple would count a reference, shared by all threads.
    (
        partitions,
        columns,
        delegates,
        delegate_degree,
        global_id,
        first_bucket,
        normal_table,
        normal_shift,
        normal_starts,
        delegate_table,
        delegate_shift,
        delegate_starts,
    ) = placement
    at = np.empty(0, np.int64)
    offsets[:] = 0
    # Twice over the edges, counting and then placing: finding a bucket again costs less than
    # keeping it.
    for placing in range(2):
        for i in range(u.shape[0]):
            a = u[i]
            b = v[i]
            if a == b:
                continue
            slot = place(partitions, columns, delegates, delegate_degree, global_id, a, b)
            if directed and not columns:
                back_slot = slot + len(SUBGRAPHS)
            else:
                back_slot = place(partitions, columns, delegates, delegate_degree, global_id, b, a)
                if directed:
                    back_slot += len(SUBGRAPHS)
            for way in range(2):
                if way == 1:
                    slot = back_slot
                    a, b = b, a
                if first_bucket[slot] < 0:
                    continue
                row = np.int64(_row(partitions, columns, delegates, global_id, a))
                if a < delegates:
                    within = range_of(row, delegate_table, delegate_shift, delegate_starts)
                    start = delegate_starts[within]
                else:
                    within = range_of(row, normal_table, normal_shift, normal_starts)
                    start = normal_starts[within]
                bucket = first_bucket[slot] + within
                if placing:
                    k = at[bucket]
                    rows[k] = np.uint16(row - start)
                    targets[k] = b
                    if weights.shape[0]:
                        placed[k] = weights[i]
                    at[bucket] = k + 1
                else:
                    offsets[bucket + 1] += 1
        if not placing:
            for b in range(offsets.shape[0] - 1):
                offsets[b + 1] += offsets[b]
            at = offsets[:-1].copy()


@kernel(u16s, u32s, u64s)
def join_keys(rows, targets, keys):
    """Make keys for sorting: *row* in the high half, the target's position in the low half."""
    for i in range(rows.shape[0]):
        keys[i] = (np.uint64(rows[i]) << np.uint64(32)) | np.uint64(targets[i])


@kernel(u32s, u64s)
def mark_targets(targets, marked):
    """Put the targets of one row into a bitmap, which by itself is sorted and without
    duplicates.
    """
    for target in targets:
        marked[target >> np.uint32(6)] |= mask(target)


@kernel(u64s, u32s, u32s)
def rows_from_sorted(keys, row_counts, positions):
    """Drop duplicates from sorted keys; count each row's targets and write their positions.

    row_counts: uint32 zeros, one a row; positions: uint32, of at least len(keys).
    Returns the number of keys left.
    """
    count = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        if i == 0 or key != keys[i - 1]:
            row_counts[np.int64(key >> np.uint64(32))] += 1
            positions[count] = np.uint32(key & np.uint64(0xFFFFFFFF))
            count += 1
    return count
