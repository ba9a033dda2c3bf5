"""Breadth-first search, from a store or an edge list to a result on disk.

A store is loaded, or streamed where it does not fit the memory limit. An edge list is searched as
it comes where it fits, else through a temporary store.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa

from ..._version import __version__
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.outputs import check_output, is_result, is_store, record_path
from ...partition.disk.work import begin_work, clean_up, difference
from ...partition.errors import DelegraphError, InputError
from ...partition.input.edges import EdgeList, open_edges
from ...partition.input.ids import parse_id
from ...partition.store.store import Store, open_store
from ..build.build import build_store, choices_of, inputs_of
from ..build.plan import id_width
from ..build.prepare import BuildOptions
from ..build.read import graph_fingerprint
from ..engines.edges import edge_search_bytes, search_edges, search_edges_on_device, warm_up
from ..engines.search_run import Searched, SearchOptions, SearchRun
from ..engines.store import search_store
from ..results.result import ResultInfo, open_result, write_result
from ..results.supersteps import Profile, shortened
from ..run.devices import device_errors
from ..run.execute import Executor
from ..run.plan import check_space
from ..run.records import (
    RunRecord,
    SearchRecord,
    SuperstepRecord,
    command_record,
    encode_record,
)
from ..run.resources import Resources


class SearchOutcome(NamedTuple):
    """The run's record, which also stands beside the result; whether that was there already.

    notes: lines for the user, of a device that would not do.
    """

    record: RunRecord
    already: bool
    notes: tuple[str, ...] = ()


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
    graph: Store | EdgeList
    choices = build_options or BuildOptions()
    there = is_result(output)
    if is_store(path) and build_options is not None:
        raise InputError(f"{path} is a store: how to read and build it was decided with it")
    if not there:
        check_output(output, "result", overwrite, path)
    if is_store(path):
        graph = open_store(path)
        value = parse_id(source, pa.type_for_alias(graph.info.id_type))
        wanted = _wanted(graph.info.fingerprint, value, graph.info.directed, options)
    elif resources.cluster.any:
        raise InputError(
            f"{path} is no store: workers search a prepared graph, which 'delegraph build "
            "--partitions N' makes, with a partition for each of them at least"
        )
    else:
        graph = open_edges(path, choices.src, choices.dst)
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
            told.write(_all_supersteps(record, output))
        return SearchOutcome(record, already=True)
    if there:
        check_output(output, "result", overwrite, path)
    with begin_work(output, purpose, restart=resources.restart, scratch=resources.scratch) as work:
        with device_errors():
            device = None if resources.cluster.any else resources.chosen_device()
        run = SearchRun(source, options, executor, resources, work, device)
        with device_errors():
            if isinstance(graph, Store):
                searched = search_store(graph, run)
            else:
                searched = _search_edge_list(graph, choices, run, resources)
        _write(searched, run)
        record = _record(searched, run)
        if told is not None:
            told.write(searched.found.supersteps)
        work.publish("result", overwrite, encode_record(record))
    return SearchOutcome(record, already=False, notes=tuple(run.notes))


def _search_edge_list(
    edges: EdgeList, choices: BuildOptions, run: SearchRun, resources: Resources
) -> Searched:
    if not choices.shapes_store and resources.scratch is None:
        if run.device is not None:
            searched = search_edges_on_device(edges, choices, run, run.device)
            if searched is not None:
                return searched
        warm_up(edges, run)
        need = edge_search_bytes(edges, choices.directed, run.options.threads)
        if run.fits(need):
            return search_edges(edges, choices, run, need)
    run.work.keep("a store in the scratch folder")
    place = run.work.scratch / "graph.dg"
    with run.clock.phase("load"):
        store = build_store(edges, place, choices, run.executor, resources, run.device)
    return_freed_memory()
    return search_store(store, run)


def _write(searched: Searched, run: SearchRun) -> None:
    found = searched.found
    info = ResultInfo(
        graph=searched.graph["fingerprint"],
        source=parse_id(run.source, searched.names.id_type),
        directed=searched.graph["directed"],
        max_depth=run.options.max_depth,
        version=__version__,
    )
    width = 4 + 2 * id_width(searched.names.id_type)
    run.work.disk_bytes = width * sum(searched.names.pieces)
    try:
        check_space([(run.work.output, run.work.disk_bytes)])
    except InputError as error:
        raise DelegraphError(str(error)) from error  # what was found is kept
    with run.clock.phase("write"):
        at_once = run.options.threads
        while at_once > 1 and not run.fits(searched.writing_bytes(at_once)):
            at_once -= 1
        need = run.held() + searched.writing_bytes(at_once)
        write_result(
            *(run.work.output, searched.names, found.distance, found.parent, info),
            *(run.executor, at_once, need),
        )
        run.work.sync()


def _record(searched: Searched, run: SearchRun) -> RunRecord:
    supersteps = shortened(searched.found.supersteps)
    return RunRecord(
        **command_record(run.executor.steps, run.options.threads, run.limit, searched.device),
        ranks=searched.ranks,
        layout=searched.layout,
        graph=searched.graph,
        search=SearchRecord(
            source=parse_id(run.source, searched.names.id_type),
            max_depth=run.options.max_depth,
            method=searched.method,
            reached=searched.found.reached,
            depth=searched.found.depth,
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
