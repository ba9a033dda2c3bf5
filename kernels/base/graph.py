"""The graph as a backend sees it: compressed sparse rows, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

UNREACHED = np.uint32(0xFFFFFFFF)
"""The entry of ``parent`` arrays that means "no parent". Vertex numbers are below it."""


@dataclass(frozen=True)
class Graph:
    """A graph of ``n`` vertices in compressed sparse rows.

    Row ``u`` is ``targets[offsets[u]:offsets[u + 1]]``. In the rows of a store every neighbour
    stands once, hub first (by falling degree); any rows are searched rightly.
    ``reverse_offsets`` and ``reverse_targets`` hold the incoming edges, for pull; in an
    undirected graph they are the same arrays.

    offsets, reverse_offsets: uint32 or uint64, shape (n + 1,).
    targets, reverse_targets: uint32, shape (m,), m counting both directions if undirected.
    """

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]
    reverse_offsets: NDArray[np.unsignedinteger]
    reverse_targets: NDArray[np.uint32]

    @property
    def vertices(self) -> int:
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Count the entries of ``targets``."""
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        arrays = self.offsets, self.targets, self.reverse_offsets, self.reverse_targets
        return sum({id(array): array.nbytes for array in arrays}.values())

    @cached_property
    def vertices_with_incoming(self) -> int:
        """Count the vertices that a pull can find."""
        return int(np.count_nonzero(self.reverse_offsets[1:] != self.reverse_offsets[:-1]))

    @classmethod
    def undirected(cls, offsets, targets) -> Graph:
        return cls(offsets, targets, offsets, targets)


def rows_of_edges(offsets: NDArray, start: int, stop: int) -> NDArray[np.uint32]:
    """Return the row of each of the edges ``start <= e < stop`` of compressed sparse rows.

    >>> rows_of_edges(np.array([0, 2, 2, 5]), 1, 4).tolist()
    [0, 2, 2]
    """
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    bounds = np.clip(offsets[first : last + 1].astype(np.int64), start, stop)
    return np.repeat(np.arange(first, last, dtype=np.uint32), np.diff(bounds))
