"""What kernels that see only some of a subgraph's edges at a time share.

A run is the edges ``start <= e < stop`` of a subgraph, in a buffer. Its first and last row may
be cut: their other edges are in other runs, which other threads may hold at the same time.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Marks(NamedTuple):
    """The vertices of a search whose edges are on disk, by global id.

    visited: bitmap, all up to the frontier's level; no run changes it. frontier: bitmap. found:
    bitmap of what the level finds, claimed by atomic operations. distance: int32 (n,), -1 where
    unreached. parent: uint32 (n,), UNREACHED for the source and where unreached.
    """

    visited: NDArray[np.uint64]
    frontier: NDArray[np.uint64]
    found: NDArray[np.uint64]
    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]


@njit(nogil=True, cache=True)
def row_of(offsets, edge):
    """The row that holds an edge: the last one that starts at it or before."""
    low = 0
    high = offsets.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(offsets[middle]) <= edge:
            low = middle
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def next_level(visited, frontier, found):
    """What was found is the frontier now, and visited."""
    for w in range(visited.shape[0]):
        word = found[w]
        visited[w] |= word
        frontier[w] = word
        found[w] = 0
