"""Closeness centrality: how near a vertex is to those that reach it.

    closeness = (r - 1) / (sum of distances) * (r - 1) / (n - 1)

of a vertex that r vertices reach, itself among them, out of n: by distances along edges that lead
to it, scaled by Wasserman and Faust for graphs of several components (as NetworkX does by default).
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
from ..run.records import SourcesRecord
from .many_sources import Sources, Sums, arrays_of, column_of, sums_bytes
from .run import Answer


@dataclass(frozen=True)
class Closeness:
    """The question. sources: the vertices to tell of."""

    sources: Sources
    name = "closeness"
    step = "batch of sources"

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {**self.sources.told(id_type)}

    def program(self, names: Names, vertices: int) -> Program:
        return Sums(self.sources.places(names), along=False)

    def held_bytes(self, counts: Counts) -> int:
        sources = counts.vertices if self.sources.count is None else self.sources.count
        return sums_bytes(counts) + 8 * 4 * sources

    def engines_of_edges(
        self, edges: EdgeList, directed: bool, executor: Executor
    ) -> Sequence[ProgramEngine]:
        return []  # many passes want rows

    def answer(self, given: Given, names: Names, method: str) -> Answer:
        source, reached, total = arrays_of(given, "source", "reached", "total")
        n = sum(names.pieces)
        others = reached - 1.0
        value = np.divide(
            others**2, total * max(1, n - 1), out=np.zeros(len(source)), where=total > 0
        )
        record = SourcesRecord(
            sources=len(source),
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        column = column_of("closeness", source, value, names)
        return Answer((column,), {"closeness": record}, only=source)
