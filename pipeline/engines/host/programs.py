"""Programs that run in one process on CPUs, over rows in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ....kernels.base.team import Team
from ....partition.store.manifest import GraphInfo
from ...ranks.communicator import SingleCommunicator
from ...results.checkpoint import Checkpoint
from ...results.names import Names
from ..engine import Engine, Footprint, Need, Subject, need_of
from ..operations.operations import Calls, Operations, warm_up
from ..operations.program import Program, ProgramResult, Tell
from ..operations.vectors import Counts, Vector
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph
from .rows import RowsLoader, StoreGraph, StoreRows
from .search import HostSearchEngine


class LoadedRows(Protocol):
    """Rows that are loaded, on a CPU or a device."""

    @property
    def subject(self) -> Subject | None: ...

    @property
    def info(self) -> GraphInfo: ...


class DeferredProgram(NamedTuple):
    """A program that can be made only after its graph is loaded.

    make: makes the program from the names and facts of the graph. held_bytes: the bytes that the
    program holds, by counts of the graph. calls: the kernels that the program calls.
    """

    make: Callable[[Names, GraphInfo], Program]
    held_bytes: Callable[[Counts], int]
    calls: Calls


def made(program: Program | DeferredProgram, rows: LoadedRows) -> Program:
    """Return the program; a deferred program is made now, from the loaded rows."""
    if not isinstance(program, DeferredProgram):
        return program
    assert rows.subject is not None
    return program.make(rows.subject.names, rows.info)


class HostProgramEngine:
    """The engine that runs a program over the rows of a loader.

    reserved_bytes: bytes that the caller holds while the program runs.
    """

    device = None
    ranks = 1

    def __init__(
        self,
        rows: RowsLoader,
        program: Program | DeferredProgram,
        threads: int,
        reserved_bytes: int = 0,
    ) -> None:
        self.rows = rows
        self.method = "in memory" if rows.in_memory else "streamed"
        self.in_memory = rows.in_memory
        self.graph: RankGraph | None = None
        self._program = program
        self._threads = threads
        self._reserved_bytes = reserved_bytes
        self._team = Team(threads) if rows.in_memory else stream_team(threads)

    @property
    def subject(self) -> Subject | None:
        return self.rows.subject

    def need(self) -> Need:
        return need_of(self.rows, self._running_bytes, self._reserved_bytes)

    def _running_bytes(self, footprint: Footprint) -> int:
        n = footprint.vertices
        return self._program.held_bytes(Counts(n, n, 0, 0, edges=footprint.rows))

    def compile(self) -> None:
        rows = self.rows
        rows.compile()
        warm_up(rows.offsets_types(), self._program.calls, rows.whole, rows.loads_kernels)

    def load(self) -> None:
        self._team.start()
        if self.graph is not None:
            return
        self.rows.load()
        self._program = program = made(self._program, self.rows)
        self.graph = self.rows.rank_graph(program.weighted, Team(self._threads))

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        extra_bytes: int = 0,
    ) -> ProgramResult:
        """Run the program. The values of the result are arrays of the whole graph."""
        asked = program or self._program
        assert self.graph is not None
        assert not isinstance(asked, DeferredProgram)
        alone, directed = SingleCommunicator(), self.rows.info.directed
        scratch = None if checkpoint is None else checkpoint.place[0].parent
        how = checkpoint, extra_bytes, scratch
        operations = Operations(self.graph, alone, self._team, directed, *how)
        given = asked.run(operations, tell)
        values = {k: v.own if isinstance(v, Vector) else v for k, v in given.values.items()}
        return ProgramResult(values, given.record)

    def take_over(self, other: Engine) -> bool:
        if isinstance(other, HostProgramEngine) and other.graph is not None:
            if not self.rows.take_over(other.rows):
                return False
            self.graph = other.graph
            return True
        if isinstance(other, HostSearchEngine) and isinstance(self.rows, StoreRows):
            loader = other.loader
            return isinstance(loader, StoreGraph) and self.rows.take_graph(loader)
        return False

    def close(self) -> None:
        self.graph = None
        self.rows.close()
