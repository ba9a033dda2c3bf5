"""HITS: hubs, which lead to good authorities, and authorities, which good hubs lead to.

    authority = A^T hub,  hub = A authority,  each scaled to add up to 1

An iteration is one of these pairs, from equal hubs on (Kleinberg: Authoritative Sources in a
Hyperlinked Environment, Journal of the ACM 46, 1999, section 3). A is the matrix of the edges'
weights, or of ones. The hubs go towards the first eigenvector of A A^T.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...partition.store.manifest import GraphInfo
from ..engines.operations.program import EdgeOperations, ReadRows
from ..engines.operations.vectors import Vector
from .iterations import (
    SCORES,
    ScoresProgram,
    ScoresQuestion,
    ScoresStep,
    inverse,
    scale,
    scale_and_compare,
    total,
)


class HitsProgram(ScoresProgram):
    columns = ("hub", "authority")
    rows = ReadRows.BOTH
    vectors = 3

    def begin(self, operations: EdgeOperations) -> ScoresStep:
        return _Hits(self, operations)


class _Hits(ScoresStep):
    """The scores of the last iteration. came: the sums that become the next hub scores."""

    def __init__(self, program: HitsProgram, operations: EdgeOperations) -> None:
        self._sum = program.sum
        self._operations = operations
        self.hub = operations.vector(SCORES, 1 / program.vertices)
        self.authority = operations.vector(SCORES)
        self.came = operations.vector(SCORES)

    def saved(self) -> Mapping[str, Vector]:
        return {"hub": self.hub}

    def run(self) -> float:
        operations = self._operations
        self.authority.fill(0.0)
        operations.gather(self._sum, self.hub, self.authority, loops=1)
        self.came.fill(0.0)
        operations.gather(self._sum, self.authority, self.came, along=False, loops=1)
        (came,) = operations.sum_each(total, reads=[self.came]).tolist()
        compare = scale_and_compare(inverse(came))
        (change,) = operations.sum_each(compare, self.came, reads=[self.hub]).tolist()
        self.hub, self.came = self.came, self.hub
        return change

    def scores(self) -> Mapping[str, Vector]:
        (came,) = self._operations.sum_each(total, reads=[self.authority]).tolist()
        self._operations.each(scale(inverse(came)), self.authority)
        return {"hub": self.hub, "authority": self.authority}


@dataclass(frozen=True)
class Hits(ScoresQuestion):
    """The question. tolerance: as in ScoresQuestion, for the hub scores."""

    tolerance: float = 1e-8
    max_iterations: int = 100
    name = "hits"
    program_type = HitsProgram
    by_vertex = False


def planned(info: GraphInfo) -> ScoresProgram:
    """Return the program for a plan, with default options."""
    return Hits().planned(info)
