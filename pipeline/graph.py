"""A graph that is loaded once and searched many times, from Python.

    with delegraph.open("graph.dg", memory_limit="4GB") as graph:
        found = graph.bfs(17)
        found.to_pandas()
        found.write("distances/")

The engine that a command would take holds the graph, on a GPU where one is usable, and keeps it
there between searches.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from .._version import __version__
from ..kernels.base.team import Team
from ..kernels.gpu.device import Device
from ..partition.disk.memory import trim_freed_memory
from ..partition.disk.outputs import check_output
from ..partition.disk.work import begin_work
from ..partition.errors import DelegraphError
from ..partition.input.edges import EdgeList
from ..partition.store.store import Store
from .algorithms import bfs, run
from .build.prepare import BuildOptions
from .engines.edges import engines_of_edges
from .engines.engine import Need, Ran, SearchEngine, choose, run_first
from .engines.store import engines_of_store, plan_of, subject_of
from .results.columns import schema_of
from .results.found import Found
from .results.result import ResultInfo, batches_of
from .results.store_names import StoreNames
from .run.devices import device_errors
from .run.execute import Executor
from .run.plan import Plan
from .run.records import SuperstepRecord, encode_record
from .run.resources import Resources


class Graph:
    """A graph in memory, on a device or, where it does not fit, on disk; see ``open``.

    info: as ``delegraph info --json`` tells of it. Several graphs may be open; the searches of one
    come one after the other, from whatever threads they are asked for.
    """

    def __init__(
        self,
        path: str,
        graph: Store | EdgeList,
        engines: list[SearchEngine],
        executor: Executor,
        resources: Resources,
    ) -> None:
        self.path = path
        self._graph = graph
        self._executor = executor
        self._resources = resources
        self._lock = threading.Lock()
        self._notes = [] if isinstance(graph, Store) else list(graph.notes)
        self._engine: SearchEngine | None = self._load(engines)

    def _load(self, engines: list[SearchEngine]) -> SearchEngine:
        def load(engine: SearchEngine, _need: Need) -> SearchEngine:
            try:
                engine.load()
                engine.compile()
            except BaseException:
                engine.close()
                raise
            return engine

        limit, notes = self._resources.limit, self._notes
        return run_first(engines, lambda left: choose(left, limit, notes), load, notes)

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back. The results that there are stay."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()
                self._engine = None
        trim_freed_memory()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines for people: what of an edge list was left out, why a device would not do."""
        return tuple(self._notes)

    @property
    def device(self) -> str:
        """Where it is searched: "cpu", or a GPU by number and name."""
        return str(self._open.device or "cpu")

    @cached_property
    def info(self) -> dict[str, Any]:
        from .reports.report import edges_document, store_document

        of = store_document if isinstance(self._graph, Store) else edges_document
        return of(self._graph)  # pyright: ignore[reportArgumentType] - by its kind

    def plan(self) -> Plan:
        """What the engine holds, beside what this process holds now."""
        engine = self._open
        return plan_of(engine, engine.need(), self._executor.threads, self._resources.limit)

    @property
    def _open(self) -> SearchEngine:
        if self._engine is None:
            raise DelegraphError(f"{self.path} is closed: open it again")
        return self._engine

    def bfs(self, source: int | str, max_depth: int | None = None) -> BfsResult:
        """Breadth-first search. Raises InputError for a source that is not in the graph."""
        asked = bfs.Bfs(str(source), max_depth)
        with self._lock, device_errors():
            engine = self._open
            assert engine.subject is not None
            place = bfs.find(engine.subject.names, asked.source)
            executor = Executor(self._executor.threads, self._executor.progress)
            found = executor.once("search", lambda: engine.search(place, max_depth))
            return BfsResult(asked, found, Ran.of(engine), executor, self._resources)

    def __repr__(self) -> str:
        if self._engine is None:
            return f"<Graph {self.path}, closed>"
        vertices = self._engine.subject.record["vertices"] if self._engine.subject else 0
        return f"<Graph {self.path}: {vertices:,} vertices, on {self.device}>"


@dataclass(frozen=True, repr=False)
class BfsResult:
    """What a search found, in memory: vertex, distance, parent, by rising vertex."""

    _asked: bfs.Bfs
    _found: Found
    _ran: Ran
    _executor: Executor
    _resources: Resources

    @cached_property
    def table(self) -> pa.Table:
        """Columns ``vertex``, ``distance`` (null where unreached), ``parent`` (null for the source
        and where unreached), as a result on disk has them.
        """
        names, columns = self._ran.subject.names, bfs.columns_of(self._found)
        pieces = (
            batch
            for number in range(len(names.pieces))
            for batch in batches_of(names, number, columns)
        )
        return pa.Table.from_batches(pieces, schema_of(names, columns))

    @property
    def source(self) -> int | str:
        return bfs.parse_id(self._asked.source, self._ran.subject.names.id_type)

    @property
    def vertex(self) -> pa.ChunkedArray:
        return self.table["vertex"]

    @property
    def distance(self) -> pa.ChunkedArray:
        return self.table["distance"]

    @property
    def parent(self) -> pa.ChunkedArray:
        return self.table["parent"]

    @property
    def reached(self) -> int:
        """Vertices, the source included."""
        return self._found.reached

    @property
    def depth(self) -> int:
        return self._found.depth

    @property
    def supersteps(self) -> list[SuperstepRecord]:
        return list(self._found.supersteps)

    @property
    def seconds(self) -> float:
        """Of the search alone."""
        return self._executor.steps[0]["seconds"]

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def write(self, output: str | Path, overwrite: bool = False) -> None:
        """Write a result folder, with the run's record beside it, as ``delegraph bfs`` does."""
        check_output(output, "result", overwrite)
        subject = self._ran.subject
        answer = bfs.answer_of(self._found, self.source, self._asked.max_depth, self._ran.method)
        facts = subject.record
        options = self._asked.options(subject.names.id_type)
        info = ResultInfo("bfs", facts["fingerprint"], facts["directed"], options, __version__)
        with begin_work(output, {}, restart=True) as work:
            of = run.RunOptions(self._executor.threads)
            this = run.Run(of, self._executor, self._resources, work, info)
            this.clock.seconds["search"] = self.seconds
            run.write(subject, answer, this)
            record = run.record_of(self._ran, answer, this)
            work.publish("result", overwrite, encode_record(record))

    def __repr__(self) -> str:
        return (
            f"<BfsResult from {self.source}: reached {self.reached:,} of "
            f"{self._ran.subject.record['vertices']:,} vertices, depth {self.depth}>"
        )


def open_graph(
    path: str, choices: BuildOptions | None, executor: Executor, resources: Resources
) -> Graph:
    """choices: how an edge list is read; a store refuses them."""
    graph = run.open_graph(path, choices)
    with device_errors():
        device: Device | None = resources.chosen_device()
        if isinstance(graph, Store):
            subject = subject_of(graph, StoreNames(graph, Team(executor.threads)))
            engines = engines_of_store(graph, subject, device, executor.threads, "auto")
        else:
            directed = (choices or BuildOptions()).directed
            engines = engines_of_edges(
                graph, directed, device, executor, once=False, strategy="auto"
            )
        return Graph(path, graph, engines, executor, resources)
