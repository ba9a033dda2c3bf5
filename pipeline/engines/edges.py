"""An edge list in memory, searched once: no store is built for it."""

from __future__ import annotations

import time

import numpy as np

from ...kernels.base.team import Team
from ...kernels.bfs.cpu import CpuBackend, compile_search
from ...kernels.bfs.edges import EdgeSearch, compile_edge_search
from ...partition.input import ids
from ...partition.input.arrow import TEXT_BYTES, string_ends
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import is_string, type_name
from ...partition.input.ids import Ids
from ...partition.store.grid import ONE
from ..build.plan import dictionary_bytes, facts_of, reading_bytes
from ..build.read import DenseEdges, dense_domain, graph_fingerprint, read_edges
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import PARENT_BYTES, Names, names_of_ids
from ..results.superstep_log import SuperstepLog
from ..run.execute import Executor
from ..run.records import GraphRecord
from .engine import Need, Subject, by_footers_first
from .memory import resume

SCAN_BUDGET = 8
"""Scans may look at this many times the rows; after that the search goes on in rows.

Making rows costs about as much as ten scans of all edges, and a scan drops the edges whose use
is past: on graphs of few levels all scans together look at three to six times the rows.
"""

_WRITING = 64 << 20  # a task that writes a piece of the result, beside strings
_COPIES = 4  # of those: decoded, as the user's type, in pages, packed


def edge_search_need(edges: EdgeList, directed: bool, threads: int) -> Need:
    """What reading and searching an edge list holds at most."""
    return by_footers_first(lambda closely: Need(_bytes(edges, directed, threads, closely)))


def _bytes(edges: EdgeList, directed: bool, threads: int, closely: bool) -> int:
    facts = facts_of(edges, dense_domain(edges), directed, True, 1, ONE, closely)
    batch = 8 * facts.rows
    state = facts.domain * (4 + 4 + 1 + 4) + facts.domain // 4
    # In rows: keys or targets of both directions beside the batches, offsets and a queue.
    rows = 2 * batch + facts.domain * (8 + 4)
    return batch + state + rows + threads * reading_bytes(facts) + dictionary_bytes(facts)


class ScanEngine:
    """An edge list in memory, searched once, as it comes: by scans over its unordered edges, and
    when the graph proves to have many levels, in rows of the edges that are left.
    """

    device = None
    ranks = 1
    in_memory = True

    def __init__(self, edges: EdgeList, directed: bool, executor: Executor) -> None:
        self.subject: Subject | None = None
        self.method = "scan"
        self._edges = edges
        self._directed = directed
        self._executor = executor
        self._dense: DenseEdges | None = None

    def need(self) -> Need:
        return edge_search_need(self._edges, self._directed, self._executor.threads)

    def compile(self) -> None:
        ids.compile_reading(self._edges.id_type)
        compile_edge_search(self._edges.rows)

    def load(self) -> None:
        dense = read_edges(self._edges, self._executor, count_loops=True)
        self._dense = dense
        self.subject = subject_by_id(self._edges, dense, self._directed)

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        dense, self._dense = self._dense, None  # scans drop edges: there is no second search
        assert dense is not None
        state = EdgeSearch(dense.batches, dense.ids.domain, source, self._directed)
        team = Team(self._executor.threads)
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
        self._dense = None


def subject_by_id(edges: EdgeList, dense: DenseEdges, directed: bool) -> Subject:
    """Of arrays by dense id. dense: read with its self-loops counted."""
    names = names_of_ids(dense.ids, dense.present)
    assert dense.self_loops is not None
    record = GraphRecord(
        fingerprint=graph_fingerprint(edges, directed, "min"),
        directed=directed,
        vertices=sum(names.pieces),
        rows=edges.rows,
        self_loops=dense.self_loops,
        duplicates=None,
        id_type=type_name(edges.id_type),
        weights=None,
    )
    return subject_of(record, dense.ids, names, "edges")


def subject_of(record: GraphRecord, ids: Ids, names: Names, layout: str) -> Subject:
    held, task = 8 * ids.domain, _WRITING + _COPIES * _text_at_once(ids)
    return Subject(names, record, layout, lambda tasks: held + tasks * task)


def _text_at_once(numbering: Ids) -> int:
    """Characters of vertices and of parents that a task writes at once, at most."""
    if numbering.values is None or not is_string(numbering.id_type):
        return 0
    longest = np.diff(string_ends(numbering.values)).max(initial=0)
    return TEXT_BYTES + PARENT_BYTES + 2 * int(longest)


def scan(
    state: EdgeSearch,
    team: Team,
    max_depth: int | None,
    checkpoint: Checkpoint | None,
    supersteps: SuperstepLog,
) -> bool:
    """Scan until the search is done (True) or has spent its budget (False).

    checkpoint: the search goes on from what it holds, and saves to it. supersteps: receives what
    was done, before and now. A search that had left off scanning goes on in rows at once.
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
