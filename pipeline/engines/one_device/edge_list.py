"""An edge list in rows that are made of it on a device: to be searched there, and for programs."""

from __future__ import annotations

from dataclasses import replace

from ....kernels.gpu import search as gpu_search
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import derive
from ....kernels.gpu.search import GpuSearch
from ....kernels.gpu_programs.rows import ProgramGraph, cut_bytes
from ....partition.disk.memory import format_bytes
from ....partition.input.edges import EdgeList
from ...build.device_held import HeldOnDevice, HeldOnDeviceNeed, held_on_device_need, hold_on_device
from ...build.prepare import BuildOptions
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...run.execute import Executor
from ...run.records import graph_record
from ..engine import Need, Strategy, Subject, by_footers_first
from ..host.programs import DeferredProgram
from ..operations.program import Counts, DeviceProgram, Given, Program, Tell
from ..subjects import subject_by_ids
from .rows import HeldRows
from .search import give_back, method_of, search_of, search_on_device, slices_bytes
from .share import SLACK

_FOUND = 8 + 8  # bytes of a vertex: what was found, as it is copied and as it is told


class DeviceRowsEngine:
    """Rows that are searched. keeps: them, with their weights, for programs, too."""

    ranks = 1
    in_memory = True

    def __init__(
        self,
        edges: EdgeList,
        options: BuildOptions,
        executor: Executor,
        device: Device,
        strategy: Strategy = "rows",
        keeps: bool = False,
    ) -> None:
        self.subject: Subject | None = None
        self.device = device
        self.gpu: GpuSearch | None = None
        self.held: HeldRows | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._strategy: Strategy = strategy
        self._keeps = keeps
        self._slices_bytes = 0

    @property
    def method(self) -> str:
        return method_of(self.gpu)

    def need(self) -> Need:
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        """Once it is loaded, of what stays."""
        edges, directed, device = self._edges, self._options.directed, self.device
        held = held_on_device_need(edges, self._options, self._executor.threads, closely)
        domain, entries = held.facts.domain, edges.rows if directed else 2 * edges.rows
        searching = gpu_search.bytes_needed(domain, entries, directed) + 8 * edges.rows
        if self._keeps and edges.weight is not None:
            searching += 8 * edges.rows
        loading = held.preparing if self.gpu is None else 0
        most = max(loading, searching)
        _check_room(device, edges, most)
        left = device.memory_bytes - searching
        self._slices_bytes = slices_bytes(self._strategy, domain, entries, left)
        most = max(most, searching + self._slices_bytes)
        return Need(_host_bytes(held, _FOUND * held.facts.vertices), most)

    def compile(self) -> None:
        if self.gpu is not None:
            self.gpu.warm_up()

    def load(self) -> None:
        held = hold_on_device(self._edges, self._options, self._executor, self.device)
        self.subject = _subject_of(held)
        rows = HeldRows.of(held)
        del held
        give_back(self.device)
        graph = derive(self.device, rows.forward, rows.reverse if rows.info.directed else None)
        self.gpu = search_of(self.device, graph, self._strategy if self._slices_bytes else "rows")
        self.held = rows if self._keeps else None

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """checkpoint: not used; a search takes milliseconds."""
        assert self.gpu is not None
        return search_on_device(self.gpu, source, max_depth)

    def close(self) -> None:
        self.gpu = self.held = None
        give_back(self.device)


class DeviceHeldEngine:
    """Rows that a program goes through."""

    ranks = 1
    in_memory = True
    method = "on a device"

    def __init__(
        self,
        edges: EdgeList,
        options: BuildOptions,
        executor: Executor,
        device: Device,
        program: DeferredProgram,
    ) -> None:
        self.subject: Subject | None = None
        self.device = device
        self._edges = edges
        self._options = options
        self._executor = executor
        self._deferred = program
        self._program: DeviceProgram | None = None
        self._graph: ProgramGraph | None = None

    def need(self) -> Need:
        """To prepare the graph. What the program holds on the device is known with it, when the
        graph is loaded: seldom as much, as the sort holds several times what is left of it.
        """
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        held = held_on_device_need(self._edges, self._options, self._executor.threads, closely)
        _check_room(self.device, self._edges, held.preparing)
        n = held.facts.vertices
        return Need(
            _host_bytes(held, self._deferred.held_bytes(Counts(n, n, 0, 0))), held.preparing
        )

    def compile(self) -> None:
        if self._graph is not None and self._program is not None:
            self._program.compile_on(self._graph)

    def load(self) -> None:
        held = hold_on_device(self._edges, self._options, self._executor, self.device)
        self.subject = _subject_of(held)
        program = self._deferred.make(held.names, held.info)
        assert isinstance(program, DeviceProgram)
        self._program = program
        self._graph = HeldRows.of(held).program_graph(self.device, program)
        del held
        give_back(self.device)
        _check_room(self.device, self._edges, self._bytes(program))

    def _bytes(self, program: DeviceProgram) -> int:
        """That are held on the device while a program runs."""
        graph = self._graph
        assert graph is not None
        rows, n = graph.cut.rows, graph.vertices
        arrays = (rows.offsets, rows.near, graph.weights, graph.degree)
        held = sum(array.nbytes for array in arrays if array is not None) + SLACK
        held += cut_bytes(self.device, n, rows.edges)
        return held + program.device_bytes(n, rows.edges)

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._graph is not None
        asked = program or self._program
        assert isinstance(asked, DeviceProgram)
        left = self.device.memory_bytes - self._bytes(asked)
        return asked.run_on(replace(self._graph, spare=left), checkpoint, tell)

    def close(self) -> None:
        self._graph = None
        give_back(self.device)


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
