"""The least edges that leave trees, and what they join: rounds of minimum spanning forests.

Vertices have numbers. An edge is a *pair*: the lesser number in the high half, the other one in the
low half. Edges are compared by the bits of their weights, which rise with the weights as these are
not negative, and then by their pairs. So no two are alike, and a forest is the same whatever the
order in which edges come.
"""

import numpy as np

from ..base.compiled import i64, kernel, u32s, u64s
from .forest import join

NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel(u64s, u64s, u32s, u32s, allocates=False)
def set_words(words, least, numbers, tree):
    """Set the word of each vertex to its tree, in the high half, and its number, by which the
    vertex takes part in LeastLeaving; no number if none of its edges has left its tree before.

    words, least: uint64, of some vertices; least: as ``words`` of take_least, of the last round.
    numbers: uint32, of these vertices. tree: uint32 (n,), of each number.
    """
    for i in range(words.shape[0]):
        number = np.uint64(numbers[i]) if least[i] != NO_PAIR else _LOW
        words[i] = np.uint64(tree[numbers[i]]) << _HALF | number


@kernel(u64s, u32s, u32s, u32s, u64s)
def take_least(words, numbers, tree, least_weights, least_pairs):
    """Take, for each tree, the least of the edges that leave its vertices.

    words: uint64, of each vertex its least edge that leaves its tree: the weight in the high half,
    the number of the other end in the low half; NO_PAIR where there is none. numbers: uint32, of
    these vertices. tree: uint32 (n,), of each number. least_weights: uint32 (n,), and least_pairs:
    uint64 (n,), by tree: the least edge so far, NO_PAIR where there is none.
    """
    for i in range(words.shape[0]):
        word = words[i]
        if word == NO_PAIR:
            continue
        here = np.uint64(numbers[i])
        there = word & _LOW
        pair = min(here, there) << _HALF | max(here, there)
        weight = np.uint32(word >> _HALF)
        t = tree[numbers[i]]
        if least_pairs[t] == NO_PAIR or weight < least_weights[t]:
            least_weights[t] = weight
            least_pairs[t] = pair
        elif weight == least_weights[t] and pair < least_pairs[t]:
            least_pairs[t] = pair


@kernel(u32s, u32s, u64s, u32s, u64s)
def merge_least(trees, weights, pairs, least_weights, least_pairs):
    """Take the least edges of some trees, that another rank has found."""
    for i in range(trees.shape[0]):
        t = trees[i]
        if least_pairs[t] == NO_PAIR or weights[i] < least_weights[t]:
            least_weights[t] = weights[i]
            least_pairs[t] = pairs[i]
        elif weights[i] == least_weights[t] and pairs[i] < least_pairs[t]:
            least_pairs[t] = pairs[i]


@kernel(u32s, u32s, u64s, u32s, u64s, i64)
def join_least(tree, least_weights, least_pairs, weights, pairs, found):
    """Append the least edges to the forest, each once, and join the trees at their ends. Returns
    the number of edges of the forest.

    tree: changes; not all vertices know their tree afterwards. weights, pairs: of the forest, which
    has ``found`` edges. least_pairs: NO_PAIR everywhere afterwards.
    """
    first = found
    for t in range(tree.shape[0]):
        pair = least_pairs[t]
        if pair == NO_PAIR:
            continue
        low = tree[pair >> _HALF]
        other = tree[pair & _LOW] if low == t else low
        if other < t and least_pairs[other] == pair:
            continue  # both trees take it
        weights[found] = least_weights[t]
        pairs[found] = pair
        found += 1
    for e in range(first, found):
        join(tree, np.uint32(pairs[e] >> _HALF), np.uint32(pairs[e] & _LOW))
    least_pairs[:] = NO_PAIR
    return found
