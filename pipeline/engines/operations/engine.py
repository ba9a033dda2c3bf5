"""Engines of a store in one process for what is written in operations: in memory, and on disk."""

from __future__ import annotations

from ....kernels.base.graph import Graph
from ....kernels.base.team import Team
from ....partition.store.store import Store
from ...ranks.communicator import SingleCommunicator
from ...results.checkpoint import Checkpoint
from ...run.plan import fits
from ..engine import Engine, Need, Subject
from ..memory import MemoryEngine
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph
from ..ranks.search import load_rank
from .operations import Operations, warm_up
from .program import Given, Program, Tell, counts_of, program_bytes
from .vectors import Vector


def run_alone(
    program: Program,
    graph: RankGraph,
    team: Team,
    directed: bool,
    checkpoint: Checkpoint | None,
    tell: Tell,
    spare: int,
) -> Given:
    """By the only rank, of a graph that it has loaded; arrays of the whole graph."""
    operations = Operations(graph, SingleCommunicator(), team, directed, checkpoint, spare)
    given = program.run(operations, tell)
    values = {k: v.own if isinstance(v, Vector) else v for k, v in given.values.items()}
    return Given(values, given.record)


class AloneEngine:
    """A rank that is alone, with its edges in memory or, if ``on_disk``, read in every scan.

    beside: bytes that whoever takes what it finds holds meanwhile. loaded: the whole graph of one
    partition, where it is in memory already.
    """

    device = None
    ranks = 1

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        program: Program,
        threads: int,
        on_disk: bool,
        beside: int = 0,
        loaded: Graph | None = None,
    ) -> None:
        self.subject = subject
        self.method = "streamed" if on_disk else "in memory"
        self.in_memory = not on_disk
        self._store = store
        self._program = program
        self._threads = threads
        self._beside = beside
        self._loaded = None if on_disk else loaded
        self._graph: RankGraph | None = None
        self._team = Team(threads) if self.in_memory else stream_team(threads)
        self._taken = False

    def need(self) -> Need:
        if self._taken:
            return Need(self._program.held_bytes(counts_of(self._store)) + self._beside)
        of = self._program, self._store, 0, 1, self._threads
        there = 0 if self._loaded is None else self._loaded.nbytes
        return Need(program_bytes(*of, not self.in_memory) + self._beside - there)

    def compile(self, program: Program | None = None) -> None:
        warm_up(self._store.offsets_types(), (program or self._program).kernels)

    def load(self) -> None:
        self._team.start()
        if self._graph is not None:
            return
        team = Team(self._threads)
        self._graph = load_rank(
            self._store,
            0,
            1,
            team,
            on_disk=not self.in_memory,
            weighted=self._program.weighted,
            loaded=self._loaded,
        )

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._graph is not None
        of = self._graph, self._team, self._store.info.directed
        return run_alone(program or self._program, *of, checkpoint, tell, spare)

    def has_room_for(self, program: Program, limit: int, beside: int = 0) -> bool:
        held = program.held_bytes(counts_of(self._store))
        return program.weighted == self._program.weighted and fits(held + beside, limit)

    def take_over(self, other: Engine) -> bool:
        """What searches have loaded will do, too: of one partition, as it stands there."""
        if isinstance(other, AloneEngine) and self.in_memory and other.in_memory:
            alike = other._program.weighted == self._program.weighted
            if alike and other._store.holds_the_same(self._store):
                self._graph, self._taken = other._graph, True
        whole = self.in_memory and self._store.info.partitions == 1
        if isinstance(other, MemoryEngine) and whole and other.store.holds_the_same(self._store):
            self._loaded = other.graph
        return self._taken or self._loaded is not None

    def close(self) -> None:
        self._graph = self._loaded = None
        self._taken = False
