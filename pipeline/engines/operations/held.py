"""Programs over an edge list in memory, in the rows that a store of it would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ....kernels.base.team import Team
from ....partition.input.edges import EdgeList
from ....partition.store.layout import offsets_dtype
from ....partition.store.manifest import GraphInfo
from ...build.held import HeldGraph, held_need, hold
from ...build.prepare import BuildOptions, compile_tasks
from ...results.checkpoint import Checkpoint
from ...results.names import Names
from ...run.execute import Executor
from ...run.plan import fits
from ...run.records import graph_record
from ..edges import subject_of
from ..engine import CODE_BYTES, Need, Subject, by_footers_first
from ..ranks.graph import RankGraph, bitmaps_bytes
from ..ranks.search import load_rank
from .engine import run_alone
from .operations import warm_up
from .program import Counts, Given, Program, Tell


class Asked(NamedTuple):
    """A program that is known once its graph is loaded.

    program: of the names and facts of the graph. holds: what it holds, of so many vertices.
    kernels: that it calls itself.
    """

    program: Callable[[Names, GraphInfo], Program]
    holds: Callable[[Counts], int]
    kernels: Sequence[ModuleType]


class HeldGraphEngine:
    """A program over rows that are held, by whoever made them.

    beside: bytes that whoever takes what a program finds holds meanwhile.
    """

    device = None
    ranks = 1
    in_memory = True
    method = "in memory"

    def __init__(
        self, held: HeldGraph, subject: Subject, program: Program, threads: int, beside: int = 0
    ) -> None:
        self.subject = subject
        self._held = held
        self._program = program
        self._team = Team(threads)
        self._beside = beside
        self._graph: RankGraph | None = None
        self._weighted = program.weighted

    def need(self) -> Need:
        n = self._held.info.vertices
        return Need(self._program.held_bytes(Counts(n, n, 0, 0)) + bitmaps_bytes(n) + self._beside)

    def has_room_for(self, program: Program, limit: int, beside: int = 0) -> bool:
        n = self._held.info.vertices
        return fits(program.held_bytes(Counts(n, n, 0, 0)) + beside, limit)

    def load(self) -> None:
        self._team.start()
        self._load(self._program.weighted)

    def _load(self, weighted: bool) -> None:
        self._graph = load_rank(self._held, 0, 1, self._team, weighted=weighted)
        self._weighted = weighted

    def compile(self, program: Program | None = None) -> None:
        asked = program or self._program
        warm_up(self._held.offsets_types(), asked.kernels)
        if self._graph is not None and asked.weighted != self._weighted:
            self._load(asked.weighted)

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._graph is not None
        of = self._graph, self._team, self._held.info.directed
        return run_alone(program or self._program, *of, checkpoint, tell, spare)

    def close(self) -> None:
        self._graph = None


class HeldEngine:
    """A program that is run once, over rows that are made for it."""

    device = None
    ranks = 1
    in_memory = True
    method = HeldGraphEngine.method

    def __init__(
        self, edges: EdgeList, options: BuildOptions, executor: Executor, asked: Asked
    ) -> None:
        self.subject: Subject | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._asked = asked
        self._held: HeldGraphEngine | None = None

    def need(self) -> Need:
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        need = held_need(self._edges, self._options, self._executor.threads, closely)
        n = need.facts.vertices
        running = self._asked.holds(Counts(n, n, 0, 0)) + bitmaps_bytes(n)
        return Need(max(need.making, need.staying + running) + CODE_BYTES)

    def compile(self) -> None:
        """Half of what building calls, and operations, is never called here, and loading all of it
        would take longer than making the rows of a small graph.
        """
        edges = self._edges
        compile_tasks(edges.id_type, edges.rows, edges.weight is not None, load=False)
        warm_up([np.dtype(offsets_dtype(2 * edges.rows))], self._asked.kernels, load=False)

    def load(self) -> None:
        held = hold(self._edges, self._options, self._executor)
        self.subject = subject_of(graph_record(held.info), held.ids, held.names, "csr")
        program = self._asked.program(held.names, held.info)
        self._held = HeldGraphEngine(held, self.subject, program, self._executor.threads)
        self._held.load()

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._held is not None
        return self._held.run(checkpoint, tell, program, spare)

    def close(self) -> None:
        self._held = None
