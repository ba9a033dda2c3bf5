"""The least edges that leave trees, and what they join: rounds of minimum spanning forests.

Vertices have numbers, and a tree is named by one of its own. An edge is a *pair*: the lesser number
in the high half, the other one in the low half. Edges are compared by the bits of their weights,
which rise with the weights as these are not negative, and then by their pairs. So no two are alike,
and a forest is the same whatever the order in which edges come.

The *slot* of a tree, by its name, holds the least edge that leaves it. When trees are joined, each
but one of them brings an edge to the forest, which stays in its slot; the tree that they become is
named by the one. So a slot holds an edge of the forest, or is that of a tree.
"""

import numpy as np

from ..base.bitmap import mask
from ..base.compiled import boolean, compiled, i64, kernel, u32s, u64s
from ..base.intrinsics import trailing_zeros
from ..base.numbering import NUMBERING, renumber
from ..pieces.piece import PIECE, row_of
from .forest import join

NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel(u64s, u32s, u32s, boolean, allocates=False)
def set_words(words, numbers, tree, begin):
    """Set the word of each vertex: its tree in the high half, its number in the low half. The low
    half stays 2^32 - 1 if a round has found that no edge leaves the tree there, unless ``begin``.

    words: uint64, of some vertices. numbers: uint32, of these. tree: uint32 (n,), of each number.
    """
    for i in range(words.shape[0]):
        low = words[i] & _LOW
        if begin or low != _LOW:
            low = np.uint64(numbers[i])
        words[i] = np.uint64(tree[numbers[i]]) << _HALF | low


@kernel(PIECE, NUMBERING, u64s, NUMBERING, u64s, boolean, u64s, u64s, allocates=False)
def least_of_rows(piece, row_places, row_words, places, words, every, heres, edges):
    """Find, of each row at hand, the least edge that leaves its tree, if one does. Returns how many
    rows have one.

    row_places, row_words: of the subgraph's rows; ``places``, ``words`` of its targets. every:
    whether the rows have all edges of their vertices, each edge in the rows of both ends: a vertex
    that no edge leaves the tree from takes no part from then on, as no later one does (set_words).
    heres, edges: uint64, room for all rows at hand that have edges: the word of the row, and its
    edge: the bits of the weight in the high half, the number of the other end in the low half.
    """
    offsets, targets, begin, end, weights = piece
    weighted = weights.shape[0] > 0
    count = 0
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        place = renumber(row_places, row)
        here = row_words[place]
        if here & _LOW != _LOW:
            least = NO_PAIR
            for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
                there = words[renumber(places, targets[e])]
                found = there & _LOW
                if weighted:
                    found |= np.uint64(weights[e]) << _HALF
                if there >> _HALF == here >> _HALF:
                    found = NO_PAIR
                least = min(least, found)
            if least != NO_PAIR:
                heres[count] = here
                edges[count] = least
                count += 1
            elif every and edge == np.int64(offsets[row]) and upto == np.int64(offsets[row + 1]):
                # (Others read this word meanwhile: their edges to it do not leave the tree either.)
                row_words[place] = here | _LOW
        edge = upto
        row += 1
    return count


@compiled
def _offer(slot, weight, pair, weights, pairs):
    """Put an edge into a slot if it is less than the one there."""
    if (
        pairs[slot] == NO_PAIR
        or weight < weights[slot]
        or (weight == weights[slot] and pair < pairs[slot])
    ):
        weights[slot] = weight
        pairs[slot] = pair


@kernel(u64s, u64s, i64, u32s, u64s, allocates=False)
def take_least(heres, edges, count, weights, pairs):
    """Put the first ``count`` edges of ``least_of_rows`` into the slots of their rows' trees, where
    they are less than what is there. weights: uint32 (n,), and pairs: uint64 (n,), the slots.
    """
    for i in range(count):
        here = heres[i] & _LOW
        there = edges[i] & _LOW
        pair = min(here, there) << _HALF | max(here, there)
        _offer(heres[i] >> _HALF, np.uint32(edges[i] >> _HALF), pair, weights, pairs)


@kernel(PIECE, NUMBERING, u64s, NUMBERING, u64s, u32s, u64s, allocates=False)
def take_of_targets(piece, row_places, row_words, places, words, weights, pairs):
    """Put each edge at hand that leaves its target's tree into this tree's slot, where it is less
    than what is there: where there are no rows of the targets.
    """
    offsets, targets, begin, end, bits = piece
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        there = row_words[renumber(row_places, row)]
        for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
            here = words[renumber(places, targets[e])]
            if there >> _HALF != here >> _HALF:
                low = min(here & _LOW, there & _LOW)
                pair = low << _HALF | max(here & _LOW, there & _LOW)
                weight = bits[e] if bits.shape[0] else np.uint32(0)
                _offer(here >> _HALF, weight, pair, weights, pairs)
        edge = upto
        row += 1


@kernel(u32s, u32s, u64s, u32s, u64s, allocates=False)
def merge_least(trees, edge_weights, edge_pairs, weights, pairs):
    """Put edges, that another rank has found, into the slots of ``trees``, where they are less."""
    for i in range(trees.shape[0]):
        _offer(trees[i], edge_weights[i], edge_pairs[i], weights, pairs)


@kernel(u32s, u32s, u64s, u64s, u64s, allocates=False)
def join_least(tree, weights, pairs, bringing, idle):
    """Add the edges in the slots of trees to the forest, each once, and join the trees at their
    ends. Returns how many edges are added.

    tree: uint32 (n,), of each number its tree; not all numbers know it afterwards. bringing, idle:
    uint64, bitmaps of n numbers, zeros before and after.
    """
    for t in range(tree.shape[0]):
        pair = pairs[t]
        if tree[t] != t or pair == NO_PAIR:
            continue
        low = tree[pair >> _HALF]
        other = tree[pair & _LOW] if low == t else low
        if other < t and pairs[other] == pair:  # both trees take it: this one brings none
            idle[t >> 6] |= mask(np.uint32(t))
        else:
            bringing[t >> 6] |= mask(np.uint32(t))
    added = 0
    for w in range(bringing.shape[0]):  # (No list of them is made: there may be n.)
        word = bringing[w]
        bringing[w] = 0
        while word:
            pair = pairs[64 * w + np.int64(trailing_zeros(word))]
            join(tree, np.uint32(pair >> _HALF), np.uint32(pair & _LOW))
            added += 1
            word &= word - np.uint64(1)
    for w in range(idle.shape[0]):
        word = idle[w]
        idle[w] = 0
        while word:
            t = 64 * w + np.int64(trailing_zeros(word))
            word &= word - np.uint64(1)
            # The others have another one's name, whose slot is to be free: its edge moves.
            root = tree[t]
            while tree[root] != root:
                root = tree[root]
            weights[t] = weights[root]
            pairs[t] = pairs[root]
            pairs[root] = NO_PAIR
    return added


@kernel(u32s, u32s, u64s, allocates=False)
def pack_edges(tree, weights, pairs):
    """Move the edges of the forest to the first slots, in any order. Returns how many there are."""
    count = 0
    for t in range(tree.shape[0]):
        if tree[t] != t:
            weights[count] = weights[t]
            pairs[count] = pairs[t]
            count += 1
    return count


@kernel(u32s, i64, u32s, u64s, allocates=False)
def unpack_edges(tree, count, weights, pairs):
    """Move the edges of the forest, which are in the first ``count`` slots, to slots that are not
    those of trees. These are empty afterwards.
    """
    free = count
    for t in range(count):
        if tree[t] != t:
            continue
        while tree[free] == free:
            free += 1
        weights[free] = weights[t]
        pairs[free] = pairs[t]
        free += 1
    for t in range(tree.shape[0]):
        if tree[t] == t:
            pairs[t] = NO_PAIR
