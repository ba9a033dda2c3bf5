"""Contraction: the edges between labels, each pair of labels once, with what its edges amount to.

A pair is a key. Its high half is the label of the vertex that an edge leaves, its low half the
other one. Sums are whole numbers of 64 bits, so they are exact in any order.
"""

from __future__ import annotations

import numpy as np

from ..base.compiled import boolean, kernel, u32s, u64s
from ..base.numbering import NUMBERING, renumber
from .operators import LISTED_AMOUNTS, SCALED_WEIGHTS, UNIT_AMOUNTS, amount
from .piece import PIECE, WIDE_PIECE, row_of

_EDGES = NUMBERING, u32s, NUMBERING, u32s, boolean, boolean, u64s, u64s


@kernel(UNIT_AMOUNTS, PIECE, *_EDGES)
@kernel(LISTED_AMOUNTS, WIDE_PIECE, *_EDGES)
@kernel(SCALED_WEIGHTS, PIECE, *_EDGES, allocates=False)
def collect_pairs(
    amounts, piece, row_places, row_labels, places, labels, directed, loops, keys, sums
):
    """Collect the labels of the ends of each edge at hand. Edges that follow each other with the
    same labels give one pair. Returns the number of pairs.

    row_places, row_labels: numbering of the subgraph's rows, and labels by place; ``places`` and
    ``labels`` are those of its targets. directed: if not, the edges stand in both directions, and
    count only from a lesser label to a greater one, or inside a label. loops: whether pairs of a
    label with itself are collected. keys, sums: uint64, room for a pair of each edge.
    """
    offsets, targets, begin, end, weights = piece
    count = 0
    last = np.uint64(0)
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        label = row_labels[renumber(row_places, row)]
        high = np.uint64(label) << np.uint64(32)
        for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
            other = labels[renumber(places, targets[e])]
            if (other == label and not loops) or (other < label and not directed):
                continue
            key = high | np.uint64(other)
            if count and key == last:
                sums[count - 1] += amount(amounts, weights, e)
            else:
                keys[count] = last = key
                sums[count] = amount(amounts, weights, e)
                count += 1
        edge = upto
        row += 1
    return count


@kernel(u64s, u32s, u64s, u64s, u64s)
def add_up_pairs(sorted_keys, places, sums, into_keys, into_sums):
    """Add up the sums of equal keys. Returns the number of distinct keys.

    sorted_keys: uint64, rising. places: uint32, of each key's sum in ``sums``. into_keys,
    into_sums: uint64, receive the keys with their sums.
    """
    count = 0
    for i in range(sorted_keys.shape[0]):
        added = sums[places[i]]
        if count and into_keys[count - 1] == sorted_keys[i]:
            into_sums[count - 1] += added
        else:
            into_keys[count] = sorted_keys[i]
            into_sums[count] = added
            count += 1
    return count


@kernel(u64s, u64s)
def count_union(keys, other_keys):
    """Return how many distinct keys two lists of rising keys have together."""
    count = keys.shape[0] + other_keys.shape[0]
    at = 0
    for key in keys:
        while at < other_keys.shape[0] and other_keys[at] < key:
            at += 1
        if at == other_keys.shape[0]:
            break
        count -= other_keys[at] == key
    return count


@kernel(u64s, u64s, u64s, u64s, u64s, u64s)
def merge_pairs(keys, sums, other_keys, other_sums, into_keys, into_sums):
    """Merge two lists of rising keys, and add up the sums of keys that are in both.

    into_keys, into_sums: uint64, room for exactly the merged list.
    """
    i = 0
    j = 0
    for at in range(into_keys.shape[0]):
        from_first = j == other_keys.shape[0] or (i < keys.shape[0] and keys[i] <= other_keys[j])
        if not from_first:
            into_keys[at] = other_keys[j]
            into_sums[at] = other_sums[j]
            j += 1
            continue
        into_keys[at] = keys[i]
        into_sums[at] = sums[i]
        if j < other_keys.shape[0] and other_keys[j] == keys[i]:
            into_sums[at] += other_sums[j]
            j += 1
        i += 1
