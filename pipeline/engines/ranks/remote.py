"""Vertices that one rank found and another rank owns. They are sent in the superstep that finds
them, their parents at the end of the search.

Parents do not travel with the vertices (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU
Cluster, section V). The sender keeps the parents in the order of the vertices that it sent, and the
receiver keeps the vertices. At the end, a vertex takes the first parent that comes for the level of
its distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.pieces.vertices import admit, adopt, sort_by_remainder
from ....partition.store.layout import local_rows
from .graph import RankGraph
from .packing import NONE, joined, packed, unpacked


class Away(NamedTuple):
    """Vertices found in one partition: their local ids (uint32) and their parents."""

    partition: int
    vertices: NDArray[np.uint32]
    parents: NDArray[np.uint32]


class _Came(NamedTuple):
    """Vertices of one partition that another rank sent in one superstep."""

    level: int
    partition: int
    vertices: NDArray[np.uint32]


def by_partition(
    vertices: NDArray[np.uint32], parents: NDArray[np.uint32], segment: range
) -> Iterator[Away]:
    """Split vertices of a segment, given by place, by partition. Yields the partitions that have
    any.
    """
    local, ordered = np.empty_like(vertices), np.empty_like(parents)
    starts = np.empty(len(segment) + 1, np.int64)
    sort_by_remainder(vertices, parents, len(segment), starts, local, ordered)
    for partition, (first, last) in zip(segment, pairwise(starts.tolist()), strict=True):
        if first < last:
            yield Away(partition, local[first:last], ordered[first:last])


class Remote:
    """The vertices of other ranks that one search has found."""

    def __init__(self, graph: RankGraph) -> None:
        self._graph = graph
        self._waiting: dict[int, list[Away]] = {}  # by partition, distinct vertices
        # By rank, in the order of sending: parents of vertices sent there, vertices that came.
        self._went: list[list[NDArray[np.uint32]]] = [[] for _ in range(graph.ranks)]
        self._came: list[list[_Came]] = [[] for _ in range(graph.ranks)]

    def add(self, away: Away) -> int:
        """Enter vertices of this rank's partitions, or keep those of another rank for ``pack``.
        Returns the number of own vertices that are new, or of vertices kept.
        """
        if away.partition in self._graph.held:
            return self._admit(*away)
        self._waiting.setdefault(away.partition, []).append(away)
        return len(away.vertices)

    def _admit(
        self, partition: int, vertices: NDArray[np.uint32], parents: NDArray[np.uint32]
    ) -> int:
        own_vertices = self._graph.own
        numbers = self._graph.within(partition)
        state = own_vertices.visited, own_vertices.found, own_vertices.parent
        return int(admit(vertices, parents, numbers, *state))

    def pack(self, rank: int) -> tuple[list[int], list[NDArray]]:
        """Return all vertices that wait for a rank: a list of partition and number of vertices of
        each part, and the packed parts.
        """
        graph = self._graph
        head, parts = [], []
        for partition in sorted(p for p in self._waiting if p % graph.ranks == rank):
            found = self._waiting.pop(partition)
            vertices = joined(away.vertices for away in found)
            of = local_rows(graph.vertices, graph.partitions, partition)
            part, parents = packed(vertices, joined(away.parents for away in found), of)
            head += [partition, len(vertices)]
            parts.append(part)
            self._went[rank].append(parents)
        return head, parts

    def unpack(self, rank: int, level: int, head: list[int], parts: Iterable[NDArray]) -> None:
        """Enter the vertices that a rank has packed."""
        graph = self._graph
        for part, partition, count in zip(parts, head[::2], head[1::2], strict=True):
            of = local_rows(graph.vertices, graph.partitions, partition)
            vertices = unpacked(part, count, of)
            self._admit(partition, vertices, NONE)
            self._came[rank].append(_Came(level, partition, vertices))

    def parents(self, rank: int) -> NDArray[np.uint32]:
        """Return the parents of all vertices that were sent to a rank."""
        return joined(self._went[rank])

    def adopt(self, rank: int, parents: NDArray[np.uint32]) -> None:
        """Set the parents of the vertices that a rank has sent."""
        own_vertices, at = self._graph.own, 0
        for came in self._came[rank]:
            came_parents = parents[at : at + len(came.vertices)]
            at += len(came_parents)
            numbers = self._graph.within(came.partition)
            adopt(
                came.vertices,
                came_parents,
                numbers,
                came.level,
                own_vertices.distance,
                own_vertices.parent,
                UNREACHED,
            )
