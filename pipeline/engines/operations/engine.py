"""Engines of a store in one process for what is written in operations: in memory, and on disk."""

from __future__ import annotations

from ....kernels.base.compiled import compile_kernels
from ....kernels.base.graph import Graph
from ....kernels.base.team import Team
from ....kernels.prepare import merge
from ....partition.store.store import Store
from ....partition.store.whole import WholeGraph, merged_bytes, merged_offsets
from ...ranks.communicator import SingleCommunicator
from ...results.checkpoint import Checkpoint
from ...run.plan import fits
from ..engine import Engine, Need, Subject
from ..memory import MemoryEngine
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph, bitmaps_bytes
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

    beside: bytes that whoever takes what it finds holds meanwhile. loaded: the whole graph, where
    it is in memory already, of which an engine makes use if its edges stand so.
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
        self._loaded = loaded if self._takes_whole else None
        self._graph: RankGraph | None = None
        self._team = Team(threads) if self.in_memory else stream_team(threads)
        self._taken = False

    def need(self) -> Need:
        if self._taken:
            return Need(self._program.held_bytes(counts_of(self._store)) + self._beside)
        return Need(self._bytes() + self._beside)

    def _bytes(self) -> int:
        of = self._program, self._store, 0, 1, self._threads
        there = 0 if self._loaded is None else self._loaded.nbytes
        return program_bytes(*of, not self.in_memory) - there

    def compile(self, program: Program | None = None) -> None:
        warm_up(self._store.offsets_types(), (program or self._program).kernels)

    def load(self) -> None:
        self._team.start()
        if self._graph is None:
            self._graph = self._load(Team(self._threads))

    def _load(self, team: Team) -> RankGraph:
        on_disk, weighted = not self.in_memory, self._program.weighted
        of = self._store, 0, 1, team
        return load_rank(*of, on_disk=on_disk, weighted=weighted, loaded=self._loaded)

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
        """What searches have loaded will do, too, where it stands as it does here."""
        if isinstance(other, AloneEngine) and self.in_memory and other.in_memory:
            alike = type(other) is type(self) and other._program.weighted == self._program.weighted
            if alike and other._store.holds_the_same(self._store):
                self._graph, self._taken = other._graph, True
        whole = other if isinstance(other, MemoryEngine) and self._takes_whole else None
        if whole and whole.store.holds_the_same(self._store):
            self._loaded = whole.graph
        return self._taken or self._loaded is not None

    @property
    def _takes_whole(self) -> bool:
        """Whether its edges stand as they do for searches of the whole graph."""
        return self.in_memory and self._store.info.partitions == 1

    def close(self) -> None:
        self._graph = self._loaded = None
        self._taken = False


class MergedEngine(AloneEngine):
    """A rank that is alone with a store of several partitions, which are merged in memory into the
    rows of one: a level, or an iteration, is a step over all of them, not one for each subgraph.
    """

    def _bytes(self) -> int:
        info = self._store.info
        held = bitmaps_bytes(info.vertices) + self._program.held_bytes(counts_of(self._store))
        if self._loaded is not None:
            return held
        merged = merged_bytes(info, self._program.weighted)
        return max(merged.making, merged.staying + held)

    def compile(self, program: Program | None = None) -> None:
        offsets = merged_offsets(self._store.info)
        warm_up([offsets], (program or self._program).kernels)
        compile_kernels(merge, offsets=offsets)

    def _load(self, team: Team) -> RankGraph:
        if self._loaded is None:
            merged = self._store.merged(team, self._program.weighted)
        else:
            merged = WholeGraph.of(self._store.info, self._loaded)
        return load_rank(merged, 0, 1, team, weighted=self._program.weighted)

    @property
    def _takes_whole(self) -> bool:
        return not self._program.weighted
