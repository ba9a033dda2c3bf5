"""Loaders of an edge list, as rows that a device makes of it, for searches and for programs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from ....kernels.gpu import search as gpu_search
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import DeviceGraph, derive, offsets_dtype
from ....kernels.gpu.search import compile_beforehand
from ....kernels.gpu_programs.rows import ProgramGraph, cut_bytes
from ....partition.disk.memory import format_bytes
from ....partition.input.edges import EdgeList
from ....partition.store.manifest import GraphInfo
from ...build.device_held import HeldOnDevice, HeldOnDeviceNeed, rows_on_device, rows_on_device_need
from ...build.prepare import BuildOptions
from ...results.names import in_id_order
from ...run.execute import Executor
from ...run.records import graph_record
from ..engine import Need, Strategy, Subject, by_footers_first
from ..host.programs import DeferredProgram
from ..operations.program import DeviceProgram
from ..operations.vectors import Counts
from ..subjects import subject_by_ids
from .rows import HeldRows
from .search import give_back, slices_bytes
from .share import SLACK

_FOUND = 8 + 8  # bytes of a vertex for distance and parent, and for their copy


class EdgeGraphOnDevice:
    """The loader of an edge list for searches. keeps: whether it keeps the rows and their weights
    for programs.
    """

    def __init__(
        self,
        edges: EdgeList,
        options: BuildOptions,
        executor: Executor,
        device: Device,
        keeps: bool = False,
    ) -> None:
        self.subject: Subject | None = None
        self.held: HeldRows | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._device = device
        self._keeps = keeps
        self._slices_bytes = 0

    def need(self, strategy: Strategy, loaded: bool) -> Need:
        def need(closely: bool) -> Need:
            return self._need(strategy, loaded, closely)

        return by_footers_first(need)

    def _need(self, strategy: Strategy, loaded: bool, closely: bool) -> Need:
        """Return the need, by a bound that is close or not. If the graph is loaded, the device part
        counts only what stays.
        """
        edges, directed, device = self._edges, self._options.directed, self._device
        held = rows_on_device_need(edges, self._options, self._executor.threads, closely)
        domain, entries = held.facts.domain, edges.rows if directed else 2 * edges.rows
        searching = gpu_search.bytes_needed(domain, entries, directed) + 8 * edges.rows
        if self._keeps and edges.weight is not None:
            searching += 8 * edges.rows
        most = max(0 if loaded else held.preparing, searching)
        _check_room(device, edges, most)
        left = device.memory_bytes - searching
        self._slices_bytes = slices_bytes(strategy, domain, entries, left)
        most = max(most, searching + self._slices_bytes)
        return Need(_host_bytes(held, _FOUND * held.facts.vertices), most)

    def compile(self, strategy: Strategy) -> None:
        edges = self._edges.rows if self._options.directed else 2 * self._edges.rows
        compile_beforehand(self._device, offsets_dtype(edges), False, self._slices_bytes > 0)

    def load(self, strategy: Strategy) -> tuple[DeviceGraph, bool]:
        held = rows_on_device(self._edges, self._options, self._executor, self._device)
        self.subject = _subject_of(held)
        rows = HeldRows.of(held)
        del held
        give_back(self._device)
        graph = derive(self._device, rows.forward, rows.reverse if rows.info.directed else None)
        self.held = rows if self._keeps else None
        return graph, self._slices_bytes > 0

    def serves(self, other: Any) -> bool:
        return False

    def close(self) -> None:
        self.held = None


class EdgeRowsOnDevice:
    """The loader of an edge list for one program."""

    def __init__(
        self, edges: EdgeList, options: BuildOptions, executor: Executor, device: Device
    ) -> None:
        self.subject: Subject | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._device = device
        self._held: HeldOnDevice | None = None
        self._info: GraphInfo | None = None
        self._graph_bytes = 0
        self._entries = 0
        self._cuts = 1

    @property
    def info(self) -> GraphInfo:
        assert self._info is not None
        return self._info

    def need(self, program: DeviceProgram | DeferredProgram, reserved_bytes: int) -> Need:
        """Return the need of preparing the graph. What the program holds on the device is known
        only when the graph is loaded. It is seldom more, since the sort holds several times as much
        as the graph that is left.
        """

        def need(closely: bool) -> Need:
            held = rows_on_device_need(self._edges, self._options, self._executor.threads, closely)
            _check_room(self._device, self._edges, held.preparing)
            n = held.facts.vertices
            running = program.held_bytes(Counts(n, n, 0, 0))
            return Need(_host_bytes(held, running) + reserved_bytes, held.preparing)

        return by_footers_first(need)

    def load(self) -> None:
        self._held = rows_on_device(self._edges, self._options, self._executor, self._device)
        self._info = self._held.info
        self.subject = _subject_of(self._held)

    def program_graph(self, program: DeviceProgram) -> ProgramGraph:
        assert self._held is not None
        assert self.subject is not None
        graph = HeldRows.of(self._held).program_graph(self._device, program)
        graph = replace(graph, id_order=partial(in_id_order, self.subject.names))
        self._held = None
        give_back(self._device)
        rows = graph.cut.rows
        arrays = [rows.offsets, rows.near, graph.weights, graph.degree]
        if graph.back is not None:
            arrays += [graph.back.rows.offsets, graph.back.rows.near, graph.back_weights]
        self._graph_bytes = sum(array.nbytes for array in arrays if array is not None)
        self._cuts = 1 if graph.back is None else 2
        self._entries = rows.edges
        _check_room(self._device, self._edges, self.device_bytes(program))
        return graph

    def device_bytes(self, program: DeviceProgram, extra: int = 0) -> int:
        """Return the bytes on the device while a program runs. Degrees that another program asked
        for count as part of the loaded graph, so ``extra`` is not used.
        """
        n = self.info.vertices
        cuts = self._cuts * cut_bytes(self._device, n, self._entries)
        held = self._graph_bytes + SLACK + cuts
        return held + program.device_bytes(n, self._entries)

    def serves(self, other: Any, loaded_for: DeviceProgram, program: DeviceProgram) -> bool:
        return False


def _check_room(device: Device, edges: EdgeList, need: int) -> None:
    if need > device.memory_bytes:
        raise DeviceMemoryError(
            f"only {format_bytes(device.memory_bytes)} of memory may be used on {device}, but "
            f"{edges.rows:,} rows need {format_bytes(need)} there"
        )


def _host_bytes(held: HeldOnDeviceNeed, running: int) -> int:
    return max(held.reading, held.names + running)


def _subject_of(held: HeldOnDevice) -> Subject:
    return subject_by_ids(graph_record(held.info), held.ids, held.names, "csr")
