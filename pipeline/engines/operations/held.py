"""Programs over an edge list in memory, in the rows that a store of it would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ....kernels.base.bitmap import WORD
from ....kernels.base.team import Team
from ....partition.input.edges import EdgeList
from ....partition.store.manifest import GraphInfo
from ....partition.store.store import offsets_dtype
from ...build.held import held_need, hold
from ...build.prepare import BuildOptions, compile_tasks
from ...results.checkpoint import Checkpoint
from ...results.names import Names
from ...run.execute import Executor
from ..edges import subject_of
from ..engine import CODE_BYTES, Need, Subject, by_footers_first
from ..ranks.graph import RankGraph
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


class HeldEngine:
    device = None
    ranks = 1
    in_memory = True
    method = "in memory"

    def __init__(
        self,
        edges: EdgeList,
        options: BuildOptions,
        executor: Executor,
        asked: Asked,
    ) -> None:
        self.subject: Subject | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._asked = asked
        self._team = Team(executor.threads)
        self._program: Program | None = None
        self._graph: RankGraph | None = None

    def need(self) -> Need:
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        need = held_need(self._edges, self._options, self._executor.threads, closely)
        n = need.facts.vertices
        running = self._asked.holds(Counts(n, n, 0, 0)) + 3 * 8 * (n // WORD + 1)
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
        info = held.info
        of = self._edges, held.ids, held.names, info.directed
        self.subject = subject_of(*of, "csr", self._options.duplicates)
        self._program = self._asked.program(held.names, info)
        self._team.start()
        self._graph = load_rank(held, 0, 1, self._team, weighted=self._program.weighted)

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._graph is not None
        assert self._program is not None
        of = self._graph, self._team, self._options.directed
        return run_alone(program or self._program, *of, checkpoint, tell, spare)

    def close(self) -> None:
        self._graph = None
