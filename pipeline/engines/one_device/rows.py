"""Loaders of rows on a device, for programs: of a store, and of an open edge list."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import Array, Rows
from ....kernels.gpu_programs.rows import ProgramGraph, cut, cut_bytes, degrees_of
from ....partition.disk.memory import format_bytes
from ....partition.store.manifest import GraphInfo
from ....partition.store.store import Store
from ...build.device_held import HeldOnDevice
from ...results.names import in_id_order
from ..engine import Need, Subject
from ..host.programs import DeferredProgram
from ..operations.program import DeviceProgram, ReadRows
from ..operations.vectors import Counts
from .share import SLACK, DeviceShare


class HeldRows(NamedTuple):
    """Rows of an edge list on a device: forward, and reverse. An undirected graph has the same
    arrays for both.

    weights, reverse_weights: uint32 (entries,), the bits of each entry's weight; None without
    weights.
    """

    forward: Rows
    reverse: Rows
    weights: Array | None
    reverse_weights: Array | None
    info: GraphInfo

    @classmethod
    def of(cls, held: HeldOnDevice) -> HeldRows:
        rows = held.rows
        forward = Rows(rows.offsets, rows.targets)
        reverse = forward
        if held.info.directed:
            reverse = Rows(rows.reverse_offsets, rows.reverse_targets)
        return cls(forward, reverse, rows.weights, rows.reverse_weights, held.info)

    def program_graph(self, device: Device, program: DeviceProgram) -> ProgramGraph:
        weights, degree = self.info.weights, None
        kind = weights.kind if program.weighted and weights is not None else None
        way, bits = self.forward, self.weights
        back = back_bits = None
        if program.rows != ReadRows.BY_SOURCE:
            way, bits = self.reverse, self.reverse_weights
        if program.rows == ReadRows.BOTH and self.info.directed:
            back, back_bits = cut(device, self.forward), self.weights
        if program.wants_degrees:
            degree = degrees_of(device, self.forward.offsets, self.weights, kind)
        return ProgramGraph(
            device,
            cut(device, way),
            not self.info.directed,
            None if kind is None else bits,
            kind,
            degree,
            back=back,
            back_weights=None if kind is None else back_bits,
        )


class RowsOnDevice:
    """The loader of rows that another loader keeps, of an open edge list.

    device: its memory limit counts what may be held beside the rows.
    """

    def __init__(self, rows: HeldRows, subject: Subject, device: Device) -> None:
        self.subject: Subject | None = subject
        self.rows = rows
        self._device = device

    @property
    def info(self) -> GraphInfo:
        return self.rows.info

    def need(self, program: DeviceProgram | DeferredProgram, reserved_bytes: int) -> Need:
        assert not isinstance(program, DeferredProgram)
        n = self.rows.info.vertices
        host = program.held_bytes(Counts(n, n, 0, 0))
        return Need(host + reserved_bytes, self.device_bytes(program))

    def load(self) -> None:
        """Do nothing: the rows are loaded already."""

    def program_graph(self, program: DeviceProgram) -> ProgramGraph:
        assert self.subject is not None
        graph = self.rows.program_graph(self._device, program)
        return replace(graph, id_order=partial(in_id_order, self.subject.names))

    def device_bytes(self, program: DeviceProgram, extra: int = 0) -> int:
        """Return the bytes that the device holds beside the rows while a program runs."""
        n, entries = self.rows.info.vertices, self.rows.forward.edges
        cuts = 2 if program.rows == ReadRows.BOTH and self.info.directed else 1
        need = SLACK + 8 * n * program.wants_degrees + cuts * cut_bytes(self._device, n, entries)
        need += program.device_bytes(n, entries) + extra
        if need > self._device.memory_bytes:
            raise DeviceMemoryError(
                f"only {format_bytes(self._device.memory_bytes)} of memory may be used on "
                f"{self._device} beside the loaded graph, but this question needs "
                f"{format_bytes(need)}"
            )
        return need

    def serves(self, other: Any, loaded_for: DeviceProgram, program: DeviceProgram) -> bool:
        if not isinstance(other, RowsOnDevice) or other.rows is not self.rows:
            return False
        try:
            self.device_bytes(program)
        except DeviceMemoryError:
            return False
        return _reads(loaded_for) == _reads(program)


class StoreRowsOnDevice:
    """The loader of a store's rows on a device."""

    def __init__(self, store: Store, subject: Subject | None, device: Device, threads: int) -> None:
        self.subject = subject
        self.store = store
        self._device = device
        self._threads = threads
        self._share = DeviceShare(store)

    @property
    def info(self) -> GraphInfo:
        return self.store.info

    def need(self, program: DeviceProgram | DeferredProgram, reserved_bytes: int) -> Need:
        assert not isinstance(program, DeferredProgram)
        room = self._share.room(program, self._device)
        return Need(room.host + reserved_bytes, room.device)

    def load(self) -> None:
        """Do nothing: the rows depend on the program, so ``program_graph`` loads them."""

    def program_graph(self, program: DeviceProgram) -> ProgramGraph:
        near = self._share.room(program, self._device).near
        return self._share.load(program, self._device, near, Team(self._threads))

    def device_bytes(self, program: DeviceProgram, extra: int = 0) -> int:
        return self._share.room(program, self._device, extra).device

    def serves(self, other: Any, loaded_for: DeviceProgram, program: DeviceProgram) -> bool:
        """Return whether the loaded graph is the one that the program needs, and leaves room for it
        on the device.
        """
        if not isinstance(other, StoreRowsOnDevice) or program.weighted != loaded_for.weighted:
            return False
        if self.info.directed and program.rows != loaded_for.rows:
            return False
        if program.wants_degrees > loaded_for.wants_degrees:
            return False
        if not other.store.holds_the_same(self.store):
            return False
        degrees = unread_degrees_bytes(loaded_for, program, self.info.vertices)
        share, device = self._share, self._device
        try:
            near = share.room(program, device, degrees).near
            return near >= share.room(loaded_for, device).near
        except DeviceMemoryError:
            return False


def unread_degrees_bytes(loaded_for: DeviceProgram, program: DeviceProgram, vertices: int) -> int:
    """Return the bytes of degrees that were loaded for one program and that another does not
    read.
    """
    return 8 * vertices * (loaded_for.wants_degrees and not program.wants_degrees)


def _reads(program: DeviceProgram) -> tuple[bool, ReadRows, bool]:
    """Return what of a graph a program reads: weights, which rows, degrees."""
    return program.weighted, program.rows, program.wants_degrees
