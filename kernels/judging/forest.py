"""Minimum spanning forests by one thread, written apart from the program that is judged: edges are
taken by rising weight (Kruskal, On the Shortest Spanning Subtree of a Graph and the Traveling
Salesman Problem, 1956).
"""

import numpy as np

from ..base.compiled import compiled, kernel, u8s, u32s, u64s

EDGE_BYTES = 9 * 8
"""Bytes for each edge while all are sorted: key and weight in both directions, as they come, joined
and in order, and places of the sort.
"""


@compiled
def _root(tree, v):
    while tree[v] != v:
        tree[v] = tree[tree[v]]
        v = np.int64(tree[v])
    return v


@kernel(u64s, u32s, u8s)
def take_edges(keys, tree, taken):
    """Mark in ``taken`` the edges that join two trees.

    keys: uint64, edges in the order in which they are taken; an end in each half. tree: uint32
    (n,), each vertex its own. taken: uint8, zeros.
    """
    for e in range(keys.shape[0]):
        u = _root(tree, np.int64(keys[e] >> np.uint64(32)))
        v = _root(tree, np.int64(keys[e] & np.uint64(0xFFFFFFFF)))
        if u != v:
            tree[max(u, v)] = min(u, v)
            taken[e] = 1
