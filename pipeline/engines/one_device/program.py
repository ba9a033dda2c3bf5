"""Programs that have a kernel of their own for a device, on one device."""

from __future__ import annotations

from dataclasses import replace

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ..engine import Engine, Need, Subject
from ..operations.program import DeviceProgram, Given, Program, Tell, counts_of
from .search import give_back
from .share import DeviceShare, ShareRoom


class DeviceProgramEngine:
    """The rows that a program goes through, on a device."""

    ranks = 1
    in_memory = True

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        program: DeviceProgram,
        device: Device,
        threads: int,
        beside: int = 0,
    ) -> None:
        self.subject = subject
        self.device = device
        self._store = store
        self._share = DeviceShare(store)
        self._program = program
        self._threads = threads
        self._beside = beside
        self._graph: ProgramGraph | None = None
        self._loaded_for = program
        self._taken = False

    @property
    def method(self) -> str:
        tiered = self._graph is not None and self._graph.cut.rows.far is not None
        return "on a device, tiered" if tiered else "on a device"

    def need(self) -> Need:
        if self._taken:
            return Need(self._program.held_bytes(counts_of(self._store)) + self._beside)
        room = self._room(self._program)
        return Need(room.host + self._beside, room.device)

    def take_over(self, other: Engine) -> bool:
        """The limit of the device's memory is the same of jobs that share a process."""
        if isinstance(other, DeviceProgramEngine) and other._graph is not None:
            alike = other.device.number == self.device.number and other._serves(self._program)
            if alike and other._store.holds_the_same(self._store):
                self._graph, self._loaded_for = other._graph, other._loaded_for
                self._taken = True
        return self._taken

    def _serves(self, program: Program) -> bool:
        """Whether what is loaded is what another program needs, and leaves room for it."""
        there, directed = self._loaded_for, self._store.info.directed
        if not isinstance(program, DeviceProgram) or program.weighted != there.weighted:
            return False
        if (directed and program.into != there.into) or program.wants_degrees > there.wants_degrees:
            return False
        try:
            return self._room(program).near >= self._room(there).near
        except DeviceMemoryError:
            return False

    def _room(self, program: DeviceProgram) -> ShareRoom:
        """Raises DeviceMemoryError where not even what must be on the device fits."""
        there = self._loaded_for.wants_degrees and not program.wants_degrees  # for another one
        return self._share.room(program, self.device, 8 * self._store.info.vertices * there)

    def compile(self) -> None:
        if self._graph is not None:
            self._program.compile_on(self._graph)

    def load(self) -> None:
        if self._graph is None:
            near, team = self._room(self._program).near, Team(self._threads)
            self._graph = self._share.load(self._program, self.device, near, team)

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
        spare_there = self.device.memory_bytes - self._room(asked).device
        return asked.run_on(replace(self._graph, spare=spare_there), checkpoint, tell)

    def close(self) -> None:
        self._graph, self._loaded_for, self._taken = None, self._program, False
        give_back(self.device)
