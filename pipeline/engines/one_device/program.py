"""Programs on one device: those that have a kernel of their own for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from ....kernels.gpu.device import Device
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.manifest import GraphInfo
from ...results.checkpoint import Checkpoint
from ..engine import Engine, Need, Subject
from ..host.programs import DeferredProgram, made
from ..operations.program import DeviceProgram, Program, ProgramResult, Tell
from ..operations.saving import DeviceSaving
from ..operations.vectors import Counts
from .found import fetch_outcomes
from .rows import unread_degrees_bytes
from .search import give_back


class DeviceRowsLoader(Protocol):
    """A loader of rows on a device. info: facts of the graph, known once it is loaded."""

    subject: Subject | None

    @property
    def info(self) -> GraphInfo: ...

    def need(self, program: DeviceProgram | DeferredProgram, reserved_bytes: int) -> Need:
        """Return what loading and running need. Raises DeviceMemoryError if the arrays that must be
        on the device do not fit.
        """
        ...

    def load(self) -> None:
        """Load everything that can be loaded before a deferred program is made."""
        ...

    def program_graph(self, program: DeviceProgram) -> ProgramGraph:
        """Return the graph in the form that a program reads."""
        ...

    def device_bytes(self, program: DeviceProgram, extra: int = 0) -> int:
        """Return the bytes that the device holds while a program runs. extra: bytes that the device
        holds besides. Raises DeviceMemoryError if they do not fit.
        """
        ...

    def serves(self, other: Any, loaded_for: DeviceProgram, program: DeviceProgram) -> bool:
        """Return whether the graph that another loader has made for ``loaded_for`` also serves
        ``program``.
        """
        ...


class DeviceProgramEngine:
    """The engine that runs a program on a device, over the rows of a loader.

    device: its memory limit counts what may be held beside the rows that a loader keeps.
    reserved_bytes: host bytes that the caller holds while the program runs.
    """

    ranks = 1
    in_memory = True

    def __init__(
        self,
        rows: DeviceRowsLoader,
        program: DeviceProgram | DeferredProgram,
        device: Device,
        reserved_bytes: int = 0,
    ) -> None:
        self.device = device
        self.rows = rows
        self.graph: ProgramGraph | None = None
        self._program = program
        self._reserved_bytes = reserved_bytes
        self._loaded_for: DeviceProgram | None = None
        self._reuses_loaded = False

    @property
    def subject(self) -> Subject | None:
        return self.rows.subject

    @property
    def method(self) -> str:
        tiered = self.graph is not None and self.graph.cut.rows.far is not None
        return "on a device, tiered" if tiered else "on a device"

    def need(self) -> Need:
        if self._reuses_loaded:
            n = self.rows.info.vertices
            return Need(self._program.held_bytes(Counts(n, n, 0, 0)) + self._reserved_bytes)
        return self.rows.need(self._program, self._reserved_bytes)

    def compile(self) -> None:
        """Compile the kernels, which depend on the graph; before the graph is loaded, do
        nothing.
        """
        if self.graph is not None:
            assert not isinstance(self._program, DeferredProgram)
            self._program.compile_on(self.graph)

    def load(self) -> None:
        if self.graph is not None:
            return
        fetch_outcomes(self.device)
        self.rows.load()
        program = made(self._program, self.rows)
        assert isinstance(program, DeviceProgram)
        self.graph = self.rows.program_graph(program)
        self._program = self._loaded_for = program

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        extra_bytes: int = 0,
    ) -> ProgramResult:
        asked = program or self._program
        assert self.graph is not None
        assert isinstance(asked, DeviceProgram)
        assert self._loaded_for is not None
        fetch_outcomes(self.device)  # the program may need their room
        degrees = unread_degrees_bytes(self._loaded_for, asked, self.rows.info.vertices)
        left = self.device.memory_bytes - self.rows.device_bytes(asked, degrees)
        graph = replace(self.graph, extra_bytes=left)
        with self.device.use():
            return asked.run_on(graph, DeviceSaving(checkpoint), tell)

    def take_over(self, other: Engine) -> bool:
        """Take the loaded graph of another engine, if it serves this engine's program. Devices are
        compared by number alone, since jobs of one process share the limit of the device's memory.
        """
        if not isinstance(other, DeviceProgramEngine) or other.graph is None:
            return self._reuses_loaded
        assert other._loaded_for is not None
        assert not isinstance(self._program, DeferredProgram)
        alike = other.device.number == self.device.number
        if alike and self.rows.serves(other.rows, other._loaded_for, self._program):
            self.graph, self._loaded_for, self._reuses_loaded = other.graph, other._loaded_for, True
            other.graph = None
        return self._reuses_loaded

    def close(self) -> None:
        held = self.graph is not None  # and no other engine took it
        self.graph, self._loaded_for, self._reuses_loaded = None, None, False
        if held:
            give_back(self.device)
