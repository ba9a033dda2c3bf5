"""What a judge of label propagation does with each edge: note it, and count what was noted.

Written apart from the program that is judged: one thread, and sorting instead of tables.
"""

import numpy as np

from ..base.compiled import boolean, f64, f64s, i64, i64s, kernel, u32s, u64s


@kernel(u32s, u32s, f64s, f64, boolean, u32s, u32s, i64, i64, i64, u64s, i64s, allocates=False)
def note_labels(
    ends, neighbours, weights, scale, by_weights, number, label, first, last, noted, keys, amounts
):
    """Note the labels of neighbours, for vertices with numbers ``first <= v < last``. Returns how
    many labels are noted.

    ends, neighbours: places of vertices. weights: of the edges, multiplied by ``scale`` and
    rounded, if ``by_weights``. number: the number of the vertex at each place. label: the label of
    the vertex with each number. noted: how many labels are noted before. keys: uint64, receive
    number - first and label as 32 bits each. amounts: int64, receive the rounded weights.
    """
    for e in range(ends.shape[0]):
        v = np.int64(number[ends[e]])
        if first <= v < last:
            keys[noted] = np.uint64(v - first) << np.uint64(32) | np.uint64(
                label[number[neighbours[e]]]
            )
            if by_weights:
                amounts[noted] = np.int64(np.rint(weights[e] * scale))
            noted += 1
    return noted


@kernel(u64s, i64s, i64s, boolean, i64, u32s, allocates=False)
def count_labels(keys, order, amounts, by_weights, first, following):
    """Set the label of each vertex to the one with the greatest sum, and of several to the least.

    keys: as ``note_labels`` leaves them; sorted, unless ``by_weights``. order: the order that sorts
    ``keys``, if ``by_weights``. following: uint32, by number, receives the labels.
    """
    i = 0
    best = np.int64(-1)
    vertex = np.uint64(0xFFFFFFFF)
    while i < keys.shape[0]:
        key = keys[order[i]] if by_weights else keys[i]
        total = np.int64(0)
        while i < keys.shape[0]:
            at = order[i] if by_weights else i
            if keys[at] != key:
                break
            total += amounts[at] if by_weights else 1
            i += 1
        if key >> np.uint64(32) != vertex:
            vertex = key >> np.uint64(32)
            best = np.int64(-1)
        if total > best:  # labels rise, so the least one is first
            best = total
            following[first + np.int64(vertex)] = np.uint32(key & np.uint64(0xFFFFFFFF))
