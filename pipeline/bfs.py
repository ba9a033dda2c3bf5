"""Breadth-first search, from a store or an edge list to a result on disk.

A store is loaded and searched with push and pull. An edge list is searched by scans, passes
over its unordered edges, while that is cheaper than preparing it; a graph with more levels
than that is built into a temporary store first.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .._version import __version__
from ..kernels.backend import get_backend
from ..kernels.cpu import ScanState, Team, warm_up_scan
from ..partition.edges import EdgeList, open_edges
from ..partition.errors import InputError
from ..partition.ids import parse_id
from ..partition.store import Store, is_store, open_store
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
from .prepare import (
    BuildOptions,
    build_store,
    graph_fingerprint,
    graph_record,
    read_edges,
    warm_up_build,
    warm_up_read,
)
from .result import (
    ResultInfo,
    VertexNames,
    names_of_ids,
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
    source: int | str
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
    check_outputs(output, overwrite)
    clock = Clock()
    if is_store(path):
        if build_options is not None:
            raise InputError(f"{path} is a store: how to read and build it was decided with it")
        searched = _search_store(open_store(path), source, options, executor, clock)
    else:
        build_options = build_options or BuildOptions()
        edges = open_edges(path, build_options.src, build_options.dst)
        value = parse_id(source, edges.id_type)
        scanned = None
        if not build_options.shapes_store:
            scanned = _search_edges(edges, value, options, build_options.directed, executor, clock)
        searched = scanned or _build_and_search(
            edges, source, output, options, build_options, executor, clock
        )
    with clock.phase("write"):
        info = ResultInfo(
            graph=searched.graph["fingerprint"],
            source=searched.source,
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
            source=searched.source,
            max_depth=options.max_depth,
            method=searched.method,
            reached=searched.found.reached,
            depth=searched.found.depth,
        ),
        seconds=clock.seconds,
        supersteps=searched.found.supersteps,
    )
    write_record(output, record)
    return record


def _find(names: VertexNames, source: str, where: str | os.PathLike) -> tuple[int | str, int]:
    value = parse_id(source, names.id_type)
    place = names.find(value)
    if place is None:
        raise InputError(f"source {value!r} is not a vertex of {where}")
    return value, place


def _search_store(
    store: Store, source: str, options: SearchOptions, executor: Executor, clock: Clock
) -> _Searched:
    backend = get_backend("cpu", options.threads)
    team = Team(options.threads)
    with clock.phase("load"):
        names = names_of_store(store, team)
        value, place = _find(names, source, store.path)
        graph = store.graph(team)
    with clock.phase("compile"):
        executor.step("compile", backend.warm_up, [graph])
    with clock.phase("search"):
        found = search(graph, place, backend, SingleCommunicator(), options.max_depth)
    layout = "csr" if store.info.partitions == 1 else "delegate"
    return _Searched(names, found, graph_record(store), value, layout, "push-pull")


def _build_and_search(
    edges: EdgeList,
    source: str,
    output: Path,
    options: SearchOptions,
    build_options: BuildOptions,
    executor: Executor,
    clock: Clock,
) -> _Searched:
    """Through a temporary store beside the output, gone afterwards."""
    with tempfile.TemporaryDirectory(
        prefix=f".{output.name}.graph-", dir=output.absolute().parent
    ) as folder:
        with clock.phase("compile"):
            warm_up_build(edges, build_options.directed, executor)
        with clock.phase("load"):
            store = build_store(edges, Path(folder) / "graph.dg", build_options, executor)
        return _search_store(store, source, options, executor, clock)


def _search_edges(
    edges: EdgeList,
    source: int | str,
    options: SearchOptions,
    directed: bool,
    executor: Executor,
    clock: Clock,
) -> _Searched | None:
    """By scans; None if the graph has too many levels for that."""
    with clock.phase("compile"):
        warm_up_read(edges, executor)
        executor.step("compile", lambda _: warm_up_scan(), [None])
    with clock.phase("load"):
        dense = read_edges(edges, executor)
        names = names_of_ids(dense.ids, dense.present)
        place = names.find(source)
        if place is None:
            raise InputError(f"source {source!r} is not a vertex of the edge list")
    team = Team(options.threads)
    with clock.phase("search"):
        found = _scan(
            ScanState(dense.blocks, dense.ids.domain, place, directed), team, options.max_depth
        )
    if found is None:
        return None
    record = GraphRecord(
        fingerprint=graph_fingerprint(edges, directed),
        directed=directed,
        vertices=len(names.index),
        rows=edges.rows,
        id_type=str(edges.id_type),
    )
    return _Searched(names, found, record, source, "edges", "scan")


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
