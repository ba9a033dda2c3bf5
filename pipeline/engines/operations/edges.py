"""Components of an edge list in memory, whose edges are scanned as they come: no store is built."""

from __future__ import annotations

import numpy as np

from ....kernels.base.compiled import compile_kernels
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces import forest
from ....partition.input import ids
from ....partition.input.edges import EdgeList
from ....partition.store.grid import ONE
from ...build.plan import dictionary_bytes, facts_of, reading_bytes
from ...build.read import DenseEdges, dense_domain, read_edges
from ...results.checkpoint import Checkpoint
from ...run.execute import Executor
from ..edges import subject_by_id
from ..engine import Need, Subject, by_footers_first
from .forests import Looked
from .program import Given, Program, Tell

_FIRST_EDGES = 1 << 18
"""After so many, and then after as many as have been looked at, trees are made flat."""


class EdgeScanEngine:
    """One scan answers which vertices are joined."""

    device = None
    ranks = 1
    in_memory = True
    method = "scan"

    def __init__(self, edges: EdgeList, directed: bool, executor: Executor) -> None:
        self.subject: Subject | None = None
        self._edges = edges
        self._directed = directed
        self._executor = executor
        self._dense: DenseEdges | None = None

    def need(self) -> Need:
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        edges, threads = self._edges, self._executor.threads
        facts = facts_of(edges, dense_domain(edges), self._directed, True, 1, ONE, closely)
        batches, trees = 8 * facts.rows, (1 + 4 + 4 + 4) * facts.domain
        reading = threads * reading_bytes(facts) + dictionary_bytes(facts)
        return Need(batches + trees + reading)

    def compile(self) -> None:
        ids.compile_reading(self._edges.id_type)
        compile_kernels(forest, offsets=np.uint32)

    def load(self) -> None:
        self._dense = read_edges(self._edges, self._executor, count_loops=True)
        self.subject = subject_by_id(self._edges, self._dense, self._directed)

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        """As join_vertices, by dense id: of all ids below the largest. program: none is asked."""
        dense = self._dense
        assert dense is not None
        team, trees = Team(self._executor.threads), np.arange(dense.ids.domain, dtype=np.uint32)
        size = _FIRST_EDGES
        for batch in dense.batches:
            at = 0
            while at < len(batch[0]):
                some = (end[at : at + size] for end in batch)
                team.run(forest.join_pairs, *some, trees, no_turns(team.threads))
                team.run(forest.flatten, trees, no_turns(team.threads))  # less to walk for the rest
                at += size
                size = max(size, at)
        return Given({"component": trees}, Looked(edges=dense.rows)._asdict())

    def close(self) -> None:
        self._dense = None
