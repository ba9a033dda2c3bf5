"""Breadth-first search, from a store or an edge list to a result on disk.

The engines of the input are asked in turn: a store is loaded, or streamed where it does not fit the
memory limit; an edge list is searched as it comes where it fits, else through a temporary store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa

from ..._version import __version__
from ...kernels.base.team import Team
from ...kernels.gpu.device import Device
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.outputs import check_output, is_result, is_store, record_path
from ...partition.disk.work import Work, begin_work, begun_again, clean_up, difference
from ...partition.errors import InputError, LimitError
from ...partition.input.edges import EdgeList, open_edges
from ...partition.input.ids import parse_id
from ...partition.store.store import Store, open_store
from ..build.build import build_store_for, choices_of, first_inputs_of, inputs_of
from ..build.plan import id_width
from ..build.prepare import BuildOptions, facts_ahead
from ..build.read import graph_fingerprint
from ..engines.edges import engines_of_edges
from ..engines.engine import Engine, Need, Ran, Subject, choose, run_first
from ..engines.store import engines_of_store, most_bytes, subject_of
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import Names
from ..results.result import ResultInfo, open_result, write_result
from ..results.store_names import StoreNames
from ..results.superstep_log import SuperstepLog
from ..results.supersteps import Profile, shortened
from ..run.devices import device_errors
from ..run.execute import Executor
from ..run.plan import check_space, fits, held_now
from ..run.records import (
    Clock,
    RunRecord,
    SearchRecord,
    SuperstepRecord,
    command_record,
    encode_record,
)
from ..run.resources import Resources

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class SearchOptions:
    """max_depth: levels to search at most, None for all. threads: cores to use.

    checkpoint_seconds: how often a search saves its state.
    """

    max_depth: int | None = None
    threads: int = 1
    checkpoint_seconds: float = CHECKPOINT_SECONDS

    def __post_init__(self) -> None:
        if self.max_depth is not None and self.max_depth < 0:
            raise InputError(f"the depth limit must not be negative, not {self.max_depth}")
        if self.threads < 1:
            raise InputError(f"threads must be positive, not {self.threads}")
        if self.checkpoint_seconds < 0:
            raise InputError("the time between checkpoints must not be negative")


class SearchOutcome(NamedTuple):
    """The run's record, which also stands beside the result; whether that was there already.

    notes: lines for the user, of a device that would not do.
    """

    record: RunRecord
    already: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One call of ``bfs``. inputs: of an edge list, its files. notes: lines for the user."""

    source: str
    options: SearchOptions
    executor: Executor
    resources: Resources
    work: Work
    inputs: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    notes: list[str] = field(default_factory=list)


@begun_again
def search_to_result(
    path: str | Path,
    source: str,
    output: str | Path,
    options: SearchOptions,
    build_options: BuildOptions | None,
    executor: Executor,
    resources: Resources,
    overwrite: bool = False,
    profile: str | Path | None = None,
) -> SearchOutcome:
    """Search the store or edge list at ``path`` and write the result folder ``output``.

    source: the vertex to start from, as typed. build_options: how to read an edge list, and
    whether to build a store of it; a store refuses them, having its own. profile: a Parquet file to
    write, with a row for each superstep.
    Raises InputError for bad input, a source that is not in the graph or a memory
    limit that is too small, before anything but scratch is written.
    """
    output = Path(output)
    choices = build_options or BuildOptions()
    there = is_result(output)
    if not there:
        check_output(output, "result", overwrite, path)
    graph = open_graph(path, build_options)
    if isinstance(graph, Store):
        value = parse_id(source, pa.type_for_alias(graph.info.id_type))
        wanted = _wanted(graph.info.fingerprint, value, graph.info.directed, options)
    elif resources.cluster.any:
        raise InputError(
            f"{path} is no store: workers search a prepared graph, which 'delegraph build "
            "--partitions N' makes, with a partition for each of them at least"
        )
    else:
        fingerprint = graph_fingerprint(graph, choices.directed)
        value = parse_id(source, graph.id_type)  # a wrong type is told before anything is read
        wanted = _wanted(fingerprint, value, choices.directed, options)
    purpose = {**wanted, "delegraph": __version__}
    if not isinstance(graph, Store):
        purpose |= {**choices_of(choices, graph.rows), **inputs_of(graph)}
    told = None if profile is None else Profile(profile, path, output)
    if there and not overwrite:
        clean_up(output, purpose, resources.scratch)
        record = _searched_already(output, wanted)
        if told is not None:
            told.write(SuperstepLog(_all_supersteps(record, output)))
        notes = () if isinstance(graph, Store) else graph.notes
        return SearchOutcome(record, already=True, notes=notes)
    if there:
        check_output(output, "result", overwrite, path)
    with (
        begin_work(output, purpose, restart=resources.restart, scratch=resources.scratch) as work,
        device_errors(),
    ):
        run = Run(source, options, executor, resources, work)
        if not isinstance(graph, Store):
            run.inputs.update(first_inputs_of(graph))
            run.notes.extend(graph.notes)
        ran, found = _search(graph, choices, run)
        info = result_info(ran.subject, value, options.max_depth)
        write(ran.subject, found, info, run)
        record = record_of(ran, found, info, run)
        if told is not None:
            told.write(found.supersteps)
        work.publish("result", overwrite, encode_record(record))
    return SearchOutcome(record, already=False, notes=tuple(run.notes))


def open_graph(path: str | Path, build_options: BuildOptions | None) -> Store | EdgeList:
    """A store, which refuses build_options, or an edge list."""
    if is_store(path):
        if build_options is not None:
            raise InputError(f"{path} is a store: how to read and build it was decided with it")
        return open_store(path)
    choices = build_options or BuildOptions()
    return open_edges(path, choices.src, choices.dst)


def _search(graph: Store | EdgeList, choices: BuildOptions, run: Run) -> tuple[Ran, Found]:
    device = run.resources.chosen_device()
    if isinstance(graph, Store):
        return _search_store(graph, device, run)
    refused: LimitError | None = None
    if not choices.shapes_store and run.resources.scratch is None:
        engines = engines_of_edges(graph, choices.directed, device, run.executor, once=True)
        kept = f"{graph_fingerprint(graph, choices.directed)}, edges as they came"
        try:
            return _search_by(engines, kept, run)
        except LimitError as error:  # through a store, then
            refused = error
    run.work.keep("a store in the scratch folder")
    place = run.work.scratch / "graph.dg"
    then = "search", most_bytes(facts_ahead(graph, choices), run.options.threads)
    with run.clock.phase("load"):
        store = build_store_for(
            then, refused, graph, place, choices, run.executor, run.resources, device
        )
    return_freed_memory()
    return _search_store(store, device, run)


def _search_store(store: Store, device: Device | None, run: Run) -> tuple[Ran, Found]:
    info, threads = store.info, run.options.threads
    with run.clock.phase("load"):
        subject = subject_of(store, StoreNames(store, Team(threads)))
        find(subject.names, run.source)  # before anything large is read
    if run.resources.cluster.any:
        from ..engines.workers.client import WorkersEngine  # Dask is not needed otherwise

        engine = WorkersEngine(store, subject, run.resources, threads, run.work.scratch, run.notes)
        try:  # which way they take they choose themselves
            found = _search_once(engine, engine.need().host, "", run)
            return Ran.of(engine), found
        finally:
            engine.close()
    kept = f"{info.fingerprint}, {info.order} order, {info.partitions} partitions"
    return _search_by(engines_of_store(store, subject, device, threads), kept, run)


def _search_by(engines: Sequence[Engine], kept: str, run: Run) -> tuple[Ran, Found]:
    """By the first engine that fits; by the next one where a device turns out to be too small.

    kept: says which search a checkpoint is of. Raises LimitError where none fits.
    """

    def choosing(left: Sequence[Engine]) -> tuple[Engine, Need]:
        with run.clock.phase("compile"):
            choice = partial(choose, left, run.resources.limit, run.notes)
            return run.executor.once("compile", choice)

    def searching(engine: Engine, need: Need) -> tuple[Ran, Found]:
        try:
            found = _search_once(engine, need.host, kept, run)
            return Ran.of(engine), found
        finally:
            engine.close()

    return run_first(engines, choosing, searching, run.notes)


def _search_once(engine: Engine, need: int, kept: str, run: Run) -> Found:
    held = held_now() + need
    with run.clock.phase("load"):
        if engine.subject is None:
            engine.load()  # in steps of its own
        else:
            run.executor.once("load", engine.load, held)
        assert engine.subject is not None
        source = find(engine.subject.names, run.source)
    with run.clock.phase("compile"):
        run.executor.once("compile", engine.compile)
    checkpoint = Checkpoint(
        run.work.scratch / "checkpoint",
        run.options.checkpoint_seconds,
        f"{kept} from {run.source}",
        saving=lambda: run.work.keep("checkpoint"),
        loaded=lambda level: run.executor.reused(f"search up to level {level}"),
    )
    with run.clock.phase("search"):
        depth = run.options.max_depth
        return run.executor.once("search", lambda: engine.search(source, depth, checkpoint), held)


def find(names: Names, source: str) -> int:
    """The place of a vertex as it was typed. InputError if there is none."""
    value = parse_id(source, names.id_type)
    place = names.find(value)
    if place is None:
        raise InputError(f"source {value!r} is not a vertex of the graph")
    return place


def result_info(subject: Subject, source: int | str, max_depth: int | None) -> ResultInfo:
    return ResultInfo(
        graph=subject.record["fingerprint"],
        source=source,
        directed=subject.record["directed"],
        max_depth=max_depth,
        version=__version__,
    )


def write(subject: Subject, found: Found, info: ResultInfo, run: Run) -> None:
    """Write the result into the folder of the run's work."""
    names, limit = subject.names, run.resources.limit
    width = 4 + 2 * id_width(names.id_type)
    run.work.disk_bytes = width * sum(names.pieces)
    check_space([(run.work.output, run.work.disk_bytes)])
    with run.clock.phase("write"):
        at_once = min(run.options.threads, max(1, len(names.pieces)))
        while at_once > 1 and not fits(subject.writing_bytes(at_once), limit):
            at_once -= 1
        need = held_now() + subject.writing_bytes(at_once)
        write_result(
            run.work.output,
            names,
            found.distance,
            found.parent,
            info,
            run.executor,
            at_once,
            need,
        )
        run.work.sync()


def record_of(ran: Ran, found: Found, info: ResultInfo, run: Run) -> RunRecord:
    limit = run.resources.limit
    supersteps = shortened(found.supersteps)
    return RunRecord(
        **command_record(run.executor.steps, run.options.threads, limit, ran.device),
        ranks=ran.ranks,
        layout=ran.subject.layout,
        graph=ran.subject.record,
        inputs=run.inputs,
        notes=run.notes,
        search=SearchRecord(
            source=info.source,
            max_depth=info.max_depth,
            method=ran.method,
            reached=found.reached,
            depth=found.depth,
        ),
        seconds=run.clock.seconds,
        supersteps=supersteps.listed,
        supersteps_between=supersteps.between,
    )


def _wanted(
    graph: str, source: int | str, directed: bool, options: SearchOptions
) -> dict[str, str]:
    """What decides a result, in the user's words."""
    return {
        "the graph": graph,
        "--source": str(source),
        "--directed": "given" if directed else "not given",
        "--max-depth": "none" if options.max_depth is None else str(options.max_depth),
    }


def _all_supersteps(record: RunRecord, output: Path) -> list[SuperstepRecord]:
    """Of a result that was there already. InputError where its record does not list all."""
    if record["supersteps_between"] is not None:
        raise InputError(
            f"{output} was searched already, and of its supersteps only the first and last are "
            "known: search again with --overwrite, or leave out the file of --profile"
        )
    return record["supersteps"]


def _searched_already(output: Path, wanted: dict[str, str]) -> RunRecord:
    """The record of a result; InputError, with the difference in words, if it is another one."""
    info = open_result(output).info
    assert info is not None  # its files carry our mark
    theirs = _wanted(info.graph, info.source, info.directed, SearchOptions(info.max_depth))
    try:
        record = json.loads(record_path(output).read_bytes())
        if theirs == wanted and record["graph"]["fingerprint"] == info.graph:
            record.setdefault("supersteps_between", None)  # of a version that listed them all
            return cast(RunRecord, record)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not ours, or gone
    told = f", of another search: {difference(theirs, wanted)}" if theirs != wanted else ""
    raise InputError(f"{output} exists{told}; name another output, or replace it with --overwrite")
