"""Vertices that a rank found and another one owns: sent once, their parents at the end.

Parents do not travel with the vertices (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU
Cluster, section V). Each rank keeps them in the order in which the vertices went, and the receiver
what came; in the end it takes the first parent whose level is the vertex's distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.base.numbering import Numbering
from ....kernels.base.team import Team
from ....kernels.pieces.visit import (
    admit,
    admit_own,
    adopt,
    pull_away,
    push_away,
    rows_with_edges,
    sort_by_partition,
)
from ....partition.store.layout import local_rows
from .delegate_graph import Vertices
from .edges import AnyRows, Looked, Piece, Visits
from .packing import packed, unpacked

_NOTHING = np.empty(0, np.uint32)


class Away(NamedTuple):
    """Vertices of one partition that were found: local ids (uint32), and their parents."""

    partition: int
    vertices: NDArray[np.uint32]
    parents: NDArray[np.uint32]


class _Came(NamedTuple):
    """Those that another rank sent in one superstep."""

    level: int
    partition: int
    vertices: NDArray[np.uint32]


def joined(pieces: Iterable[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.concatenate([_NOTHING, *pieces])


def push_remote(
    team: Team,
    rows: AnyRows,
    queue: NDArray[np.uint32],
    numbering: Numbering,
    sent: NDArray[np.uint64],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Looked]:
    """push_away on a team: targets, their parents, what was looked at."""

    def push(piece: Piece, some: NDArray[np.uint32]) -> tuple[NDArray, NDArray, int]:
        edges = min(rows_with_edges(piece.offsets, some)[1], len(piece.targets))
        away, parents = np.empty(edges, np.uint32), np.empty(edges, np.uint32)
        count, looked = push_away(*piece, some, numbering, sent, away, parents)
        return away[:count], parents[:count], int(looked)

    return _together(rows.push(team, queue, push))


def pull_remote(
    team: Team,
    rows: AnyRows,
    numbering: Numbering,
    reached: NDArray[np.uint64],
    sent: NDArray[np.uint64],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Looked]:
    """pull_away on a team: rows, their parents, what was looked at."""

    def pull(piece: Piece, first: int, last: int) -> tuple[NDArray, NDArray, int]:
        most = min(last - first, len(piece.targets))
        away, parents = np.empty(most, np.uint32), np.empty(most, np.uint32)
        place = first, last, numbering
        new, looked = pull_away(*piece, *place, reached, sent, away, parents)
        return away[:new], parents[:new], int(looked)

    return _together(rows.pull(team, pull, sent))


def _together(visits: Visits) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Looked]:
    done = visits.results
    looked = visits.looked(edges for _, _, edges in done)
    return joined(away for away, _, _ in done), joined(some for _, some, _ in done), looked


def by_partition(
    away: NDArray[np.uint32], parents: NDArray[np.uint32], of: int
) -> list[tuple[int, NDArray[np.uint32], NDArray[np.uint32]]]:
    """Vertices dealt out to ``of`` members by remainder: (member, quotients, parents), if any."""
    local, ordered = np.empty_like(away), np.empty_like(parents)
    starts = np.empty(of + 1, np.int64)
    sort_by_partition(away, parents, of, starts, local, ordered)
    return [
        (member, local[first:last], ordered[first:last])
        for member, (first, last) in enumerate(pairwise(starts.tolist()))
        if first < last
    ]


class RemoteVertices:
    """Of one search. normals: the state of the vertices that this rank owns, by partition."""

    def __init__(
        self, normals: Mapping[int, Vertices], vertices: int, partitions: int, ranks: int
    ) -> None:
        self._normals = normals
        self._vertices, self._partitions, self._ranks = vertices, partitions, ranks
        self._waiting: dict[int, list[Away]] = {}  # by partition, distinct vertices
        # By rank: the parents of what was sent there, and what came from there, in the same order.
        self._went: list[list[NDArray[np.uint32]]] = [[] for _ in range(ranks)]
        self._came: list[list[_Came]] = [[] for _ in range(ranks)]

    def add(self, away: Away) -> int:
        """Enter what this rank owns, keep the rest for ``pack``; vertices that are new here."""
        normals = self._normals.get(away.partition)
        if normals is None:
            self._waiting.setdefault(away.partition, []).append(away)
            return len(away.vertices)
        state = normals.visited, normals.found, normals.parent
        return int(admit_own(away.vertices, away.parents, *state))

    def pack(self, rank: int) -> tuple[list[int], list[NDArray]]:
        """What waits for a rank: partition and vertices of each part, and the parts."""
        head, parts = [], []
        for partition in sorted(p for p in self._waiting if p % self._ranks == rank):
            found = self._waiting.pop(partition)
            vertices = joined(away.vertices for away in found)
            of = local_rows(self._vertices, self._partitions, partition)
            part, parents = packed(vertices, joined(away.parents for away in found), of)
            head += [partition, len(vertices)]
            parts.append(part)
            self._went[rank].append(parents)
        return head, parts

    def unpack(self, rank: int, level: int, head: list[int], parts: Iterable[NDArray]) -> None:
        """Enter what a rank packed."""
        for part, partition, count in zip(parts, head[::2], head[1::2], strict=True):
            normals = self._normals[partition]
            vertices = unpacked(part, count, normals.count)
            admit(vertices, normals.visited, normals.found)
            self._came[rank].append(_Came(level, partition, vertices))

    def parents(self, rank: int) -> NDArray[np.uint32]:
        """Of all that was sent to a rank."""
        return joined(self._went[rank])

    def adopt(self, rank: int, parents: NDArray[np.uint32]) -> None:
        """Take parents of what a rank has sent."""
        at = 0
        for came in self._came[rank]:
            some = parents[at : at + len(came.vertices)]
            at += len(some)
            normals = self._normals[came.partition]
            state = normals.distance, normals.parent
            adopt(came.vertices, some, came.level, *state, UNREACHED)
