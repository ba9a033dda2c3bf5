"""The engines of a program in one process."""

from __future__ import annotations

from ...kernels.base.graph import Graph
from ...kernels.gpu.device import Device
from ...partition.store.store import Store
from .engine import Subject
from .operations.engine import AloneEngine
from .operations.program import DeviceProgram, LocalEngine, Program


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
