"""The operations on devices (EdgeOperations), and programs that are written in them.

Vectors are whole arrays on a device. ``gather`` goes through the rows of the vertices that edges
enter, or of those that they leave, as the program declares (gpu_programs/gather.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.gpu.graph import Array
from ....kernels.gpu_programs.gather import Gathering, gathering_bytes, warm_up
from ....kernels.gpu_programs.ranks import Ranks
from ....kernels.gpu_programs.rows import ProgramGraph
from ....kernels.pieces.operators import AnySum
from ..operations.forests import EdgeCounts
from ..operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..operations.saving import SavedSteps, Saving
from ..operations.vectors import Counts, Vector, VectorType, vectors_bytes

TEMPORARIES = 3
"""The number of arrays, of 8 bytes a vertex, that a function of vectors makes at once, at most."""


class DeviceOperations:
    """The operations on one device, or on those of several ranks that share the edges. Ranks have
    whole vectors each; what edges bring is added up over all ranks once a gather.

    ranks: None for one device.
    """

    def __init__(self, graph: ProgramGraph, saving: Saving, ranks: Ranks | None = None) -> None:
        self._graph, self._saving, self._ranks = graph, saving, ranks
        self._gatherings: dict[bool, Gathering] = {}
        self._edges = self._sent = 0
        self._due = False

    def vector(self, kind: VectorType, value: Any = 0) -> Vector:
        with self._graph.device.use() as cupy:
            return Vector(cupy.full(self._graph.vertices, value, kind.dtype), np.empty(0))

    def each(
        self, function: Callable[..., None], *vectors: Vector, reads: Sequence[Vector] = ()
    ) -> None:
        with self._graph.device.use():
            function(*(vector.own for vector in (*vectors, *reads)))

    def sum_each(
        self, function: Callable[..., Any], *vectors: Vector, reads: Sequence[Vector] = ()
    ) -> NDArray[np.float64]:
        with self._graph.device.use():
            return self._agreed(function(True, *(vector.own for vector in (*vectors, *reads))))

    def max_each(
        self, function: Callable[..., Any], *vectors: Vector, reads: Sequence[Vector] = ()
    ) -> NDArray[np.float64]:
        with self._graph.device.use():
            return self._agreed(function(*(vector.own for vector in (*vectors, *reads))))

    def _agreed(self, given: Any) -> NDArray[np.float64]:
        """Return the numbers that a function of vectors gave, on all ranks those of rank 0: devices
        of several kinds may add up in several orders. They bring along whether to save.
        """
        numbers = [float(number) for number in (given if isinstance(given, tuple) else (given,))]
        if self._ranks is None:
            return np.array(numbers)
        (told,) = self._ranks.from_first([np.array([*numbers, self._saving.due()])])
        self._due = bool(told[-1])
        return told[:-1]

    def degrees(self, along: bool = True) -> Vector:
        back = not along and self._graph.back is not None
        cut = self._graph.back if back else self._graph.cut
        assert cut is not None
        with self._graph.device.use() as cupy:
            offsets = cut.rows.offsets
            degree = (offsets[1:] - offsets[:-1]).astype(np.uint32)
            if self._ranks is not None:
                self._ranks.fold_whole(degree, cupy.add)
            return Vector(degree, np.empty(0))

    def gather(self, operator: AnySum, x: Vector, y: Vector, along: bool = True) -> None:
        back = not along and self._graph.back is not None
        if back not in self._gatherings:
            self._gatherings[back] = Gathering(self._graph, back)
        gathering = self._gatherings[back]
        self._edges += gathering.edges
        if self._ranks is None:
            gathering.run(operator, x.own, y.own)
            return
        with self._graph.device.use() as cupy:
            came = cupy.zeros_like(y.own)
            gathering.run(operator, x.own, came)
            self._ranks.fold_whole(came, cupy.add)
            y.own += came

    def edge_counts(self) -> EdgeCounts:
        counts = [self._edges, 0]
        if self._ranks is not None:
            counts = self._ranks.total([self._edges, self._ranks.sent - self._sent])
            self._sent = self._ranks.sent
        self._edges = 0
        return EdgeCounts(edges=int(counts[0]), sent=int(counts[1]))

    def load(self, values: Mapping[str, Vector]) -> SavedSteps | None:
        arrays = {name: np.empty(len(v.own), v.own.dtype) for name, v in values.items()}
        saved = self._saving.load(arrays)
        if saved is not None:
            with self._graph.device.use():
                for name, array in arrays.items():
                    own: Array = values[name].own
                    own.set(array)
        return saved

    def due(self) -> bool:
        return self._saving.due() if self._ranks is None else self._due

    def save(self, done: int, values: Mapping[str, Vector], facts: Any = None) -> None:
        self._saving.save(done, self.fetch(values), facts)

    def fetch(self, values: Mapping[str, Any]) -> dict[str, NDArray]:
        """Return the values of vectors, in host memory."""
        with self._graph.device.use():
            return {name: vector.own.get() for name, vector in values.items()}


class OperationsProgram(ABC):
    """A program that is written in the operations that all engines have. What makes it a
    SharedProgram follows from that.

    columns: as in Program. rows: the rows that its gathers read; BY_TARGET if all of them go along
    the edges.
    """

    columns: Sequence[str]
    rows = ReadRows.BY_TARGET
    wants_degrees = scans_once = False

    @abstractmethod
    def vector_types(self) -> Sequence[VectorType]:
        """Return the types of the vectors that it holds."""

    @abstractmethod
    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult: ...

    def device_bytes(self, vertices: int, entries: int) -> int:
        vectors = vectors_bytes(Counts(vertices, vertices, 0, 0), self.vector_types())
        ways = 2 if self.rows == ReadRows.BOTH else 1
        return vectors + TEMPORARIES * 8 * vertices + ways * gathering_bytes(vertices, entries)

    def compile_on(self, graph: ProgramGraph) -> None:
        warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        return self._answer(graph, DeviceOperations(graph, saving), tell)

    def exchange_bytes(self, vertices: int) -> int:
        came, part, parts_of_others = 8, 8, 2 * 8
        return (came + part + parts_of_others) * vertices

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        operations = DeviceOperations(graph, saving, ranks)
        return self._answer(graph, operations, lambda *_: ranks.check())

    def _answer(
        self, graph: ProgramGraph, operations: DeviceOperations, tell: Tell
    ) -> ProgramResult:
        with graph.device.use():  # a vector that is filled is not given to an operation
            given = self.run(operations, tell)
            return ProgramResult(operations.fetch(given.values), given.record)
