"""The engines of a program in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...kernels.base.graph import Graph
from ...kernels.gpu.device import Device
from ...partition.input.edges import EdgeList
from ...partition.store.store import Store
from ..build.held import HeldGraph, fits_held
from ..build.prepare import BuildOptions
from ..run.execute import Executor
from .engine import Subject
from .operations.engine import AloneEngine, MergedEngine
from .operations.held import Asked, HeldEngine, HeldGraphEngine
from .operations.program import DeviceProgram, LocalEngine, Program, ProgramEngine

if TYPE_CHECKING:
    from .one_device.rows import HeldRows


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
    merged = loaded is not None or not program.scans_once  # than a scan merging takes longer
    if store.info.partitions > 1 and merged:
        on_cpus.insert(0, MergedEngine(*of, False, beside, loaded))
    if device is None or not isinstance(program, DeviceProgram):
        return [*on_cpus]
    from .one_device.program import DeviceProgramEngine

    return [DeviceProgramEngine(store, subject, program, device, threads, beside), *on_cpus]


def engines_of_held_program(
    edges: EdgeList, options: BuildOptions, device: Device | None, executor: Executor, asked: Asked
) -> list[ProgramEngine]:
    """Of an edge list; none where it has to become a store. device: None for the CPU."""
    if device is None:
        return [HeldEngine(edges, options, executor, asked)] if fits_held(edges) else []
    from .one_device.edge_list import DeviceHeldEngine

    return [DeviceHeldEngine(edges, options, executor, device, asked)]


def engines_of_rows(
    held: HeldGraph | HeldRows,
    subject: Subject,
    program: Program,
    threads: int,
    beside: int = 0,
    device: Device | None = None,
) -> list[LocalEngine]:
    """Over rows that are held. device: that has them, with what may be held there beside them; a
    program that has no kernel of its own for it finds none.
    """
    if isinstance(held, HeldGraph):
        return [HeldGraphEngine(held, subject, program, threads, beside)]
    from .one_device.rows import HeldRowsEngine

    if device is None or not isinstance(program, DeviceProgram):
        return []
    return [HeldRowsEngine(held, subject, program, device, beside)]
