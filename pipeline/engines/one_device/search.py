"""Searches on a device: what is loaded there, and the result of a search.

Targets are in device memory as far as they fit. The rest is in pinned host memory, where the same
kernels read it in place. If host memory has no room for the rest, the search runs on the CPU and
streams edges from disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import Graph
from ....kernels.base.team import Team
from ....kernels.gpu import search as gpu_search
from ....kernels.gpu import slices as gpu_slices
from ....kernels.gpu.device import Device, DeviceMemoryError, unsigned_name
from ....kernels.gpu.graph import MOST_VERTICES, DeviceGraph, Rows, derive, offsets_dtype
from ....kernels.gpu.search import (
    ROOM_FOR_ALL,
    GpuSearch,
    WideKernel,
    compile_beforehand,
    is_resident,
)
from ....partition.disk.memory import format_bytes
from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ..engine import Engine, Need, Strategy, Subject
from ..host.search import graph_bytes
from .found import FoundOnDevice, Outcomes, fetch_outcomes

_GAIN = 0.9  # slices must take less than this share of the time of rows: they take memory
_TRIED = 16  # sources of searches that measure which form is faster


class DeviceGraphLoader(Protocol):
    """A loader of a graph on a device, for searches."""

    subject: Subject | None

    def need(self, strategy: Strategy, loaded: bool) -> Need: ...

    def compile(self, strategy: Strategy) -> None:
        """Compile the search of the graph, as far as its form is known before the graph is
        loaded.
        """
        ...

    def load(self, strategy: Strategy) -> tuple[DeviceGraph, bool]:
        """Return the graph, and whether slices are wanted and have room."""
        ...

    def serves(self, other: Any) -> bool:
        """Return whether another loader has made the graph that this one would make."""
        ...

    def close(self) -> None: ...


class StoreGraphOnDevice:
    """The loader of the whole graph of a store.

    reserved_bytes: bytes that are held on the device beside the graph and its search.
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
        room = self._room(strategy)
        compile_beforehand(self._device, offsets_dtype(room.entries), room.tiered, room.slices)

    def load(self, strategy: Strategy) -> tuple[DeviceGraph, bool]:
        room = self._room(strategy)
        return load(self.store, self._device, room, Team(self._threads)), room.slices

    def serves(self, other: Any) -> bool:
        return isinstance(other, StoreGraphOnDevice) and self.store.holds_the_same(other.store)

    def close(self) -> None:
        """Do nothing: the engine holds the graph."""


class DeviceSearchEngine:
    """The engine that searches a graph on a device, with one kernel launch for each search."""

    ranks = 1
    in_memory = True

    def __init__(
        self, loader: DeviceGraphLoader, device: Device, strategy: Strategy = "rows"
    ) -> None:
        self.device = device
        self.loader = loader
        self.gpu: GpuSearch | None = None
        self._outcomes: Outcomes | None = None
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
        fetch_outcomes(self.device)
        graph, slices = self.loader.load(self._strategy)
        self.gpu = search_of(self.device, graph, self._strategy if slices else "rows")
        self._outcomes = Outcomes(self.gpu)

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> FoundOnDevice:
        """Search from ``source``. checkpoint: not used, since a search takes milliseconds."""
        assert self._outcomes is not None
        return self._outcomes.search(source, max_depth)

    def take_over(self, other: Engine) -> bool:
        """Take the loaded graph of another engine if it is the same. Devices are compared by number
        alone, since jobs of one process share the limit of the device's memory.
        """
        if isinstance(other, DeviceSearchEngine):
            ours = self.device.number, self._strategy
            alike = ours == (other.device.number, other._strategy)
            if alike and self.loader.serves(other.loader):
                self.gpu, other.gpu = other.gpu, None
                self._outcomes, other._outcomes = other._outcomes, None
        return self.gpu is not None

    def close(self) -> None:
        try:
            if self._outcomes is not None:
                self._outcomes.fetch()
        finally:
            self.gpu = self._outcomes = None
            self.loader.close()
            give_back(self.device)


def method_of(gpu: GpuSearch | None) -> str:
    if gpu is not None and gpu.over_slices:
        return "slices"
    return "push-pull, tiered" if gpu is not None and gpu.graph.tiered else "push-pull"


def search_of(device: Device, graph: DeviceGraph, strategy: Strategy) -> GpuSearch:
    """Return a search over rows or slices of a graph on a device. Unless the strategy is "rows",
    all targets must be on the device.

    With "auto", slices are cut and measured only if the arrays that a search writes to stay in the
    second-level cache. On larger graphs levels wait for memory, and slices move more bytes since
    they have no pull direction. The search with and without sweeping of levels is measured too:
    which is faster depends on the number of sets that hold the vertices found.
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
        if seconds[swept] == inf:
            break
    swept = min(seconds, key=seconds.__getitem__)
    if strategy == "auto":
        search.search_over(None)
        if seconds[swept] == inf or seconds[swept] > _GAIN * _seconds_of_some(search):
            return search
    search.search_over(slices, swept)
    return search


def _seconds_of_some(search: GpuSearch) -> float:
    """Return the sum of the seconds of searches from a few vertices of all degrees; infinity if a
    search over slices has too many levels for them.
    """
    search.warm_up()
    used, over_slices, seconds = search.graph.used, search.over_slices, 0.0
    for source in np.linspace(0, used - 1, _TRIED if used else 0).astype(int).tolist():
        seconds += search.seconds_alone(source)
        if search.over_slices != over_slices:
            return inf
    return seconds


def give_back(device: Device) -> None:
    """Return unused memory from the memory pool to the device."""
    with device.use() as cupy:
        cupy.get_default_memory_pool().free_all_blocks()


@dataclass(frozen=True)
class Room:
    """The split of a graph's targets between device memory and host memory, and the bytes that a
    search takes.

    near: entries of targets on the device in each direction; the others are pinned in host memory.
    host_bytes: the most that loading and the result hold in host memory. device_bytes: held on the
    device. entries: of the direction that has more entries. slices: whether slices are wanted and
    have room.
    """

    near: int
    host_bytes: int
    device_bytes: int
    entries: int
    slices: bool = False

    def compile(self, device: Device, kernel: WideKernel) -> None:
        """Compile the search of a graph with this room before it is loaded, so that the compiler's
        memory is already allocated when loading begins. A second kernel, for more levels than a
        byte can hold, may be compiled later; it needs no more memory.
        """
        kernel.compiled_for(device, unsigned_name(offsets_dtype(self.entries)), self.tiered)

    @property
    def tiered(self) -> bool:
        return self.near < self.entries


def room_for(
    store: Store, device: Device, reserved_bytes: int = 0, strategy: Strategy = "rows"
) -> Room:
    """Return the split of a store's targets between device memory and host memory.

    reserved_bytes: bytes that are held on the device beside the graph and its search. Raises
    DeviceMemoryError if the arrays that must be on the device do not fit.
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
    result = 8 * info.vertices + info.vertices  # distance, parent; and their copies from the device
    merged = graph_bytes(store) if info.partitions > 1 else 0
    loading = store.largest_shard + 8 * info.vertices  # a shard, offsets
    host = pinned + merged + max(result, loading)
    held = least + 4 * near * ways
    more = slices_bytes(
        strategy, info.vertices, entries, device.memory_bytes - least - 4 * entries * ways
    )
    return Room(near, host, held + more, entries, slices=more > 0)


def fits_near(store: Store, device: Device) -> bool:
    """Return whether a device has room for the whole graph of a store and a search of it."""
    try:
        room = room_for(store, device)
    except DeviceMemoryError:
        return False
    return room.near == room.entries


def slices_bytes(strategy: Strategy, vertices: int, entries: int, left: int) -> int:
    """Return the bytes that slices take on a device; 0 if they are not to be tried.

    left: bytes that may be held on the device beside the graph, its targets and its search. Raises
    DeviceMemoryError if the strategy is "slices" and there is no room.
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
    """Return the whole graph of a store on a device, by global id. With one partition, only one
    shard at a time is in host memory.
    """
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
            cupy.cuda.Device().synchronize()  # before the buffer is written again
    return rows


def to_device(graph: Graph, device: Device, near: int) -> DeviceGraph:
    """Copy a graph from host memory to a device. Targets from entry ``near`` on stay in host
    memory, pinned.
    """
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
