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
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.turns import no_turns
from ...kernels.pieces.operators import LeastLeaving
from ...kernels.programs import forest, spanning
from ...kernels.programs.spanning import NO_PAIR, join_least, merge_least, take_least
from ...partition.store.manifest import GraphInfo
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import ProgramResult, Tell
from ..engines.operations.vectors import Counts, VectorType, links_bytes, vectors_bytes
from ..questions.forest import ForestRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.rows import Pairs
from .run import Answer

_WORDS = VectorType(np.uint64, ghosts=True)
_NUMBERS = VectorType(np.uint32)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

_AT_ONCE = 1 << 18
"""Number of trees whose least edges ranks tell each other at once."""


@dataclass(frozen=True)
class ForestProgram:
    """The program. weights: the kind of the weights that count; None if no weights do. Its columns
    are the global ids of both ends, the lesser user id first, and the weight (float32 or int64), in
    the order of rows.
    """

    weights: str | None
    scans_once = False

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("src", "dst", "weight") if self.weighted else ("src", "dst")

    @property
    def calls(self) -> Calls:
        return _CALLS

    def held_bytes(self, counts: Counts) -> int:
        return forest_bytes(counts)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        rounds = _Rounds(operations)
        while rounds.go_on():
            tell(rounds.done, 0, f"edges {rounds.found}")
            if operations.due():
                operations.save(rounds.done, rounds.state(), rounds.found)
        done, (pairs, weights) = rounds.done, rounds.forest()
        del rounds
        rising = np.argsort(pairs)
        pairs, bits = pairs[rising], weights[rising]
        order = operations.id_order()
        values: dict[str, Any] = {"src": order[pairs >> _HALF], "dst": order[pairs & _LOW]}
        if self.weights is not None:
            is_float = self.weights == "float32"
            values["weight"] = bits.view(np.float32) if is_float else bits.astype(np.int64)
        return ProgramResult(values, {**operations.edge_counts()._asdict(), "rounds": done})


_CALLS = Calls((LeastLeaving,), (forest, spanning))


class _Rounds:
    """The forest so far, the same on all ranks. Vertices are numbered by rising user id.

    tree: the least vertex of each vertex's tree. pairs, weights: room for an edge for each vertex,
    of which ``found`` are there: pairs of numbers (kernels/programs/spanning.py), and the bits of
    weights. done: the number of rounds.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        n = operations.graph.vertices
        self._number = operations.vector(_NUMBERS)
        operations.put_numbers(self._number, operations.id_order())
        self._word, self._least = operations.vector(_WORDS), operations.vector(_WORDS)
        self._least_weights, self._least_pairs = np.zeros(n, np.uint32), np.full(n, NO_PAIR)
        self._tree = np.arange(n, dtype=np.uint32)
        self._pairs, self._weights = np.zeros(n, np.uint64), np.zeros(n, np.uint32)
        self.found = self.done = 0
        saved = operations.load(self.state())
        if saved is not None:
            self.done, self.found = saved.done, saved.facts

    def state(self) -> dict[str, Any]:
        return {"tree": self._tree, "pairs": self._pairs, "weights": self._weights}

    def forest(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the pairs and weights of the edges."""
        return self._pairs[: self.found], self._weights[: self.found]

    def go_on(self) -> bool:
        """Do a round, and return whether it has found edges."""
        operations, least = self._operations, self._least

        def name(word: NDArray[np.uint64], number: NDArray[np.uint32]) -> None:
            word[:] = self._tree[number].astype(np.uint64) << _HALF | number

        operations.each(name, self._word, reads=[self._number])
        least.fill(NO_PAIR)
        for along in (True, False) if operations.directed else (False,):
            operations.gather_across(LeastLeaving(), self._word, least, along)
        least_edges = self._least_weights, self._least_pairs
        take_least(least.own, self._number.own, self._tree, *least_edges)
        if operations.communicator.rank == 0:  # all ranks have the same values of delegates
            take_least(least.shared, self._number.shared, self._tree, *least_edges)
        if operations.communicator.size > 1:
            self._tell_least()
        edges = self._weights, self._pairs, self.found
        found = join_least(self._tree, *least_edges, *edges)
        operations.team.run(forest.flatten, self._tree, no_turns(operations.team.threads))
        operations.total([0])  # all ranks agree on saving
        self.done += 1
        is_changed, self.found = found > self.found, found
        return is_changed

    def _tell_least(self) -> None:
        """Tell all ranks the least edges of trees, and take theirs."""
        communicator = self._operations.communicator
        weights, pairs = self._least_weights, self._least_pairs
        for first in range(0, len(pairs), _AT_ONCE):
            some = first + np.flatnonzero(pairs[first : first + _AT_ONCE] != NO_PAIR)
            message = [some.astype(np.uint32), weights[some], pairs[some]]
            came = communicator.exchange([message] * communicator.size)
            sent = sum(part.nbytes for part in message)
            self._operations.note_sent((communicator.size - 1) * sent)
            for rank, theirs in enumerate(came):
                if rank != communicator.rank:
                    merge_least(*theirs, weights, pairs)


def forest_bytes(counts: Counts) -> int:
    """Return the bytes that a rank holds: vectors, the forest, least edges of trees, and messages.
    When the edges are put in order, the least edges are gone.
    """
    vectors = vectors_bytes(counts, [_WORDS, _WORDS, _NUMBERS])
    number_order, trees, edges, least = 4, 4, 8 + 4, 4 + 8
    messages = 2 * (counts.ranks if counts.ranks > 1 else 0) * (4 + 4 + 8) * _AT_ONCE
    whole = counts.vertices * (number_order + trees + edges + least)
    in_order = counts.vertices * (2 * (8 + 4) + 8 + 4 + 2 * 4 + 8)
    return links_bytes(counts.ghosts) + messages + max(vectors + whole, in_order)


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
        return _CALLS

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
