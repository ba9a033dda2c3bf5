"""From edges to compressed sparse rows: degrees, placing, sorting, dropping duplicates.

Vertices are known here by their **rank**, their place in the degree order (0 is the vertex
of highest degree): the delegates are then the ranks below ``delegates``, and neighbours
sorted by rank are sorted hub first.

Edges are placed by Algorithm 1 of Pan, Pearce, Owens (Scalable Breadth-First Search on a
GPU Cluster) and become 64-bit keys, *row* in the high half and the target's rank in the low
half, grouped by bucket; a bucket is a range of rows of one subgraph of one partition. With
one partition and no delegates, that is a plain CSR cut into ranges of rows.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

SUBGRAPHS = ("nn", "nd", "dn", "dd")
"""Subgraph ``2 * (source is a delegate) + (target is a delegate)``."""

SLOTS = 2 * len(SUBGRAPHS)
"""Of a partition: its four subgraphs, then their transposes (kept for directed graphs)."""


class Placement(NamedTuple):
    """What ``scatter`` needs to know.

    partitions: int; number of partitions P. A vertex with global id v belongs to partition
        v mod P, where its local id is v div P.
    delegates: int; ranks below it are delegates.
    degree: uint32 or uint64 (n,); degree by rank.
    global_id: uint32 (n,) by rank, or (0,) when global ids are ranks.
    first_bucket: int64 (P * SLOTS + 1,); first bucket of each slot, -1 for a slot not kept.
    normal_range, delegate_range: uint32; range of rows that a local id (delegate id) shifted
        right by normal_shift (delegate_shift) falls into.
    """

    partitions: int
    delegates: int
    degree: np.ndarray
    global_id: np.ndarray
    first_bucket: np.ndarray
    normal_range: np.ndarray
    normal_shift: int
    delegate_range: np.ndarray
    delegate_shift: int


@njit(nogil=True, cache=True)
def count_degrees(src, dst, degree):
    """Add each row's two ends to ``degree``; return the self-loops, which count for nothing."""
    loops = 0
    for i in range(src.shape[0]):
        u = src[i]
        v = dst[i]
        if u == v:
            loops += 1
        else:
            degree[u] += 1
            degree[v] += 1
    return loops


@njit(nogil=True, cache=True)
def count_sources(src, dst, out_degree):
    """Add each row's source to ``out_degree``, self-loops excepted."""
    for i in range(src.shape[0]):
        if src[i] != dst[i]:
            out_degree[src[i]] += 1


@njit(nogil=True, cache=True)
def histogram_of_lowest_rank(src, dst, rank, degree_class, histogram):
    """Count edges by the class of their higher degree: the class of the lower of two ranks."""
    for i in range(src.shape[0]):
        u = rank[src[i]]
        v = rank[dst[i]]
        if u != v:
            histogram[degree_class[min(u, v)]] += 1


@njit(nogil=True, cache=True)
def _global_id(global_id, rank):
    if global_id.shape[0] == 0:
        return rank
    return global_id[rank]


@njit(nogil=True, cache=True)
def place(partitions, delegates, degree, global_id, u, v):
    """Slot of the edge between ranks u -> v: its partition (Algorithm 1) and its subgraph."""
    if partitions == 1:
        return 0
    u_is_delegate = u < delegates
    v_is_delegate = v < delegates
    if not u_is_delegate:
        owned = _global_id(global_id, u)
    elif not v_is_delegate:
        owned = _global_id(global_id, v)
    elif degree[u] != degree[v]:
        owned = _global_id(global_id, max(u, v))  # the higher rank has the lower degree
    else:
        owned = min(_global_id(global_id, u), _global_id(global_id, v))
    subgraph = 2 * np.int64(u_is_delegate) + np.int64(v_is_delegate)
    return np.int64(owned % np.uint32(partitions)) * SLOTS + subgraph


@njit(nogil=True, cache=True)
def _row(partitions, delegates, global_id, u):
    """Row of the vertex of rank u: as a delegate, or by its local id."""
    if u < delegates:
        return u
    row = _global_id(global_id, u)
    return row if partitions == 1 else row // np.uint32(partitions)


@njit(nogil=True, cache=True)
def _key(row, rank):
    return (np.uint64(row) << np.uint64(32)) | np.uint64(rank)


@njit(nogil=True, cache=True)
def scatter(src, dst, rank, placement, directed, offsets):
    """Turn rows (dense ids) into keys grouped by bucket; self-loops are left out.

    A row becomes two keys: undirected, an edge each way; directed, the edge and, where the
    store keeps one, its entry in the transpose of the same subgraph.

    offsets: int64 (buckets + 1,), overwritten: bucket b's keys are keys[offsets[b]:offsets[b+1]].
    Returns keys, uint64.
    """
    # Unpacked once: each look into the tuple would count a reference, shared by all threads.
    (
        partitions,
        delegates,
        degree,
        global_id,
        first_bucket,
        normal_range,
        normal_shift,
        delegate_range,
        delegate_shift,
    ) = placement
    rows = src.shape[0]
    keys = np.empty((2, rows), np.uint64)
    buckets = np.empty((2, rows), np.int32)
    offsets[:] = 0
    for i in range(rows):
        u = rank[src[i]]
        v = rank[dst[i]]
        buckets[0, i] = -1
        buckets[1, i] = -1
        if u == v:
            continue
        slot = place(partitions, delegates, degree, global_id, u, v)
        if directed:
            back_slot = slot + len(SUBGRAPHS)
        else:
            back_slot = place(partitions, delegates, degree, global_id, v, u)
        for way in range(2):
            if way == 1:
                slot = back_slot
                u, v = v, u
            if first_bucket[slot] < 0:
                continue
            row = _row(partitions, delegates, global_id, u)
            if u < delegates:
                within = delegate_range[row >> np.uint32(delegate_shift)]
            else:
                within = normal_range[row >> np.uint32(normal_shift)]
            bucket = first_bucket[slot] + np.int64(within)
            keys[way, i] = _key(row, v)
            buckets[way, i] = bucket
            offsets[bucket + 1] += 1
    for b in range(offsets.shape[0] - 1):
        offsets[b + 1] += offsets[b]
    grouped = np.empty(offsets[-1], np.uint64)
    at = offsets[:-1].copy()
    for way in range(2):
        for i in range(rows):
            bucket = buckets[way, i]
            if bucket >= 0:
                grouped[at[bucket]] = keys[way, i]
                at[bucket] += 1
    return grouped


@njit(nogil=True, cache=True)
def rows_from_sorted(keys, row_counts, ranks):
    """Drop duplicates from sorted keys; count each row's targets and write their ranks.

    row_counts: int64 zeros, one a row; ranks: uint32, of at least len(keys).
    Returns the number of keys left.
    """
    count = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        if i == 0 or key != keys[i - 1]:
            row_counts[np.int64(key >> np.uint64(32))] += 1
            ranks[count] = np.uint32(key & np.uint64(0xFFFFFFFF))
            count += 1
    return count
