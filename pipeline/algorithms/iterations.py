"""Algorithms that repeat a step until it changes little: the loop of their programs, their stops
and their records; and scores of vertices, which a question such as HITS finds in this way.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ...kernels.pieces.operators import AnySum, Sum, WeightedSum
from ...partition.errors import InputError
from ...partition.input.weights import WeightType
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.operations import Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, Tell
from ..engines.operations.saving import SavedSteps
from ..engines.operations.vectors import Counts, Vector, VectorType, links_bytes, vectors_bytes
from ..questions.facts import IterationRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from .run import Answer

SCORES = VectorType(np.float64, ghosts=True)
"""The type of vectors of scores."""


class Stop(NamedTuple):
    """When a run ends. most: iterations that it does at most. tolerance: an iteration that changes
    less is the last one; None: all iterations are done.
    """

    most: int
    tolerance: float | None

    def is_reached(self, iterations: Sequence[IterationRecord]) -> bool:
        if len(iterations) >= self.most:
            return True
        return bool(iterations) and self.is_last(iterations[-1]["change"])

    def is_last(self, change: float) -> bool:
        """Return whether an iteration is the last one by what it has changed: less than the
        tolerance, or infinitely much.
        """
        return not math.isfinite(change) or (self.tolerance is not None and change < self.tolerance)

    def expected(self, iterations: Sequence[IterationRecord]) -> int:
        """Return the expected number of iterations in all, if the change falls by the same factor
        each time.
        """
        last = [record["change"] for record in iterations[-2:]]
        if self.tolerance is None or len(last) < 2 or not 0 < last[1] < last[0]:
            return self.most
        left = (math.log(last[1]) - math.log(self.tolerance)) / math.log(last[0] / last[1])
        return min(self.most, len(iterations) + max(1, math.ceil(left)))


class Step(Protocol):
    """A step that a run repeats."""

    def saved(self) -> Mapping[str, Vector]:
        """Return the vectors that the next step needs, by name."""
        ...

    def run(self) -> float:
        """Do the step once. Returns the sum of what it has changed."""
        ...


def iterate(
    operations: EdgeOperations,
    tell: Tell,
    stop: Stop,
    step: Step,
    iterations: list[IterationRecord],
) -> None:
    """Repeat a step until ``stop``, and save what it needs now and then.

    iterations: the records of iterations that are done; receives those of the others.
    """
    while not stop.is_reached(iterations):
        began = time.perf_counter()
        change = step.run()
        edge_counts = operations.edge_counts()
        iterations.append(
            IterationRecord(
                iteration=len(iterations) + 1,
                change=change,
                edges_examined=edge_counts.edges,
                bytes_read=edge_counts.read,
                bytes_sent=edge_counts.sent,
                seconds=time.perf_counter() - began,
            )
        )
        if stop.is_last(change):
            return
        tell(len(iterations), stop.expected(iterations), f"change {change:.1e}")
        if operations.due():
            operations.save(len(iterations), step.saved(), iterations)


# Scores


class ScoresStep(ABC):
    """A Step that makes scores of vertices better."""

    @abstractmethod
    def saved(self) -> Mapping[str, Vector]: ...

    @abstractmethod
    def run(self) -> float: ...

    @abstractmethod
    def scores(self) -> Mapping[str, Vector]:
        """Return the scores by column, once the last step is done."""

    def facts(self) -> Mapping[str, Any]:
        """Return facts for the run record."""
        return {}


@dataclass(frozen=True)
class ScoresProgram(SharedOperationsProgram):
    """A program that repeats a step to find scores. vertices: of the graph. weights: the type of
    the edges' weights; None if all edges are alike.

    vectors: the number of vectors that it holds.
    """

    vertices: int
    stop: Stop
    weights: WeightType | None
    vectors: ClassVar[int]

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return calls_of(self.weighted)

    @property
    def sum(self) -> AnySum:
        """Return the operator that adds up what edges carry."""
        return Sum() if self.weights is None else WeightedSum(0.0, self.weights == "float32")

    def vector_types(self) -> Sequence[VectorType]:
        return (SCORES,) * self.vectors

    def held_bytes(self, counts: Counts) -> int:
        return scores_bytes(counts, self.vectors)

    @abstractmethod
    def begin(self, operations: EdgeOperations) -> ScoresStep:
        """Return the step, which has the first scores."""

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        step = self.begin(operations)
        saved: SavedSteps | None = operations.load(step.saved())
        iterations: list[IterationRecord] = saved.facts if saved else []
        iterate(operations, tell, self.stop, step, iterations)
        tolerance = self.stop.tolerance
        converged = tolerance is not None and iterations[-1]["change"] < tolerance
        facts = {"converged": converged, **step.facts()}
        return ProgramResult(step.scores(), {"iterations": iterations, "facts": facts})


def calls_of(weighted: bool) -> Calls:
    return Calls((WeightedSum if weighted else Sum,))


def scores_bytes(counts: Counts, vectors: int) -> int:
    which_are_delegates = counts.own
    held = vectors_bytes(counts, [SCORES] * vectors)
    return held + links_bytes(counts.ghosts) + which_are_delegates


@dataclass(frozen=True)
class ScoresQuestion:
    """A question for scores that a ScoresProgram finds. tolerance: the run stops once an iteration
    changes less than this. max_iterations: the most iterations. unweighted: whether edges are
    alike, even where they have weights.

    by_vertex: whether the tolerance is compared with the mean change of a vertex, rather than with
    the sum of all changes.
    """

    tolerance: float
    max_iterations: int
    unweighted: bool = False
    name: ClassVar[str]
    program_type: ClassVar[type[ScoresProgram]]
    by_vertex: ClassVar[bool]
    step: ClassVar[str] = "iteration"
    weighted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < math.inf:
            raise InputError(f"the tolerance must be positive, not {self.tolerance}")
        if self.max_iterations < 1:
            raise InputError(f"iterations must be positive, not {self.max_iterations}")

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {
            "tolerance": self.tolerance,
            "max_iterations": self.max_iterations,
            **({"unweighted": True} if self.unweighted else {}),
        }

    def stop(self, vertices: int) -> Stop:
        return Stop(self.max_iterations, self.tolerance * (vertices if self.by_vertex else 1))

    def weights(self, info: GraphInfo) -> WeightType | None:
        return None if info.weights is None or self.unweighted else info.weights.kind

    def program(self, names: Names, info: GraphInfo) -> ScoresProgram:
        return self.planned(info)

    def planned(self, info: GraphInfo) -> ScoresProgram:
        return self.program_type(info.vertices, self.stop(info.vertices), self.weights(info))

    def calls(self, weighted: bool) -> Calls:
        return calls_of(weighted and not self.unweighted)

    def held_bytes(self, counts: Counts) -> int:
        return scores_bytes(counts, self.program_type.vectors)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        iterations: list[IterationRecord] = given.record["iterations"]
        facts = {
            "iterations": len(iterations),
            "change": iterations[-1]["change"],
            **given.record["facts"],
            "method": method,
        }
        columns = [Column(name, np.asarray(scores)) for name, scores in given.values.items()]
        return Answer(columns, {self.name: facts, "iterations": iterations})


# Functions of slices of vectors, with counted: as in ``sum_each``


def total(counted: Any, values: Any) -> Any:
    """Return the sum of the values that count."""
    some = values if counted is True else values[counted]
    if isinstance(some, np.ndarray) and some.dtype == np.bool_:
        return np.count_nonzero(some)  # which takes a tenth of the time of their sum
    return some.sum()


def squares(counted: Any, values: Any) -> Any:
    """Return the sum of the squares of the values that count."""
    with np.errstate(over="ignore"):
        return total(counted, values * values)


def scale(by: float) -> Callable[..., None]:
    """Return a function that multiplies values."""

    def scaled(values: Any) -> None:
        values *= by

    return scaled


def scale_and_compare(by: float) -> Callable[..., Any]:
    """Return a function that multiplies values, and returns the sum of their changes."""

    def scaled(counted: Any, values: Any, before: Any) -> Any:
        values *= by
        return total(counted, abs(values - before))

    return scaled


def inverse(number: float) -> float:
    """Return 1 / number; 0 for 0, so that scores that are all 0 stay so."""
    return 1 / number if number else 0.0
