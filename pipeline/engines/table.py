"""The table of engines: for each input and kind of question, the pairs of a loader and a runner
that can answer it, the best first. ``choose`` (engine.py) takes the first pair that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ...kernels.base.graph import Graph
from ...kernels.gpu.device import Device
from ...partition.input.edges import EdgeList
from ...partition.store.store import Store
from ..build.held import HeldGraph
from ..build.prepare import BuildOptions, fits_in_memory
from ..run.execute import Executor
from .engine import SearchEngine, Strategy, Subject
from .host.disk import DiskEngine
from .host.rows import EdgeRows, Place, RowsInMemory, StoreGraph, StoreRows
from .host.scan import ScanEngine, ScannedEdges
from .host.search import HostSearchEngine

if TYPE_CHECKING:  # a search, which most commands begin with, loads no operations
    from .host.programs import DeferredProgram
    from .one_device.rows import HeldRows
    from .operations.program import Program, ProgramEngine


@runtime_checkable
class KeepsRows(Protocol):
    """A loader of an open edge list that keeps rows for programs."""

    @property
    def held(self) -> HeldGraph | HeldRows | None:
        """Return the rows; None before they are loaded."""
        ...


def searches_of_store(
    store: Store,
    subject: Subject | None,
    device: Device | None,
    threads: int,
    strategy: Strategy = "rows",
) -> list[SearchEngine]:
    """Return the engines that search a store. device: None for the CPU."""
    engines: list[SearchEngine] = [
        HostSearchEngine(StoreGraph(store, subject), threads),
        DiskEngine(StoreRows(store, subject, threads, "disk"), threads),
    ]
    if device is None:
        return engines
    from .one_device.search import DeviceSearchEngine, StoreGraphOnDevice

    graph = StoreGraphOnDevice(store, subject, device, threads)
    return [DeviceSearchEngine(graph, device, strategy), *engines]


def search_of_edges(
    edges: EdgeList,
    options: BuildOptions,
    device: Device | None,
    executor: Executor,
    strategy: Strategy,
) -> list[SearchEngine]:
    """Return the engines that search an edge list once. An edge list with weights gets none, since
    a scan keeps no weights: such a list must become a store.
    """
    if edges.weight is not None:
        return []
    scan = ScanEngine(ScannedEdges(edges, options, executor))
    if device is None:
        return [scan]
    from .one_device.edge_list import EdgeGraphOnDevice
    from .one_device.search import DeviceSearchEngine

    reading = BuildOptions(directed=options.directed, loops=options.loops)
    graph = EdgeGraphOnDevice(edges, reading, executor, device)
    return [DeviceSearchEngine(graph, device, strategy), scan]


def searches_of_open_edges(
    edges: EdgeList, options: BuildOptions, device: Device | None, executor: Executor
) -> list[SearchEngine]:
    """Return the engines that search an open edge list again and again, and keep its rows for
    programs.
    """
    rows = EdgeRows(edges, options, executor, searched=True)
    engines: list[SearchEngine] = [HostSearchEngine(rows, executor.threads)]
    if device is None:
        return engines
    from .one_device.edge_list import EdgeGraphOnDevice
    from .one_device.search import DeviceSearchEngine

    graph = EdgeGraphOnDevice(edges, options, executor, device, keeps=True)
    return [DeviceSearchEngine(graph, device, "auto"), *engines]


def programs_of_store(
    store: Store,
    subject: Subject | None,
    program: Program,
    threads: int,
    reserved_bytes: int = 0,
    device: Device | None = None,
    graph: Graph | None = None,
) -> list[ProgramEngine]:
    """Return the engines that run a program over a store.

    reserved_bytes: bytes that are held while the program runs. device: None for the CPU; a program
    without a kernel for devices runs on the CPU. graph: the whole graph, if it is in memory
    already.
    """
    from .host.programs import HostProgramEngine
    from .operations.program import CountsLoopsOnCpus, DeviceProgram

    places: list[Place] = ["memory", "disk"]
    if store.info.partitions > 1 and (graph is not None or not program.scans_once):
        places.insert(0, "merged")  # merging takes longer than a single scan
    weighted = program.weighted
    rows = [StoreRows(store, subject, threads, place, weighted, graph) for place in places]
    engines: list[ProgramEngine] = [
        HostProgramEngine(store_rows, program, threads, reserved_bytes) for store_rows in rows
    ]
    if device is None or not isinstance(program, DeviceProgram):
        return engines
    if store.info.loops and isinstance(program, CountsLoopsOnCpus):
        return engines
    from .one_device.program import DeviceProgramEngine
    from .one_device.rows import StoreRowsOnDevice

    on_device = StoreRowsOnDevice(store, subject, device, threads)
    return [DeviceProgramEngine(on_device, program, device, reserved_bytes), *engines]


def program_of_edges(
    edges: EdgeList,
    options: BuildOptions,
    device: Device | None,
    executor: Executor,
    program: DeferredProgram,
) -> list[ProgramEngine]:
    """Return the engines that run a program over an edge list once; an empty list if the edge list
    must become a store.
    """
    if device is None or options.keeps_loops:  # a device keeps none of an edge list
        from .host.programs import HostProgramEngine

        rows = EdgeRows(edges, options, executor, searched=False)
        small = fits_in_memory(edges.rows, executor.threads)
        return [HostProgramEngine(rows, program, executor.threads)] if small else []
    from .one_device.edge_list import EdgeRowsOnDevice
    from .one_device.program import DeviceProgramEngine

    on_device = EdgeRowsOnDevice(edges, options, executor, device)
    return [DeviceProgramEngine(on_device, program, device)]


def components_of_edges(
    edges: EdgeList, options: BuildOptions, executor: Executor
) -> list[ProgramEngine]:
    """Return the engine that finds components in one scan of an edge list."""
    from .host.join import JoinEngine

    return [JoinEngine(ScannedEdges(edges, options, executor))]


def programs_of_rows(
    held: HeldGraph | HeldRows,
    subject: Subject,
    program: Program,
    threads: int,
    reserved_bytes: int = 0,
    device: Device | None = None,
) -> list[ProgramEngine]:
    """Return the engines that run a program over the rows of an open edge list.

    device: the device that holds the rows, with the bytes that may be held there beside them. If
    the rows are on a device, a program without a kernel for it gets no engine.
    """
    if isinstance(held, HeldGraph):
        from .host.programs import HostProgramEngine

        return [HostProgramEngine(RowsInMemory(held, subject), program, threads, reserved_bytes)]
    from .one_device.program import DeviceProgramEngine
    from .one_device.rows import RowsOnDevice
    from .operations.program import DeviceProgram

    if device is None or not isinstance(program, DeviceProgram):
        return []
    rows = RowsOnDevice(held, subject, device)
    return [DeviceProgramEngine(rows, program, device, reserved_bytes)]
