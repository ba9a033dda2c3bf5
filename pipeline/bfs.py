"""Breadth-first search, from a store or an edge list to a result on disk.

A store is loaded and searched with push and pull. An edge list is searched by scans, passes
over its unordered edges; when a graph proves to have many levels, the search goes on in rows of
the edges that are left.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .._version import __version__
from ..kernels.backend import Work, get_backend
from ..kernels.edge_search import EdgeSearch, warm_up_edge_search
from ..kernels.graph import Graph
from ..kernels.team import Team
from ..partition.edges import EdgeList, open_edges
from ..partition.errors import InputError
from ..partition.ids import parse_id
from ..partition.outputs import check_output, is_store
from ..partition.store import Store, open_store
from .build import build_store, graph_record
from .communicator import SingleCommunicator
from .execute import Executor
from .metrics import (
    Clock,
    GraphRecord,
    RunRecord,
    SearchRecord,
    SuperstepRecord,
    command_record,
    write_record,
)
from .prepare import BuildOptions, warm_up_build
from .read import graph_fingerprint, read_edges, warm_up_read
from .result import (
    ResultInfo,
    VertexNames,
    names_of_ids,
    names_of_store,
    write_result,
)
from .superstep import Found, resume, search, superstep_record

SCAN_BUDGET = 8
"""Scans may look at this many times the rows; after that the search goes on in rows.

Making rows costs about as much as ten scans of all edges, and a scan drops the edges whose use
is past: on graphs of few levels all scans together look at three to six times the rows.
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
    check_output(output, "result", overwrite, path)
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
            searched = _search_edges(edges, choices, run)
    value = parse_id(source, searched.names.id_type)
    with run.clock.phase("write"):
        info = ResultInfo(
            graph=searched.graph["fingerprint"],
            source=value,
            directed=searched.graph["directed"],
            max_depth=options.max_depth,
            version=__version__,
        )
        found = searched.found
        write_result(
            output, searched.names, found.distance, found.parent, info, executor, overwrite
        )
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

    def search(self, begin: Callable[..., Found], graph: Graph) -> Found:
        """``begin``: a search or one to resume, but for backend, communicator and depth."""
        backend = get_backend("cpu", self.options.threads)
        with self.clock.phase("compile"):
            self.executor.step("compile", backend.warm_up, [graph])
        with self.clock.phase("search"):
            return begin(backend, SingleCommunicator(), self.options.max_depth)


def _search_store(store: Store, run: _Run) -> _Searched:
    team = Team(run.options.threads)
    with run.clock.phase("load"):
        names = names_of_store(store, team)
        source = run.find(names)
        graph = store.graph(team)
    found = run.search(partial(search, graph, source), graph)
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


def _search_edges(edges: EdgeList, choices: BuildOptions, run: _Run) -> _Searched:
    """By scans, and by rows of the edges that are left if the graph has many levels."""
    with run.clock.phase("compile"):
        warm_up_read(edges, run.executor)
        run.executor.step("compile", lambda _: warm_up_edge_search(), [None])
    with run.clock.phase("load"):
        dense = read_edges(edges, run.executor)
        names = names_of_ids(dense.ids, dense.present)
        source = run.find(names)
    state = EdgeSearch(dense.blocks, dense.ids.domain, source, choices.directed)
    team = Team(run.options.threads)
    with run.clock.phase("search"):
        supersteps, done = _scan(state, team, run.options.max_depth)
    found, method = Found(state.distance, state.parent, supersteps), "scan"
    if not done:
        with run.clock.phase("search"):
            resumed = state.by_rows(team)
        dense.blocks.clear()
        found, method = run.search(partial(resume, resumed), resumed.graph), "scan, push-pull"
        found.supersteps[:0] = supersteps
    record = GraphRecord(
        fingerprint=graph_fingerprint(edges, choices.directed),
        directed=choices.directed,
        vertices=len(names.index),
        rows=edges.rows,
        id_type=str(edges.id_type),
    )
    return _Searched(names, found, record, "edges", method)


def _scan(
    state: EdgeSearch, team: Team, max_depth: int | None
) -> tuple[list[SuperstepRecord], bool]:
    """Scan until the search is done (True) or has spent its budget (False)."""
    budget = SCAN_BUDGET * sum(state.lengths)
    frontier = 1
    supersteps: list[SuperstepRecord] = []
    while frontier and (max_depth is None or state.level < max_depth):
        if budget < 0:
            return supersteps, False
        started = time.perf_counter()
        frontier_before = frontier
        frontier, examined = state.advance(team)
        budget -= examined
        total = Work(frontier, 0, 0, examined)
        seconds = time.perf_counter() - started
        supersteps.append(superstep_record(state.level, "scan", frontier_before, total, seconds))
    return supersteps, True
