"""A graph that Python loads once and asks many questions.

    with delegraph.open("graph.dg", memory_limit="4GB") as graph:
        found = graph.bfs(17)
        found.to_pandas()
        found.write("distances/")
        ranks = graph.pagerank()

The engine that a command would choose holds the graph between searches, on a GPU where one is
usable. An edge list is held in the rows that its store would have. Other questions use the same
arrays if the graph is an edge list, or a store of one partition on a CPU. Otherwise the first of
them loads what it needs, and the next ones use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from .._version import __version__
from ..kernels.base.team import Team
from ..kernels.gpu.device import Device, DeviceMemoryError
from ..partition.disk.memory import return_freed_memory, trim_freed_memory
from ..partition.disk.temporary import TemporaryFolder
from ..partition.disk.urls import rooted
from ..partition.errors import DelegraphError, InputError, LimitError
from ..partition.input.edges import EdgeList
from ..partition.store.manifest import GraphInfo
from ..partition.store.store import Store
from .algorithms import run
from .algorithms.bfs import Bfs, answer_of, find
from .algorithms.bfs_each import BfsEach, first_batch, kept_bytes, no_sums, search_extra_bytes
from .algorithms.many_sources import sources_by_id
from .algorithms.programs import ProgramQuestion, program_extra_bytes, telling
from .build.build import build_store
from .build.prepare import BuildOptions
from .edge_reader import edge_reader
from .engines.auto_device import Asked, with_device
from .engines.engine import Engine, EngineFacts, Need, SearchEngine, Subject, choose, run_first
from .engines.engine_cache import fits_beside, hand_over
from .engines.host.search import HostSearchEngine
from .engines.operations.program import Program, ProgramEngine
from .engines.plan import plan_of
from .engines.subjects import subject_of
from .engines.table import (
    KeepsRows,
    programs_of_rows,
    programs_of_store,
    searches_of_open_edges,
    searches_of_store,
)
from .methods import QuestionMethods
from .notebook import Picture, notebook_html
from .parameter_checks import algorithm_of
from .python_side.keywords import worded
from .python_side.progress import finish
from .python_side.public import public
from .questions import QUESTIONS
from .result import BfsResult, Result
from .results.by_source import Batches
from .results.names import Names, names_of_store
from .results.result import ResultInfo
from .results.row_notes import row_notes
from .results.store_names import StoreNames
from .run.devices import device_errors
from .run.execute import Executor
from .run.plan import Plan, held_now
from .run.resources import Resources
from .summary import degree_range

if TYPE_CHECKING:
    from .build.held import HeldGraph
    from .engines.one_device.rows import HeldRows

_PART_FOR_NAMES = 1 / 8
"""Pieces of the vertex table that were read may stay in this part of the memory that is left."""

Found = TypeVar("Found")
E = TypeVar("E", bound=Engine)


class Graph(QuestionMethods):
    """An open graph. ``delegraph.open`` makes it; close it, or use it in a ``with`` statement.

    ``location`` is the path or the URL that it was opened from, or says that it was in memory.

    It stands in memory, on a GPU, or on disk if it does not fit. Several graphs may be open at
    once. Any thread may ask a question; one graph answers one question after the other.
    """

    def __init__(
        self,
        path: str,
        graph: Store | EdgeList,
        engines: list[SearchEngine],
        executor: Executor,
        resources: Resources,
        choices: BuildOptions,
        temporary: ExitStack,
        notes: Sequence[str] = (),
        is_asked_once: bool = False,
    ) -> None:
        self.location = path
        self._graph = graph
        self._executor = executor
        self._resources = resources
        self._options = run.RunOptions(executor.threads)
        self._lock = threading.Lock()
        self._notes = [*notes, *(() if isinstance(graph, Store) else graph.notes)]
        self._choices = choices
        self._is_asked_once = is_asked_once  # nobody looks at the graph's own notes then
        self._programs: ProgramEngine | None = None
        self._on_device = 0  # bytes that searches hold there
        self._keeps_names = False
        self._made: tuple[Store, Subject] | None = None
        self._engine: SearchEngine | None = self._load(engines)
        self._notes += row_notes(self._subject.record)
        self._temporary = temporary.pop_all()

    def _load(self, engines: list[SearchEngine]) -> SearchEngine:
        engine = self._first(engines)
        self._on_device = engine.need().device
        self._keep_names(engine)
        return engine

    def _keep_names(self, engine: SearchEngine) -> None:
        """Keep pieces of names that are read, in a part of the memory that is left now."""
        names = engine.subject.names if engine.subject else None
        if isinstance(names, StoreNames):
            names.keep(int(_PART_FOR_NAMES * max(0, self._resources.limit - held_now())))
            self._keeps_names = True

    def _make_way(self, engine: ProgramEngine) -> None:
        """Let go of the kept names unless an engine fits beside them."""
        names = self._subject.names
        if not isinstance(names, StoreNames) or not self._keeps_names:
            return
        if not fits_beside(engine, self._resources.limit - names.room):
            names.keep(0)
            self._keeps_names = False

    def _first(self, engines: Sequence[E]) -> E:
        """Return the first engine that can load, once it has loaded."""

        def load(engine: E, need: Need) -> E:
            try:
                if isinstance(engine.device, Device):
                    engine.compile()  # what is known before the graph is loaded
                engine.load()
                engine.compile()
            except BaseException:
                engine.close()
                raise
            return engine

        limit = self._resources.limit
        notes: list[str] = []
        try:
            return run_first(engines, lambda left: choose(left, limit, notes), load, notes)
        finally:
            self._notes += [note for note in notes if note not in self._notes]

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory of the graph. Results that were returned stay usable."""
        with self._lock, device_errors(), ExitStack() as closing:
            closing.push(self._temporary.pop_all())
            for engine in (self._programs, self._engine):
                if engine is not None:
                    closing.callback(engine.close)
            self._engine = self._programs = self._made = None
        trim_freed_memory()

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for people, on files and rows that were left out and devices that were not used.

        Results have notes of their own.
        """
        return tuple(map(worded, self._notes))

    @property
    def device(self) -> str:
        """``"cpu"``, or a GPU by its number and name."""
        return str(self._open.device or "cpu")

    @cached_property
    def info(self) -> dict[str, Any]:
        """The description that ``delegraph info --json`` prints."""
        from .reports.report import edges_document, store_document

        of = store_document if isinstance(self._graph, Store) else edges_document
        return of(self._graph)  # pyright: ignore[reportArgumentType] - by its kind

    def __bool__(self) -> bool:
        return True  # a closed one, too, which has no length

    def __len__(self) -> int:
        """Return the number of vertices."""
        return self._subject.record["vertices"]

    @property
    def vertices(self) -> pa.ChunkedArray:
        """The ids of the vertices, rising."""
        names = self._subject.names
        pieces = [names.piece(number)[0] for number in range(len(names.pieces))]
        return pa.chunked_array(pieces, names.id_type)

    @property
    def edges(self) -> pa.RecordBatchReader:
        """The edges in batches, with ``src``, ``dst`` and, if the graph has weights, ``weight``.

        Of a store, each edge once, and the self-loops that it keeps; of an edge list, its rows as
        they are, with self-loops and rows that repeat an edge. ``graph.edges.read_all()`` is a
        table in memory; pandas, Polars and DuckDB take a reader, too. Each access begins anew. The
        ids of all vertices of a store are in memory meanwhile.
        """
        return edge_reader(self._graph, self._subject.names, lambda: self._open)

    @public
    def plan(self) -> Plan:
        """The memory that the graph and a search hold, beside the rest of this process."""
        engine, limit = self._open, self._resources.limit
        return plan_of(engine, engine.need().within(limit), self._executor.threads, limit)

    @property
    def _open(self) -> SearchEngine:
        if self._engine is None:
            raise DelegraphError(f"{self.location} is closed: open it again")
        return self._engine

    @property
    def _subject(self) -> Subject:
        """Return the subject of the graph as it was opened."""
        assert self._open.subject is not None
        return self._open.subject

    @public
    def _ask(self, name: str, values: Mapping[str, Any]) -> Result:
        _, algorithm = algorithm_of(QUESTIONS[name], values)
        return self.ask(algorithm)

    @public
    def ask(self, algorithm: ProgramQuestion | Bfs | BfsEach) -> Result:
        """Run an algorithm that a file of ``pipeline/algorithms`` makes."""
        try:
            if isinstance(algorithm, Bfs):
                return self._search(algorithm)
            if isinstance(algorithm, BfsEach):
                return self._search_each(algorithm)
            return self._run_program(algorithm)
        finally:
            finish(self._executor.progress)

    def _search(self, asked: Bfs) -> BfsResult:
        with self._lock, device_errors():
            engine, subject = self._open, self._subject
            names = subject.names
            source = find(names, asked.source)
            this = self._begin(asked, subject)
            found = _timed(this, lambda: engine.search(source.place, asked.max_depth))
            return BfsResult(
                answer_of(found, source.id, asked.max_depth, engine.method),
                EngineFacts.of(engine),
                this,
            )

    def _run_program(self, question: ProgramQuestion) -> Result:
        with self._lock, device_errors():
            if question.weighted:
                self._check_weights()
            engine = self._ready(question.program)
            assert engine.subject is not None
            subject = engine.subject
            this = self._begin(question, subject)
            extra_bytes = program_extra_bytes(question, subject, self._resources.limit)
            given = _timed(
                this, lambda: engine.run(None, telling(question, this), extra_bytes=extra_bytes)
            )
            return Result(
                question.answer(given, subject.names, engine.method), EngineFacts.of(engine), this
            )

    def _search_each(self, asked: BfsEach) -> Result:
        def first(names: Names, info: GraphInfo) -> Program:
            return first_batch(sources_by_id(asked.sources, names)[1], asked.max_depth)

        with self._lock, device_errors():
            opened = self._subject
            count = len(asked.sources.read(opened.names.id_type).vertex)
            kept = opened.record["vertices"] * kept_bytes(count)
            engine = self._ready(first, kept)
            assert engine.subject is not None
            subject = engine.subject
            this = self._begin(asked, subject)
            ids, places = sources_by_id(asked.sources, subject.names)
            sums = no_sums()
            extra_bytes = search_extra_bytes(subject, this, kept)
            batches = asked.batches(
                engine, ids, places, this.executor.progress, sums, extra_bytes=extra_bytes
            )
            rows = Batches(_timed(this, lambda: [rows for _, _, rows in batches]))
            return Result(
                asked.answer(len(ids), engine.method, sums), EngineFacts.of(engine), this, rows
            )

    def _begin(self, asked: Bfs | BfsEach | ProgramQuestion, subject: Subject) -> run.Run:
        executor = Executor(self._executor.threads, self._executor.progress)
        graph, options = subject.record, asked.options(subject.names.id_type)
        fingerprint, directed = graph["fingerprint"], graph["directed"]
        run.check_direction(asked.name, directed)
        info = ResultInfo(asked.name, fingerprint, directed, options, __version__)
        notes = row_notes(graph, info)
        if self._open.device is not None:
            loops = bool(graph.get("loops"))
            run.resources_for(asked.name, self._resources, notes, loops)
        if isinstance(self._graph, EdgeList):
            notes += run.weight_notes(self._graph, info)
        if self._is_asked_once:  # the notes of the question say more of rows
            known = {*notes, *row_notes(graph)}
            notes = [*(note for note in self._notes if note not in known), *notes]
        return run.Run(self._options, executor, self._resources, None, info, notes=notes)

    def _check_weights(self) -> None:
        if isinstance(self._graph, Store):
            run.check_weights(self._graph, self.location)
        elif self._graph.weight is None:
            raise InputError(
                f"{self.location} was opened without weights: give their column with --weight"
            )

    def _ready(
        self, program_of: Callable[[Names, GraphInfo], Program], reserved_bytes: int = 0
    ) -> ProgramEngine:
        """Return an engine that has loaded the graph, for a program.

        reserved_bytes: bytes that are held with what is found.
        """
        threads, device = self._executor.threads, self._room_on_device()
        if self._made is None and isinstance(self._graph, EdgeList):
            held, subject = self._held_rows(), self._subject
            program = program_of(subject.names, held.info)
            engines = programs_of_rows(held, subject, program, threads, reserved_bytes, device)
            try:
                if engines:
                    return self._first_ready(engines)
            except LimitError:
                pass  # from disk, then
            except DeviceMemoryError as error:
                self._notes.append(f"used a temporary store: {error}")
            self._let_go()
            self._made = self._build()
        store, subject = self._made or (self._graph, self._subject)
        assert isinstance(store, Store)
        program = program_of(subject.names, store.info)
        graph = None
        if self._made is None and isinstance(self._open, HostSearchEngine):
            graph = self._open.graph
        engines = programs_of_store(store, subject, program, threads, reserved_bytes, device, graph)
        return self._first_ready(engines)

    def _held_rows(self) -> HeldGraph | HeldRows:
        """Return the rows of an edge list that is open."""
        loader = getattr(self._open, "loader", None)
        assert isinstance(loader, KeepsRows)
        assert loader.held is not None
        return loader.held

    @property
    def _graph_info(self) -> GraphInfo | None:
        """Return the facts of the graph; None for an edge list that is not held as rows."""
        if isinstance(self._graph, Store):
            return self._graph.info
        loader = getattr(self._open, "loader", None)
        held = loader.held if isinstance(loader, KeepsRows) else None
        return None if held is None else held.info

    def _room_on_device(self) -> Device | None:
        device = self._open.device
        if not isinstance(device, Device):
            return None
        return replace(device, memory_bytes=device.memory_bytes - self._on_device)

    def _build(self) -> tuple[Store, Subject]:
        """Build a temporary store of an edge list. Returns the store and its subject."""
        assert isinstance(self._graph, EdgeList)
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryFolder())
            store = build_store(
                self._graph,
                Path(folder) / "graph.dg",
                self._choices,
                Executor(self._executor.threads),
                self._resources,
            )
            self._temporary.push(stack.pop_all())
        # In memory: results are asked for their names, and written, when the store is gone.
        names = names_of_store(store, Team(self._executor.threads))
        subject = subject_of(store, names)
        one, two = subject.writing_bytes(1), subject.writing_bytes(2)
        return store, replace(subject, writing_bytes=lambda tasks: one + (tasks - 1) * (two - one))

    def _first_ready(self, engines: Sequence[ProgramEngine]) -> ProgramEngine:
        """Return the first engine that can load. The parts that the last engine has loaded stay,
        where they serve.
        """
        last, self._programs = self._programs, None
        hand_over(last, engines, self._resources.limit)
        self._make_way(engines[0])
        self._programs = self._first(engines)
        if not self._keeps_names:
            self._keep_names(self._open)
        return self._programs

    def _let_go(self) -> None:
        """Free the memory of the graph that a program has loaded."""
        if self._programs is not None:
            self._programs.close()
            self._programs = None
            return_freed_memory()

    def __reduce__(self) -> Any:
        raise TypeError("an open graph cannot be sent to another process: open it in that process")

    def __repr__(self) -> str:
        if self._engine is None:
            return f"<Graph {self.location}, closed>"
        return f"<Graph {self.location}: {len(self):,} vertices, on {self.device}>"

    def _repr_html_(self) -> str:
        """Return counts and a picture of the degrees as HTML, for a notebook."""
        if self._engine is None:
            return notebook_html(repr(self), ())
        directed = "directed" if self._subject.record["directed"] else "undirected"
        facts, picture = [("vertices", f"{len(self):,}")], None
        if info := self._graph_info:
            facts.append(("edges", f"{info.edges:,}"))
            bars = [(degree_range(i), count) for i, count in enumerate(info.degree_histogram)]
            picture = Picture("vertices by degree", "0", bars[-1][0].split()[-1], bars)
        if isinstance(self._graph, EdgeList):
            facts.append(("rows", f"{self._graph.rows:,}"))
        facts += [("edges are", directed), ("on", self.device)]
        return notebook_html(f"Graph {self.location}", facts, picture=picture)


def open_graph(
    path: str,
    choices: BuildOptions | None,
    executor: Executor,
    resources: Resources,
    temporary: ExitStack,
    asked: Asked | None = None,
) -> Graph:
    """Open a graph. choices: how an edge list is read; a store refuses them. temporary: things that
    are put away when the graph is closed, or when it cannot be opened. asked: the only question
    that it will be asked; None for any number of questions.
    """
    # Wherever this process may be when more of it is read.
    graph, choices = run.open_graph(rooted(path), choices), choices or BuildOptions()
    with device_errors():
        notes: list[str] = []
        if asked is not None:
            resources = with_device(asked, graph, choices, resources, executor.threads, notes)
        device: Device | None = resources.chosen_device(notes)
        if isinstance(graph, Store):
            subject = subject_of(graph, StoreNames(graph, Team(executor.threads)))
            engines = searches_of_store(graph, subject, device, executor.threads, "auto")
        else:
            if choices.keeps_loops and device is not None:
                notes.append("self-loops of an edge list are kept on CPUs only: used the CPU")
                device = None
            engines = searches_of_open_edges(graph, choices, device, executor)
        once = asked is not None
        return Graph(path, graph, engines, executor, resources, choices, temporary, notes, once)


def _timed(this: run.Run, search: Callable[[], Found]) -> Found:
    with this.clock.phase("search"):
        return this.executor.once("search", search)
