"""Connected components of an edge list in memory, by one scan of its edges. No store is built."""

from __future__ import annotations

import numpy as np

from ....kernels.base.compiled import compile_kernels
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.programs import forest
from ...results.checkpoint import Checkpoint
from ..engine import Footprint, Need, Subject, need_of
from ..operations.forests import EdgeCounts
from ..operations.program import Program, ProgramResult, Tell
from .scan import ScannedEdges

_FIRST_EDGES = 1 << 18
"""Number of edges after which trees are first flattened. Each later interval is at least as long as
the part of the batch that is already scanned.
"""


class JoinEngine:
    """The engine that finds components by one scan of the edges."""

    device = None
    ranks = 1
    in_memory = True
    method = "scan"

    def __init__(self, loader: ScannedEdges) -> None:
        self.loader = loader

    @property
    def subject(self) -> Subject | None:
        return self.loader.subject

    def need(self) -> Need:
        return need_of(self.loader, _trees_bytes)

    def compile(self) -> None:
        self.loader.compile()
        compile_kernels(forest, offsets=np.uint32)

    def load(self) -> None:
        self.loader.load()

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        extra_bytes: int = 0,
    ) -> ProgramResult:
        """Join vertices by dense id, as join_vertices does. The result has a component for each id
        in the domain, whether the id occurs or not. program: ignored.
        """
        dense = self.loader.dense
        team, trees = Team(self.loader.threads), np.arange(dense.ids.domain, dtype=np.uint32)
        size = _FIRST_EDGES
        for batch in dense.batches:
            at = 0
            while at < len(batch[0]):
                ends = (end[at : at + size] for end in batch)
                team.run(forest.join_pairs, *ends, trees, no_turns(team.threads))
                team.run(forest.flatten, trees, no_turns(team.threads))  # shortens later walks
                at += size
                size = max(size, at)
        return ProgramResult({"component": trees}, EdgeCounts(edges=dense.rows)._asdict())

    def close(self) -> None:
        self.loader.close()


def _trees_bytes(footprint: Footprint) -> int:
    return (1 + 4 + 4 + 4) * footprint.domain
