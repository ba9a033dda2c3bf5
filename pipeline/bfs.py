"""Breadth-first search, from a store or an edge list to a result on disk.

A store is loaded and searched with push and pull. An edge list is searched by scans, passes
over its unordered edges, while that is cheaper than preparing it; a graph with more levels
than that is prepared in memory first, as a store of one partition would be.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from .._version import __version__
from ..kernels.backend import get_backend
from ..kernels.cpu import ScanState, Team, warm_up_scan
from ..kernels.graph import Graph
from ..partition.edges import EdgeList, open_edges
from ..partition.errors import InputError
from ..partition.ids import parse_id
from ..partition.store import Store, is_store, open_store
from .build import build_store, graph_record
from .communicator import Counters, SingleCommunicator
from .execute import Executor
from .metrics import (
    Clock,
    GraphRecord,
    RunRecord,
    SearchRecord,
    check_outputs,
    command_record,
    write_record,
)
from .prepare import BuildOptions, graph_in_memory, prepare, warm_up_build
from .read import graph_fingerprint, read_edges, warm_up_read
from .result import (
    ResultInfo,
    VertexNames,
    names_of_ids,
    names_of_order,
    names_of_store,
    write_result,
)
from .superstep import Found, search, superstep_record

SCAN_BUDGET = 8
"""Scans may look at this many times the rows before the search turns to a store instead.

Preparing a graph costs about as much as ten scans of all its rows, and a scan drops the rows
whose use is past: on graphs of few levels all scans together look at about three times the
rows.
"""


@dataclass(frozen=True)
class SearchOptions:
    """max_depth: levels to search at most, None for all. threads: cores to use."""

    max_depth: int | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        if self.max_depth is not None and self.max_depth < 0:
            raise InputError(f"the depth limit must not be negative, not {self.max_depth}")
        if self.threads < 1:
            raise InputError(f"threads must be positive, not {self.threads}")


@dataclass(frozen=True)
class _Searched:
    """A search that is done, and what is needed to write and to record it."""

    names: VertexNames
    found: Found
    graph: GraphRecord
    layout: str
    method: str


def search_to_result(
    path: str | Path,
    source: str,
    output: str | Path,
    options: SearchOptions,
    build_options: BuildOptions | None,
    executor: Executor,
    overwrite: bool = False,
) -> RunRecord:
    """Search the store or edge list at ``path`` and write the result folder ``output``.

    source: the vertex to start from, as typed. build_options: how to read an edge list, and
    whether to build a store of it; a store refuses them, having its own.
    Returns the run's record, which is also written beside the result. Raises InputError for
    bad input or a source that is not in the graph, before anything is written.
    """
    output = Path(output)
    check_outputs(output, overwrite, path)
    run = _Run(source, options, executor, Clock())
    if is_store(path):
        if build_options is not None:
            raise InputError(f"{path} is a store: how to read and build it was decided with it")
        searched = _search_store(open_store(path), run)
    else:
        choices = build_options or BuildOptions()
        edges = open_edges(path, choices.src, choices.dst)
        parse_id(source, edges.id_type)  # a wrong type is told before anything is read
        if choices.shapes_store:
            searched = _search_through_store(edges, output, choices, run)
        else:
            searched = _search_by_scans(edges, choices, run)
            searched = searched or _search_by_rows(edges, choices, run)
    value = parse_id(source, searched.names.id_type)
    with run.clock.phase("write"):
        info = ResultInfo(
            graph=searched.graph["fingerprint"],
            source=value,
            directed=searched.graph["directed"],
            max_depth=options.max_depth,
            version=__version__,
        )
        write_result(output, searched.names, searched.found.distance, searched.found.parent, info)
    record = RunRecord(
        **command_record(executor.steps, options.threads),
        ranks=1,
        layout=searched.layout,
        graph=searched.graph,
        search=SearchRecord(
            source=value,
            max_depth=options.max_depth,
            method=searched.method,
            reached=searched.found.reached,
            depth=searched.found.depth,
        ),
        seconds=run.clock.seconds,
        supersteps=searched.found.supersteps,
    )
    write_record(output, record)
    return record


@dataclass(frozen=True)
class _Run:
    """What every way to search shares."""

    source: str
    options: SearchOptions
    executor: Executor
    clock: Clock

    def find(self, names: VertexNames) -> int:
        value = parse_id(self.source, names.id_type)
        place = names.find(value)
        if place is None:
            raise InputError(f"source {value!r} is not a vertex of the graph")
        return place

    def search(self, graph: Graph, source: int) -> Found:
        backend = get_backend("cpu", self.options.threads)
        with self.clock.phase("compile"):
            self.executor.step("compile", backend.warm_up, [graph])
        with self.clock.phase("search"):
            return search(graph, source, backend, SingleCommunicator(), self.options.max_depth)


def _search_store(store: Store, run: _Run) -> _Searched:
    team = Team(run.options.threads)
    with run.clock.phase("load"):
        names = names_of_store(store, team)
        source = run.find(names)
        graph = store.graph(team)
    found = run.search(graph, source)
    layout = "csr" if store.info.partitions == 1 else "delegate"
    return _Searched(names, found, graph_record(store), layout, "push-pull")


def _search_through_store(
    edges: EdgeList, output: Path, choices: BuildOptions, run: _Run
) -> _Searched:
    """Through a temporary store beside the output, gone afterwards."""
    with tempfile.TemporaryDirectory(
        prefix=f".{output.name}.graph-", dir=output.absolute().parent
    ) as folder:
        with run.clock.phase("compile"):
            warm_up_build(edges, choices.directed, run.executor)
        with run.clock.phase("load"):
            store = build_store(edges, Path(folder) / "graph.dg", choices, run.executor)
        return _search_store(store, run)


def _search_by_rows(edges: EdgeList, choices: BuildOptions, run: _Run) -> _Searched:
    """Like through a store, but without writing it: the rows of one partition, in memory."""
    with run.clock.phase("compile"):
        warm_up_build(edges, choices.directed, run.executor)
    with run.clock.phase("load"):
        dense = read_edges(edges, run.executor)
        prepared = prepare(dense, replace(choices, partitions=1), run.executor)
        names = names_of_order(prepared.ids, prepared.order)
        source = run.find(names)
        graph = graph_in_memory(prepared, run.executor)
    record = _edges_record(edges, choices.directed, graph.vertices)
    del dense, prepared
    return _Searched(names, run.search(graph, source), record, "csr", "push-pull")


def _search_by_scans(edges: EdgeList, choices: BuildOptions, run: _Run) -> _Searched | None:
    """By scans; None if the graph has too many levels for that."""
    with run.clock.phase("compile"):
        warm_up_read(edges, run.executor)
        run.executor.step("compile", lambda _: warm_up_scan(), [None])
    with run.clock.phase("load"):
        dense = read_edges(edges, run.executor)
        names = names_of_ids(dense.ids, dense.present)
        source = run.find(names)
    with run.clock.phase("search"):
        state = ScanState(dense.blocks, dense.ids.domain, source, choices.directed)
        found = _scan(state, Team(run.options.threads), run.options.max_depth)
    if found is None:
        return None
    record = _edges_record(edges, choices.directed, len(names.index))
    return _Searched(names, found, record, "edges", "scan")


def _edges_record(edges: EdgeList, directed: bool, vertices: int) -> GraphRecord:
    return GraphRecord(
        fingerprint=graph_fingerprint(edges, directed),
        directed=directed,
        vertices=vertices,
        rows=edges.rows,
        id_type=str(edges.id_type),
    )


def _scan(state: ScanState, team: Team, max_depth: int | None) -> Found | None:
    budget = SCAN_BUDGET * sum(state.lengths)
    frontier = 1
    supersteps = []
    while frontier and (max_depth is None or state.level < max_depth):
        started = time.perf_counter()
        found, examined = state.advance(team)
        budget -= examined
        if budget < 0 and found:
            return None
        total = Counters(found, 0, 0, examined)
        supersteps.append(
            superstep_record(state.level, "scan", frontier, total, time.perf_counter() - started)
        )
        frontier = found
    return Found(state.distance, state.parent, supersteps)
