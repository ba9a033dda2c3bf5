"""Engines of a store in one process for what is written in operations: in memory, and on disk."""

from __future__ import annotations

from ....kernels.base.team import Team
from ....partition.store.store import Store
from ...ranks.communicator import SingleCommunicator
from ...results.checkpoint import Checkpoint
from ..engine import Need, Subject
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph
from ..ranks.search import load_rank
from .operations import Operations, warm_up
from .program import Given, Program, Tell, program_bytes
from .vectors import Vector


class AloneEngine:
    """A rank that is alone, with its edges in memory or, if ``on_disk``, read in every scan.

    beside: bytes that whoever takes what it finds holds meanwhile.
    """

    device = None
    ranks = 1
    once = False

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        program: Program,
        threads: int,
        on_disk: bool,
        beside: int = 0,
    ) -> None:
        self.subject = subject
        self.method = "streamed" if on_disk else "in memory"
        self.in_memory = not on_disk
        self._store = store
        self._program = program
        self._threads = threads
        self._beside = beside
        self._graph: RankGraph | None = None

    def need(self) -> Need:
        of = self._program, self._store, 0, 1, self._threads
        return Need(program_bytes(*of, not self.in_memory) + self._beside)

    def compile(self) -> None:
        warm_up(self._store.offsets_types(), self._program.kernels)

    def load(self) -> None:
        team = Team(self._threads)
        on_disk, weighted = not self.in_memory, self._program.weighted
        self._graph = load_rank(self._store, 0, 1, team, on_disk=on_disk, weighted=weighted)

    def run(
        self, checkpoint: Checkpoint | None, tell: Tell, program: Program | None = None
    ) -> Given:
        assert self._graph is not None
        team = Team(self._threads) if self.in_memory else stream_team(self._threads)
        alone, directed = SingleCommunicator(), self._store.info.directed
        operations = Operations(self._graph, alone, team, directed)
        given = (program or self._program).run(operations, checkpoint, tell)
        values = {k: v.own if isinstance(v, Vector) else v for k, v in given.values.items()}
        return Given(values, given.record)

    def close(self) -> None:
        self._graph = None


def engines_of_program(
    store: Store, subject: Subject | None, program: Program, threads: int, beside: int = 0
) -> list[AloneEngine]:
    """In one process, the best first. beside: as of an engine."""
    of = store, subject, program, threads
    return [AloneEngine(*of, on_disk, beside) for on_disk in (False, True)]
