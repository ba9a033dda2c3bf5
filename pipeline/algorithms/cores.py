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

from ...kernels.pieces.operators import CountSum, IntegerSum
from ...kernels.programs import cores as core_kernels
from ...kernels.programs.cores import Peeling, peel
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.marks import VertexPlaces
from ..engines.operations.operations import ALL_FOR_LISTED, Calls
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


@dataclass(frozen=True)
class CoresProgram(SharedOperationsProgram):
    """The program. wide: whether a degree may need more than 32 bits."""

    wide: bool = False
    columns = ("core",)
    rows = ReadRows.BOTH
    weighted = False

    @classmethod
    def of(cls, info: GraphInfo) -> CoresProgram:
        return cls(wide=info.directed and info.vertices > 1 << 31)

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Calls((IntegerSum if self.wide else CountSum,), (core_kernels,), whole=())

    @property
    def counts(self) -> VectorType:
        """Return the type of the vectors between whose vertices edges are counted."""
        return VectorType(np.uint64 if self.wide else np.uint32, ghosts=True)

    @property
    def state(self) -> Mapping[str, VectorType]:
        """Return the types of the vectors that are saved."""
        return {"degree": self.counts._replace(ghosts=False), "removed": self.counts}

    def vector_types(self) -> Sequence[VectorType]:
        return *self.state.values(), self.counts

    def held_bytes(self, counts: Counts) -> int:
        lists_of_left = 2 * 4 * (counts.own + counts.shared) // ALL_FOR_LISTED
        shared_sums = self.counts._replace(ghosts=False).bytes(counts._replace(own=0))
        vectors = vectors_bytes(counts, self.vector_types())
        return vectors + lists_bytes(counts) + lists_of_left + shared_sums

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        rounds = _KernelRounds.of(self, operations) or _Rounds(self, operations)
        while rounds.go_on():
            tell(rounds.done, 0, f"core number {rounds.k}")
            if operations.due():
                operations.save(rounds.done, rounds.state(), rounds.k)
        record = {**operations.edge_counts()._asdict(), "rounds": rounds.done}
        return ProgramResult({"core": rounds.core}, record)


class _Rounds:
    """Rounds by operations. k: the greatest core number so far. done: the number of rounds that
    have removed vertices.

    degree: the degrees of vertices that are left, among these, which are greater than k; the core
    numbers of all others. removed: 1 for vertices that the last round has removed, else 0. came:
    counts of removed neighbours.
    """

    def __init__(self, program: CoresProgram, operations: EdgeOperations) -> None:
        self._operations = operations
        self._operator = IntegerSum() if program.wide else CountSum()
        self._came = operations.vector(program.counts)
        self._state = {name: operations.vector(kind) for name, kind in program.state.items()}
        self._degree, self._removed = self._state.values()
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
        self._left: VertexPlaces | None = None  # all vertices, as long as a list does not pay
        self._last = operations.where(self._removed)
        count = partial(_count, self.k)
        self._all_count, self._left_count, self._last_count = operations.sum_each(
            count, reads=[self._degree, self._removed]
        )

    def state(self) -> Mapping[str, Vector]:
        return self._state

    @property
    def core(self) -> Vector:
        return _core(self._degree)

    def go_on(self) -> bool:
        """Do a round, unless all vertices are removed. Returns whether it did."""
        if not self._left_count:
            return False
        if self._last_count:
            changed = self._spread(self._last)
            self._removed.fill(0, self._last)
            places = self._left if changed is None else changed
            vectors = self._degree, self._came, self._removed
            self._remove(_remove, vectors, (), places)
        if not self._last_count:
            self._raise_k()
        return True

    def _spread(self, places: VertexPlaces) -> VertexPlaces | None:
        """Add up, in ``came``, the edges from removed vertices. Returns places as
        ``Operations.spread`` does.
        """
        operations = self._operations
        ways = (True, False) if operations.directed else (True,)
        counts = self._operator, self._removed, self._came
        return operations.union([operations.spread(*counts, along, places) for along in ways])

    def _raise_k(self) -> None:
        """Make k the least degree that is left, and remove the vertices that have it."""
        operations, degree = self._operations, self._degree
        least = partial(_negative_least, self.k)
        (negative,) = operations.max_each(least, reads=[degree], places=self._left)
        self.k = -int(negative)
        self._remove(_remove_least, (self._removed,), (degree,), self._left)
        if self._left_count * ALL_FOR_LISTED < self._all_count:
            mark = partial(_mark_left, self.k)
            operations.each(mark, self._came, reads=[degree], places=self._left)
            self._left = operations.where(self._came, among=self._left)
            self._came.fill(0, self._left)

    def _remove(
        self,
        function: Any,
        vectors: Sequence[Vector],
        reads: Sequence[Vector],
        places: VertexPlaces | None,
    ) -> None:
        """Remove vertices by a function of k and of vectors, which returns how many. places: of all
        vertices that may be concerned; None for all.
        """
        operations = self._operations
        (count,) = operations.sum_each(
            partial(function, self.k), *vectors, reads=reads, places=places
        )
        self._last, self._last_count = operations.where(self._removed, among=places), count
        self._left_count -= count
        self.done += int(count > 0)


class _KernelRounds:
    """Rounds by the kernel, of a graph whose edges are in memory. Its fields are those of
    ``_Rounds``, and it saves the same.
    """

    def __init__(
        self, program: CoresProgram, operations: EdgeOperations, rows: Rows, other_rows: Rows
    ) -> None:
        self._operations = operations
        self._rows = rows.piece, other_rows.piece, operations.directed
        n = len(rows.offsets) - 1
        self._queue, self._near = np.empty(n, np.uint32), np.empty(n, np.uint32)
        state = {name: operations.vector(kind) for name, kind in program.state.items()}
        self._degree, removed = (vector.own for vector in state.values())
        saved = operations.load(state)
        if saved is None:
            self._degree += _lengths(rows)
            if operations.directed:
                self._degree += _lengths(other_rows)
            self._peeling = Peeling(0, 0, 0, 0, 0, int(np.count_nonzero(self._degree)), 0)
            return
        last, left = np.flatnonzero(removed), int(np.count_nonzero(self._degree > saved.facts))
        self._queue[: len(last)] = last
        self._peeling = Peeling(saved.facts, 0, 0, len(last), 0, left, saved.done)

    @classmethod
    def of(cls, program: CoresProgram, operations: EdgeOperations) -> _KernelRounds | None:
        """Return None if the graph has no such edges, or if 32 bits might not hold a degree."""
        rows, other_rows = operations.rows_along(True), operations.rows_along(False)
        if rows is None or other_rows is None or program.wide:
            return None
        return cls(program, operations, rows, other_rows)

    @property
    def k(self) -> int:
        return self._peeling.k

    @property
    def done(self) -> int:
        return self._peeling.rounds

    @property
    def core(self) -> Vector:
        return _core(_vector(self._degree))

    def state(self) -> Mapping[str, Vector]:
        removed = np.zeros_like(self._degree)
        removed[self._queue[self._peeling.first : self._peeling.last]] = 1
        return {"degree": _vector(self._degree), "removed": _vector(removed)}

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


def _core(degree: Vector) -> Vector:
    """Return the core numbers as int32. degree: of vertices that are all removed."""
    own, shared = (
        values.view(np.int32) if values.itemsize == 4 else values.astype(np.int32)
        for values in (degree.own, degree.shared)
    )
    return Vector(own, shared)


def _lengths(rows: Rows) -> NDArray[np.uint32]:
    return np.diff(rows.offsets).astype(np.uint32, copy=False)


# Functions of slices of vectors, with counted: as in ``sum_each``


def _copy(degree: Any, degrees: Any) -> None:
    degree[:] = degrees


def _take(degree: Any, came: Any) -> None:
    degree[:] = came
    came[:] = 0


def _count(k: int, counted: Any, degree: Any, removed: Any) -> Any:
    """Return how many vertices there are, are left, and were removed by the last round."""
    groups = degree >= 0, degree > k, removed > 0
    return np.stack([(group & counted).sum() for group in groups])


def _negative_least(k: int, degree: Any) -> float:
    """Return minus the least degree that is greater than k. (Others are greatest, as unsigned
    integers, once k and one more is taken away.)
    """
    if not degree.size:
        return -math.inf
    beyond = degree - degree.dtype.type(k + 1)
    return -float(beyond.min()) - (k + 1)


def _remove(k: int, counted: Any, degree: Any, came: Any, removed: Any) -> Any:
    """Remove vertices whose degrees, without what came, are at most k. Returns how many."""
    left = degree > k
    degree -= came * left
    came[:] = 0
    leave = left & (degree <= k)
    degree[leave] = k
    removed[leave] = 1
    return (leave & counted).sum()


def _remove_least(k: int, counted: Any, removed: Any, degree: Any) -> Any:
    """Remove vertices whose degrees are k, which no core number is yet. Returns how many."""
    leave = degree == k
    removed[leave] = 1
    return (leave & counted).sum()


def _mark_left(k: int, marks: Any, degree: Any) -> None:
    marks[:] = degree > k


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
        return CoresProgram.of(info)

    def calls(self, weighted: bool) -> Calls:
        return CoresProgram().calls

    def held_bytes(self, counts: Counts) -> int:
        return CoresProgram(wide=counts.vertices > 1 << 31).held_bytes(counts)

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
    return CoresProgram.of(info)
