"""Searching on a device: what is loaded there, and what a search there leaves.

Targets stand in the device's memory; those for which there is no room, in pinned host memory, where
the same kernels read them in place. What host memory has no room for either is searched on the
CPU, streamed from disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import Graph
from ....kernels.base.team import Team
from ....kernels.gpu import search as gpu_search
from ....kernels.gpu import slices as gpu_slices
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_SHORT, MOST_VERTICES, DeviceGraph, Rows, derive
from ....kernels.gpu.search import (
    ROOM_FOR_ALL,
    WIDE_SEARCH,
    GpuSearch,
    WideKernel,
    is_resident,
)
from ....partition.disk.memory import format_bytes
from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...results.superstep_log import SuperstepLog
from ..engine import Engine, Need, Strategy, Subject
from ..host.search import graph_bytes

_GAIN = 0.9  # of the time by rows, that slices may take: less is not worth their memory
_TRIED = 4  # sources


class DeviceGraphLoader(Protocol):
    """A loader of a graph on a device, for searches."""

    subject: Subject | None

    def need(self, strategy: Strategy, loaded: bool) -> Need: ...

    def compile(self, strategy: Strategy) -> None:
        """The search of such a graph, as far as it is known before the graph is loaded."""
        ...

    def load(self, strategy: Strategy) -> tuple[DeviceGraph, bool]:
        """The graph, and whether there is room for slices, too, if they are wanted."""
        ...

    def serves(self, other: Any) -> bool:
        """Return whether what another loader has made would be the same."""
        ...

    def close(self) -> None: ...


class StoreGraphOnDevice:
    """The loader of the whole graph of a store.

    reserved_bytes: bytes that are to be held on the device beside the graph and its search.
    """

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        device: Device,
        threads: int,
        reserved_bytes: int = 0,
    ) -> None:
        self.subject = subject
        self.store = store
        self._device = device
        self._threads = threads
        self._reserved_bytes = reserved_bytes

    def _room(self, strategy: Strategy) -> Room:
        return room_for(self.store, self._device, self._reserved_bytes, strategy)

    def need(self, strategy: Strategy, loaded: bool) -> Need:
        room = self._room(strategy)
        return Need(room.host_bytes, 0 if loaded else room.device_bytes)

    def compile(self, strategy: Strategy) -> None:
        self._room(strategy).compile(self._device, WIDE_SEARCH)

    def load(self, strategy: Strategy) -> tuple[DeviceGraph, bool]:
        room = self._room(strategy)
        return load(self.store, self._device, room, Team(self._threads)), room.slices

    def serves(self, other: Any) -> bool:
        return isinstance(other, StoreGraphOnDevice) and self.store.holds_the_same(other.store)

    def close(self) -> None:
        """The engine has the graph."""


class DeviceSearchEngine:
    """Searches of a graph on a device, in one launch each."""

    ranks = 1
    in_memory = True

    def __init__(
        self, loader: DeviceGraphLoader, device: Device, strategy: Strategy = "rows"
    ) -> None:
        self.device = device
        self.loader = loader
        self.gpu: GpuSearch | None = None
        self._strategy: Strategy = strategy

    @property
    def subject(self) -> Subject | None:
        return self.loader.subject

    @property
    def method(self) -> str:
        return method_of(self.gpu)

    def need(self) -> Need:
        return self.loader.need(self._strategy, self.gpu is not None)

    def compile(self) -> None:
        if self.gpu is not None:
            self.gpu.warm_up()
        else:
            self.loader.compile(self._strategy)

    def load(self) -> None:
        if self.gpu is not None:
            return
        graph, slices = self.loader.load(self._strategy)
        self.gpu = search_of(self.device, graph, self._strategy if slices else "rows")

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """checkpoint: not used; a search takes milliseconds."""
        assert self.gpu is not None
        return search_on_device(self.gpu, source, max_depth)

    def take_over(self, other: Engine) -> bool:
        """The limit of the device's memory is the same of jobs that share a process."""
        if isinstance(other, DeviceSearchEngine):
            ours = self.device.number, self._strategy
            alike = ours == (other.device.number, other._strategy)
            if alike and self.loader.serves(other.loader):
                self.gpu, other.gpu = other.gpu, None
        return self.gpu is not None

    def close(self) -> None:
        self.gpu = None
        self.loader.close()
        give_back(self.device)


def method_of(gpu: GpuSearch | None) -> str:
    if gpu is not None and gpu.over_slices:
        return "slices"
    return "push-pull, tiered" if gpu is not None and gpu.graph.tiered else "push-pull"


def search_of(device: Device, graph: DeviceGraph, strategy: Strategy) -> GpuSearch:
    """Searches of a graph whose targets are on the device, unless it is by rows.

    auto: slices are cut, and tried, only where what a search writes to stays in the second-level
    cache. Elsewhere memory is what levels wait for, and slices, which know no pull, move more.
    Whether levels are swept is tried, too: it depends on how many sets what is found stands in.
    """
    search = GpuSearch(device, graph)
    small = is_resident(device, graph) and graph.used
    if strategy == "rows" or (strategy == "auto" and not small):
        return search
    slices = gpu_slices.cut(device, graph)
    seconds = {}
    for swept in (True, False) if slices.may_be_swept else (True,):
        search.search_over(slices, swept)
        seconds[swept] = _seconds_of_some(search)
    swept = min(seconds, key=seconds.__getitem__)
    if strategy == "auto":
        search.search_over(None)
        if seconds[swept] > _GAIN * _seconds_of_some(search):
            return search
    search.search_over(slices, swept)
    return search


def _seconds_of_some(search: GpuSearch) -> float:
    """Return the seconds of searches from vertices of all degrees, each the second time."""
    search.warm_up()
    seconds, used = 0.0, search.graph.used
    for source in np.linspace(0, used - 1, _TRIED if used else 0).astype(int).tolist():
        search.run(source)
        search.run(source)
        seconds += search.seconds()
    return seconds


def give_back(device: Device) -> None:
    """Return memory that nothing refers to from the pool to the device."""
    with device.use() as cupy:
        cupy.get_default_memory_pool().free_all_blocks()


@dataclass(frozen=True)
class Room:
    """Where a graph's targets go.

    near: entries of targets on the device, of each of the two directions; the others are pinned.
    host_bytes: held at most by loading and by the result. device_bytes: held on the device.
    entries: of the direction that has more. slices: whether there is room for slices, too, if they
    are wanted.
    """

    near: int
    host_bytes: int
    device_bytes: int
    entries: int
    slices: bool = False

    def compile(self, device: Device, kernel: WideKernel) -> None:
        """Compile a search of such a graph: what a compiler holds is there before loading begins.

        (Another instance, for levels that a byte does not hold, may follow; it holds no more.)
        """
        offset = "u32" if self.entries < MOST_SHORT else "u64"
        kernel.compiled_for(device, offset, tiered=self.near < self.entries)


def room_for(
    store: Store, device: Device, reserved_bytes: int = 0, strategy: Strategy = "rows"
) -> Room:
    """reserved_bytes: bytes that are held on the device beside the graph and its search.

    Raises DeviceMemoryError where not even what must be on the device fits.
    """
    info = store.info
    entries = sum(info.subgraph_edges.values())
    ways = 2 if info.directed else 1
    least = reserved_bytes + gpu_search.bytes_needed(info.vertices, entries, info.directed)
    if least > device.memory_bytes:
        raise DeviceMemoryError(
            f"only {format_bytes(device.memory_bytes)} of memory may be used on {device}, but a "
            f"search of this graph needs {format_bytes(least)} there"
        )
    if info.vertices > MOST_VERTICES:
        raise DeviceMemoryError(f"{info.vertices:,} vertices are too many for a GPU")
    near = min(entries, (device.memory_bytes - least) // (4 * ways))
    pinned = 4 * (entries - near) * ways
    result = 8 * info.vertices + info.vertices  # distance, parent; and what they are copied from
    merged = graph_bytes(store) if info.partitions > 1 else 0
    loading = store.largest_shard + 8 * info.vertices  # a shard, offsets
    host = pinned + merged + max(result, loading)
    held = least + 4 * near * ways
    more = slices_bytes(
        strategy, info.vertices, entries, device.memory_bytes - least - 4 * entries * ways
    )
    return Room(near, host, held + more, entries, slices=more > 0)


def fits_near(store: Store, device: Device) -> bool:
    """Whether a device has room for the whole graph and a search of it."""
    try:
        room = room_for(store, device)
    except DeviceMemoryError:
        return False
    return room.near == room.entries


def slices_bytes(strategy: Strategy, vertices: int, entries: int, left: int) -> int:
    """Return the bytes of slices on a device beside all else, 0 where slices are not to be tried.

    left: bytes that may be held there beside the graph, its targets and its search. Raises
    DeviceMemoryError where slices were asked for and there is no room.
    """
    if strategy == "rows" or (strategy == "auto" and vertices > ROOM_FOR_ALL):
        return 0
    more = gpu_slices.bytes_needed(vertices, entries)
    if more is not None and more <= left:
        return more
    if strategy == "slices":
        raise DeviceMemoryError(
            "GPU memory is too small for the slices of this graph: leave out --strategy slices"
        )
    return 0


def load(store: Store, device: Device, room: Room, team: Team) -> DeviceGraph:
    """The whole graph in global ids. Of one partition, a shard at a time is in host memory."""
    if store.info.partitions > 1:
        return to_device(store.graph(team), device, room.near)
    forward = load_rows(store, "nn", device, room.near, team)
    if not store.info.directed:
        return derive(device, forward)
    return derive(device, forward, load_rows(store, "reverse-nn", device, room.near, team))


def load_rows(store: Store, name: str, device: Device, near: int, team: Team) -> Rows:
    offsets = store.offsets(0, name, team)
    rows = Rows.with_room(device, offsets, near)
    # A device copies from pinned memory without a detour.
    buffer = device.pinned(max(1, store.largest_shard // 4), np.uint32)
    at = 0
    for file in store.shards(0, name):
        shard = store.read_shard(0, name, file, buffer, team)
        rows.put(device, at, shard)
        at += len(shard)
        with device.use() as cupy:
            cupy.cuda.Device().synchronize()  # before it is written to again
    return rows


def to_device(graph: Graph, device: Device, near: int) -> DeviceGraph:
    """A graph in host memory, its targets from entry ``near`` on pinned there."""
    forward = copy_rows(device, graph.offsets, graph.targets, near)
    if graph.reverse_targets is graph.targets:
        return derive(device, forward)
    return derive(
        device, forward, copy_rows(device, graph.reverse_offsets, graph.reverse_targets, near)
    )


def copy_rows(device: Device, offsets: NDArray, targets: NDArray[np.uint32], near: int) -> Rows:
    rows = Rows.with_room(device, offsets, near)
    rows.put(device, 0, targets)
    return rows


def search_on_device(search: GpuSearch, source: int, max_depth: int | None) -> Found:
    """source: a global id."""
    search.run(source, max_depth)
    return Found(*search.result(), supersteps_of(search))


def supersteps_of(search: GpuSearch) -> SuperstepLog:
    """The records of the last search's levels."""
    records = SuperstepLog()
    frontier = 1
    for number, level in enumerate(search.levels(), 1):
        records.add(number, level.direction, frontier, level.found, level.examined, level.seconds)
        frontier = level.found
    return records
