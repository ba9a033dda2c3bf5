"""Core numbers: the core number of a vertex is the greatest k such that the vertex is in a subgraph
in which all vertices have degree k or more.

Vertices are removed in rounds (kernels/programs/cores.py). If a single rank has all edges in host
memory, a kernel does the rounds. Otherwise removals are spread along edges as counts, and a round
costs about as much as the vertices that it removes have edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.pieces.operators import IntegerSum
from ...kernels.programs import cores as core_kernels
from ...kernels.programs.cores import Peeling, peel
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.marks import VertexPlaces
from ..engines.operations.operations import Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..engines.operations.vectors import Counts, Vector, VectorType, vectors_bytes
from ..engines.ranks.edges import Rows
from ..questions.cores import CoresRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from .run import Answer
from .searches import lists_bytes

_EDGES_AT_ONCE = 1 << 24
"""Number of edges after which a call of the kernel ends with its round."""

_COUNTS = VectorType(np.uint64, ghosts=True)
_STATE = {"degree": VectorType(np.uint64), "removed": _COUNTS, "core": VectorType(np.int32)}
"""The types of the vectors that are saved."""


@dataclass(frozen=True)
class CoresProgram(SharedOperationsProgram):
    """The program."""

    columns = ("core",)
    rows = ReadRows.BOTH
    weighted = False
    calls = Calls((IntegerSum,), (core_kernels,), whole=())

    def vector_types(self) -> Sequence[VectorType]:
        return (*_STATE.values(), _COUNTS)

    def held_bytes(self, counts: Counts) -> int:
        return cores_bytes(counts)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        rounds = _KernelRounds.of(operations) or _Rounds(operations)
        while rounds.go_on():
            tell(rounds.done, 0, f"core number {rounds.k}")
            if operations.due():
                operations.save(rounds.done, rounds.state(), rounds.k)
        record = {**operations.edge_counts()._asdict(), "rounds": rounds.done}
        return ProgramResult({"core": rounds.core}, record)


class _Rounds:
    """Rounds by operations. k: of vertices that are removed. done: the number of rounds that have
    removed vertices. core: of vertices that are removed.

    degree: the degrees of vertices that are left, among these; 0 for all others. removed: 1 for
    vertices that the last round has removed, else 0. came: counts of removed neighbours.
    """

    def __init__(self, operations: EdgeOperations) -> None:
        self._operations = operations
        self._came = operations.vector(_COUNTS)
        self._state = {name: operations.vector(kind) for name, kind in _STATE.items()}
        self._degree, self._removed, self.core = self._state.values()
        self.k = self.done = 0
        saved = operations.load(self._state)
        if saved is not None:
            self.done, self.k = saved.done, saved.facts
        elif operations.directed:
            self._removed.fill(1)
            self._spread(operations.where(self._removed))
            operations.each(_take, self._degree, self._came)
            self._removed.fill(0)
        else:
            operations.each(_copy, self._degree, reads=[operations.degrees()])
        self._left = operations.where(self._degree)
        self._last = operations.where(self._removed)
        self._left_count, self._last_count = operations.sum_each(
            _count, reads=[self._degree, self._removed]
        )

    def state(self) -> Mapping[str, Vector]:
        return self._state

    def go_on(self) -> bool:
        """Do a round, unless all vertices are removed. Returns whether it did."""
        if not self._left_count:
            return False
        if self._last_count:
            changed = self._spread(self._last)
            self._removed.fill(0, self._last)
            self._remove(self._left if changed is None else changed)
        if not self._last_count:
            self._left = self._operations.where(self._degree, among=self._left)
            (least,) = self._operations.max_each(
                _negative_least, reads=[self._degree], places=self._left
            )
            self.k = -int(least)
            self._remove(self._left)
        return True

    def _spread(self, places: VertexPlaces) -> VertexPlaces | None:
        """Add up, in ``came``, the edges from removed vertices. Returns places as
        ``Operations.spread`` does.
        """
        operations = self._operations
        ways = (True, False) if operations.directed else (True,)
        counts = IntegerSum(), self._removed, self._came
        return operations.union([operations.spread(*counts, along, places) for along in ways])

    def _remove(self, places: VertexPlaces) -> None:
        """Take away what came, and remove vertices with degrees of at most k. places: of all
        vertices that may be concerned.
        """
        vectors = self._degree, self._came, self.core, self._removed
        remove = partial(_remove, self.k)
        (count,) = self._operations.sum_each(remove, *vectors, places=places)
        self._last, self._last_count = self._operations.where(self._removed, among=places), count
        self._left_count -= count
        self.done += int(count > 0)


class _KernelRounds:
    """Rounds by the kernel, of a graph whose edges are in memory. Its fields are those of
    ``_Rounds``, and it saves the same.
    """

    def __init__(self, operations: EdgeOperations, rows: Rows, other_rows: Rows) -> None:
        self._operations = operations
        self._rows = rows.piece, other_rows.piece, operations.directed
        n = len(rows.offsets) - 1
        self._queue, self._near = np.empty(n, np.uint32), np.empty(n, np.uint32)
        state = {name: operations.vector(kind) for name, kind in _STATE.items()}
        saved = operations.load(state)
        if saved is None:
            self._degree = _lengths(rows)
            if operations.directed:
                self._degree += _lengths(other_rows)
            self._peeling = Peeling(0, 0, 0, 0, 0, int(np.count_nonzero(self._degree)), 0)
            return
        degree, removed, core = (vector.own for vector in state.values())
        self._degree = np.where(degree, degree, core).astype(np.uint32)
        last, left = np.flatnonzero(removed), int(np.count_nonzero(degree))
        self._queue[: len(last)] = last
        self._peeling = Peeling(saved.facts, 0, 0, len(last), 0, left, saved.done)

    @classmethod
    def of(cls, operations: EdgeOperations) -> _KernelRounds | None:
        """Return None if the graph has no such edges, or if 32 bits might not hold a degree."""
        rows, other_rows = operations.rows_along(True), operations.rows_along(False)
        if rows is None or other_rows is None:
            return None
        if (len(rows.offsets) - 1) * (2 if operations.directed else 1) >= 1 << 32:
            return None
        return cls(operations, rows, other_rows)

    @property
    def k(self) -> int:
        return self._peeling.k

    @property
    def done(self) -> int:
        return self._peeling.rounds

    @property
    def core(self) -> Vector:
        return _vector(self._degree.view(np.int32))

    def state(self) -> Mapping[str, Vector]:
        removed = np.zeros(len(self._degree), np.uint64)
        removed[self._queue[self._peeling.first : self._peeling.last]] = 1
        is_left = self._degree > self.k
        degree = np.where(is_left, self._degree, 0).astype(np.uint64)
        core = np.where(is_left, 0, self._degree).astype(np.int32)
        return {"degree": _vector(degree), "removed": _vector(removed), "core": _vector(core)}

    def go_on(self) -> bool:
        """Do some rounds, unless all vertices are removed. Returns whether it did."""
        if not self._peeling.left:
            return False
        arrays = self._degree, self._queue, self._near
        self._peeling, edges = peel(*self._rows, *arrays, self._peeling, _EDGES_AT_ONCE)
        self._operations.note(edges)
        return True


def _vector(values: NDArray) -> Vector:
    return Vector(values, np.empty(0, values.dtype))


def _lengths(rows: Rows) -> NDArray[np.uint32]:
    return np.diff(rows.offsets).astype(np.uint32, copy=False)


# Functions of slices of vectors, with counted: as in ``sum_each``


def _copy(degree: Any, degrees: Any) -> None:
    degree[:] = degrees


def _take(degree: Any, came: Any) -> None:
    degree[:] = came
    came[:] = 0


def _count(counted: Any, degree: Any, removed: Any) -> Any:
    """Return how many vertices are left, and how many the last round has removed."""
    return np.stack([((degree > 0) & counted).sum(), ((removed > 0) & counted).sum()])


def _negative_least(degree: Any) -> float:
    return -float(degree.min()) if degree.size else -math.inf


def _remove(k: int, counted: Any, degree: Any, came: Any, core: Any, removed: Any) -> Any:
    """Remove vertices whose degrees, without what came, are at most k. Returns how many."""
    left = degree > 0
    degree -= came * left
    came[:] = 0
    leave = left & (degree <= k)
    degree[leave] = 0
    core[leave] = k
    removed[leave] = 1
    return (leave & counted).sum()


def cores_bytes(counts: Counts) -> int:
    lists_of_left = 2 * 4 * (counts.own + counts.shared)
    shared_sums = 8 * counts.shared
    vectors = vectors_bytes(counts, CoresProgram().vector_types())
    return vectors + lists_bytes(counts) + lists_of_left + shared_sums


@dataclass(frozen=True)
class Cores:
    """The question. min: the least core number that is told of."""

    min: int = 0
    name = "cores"
    step = "round"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {"min": self.min}

    def program(self, names: Names, info: GraphInfo) -> CoresProgram:
        return CoresProgram()

    def calls(self, weighted: bool) -> Calls:
        return CoresProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return cores_bytes(counts)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        core = np.asarray(given.values["core"])
        largest = int(core.max(initial=0))
        record = CoresRecord(
            largest=largest,
            innermost=int(np.count_nonzero(core == largest)),
            rounds=given.record["rounds"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        only = np.flatnonzero(core >= self.min).astype(np.uint32) if self.min else None
        return Answer((Column("core", core, repeats=True),), {"cores": record}, only=only)


def planned(info: GraphInfo) -> CoresProgram:
    """Return the program for a plan."""
    return CoresProgram()
