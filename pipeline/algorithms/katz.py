"""Katz centrality: how many walks end at a vertex, where each further edge counts ``alpha`` times.

    score = alpha A^T score + 1,  scaled to a length of 1 at the end

An iteration is this step, from 0 on (Katz: A New Status Index Derived from Sociometric Analysis,
Psychometrika 18, 1953). A is the matrix of the edges' weights, or of ones. The scores settle if
alpha is less than 1 over the greatest eigenvalue of A.

That eigenvalue is at most the greatest of A^T x / x, for any positive x. The bound does not rise if
x is multiplied by A^T + I (Collatz and Wielandt: Horn, Johnson: Matrix Analysis, section 8.1). The
first x is the root of the degrees, by which the bound of a star is its eigenvalue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ...partition.errors import InputError
from ...partition.store.manifest import GraphInfo
from ..engines.operations.program import EdgeOperations, ProgramResult, ReadRows
from ..engines.operations.vectors import Vector
from ..questions.katz import BOUNDING_STEPS, OF_BOUND
from ..results.names import Names
from ..results.result import Option
from .iterations import (
    SCORES,
    ScoresProgram,
    ScoresQuestion,
    ScoresStep,
    inverse,
    scale,
    squares,
    total,
)
from .run import Answer

_LEAST = 1e-290
"""The least x of a vertex."""

_ROUNDING = 1e-12
"""A change of scores, in relation to them, up to which it may be rounding."""

_ENDLESS = 1e140
"""The least change of scores that are taken to grow without end. Their squares are still finite."""


@dataclass(frozen=True)
class KatzProgram(ScoresProgram):
    """The program. alpha: None to choose it."""

    alpha: float | None = None
    columns = ("katz",)
    rows = ReadRows.BY_TARGET
    vectors = 2

    def begin(self, operations: EdgeOperations) -> ScoresStep:
        return _Katz(self, operations)


class _Katz(ScoresStep):
    def __init__(self, program: KatzProgram, operations: EdgeOperations) -> None:
        self._sum = program.sum
        self._operations = operations
        self._score, self._came = operations.vector(SCORES), operations.vector(SCORES)
        self._alpha = program.alpha or self._chosen_alpha()

    def _chosen_alpha(self) -> float:
        """Return a part of 1 over the bound of the greatest eigenvalue; 0 without edges."""
        operations, x, came = self._operations, self._score, self._came
        x.fill(1.0)
        came.fill(0.0)
        operations.gather(self._sum, x, came, loops=1)
        (most,) = operations.max_each(_greatest_inverse, reads=[came]).tolist()
        if not most:
            return 0.0
        operations.each(_root(1 / most), x, reads=[came])
        bound = math.inf
        for _ in range(BOUNDING_STEPS):
            came.fill(0.0)
            operations.gather(self._sum, x, came, loops=1)
            (ratio,) = operations.max_each(_greatest_ratio, reads=[came, x]).tolist()
            bound = min(bound, ratio)
            operations.each(_add_and_scale(1 / (ratio + 1)), x, reads=[came])
        x.fill(0.0)
        return OF_BOUND * inverse(bound)

    def saved(self) -> Mapping[str, Vector]:
        return {"score": self._score}

    def run(self) -> float:
        self._came.fill(0.0)
        self._operations.gather(self._sum, self._score, self._came, loops=1)
        count = _count(self._alpha)
        (change,) = self._operations.sum_each(count, self._came, reads=[self._score]).tolist()
        self._score, self._came = self._came, self._score
        return change if change < _ENDLESS else math.inf

    def scores(self) -> Mapping[str, Vector]:
        (length,) = self._operations.sum_each(squares, reads=[self._score]).tolist()
        if math.isfinite(length):
            self._operations.each(scale(inverse(math.sqrt(length))), self._score)
        return {"katz": self._score}

    def facts(self) -> Mapping[str, float]:
        return {"alpha": self._alpha}


def _greatest_inverse(degree: Any) -> Any:
    """Return 1 over the least degree that is not 0; 0 if all are."""
    positive = degree[degree > 0]
    return (1 / positive).max() if len(positive) else 0.0


def _root(least: float) -> Callable[..., None]:
    """Return a function that makes x of degrees, which are taken as ``least`` at least."""

    def root(x: Any, degree: Any) -> None:
        np.sqrt(np.maximum(degree, least, out=x), out=x)

    return root


def _greatest_ratio(came: Any, x: Any) -> Any:
    with np.errstate(over="ignore"):
        return (came / x).max() if len(x) else 0.0


def _add_and_scale(by: float) -> Callable[..., None]:
    def add(x: Any, came: Any) -> None:
        x += came
        x *= by
        np.maximum(x, _LEAST, out=x)  # of vertices that great weights leave far behind

    return add


def _count(alpha: float) -> Callable[..., Any]:
    """Return a function that makes scores of what came, and returns the sum of their changes."""

    def count(counted: Any, came: Any, score: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):  # scores that grow without end
            came *= alpha
            came += 1.0
            return total(counted, abs(came - score))

    return count


class GrowingScoresError(InputError):
    """The error that scores grow more and more until a run ends."""


@dataclass(frozen=True)
class Katz(ScoresQuestion):
    """The question. alpha: the factor of a walk for each of its edges; "auto": OF_BOUND over a
    bound of the greatest eigenvalue. tolerance: as in ScoresQuestion, for the mean change of a
    vertex.
    """

    alpha: float | Literal["auto"] = "auto"
    tolerance: float = 1e-6
    max_iterations: int = 1000
    name = "katz"
    program_type = KatzProgram
    by_vertex = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != "auto" and not 0 < self.alpha < math.inf:
            raise InputError(f"alpha must be 'auto' or positive, not {self.alpha}")

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {"alpha": self.alpha, **super().options(id_type)}

    def planned(self, info: GraphInfo) -> KatzProgram:
        n = info.vertices
        alpha = None if self.alpha == "auto" else self.alpha
        return KatzProgram(n, self.stop(n), self.weights(info), alpha)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        changes = [iteration["change"] for iteration in given.record["iterations"]]
        # As all changes are growth, they add up to the scores, of whose rounding small ones are.
        grows = changes[-1] > changes[-2:][0] and changes[-1] > _ROUNDING * sum(changes)
        if grows or not math.isfinite(changes[-1]):
            raise GrowingScoresError(
                f"alpha {given.record['facts']['alpha']:g} is too great for this graph: after "
                f"{len(changes)} iterations its scores still grow more and more; give less, or "
                "--alpha auto"
            )
        return super().answer(given, names, method)


def planned(info: GraphInfo) -> ScoresProgram:
    """Return the program for a plan, with default options."""
    return Katz().planned(info)
