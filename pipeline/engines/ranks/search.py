"""A rank of a search: supersteps until nothing more is found, then parents and records.

What a superstep does is the layout's (delegates.py, grid.py); parents of
vertices that were sent follow once, at the end (remote_vertices.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.base.numbering import by_rule
from ....kernels.base.team import Team
from ....kernels.pieces.mark_pages import mark_pages, mark_pages_of
from ....kernels.pieces.rows import row_of
from ....kernels.pieces.visit import (
    add_all,
    admit,
    admit_own,
    adopt,
    pull_away,
    pull_rows,
    push_away,
    push_rows,
    rows_with_edges,
    sort_by_partition,
    to_bitmap,
)
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, Message, RankError, barrier, failure_of
from ...run.records import SuperstepRecord
from ..direction import choose
from .delegate_graph import RankGraph, delegate_bytes
from .delegates import DelegateSupersteps
from .edges import Loader, on_disk_bytes
from .grid import GridSupersteps
from .grid_graph import GridGraph, grid_bytes
from .packing import as_list
from .superstep import Choose, Superstep, Supersteps

AnyRankGraph = RankGraph | GridGraph


def load_rank(
    store: Store,
    rank: int,
    ranks: int,
    team: Team,
    check: Callable[[], None] = lambda: None,
    on_disk: bool = False,
) -> AnyRankGraph:
    """Reads and verifies the partitions of a rank; edges on disk are, as they are searched.

    check: called before each subgraph, and each run of edges that a search reads.
    """
    kind = RankGraph if store.info.grid is None else GridGraph
    return kind.load(Loader(store, team, check, [] if on_disk else None), rank, ranks)


def rank_bytes(store: Store, rank: int, ranks: int) -> int:
    """Bytes that loading and searching a rank's share holds at most."""
    return (delegate_bytes if store.info.grid is None else grid_bytes)(store, rank, ranks)


def rank_stream_bytes(store: Store, rank: int, ranks: int, threads: int) -> int:
    """The same with edges on disk, on a team for ``threads`` cores (stream_team)."""
    parts = range(rank, store.info.partitions, ranks)
    names = kept_subgraphs(store.info.grid, store.info.directed)
    shards = [file for p in parts for name in names for file in store.shards(p, name)]
    targets = sum(store.files[file].bytes for file in shards)
    return rank_bytes(store, rank, ranks) - targets + on_disk_bytes(store, parts, threads)


@dataclass
class RankFound:
    """What a rank found. supersteps: of all ranks together; on rank 0 alone."""

    graph: AnyRankGraph
    supersteps: list[SuperstepRecord]


def search_rank(
    graph: AnyRankGraph,
    source: int,
    communicator: Communicator,
    team: Team,
    max_depth: int | None = None,
    choose: Choose = choose,
) -> RankFound:
    """Breadth-first search from ``source`` (a global id), with all other ranks.

    choose: the direction, the same function on all ranks. Afterwards the parents of this rank's
    normal vertices are complete and, on rank 0, those of the delegates. Raises RankError, with the
    superstep, where this rank or another one fails; whoever calls tells the others
    (communicator.telling_others).
    """
    search = _RankSearch(graph, communicator, team, choose)
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
    def __init__(
        self, graph: AnyRankGraph, communicator: Communicator, team: Team, choose: Choose
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._steps: Supersteps
        if isinstance(graph, GridGraph):
            self._steps = GridSupersteps(graph, communicator, team, choose)
        else:
            self._steps = DelegateSupersteps(graph, communicator, team, choose)
        self.level = 0  # of what is being found
        self._done: list[tuple[Superstep, float]] = []  # and its seconds

    def run(self, source: int, max_depth: int | None) -> RankFound:
        self._graph.begin(source)
        while max_depth is None or self.level < max_depth:
            began = time.perf_counter()
            self.level += 1
            step = self._steps.superstep(self.level)
            self._done.append((step, time.perf_counter() - began))
            if not step.more:
                break
        return self._finish()

    def _finish(self) -> RankFound:
        """Exchange the parents of what was sent, and what rank 0 has to know."""
        graph, remote, size = self._graph, self._steps.remote, self._communicator.size
        known = np.flatnonzero(graph.delegates.parent != UNREACHED).astype(np.uint32)
        counts = np.array(
            [[step.entered, *step.looked, *step.sent.values()] for step, _ in self._done], np.int64
        )
        own = [known, graph.delegates.parent[known], counts.ravel()]
        messages: list[Message] = [
            [remote.parents(rank)] + (own if rank == 0 else []) for rank in range(size)
        ]
        sums = np.zeros_like(counts)
        for rank, message in enumerate(self._communicator.exchange(messages)):
            remote.adopt(rank, message[0])
            if graph.rank == 0:
                places, parents, theirs = message[1:]
                graph.delegates.parent[places] = parents
                sums += theirs.reshape(sums.shape)
        barrier(self._communicator)  # nobody leaves before all have what was sent to them
        return RankFound(graph, list(self._records(sums)) if graph.rank == 0 else [])

    def _records(self, sums: NDArray[np.int64]) -> Iterator[SuperstepRecord]:
        """Of all supersteps that followed edges; directions and seconds are rank 0's."""
        frontier = 1
        done = zip(self._done, sums.tolist(), strict=True)
        for level, ((step, seconds), (found, *counts)) in enumerate(done, 1):
            (examined, read, skipped), sent = counts[:3], counts[3:]
            if not frontier or not (found or examined):
                return
            yield SuperstepRecord(
                level=level,
                direction=dict(step.directions),
                frontier=frontier,
                found=found,
                edges_examined=examined,
                bytes_read=read,
                blocks_skipped=skipped,
                bytes_sent=dict(zip(step.sent, sent, strict=True)),
                seconds=seconds,
            )
            frontier = found


def warm_up(offset_types: Iterable[DTypeLike]) -> None:
    """Compile, or load from the cache, what a search calls; offset_types: of the subgraphs."""
    one, list_of_one = np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    state = one, one.copy(), list_of_one.copy()
    numbering = by_rule()
    for dtype in offset_types:
        rows = np.zeros(2, dtype), list_of_one, 0, 1
        push_rows(*rows, list_of_one, numbering, *state)
        pull_rows(*rows, 0, 1, numbering, one, *state)
        push_away(*rows, list_of_one, numbering, one, list_of_one, list_of_one)
        pull_away(*rows, 0, 1, numbering, one, one.copy(), list_of_one, list_of_one)
        rows_with_edges(rows[0], list_of_one)
        active, starts = np.zeros(1, np.uint8), np.zeros(2, np.int64)
        mark_pages(rows[0], 0, 1, numbering, one, np.uint64(0), starts, active, False)
        mark_pages_of(rows[0], list_of_one, starts, active)
        row_of(rows[0], 0)
    nothing, starts = np.empty(0, np.uint32), np.empty(2, np.int64)
    sort_by_partition(nothing, nothing, 1, starts, nothing, nothing)
    admit(nothing, one, one.copy())
    admit_own(nothing, nothing, one, one.copy(), list_of_one)
    to_bitmap(nothing, nothing, one.copy(), np.zeros(1, np.int64), nothing)
    add_all(nothing, numbering, one.copy())
    as_list(one)
    distance, parent = np.zeros(1, np.int32), np.zeros(1, np.uint32)
    adopt(nothing, nothing, 1, distance, parent, UNREACHED)
