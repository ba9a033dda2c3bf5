"""An edge list in memory: scanned once, or in rows that are made of it, on the CPU or on a device.

No store is built for it.
"""

from __future__ import annotations

import time

import numpy as np

from ...kernels.base.team import Team
from ...kernels.bfs.cpu import CpuBackend, compile_search
from ...kernels.bfs.edges import EdgeSearch, compile_edge_search, plain_rows
from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu import search as gpu_search
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.graph import Rows, derive
from ...kernels.gpu.search import GpuSearch
from ...partition.disk.memory import format_bytes
from ...partition.input import ids
from ...partition.input.arrow import TEXT_BYTES, string_ends
from ...partition.input.edges import EdgeList, is_string
from ...partition.input.ids import Ids
from ...partition.store.grid import ONE
from ..build.plan import dictionary_bytes, facts_of, reading_bytes
from ..build.read import DenseEdges, dense_domain, graph_fingerprint, read_edges
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import PARENT_BYTES, names_of_ids
from ..results.superstep_log import SuperstepLog
from ..run.execute import Executor
from ..run.records import GraphRecord
from .device import (
    Strategy,
    by_dense_id,
    give_back,
    method_of,
    search_of,
    search_on_device,
    slices_bytes,
)
from .engine import Need, SearchEngine, Subject
from .memory import HostRows, resume

SCAN_BUDGET = 8
"""Scans may look at this many times the rows; after that the search goes on in rows.

Making rows costs about as much as ten scans of all edges, and a scan drops the edges whose use
is past: on graphs of few levels all scans together look at three to six times the rows.
"""

_WRITING = 64 << 20  # a task that writes a piece of the result, beside strings
_COPIES = 4  # of those: decoded, as the user's type, in pages, packed


def edge_search_bytes(edges: EdgeList, directed: bool, threads: int) -> int:
    """What reading and searching an edge list holds at most."""
    facts = facts_of(edges, dense_domain(edges), directed, True, 1, ONE)
    batch = 8 * facts.rows
    state = facts.domain * (4 + 4 + 1 + 4) + facts.domain // 4
    # In rows: keys or targets of both directions beside the batches, offsets and a queue.
    rows = 2 * batch + facts.domain * (8 + 4)
    return batch + state + rows + threads * reading_bytes(facts) + dictionary_bytes(facts)


def engines_of_edges(
    edges: EdgeList,
    directed: bool,
    device: Device | None,
    executor: Executor,
    once: bool,
    strategy: Strategy = "rows",
) -> list[SearchEngine]:
    """In one process, the best first. once: for a single search. device: None for the CPU."""
    how = ScanEngine if once else RowsEngine
    engines: list[SearchEngine] = [how(edges, directed, executor)]
    if device is None:
        return engines
    return [DeviceRowsEngine(edges, directed, executor, device, strategy), *engines]


class ScanEngine:
    """An edge list in memory, searched once, as it comes: by scans over its unordered edges, and
    when the graph proves to have many levels, in rows of the edges that are left.
    """

    device = None
    ranks = 1
    once = True
    in_memory = True

    def __init__(self, edges: EdgeList, directed: bool, executor: Executor) -> None:
        self.subject: Subject | None = None
        self.method = "scan"
        self._edges = edges
        self._directed = directed
        self._executor = executor
        self._dense: DenseEdges | None = None

    def need(self) -> Need:
        return Need(edge_search_bytes(self._edges, self._directed, self._executor.threads))

    def compile(self) -> None:
        ids.compile_reading(self._edges.id_type)
        compile_edge_search(self._edges.rows)

    def load(self) -> None:
        dense = read_edges(self._edges, self._executor)
        self._dense = dense
        self.subject = subject_of(self._edges, dense, self._directed, "edges")

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


class RowsEngine(HostRows):
    """An edge list in memory in plain rows, to be searched time and again."""

    def __init__(self, edges: EdgeList, directed: bool, executor: Executor) -> None:
        super().__init__(None, executor.threads)
        self._edges = edges
        self._directed = directed
        self._executor = executor

    def need(self) -> Need:
        return Need(edge_search_bytes(self._edges, self._directed, self._executor.threads))

    def compile(self) -> None:
        ids.compile_reading(self._edges.id_type)
        compile_edge_search(self._edges.rows)
        compile_search(np.uint32 if 2 * self._edges.rows < 2**32 else np.uint64)

    def load(self) -> None:
        dense = read_edges(self._edges, self._executor)
        self.subject = subject_of(self._edges, dense, self._directed, "edges")
        lengths = [len(src) for src, _ in dense.batches]
        team = self.backend.team
        self.graph = plain_rows(dense.batches, lengths, dense.ids.domain, self._directed, team)


class DeviceRowsEngine:
    """An edge list read into memory, made into rows on a device and searched there."""

    ranks = 1
    once = False
    in_memory = True

    def __init__(
        self,
        edges: EdgeList,
        directed: bool,
        executor: Executor,
        device: Device,
        strategy: Strategy = "rows",
    ) -> None:
        self.subject: Subject | None = None
        self.device = device
        self.gpu: GpuSearch | None = None
        self._edges = edges
        self._directed = directed
        self._executor = executor
        self._strategy: Strategy = strategy
        self._slices_bytes = 0
        self._id_of_position = np.empty(0, np.uint32)
        self._domain = 0

    @property
    def method(self) -> str:
        return method_of(self.gpu)

    def need(self) -> Need:
        edges, directed, device = self._edges, self._directed, self.device
        facts = facts_of(edges, dense_domain(edges), directed, True, 1, ONE)
        entries = edges.rows if directed else 2 * edges.rows
        preparing = gpu_prepare.bytes_needed(edges.rows, facts.domain, directed)
        searching = gpu_search.bytes_needed(facts.domain, entries, directed) + 8 * edges.rows
        most = max(preparing, searching)
        if most > device.memory_bytes:
            raise DeviceMemoryError(
                f"{format_bytes(device.memory_bytes)} may be held on {device}, and {edges.rows:,} "
                f"rows need {format_bytes(most)} there"
            )
        left = device.memory_bytes - searching
        self._slices_bytes = slices_bytes(self._strategy, facts.domain, entries, left)
        most = max(most, searching + self._slices_bytes)
        return Need(edge_search_bytes(edges, directed, self._executor.threads), most)

    def compile(self) -> None:
        if self.gpu is not None:
            self.gpu.warm_up()

    def load(self) -> None:
        ids.compile_reading(self._edges.id_type)
        gpu_prepare.warm_up(self.device, self._edges.rows, self._directed)
        dense = read_edges(self._edges, self._executor)
        self.subject = subject_of(self._edges, dense, self._directed, "csr")
        self._domain = dense.ids.domain
        self._executor.once("prepare", lambda: self._prepare(dense))

    def _prepare(self, dense: DenseEdges) -> None:
        with self.device.use() as cupy:
            batches = [(cupy.asarray(src), cupy.asarray(dst)) for src, dst in dense.batches]
            dense.batches.clear()
            rows = gpu_prepare.prepare(self.device, batches, self._domain, self._directed)
            forward = Rows(rows.offsets, rows.targets)
            reverse = Rows(rows.reverse_offsets, rows.reverse_targets)
            self._id_of_position = rows.id_of_position.get()
            del rows
            cupy.get_default_memory_pool().free_all_blocks()
            graph = derive(self.device, forward, reverse if self._directed else None)
            self.gpu = search_of(
                self.device, graph, self._strategy if self._slices_bytes else "rows"
            )

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """checkpoint: not used; a search takes milliseconds."""
        assert self.gpu is not None
        position = int(np.flatnonzero(self._id_of_position == source)[0])
        found = search_on_device(self.gpu, position, max_depth)
        return by_dense_id(found, self._id_of_position, self._domain)

    def close(self) -> None:
        self.gpu = None
        give_back(self.device)


def subject_of(edges: EdgeList, dense: DenseEdges, directed: bool, layout: str) -> Subject:
    names = names_of_ids(dense.ids, dense.present)
    record = GraphRecord(
        fingerprint=graph_fingerprint(edges, directed, "min"),
        directed=directed,
        vertices=sum(names.pieces),
        rows=edges.rows,
        id_type=str(edges.id_type),
    )
    held, task = 8 * dense.ids.domain, _WRITING + _COPIES * _text_at_once(dense.ids)
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
