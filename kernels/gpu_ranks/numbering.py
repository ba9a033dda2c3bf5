"""Numbers of vertices in a rank of a search by several devices.

A rank numbers the vertices that it knows: first the delegates; then its own normal vertices; then
ghosts, the normal vertices of other ranks that its edges along nn lead to, by owner. Delegates are
numbered by owner, the same way on all ranks, so that the delegates of a rank stand together. Own
delegates and normal vertices go by partition. The vertices of one partition, and the ghosts of an
owner, begin at a multiple of ALIGNED.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..gpu.graph import Array
from .structures import ORIGIN

ALIGNED = 1024
"""Number of vertices whose bits a warp reads at once."""


def aligned(count: int) -> int:
    """Round a count up to a multiple of ALIGNED.

    >>> aligned(0), aligned(1), aligned(1024)
    (0, 1024, 1024)
    """
    return -(-count // ALIGNED) * ALIGNED


class Segment(NamedTuple):
    """Vertices of a partition, as a rank numbers them from ``first`` on.

    skipped: vertices of the partition that come before them.
    """

    partition: int
    first: int
    vertices: int
    skipped: int = 0

    @property
    def end(self) -> int:
        """Return the number at which another segment may begin."""
        return self.first + aligned(self.vertices)


def origins_of(segments: Iterable[Segment]) -> NDArray[np.void]:
    """Return the kernel's ``Origin`` for every ALIGNED numbers of segments that follow one
    another.
    """
    origins = [
        (segment.first - segment.skipped, segment.partition)
        for segment in segments
        for _ in range(aligned(segment.vertices) // ALIGNED)
    ]
    return np.array(origins or [(0, 0)], ORIGIN)


@dataclass(frozen=True)
class DelegateNumbering:
    """The vertices that each rank owns, and its numbers of them. A rank owns the vertices of the
    partitions p with p mod ranks = rank.

    owned_delegates: of each partition. hubs_first: whether global ids go by degree, so that the
    first of them are the delegates.

    >>> two = DelegateNumbering.of(ranks=2, partitions=3, vertices=10, delegates=0)
    >>> two.number(0, 3), two.number(0, 2), two.number(1, 2)
    (1, 1024, None)
    """

    ranks: int
    partitions: int
    vertices: int
    owned_delegates: tuple[int, ...]
    hubs_first: bool

    @classmethod
    def of(
        cls, ranks: int, partitions: int, vertices: int, delegates: int | NDArray[np.uint32]
    ) -> DelegateNumbering:
        """Make the numbering. delegates: how many there are, if ids go by degree; else their global
        ids.
        """
        hubs_first = isinstance(delegates, int)
        if isinstance(delegates, int):
            owned = [len(range(p, delegates, partitions)) for p in range(partitions)]
        else:
            owned = np.bincount(delegates % partitions, minlength=partitions).tolist()
        return cls(ranks, partitions, vertices, tuple(owned), hubs_first)

    @property
    def delegates(self) -> int:
        return sum(self.owned_delegates)

    def own(self, rank: int) -> range:
        """Return the partitions that a rank owns."""
        return range(rank, self.partitions, self.ranks)

    @cached_property
    def delegate_segments(self) -> dict[int, Segment]:
        """Return the segments of delegates by partition, in the order of their numbers, which are
        the same on all ranks.
        """
        by_owner = [p for rank in range(self.ranks) for p in self.own(rank)]
        return _lay_out(0, ((p, self.owned_delegates[p], 0) for p in by_owner))

    def own_delegates(self, rank: int) -> tuple[int, int]:
        """Return the first number of a rank's delegates, and the number where the next rank's
        begin.
        """
        segments = [self.delegate_segments[p] for p in self.own(rank)]
        return (segments[0].first, segments[-1].end) if segments else (0, 0)

    @cached_property
    def first_normal(self) -> int:
        """Return the number of a rank's first own normal vertex."""
        return max((segment.end for segment in self.delegate_segments.values()), default=0)

    def normal_segments(self, rank: int) -> dict[int, Segment]:
        """Return the normal segments of the rank's own partitions. Where hubs are first, delegates
        are skipped; else they have numbers among the normal vertices, too, which are not used.
        """
        skipped = self.owned_delegates if self.hubs_first else (0,) * self.partitions
        rows = {p: len(range(p, self.vertices, self.partitions)) for p in self.own(rank)}
        return _lay_out(
            self.first_normal, ((p, rows[p] - skipped[p], skipped[p]) for p in self.own(rank))
        )

    def own_numbers(self, rank: int) -> int:
        """Return where the numbers of a rank's delegates and own normal vertices end."""
        ends = [segment.end for segment in self.normal_segments(rank).values()]
        return max(ends, default=self.first_normal)

    def number(self, rank: int, vertex: int) -> int | None:
        """Return the rank's number of a vertex by its global id; None if the rank does not have the
        vertex.

        Delegates are found only where hubs are first.
        """
        partition, place = vertex % self.partitions, vertex // self.partitions
        if self.hubs_first and vertex < self.delegates:
            return self.delegate_segments[partition].first + place
        if partition % self.ranks != rank:
            return None
        segment = self.normal_segments(rank)[partition]
        return segment.first + place - segment.skipped

    def delegate_numbers(self, xp: Any, delegates: NDArray[np.uint32] | None) -> Array:
        """Return the numbers of the delegates in the order in which a store has them: uint32.
        delegates: their global ids; None where hubs are first. xp: NumPy, or CuPy.
        """
        segments = [self.delegate_segments[p] for p in range(self.partitions)]
        firsts = xp.asarray(np.array([segment.first for segment in segments], np.uint32))
        partitions = np.uint32(self.partitions)
        if delegates is None:
            ids = xp.arange(self.delegates, dtype=np.uint32)
            return firsts[ids % partitions] + ids // partitions
        partition = delegates % partitions
        order = np.argsort(partition, kind="stable")
        before = np.cumsum([0, *self.owned_delegates[:-1]])
        numbers = np.empty(len(delegates), np.uint32)
        places = np.arange(len(delegates)) - before[partition[order]]
        numbers[order] = np.array([s.first for s in segments])[partition[order]] + places
        return xp.asarray(numbers)


def _lay_out(first: int, sizes: Iterable[tuple[int, int, int]]) -> dict[int, Segment]:
    """Return segments that follow one another, by partition. sizes: partition, vertices, skipped
    vertices.
    """
    found: dict[int, Segment] = {}
    for partition, vertices, skipped in sizes:
        found[partition] = segment = Segment(partition, first, vertices, skipped)
        first = segment.end
    return found
