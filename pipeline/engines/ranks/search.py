"""A rank of a search: supersteps until no vertex is found, then the exchange of parents and
records.

The parents of vertices that were sent follow once, at the end (remote.py). A single rank sends
nothing and can keep checkpoints: this is how a store whose edges stay on disk is searched.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap, numbering
from ....kernels.base.compiled import compile_kernels
from ....kernels.base.graph import UNREACHED, Graph
from ....kernels.base.team import Team
from ....kernels.pieces import active, piece, pull, push, vertices
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store
from ....partition.store.whole import WholeGraph
from ...questions.bfs import SuperstepRecord
from ...ranks.communicator import Communicator, Message, RankError, barrier, failure_of
from ...results.checkpoint import Checkpoint
from ...results.superstep_log import SuperstepLog
from ..direction import Direction, choose
from .edges import Loader, on_disk_bytes
from .graph import RankGraph, load, share_bytes
from .superstep import Choose, Superstep, Supersteps


def load_rank(
    store: Store | WholeGraph,
    rank: int,
    ranks: int,
    team: Team,
    check: Callable[[], None] = lambda: None,
    on_disk: bool = False,
    weighted: bool = False,
    loaded: Graph | None = None,
) -> RankGraph:
    """Read and verify the partitions of a rank. Edges on disk are verified during searches, when
    they are read.

    check: called before each subgraph, and before each run of edges that a search reads. weighted:
    whether the edges' weights are loaded. loaded: as in Loader.
    """
    loader = Loader(store, team, check, [] if on_disk else None, weighted, loaded)
    return load(loader, rank, ranks)


def rank_bytes(store: Store, rank: int, ranks: int) -> int:
    """Return the most bytes that loading and searching a rank's share hold."""
    return share_bytes(store, rank, ranks)


def rank_stream_bytes(store: Store, rank: int, ranks: int, threads: int) -> int:
    """Return the most bytes that loading and searching a rank's share hold with its edges on disk,
    on a team for ``threads`` cores (stream_team).
    """
    return rank_bytes(store, rank, ranks) + on_disk_instead(store, rank, ranks, threads)


def on_disk_instead(
    store: Store, rank: int, ranks: int, threads: int, weighted: bool = False
) -> int:
    """Return the bytes that a rank's share takes more if its edges are on disk; negative if it
    takes less.
    """
    parts = range(rank, store.info.partitions, ranks)
    names = kept_subgraphs(store.info.grid, store.info.directed)
    shards = [file for p in parts for name in names for file in store.shards(p, name)]
    targets = sum(store.files[file].bytes for file in shards)
    return on_disk_bytes(store, parts, threads, weighted) - (1 + weighted) * targets


@dataclass
class RankFound:
    """The result of a rank. graph: holds the distances and parents. supersteps: of all ranks
    together; empty unless on rank 0.
    """

    graph: RankGraph
    supersteps: SuperstepLog


def search_rank(
    graph: RankGraph,
    source: int,
    communicator: Communicator,
    team: Team,
    max_depth: int | None = None,
    choose: Choose = choose,
    checkpoint: Checkpoint | None = None,
) -> RankFound:
    """Search breadth-first from ``source`` (a global id), together with all other ranks.

    choose: the rule for directions, the same on all ranks. checkpoint: for a single rank only; the
    search resumes from its saved state, and saves to it.

    Afterwards the parents of this rank's own vertices are complete and, on rank 0, those of the
    shared vertices. The next search of the graph overwrites them.

    Raises RankError, with the superstep, if this rank or another one fails; the caller tells the
    other ranks (communicator.telling_others). A single rank raises the original error instead, such
    as InputError with the file's name for a damaged block.
    """
    search = _RankSearch(graph, communicator, team, choose)
    if communicator.size == 1:
        return search.run(source, max_depth, checkpoint)
    try:
        return search.run(source, max_depth, checkpoint)
    except RankError as error:
        failure = error.failure
        if failure.lost and failure.superstep is None:
            failure = failure._replace(superstep=search.level)
        raise RankError(failure) from error
    except BaseException as error:
        raise RankError(failure_of(communicator.rank, error, search.level)) from error


class _RankSearch:
    def __init__(
        self, graph: RankGraph, communicator: Communicator, team: Team, choose: Choose
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._steps = Supersteps(graph, communicator, team, choose)
        self.level = 0  # distance of the vertices that are being found
        self._before = SuperstepLog()  # supersteps of the saved search
        self._frontier = 1  # its size after these supersteps
        self._done = _Done()

    def run(self, source: int, max_depth: int | None, checkpoint: Checkpoint | None) -> RankFound:
        self._begin(source, checkpoint)
        while max_depth is None or self.level < max_depth:
            began = time.perf_counter()
            self.level += 1
            step = self._steps.run(self.level)
            self._done.add(step, time.perf_counter() - began)
            followed = step.entered or step.edge_counts.edges  # else it has no record
            if checkpoint and followed:
                checkpoint.passed(self.level, step.entered)
                if checkpoint.due():
                    own_vertices = self._graph.own
                    records = self._records(self._done.counts)
                    checkpoint.save(own_vertices.distance, own_vertices.parent, self.level, records)
            if not step.more:
                break
        return self._finish()

    def _begin(self, source: int, checkpoint: Checkpoint | None) -> None:
        assert checkpoint is None or self._communicator.size == 1
        saved = checkpoint.load(self._graph.vertices) if checkpoint else None
        if saved is None:
            self._graph.begin(source)
            return
        self._graph.resume(saved.distance, saved.parent, saved.level, self._team)
        self.level, self._before = saved.level, saved.supersteps
        self._frontier = self._graph.own.entered

    def _finish(self) -> RankFound:
        """Exchange the parents of vertices that were sent, and send rank 0 its counts and the
        parents of shared vertices.
        """
        graph, remote, size = self._graph, self._steps.remote, self._communicator.size
        counts = self._done.counts
        if size == 1:
            return RankFound(graph, self._records(counts))
        own_message = [counts.ravel()]
        if graph.shared is not None:
            known = np.flatnonzero(graph.shared.parent != UNREACHED).astype(np.uint32)
            own_message += [known, graph.shared.parent[known]]
        messages: list[Message] = [
            [remote.parents(rank)] + (own_message if rank == 0 else []) for rank in range(size)
        ]
        sums = np.zeros_like(counts)
        for rank, message in enumerate(self._communicator.exchange(messages)):
            remote.adopt(rank, message[0])
            if graph.rank == 0:
                sums += message[1].reshape(sums.shape)
                if graph.shared is not None:
                    graph.shared.parent[message[2]] = message[3]
        barrier(self._communicator)  # no rank leaves before all ranks have received their messages
        return RankFound(graph, self._records(sums) if graph.rank == 0 else SuperstepLog())

    def _records(self, sums: NDArray[np.int64]) -> SuperstepLog:
        """Return the records of all supersteps that followed edges. Counts are sums over ranks;
        directions and seconds are those of rank 0.
        """
        records, frontier = SuperstepLog(self._before), self._frontier
        done = self._done
        for row, directions, seconds in zip(sums, done.directions, done.seconds, strict=True):
            found, examined, read, skipped, *sent = row.tolist()
            if not frontier or not (found or examined):
                break
            records.append(
                SuperstepRecord(
                    level=len(records) + 1,
                    direction=dict(directions),
                    frontier=frontier,
                    found=found,
                    edges_examined=examined,
                    bytes_read=read,
                    blocks_skipped=skipped,
                    bytes_sent=dict(zip(done.kinds, sent, strict=True)),
                    seconds=seconds,
                )
            )
            frontier = found
        return records


class _Done:
    """A record of this rank's work in each superstep, stored compactly since there may be many.
    kinds: the kinds of messages.
    """

    def __init__(self) -> None:
        self.kinds: tuple[str, ...] = ()
        self.directions: list[tuple[tuple[str, Direction], ...]] = []
        self.seconds = array("d")
        self._counts = array("q")
        self._same: dict[Any, Any] = {}  # each combination of directions once

    def add(self, step: Superstep, seconds: float) -> None:
        self.kinds = tuple(step.sent)
        directions = tuple(step.directions.items())
        self.directions.append(self._same.setdefault(directions, directions))
        self.seconds.append(seconds)
        self._counts.extend((step.entered, *step.edge_counts, *step.sent.values()))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return a row for each superstep: vertices entered, edge counts, and bytes sent of each
        kind.
        """
        supersteps = len(self.seconds)
        columns = len(self._counts) // max(1, supersteps)
        return np.array(self._counts, np.int64).reshape(supersteps, columns)


def warm_up(offset_types: Iterable[np.dtype]) -> None:
    """Compile, or load from the cache, the kernels that a search calls. offset_types: of the
    subgraphs.
    """
    modules = bitmap, numbering, piece, push, pull, active, vertices
    compile_kernels(*modules, offsets=set(offset_types))
