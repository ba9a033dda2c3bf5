"""Supersteps of a rank: visits along its subgraphs, then one message to every other rank.

Of a superstep a message says which delegates its sender found, and which normal vertices of the
receiver's partitions it found along nn, each as a list or, where that is shorter, as a bitmap. So
all ranks know all delegates again, and whether anything was found at all. Directions are each
rank's own choice, a subgraph of a partition at a time: pushing along the one and pulling along the
reverse of another finds the same vertices. Parents of vertices that were sent follow once, at the
end (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster, sections IV and V).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels import bitmap
from ..kernels.csr import SUBGRAPHS
from ..kernels.graph import UNREACHED
from ..kernels.numbering import by_rule
from ..kernels.team import Team
from ..kernels.visit import (
    add_all,
    admit,
    admit_own,
    adopt,
    pull_rows,
    push_away,
    push_rows,
    rows_with_edges,
    sort_by_partition,
    to_bitmap,
)
from ..partition.layout import local_rows
from .communicator import Communicator, Message, RankError, failure_of
from .direction import Direction, choose
from .metrics import SuperstepRecord
from .rank_graph import Flow, RankGraph, Vertices

_ROWS_A_TURN = 1 << 14
_NOTHING = np.empty(0, np.uint32)


class _Away(NamedTuple):
    """Normal vertices of one partition that were found along nn: local ids, and their parents."""

    partition: int
    vertices: NDArray[np.uint32]
    parents: NDArray[np.uint32]


class _Came(NamedTuple):
    """Those that another rank sent in one superstep; their parents are told at the end."""

    level: int
    partition: int
    vertices: NDArray[np.uint32]


@dataclass
class RankFound:
    """What a rank found. supersteps: of all ranks together; on rank 0 alone."""

    graph: RankGraph
    supersteps: list[SuperstepRecord]


def search_rank(
    graph: RankGraph,
    source: int,
    communicator: Communicator,
    team: Team,
    max_depth: int | None = None,
) -> RankFound:
    """Breadth-first search from ``source`` (a global id), with all other ranks.

    Afterwards the parents of this rank's normal vertices are complete and, on rank 0, those of the
    delegates. Raises RankError, with the superstep, where this rank or another one fails; whoever
    calls tells the others (communicator.telling_others).
    """
    search = _RankSearch(graph, communicator, team)
    try:
        return search.run(source, max_depth)
    except RankError as error:
        failure = error.failure
        if failure.lost and failure.superstep is None:
            failure = failure._replace(superstep=search.level)
        raise RankError(failure) from error
    except BaseException as error:
        raise RankError(failure_of(communicator.rank, error, search.level)) from error


class _RankSearch:
    def __init__(self, graph: RankGraph, communicator: Communicator, team: Team) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self.level = 0  # of what is being found
        self._normals = {part.number: part.normals for part in graph.parts}
        # By rank: the parents of what was sent there, and what came from there, in the same order.
        self._went: list[list[NDArray[np.uint32]]] = [[] for _ in range(communicator.size)]
        self._came: list[list[_Came]] = [[] for _ in range(communicator.size)]
        self._counts: list[list[int]] = []
        self._directions: list[dict[str, Direction]] = []
        self._seconds: list[float] = []

    def run(self, source: int, max_depth: int | None) -> RankFound:
        self._graph.begin(source)
        while max_depth is None or self.level < max_depth:
            if not self._superstep():
                break
        return self._finish()

    def _superstep(self) -> bool:
        """Search one level; False if no rank found anything."""
        graph, size = self._graph, self._communicator.size
        began = time.perf_counter()
        self.level += 1
        found = examined = 0
        directions: dict[str, Direction] = dict.fromkeys(SUBGRAPHS, "push")
        by_rank: list[list[_Away]] = [[] for _ in range(size)]
        for part in graph.parts:
            for flow in part.flows:
                self._communicator.check()
                if not len(flow.rows.frontier):
                    continue
                if flow.targets is None:
                    away, looked = self._push_away(flow)
                    for some in away:
                        new = self._settle(some)
                        if new is None:
                            by_rank[some.partition % size].append(some)
                            new = len(some.vertices)
                        found += new
                else:
                    directions[flow.name], new, looked = self._visit(flow, flow.targets)
                    found += new
                examined += looked
        sizes = {"delegates": 0, "normals": 0, "control": 0}
        delegates = _as_list(graph.delegates.found)
        messages: list[Message] = [
            self._message(rank, found, delegates, some) for rank, some in enumerate(by_rank)
        ]
        for rank, message in enumerate(messages):
            if rank != graph.rank:
                _add_sizes(sizes, message)
        anything = 0
        for rank, message in enumerate(self._communicator.exchange(messages)):
            anything += self._receive(rank, message)
        for vertices in graph.kinds:
            vertices.advance(self.level)
        for part in graph.parts:  # nothing is sent away that is known to be found
            add_all(part.normals.frontier, part.normals.numbering, graph.sent)
        for flow in graph.flows:
            flow.enter()
        entered = sum(len(part.normals.frontier) for part in graph.parts)
        if graph.rank == 0:  # all ranks have them; they count once
            entered += len(graph.delegates.frontier)
        self._counts.append([entered, examined, *sizes.values()])
        self._directions.append(directions)
        self._seconds.append(time.perf_counter() - began)
        return anything > 0

    def _visit(self, flow: Flow, targets: Vertices) -> tuple[Direction, int, int]:
        """Direction, vertices found here, edges examined."""
        forward, leaving = flow.forward, flow.leaving
        if not leaving:
            return "push", 0, 0
        direction = choose(leaving, *flow.pullable)
        if direction == "pull":
            assert flow.backward is not None
            rows = flow.backward
            done = self._team.map(
                lambda first: pull_rows(
                    *(rows.offsets, rows.targets, first, min(first + _ROWS_A_TURN, targets.count)),
                    *(flow.rows.numbering, flow.rows.visited),
                    *(targets.visited, targets.found, targets.parent),
                ),
                range(0, targets.count, _ROWS_A_TURN),
            )
        else:
            done = self._team.map(
                lambda queue: push_rows(
                    *(forward.offsets, forward.targets, queue, flow.rows.numbering),
                    *(targets.visited, targets.found, targets.parent),
                ),
                list(_pieces(flow.rows.frontier)),
            )
        return direction, sum(new for new, _ in done), sum(looked for _, looked in done)

    def _settle(self, away: _Away) -> int | None:
        """Enter what belongs to a partition of this rank; how much was new. None if it does not."""
        normals = self._normals.get(away.partition)
        if normals is None:
            return None
        return int(
            admit_own(
                *(away.vertices, away.parents, normals.visited, normals.found, normals.parent)
            )
        )

    def _push_away(self, flow: Flow) -> tuple[list[_Away], int]:
        """What was found along nn, by partition; edges examined."""
        graph, forward = self._graph, flow.forward

        def push(queue: NDArray[np.uint32]) -> tuple[NDArray, NDArray, int]:
            edges = rows_with_edges(forward.offsets, queue)[1]
            away, parents = np.empty(edges, np.uint32), np.empty(edges, np.uint32)
            count, looked = push_away(
                *(forward.offsets, forward.targets, queue, flow.rows.numbering),
                *(graph.sent, away, parents),
            )
            return away[:count], parents[:count], int(looked)

        done = self._team.map(push, list(_pieces(flow.rows.frontier)))
        away = np.concatenate([_NOTHING, *(some for some, _, _ in done)])
        parents = np.concatenate([_NOTHING, *(some for _, some, _ in done)])
        local, ordered = np.empty_like(away), np.empty_like(parents)
        starts = np.empty(graph.partitions + 1, np.int64)
        sort_by_partition(away, parents, graph.partitions, starts, local, ordered)
        found = [
            _Away(p, local[first:last], ordered[first:last])
            for p, (first, last) in enumerate(pairwise(starts.tolist()))
            if first < last
        ]
        return found, sum(looked for _, _, looked in done)

    def _rows(self, partition: int) -> int:
        return local_rows(self._graph.vertices, self._graph.partitions, partition)

    def _message(
        self, rank: int, found: int, delegates: NDArray[np.uint32], away: list[_Away]
    ) -> Message:
        """For a rank. Head: vertices found, delegates, and partition and vertices of each part."""
        places = [number for some in away for number in (some.partition, len(some.vertices))]
        message: Message = [np.array([found, len(delegates), *places], np.int64)]
        message.append(_packed(delegates, delegates, self._graph.delegates.count)[0])
        for some in away:
            packed, parents = _packed(some.vertices, some.parents, self._rows(some.partition))
            message.append(packed)
            self._went[rank].append(parents)
        return message

    def _receive(self, rank: int, message: Message) -> int:
        """Enter what a rank sent; how much it found."""
        head, delegates, *parts = message
        found, count, *places = head.tolist()
        told = _unpacked(delegates, count, self._graph.delegates.count)
        admit(told, self._graph.delegates.visited, self._graph.delegates.found)
        for packed, partition, count in zip(parts, places[::2], places[1::2], strict=True):
            vertices = _unpacked(packed, count, self._rows(partition))
            admit(vertices, self._normals[partition].visited, self._normals[partition].found)
            self._came[rank].append(_Came(self.level, partition, vertices))
        return found

    def _finish(self) -> RankFound:
        """Exchange the parents of what was sent, and what rank 0 has to know."""
        graph, size = self._graph, self._communicator.size
        known = np.flatnonzero(graph.delegates.parent != UNREACHED).astype(np.uint32)
        own = [known, graph.delegates.parent[known], np.array(self._counts, np.int64).ravel()]
        messages: list[Message] = [
            [np.concatenate([_NOTHING, *self._went[rank]])] + (own if rank == 0 else [])
            for rank in range(size)
        ]
        counts = np.zeros((len(self._counts), 5), np.int64)
        for rank, message in enumerate(self._communicator.exchange(messages)):
            at = 0
            for came in self._came[rank]:
                parents = message[0][at : at + len(came.vertices)]
                at += len(parents)
                normals = self._normals[came.partition]
                adopt(
                    *(came.vertices, parents, came.level),
                    *(normals.distance, normals.parent, UNREACHED),
                )
            if graph.rank == 0:
                places, parents, theirs = message[1:]
                graph.delegates.parent[places] = parents
                counts += theirs.reshape(counts.shape)
        # Nobody leaves before all have what was sent to them.
        self._communicator.exchange([[] for _ in range(size)])
        return RankFound(graph, list(self._records(counts)) if graph.rank == 0 else [])

    def _records(self, counts: NDArray[np.int64]) -> Iterator[SuperstepRecord]:
        """Of all supersteps that followed edges; directions and seconds are rank 0's."""
        frontier = 1
        for i, (found, examined, *sent) in enumerate(counts.tolist()):
            if not frontier or not (found or examined):
                return
            yield SuperstepRecord(
                level=i + 1,
                direction=dict(self._directions[i]),
                frontier=frontier,
                found=found,
                edges_examined=examined,
                bytes_read=0,
                blocks_skipped=0,
                bytes_sent=dict(zip(("delegates", "normals", "control"), sent, strict=True)),
                seconds=self._seconds[i],
            )
            frontier = found


def _pieces(queue: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
    for first in range(0, len(queue), _ROWS_A_TURN):
        yield queue[first : first + _ROWS_A_TURN]


def _as_list(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The vertices of a bitmap, rising."""
    count = int(np.bitwise_count(words).sum())
    vertices = np.empty(count, np.uint32)
    bitmap.difference(words, np.zeros_like(words), vertices)
    return vertices


def _bitmap_is_shorter(count: int, of: int) -> bool:
    return 4 * count > 8 * -(-of // bitmap.WORD)


def _packed(
    vertices: NDArray[np.uint32], parents: NDArray[np.uint32], of: int
) -> tuple[NDArray, NDArray[np.uint32]]:
    """Some of so many vertices as a list or, if that is shorter, a bitmap; parents in its order."""
    if not _bitmap_is_shorter(len(vertices), of):
        return vertices, parents
    words = np.zeros(-(-of // bitmap.WORD), np.uint64)
    ordered = np.empty_like(parents)
    to_bitmap(vertices, parents, words, np.empty(len(words), np.int64), ordered)
    return words, ordered


def _unpacked(packed: NDArray, count: int, of: int) -> NDArray[np.uint32]:
    return _as_list(packed) if _bitmap_is_shorter(count, of) else packed


def _add_sizes(sizes: dict[str, int], message: Sequence[NDArray]) -> None:
    head, delegates, *normals = message
    sizes["control"] += head.nbytes
    sizes["delegates"] += delegates.nbytes
    sizes["normals"] += sum(part.nbytes for part in normals)


def warm_up(offset_types: Iterable[DTypeLike]) -> None:
    """Compile, or load from the cache, what a search calls; offset_types: of the subgraphs."""
    one, list_of_one = np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    state = one, one.copy(), list_of_one.copy()
    numbering = by_rule()
    for dtype in offset_types:
        rows = np.zeros(2, dtype), list_of_one
        push_rows(*rows, list_of_one, numbering, *state)
        pull_rows(*rows, 0, 1, numbering, one, *state)
        push_away(*rows, list_of_one, numbering, one, list_of_one, list_of_one)
        rows_with_edges(rows[0], list_of_one)
    nothing, starts = np.empty(0, np.uint32), np.empty(2, np.int64)
    sort_by_partition(nothing, nothing, 1, starts, nothing, nothing)
    admit(nothing, one, one.copy())
    admit_own(nothing, nothing, one, one.copy(), list_of_one)
    to_bitmap(nothing, nothing, one.copy(), np.zeros(1, np.int64), nothing)
    add_all(nothing, numbering, one.copy())
    _as_list(one)
    distance, parent = np.zeros(1, np.int32), np.zeros(1, np.uint32)
    adopt(nothing, nothing, 1, distance, parent, UNREACHED)
