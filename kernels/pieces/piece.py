"""Pieces of a subgraph that a kernel visits: edges, and the vertices at both ends.

A subgraph numbers its rows and its targets. A *segment* holds the state of vertices, each in its
*place*. ``places`` leads from the subgraph's numbers to places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import OFFSETS, Struct, compiled, i64, kernel, u32s, u64s
from ..base.numbering import NUMBERING, Numbering

NO_WEIGHTS = np.empty(0, np.uint32)


class Piece(NamedTuple):
    """Compressed sparse rows, of whose edges ``begin <= e < end`` are at hand.

    offsets: uint32 or uint64 (rows + 1,), of the whole subgraph. targets: uint32 (end - begin,).
    weights: uint32 (end - begin,), their bits, or (0,); uint64 for sums of weights. The first and
    the last row of the edges may be cut: their other edges are in other pieces, which other threads
    may hold at the same time.
    """

    offsets: NDArray[np.unsignedinteger]
    targets: NDArray[np.uint32]
    begin: int
    end: int
    weights: NDArray[np.unsignedinteger] = NO_WEIGHTS

    @property
    def unweighted(self) -> Piece:
        """Return the piece without weights."""
        return self._replace(weights=NO_WEIGHTS)

    def parts(self, edges: int) -> Iterator[Piece]:
        """Yield pieces of so many edges each, or fewer, that together have all edges at hand."""
        for first in range(0, len(self.targets), edges):
            at = slice(first, first + edges)
            targets, begin = self.targets[at], self.begin + first
            yield Piece(self.offsets, targets, begin, begin + len(targets), self.weights[at])


class Start(NamedTuple):
    """The vertices that a visit leads from.

    ids: numbering from places to global ids. bits: bitmap by place; for a push, the frontier; for a
    pull, the vertices that may become a parent.
    """

    places: Numbering
    ids: Numbering
    bits: NDArray[np.uint64]


class Ends(NamedTuple):
    """The vertices that a visit leads to, and where a visit notes those that it finds.

    visited, found: bitmaps by place. Nobody looks for a vertex in ``visited``, and a vertex belongs
    to the thread that sets its bit in ``found``. The two may be the same bitmap. parents: uint32,
    by place. If ``vertices``, uint32, is not empty, it receives the vertices found instead, in no
    order, and ``parents`` their parents; both hold all that can be found.
    """

    places: Numbering
    visited: NDArray[np.uint64]
    found: NDArray[np.uint64]
    vertices: NDArray[np.uint32]
    parents: NDArray[np.uint32]


PIECE = Struct(Piece, (OFFSETS, u32s, i64, i64, u32s))
WIDE_PIECE = Struct(Piece, (OFFSETS, u32s, i64, i64, u64s))
START = Struct(Start, (NUMBERING, NUMBERING, u64s))
ENDS = Struct(Ends, (NUMBERING, u64s, u64s, u32s, u32s))


@compiled
def weight_of(bits, floats):
    """Return a weight by its bits. floats: whether it is a float of 32 bits, or an integer."""
    if floats:
        return np.float64(np.uint32(bits).view(np.float32))
    return np.float64(bits)


@compiled
def keep(vertices, parents, count, v, parent):
    """Keep a vertex that was found after ``count`` others, as Ends says."""
    if vertices.shape[0]:
        vertices[count] = v
        parents[count] = parent
    else:
        parents[v] = parent


@compiled
def edges_of(offsets, rows, first, last):
    """Count the edges of ``rows[first:last]``."""
    edges = np.int64(0)
    for i in range(first, last):
        edges += np.int64(offsets[rows[i] + 1]) - np.int64(offsets[rows[i]])
    return edges


@kernel(OFFSETS, i64)
def row_of(offsets, edge):
    """Return the row that holds an edge: the last row that starts at the edge or before."""
    low = 0
    high = offsets.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(offsets[middle]) <= edge:
            low = middle
        else:
            high = middle
    return low
