"""Eigenvector centrality: a vertex counts as much as the vertices that lead to it, all together.

    score = score + A^T score,  scaled to a length of 1

An iteration is this step, from equal scores on; the scores go towards the first eigenvector of
A^T (Bonacich: Factoring and Weighting Approaches to Status Scores and Clique Identification,
Journal of Mathematical Sociology 2, 1972). A is the matrix of the edges' weights, or of ones. The
score itself is added so that scores of bipartite graphs settle, as NetworkX does it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...partition.store.manifest import GraphInfo
from ..engines.operations.program import EdgeOperations, ReadRows
from ..engines.operations.vectors import Vector
from .iterations import (
    SCORES,
    ScoresProgram,
    ScoresQuestion,
    ScoresStep,
    inverse,
    scale_and_compare,
    squares,
)


class EigenvectorProgram(ScoresProgram):
    columns = ("eigenvector",)
    rows = ReadRows.BY_TARGET
    vectors = 2

    def begin(self, operations: EdgeOperations) -> ScoresStep:
        return _Eigenvector(self, operations)


class _Eigenvector(ScoresStep):
    def __init__(self, program: EigenvectorProgram, operations: EdgeOperations) -> None:
        self._sum = program.sum
        self._operations = operations
        self.score = operations.vector(SCORES, 1 / program.vertices)
        self.came = operations.vector(SCORES)

    def saved(self) -> Mapping[str, Vector]:
        return {"score": self.score}

    def run(self) -> float:
        operations = self._operations
        operations.each(_copy, self.came, reads=[self.score])
        operations.gather(self._sum, self.score, self.came, loops=1)
        (length,) = operations.sum_each(squares, reads=[self.came]).tolist()
        compare = scale_and_compare(inverse(math.sqrt(length)))
        (change,) = operations.sum_each(compare, self.came, reads=[self.score]).tolist()
        self.score, self.came = self.came, self.score
        return change

    def scores(self) -> Mapping[str, Vector]:
        return {"eigenvector": self.score}


def _copy(came: Any, score: Any) -> None:
    came[:] = score


@dataclass(frozen=True)
class Eigenvector(ScoresQuestion):
    """The question. tolerance: as in ScoresQuestion, for the sum of all changes. NetworkX allows
    as much for each vertex: in a large graph that is more than all scores together.
    """

    tolerance: float = 1e-6
    max_iterations: int = 100
    name = "eigenvector"
    program_type = EigenvectorProgram
    by_vertex = False


def planned(info: GraphInfo) -> ScoresProgram:
    """Return the program for a plan, with default options."""
    return Eigenvector().planned(info)
