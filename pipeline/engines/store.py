"""Searching a store: loaded whole where the memory limit allows, else streamed from disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ...kernels.base.team import Team
from ...kernels.bfs.cpu import compile_search
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.search import GpuSearch
from ...partition.disk.memory import GROWTH_BYTES, format_bytes, resident_bytes, return_freed_memory
from ...partition.store.store import Store, open_store
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.result import FILE_ROWS
from ..results.store_names import StoreNames
from ..run.execute import Executor
from ..run.plan import Budget, Plan, Shape, StepPlan, fits, too_little
from ..run.records import graph_record
from ..run.resources import Resources
from .bytes import graph_bytes, stream_bytes, writing_bytes
from .device import Room, load, room_for, search_on_device
from .disk import stream_search, stream_team, warm_up
from .memory import search
from .search_run import Searched, SearchRun
from .streamed_graph import StreamedGraph, subgraphs_of

_KERNELS = 64 << 20  # about what compiled code and its compiler hold; measured once it is there


def plan_search(path: str | Path, threads: int, resources: Resources) -> Plan:
    """What searching a store would hold, on workers on each. LimitError if it does not fit."""
    store = open_store(path)
    StoreNames(store, Team(threads))
    if resources.cluster.any:
        from .workers.plan import plan_on_ranks  # Dask is not needed otherwise

        return plan_on_ranks(store, threads, resources)
    device = resources.chosen_device()
    room = _room_within(store, device, resources.limit) if device else None
    if room:
        in_memory = True
        searching = StepPlan("search", 1, room.host_bytes, device_bytes=room.device_bytes)
    else:
        in_memory = _choose(store, threads, resources.limit, Executor(threads))
        need = graph_bytes(store) if in_memory else stream_bytes(store, threads)
        searching = StepPlan("search", 1, need)
    one, two = writing_bytes(store, 1), writing_bytes(store, 2)
    budget = Budget(resources.limit, resident_bytes() + GROWTH_BYTES, threads)
    files = max(1, -(-store.info.vertices // FILE_ROWS))
    free = max(1, (budget.free - 2 * one + two) // (two - one))
    steps = (
        searching,
        StepPlan("write", files, two - one, 2 * one - two, min(threads, files, free)),
    )
    return Plan(budget, Shape(in_memory=in_memory), steps, None, str(device) if room else None)


def _room_within(store: Store, device: Device, limit: int) -> Room | None:
    """The room on a device, if what the host has to hold beside it fits, too."""
    try:
        room = room_for(store, device)
    except DeviceMemoryError:
        return None
    return room if fits(max(room.host_bytes, writing_bytes(store, 1)), limit) else None


def search_store(store: Store, run: SearchRun) -> Searched:
    threads = run.options.threads
    with run.clock.phase("load"):
        names = StoreNames(store, Team(threads))
    if run.resources.cluster.any:
        from .workers.client import search_on_ranks  # Dask is not needed otherwise

        return search_on_ranks(store, names, run)
    if run.device is not None:
        searched = _on_device(store, names, run, run.device)
        if searched is not None:
            return searched
    info = store.info
    checkpoint = run.checkpoint(
        f"{info.fingerprint}, {info.order} order, {info.partitions} partitions"
    )
    with run.clock.phase("compile"):
        in_memory = _choose(store, threads, run.limit, run.executor)
    with run.clock.phase("load"):
        source = run.find(names)
    held = run.held()
    if in_memory:
        found = _in_memory(store, source, checkpoint, run, held + graph_bytes(store))
    else:
        found = _streamed(store, source, checkpoint, run, held + stream_bytes(store, threads))
    method = "push-pull" if in_memory else "push-pull, streamed"
    writing = partial(writing_bytes, store)
    return Searched(names, found, graph_record(store), info.layout, method, writing)


def _on_device(store: Store, names: StoreNames, run: SearchRun, device: Device) -> Searched | None:
    """The search on a device; None where it has no room for what must stand there."""
    try:
        return _search_there(store, names, run, device)
    except DeviceMemoryError as error:
        run.notes.append(f"searched on the CPU: {error}")
        return None


def _search_there(
    store: Store, names: StoreNames, run: SearchRun, device: Device
) -> Searched | None:
    with run.clock.phase("load"):
        source = run.find(names)
        room = room_for(store, device)
        if not run.fits(max(room.host_bytes, writing_bytes(store, 1))):
            run.notes.append(
                f"searched on the CPU: beside what {device} takes, {format_bytes(room.host_bytes)} "
                "of host memory are needed, more than the memory limit leaves"
            )
            return None
        need, team = run.held() + room.host_bytes, Team(run.options.threads)
        loaded = run.executor.step("load", lambda _: load(store, device, room, team), [None], need)
        search = GpuSearch(device, loaded.pop())
    with run.clock.phase("compile"):
        run.executor.step("compile", lambda _: search.warm_up(), [None])
    with run.clock.phase("search"):
        found = run.executor.step(
            "search",
            lambda _: search_on_device(search, source, run.options.max_depth),
            [None],
            need,
        )[0]
    method = "push-pull, tiered" if search.graph.tiered else "push-pull"
    writing = partial(writing_bytes, store)
    return Searched(names, found, graph_record(store), store.info.layout, method, writing, device)


def _choose(store: Store, threads: int, limit: int, executor: Executor) -> bool:
    """Whether the whole graph is loaded. Compiles what the search will call.

    Raises LimitError if neither fits, naming the step that needs most.
    """
    loaded, streamed = graph_bytes(store), stream_bytes(store, threads)
    in_memory = fits(loaded + _KERNELS, limit)
    # Compiled code counts as held, so it is there before what is left is measured.
    types = {store.offsets_type(*place) for place in subgraphs_of(store)}
    if in_memory:
        executor.once("compile", lambda: compile_search(*types))
    else:
        return_freed_memory()
        executor.step("compile", warm_up, [types])
    writing = writing_bytes(store, 1)
    need, step = max((loaded if in_memory else streamed, "search"), (writing, "write"))
    if not fits(need, limit):
        raise too_little(step, need, limit)
    return in_memory


def _in_memory(
    store: Store, source: int, checkpoint: Checkpoint, run: SearchRun, need: int
) -> Found:
    with run.clock.phase("load"):
        load = run.executor.step(
            "load", lambda _: store.graph(Team(run.options.threads)), [None], need
        )
    graph = load.pop()
    return run.search(partial(search, graph, source, checkpoint=checkpoint), graph, need)


def _streamed(
    store: Store, source: int, checkpoint: Checkpoint, run: SearchRun, need: int
) -> Found:
    threads, depth = run.options.threads, run.options.max_depth
    with run.clock.phase("load"):
        graph = StreamedGraph.of(store, Team(threads))
    team = stream_team(threads)
    with run.clock.phase("search"):
        return run.executor.step(
            "search",
            lambda _: stream_search(graph, source, team, depth, checkpoint=checkpoint),
            [None],
            need,
        )[0]
