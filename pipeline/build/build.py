"""Builds of a store from a Parquet edge list: plan, run, and check of an existing store."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from ..._version import __version__
from ...kernels.base.team import Team
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...partition.disk.files import verify_file
from ...partition.disk.memory import GROWTH_BYTES, resident_bytes, tree_bytes
from ...partition.disk.outputs import check_output, is_store
from ...partition.disk.scratch import lost
from ...partition.disk.temporary import TemporaryFolder
from ...partition.disk.work import begin_work, begun_again, clean_up, difference
from ...partition.errors import InputError, LimitError
from ...partition.input.edges import EdgeList, open_edges
from ...partition.store.manifest import FORMAT_VERSION, GraphInfo
from ...partition.store.store import Store, open_store
from ..results.row_notes import row_notes
from ..run.devices import device_errors, has_device_each
from ..run.execute import Executor, Progress
from ..run.plan import Budget, Plan, too_little
from ..run.records import BuildRecord, command_record, encode_record, file_facts, graph_record
from ..run.resources import Resources
from .count import Counted, count
from .plan import make_plan
from .prepare import (
    BuildOptions,
    Preparation,
    begin,
    compile_tasks,
    fingerprint_of,
    plan_ahead,
    tasks_of,
)
from .write_store import weighing_of, write_store

if TYPE_CHECKING:
    from ..run.cluster import Cluster

_INPUTS_TOLD = 20


class Built(NamedTuple):
    """The outcome of a build. already: whether the store existed before. reused: the steps that an
    earlier attempt had finished. notes: lines for the user about rows that were left out, and about
    a device that was chosen or cannot be used.
    """

    store: Store
    already: bool
    reused: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        path, info = self.store.path, self.store.info
        how = "found already" if self.already else "written"
        return f"<Built {path}: {info.vertices:,} vertices, {info.edges:,} edges; {how}>"


@begun_again
def build_graph(
    path: str | Path,
    output: str | Path,
    options: BuildOptions,
    threads: int,
    resources: Resources,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Built:
    """Build the store ``output`` from the Parquet edge list at ``path``.

    Raises InputError for bad input or an output that exists, and LimitError for a plan that does
    not fit, before anything but scratch is written.
    """
    started = time.perf_counter()
    output = Path(output)
    if is_store(output) and not overwrite:
        edges = _opened(path, options, resources)
        clean_up(output, purpose_of(edges, options), resources.scratch)
        check_built(output, edges, options)
        store = _check_blocks(output, threads)
        notes = (*edges.notes, *edges.weight_notes, *row_notes(graph_record(store.info)))
        return Built(store, already=True, reused=(), notes=notes)
    check_output(output, "store", overwrite, path)
    edges = _opened(path, options, resources)
    purpose = purpose_of(edges, options)
    with device_errors():
        device = _open_device(edges, options, resources)
    with (
        device_errors(),
        begin_work(output, purpose, restart=resources.restart, scratch=resources.scratch) as work,
        open_pool(edges, options, threads, resources, progress) as (executor, budget),
    ):
        through_files = resources.scratch is not None
        run = begin(edges, options, executor, budget, work, through_files)
        used, told = _build_anywhere(run, device, resources)
        work.sync()
        described = graph_record(open_store(work.output).info)
        build_notes = (*told, *row_notes(described))
        notes = (*edges.notes, *edges.weight_notes, *work.notes, *build_notes)
        record = BuildRecord(
            **command_record(executor.steps, threads, budget.limit, used),
            graph=described,
            inputs=inputs_of(edges),
            notes=list(notes),
            seconds=time.perf_counter() - started,
        )
        work.publish("store", overwrite, encode_record(record))
    return Built(open_store(output), False, tuple(work.reused), notes)


def plan_graph(
    path: str | Path,
    options: BuildOptions,
    threads: int,
    resources: Resources,
    exact: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Plan the bytes that building the edge list at ``path`` would hold and write, step by step.

    Without ``exact`` the plan has upper bounds from metadata. exact: run the passes that count,
    which leave no files. Raises InputError for bad input or a plan that does not fit.
    """
    edges = _opened(path, options, resources)
    if resources.cluster.any and resources.device == "cuda":
        raise InputError(
            "a build with --device cuda can be planned only for one GPU of this machine: leave out "
            "--workers and --scheduler"
        )
    device = resources.chosen_device()
    with open_pool(edges, options, threads, resources, progress) as (executor, budget):
        through_files = resources.scratch is not None
        if device or not exact:
            plan = plan_ahead(edges, options, budget, through_files)
            if device:
                from .device import plan_ahead_on_device

                plan = plan_ahead_on_device(plan, device)
            if plan.device or not exact:
                return replace(plan, notes=(*edges.notes, *plan.notes))
        with (
            TemporaryFolder(parent=resources.scratch) as folder,
            begin_work(Path(folder, "graph.dg"), {}) as work,
        ):
            run = begin(edges, options, executor, budget, work, through_files, only_counting=True)
            counted = _counted_plan(run, count(run))
            return replace(counted, notes=(*edges.notes, *counted.notes))


def _opened(path: str | Path, options: BuildOptions, resources: Resources) -> EdgeList:
    return open_edges(resources.cluster.absolute(path), options.src, options.dst, options.weight)


def _open_device(edges: EdgeList, options: BuildOptions, resources: Resources) -> Device | None:
    """Return the chosen device with its kernels compiled, so that the bytes of compiling count as
    held before any work; None for the CPU.
    """
    device = resources.chosen_device()
    if device is not None:
        from ...kernels.gpu import prepare as gpu_prepare

        weighing = weighing_of(edges, options)
        weighted = weighing is not None
        least = gpu_prepare.bytes_needed(edges.rows, 0, options.directed, weighted=weighted)
        if least <= device.memory_bytes:  # else the build will use the CPU, with a note
            combining = weighing.combining if weighing else None
            gpu_prepare.warm_up(device, edges.rows, options.directed, combining)
    return device


def _build_anywhere(
    run: Preparation, device: Device | None, resources: Resources
) -> tuple[Device | str | None, tuple[str, ...]]:
    """Write the store's files, on devices if their memory allows. Returns the device or devices
    (None for the CPU), and notes.

    device: of this process; a cluster's workers have their own.
    """
    notes: tuple[str, ...] = ()
    asked = resources.device
    if run.edges.weight is not None and resources.cluster.any:
        build_files(run)
        told = ("built on CPUs: several workers cannot build a store with weights on GPUs",)
        return None, told * (asked not in ("auto", "cpu"))
    try:
        pool = cast("Cluster", run.executor.pool)
        if resources.cluster.any and may_have_devices(pool, asked):
            from .ranks import build_files_on_workers

            there, told = build_files_on_workers(run, pool, resources)
            return there, (*told, f"built on {there}")
        if device is not None:
            from .device import build_files_on_device

            build_files_on_device(run, device)
            return device, (f"built on {device}",)
    except DeviceMemoryError as error:
        notes = (f"built on the CPU: {error}",)
    build_files(run)
    return None, notes


def may_have_devices(cluster: Cluster, device: str) -> bool:
    """Return whether workers may have GPUs. Local workers have those of this machine; remote
    workers must be asked.
    """
    if cluster.local and device == "auto":
        return has_device_each(device, cluster.workers)
    return device != "cpu"


def build_files(run: Preparation) -> None:
    """Write the store's files into the folder of the run's work."""
    counted = count(run)
    run.plan = _counted_plan(run, counted)
    write_store(run, counted)


def _counted_plan(run: Preparation, counted: Counted) -> Plan:
    """Return the plan of the same shape, with exact counts instead of bounds."""
    assert run.plan.facts is not None
    facts = replace(run.plan.facts, vertices=counted.order.vertices, exact=True)
    tasks = len(tasks_of(run.source.chunk_rows))
    plan = make_plan(facts, run.plan.budget, tasks, run.plan.shape)
    shards = sum(len(subgraph.shards()) for subgraph in counted.layout.subgraphs)
    steps = [replace(step, tasks=shards) if step.name == "build" else step for step in plan.steps]
    return replace(plan, steps=tuple(steps))


@contextlib.contextmanager
def open_pool(
    edges: EdgeList,
    options: BuildOptions,
    threads: int,
    resources: Resources,
    progress: Progress | None,
) -> Iterator[tuple[Executor, Budget]]:
    """Open the pool where tasks run, with kernels compiled. Yields its executor, and the budget
    that is left to tasks by measurement.
    """
    limit = resources.limit
    weighted = edges.weight is not None
    compiling = partial(compile_tasks, edges.id_type, edges.rows, weighted)
    if not resources.cluster.any:
        executor = Executor(threads, progress)
        executor.once("compile", compiling)
        yield executor, Budget(limit, resident_bytes() + GROWTH_BYTES, threads)
        return
    from ..run.cluster import open_cluster

    workers = resources.cluster.workers or 0
    devices = workers > 0 and has_device_each(resources.device, workers)
    with open_cluster(resources.cluster, threads, devices) as cluster:
        executor = Executor(threads, progress, cluster)
        executor.once("compile", compiling)
        cluster.warm_up(compiling)
        yield executor, _cluster_budget(cluster, limit)


def _cluster_budget(cluster: Cluster, limit: int) -> Budget:
    if cluster.local:
        baseline = tree_bytes() + (1 + cluster.workers) * GROWTH_BYTES
    else:
        baseline = cluster.baseline + GROWTH_BYTES
    return Budget(limit, baseline, cluster.threads, cluster.workers, per_worker=not cluster.local)


def purpose_of(edges: EdgeList, options: BuildOptions) -> dict[str, str]:
    """Return all facts that decide a store's bytes, those of the input included, by their names in
    messages.
    """
    return {
        **choices_of(options, edges.rows),
        **inputs_of(edges),
        "the edge list": edges.fingerprint,
        "delegraph": f"{__version__}, store format {FORMAT_VERSION}",
    }


def inputs_of(edges: EdgeList) -> dict[str, str]:
    """Return the size and time of each file of the input, as text by path."""
    return {file.path: file_facts(file.bytes, file.modified) for file in edges.files}


def first_inputs_of(edges: EdgeList) -> dict[str, str]:
    """Return the size and time of the first input files, and the number and size of the others, so
    that a record stays small.
    """
    first = inputs_of(replace(edges, files=edges.files[:_INPUTS_TOLD]))
    further_files = edges.files[_INPUTS_TOLD:]
    if further_files:
        first[f"and {len(further_files):,} more"] = (
            f"{sum(file.bytes for file in further_files):,} bytes"
        )
    return first


def choices_of(options: BuildOptions, rows: int) -> dict[str, str]:
    """Return the options that decide a store's bytes for an input of ``rows`` rows, by their names
    in messages.
    """
    partitions, grid = options.places_for(rows)
    chosen = {
        "--directed": "given" if options.directed else "not given",
        "--src": options.src,
        "--dst": options.dst,
        "--order": options.order,
        "--partitions": str(partitions),
    }
    if options.weight is not None:
        chosen |= {"--weight": options.weight, "--duplicates": options.duplicates}
    if options.keeps_loops:
        chosen["--loops"] = options.loops
    if partitions > 1:
        chosen["--layout"] = options.layout
        if grid is None:
            chosen["--threshold"] = "auto" if options.threshold is None else str(options.threshold)
        elif options.layout == "2d":
            chosen["--grid"] = str(grid)
    return chosen


def _built_with(info: GraphInfo) -> dict[str, str]:
    """Return the options that a store was built with, in the form of ``choices_of``."""
    wanted = info.threshold if info.threshold_chosen_by == "user" else None
    weights = (info.weights.column, info.weights.duplicates) if info.weights else (None, "min")
    options = BuildOptions(
        info.directed,
        info.src,
        info.dst,
        info.partitions,
        wanted,
        info.order,  # pyright: ignore
        "delegate" if info.layout == "csr" else info.layout,  # pyright: ignore
        info.grid if info.layout == "2d" else None,
        *weights,  # pyright: ignore
        "drop" if info.loops is None else "keep",
    )
    return choices_of(options, info.rows)


def check_built(output: Path, edges: EdgeList, options: BuildOptions) -> None:
    """Raise InputError, which names the difference, unless the store ``output`` was built from this
    edge list with these options.
    """
    info = open_store(output).info
    theirs, ours = _built_with(info), choices_of(options, edges.rows)
    same_graph = info.fingerprint == fingerprint_of(edges, options)
    if not same_graph and theirs == ours:
        theirs, ours = {"the edge list": "another one"}, {"the edge list": "this one"}
    if theirs != ours:
        raise InputError(
            f"{output} exists, but was built differently: {difference(theirs, ours)}; name another "
            "output, move it away, or replace it with --overwrite"
        )


def build_store_for(
    then: tuple[str, int],
    refused: LimitError | None,
    edges: EdgeList,
    output: Path,
    options: BuildOptions,
    executor: Executor,
    resources: Resources,
    device: Device | None = None,
    notes: list[str] | None = None,
) -> Store:
    """Build a store for the step that follows.

    then: the name of that step, and the most bytes that it holds. refused: the error that kept the
    edge list from being read directly; None if there was none. Raises a LimitError with the least
    limit that would do: that of ``refused``, or one that is enough for both the build and the step
    that follows.
    """
    try:
        return build_store(edges, output, options, executor, resources, device, notes)
    except LimitError as error:
        after = too_little(*then, resources.limit)
        through = max(error, after, key=attrgetter("least"))
        ways = [through] if refused is None else [refused, through]
        raise min(ways, key=attrgetter("least")) from error


def build_store(
    edges: EdgeList,
    output: Path,
    options: BuildOptions,
    executor: Executor,
    resources: Resources,
    device: Device | None = None,
    notes: list[str] | None = None,
) -> Store:
    """Build the store ``output``, or resume building it, without a record of its own.

    Scratch files are put beside the store. executor: of the run that needs the store; it receives
    the build's steps. device: where to build if it has room; None for the CPU. notes: receives
    lines for the user.
    """
    if is_store(output):
        store = _verified(output, executor.threads)
        check_built(output, edges, options)
        executor.reused("the whole store")
        return store
    with (
        begin_work(output, purpose_of(edges, options)) as work,
        open_pool(edges, options, executor.threads, resources, executor.progress) as (
            own_executor,
            budget,
        ),
    ):
        if notes is not None:
            notes += work.notes
        through_files = resources.scratch is not None
        run = begin(edges, options, own_executor, budget, work, through_files)
        _build_anywhere(run, device, resources)
        work.publish("store", overwrite=False)
    executor.steps += own_executor.steps
    return open_store(output)


def _verified(path: Path, threads: int) -> Store:
    """Return the store that an earlier attempt left in scratch, verified. Raises LostScratchError
    if it is damaged.
    """
    try:
        return _check_blocks(path, threads)
    except InputError as error:
        raise lost(path) from error


def _check_blocks(path: Path, threads: int) -> Store:
    """Return a store after verifying the checksums of all its files. Raises InputError, which names
    the file, for damage.
    """
    store, team = open_store(path), Team(threads)
    for name, record in store.files.items():
        verify_file(path / name, record, team)
    return store
