"""A search of an edge list in memory. The edge list is searched once, and no store is built."""

from __future__ import annotations

import time

from ....kernels.base.team import Team
from ....kernels.bfs.cpu import CpuBackend, compile_search
from ....kernels.bfs.edges import EdgeSearch, compile_edge_search
from ....partition.input import ids
from ....partition.input.edges import EdgeList
from ....partition.store.grid import ONE
from ...build.plan import dictionary_bytes, facts_of, reading_bytes
from ...build.prepare import BuildOptions
from ...build.read import DenseEdges, dense_domain, read_edges
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...results.superstep_log import SuperstepLog
from ...run.execute import Executor
from ..engine import Footprint, Need, Subject, need_of
from ..subjects import subject_of_scan
from .search import resume

SCAN_BUDGET = 8
"""Scans may look at this many times the number of rows; after that the search continues over rows.

Making rows costs about as much as ten scans of all edges. A scan drops the edges that later levels
cannot use, so on graphs with few levels all scans together look at three to six times the rows.
"""


class ScannedEdges:
    """The loader of an edge list whose edges are kept in memory in the order of the files. dense:
    the edges by dense id.
    """

    bounded_by_footers = True

    def __init__(self, edges: EdgeList, options: BuildOptions, executor: Executor) -> None:
        self.subject: Subject | None = None
        self.edges = edges
        self.directed = options.directed
        self._options = options
        self.threads = executor.threads
        self._dense: DenseEdges | None = None
        self._executor = executor

    def footprint(self, closely: bool = False) -> Footprint:
        edges = self.edges
        facts = facts_of(edges, dense_domain(edges), self.directed, True, 1, ONE, closely)
        reading = self.threads * reading_bytes(facts) + dictionary_bytes(facts)
        return Footprint(0, 8 * facts.rows + reading, facts.vertices, facts.domain, facts.rows)

    def compile(self) -> None:
        ids.compile_reading(self.edges.id_type)

    def load(self) -> None:
        self._dense = read_edges(self.edges, self._executor, count_loops=True)
        self.subject = subject_of_scan(self.edges, self._dense, self._options)

    @property
    def dense(self) -> DenseEdges:
        assert self._dense is not None
        return self._dense

    def take(self) -> DenseEdges:
        """Return the edges; the loader keeps no reference to them."""
        dense, self._dense = self.dense, None
        return dense

    def close(self) -> None:
        self._dense = None


class ScanEngine:
    """The engine that searches an edge list in memory once. It scans the unordered edges; if the
    graph turns out to have many levels, it makes rows of the edges that are left and searches
    these.
    """

    device = None
    ranks = 1
    in_memory = True

    def __init__(self, loader: ScannedEdges) -> None:
        self.method = "scan"
        self.loader = loader

    @property
    def subject(self) -> Subject | None:
        return self.loader.subject

    def need(self) -> Need:
        return need_of(self.loader, _searching_bytes)

    def compile(self) -> None:
        self.loader.compile()
        compile_edge_search(self.loader.edges.rows)

    def load(self) -> None:
        self.loader.load()

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        dense = self.loader.take()  # scans drop edges: there is no second search
        state = EdgeSearch(dense.batches, dense.ids.domain, source, self.loader.directed)
        team = Team(self.loader.threads)
        supersteps = SuperstepLog()
        if scan(state, team, max_depth, checkpoint, supersteps):
            return Found(state.distance, state.parent, supersteps)
        self.method = "scan, push-pull"
        left = state.by_rows(team)
        dense.batches.clear()
        compile_search(left.graph.offsets.dtype)
        backend = CpuBackend(team.threads)
        return resume(left, backend, max_depth, checkpoint=checkpoint, supersteps=supersteps)

    def close(self) -> None:
        self.loader.close()


def _searching_bytes(footprint: Footprint) -> int:
    """Return the bytes that a search holds, first in scans and then over rows."""
    domain = footprint.domain
    state = domain * (4 + 4 + 1 + 4) + domain // 4
    # Over rows: keys or targets of both directions beside the batches; offsets; a queue.
    return state + 2 * 8 * footprint.rows + domain * (8 + 4)


def scan(
    state: EdgeSearch,
    team: Team,
    max_depth: int | None,
    checkpoint: Checkpoint | None,
    supersteps: SuperstepLog,
) -> bool:
    """Scan the edges level by level. Returns True when the search is done, False when its budget is
    spent.

    checkpoint: the search resumes from its saved state, and saves to it. supersteps: receives the
    supersteps of the saved state and the new ones. A resumed search that had already changed to
    rows returns False at once.
    """
    budget = SCAN_BUDGET * sum(state.lengths)
    frontier = 1
    saved = checkpoint.load(len(state.distance)) if checkpoint else None
    if saved is not None:
        state.go_on_from(saved.distance, saved.parent, saved.level)
        supersteps.extend(saved.supersteps)
        if supersteps and supersteps[-1]["direction"] != {"all": "scan"}:
            return False
        frontier = supersteps[-1]["found"] if supersteps else 1
    while frontier and (max_depth is None or state.level < max_depth):
        if budget < 0:
            return False
        started = time.perf_counter()
        frontier_before = frontier
        frontier, examined = state.advance(team)
        budget -= examined
        seconds = time.perf_counter() - started
        supersteps.add(state.level, "scan", frontier_before, frontier, examined, seconds)
        if checkpoint:
            checkpoint.passed(state.level, frontier)
            if checkpoint.due():
                checkpoint.save(state.distance, state.parent, state.level, supersteps)
    return True
