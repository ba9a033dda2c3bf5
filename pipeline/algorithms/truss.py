"""Truss numbers: the truss number of an edge is the greatest k such that the edge is in a subgraph
in which every edge is in k - 2 triangles or more.

Rank 0 gets all edges, each once: an edge loses triangles that are anywhere in the graph. The rank's
threads remove edges in rounds (kernels/programs/truss.py). On a GPU, blocks do
(kernels/gpu_pieces/truss.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.sort import radix_sort, radix_sort_with
from ...kernels.base.team import Team
from ...kernels.base.turns import no_turns
from ...kernels.gpu_pieces import truss as on_device
from ...kernels.gpu_pieces.truss import Peeling
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.operators import UnitAmounts
from ...kernels.programs import truss
from ...kernels.programs.truss import (
    CURRENT,
    REMOVED,
    Neighbours,
    count_supports,
    list_neighbours,
    remove_edges,
)
from ...partition.store.manifest import GraphInfo
from ..engines.operations.contract import CONTRACTING, contraction_bytes
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts, VectorType, vectors_bytes
from ..questions.truss import TrussRecord
from ..results.columns import Column
from ..results.names import Names, in_id_order
from ..results.result import Option
from ..results.rows import Pairs
from .run import Answer

_NUMBERS = VectorType(np.uint32, ghosts=True)

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

_EDGE_BYTES = 8 + 2 * 8 + 4 + 1 + 3 * 4 + 16
"""Bytes for an edge while edges are removed: its key, two neighbours, its support and state, and
lists of edges near and current, and room to sort keys; fewer than while edges are collected.
"""


@dataclass(frozen=True)
class TrussProgram:
    """The program. edges: the number of edges of the graph."""

    edges: int
    columns = ("src", "dst", "truss")
    weighted = scans_once = wants_degrees = False
    rows = ReadRows.BY_TARGET
    calls = Calls((), (*CONTRACTING, radix_sort, truss), whole=())

    def held_bytes(self, counts: Counts) -> int:
        return truss_bytes(counts, self.edges)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        number, n = operations.vector(_NUMBERS), operations.graph.vertices
        operations.put_numbers(number)
        edges = operations.contract(number, UnitAmounts(), planned=self.edges)
        record = operations.edge_counts()._asdict()
        keys, positions = _number_by_degree(edges.first, edges.other, n)
        del edges
        rounds = _Rounds(keys, n, operations.team)
        while rounds.go_on():
            operations.communicator.check()
            tell(rounds.done, 0, _told(rounds.left, rounds.level))
        ends = np.argsort(positions).astype(np.uint32)
        src, dst = ends[keys >> _HALF], ends[keys & _LOW]
        numbers = rounds.support.astype(np.int32) + 2
        record |= {"edges": record["edges"] + rounds.looked, "rounds": rounds.done}
        record["triangles"] = rounds.triangles
        return ProgramResult({"src": src, "dst": dst, "truss": numbers}, record)

    def device_bytes(self, vertices: int, entries: int) -> int:
        del entries
        return on_device.peeling_bytes(vertices, self.edges)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        del saving  # rounds that were cut off begin again
        peeling = Peeling(graph)
        for _ in peeling.groups():
            tell(peeling.rounds, 0, _told(peeling.left, peeling.level))
        src, dst = map(graph.device.fetch, peeling.edges())
        numbers = graph.device.fetch(peeling.support).astype(np.int32) + 2
        record = EdgeCounts(edges=peeling.looked)._asdict()
        record |= {"rounds": peeling.rounds, "triangles": peeling.triangles}
        return ProgramResult({"src": src, "dst": dst, "truss": numbers}, record)


def _told(left: int, level: int) -> str:
    return f"edges left {left}, truss number {level + 2}"


def _number_by_degree(
    first: NDArray[np.uint32], other: NDArray[np.uint32], vertices: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return edges as keys (list_neighbours) of vertices that are numbered by falling degree, and
    each vertex's number. Of edges in both directions one is left.
    """
    degree = np.bincount(first, minlength=vertices) + np.bincount(other, minlength=vertices)
    positions = np.empty(vertices, np.uint32)
    positions[np.argsort(-degree, kind="stable")] = np.arange(vertices, dtype=np.uint32)
    keys = _edge_keys(positions[first], positions[other])
    bits = max(1, (vertices - 1).bit_length())
    keys = radix_sort(keys, np.empty_like(keys), bits, bits)
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]], positions


def _edge_keys(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return keys of edges: the lesser end in the high half, the other one in the low half."""
    return np.minimum(one, other).astype(np.uint64) << _HALF | np.maximum(one, other)


class _Rounds:
    """Rounds that remove edges. support: of each edge; of a removed one, its truss number less 2.
    level: the support of the edges that a round removes. left: the number of edges that are not
    removed. done: the number of rounds. looked: how many neighbours rounds have looked at.

    ``_near`` lists edges whose supports are at most ``_limit``, and only these are looked through
    when the level rises. When none is left, the limit becomes twice the least support, and all
    edges are looked through (a range of the buckets of Dhulipala, Blelloch, Shun: Julienne, 2017).
    """

    def __init__(self, keys: NDArray[np.uint64], vertices: int, team: Team) -> None:
        self._keys, self._team = keys, team
        self._neighbours = Neighbours(
            np.empty(vertices + 1, np.int64),
            np.empty(2 * len(keys), np.uint32),
            np.empty(2 * len(keys), np.uint32),
        )
        list_neighbours(keys, np.empty(vertices, np.int64), self._neighbours)
        self.support = np.empty(len(keys), np.uint32)
        team.run(count_supports, keys, self._neighbours, self.support, no_turns(team.threads))
        self.triangles = int(self.support.sum(dtype=np.int64)) // 3
        self._state = np.zeros(len(keys), np.uint8)
        self._current = np.empty(0, np.uint32)
        self._near, self._following = np.empty((2, len(keys)), np.uint32)
        self._counts = np.zeros(2, np.int64)
        self._limit = self.level = self.done = self.looked = 0
        self.left = len(keys)

    def go_on(self) -> bool:
        """Do a round, unless all edges are removed. Returns whether it did."""
        if not self.left:
            return False
        if not len(self._current):
            self._raise_level()
        current, state, counts = self._current, self._state, self._counts
        state[current], counts[0] = CURRENT, 0
        place = self._keys, self._neighbours, self.support, state, self.level, self._limit
        lists = current, self._following, self._near, counts, no_turns(self._team.threads)
        self.looked += sum(self._team.run(remove_edges, *place, *lists))
        state[current] = REMOVED
        self.left -= len(current)
        self.done += 1
        self._current = self._following[: counts[0]].copy()
        return True

    def _raise_level(self) -> None:
        near = self._near[: self._counts[1]]
        near = near[self._state[near] != REMOVED]
        if not len(near):
            left = np.flatnonzero(self._state != REMOVED)
            self._limit = 2 * int(self.support[left].min())
            near = left[self.support[left] <= self._limit].astype(np.uint32)
        support = self.support[near]
        self.level = int(support.min())
        self._current, near = near[support == self.level], near[support != self.level]
        self._counts[1] = len(near)
        self._near[: len(near)] = near


def truss_bytes(counts: Counts, edges: int) -> int:
    vertices = vectors_bytes(counts, (_NUMBERS,)) + (8 + 8 + 8 + 4) * counts.vertices
    return vertices + max(contraction_bytes(edges), _EDGE_BYTES * edges)


@dataclass(frozen=True)
class Truss:
    """The question."""

    name = "truss"
    step = "round"
    weighted = False

    def options(self, id_type: pa.DataType) -> Mapping[str, Option]:
        return {}

    def program(self, names: Names, info: GraphInfo) -> TrussProgram:
        return planned(info)

    def calls(self, weighted: bool) -> Calls:
        return TrussProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return truss_bytes(counts, counts.edges)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        src, dst, number = (np.asarray(given.values[name]) for name in TrussProgram.columns)
        pairs, number = _in_id_order(src, dst, number, in_id_order(names))
        largest = int(number.max(initial=0))
        record = TrussRecord(
            largest=largest,
            innermost=int(np.count_nonzero(number == largest)),
            triangles=given.record["triangles"],
            rounds=given.record["rounds"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        return Answer((Column("truss", number, repeats=True),), {"truss": record}, pairs=pairs)


def _in_id_order(
    src: NDArray[np.uint32], dst: NDArray[np.uint32], number: NDArray, order: NDArray[np.uint32]
) -> tuple[Pairs, NDArray]:
    """Return edges by rising ids, each with its lesser end first, and their numbers. order: the
    vertices by rising id.
    """
    by_id = np.empty_like(order)
    by_id[order] = np.arange(len(order), dtype=np.uint32)
    keys = _edge_keys(by_id[src], by_id[dst])
    bits, kind = max(1, (len(order) - 1).bit_length()), number.dtype
    scratch = np.empty_like(keys), np.empty_like(src)
    keys, numbers = radix_sort_with(keys, number.view(np.uint32), *scratch, bits, bits)
    return Pairs(order[keys >> _HALF], order[keys & _LOW]), numbers.view(kind)


def planned(info: GraphInfo) -> TrussProgram:
    """Return the program for a plan, and for a run."""
    return TrussProgram(info.edges)
