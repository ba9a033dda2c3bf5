"""The engines of a program in one process."""

from __future__ import annotations

from ...kernels.base.graph import Graph
from ...kernels.gpu.device import Device
from ...partition.input.edges import EdgeList
from ...partition.store.store import Store
from ..build.held import fits_held
from ..build.prepare import BuildOptions
from ..run.execute import Executor
from .engine import Subject
from .operations.engine import AloneEngine
from .operations.held import Asked, HeldEngine
from .operations.program import DeviceProgram, LocalEngine, Program, ProgramEngine


def engines_of_program(
    store: Store,
    subject: Subject | None,
    program: Program,
    threads: int,
    beside: int = 0,
    device: Device | None = None,
    loaded: Graph | None = None,
) -> list[LocalEngine]:
    """The best first. beside, loaded: as of an engine. device: None for the CPU; programs that have
    no kernel of their own for it do without.
    """
    of = store, subject, program, threads
    on_cpus = [AloneEngine(*of, on_disk, beside, loaded) for on_disk in (False, True)]
    if device is None or not isinstance(program, DeviceProgram):
        return [*on_cpus]
    from .device_program import DeviceProgramEngine

    return [DeviceProgramEngine(store, subject, program, device, threads, beside), *on_cpus]


def engines_of_held_program(
    edges: EdgeList, options: BuildOptions, device: Device | None, executor: Executor, asked: Asked
) -> list[ProgramEngine]:
    """Of an edge list; none where it has to become a store. device: None for the CPU."""
    if device is None:
        return [HeldEngine(edges, options, executor, asked)] if fits_held(edges) else []
    from .device_edges import DeviceHeldEngine

    return [DeviceHeldEngine(edges, options, executor, device, asked)]
