"""Degrees, the order of the vertices, and the threshold between normal ones and delegates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..kernels.graph import UNREACHED
from ..kernels.sort import radix_sort

Order = Literal["degree", "none", "random"]

NN_SHARE = 0.10
"""Share of nn edges that the automatic threshold stays within (Pan et al., VI-B)."""
DELEGATES_PER_VERTEX_SHARE = 4
"""Delegates it stays within, as a multiple of n / P (Pan et al., VI-B)."""


@dataclass(frozen=True)
class VertexOrder:
    """The vertices of a graph, numbered.

    Dense ids that do not occur are not vertices. *Rank* is a vertex's place by falling
    degree, ties by id; *global id* is its number in the chosen order, which for ``degree``
    is the rank.

    dense_of_rank: uint32 (n,). rank_of_dense: uint32 (domain,), UNREACHED for gaps.
    degree: by rank, falling. global_of_rank: uint32 (n,), None where it is the identity.
    """

    dense_of_rank: NDArray[np.uint32]
    rank_of_dense: NDArray[np.uint32]
    degree: NDArray[np.unsignedinteger]
    global_of_rank: NDArray[np.uint32] | None

    @property
    def vertices(self) -> int:
        return len(self.dense_of_rank)

    def by_id(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Ranks and global ids of all vertices by rising id."""
        ranks = self.rank_of_dense[self.rank_of_dense != UNREACHED]
        return ranks, ranks if self.global_of_rank is None else self.global_of_rank[ranks]


def order_vertices(
    degree: NDArray[np.unsignedinteger], present: NDArray[np.uint8], order: Order
) -> VertexOrder:
    """Number the vertices by degree (falling), by id (``none``) or at random (fixed seed).

    degree: uint32 or uint64, by dense id; present: uint8, 1 where the id occurs.
    """
    dense = np.flatnonzero(present).astype(np.uint32)
    n = len(dense)
    dense_of_rank = dense[_by_falling_degree(degree[dense])]
    rank_of_dense = np.full(len(degree), UNREACHED, np.uint32)
    rank_of_dense[dense_of_rank] = np.arange(n, dtype=np.uint32)
    global_of_rank = None
    if order != "degree":
        number = np.arange(n, dtype=np.uint32)
        if order == "random":
            number = number[np.argsort(_mix(dense), kind="stable")]
        global_of_dense = np.empty(len(degree), np.uint32)
        global_of_dense[dense] = number
        global_of_rank = global_of_dense[dense_of_rank]
    return VertexOrder(dense_of_rank, rank_of_dense, degree[dense_of_rank], global_of_rank)


def _by_falling_degree(degree: NDArray[np.unsignedinteger]) -> NDArray[np.uint32]:
    if degree.dtype != np.uint32:
        return np.argsort(degree.max() - degree, kind="stable").astype(np.uint32)
    most = int(degree.max())
    place = np.arange(len(degree), dtype=np.uint64)
    keys = ((np.uint64(most) - degree.astype(np.uint64)) << np.uint64(32)) | place
    keys = radix_sort(keys, np.empty_like(keys), 0, most.bit_length())
    return keys.astype(np.uint32)


def _mix(values: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """A fixed pseudo-random 64-bit number of each value (SplitMix64's finaliser)."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True)
class Threshold:
    """Vertices of degree above ``value`` are delegates.

    chosen_by: "user", "nn" (the share of nn edges decided), "delegates" (their number did)
    or "one partition" (nothing to separate for).
    nn_share: rows between two normal vertices, as a share of all rows without self-loops.
    """

    value: int
    delegates: int
    nn_share: float
    chosen_by: str


def degree_classes(degree: NDArray[np.unsignedinteger]) -> tuple[NDArray, NDArray[np.uint32]]:
    """The distinct degrees, falling, and each rank's place among them."""
    starts = np.flatnonzero(np.diff(degree, prepend=degree[:1] + 1))
    classes = np.zeros(len(degree), np.uint32)
    classes[starts[1:]] = 1
    return degree[starts], np.cumsum(classes, dtype=np.uint32)


def choose_threshold(
    degree: NDArray[np.unsignedinteger],
    distinct: NDArray[np.unsignedinteger],
    rows_by_class: NDArray[np.int64],
    partitions: int,
    wanted: int | None,
) -> Threshold:
    """The user's threshold, or the automatic one.

    Automatic: the largest threshold with nn edges within NN_SHARE; if that leaves more than
    4n/P delegates, the smallest threshold that does not (Pan et al., section VI-B).

    degree: by rank. distinct: distinct degrees, falling. rows_by_class: rows by the class of
    the higher degree of their two ends.

    >>> degree = np.array([9, 3, 2, 2, 1], np.uint32)
    >>> distinct, _ = degree_classes(degree)
    >>> choose_threshold(degree, distinct, np.array([90, 6, 3, 1]), 2, None)
    Threshold(value=3, delegates=1, nn_share=0.1, chosen_by='nn')
    """
    rows = max(1, int(rows_by_class.sum()))
    # nn rows under threshold distinct[i]: those whose higher degree is in class i or later.
    nn_rows = np.cumsum(rows_by_class[::-1])[::-1]

    def at(value: int, chosen_by: str) -> Threshold:
        delegates = int(np.count_nonzero(degree > value))
        normal_classes = np.flatnonzero(distinct <= value)
        nn = int(nn_rows[normal_classes[0]]) if len(normal_classes) else 0
        return Threshold(value, delegates, nn / rows, chosen_by)

    if wanted is not None:
        return at(wanted, "user")
    within = distinct[nn_rows <= NN_SHARE * rows]
    chosen = at(int(within[0]) if len(within) else 0, "nn")
    most = DELEGATES_PER_VERTEX_SHARE * len(degree) / partitions
    if chosen.delegates <= most:
        return chosen
    # degree falls with rank: the first rank that has to be normal sets the threshold.
    return at(int(degree[int(most)]), "delegates")
