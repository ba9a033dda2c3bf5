"""Searching an edge list in memory, as it comes: by scans over its unordered edges, and when a
graph proves to have many levels, in rows of the edges that are left.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...kernels.bfs.edges import EdgeSearch, compile_edge_search
from ...kernels.bfs.state import LevelWork
from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu import search as gpu_search
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.graph import Rows, derive
from ...kernels.gpu.search import GpuSearch
from ...partition.input import ids
from ...partition.input.edges import EdgeList
from ...partition.store.grid import ONE
from ..build.plan import dictionary_bytes, facts_of
from ..build.prepare import BuildOptions
from ..build.read import dense_domain, graph_fingerprint, read_edges
from ..results.checkpoint import Checkpoint
from ..results.found import Found, superstep_record
from ..results.names import VertexNames, names_of_ids
from ..run.records import GraphRecord, SuperstepRecord
from .device import by_dense_id, search_on_device
from .memory import resume
from .search_run import Searched, SearchRun

SCAN_BUDGET = 8
"""Scans may look at this many times the rows; after that the search goes on in rows.

Making rows costs about as much as ten scans of all edges, and a scan drops the edges whose use
is past: on graphs of few levels all scans together look at three to six times the rows.
"""

_DECODE = 32 << 20
_WRITING = 64 << 20  # a task that writes a piece of the result


def edge_search_bytes(edges: EdgeList, directed: bool, threads: int) -> int:
    """What reading and searching an edge list holds at most."""
    facts = facts_of(edges, dense_domain(edges), directed, True, 1, ONE)
    batch = 8 * facts.rows
    state = facts.domain * (4 + 4 + 1 + 4) + facts.domain // 4
    # In rows: keys or targets of both directions beside the batches, offsets and a queue.
    rows = 2 * batch + facts.domain * (8 + 4)
    return batch + state + rows + threads * _DECODE + dictionary_bytes(facts)


def warm_up(edges: EdgeList, run: SearchRun) -> None:
    """Compile, or load from the cache, what a search of an edge list will call."""
    with run.clock.phase("compile"):
        ids.compile_reading(edges.id_type)
        run.executor.once("compile", lambda: compile_edge_search(edges.rows))


def search_edges(edges: EdgeList, choices: BuildOptions, run: SearchRun, need: int) -> Searched:
    need += run.held()
    with run.clock.phase("load"):
        dense = read_edges(edges, run.executor, need)
        names = names_of_ids(dense.ids, dense.present)
        source = run.find(names)
    fingerprint = graph_fingerprint(edges, choices.directed)
    checkpoint = run.checkpoint(f"{fingerprint}, edges as they came")
    state = EdgeSearch(dense.batches, dense.ids.domain, source, choices.directed)
    team = Team(run.options.threads)
    supersteps: list[SuperstepRecord] = []
    with run.clock.phase("search"):
        done = run.executor.step(
            "search",
            lambda _: scan(state, team, run.options.max_depth, checkpoint, supersteps),
            [None],
            need,
        )[0]
    found, method = Found(state.distance, state.parent, supersteps), "scan"
    if not done:
        with run.clock.phase("search"):
            resumed = state.by_rows(team)
        dense.batches.clear()
        begin = partial(resume, resumed, checkpoint=checkpoint, supersteps=supersteps)
        found, method = run.search(begin, resumed.graph, need), "scan, push-pull"
    return _searched(edges, choices, names, found, "edges", method)


def search_edges_on_device(
    edges: EdgeList, choices: BuildOptions, run: SearchRun, device: Device
) -> Searched | None:
    """Make rows of an edge list on a device and search them; None where there is no room."""
    facts = facts_of(edges, dense_domain(edges), choices.directed, True, 1, ONE)
    ways = 2 if choices.directed else 1
    entries = 2 * edges.rows // ways
    preparing = gpu_prepare.bytes_needed(edges.rows, facts.domain, choices.directed)
    searching = gpu_search.bytes_needed(facts.domain, entries, choices.directed)
    need = edge_search_bytes(edges, choices.directed, run.options.threads)
    if max(preparing, searching + 8 * edges.rows) > device.memory_bytes or not run.fits(need):
        run.notes.append(f"not prepared on {device}: it has no room for {edges.rows:,} rows")
        return None
    with run.clock.phase("compile"):
        ids.compile_reading(edges.id_type)
        gpu_prepare.warm_up(device, edges.rows, choices.directed)
    need += run.held()
    with run.clock.phase("load"):
        dense = read_edges(edges, run.executor, need)
        names = names_of_ids(dense.ids, dense.present)
        source = run.find(names)
        domain = dense.ids.domain

        def prepare() -> tuple[GpuSearch, NDArray[np.uint32]]:
            with device.use() as cupy:
                batches = [(cupy.asarray(src), cupy.asarray(dst)) for src, dst in dense.batches]
                dense.batches.clear()
                rows = gpu_prepare.prepare(device, batches, domain, choices.directed)
                forward = Rows(rows.offsets, rows.targets)
                reverse = Rows(rows.reverse_offsets, rows.reverse_targets)
                id_of_position = rows.id_of_position.get()
                del rows
                cupy.get_default_memory_pool().free_all_blocks()
                graph = derive(device, forward, reverse if choices.directed else None)
                return GpuSearch(device, graph), id_of_position

        try:
            search, id_of_position = run.executor.step(
                "prepare", lambda _: prepare(), [None], need
            )[0]
        except DeviceMemoryError as error:
            run.notes.append(f"not prepared on {device}: {error}")
            return None
        position = int(np.flatnonzero(id_of_position == source)[0])
    with run.clock.phase("compile"):
        search.warm_up()
    with run.clock.phase("search"):
        depth = run.options.max_depth
        by_position = run.executor.step(
            "search", lambda _: search_on_device(search, position, depth), [None], need
        )[0]
        found = by_dense_id(by_position, id_of_position, domain)
    return _searched(edges, choices, names, found, "csr", "push-pull", device)


def _searched(
    edges: EdgeList,
    choices: BuildOptions,
    names: VertexNames,
    found: Found,
    layout: str,
    method: str,
    device: Device | None = None,
) -> Searched:
    record = GraphRecord(
        fingerprint=graph_fingerprint(edges, choices.directed),
        directed=choices.directed,
        vertices=sum(names.pieces),
        rows=edges.rows,
        id_type=str(edges.id_type),
    )
    writing = 8 * len(found.distance)
    return Searched(
        *(names, found, record, layout, method), lambda tasks: writing + tasks * _WRITING, device
    )


def scan(
    state: EdgeSearch,
    team: Team,
    max_depth: int | None,
    checkpoint: Checkpoint | None,
    supersteps: list[SuperstepRecord],
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
        supersteps += saved.supersteps
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
        total = LevelWork(frontier, 0, 0, examined)
        seconds = time.perf_counter() - started
        supersteps.append(superstep_record(state.level, "scan", frontier_before, total, seconds))
        if checkpoint and checkpoint.due():
            checkpoint.save(state.distance, state.parent, state.level, supersteps)
    return True
