"""The operations on devices (EdgeOperations), and programs that are written in them.

Vectors are whole arrays on a device, and so are lists of places; only numbers come to the host.
Operations go through the rows of the vertices that edges enter, or of those that they leave, as the
program declares (gpu_programs/gather.py, gpu_pieces/).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ....kernels.gpu.device import Device
from ....kernels.gpu.graph import Array
from ....kernels.gpu_pieces import across, folding, intersect, spread, tally, trees
from ....kernels.gpu_pieces.across import GatheringAcross
from ....kernels.gpu_pieces.communities import (
    WeighedRows,
    added_up,
    contract,
    contracting_bytes,
    warm_up_contract,
)
from ....kernels.gpu_pieces.folding import Folding
from ....kernels.gpu_pieces.intersect import Intersecting, intersecting_bytes
from ....kernels.gpu_pieces.spread import Spreading, spreading_bytes
from ....kernels.gpu_pieces.tally import Tallying, tallying_bytes
from ....kernels.gpu_pieces.tracing import call_traced
from ....kernels.gpu_pieces.trees import DeviceTrees, trees_bytes
from ....kernels.gpu_pieces.vertices import fill_places, list_once, list_others
from ....kernels.gpu_programs import components, gather
from ....kernels.gpu_programs.gather import Gathering, gathering_bytes
from ....kernels.gpu_programs.meeting import closed_by_all
from ....kernels.gpu_programs.ranks import Ranks
from ....kernels.gpu_programs.rows import CutRows, ProgramGraph, rows_at
from ....kernels.pieces import contract as contract_kernels
from ....kernels.pieces import intersect as intersect_kernels
from ....kernels.pieces.operators import (
    FOLDS,
    AnySum,
    MostCommon,
    ScaledWeights,
    Spread,
    UnitAmounts,
    reads_weights,
)
from ....kernels.programs import forest as forest_kernels
from ....kernels.programs import spanning
from ....kernels.programs.spanning import NO_PAIR
from ...ranks.communicator import Message
from ..operations.contract import Contracted
from ..operations.forests import EdgeCounts
from ..operations.marks import VertexPlaces
from ..operations.operations import Calls
from ..operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..operations.saving import DeviceSaving, SavedSteps, Saving, Values
from ..operations.spill import Pairs
from ..operations.vectors import Counts, Vector, VectorType, vectors_bytes

TEMPORARIES = 3
"""The number of arrays, of 8 bytes a vertex, that a function of vectors makes at once, at most."""

_LISTS = 4  # of vertices, that a program over spread holds at once


class DeviceVector(Vector):
    """Values of vertices on a device: a whole array, ``own``."""

    def __init__(self, own: Array, device: Device) -> None:
        super().__init__(own, np.empty(0))
        self._device = device

    def fill(self, value: Any, places: VertexPlaces | None = None) -> None:
        if places is None:
            self.own[:] = value
        else:
            fill_places(self._device, self.own, value, places.own)


class DeviceSpanningTrees:
    """The trees of a spanning forest on a device: SpanningTrees. take: puts, into an array by
    vertex, the least edge of each vertex to another tree, by the words of all.
    """

    def __init__(self, device: Device, vertices: int, take: Callable[[Array, Array], None]) -> None:
        self._trees, self._take = DeviceTrees(device, vertices), take
        self._device = device
        with device.use() as cupy:
            self._least = cupy.zeros(vertices, np.uint64)
        self.found = 0

    @contextmanager
    def packed(self) -> Iterator[Values]:
        trees = self._trees
        yield {"tree": trees.tree, "pairs": trees.pairs, "weights": trees.weights}

    def find_least(self, words: Vector, numbers: Vector) -> None:
        self._trees.set_words(words.own, self._least, numbers.own)
        self._numbers = numbers.own
        with self._device.use():
            self._least.fill(NO_PAIR)
        self._take(words.own, self._least)

    def join(self) -> int:
        before = self.found
        self.found = self._trees.join_least(self._least, self._numbers, before)
        return self.found - before

    def edges(self) -> tuple[Array, Array]:
        with self._device.use():
            pairs, weights = self._trees.pairs[: self.found], self._trees.weights[: self.found]
            rising = pairs.argsort()
            return pairs[rising], weights[rising]


class DeviceIntersections:
    """The triangles of a graph on one device: AnyIntersections. note: called with the number of
    entries that were looked at.
    """

    def __init__(self, intersecting: Intersecting, note: Callable[[int], None]) -> None:
        self._intersecting, self._note = intersecting, note
        self.corners = intersecting.corners

    @property
    def counts(self) -> Values:
        return {name: counts for name, counts in self.corners._asdict().items() if len(counts)}

    def part(self) -> None:
        """Do nothing: no other rank counts."""

    def add_up(self) -> None:
        """Do nothing, as ``part``."""

    def groups(self, done: int) -> Iterator[int]:
        for finished in self._intersecting.groups(done):
            self._note(self._intersecting.looked())
            yield finished

    def joined_shares(self, joined: Array) -> tuple[Array, int]:
        return self._intersecting.joined_shares(joined)

    def by_vertex(self, counts: Array) -> Array:
        positions = self._intersecting.positions
        return counts[positions] if len(positions) else counts


class DeviceOperations:
    """The operations on one device, or on those of several ranks that share the edges. Ranks have
    whole vectors each; what edges bring is added up over all ranks once a gather.

    ranks: None for one device. scratch: None: a program has no files here.
    """

    scratch = None

    def __init__(self, graph: ProgramGraph, saving: Saving, ranks: Ranks | None = None) -> None:
        self.graph, self._saving, self._ranks = graph, saving, ranks
        self.directed = not graph.twice
        self._gatherings: dict[bool, Gathering] = {}
        self._across: dict[bool, GatheringAcross] = {}
        self._spreading: Spreading | None = None
        self._tallying: Tallying | None = None
        self._folding: Folding | None = None
        self._edges = self._sent = 0
        self._due = False

    def vector(self, kind: VectorType, value: Any = 0) -> Vector:
        device = self.graph.device
        with device.use() as cupy:
            own = cupy.full(self.graph.vertices, value, kind.dtype)
            return DeviceVector(own, device)

    def each(
        self,
        function: Callable[..., None],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> None:
        self._call(function, vectors, reads, places)

    def sum_each(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]:
        return self._agreed(self._call(partial(function, True), vectors, reads, places))

    def max_each(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]:
        with self.graph.device.use():
            return self._agreed(self._call_plain(function, vectors, reads, places), exact=True)

    def _call(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Vector],
        reads: Sequence[Vector],
        places: VertexPlaces | None,
    ) -> Any:
        """Call a function with the values of vectors, at some places or all, and return its result.
        It is one kernel if that can be made of it.
        """
        with self.graph.device.use():
            arrays = [vector.own for vector in (*vectors, *reads)]
            at = None if places is None else places.own
            sums = call_traced(self.graph.device, function, arrays, len(vectors), at)
            if sums is not None:
                return tuple(sums)
            return self._call_plain(function, vectors, reads, places)

    def _call_plain(
        self,
        function: Callable[..., Any],
        vectors: Sequence[Vector],
        reads: Sequence[Vector],
        places: VertexPlaces | None,
    ) -> Any:
        arrays = [vector.own for vector in (*vectors, *reads)]
        if places is None:
            return function(*arrays)
        picked = [array[places.own] for array in arrays]
        given = function(*picked)
        for array, values in zip(arrays[: len(vectors)], picked, strict=False):
            array[places.own] = values
        return given

    def _agreed(self, given: Any, exact: bool = False) -> NDArray[np.float64]:
        """Return the numbers that a function of vectors gave, on all ranks those of rank 0: devices
        of several kinds may add up in several orders. They bring along whether to save.

        exact: whether the order makes no difference, as for whole numbers. Then ranks that fold in
        memory, by which they know whether to save, tell each other nothing.
        """
        with self.graph.device.use():
            numbers, whole = _plain(given)
        folds = self._folds_in_memory
        if self._ranks is None or ((exact or whole) and folds):
            return np.array(numbers, np.float64)
        if folds and len(numbers) <= folding.MOST:
            numbers = folds.from_first(numbers)
            self._due = folds.due
            return np.array(numbers)
        (told,) = self._ranks.from_first([np.array([*numbers, self._saving.due()])])
        self._due = bool(told[-1])
        return told[:-1]

    def degrees(self, along: bool = True) -> Vector:
        back = not along and self.graph.back is not None
        cut = self.graph.back if back else self.graph.cut
        assert cut is not None
        with self.graph.device.use():
            offsets = cut.rows.offsets
            degree = (offsets[1:] - offsets[:-1]).astype(np.uint32)
            if self._ranks is not None:
                self._fold(degree, "add")
            return DeviceVector(degree, self.graph.device)

    def gather(
        self, operator: AnySum, x: Vector, y: Vector, along: bool = True, *, loops: int = 0
    ) -> None:
        back = not along and self.graph.back is not None
        if back not in self._gatherings:
            self._gatherings[back] = Gathering(self.graph, back)
        gathering = self._gatherings[back]
        self._edges += gathering.edges
        with self.graph.device.use() as cupy:
            if self._ranks is None:
                gathering.run(operator, x.own, y.own)
            else:
                came = cupy.zeros_like(y.own)
                gathering.run(operator, x.own, came)
                self._fold(came, "add")
                y.own += came
            if loops and self._loops is not None:
                places, weights = self._loops
                times = loops * weights if reads_weights(operator) else loops
                y.own[places] += times * x.own[places]

    @cached_property
    def _loops(self) -> tuple[Array, Array] | None:
        """Return the vertices with self-loops that the graph keeps, and the weights of these."""
        kept = self.graph.loops and self.graph.loops()
        if kept is None:
            return None
        with self.graph.device.use() as cupy:
            return cupy.asarray(kept.vertices), cupy.asarray(kept.weights.astype(np.float64))

    def add_loops(self, degree: Vector, times: int) -> None:
        if self._loops is not None:
            with self.graph.device.use():
                degree.own[self._loops[0]] += times

    def spread(
        self, operator: Spread, x: Vector, y: Vector, along: bool, places: VertexPlaces
    ) -> VertexPlaces | None:
        with self.graph.device.use() as cupy:
            if self._spreading is None:
                self._spreading = Spreading(self.graph)
            into = y.own if self._ranks is None else cupy.full_like(y.own, operator.unit)
            changed, edges = self._spreading.run(operator, x.own, into, along, places.own)
            self._edges += edges
            if self._ranks is not None:
                fold = FOLDS[type(operator)].__name__
                self._fold(into, fold)
                getattr(cupy, fold)(y.own, into, out=y.own)
                return None
            return None if changed is None else _places(changed)

    def trees(self) -> DeviceSpanningTrees:
        return DeviceSpanningTrees(self.graph.device, self.graph.vertices, self._take_least_across)

    def _take_least_across(self, words: Array, least: Array) -> None:
        for back in (False, True) if self.directed else (False,):
            if back not in self._across:
                self._across[back] = GatheringAcross(self.graph, back)
            self._edges += self._across[back].edges
            self._across[back].run(words, least)
        if self._ranks is not None:
            self._fold(least, "minimum")

    @property
    def extra_bytes(self) -> int:
        return self.graph.room

    def tally(
        self, rule: MostCommon, amounts: UnitAmounts | ScaledWeights, x: Vector, y: Vector
    ) -> None:
        assert isinstance(rule, MostCommon)
        assert self._ranks is None
        if self._tallying is None:
            self._tallying = Tallying(self.graph, amounts)
        self._tallying.run(x.own, y.own)
        self._edges += self._tallying.edges

    def intersect(self) -> DeviceIntersections:
        assert self._ranks is None
        return DeviceIntersections(Intersecting(self.graph), self.note)

    def contract(self, labels: Vector, amounts: UnitAmounts, planned: int = 0) -> Contracted:
        del planned  # all pairs have room
        graph = self.graph
        leaving = leaving_of(graph)
        self._edges += leaving.rows.edges
        n, unit = graph.vertices, UnitAmounts.__name__
        rows = WeighedRows(leaving, amounts, None, unit)
        made = contract(graph.device, rows, labels.own, n, graph.room)
        others, sums = made.cut.rows, made.weights
        assert sums is not None
        with graph.device.use() as cupy:
            every = cupy.arange(others.edges, dtype=others.offsets.dtype)
            first = rows_at(cupy, others.offsets, every).astype(np.uint32)
            if self._ranks is None:
                return Contracted(first, others.near, sums)
            keys = first.astype(np.uint64) << np.uint64(32) | others.near
            came = self._ranks.to_first([keys, sums])
            pairs = [cupy.concatenate([cupy.asarray(part) for part in parts]) for parts in came]
            return Contracted.of(Pairs(*added_up(cupy, *pairs)))

    def join(self) -> NDArray[np.uint32]:
        self._edges += self.graph.cut.rows.edges
        if self._ranks is None:
            return components.components(self.graph)
        trees = components.join_shares(self.graph, self._ranks)
        return np.empty(0, np.uint32) if trees is None else self.graph.device.fetch(trees)

    # Vertices

    def where(
        self, values: Vector, other_than: Any = 0, among: VertexPlaces | None = None
    ) -> VertexPlaces:
        among_own = None if among is None else among.own
        return _places(list_others(self.graph.device, values.own, other_than, among_own))

    def union(self, sets: Sequence[VertexPlaces | None]) -> VertexPlaces | None:
        known = [places.own for places in sets if places is not None]
        if len(known) < len(sets):
            return None
        one = known[0] if len(known) == 1 else None
        n = self.graph.vertices
        return _places(list_once(self.graph.device, known, n) if one is None else one)

    def id_order(self) -> Array:
        """Return the vertices by rising user id, on the device: uint32 (n,)."""
        assert self.graph.id_order is not None
        with self.graph.device.use() as cupy:
            return cupy.asarray(self.graph.id_order())

    def put(self, into: Vector, vertices: Array, values: Array) -> VertexPlaces:
        with self.graph.device.use() as cupy:
            places = _places(cupy.asarray(vertices, np.uint32))
            into.own[places.own] = cupy.asarray(values)
            return places

    def put_numbers(self, into: Vector, order: Array | None = None) -> None:
        with self.graph.device.use() as cupy:
            numbers = cupy.arange(self.graph.vertices, dtype=np.uint32)
            into.own[slice(None) if order is None else order] = numbers

    def rows_along(self, along: bool) -> None:
        """Return None: a device has no rows that kernels of CPUs read."""

    def note(self, edges: int, read: int = 0) -> None:
        """Count edges that a program has looked at by itself. read: 0."""
        del read
        self._edges += edges

    def edge_counts(self) -> EdgeCounts:
        counts = [self._edges, 0]
        if self._ranks is not None:
            counts = self._ranks.total([self._edges, self._ranks.sent - self._sent])
            self._sent = self._ranks.sent
        self._edges = 0
        return EdgeCounts(edges=int(counts[0]), sent=int(counts[1]))

    def load(self, values: Values) -> SavedSteps | None:
        owns: dict[str, Array] = {name: getattr(v, "own", v) for name, v in values.items()}
        arrays = {name: np.empty(len(own), own.dtype) for name, own in owns.items()}
        saved = self._saving.load(arrays)
        if saved is not None:
            with self.graph.device.use():
                for name, array in arrays.items():
                    if hasattr(owns[name], "set"):
                        owns[name].set(array)
                    else:
                        owns[name][:] = array
        return saved

    # What a rank does alone, which is all that one device does

    @property
    def is_single(self) -> bool:
        return self._ranks is None

    def kept_loops(self) -> Any:
        return self.graph.loops and self.graph.loops()

    def end_round(self, is_alone: bool) -> None:
        """End a round of all ranks, which then know whether to save."""
        if self._ranks is not None:
            self._agreed((), exact=True)

    def _fold(self, values: Array, fold: str) -> None:
        """Combine values by vertex over all ranks, on all of them (Folding)."""
        assert self._ranks is not None
        if self._folding is None:
            self._folding = Folding(self._ranks, self.graph.vertices, self._saving.due)
        self._folding.run(values, fold)
        if self._folding.in_memory:
            self._due = self._folding.due

    @property
    def _folds_in_memory(self) -> Folding | None:
        return self._folding if self._folding and self._folding.in_memory else None

    def close(self) -> None:
        """Forget the memory of other ranks. All ranks close their operations together."""
        if self._folding is not None:
            self._folding.close()

    def saved_facts(self) -> Any:
        assert isinstance(self._saving, DeviceSaving)
        return self._saving.facts()

    def due_alone(self) -> bool:
        return self.due()

    def save_alone(self, done: int, arrays: Values, facts: Any = None) -> None:
        self.save(done, arrays, facts)

    def end_alone(self, told: Message) -> Message:
        return told

    def due(self) -> bool:
        return self._saving.due() if self._ranks is None else self._due

    def save(self, done: int, values: Values, facts: Any = None) -> None:
        self._saving.save(done, self.fetch(values), facts)

    def fetch(self, values: Mapping[str, Any]) -> dict[str, NDArray]:
        """Return the values of vectors, in host memory. Arrays stand there already."""
        with self.graph.device.use():
            owns: dict[str, Array] = {k: getattr(v, "own", v) for k, v in values.items()}
            return {k: v.get() if hasattr(v, "get") else v for k, v in owns.items()}


def leaving_of(graph: ProgramGraph) -> CutRows:
    """Return the rows of the vertices that edges leave, of a graph with rows of both kinds."""
    return graph.cut if graph.back is None else graph.back


def _places(own: Array) -> VertexPlaces:
    return VertexPlaces(own, np.empty(0, np.uint32))


def _plain(given: Any) -> tuple[list[float], bool]:
    """Return one number, or those of a tuple or an array, as Python's, and whether all are whole by
    their type.
    """
    if hasattr(given, "ravel"):
        return given.ravel().tolist(), given.dtype.kind in "biu"
    numbers = list(given) if isinstance(given, tuple) else [given]
    return [float(x) for x in numbers], all(isinstance(x, int) for x in numbers)


class OperationsProgram(ABC):
    """A program that is written in the operations that one device has, too. What makes it a
    DeviceProgram follows from that.

    columns: as in Program. rows: the rows that its operations read; BY_TARGET if it only gathers,
    along the edges.
    """

    columns: Sequence[str]
    rows = ReadRows.BY_TARGET
    wants_degrees = scans_once = False
    calls: Calls

    @abstractmethod
    def vector_types(self) -> Sequence[VectorType]:
        """Return the types of the vectors that it holds."""

    @abstractmethod
    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult: ...

    @property
    def _spreads(self) -> set[type]:
        """Return the operators that it gives to ``spread``."""
        return set(get_args(Spread)) & set(self.calls.operators)

    @property
    def _gathers(self) -> bool:
        return bool(set(get_args(AnySum)) & set(self.calls.operators))

    @property
    def _joins(self) -> bool:
        return spanning in self.calls.kernels

    @property
    def _joins_all(self) -> bool:
        return forest_kernels in self.calls.kernels

    @property
    def _tallies(self) -> bool:
        return MostCommon in self.calls.operators

    @property
    def _intersects(self) -> bool:
        return intersect_kernels in self.calls.kernels

    @property
    def _contracts(self) -> bool:
        return contract_kernels in self.calls.kernels

    def device_bytes(self, vertices: int, entries: int) -> int:
        vectors = vectors_bytes(Counts(vertices, vertices, 0, 0), self.vector_types())
        held = vectors + TEMPORARIES * 8 * vertices
        if self._gathers:
            ways = 2 if self.rows == ReadRows.BOTH else 1
            held += ways * gathering_bytes(vertices, entries)
        if self._spreads:
            picked = vectors
            held += picked + _LISTS * 4 * vertices + spreading_bytes(vertices, entries)
        if self._tallies:
            held += tallying_bytes(vertices, entries)
        if self._joins:
            held += trees_bytes(vertices)
        if self._intersects:
            held += intersecting_bytes(vertices, entries)
        if self._contracts:
            held += contracting_bytes(vertices, entries) + (8 + 4) * entries  # these: the result
        return max(held, components.device_bytes(vertices)) if self._joins_all else held

    def compile_on(self, graph: ProgramGraph) -> None:
        if self._gathers:
            gather.warm_up(graph)
        spread.warm_up(graph, self._spreads)
        if self._joins:
            across.warm_up(graph)
            trees.warm_up(graph.device)
        if self._joins_all and graph.twice:
            components.warm_up(graph)
        if self._tallies:
            tally.warm_up(graph)
        if self._intersects:
            intersect.warm_up(graph)
        if self._contracts:
            warm_up_contract(leaving_of(graph), graph.device)
        if graph.ranks > 1:
            folding.warm_up(graph.device)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        return self._answer(graph, DeviceOperations(graph, saving), tell)

    def _answer(
        self, graph: ProgramGraph, operations: DeviceOperations, tell: Tell
    ) -> ProgramResult:
        with graph.device.use():  # a vector that is filled is not given to an operation
            given = self.run(operations, tell)
            return ProgramResult(operations.fetch(given.values), given.record)


class SharedOperationsProgram(OperationsProgram):
    """An OperationsProgram of operations that several devices have, too: all but tally and
    intersect.
    """

    def exchange_bytes(self, vertices: int) -> int:
        came, part, parts_of_others = 8, 8, 2 * 8  # by messages; in memory, came and a copy of it
        joining = components.exchange_bytes(vertices) if self._joins_all else 0
        return max(joining, (came + part + parts_of_others) * vertices)

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        with closed_by_all(DeviceOperations(graph, saving, ranks), ranks) as operations:
            return self._answer(graph, operations, lambda *_: ranks.check())
