"""Eccentricity: the distance to the farthest vertex that one reaches.

In a graph of several components it is that within the vertex's own. The greatest one of some
vertices is a lower bound of the diameter; twice the least one, of vertices that reach all others of
an undirected graph, an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...partition.input.edges import EdgeList
from ..engines.operations.program import Counts, Given, Program, ProgramEngine
from ..results.names import Names
from ..results.result import Option
from ..run.execute import Executor
from ..run.records import EccentricityRecord
from .many_sources import Sources, Sums, arrays_of, column_of, sums_bytes
from .run import Answer


@dataclass(frozen=True)
class Eccentricity:
    """The question. sources: the vertices to tell of."""

    sources: Sources
    name = "eccentricity"
    step = "batch of sources"

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {**self.sources.told(id_type)}

    def program(self, names: Names, vertices: int) -> Program:
        return Sums(self.sources.places(names), along=True)

    def held_bytes(self, counts: Counts) -> int:
        sources = counts.vertices if self.sources.count is None else self.sources.count
        return sums_bytes(counts) + 8 * 4 * sources

    def engines_of_edges(
        self, edges: EdgeList, directed: bool, executor: Executor
    ) -> Sequence[ProgramEngine]:
        return []  # many passes want rows

    def answer(self, given: Given, names: Names, method: str) -> Answer:
        source, reached, farthest = arrays_of(given, "source", "reached", "farthest")
        n = sum(names.pieces)
        bounds = reached == n if not given.record["directed"] else reached < 0
        everywhere = farthest[bounds]
        record = EccentricityRecord(
            sources=len(source),
            diameter_at_least=int(farthest.max(initial=0)),
            diameter_at_most=2 * int(everywhere.min()) if len(everywhere) else None,
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        value = farthest.astype(np.int32)
        column = column_of("eccentricity", source, value, names)
        return Answer((column,), {"eccentricity": record}, only=source)
