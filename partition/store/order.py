"""The order of the vertices by their degrees, and the threshold between normal vertices and
delegates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...kernels.prepare.positions import SMALL_DEGREES, assign_positions, count_small_degrees

Order = Literal["degree", "none", "random"]

NN_SHARE = 0.01
"""Share of nn edges that the automatic threshold stays within.

Pan et al. (VI-B) take 10%. Along nn a search can only push, and on a GPU that costs more than the
state of more delegates: with 10% two H200s took 3.5 ms for a Kronecker graph of scale 25, with 1%
1.0 ms. On CPUs it makes no difference.
"""
DELEGATES_PER_VERTEX_SHARE = 4
"""Bound on the number of delegates, as a multiple of n / P (Pan et al., VI-B)."""


@dataclass(frozen=True)
class VertexOrder:
    """The vertices of a graph, numbered.

    Dense ids that do not occur are not vertices. *Position* is a vertex's place by falling degree,
    ties by id. *Global id* is its number in the chosen order; in the order ``degree`` it is the
    position. The positions of dense ids are stored separately, in spans of ids (runs.py).

    distinct: uint32 or uint64, the degrees that occur, falling. counts: int64, the number of
    vertices of each degree. global_of_position: uint32 (n,); None if global ids are positions.
    """

    distinct: NDArray[np.unsignedinteger]
    counts: NDArray[np.int64]
    global_of_position: NDArray[np.uint32] | None = None

    @property
    def vertices(self) -> int:
        return int(self.counts.sum())

    def first_positions(self, stride: int = 1) -> NDArray[np.int64]:
        """Return for each degree the number of vertices before it, followed by the number of all.
        stride: count only every ``stride``-th position.

        >>> VertexOrder(np.array([9, 2]), np.array([1, 4])).first_positions().tolist()
        [0, 1, 5]
        """
        ends = np.append(0, np.cumsum(self.counts))
        return -(-ends // stride)

    def degree(self, positions: int) -> NDArray[np.unsignedinteger]:
        """Return the degrees of the first ``positions`` positions."""
        return self.degree_between(0, positions)

    def degree_between(self, first: int, stop: int) -> NDArray[np.unsignedinteger]:
        """Return the degrees of positions ``first`` .. ``stop - 1``.

        >>> VertexOrder(np.array([9, 2, 1]), np.array([1, 4, 1])).degree_between(3, 6)
        array([2, 2, 1])
        """
        ends = np.clip(self.first_positions(), first, stop)
        return np.repeat(self.distinct, np.diff(ends))

    def histogram(self) -> tuple[int, ...]:
        """Return the number of vertices of degree 0, 1, 2-3, 4-7, ..."""
        bits = [int(degree).bit_length() for degree in self.distinct]
        sums = np.zeros(bits[0] + 1, np.int64)
        np.add.at(sums, bits, self.counts)
        return tuple(sums.tolist())


def degree_histogram(
    degree: NDArray[np.unsignedinteger], looped: NDArray[np.uint64]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
    """Return the distinct degrees of a span's vertices, falling, and the number of vertices of each
    degree.

    looped: bitmap of the span's ids with a self-loop, which are vertices even without edges.
    """
    counts = np.zeros(SMALL_DEGREES, np.int64)
    large = np.empty(np.count_nonzero(degree >= SMALL_DEGREES), degree.dtype)
    count_small_degrees(degree, looped, counts, large)
    values, times = np.unique(large, return_counts=True)
    small = np.flatnonzero(counts)[::-1]
    distinct = np.concatenate([values[::-1], small.astype(degree.dtype)])
    return distinct, np.concatenate([times[::-1], counts[small]]).astype(np.int64)


def positions_of_span(
    degree: NDArray[np.unsignedinteger],
    looped: NDArray[np.uint64],
    distinct: NDArray[np.unsignedinteger],
    following: NDArray[np.int64],
) -> NDArray[np.uint32]:
    """Return the positions of a span's ids, UNREACHED for gaps. following: the span's first
    position of each degree.
    """
    small = np.flatnonzero(distinct < SMALL_DEGREES)
    class_of_small = np.zeros(SMALL_DEGREES, np.int64)
    class_of_small[distinct[small]] = small
    positions = np.empty(len(degree), np.uint32)
    assign_positions(degree, looped, distinct, class_of_small, following.copy(), positions)
    return positions


def permuted(places: NDArray[np.uint32], vertices: int) -> NDArray[np.uint32]:
    """Return the values of a fixed pseudo-random permutation of ``range(vertices)`` at ``places``.

    The permutation is a Feistel network of four rounds over an even number of bits, applied again
    until the result is in the range. Each value is computed by itself, without those of other
    places.

    >>> sorted(permuted(np.arange(1000, dtype=np.uint32), 1000).tolist()) == list(range(1000))
    True
    """
    half = np.uint64(max(1, -(-(vertices - 1).bit_length() // 2)))
    low = (np.uint64(1) << half) - np.uint64(1)
    numbers = places.astype(np.uint64)
    outside = np.ones(len(numbers), np.bool_)
    while outside.any():
        walked = numbers[outside]
        left, right = walked >> half, walked & low
        for turn in range(4):
            left, right = right, left ^ (_mix(right + np.uint64(turn << 32)) & low)
        numbers[outside] = (left << half) | right
        outside = numbers >= vertices
    return numbers.astype(np.uint32)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a fixed pseudo-random 64-bit number for each value (SplitMix64's finalizer)."""
    x = values + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Threshold:
    """The threshold of delegates: vertices of degree above ``value`` are delegates.

    delegates: their number. chosen_by: "user", "nn" (the share of nn edges decided), "delegates"
    (their number decided) or "no delegates" (the layout has none). nn_share: rows between two
    normal vertices, as a share of all rows without self-loops.
    """

    value: int
    delegates: int
    nn_share: float
    chosen_by: str


def choose_threshold(
    order: VertexOrder,
    rows_by_class: NDArray[np.int64],
    partitions: int,
    wanted: int | None,
    nn_share: float = NN_SHARE,
) -> Threshold:
    """Return the user's threshold, or the automatic one.

    Automatic: the largest threshold whose nn edges are within ``nn_share``; if that gives more than
    4n/P delegates, the smallest threshold that does not (Pan et al., section VI-B). rows_by_class:
    the number of rows by the place in ``order.distinct`` of the higher degree of their two ends.

    >>> order = VertexOrder(np.array([9, 3, 2, 1], np.uint32), np.array([1, 1, 2, 1]))
    >>> choose_threshold(order, np.array([90, 6, 3, 1]), 2, None, nn_share=0.1)
    Threshold(value=3, delegates=1, nn_share=0.1, chosen_by='nn')
    """
    distinct = order.distinct
    rows = max(1, int(rows_by_class.sum()))
    # nn rows under threshold distinct[i]: those whose higher degree is in class i or later.
    nn_rows = np.cumsum(rows_by_class[::-1])[::-1]

    def at(value: int, chosen_by: str) -> Threshold:
        delegates = int(order.counts[distinct > value].sum())
        normal_classes = np.flatnonzero(distinct <= value)
        nn = int(nn_rows[normal_classes[0]]) if len(normal_classes) else 0
        return Threshold(value, delegates, nn / rows, chosen_by)

    if wanted is not None:
        return at(wanted, "user")
    within = distinct[nn_rows <= nn_share * rows]
    chosen = at(int(within[0]) if len(within) else 0, "nn")
    most = int(DELEGATES_PER_VERTEX_SHARE * order.vertices / partitions)
    if chosen.delegates <= most:
        return chosen
    # Degree falls with position, so the first position that must be normal sets the threshold.
    first_normal = np.searchsorted(np.cumsum(order.counts), most, side="right")
    return at(int(distinct[first_normal]), "delegates")
