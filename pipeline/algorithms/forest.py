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

from ...kernels.pieces.operators import LeastLeaving
from ...kernels.programs import forest, spanning
from ...kernels.programs.spanning import NO_PAIR
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
from ..engines.operations.trees import trees_bytes
from ..engines.operations.vectors import Counts, VectorType, links_bytes, vectors_bytes
from ..questions.forest import ForestRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.rows import Pairs
from .iterations import total
from .run import Answer

_WORDS = VectorType(np.uint64, ghosts=True)
_VECTORS = (VectorType(np.uint32), _WORDS, _WORDS)
"""The types of numbers, of words by which vertices look at edges, and of least edges."""

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class ForestProgram(SharedOperationsProgram):
    """The program. weights: the kind of the weights that count; None if no weights do. Its columns
    are the global ids of both ends, the lesser user id first, and the weight (float32 or int64), in
    the order of rows.
    """

    weights: str | None
    rows = ReadRows.BOTH
    calls = Calls((LeastLeaving,), (forest, spanning))

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
        trees, done = _grow(operations, order, tell)
        pairs, bits = trees.pairs[: trees.found], trees.weights[: trees.found]
        del trees
        rising = pairs.argsort()
        pairs, bits = pairs[rising], bits[rising]
        values: dict[str, Any] = {"src": order[pairs >> _HALF], "dst": order[pairs & _LOW]}
        if self.weights is not None:
            is_float = self.weights == "float32"
            values["weight"] = bits.view(np.float32) if is_float else bits.astype(np.int64)
        return ProgramResult(values, {**operations.edge_counts()._asdict(), "rounds": done})


def _grow(operations: EdgeOperations, order: Any, tell: Tell) -> tuple[SpanningTrees, int]:
    """Join trees until no edge leaves any. Returns the trees, and the number of rounds. order: the
    vertices by rising user id.
    """
    number, word, least = (operations.vector(kind) for kind in _VECTORS)
    operations.put_numbers(number, order)
    trees = operations.trees()
    saved = operations.load(trees.saved)
    done = 0 if saved is None else saved.done
    trees.found = 0 if saved is None else saved.facts

    while True:
        trees.set_words(word, least, number)
        least.fill(NO_PAIR)
        for along in (True, False) if operations.directed else (False,):
            operations.gather_across(LeastLeaving(), word, least, along)
        (leaving,) = operations.sum_each(_count_leaving, reads=[least]).tolist()
        if leaving:
            trees.join_least(least, number)
        done += 1
        tell(done, 0, f"edges {trees.found}")
        if not leaving:
            return trees, done
        if operations.due():
            operations.save(done, trees.saved, trees.found)


def _count_leaving(counted: Any, least: Any) -> Any:
    """Return the number of vertices that count and have an edge that leaves their tree."""
    return total(counted, least != NO_PAIR)


def forest_bytes(counts: Counts) -> int:
    """Return the bytes that a rank holds: vectors, trees with their edges, and messages. When the
    edges are put in order, the vectors and the least edges are gone.
    """
    number_order, in_order = 4, 2 * (8 + 4) + 8 + 4 + 2 * 4 + 8
    held = number_order * counts.vertices + trees_bytes(counts)
    held += vectors_bytes(counts, _VECTORS)
    return links_bytes(counts.ghosts) + max(held, (number_order + in_order) * counts.vertices)


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
    return math.fsum(weights.tolist()) if weights.dtype.kind == "f" else int(weights.sum())


def planned(info: GraphInfo) -> ForestProgram:
    """Return the program for a plan, with default options."""
    return Forest().planned(info)
