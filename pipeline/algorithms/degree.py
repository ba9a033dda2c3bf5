"""Degrees: the number of edges of each vertex, and the sum of their weights.

Numbers of edges are the lengths of rows, and sums of weights are a product of the graph's matrix
with a vector of ones: a scan of the edges for each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.pieces.operators import WeightedSum
from ...partition.input.weights import WeightType
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.operations import DEGREES, Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..engines.operations.vectors import Counts, Vector, VectorType, links_bytes, vectors_bytes
from ..questions.degree import DegreeRecord, degree_columns
from ..results.columns import Column, Values
from ..results.names import Names
from ..results.result import Option
from .iterations import SCORES
from .run import Answer


@dataclass(frozen=True)
class DegreeProgram(SharedOperationsProgram):
    """The program. directed: whether the graph is. weights: the type of the edges' weights; None if
    they are not added up.
    """

    directed: bool
    weights: WeightType | None
    rows = ReadRows.BOTH

    @property
    def columns(self) -> Sequence[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return degree_columns(self.directed, self.weighted)

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _calls(self.weighted)

    def vector_types(self) -> Sequence[VectorType]:
        return _vector_types(self.directed, self.weighted)

    def held_bytes(self, counts: Counts) -> int:
        return _held_bytes(counts, self.directed, self.weighted)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        ways = (True, False) if self.directed else (True,)
        found = [operations.degrees(along) for along in ways]
        for degree in found:
            operations.add_loops(degree, self._times)
        if self.weights is not None:
            ones = operations.vector(SCORES, 1.0)
            for along in ways:
                found.append(self._sums(operations, ones, along))
        values = dict(zip(self.columns, found, strict=True))
        return ProgramResult(values, operations.edge_counts()._asdict())

    def _sums(self, operations: EdgeOperations, ones: Vector, along: bool) -> Vector:
        sums = operations.vector(SCORES)
        sum = WeightedSum(0.0, self.weights == "float32")
        operations.gather(sum, ones, sums, along, loops=self._times)
        return sums

    @property
    def _times(self) -> int:
        """Return how many times a self-loop counts: at each of its ends."""
        return 1 if self.directed else 2


def _calls(weighted: bool) -> Calls:
    return Calls((WeightedSum,) if weighted else ())


def _vector_types(directed: bool, weighted: bool) -> Sequence[VectorType]:
    ways = 2 if directed else 1
    return [DEGREES] * ways + [SCORES] * (1 + ways) * weighted


def _held_bytes(counts: Counts, directed: bool, weighted: bool) -> int:
    which_are_delegates, either_degree = counts.own, 4 * counts.own
    held = vectors_bytes(counts, _vector_types(directed, weighted))
    return held + links_bytes(counts.ghosts) + which_are_delegates + either_degree


@dataclass(frozen=True)
class Degree:
    """The question. unweighted: whether weights are not added up. A scan that was cut off begins
    again.
    """

    unweighted: bool = False
    name = "degree"
    step = "scan"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {"unweighted": True} if self.unweighted else {}

    def program(self, names: Names, info: GraphInfo) -> DegreeProgram:
        return self.planned(info)

    def planned(self, info: GraphInfo) -> DegreeProgram:
        weights = None if self.unweighted else info.weights
        return DegreeProgram(info.directed, weights and weights.kind)

    def calls(self, weighted: bool) -> Calls:
        return _calls(weighted and not self.unweighted)

    def held_bytes(self, counts: Counts) -> int:
        """Return the most that a program of any graph holds."""
        return _held_bytes(counts, True, not self.unweighted)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        found: dict[str, Any] = {**given.values}
        degrees = [values for values in found.values() if values.dtype == DEGREES.dtype]
        first, last = degrees[0], degrees[-1]  # the same if the graph is undirected
        record = DegreeRecord(
            greatest={name: values.max(initial=0).item() for name, values in found.items()},
            mean=float(first.sum()) / max(1, len(first)),
            isolated=len(first) - int(np.count_nonzero(first | last)),
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        columns = [
            Column(name, _Integers(values) if values.dtype == DEGREES.dtype else values)
            for name, values in found.items()
        ]
        return Answer(columns, {"degree": record})


class _Integers:
    """Values of a column that are stored without a sign, as integers with one: people subtract
    degrees from each other.
    """

    dtype, itemsize = np.dtype(np.int64), 8

    def __init__(self, values: Values) -> None:
        self._values = values

    def __getitem__(self, at: Any) -> Any:
        return self._values[at].astype(self.dtype)


def planned(info: GraphInfo) -> DegreeProgram:
    """Return the program for a plan, with default options."""
    return Degree().planned(info)
