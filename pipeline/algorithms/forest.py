"""A minimum spanning forest: of each component, the edges of a spanning tree with the least sum of
weights.

Edges are compared by weight, then by their lesser end's id, then by the other end's. No two are
alike, so there is one forest. Rounds find it (Boruvka, O jistem problemu minimalnim, 1926;
Nesetril, Milkova, Nesetrilova, Otakar Boruvka on Minimum Spanning Tree Problem, 2001): each tree
takes the least edge that leaves it, and these edges join trees. Directions make no difference: if
two edges join the same vertices, the lesser weight counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.programs import forest, spanning
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.operations import Calls
from ..engines.operations.program import (
    EdgeOperations,
    ProgramResult,
    ReadRows,
    SpanningTrees,
    Tell,
)
from ..engines.operations.trees import sorting_bytes, trees_bytes
from ..engines.operations.vectors import (
    Counts,
    Vector,
    VectorType,
    links_bytes,
    vectors_bytes,
)
from ..questions.forest import ForestRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.rows import Pairs
from .run import Answer

_VECTORS = (VectorType(np.uint32), VectorType(np.uint64, ghosts=True))
"""The types of numbers, and of words by which vertices look at edges."""

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

_NAMED = 1 << 17
"""Number of edges whose ends are named at once."""

_SUMMED = 1 << 16
"""Number of weights that are Python's floats at once."""


@dataclass(frozen=True)
class ForestProgram(SharedOperationsProgram):
    """The program. weights: the kind of the weights that count; None if no weights do. Its columns
    are the global ids of both ends, the lesser user id first, and the weight (float32 or int64), in
    the order of rows.
    """

    weights: str | None
    rows = ReadRows.BOTH
    calls = Calls(kernels=(forest, spanning))

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def columns(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ("src", "dst", "weight") if self.weighted else ("src", "dst")

    def vector_types(self) -> Sequence[VectorType]:
        return _VECTORS

    def held_bytes(self, counts: Counts) -> int:
        return forest_bytes(counts)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        order = operations.id_order()
        number = operations.vector(_VECTORS[0])
        operations.put_numbers(number, order)
        # Arrow holds on to as much again that it has read it with. Without room for both, the order
        # is read once more when the rounds' vectors are gone.
        if 2 * order.nbytes > operations.extra_bytes:
            order = None
        trees, done = _grow(operations, number, tell)
        del number
        pairs, bits = trees.edges()
        del trees
        order = operations.id_order() if order is None else order
        src, dst = (order[: len(pairs)].copy() for _ in range(2))
        for first in range(0, len(pairs), _NAMED):
            some = slice(first, first + _NAMED)
            src[some], dst[some] = order[pairs[some] >> _HALF], order[pairs[some] & _LOW]
        del pairs, order
        values: dict[str, Any] = {"src": src, "dst": dst}
        if self.weights is not None:
            is_float = self.weights == "float32"
            values["weight"] = bits.view(np.float32) if is_float else bits.astype(np.int64)
        return ProgramResult(values, {**operations.edge_counts()._asdict(), "rounds": done})


def _grow(operations: EdgeOperations, number: Vector, tell: Tell) -> tuple[SpanningTrees, int]:
    """Join trees until no edge leaves any. Returns the trees, and the number of rounds. number: of
    each vertex, by rising user id.
    """
    trees, word = operations.trees(), operations.vector(_VECTORS[1])
    with trees.packed() as arrays:
        saved = operations.load(arrays)
        trees.found = 0 if saved is None else saved.facts
    done = 0 if saved is None else saved.done
    while True:
        trees.find_least(word, number)
        added = trees.join()
        done += 1
        tell(done, 0, f"edges {trees.found}")
        if not added:
            return trees, done
        operations.end_round(is_alone=False)
        if operations.due():
            with trees.packed() as arrays:
                operations.save(done, arrays, trees.found)


def forest_bytes(counts: Counts) -> int:
    """Return the bytes that a rank holds: vectors, trees with their edges, and messages; or the
    edges, when they are put in order and named, without vectors.
    """
    held = links_bytes(counts.ghosts) + vectors_bytes(counts, _VECTORS) + trees_bytes(counts)
    order, ends, weights = 4, 2 * 4, 4 + 8
    named = order + ends + weights
    return max(held, sorting_bytes(counts), named * counts.vertices)


@dataclass(frozen=True)
class Forest:
    """The question. unweighted: whether weights do not count."""

    unweighted: bool = False
    name = "forest"
    step = "round"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {"unweighted": True} if self.unweighted else {}

    def program(self, names: Names, info: GraphInfo) -> ForestProgram:
        return self.planned(info)

    def planned(self, info: GraphInfo) -> ForestProgram:
        weights = None if self.unweighted else info.weights
        return ForestProgram(weights and weights.kind)

    def calls(self, weighted: bool) -> Calls:
        return ForestProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return forest_bytes(counts)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        src, dst, *weights = (np.asarray(values) for values in given.values.values())
        record = ForestRecord(
            edges=len(src),
            trees=sum(names.pieces) - len(src),
            weight=_total(weights[0]) if weights else None,
            rounds=given.record["rounds"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        columns = [Column("weight", values) for values in weights]
        return Answer(columns, {"forest": record}, pairs=Pairs(src, dst))


def _total(weights: NDArray) -> int | float:
    """Return the sum of weights: exact, or the float next to it."""
    if weights.dtype.kind != "f":
        return int(weights.sum())
    firsts = range(0, len(weights), _SUMMED)
    return math.fsum(w for first in firsts for w in weights[first : first + _SUMMED].tolist())


def planned(info: GraphInfo) -> ForestProgram:
    """Return the program for a plan, with default options."""
    return Forest().planned(info)
