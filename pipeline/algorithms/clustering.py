"""Triangles and local clustering coefficients.

The coefficient of an undirected graph is that of Watts, Strogatz: Collective dynamics of
'small-world' networks, Nature 393, 1998; that of a directed one is LDBC Graphalytics' (Iosup and
others: The LDBC Graphalytics Benchmark, 2020, section 2.2.3, LCC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.pieces import intersect
from ...kernels.prepare import merge
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import OperationsProgram
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.intersect import exact_sum, intersect_bytes
from ..engines.operations.operations import Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, Tell
from ..engines.operations.vectors import Counts, VectorType
from ..questions.clustering import ClusteringRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from .run import Answer

_UNIT = 2.0**53

_AT_ONCE = 1 << 18
"""Number of coefficients that are added up at once."""


@dataclass(frozen=True)
class ClusteringProgram(OperationsProgram):
    """The program: one step for each group of ranges of vertices (operations/intersect.py)."""

    columns = ("clustering", "triangles")
    weighted = False
    calls = Calls(kernels=(intersect, merge.count))

    def vector_types(self) -> Sequence[VectorType]:
        return ()

    def held_bytes(self, counts: Counts) -> int:
        return clustering_bytes(counts)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        common = operations.intersect()
        saved = operations.load(common.counts)
        common.part()
        edge_counts = EdgeCounts(*saved.facts) if saved else EdgeCounts()
        for done in common.groups(saved.done if saved else 0):
            more = operations.edge_counts()
            edge_counts = EdgeCounts(*map(sum, zip(edge_counts, more, strict=True)))
            tell(done, len(common.corners.neighbours), "")
            if operations.due():
                common.add_up()
                operations.save(done, common.counts, list(edge_counts))
                common.part()
        common.add_up()
        _, triangles, edges = common.corners
        joined = edges if operations.directed else triangles
        clustering, pairs = common.joined_shares(joined)
        if operations.directed:
            clustering /= 2  # an edge may have two directions
        clustering = common.by_vertex(clustering)
        values = {"clustering": clustering, "triangles": common.by_vertex(triangles)}
        facts = {"pairs": None if operations.directed else pairs, **edge_counts._asdict()}
        return ProgramResult(values, facts)


def exact_mean(shares: NDArray[np.float64]) -> float:
    """Return the mean of numbers from 0 to 1, 0 if there are none. It does not depend on their
    order: each is rounded to a multiple of 2^-53, and the sum of these is exact.

    >>> exact_mean(np.array([0.5, 0.25]))
    0.375
    """
    total = 0
    for first in range(0, len(shares), _AT_ONCE):
        total += exact_sum(np.rint(shares[first : first + _AT_ONCE] * _UNIT).astype(np.int64))
    return total / (int(_UNIT) * len(shares)) if len(shares) else 0.0


def clustering_bytes(counts: Counts) -> int:
    return intersect_bytes(counts.vertices)


@dataclass(frozen=True)
class Clustering:
    """The question."""

    name = "clustering"
    step = "vertex"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {}

    def program(self, names: Names, info: GraphInfo) -> ClusteringProgram:
        return ClusteringProgram()

    def calls(self, weighted: bool) -> Calls:
        return ClusteringProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return clustering_bytes(counts)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        clustering, triangles = (given.values[name] for name in ClusteringProgram.columns)
        assert isinstance(clustering, np.ndarray)
        assert isinstance(triangles, np.ndarray)
        total, pairs = exact_sum(triangles) // 3, given.record["pairs"]
        record = ClusteringRecord(
            triangles=total,
            average=exact_mean(clustering),
            transitivity=None if pairs is None else 3 * total / max(1, pairs),
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        columns = Column("clustering", clustering), Column("triangles", triangles)
        return Answer(columns, {"clustering": record})


def planned(info: GraphInfo) -> ClusteringProgram:
    """Return the program for a plan."""
    return ClusteringProgram()
