"""A command over a graph: from a store or an edge list to a result on disk, by any algorithm.

The engines of the input are asked in turn: a store is loaded, or streamed where it does not fit the
memory limit; an edge list is read as it comes, or made into rows, where it fits, else through a
temporary store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..._version import __version__
from ...kernels.base.team import Team
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.outputs import check_output, is_result, is_store
from ...partition.disk.work import Work, begin_work, begun_again, clean_up
from ...partition.errors import InputError, LimitError
from ...partition.input.edges import EdgeList, open_edges
from ...partition.input.id_types import type_named
from ...partition.numbers import check_number
from ...partition.store.store import Store, open_store
from ..build.build import build_store_for, choices_of, first_inputs_of, inputs_of
from ..build.plan import id_width
from ..build.prepare import BuildOptions, facts_ahead, fingerprint_of
from ..engines import engine_cache
from ..engines.auto_device import Asked, is_asked_for, with_device
from ..engines.engine import Engine, EngineFacts, Need, Subject, choose, run_first
from ..engines.host.disk import most_bytes
from ..engines.subjects import subject_of
from ..questions import FORMS
from ..results.checkpoint import Checkpoint
from ..results.columns import Column, Columns, read_values
from ..results.current import all_supersteps, done_already, wanted_of
from ..results.findings import TOP, Findings
from ..results.names import Names
from ..results.result import Option, ResultInfo, write_result
from ..results.row_notes import row_notes
from ..results.rows import PairRows, Pairs, Rows, VertexRows
from ..results.store_names import StoreNames
from ..results.superstep_log import SuperstepLog
from ..results.supersteps import Profile
from ..run import ending
from ..run.devices import device_errors
from ..run.execute import Executor, Progress
from ..run.plan import Facts, check_space, fits, held_now
from ..run.records import AnswerRecord, Clock, FoundRecord, command_record, encode_record
from ..run.resources import Resources

E = TypeVar("E", bound=Engine)

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class RunOptions:
    """Options of a run. threads: cores to use. checkpoint_seconds: seconds between two saves of a
    long run. top: how many vertices or groups the record names, if that is more than usual. times:
    as in Asked.
    """

    threads: int = 1
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    top: int = 0
    times: int | None = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"threads must be positive, not {self.threads}")
        check_number("the time between checkpoints", self.checkpoint_seconds)
        if self.checkpoint_seconds < 0:
            raise InputError("the time between checkpoints must not be negative")


class DeferredRecord(Mapping[str, Any]):
    """A record that is made when it is first read: making it takes longer than a small search."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, key: str) -> Any:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class Answer(NamedTuple):
    """The answer of a run. record: facts of the answer that the run's record has beside all others
    (records.py).

    columns: none if the run has written its result itself. supersteps: returns those of a search;
    None if the run has none. only: places of the vertices that are told of; None for all. notes:
    for the user. group_sizes: for a result that names a group for each vertex: at the vertex that
    names a group, the group's size, and else 0. pairs: what rows are of, where it is not a vertex
    each; None if it is. measured: as in ResultInfo.
    """

    columns: Columns
    record: Mapping[str, Any]
    supersteps: Callable[[], SuperstepLog] | None = None
    only: NDArray[np.uint32] | None = None
    notes: tuple[str, ...] = ()
    group_sizes: Column | None = None
    pairs: Pairs | None = None
    measured: Mapping[str, float] = MappingProxyType({})

    @property
    def is_written(self) -> bool:
        """Return whether the run has written its result itself."""
        return not self.columns and self.pairs is None

    def rows(self, names: Names, form: str, columns: Columns | None = None) -> Rows:
        """Return the rows of the result. form: of the question. columns: others than the answer's;
        None for these.
        """
        columns = self.columns if columns is None else columns
        if self.pairs is not None:
            return PairRows(names, FORMS[form].keys, self.pairs, columns)
        return VertexRows(names, columns, self._told(names))

    def _told(self, names: Names) -> NDArray[np.bool_] | None:
        """Return, by place, which vertices are told of; None for all."""
        if self.only is None:
            return None
        some = np.zeros(sum(names.pieces), np.bool_)
        some[self.only] = True
        return some


class Algorithm(Protocol[E]):
    """The question of a command. name: the command's. step: the name of what a run goes on from.
    weighted: whether the graph has to have weights.
    """

    @property
    def name(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def weighted(self) -> bool: ...

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        """Return the options that decide the result beside the graph. Raises InputError for options
        that suit no such graph.
        """
        ...

    def check(self, names: Names) -> None:
        """Check the question before anything large is read. Raises InputError for a question that
        does not suit this graph.
        """
        ...

    def held_bytes(self, facts: Facts) -> int:
        """Return the bytes that it takes beside a search, of a store that is yet to be built."""
        ...

    def engines(
        self, store: Store, subject: Subject, device: Device | None, threads: int
    ) -> Sequence[E]: ...

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, device: Device | None, executor: Executor
    ) -> Sequence[E]:
        """Return the engines for an edge list; None if the edge list has to become a store."""
        ...

    def on_workers(self, store: Store, subject: Subject, run: Run) -> E: ...

    def run(self, engine: E, checkpoint: Checkpoint, run: Run) -> Answer:
        """Run on a loaded engine."""
        ...


@dataclass(frozen=True, repr=False)
class Outcome:
    """The outcome of a run whose result was written. It prints as one line.

    record: the run's record, which also stands beside the result (records.py has its keys, by
    algorithm). already: whether the result was there already. notes: lines for the user: of what
    was left out, of a device that would not do. name: of the question's form. output: the result.

    ``record, already, notes = outcome`` unpacks the first three.
    """

    record: Any
    already: bool
    notes: tuple[str, ...]
    name: str
    output: str

    def __iter__(self) -> Iterator[Any]:
        return iter((self.record, self.already, self.notes))

    def __str__(self) -> str:
        where = "found already in" if self.already else "written to"
        return f"{self.name}: {FORMS[self.name].tell(self.record)}; {where} {self.output}"

    def __repr__(self) -> str:
        return f"<Outcome of {self}>"


@dataclass(frozen=True)
class Run:
    """A call of a command. info: of the result. making: the output in the making; None if nothing
    is written. inputs: the files of an edge list. notes: for the user.
    """

    options: RunOptions
    executor: Executor
    resources: Resources
    making: Work | None
    info: ResultInfo
    inputs: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    notes: list[str] = field(default_factory=list)

    @property
    def work(self) -> Work:
        assert self.making is not None
        return self.making


@begun_again
def run_to_result(
    algorithm: Algorithm[E],
    path: str,
    output: str,
    options: RunOptions,
    build_options: BuildOptions | None,
    executor: Executor,
    resources: Resources,
    overwrite: bool = False,
    profile: str | Path | None = None,
) -> Outcome:
    """Run over the store or edge list at ``path`` and write the result folder ``output``.

    build_options: how to read an edge list, and whether to build a store of it; a store refuses
    them, having its own. profile: a Parquet file to write, with a row for each superstep of a
    search. Raises InputError for bad input or a memory limit that is too small, before anything but
    scratch is written.
    """
    choices = build_options or BuildOptions()
    there = is_result(output)
    if not there:
        check_output(output, "result", overwrite, path)
    graph = open_graph(path, build_options)
    if algorithm.weighted:
        check_weights(graph, path)
    if isinstance(graph, Store):
        id_type = type_named(graph.info.id_type)
        fingerprint, directed = graph.info.fingerprint, graph.info.directed
    elif resources.cluster.any:
        raise InputError(
            f"{path} is not a store: workers need one, which 'delegraph build "
            "--partitions N' makes, with a partition for each worker"
        )
    else:
        id_type, directed = graph.id_type, choices.directed
        fingerprint = fingerprint_of(graph, choices)
    given = algorithm.options(id_type)  # what is wrong in it is told before anything is read
    check_direction(algorithm.name, directed)
    info = ResultInfo(algorithm.name, fingerprint, directed, given, __version__)
    device_notes: list[str] = []
    keeps_loops = bool(graph.info.loops if isinstance(graph, Store) else choices.keeps_loops)
    asked = Asked(FORMS[algorithm.name], options.times)
    why_not = device_notes if is_asked_for(resources) else []
    resources = with_device(asked, graph, choices, resources, options.threads, device_notes)
    resources = resources_for(
        algorithm.name, resources, why_not, keeps_loops, isinstance(graph, Store)
    )
    purpose = {**wanted_of(info), "delegraph": __version__}
    if not isinstance(graph, Store):
        purpose |= {**choices_of(choices, graph.rows), **inputs_of(graph)}
    told = None if profile is None else Profile(profile, path, output)
    if there and not overwrite:
        clean_up(output, purpose, resources.scratch)
        record = done_already(output, info)
        if told is not None:
            told.write(SuperstepLog(all_supersteps(record, output)))
        notes = () if isinstance(graph, Store) else (*graph.notes, *weight_notes(graph, info))
        notes = (*notes, *row_notes(record["graph"], info))
        return Outcome(record, True, notes, info.algorithm, output)
    if there:
        check_output(output, "result", overwrite, path)
    with (
        begin_work(output, purpose, restart=resources.restart, scratch=resources.scratch) as work,
        device_errors(),
    ):
        run = Run(options, executor, resources, work, info)
        if not isinstance(graph, Store):
            run.inputs.update(first_inputs_of(graph))
            run.notes.extend((*graph.notes, *weight_notes(graph, info)))
        run.notes.extend((*device_notes, *work.notes))
        ran, answer = _run(algorithm, graph, choices, run)
        run.notes.extend(row_notes(ran.subject.record, info))
        found = None if answer.is_written else write(ran.subject, answer, run)
        run.notes.extend(answer.notes)
        record = record_of(ran, answer, run, found)
        if told is not None:
            assert answer.supersteps is not None
            told.write(answer.supersteps())
        work.publish("result", overwrite, encode_record(record, work.output))
    return Outcome(record, False, tuple(run.notes), info.algorithm, output)


def check_direction(name: str, directed: bool) -> None:
    """Check that a form of a question is asked of directed graphs, if the graph is directed."""
    if directed and not FORMS[name].on_directed:
        raise InputError(
            f"{name} is a question of undirected graphs, and this graph is directed: leave out "
            "--directed where it is read or built"
        )


def resources_for(
    name: str,
    resources: Resources,
    notes: list[str],
    keeps_loops: bool = False,
    of_store: bool = True,
) -> Resources:
    """Return the resources for a form of a question: without devices, if it does not run on them.
    notes: receives a line for the user about this. keeps_loops: whether the graph keeps self-loops.
    of_store: whether it is a store, not an edge list.
    """
    form, several = FORMS[name], resources.cluster.any
    loops = keeps_loops and form.counts_loops and not (form.counts_loops_on_gpus and of_store)
    runs = form.on_gpus and (form.on_several_gpus or not several) and not loops
    if resources.device == "cpu" or runs:
        return resources
    if loops and form.on_gpus:
        notes.append(f"{name} does not count self-loops on GPUs yet: used the CPU")
    elif form.on_gpus:
        notes.append(f"{name} does not run on GPUs of several workers yet: used CPUs")
    else:
        notes.append(f"{name} does not run on GPUs: used the CPU")
    return replace(resources, device="cpu", device_memory_limit=None)


def open_graph(path: str | Path, build_options: BuildOptions | None) -> Store | EdgeList:
    """Open a store, which refuses build_options, or an edge list."""
    if is_store(path):
        if build_options is not None:
            usual = BuildOptions()
            given = [one for one in vars(usual) if getattr(build_options, one) != vars(usual)[one]]
            named = ", ".join(f"--{one}" for one in given) or "options of reading and building"
            raise InputError(
                f"{path} is a store, which was read and built with options of its own: leave out "
                f"{named}"
            )
        return open_store(path)
    choices = build_options or BuildOptions()
    return open_edges(path, choices.src, choices.dst, choices.weight)


def weight_notes(graph: EdgeList, info: ResultInfo) -> tuple[str, ...]:
    """Return a line for the user if the graph has weights that are not read, and the question could
    use weights.
    """
    asks = FORMS[info.algorithm].weights and not info.options.get("unweighted")
    return graph.weight_notes if asks else ()


def check_weights(graph: Store | EdgeList, path: str | Path) -> None:
    """Raise InputError if the graph has no weights."""
    if isinstance(graph, Store):
        if graph.info.weights is None:
            raise InputError(f"{path} has no weights: build it again with --weight COL")
    elif graph.weight is None:
        raise InputError(f"{path}: name the column of weights with --weight COL")


def _run(
    algorithm: Algorithm[E],
    graph: Store | EdgeList,
    choices: BuildOptions,
    run: Run,
) -> tuple[EngineFacts, Answer]:
    device = run.resources.chosen_device(run.notes)
    if isinstance(graph, Store):
        return _run_on_store(algorithm, graph, device, run)
    engine_cache.give_back()
    refused: LimitError | None = None
    if not choices.shapes_store and run.resources.scratch is None:
        engines = algorithm.engines_of_edges(graph, choices, device, run.executor)
        if engines:
            of = f"{run.info.graph}, edges as they came"
            try:
                return _run_by(algorithm, engines, _saved(of, run.info), run)
            except LimitError as error:  # through a store, then
                refused = error
            except DeviceMemoryError as error:  # a store's edges need not all be on the device
                run.notes.append(f"used a temporary store: {error}")
                return_freed_memory()
    run.work.keep("a store in the scratch folder")
    place = run.work.scratch / "graph.dg"
    facts = facts_ahead(graph, choices)
    most = most_bytes(facts, run.options.threads) + algorithm.held_bytes(facts)
    then = "search", most
    with run.clock.phase("load"):
        store = build_store_for(
            then, refused, graph, place, choices, run.executor, run.resources, device, run.notes
        )
    return_freed_memory()
    return _run_on_store(algorithm, store, device, run)


def _run_on_store(
    algorithm: Algorithm[E], store: Store, device: Device | None, run: Run
) -> tuple[EngineFacts, Answer]:
    threads = run.options.threads
    with run.clock.phase("load"):
        subject = subject_of(store, StoreNames(store, Team(threads)))
        algorithm.check(subject.names)  # before anything large is read
    of = f"{store.info.fingerprint}, {store.info.order} order, {store.info.partitions} partitions"
    if run.resources.cluster.any:
        engine = algorithm.on_workers(store, subject, run)
        engine_cache.take_over([engine], run.resources.limit)
        # Which way they take they choose themselves.
        return _run_and_end(algorithm, engine, engine.need(), _saved(of, run.info), run)
    engines = algorithm.engines(store, subject, device, threads)
    engine_cache.take_over(engines, run.resources.limit)
    return _run_by(algorithm, engines, _saved(of, run.info), run)


def _saved(graph: str, info: ResultInfo) -> str:
    """Return the purpose of a checkpoint."""
    return f"{info.algorithm} of {graph}: {json.dumps(info.options, sort_keys=True)}"


def _run_by(
    algorithm: Algorithm[E], engines: Sequence[E], saved: str, run: Run
) -> tuple[EngineFacts, Answer]:
    """Run the algorithm on the first engine that fits, or on the next one if a device turns out to
    be too small.

    saved: says what a checkpoint is of. Raises LimitError if no engine fits.
    """

    def choosing(left: Sequence[E]) -> tuple[E, Need]:
        with run.clock.phase("compile"):
            choice = partial(choose, left, run.resources.limit, run.notes)
            return run.executor.once("compile", choice)

    def running(engine: E, need: Need) -> tuple[EngineFacts, Answer]:
        return _run_and_end(algorithm, engine, need, saved, run)

    return run_first(engines, choosing, running, run.notes)


def _run_and_end(
    algorithm: Algorithm[E], engine: E, need: Need, saved: str, run: Run
) -> tuple[EngineFacts, Answer]:
    try:
        answer = _run_once(algorithm, engine, need.host, saved, run)
    except BaseException:
        engine.close()
        raise
    ran = EngineFacts.of(engine)
    engine_cache.put_away(engine, run.resources.limit)
    return ran, answer


def _run_once(algorithm: Algorithm[E], engine: E, need: int, saved: str, run: Run) -> Answer:
    if isinstance(engine.device, Device):
        with run.clock.phase("compile"):
            engine.compile()  # what is known before the graph is loaded
    held = held_now() + need
    with run.clock.phase("load"):
        if engine.subject is None:
            engine.load()  # in steps of its own
        else:
            run.executor.once("load", engine.load, held)
        assert engine.subject is not None
        algorithm.check(engine.subject.names)
    with run.clock.phase("compile"):
        run.executor.once("compile", engine.compile)
    checkpoint = Checkpoint(
        run.work.scratch / "checkpoint",
        run.options.checkpoint_seconds,
        saved,
        saving=lambda: run.work.keep("checkpoint"),
        loaded=lambda done: run.executor.reused(f"search up to {algorithm.step} {done}"),
        passed=partial(_tell_level, run.executor.progress),
        damaged=run.notes.append,
    )
    if run.resources.cluster.any:
        checkpoint.look()
    with run.clock.phase("search"), ending.watching():
        return run.executor.once("search", lambda: algorithm.run(engine, checkpoint, run), held)


def _tell_level(progress: Progress | None, level: int, found: int) -> None:
    if progress:
        progress(f"search: level {level}, frontier {found}", level, 0)


def write(subject: Subject, answer: Answer, run: Run) -> FoundRecord | None:
    """Write the result into the folder of the run's work, and return what it says of the graph;
    None if its rows are not of a vertex each.
    """
    form = FORMS[run.info.algorithm]
    names, columns, sizes = subject.names, answer.columns, answer.group_sizes
    read_values(columns)
    rows = answer.rows(names, form.name, columns if sizes is None else [*columns, sizes])
    width = id_width(names.id_type) * len(form.keys)
    for column in columns:
        width += id_width(names.id_type) if column.vertices else column.values.itemsize
    run.work.disk_bytes = width * sum(rows.pieces)
    check_space([(run.work.output, run.work.disk_bytes)], scratch=False)
    findings = None
    if form.finding is not None:
        there = [column.name for column in columns]
        findings = Findings(form.name, there, max(TOP, run.options.top))
    with run.clock.phase("write"):
        at_once, need = files_at_once(subject, len(rows.pieces), run)
        info = replace(run.info, measured=dict(answer.measured))
        to = run.work.output, rows, info, run.executor
        write_result(*to, findings, at_once, need, None if sizes is None else sizes.name)
        run.work.sync()
    return None if findings is None else cast(FoundRecord, findings.facts())


def files_at_once(subject: Subject, files: int, run: Run) -> tuple[int, int]:
    """Return the number of a result's files that are written at the same time, and the bytes that
    are held then.
    """
    at_once = min(run.options.threads, max(1, files))
    while at_once > 1 and not fits(subject.writing_bytes(at_once), run.resources.limit):
        at_once -= 1
    return at_once, held_now() + subject.writing_bytes(at_once)


def record_of(
    ran: EngineFacts, answer: Answer, run: Run, found: FoundRecord | None = None
) -> AnswerRecord:
    """Return the record of a run. found: what its result says of the graph, if that is known."""
    limit = run.resources.limit
    common = AnswerRecord(
        **command_record(run.executor.steps, run.options.threads, limit, ran.device),
        ranks=ran.ranks,
        layout=ran.subject.layout,
        graph=ran.subject.record,
        inputs=run.inputs,
        notes=run.notes,
        seconds=run.clock.seconds,
    )
    findings = {} if found is None else {"found": found}
    return cast(AnswerRecord, {**common, **answer.record, **findings})  # more keys, by algorithm
