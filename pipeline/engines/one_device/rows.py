"""Rows of an edge list that a device holds, and programs over them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import Array, Rows
from ....kernels.gpu_programs.rows import ProgramGraph, cut, cut_bytes, degrees_of
from ....partition.disk.memory import format_bytes
from ....partition.store.manifest import GraphInfo
from ...build.device_held import HeldOnDevice
from ...results.checkpoint import Checkpoint
from ..engine import Engine, Need, Subject
from ..operations.program import Counts, DeviceProgram, Given, Program, Tell
from .search import give_back
from .share import SLACK


class HeldRows(NamedTuple):
    """An edge list's rows on a device, there and back; of an undirected graph the same arrays.

    weights, reverse_weights: by entry, uint32, bits; None where there are none.
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
        if program.into:
            way, bits = self.reverse, self.reverse_weights
        if program.wants_degrees:
            degree = degrees_of(device, self.forward.offsets, self.weights, kind)
        of = not self.info.directed, None if kind is None else bits, kind, degree
        return ProgramGraph(device, cut(device, way), *of)


class HeldRowsEngine:
    """device: with what may be held there beside the rows. beside: bytes that whoever takes what a
    program finds holds meanwhile.
    """

    ranks = 1
    in_memory = True
    method = "on a device"

    def __init__(
        self,
        rows: HeldRows,
        subject: Subject,
        program: DeviceProgram,
        device: Device,
        beside: int = 0,
    ) -> None:
        self.subject = subject
        self.device = device
        self._rows = rows
        self._program = program
        self._beside = beside
        self._graph: ProgramGraph | None = None

    def need(self) -> Need:
        return Need(self._host_bytes(self._program) + self._beside, self._room(self._program))

    def _host_bytes(self, program: Program) -> int:
        n = self._rows.info.vertices
        return program.held_bytes(Counts(n, n, 0, 0))

    def _room(self, program: DeviceProgram) -> int:
        """Bytes on the device, beside the rows. DeviceMemoryError where there is less room."""
        info, device = self._rows.info, self.device
        n, entries = info.vertices, self._rows.forward.edges
        need = SLACK + 8 * n * program.wants_degrees + cut_bytes(device, n, entries)
        need += program.device_bytes(n, entries)
        if need > device.memory_bytes:
            raise DeviceMemoryError(
                f"only {format_bytes(device.memory_bytes)} of memory may be used on {device} "
                f"beside the loaded graph, but this question needs {format_bytes(need)}"
            )
        return need

    def take_over(self, other: Engine) -> bool:
        """Of rows that are the same, what another program has loaded if it reads the same of it."""
        if isinstance(other, HeldRowsEngine) and other._graph is not None:
            alike = _reads(other._program) == _reads(self._program)
            if alike and other._rows is self._rows:
                self._graph = other._graph
        return self._graph is not None

    def load(self) -> None:
        if self._graph is None:
            self._graph = self._rows.program_graph(self.device, self._program)

    def compile(self) -> None:
        if self._graph is not None:
            self._program.compile_on(self._graph)

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
        left = self.device.memory_bytes - self._room(asked)
        return asked.run_on(replace(self._graph, spare=left), checkpoint, tell)

    def close(self) -> None:
        self._graph = None
        give_back(self.device)


def _reads(program: DeviceProgram) -> tuple[bool, bool, bool]:
    """Which of a graph's arrays."""
    return program.weighted, program.into, program.wants_degrees
