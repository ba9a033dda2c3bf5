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
    """What ``place`` needs to know.

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
def _global_id(placement, rank):
    if placement.global_id.shape[0] == 0:
        return rank
    return placement.global_id[rank]


@njit(nogil=True, cache=True)
def owner(placement, u, v):
    """Partition and subgraph of the edge between ranks u -> v (Algorithm 1)."""
    u_is_delegate = u < placement.delegates
    v_is_delegate = v < placement.delegates
    subgraph = 2 * np.int64(u_is_delegate) + np.int64(v_is_delegate)
    if not u_is_delegate:
        at = _global_id(placement, u)
    elif not v_is_delegate:
        at = _global_id(placement, v)
    elif placement.degree[u] != placement.degree[v]:
        at = _global_id(placement, max(u, v))  # the higher rank has the lower degree
    else:
        at = min(_global_id(placement, u), _global_id(placement, v))
    return np.int64(at) % placement.partitions, subgraph


@njit(nogil=True, cache=True)
def _bucket_and_key(placement, slot, u, v):
    """Where an edge with row ``u`` and target ``v`` goes within slot ``slot``, and its key."""
    if u < placement.delegates:
        row = np.int64(u)
        within = placement.delegate_range[row >> placement.delegate_shift]
    else:
        row = np.int64(_global_id(placement, u)) // placement.partitions
        within = placement.normal_range[row >> placement.normal_shift]
    bucket = placement.first_bucket[slot] + np.int64(within)
    return bucket, (np.uint64(row) << np.uint64(32)) | np.uint64(v)


@njit(nogil=True, cache=True)
def scatter_edge(placement, directed, u, v):
    """Both (bucket, key) of one row: undirected, an edge each way; directed, it and its reverse.

    A bucket of -1 says that the store does not keep that one.
    """
    p, subgraph = owner(placement, u, v)
    slot = p * SLOTS + subgraph
    bucket, key = _bucket_and_key(placement, slot, u, v)
    if not directed:
        p, subgraph = owner(placement, v, u)
        back_bucket, back_key = _bucket_and_key(placement, p * SLOTS + subgraph, v, u)
    elif placement.first_bucket[slot + 4] >= 0:
        back_bucket, back_key = _bucket_and_key(placement, slot + 4, v, u)
    else:
        back_bucket, back_key = np.int64(-1), np.uint64(0)
    return bucket, key, back_bucket, back_key


@njit(nogil=True, cache=True)
def scatter(src, dst, rank, placement, directed, offsets):
    """Turn rows (dense ids) into keys grouped by bucket; self-loops are left out.

    offsets: int64 (buckets + 1,), overwritten: bucket b's keys are keys[offsets[b]:offsets[b+1]].
    Returns keys, uint64.
    """
    rows = src.shape[0]
    u_rank = np.empty(rows, np.uint32)
    v_rank = np.empty(rows, np.uint32)
    offsets[:] = 0
    for i in range(rows):
        u = rank[src[i]]
        v = rank[dst[i]]
        u_rank[i] = u
        v_rank[i] = v
        if u != v:
            bucket, _, back_bucket, _ = scatter_edge(placement, directed, u, v)
            offsets[bucket + 1] += 1
            if back_bucket >= 0:
                offsets[back_bucket + 1] += 1
    for b in range(offsets.shape[0] - 1):
        offsets[b + 1] += offsets[b]
    keys = np.empty(offsets[-1], np.uint64)
    at = offsets[:-1].copy()
    for i in range(rows):
        u = u_rank[i]
        v = v_rank[i]
        if u != v:
            bucket, key, back_bucket, back_key = scatter_edge(placement, directed, u, v)
            keys[at[bucket]] = key
            at[bucket] += 1
            if back_bucket >= 0:
                keys[at[back_bucket]] = back_key
                at[back_bucket] += 1
    return keys


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
