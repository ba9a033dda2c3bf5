"""Strongly connected components: two vertices are in the same one if a path leads from each to the
other. Each vertex gets the least vertex of its component.

Rounds *trim* the graph: a vertex that no edge enters, or none leaves, among the vertices that are
left, is a component. Once no vertex is such, *colours* are searched for. Some vertices get a colour
of their own, and each vertex takes the least colour that leads to it. The vertices of a colour from
which its first vertex can be reached, through vertices of this colour, are that vertex's component.
Then the graph is trimmed again.

At first only a vertex with many edges has a colour, which finds a large component if there is one
(Fleischer, Hendrickson, Pinar: On Identifying Strongly Connected Components in Parallel, IPDPS
2000, workshops). Then all vertices that are left have colours (Orzan: On Distributed Verification
and Verified Distribution, 2004). This order is that of Slota, Rajamanickam, Madduri: BFS and
Coloring-based Parallel Algorithms for Strongly Connected Components and Related Problems, IPDPS
2014. Colours are in a new random order in each search: in a fixed one, a chain of components might
take as many searches as it has components.

If a single rank has all edges in host memory, a kernel of its own searches depth-first.

The condensation is the graph of the components: the edges between them.
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

from ...kernels.base.graph import UNREACHED
from ...kernels.pieces.operators import IntegerSum, Min, UnitAmounts
from ...kernels.programs import forest
from ...kernels.programs import strong as strong_kernels
from ...kernels.programs.forest import tree_sizes
from ...kernels.programs.strong import COMPLETE, Search, find_components
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import SharedOperationsProgram
from ..engines.operations.contract import CONTRACTING, contraction_bytes
from ..engines.operations.marks import VertexPlaces
from ..engines.operations.operations import Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..engines.operations.vectors import Counts, Vector, VectorType, vectors_bytes
from ..engines.ranks.edges import Rows
from ..questions.strong import CondensationRecord, StrongRecord
from ..results.columns import Column
from ..results.findings import SIZE
from ..results.names import Names, numbers_by_id
from ..results.result import Option
from ..results.rows import Pairs
from .components import ComponentsProgram, name_components
from .run import Answer
from .searches import lists_bytes

_EDGES_AT_ONCE = 1 << 24
"""Number of edges after which a call of the kernel ends."""

_NUMBERS = VectorType(np.uint32)
_LABELS = VectorType(np.uint32, ghosts=True)
_WORDS = VectorType(np.uint64, ghosts=True)
_STATE = {"component": _NUMBERS, "known": VectorType(np.uint64), "word": _WORDS}
"""The types of the vectors that are saved."""

_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True)
class StrongProgram(SharedOperationsProgram):
    """The program. directed: whether the graph is; else its components are wanted, which take one
    scan of the edges.
    """

    directed: bool
    columns = ("component",)
    rows = ReadRows.BOTH
    weighted = False

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        if not self.directed:
            return ComponentsProgram.calls
        return Calls((IntegerSum, Min), (strong_kernels, forest), whole=())

    def vector_types(self) -> Sequence[VectorType]:
        return (_NUMBERS, _WORDS, *_STATE.values()) if self.directed else ()

    def held_bytes(self, counts: Counts) -> int:
        if not self.directed:
            return ComponentsProgram().held_bytes(counts)
        return rounds_bytes(counts)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        if not operations.directed:
            trees = operations.join()
            record = {**operations.edge_counts()._asdict(), "rounds": 1}
            return ProgramResult({"component": trees}, record)
        rounds = _DepthFirst.of(operations) or _Rounds(operations)
        while rounds.go_on():
            tell(rounds.done, 0, f"vertices left {rounds.left}")
            if operations.due():
                operations.save(rounds.done, rounds.state(), rounds.facts())
        record = {**operations.edge_counts()._asdict(), "rounds": rounds.done}
        return ProgramResult({"component": rounds.component}, record)


@dataclass(frozen=True)
class CondensationProgram(SharedOperationsProgram):
    """The program that also gives the edges between components, each pair once, by vertices of
    these: ``src``, ``dst``, and the number of ``edges``.
    """

    directed: bool
    columns = ("component", "src", "dst", "edges")
    rows = ReadRows.BOTH
    weighted = False

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        calls = self._components.calls
        return calls._replace(kernels=(*calls.kernels, *CONTRACTING)) if self.directed else calls

    def vector_types(self) -> Sequence[VectorType]:
        return (*self._components.vector_types(), _LABELS) if self.directed else ()

    def held_bytes(self, counts: Counts) -> int:
        held = self._components.held_bytes(counts)
        if self.directed:
            held += vectors_bytes(counts, (_LABELS,)) + contraction_bytes()
        return held

    @property
    def _components(self) -> StrongProgram:
        return StrongProgram(self.directed)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        values, record = self._components.run(operations, tell)
        between = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint64)
        component = values["component"]
        if isinstance(component, Vector):  # of a directed graph: others have no such edges
            labels = operations.vector(_LABELS)
            operations.each(_copy, labels, reads=[component])
            between = operations.contract(labels, UnitAmounts())
            for name, count in operations.edge_counts()._asdict().items():
                record[name] += count
        return ProgramResult(
            {**values, **dict(zip(self.columns[1:], between, strict=True))}, record
        )


class _Rounds:
    """Rounds by operations. component: a vertex of each vertex's component; UNREACHED for vertices
    that are left. left: their number. done: the number of rounds.

    While the graph is trimmed, ``known`` counts the edges between vertices that are left: those
    that enter a vertex in its low half, those that leave it in the high half. ``word`` is 1 for the
    vertices that the last round has trimmed. During a search, ``known`` is the colour of a vertex
    that was left at its beginning, _NONE without colour, and ``word`` is what the vertices tell
    that the last round has reached. Of other vertices ``known`` is 0. So a vertex that has a
    component and is ``known`` is of a component that may be incomplete.
    """

    def __init__(self, operations: EdgeOperations) -> None:
        self._operations = operations
        self._id = operations.vector(_NUMBERS)
        operations.put_numbers(self._id)
        self._came = operations.vector(_WORDS)
        self._state = {name: operations.vector(kind) for name, kind in _STATE.items()}
        self.component, self._known, self._word = self._state.values()
        self.component.fill(UNREACHED)
        self.done = self._searches = 0
        self._pivot: int | None = None
        self._step = "count"
        saved = operations.load(self._state)
        if saved is not None:
            self.done, (self._step, self._searches, self._pivot) = saved.done, saved.facts
        unit = self._unit
        for values in (*self._came.ghosts.values(), *self._word.ghosts.values()):
            values[:] = unit
        self._came.fill(unit)
        self._last = operations.where(self._word, unit)
        (left,) = operations.sum_each(_count_left, reads=[self.component])
        self.left = int(left)

    def state(self) -> Mapping[str, Vector]:
        return self._state

    def facts(self) -> Any:
        return self._step, self._searches, self._pivot

    def go_on(self) -> bool:
        """Do a round, unless all vertices have a component. Returns whether it did."""
        if not self.left and self._step in ("count", "trim"):
            return False
        steps = {
            "count": self._count,
            "trim": self._trim,
            "forward": self._forward,
            "backward": self._backward,
        }
        steps[self._step]()
        self.done += 1
        return True

    @property
    def _unit(self) -> np.uint64:
        """Return the word of vertices that tell nothing."""
        return np.uint64(0) if self._step in ("count", "trim") else _NONE

    # Trimming

    def _count(self) -> None:
        """Count the edges between the vertices that are left, and trim."""
        self._operations.each(_set_left, self._word, reads=[self.component])
        self._last = self._operations.where(self._word)
        self._spread_counts()
        self._operations.each(np.copyto, self._known, reads=[self._came])
        self._came.fill(0)
        self._take(None)

    def _trim(self) -> None:
        """Take the edges of trimmed vertices from the counts, and trim."""
        self._take(self._spread_counts())

    def _spread_counts(self) -> VertexPlaces | None:
        """Add up, in ``came``, the edges of the vertices in ``_last``. Returns places as
        ``Operations.spread`` does.
        """
        changed = []
        for along, one in ((True, np.uint64(1)), (False, np.uint64(1) << _HALF)):
            self._word.fill(one, self._last)
            ends = self._word, self._came
            changed.append(self._operations.spread(IntegerSum(), *ends, along, self._last))
        self._word.fill(0, self._last)
        return self._operations.union(changed)

    def _take(self, places: VertexPlaces | None) -> None:
        """Take what came from the counts, and trim. places: of all vertices that may be concerned;
        None for all.
        """
        vectors = self.component, self._known, self._word, self._came
        (count,) = self._operations.sum_each(_take, *vectors, reads=[self._id], places=places)
        self._last = self._operations.where(self._word, among=places)
        self.left -= int(count)
        self._step = "trim"
        if not count and self.left:
            self._begin_search()

    # Searches

    def _begin_search(self) -> None:
        """Give colours to one vertex, or to all that are left after the first search."""
        operations = self._operations
        self._pivot = None
        if not self._searches:
            (most,) = operations.max_each(_most_ways, reads=[self._known])
            least = partial(_negative_least, most)
            self._pivot = -int(operations.max_each(least, reads=[self._known, self._id])[0])
        self._step = "forward"
        for words in (self._word, self._came):
            words.fill(_NONE)
        colour = partial(_colour, self._searches, self._pivot)
        operations.each(colour, self._known, self._word, reads=[self._id])
        self._last = operations.where(self._word, _NONE)
        self._searches += 1

    def _forward(self) -> None:
        """Spread colours along edges; after the last round, begin to go back from the first vertex
        of each colour.
        """
        if self._reach(_take_colours, self._known, forward=True):
            return
        self._step = "backward"
        self._operations.each(
            _find_firsts, self.component, self._word, reads=[self._known, self._id]
        )
        self._last = self._operations.where(self._word, _NONE)

    def _backward(self) -> None:
        """Go back along edges between vertices of the same colour; after the last round, go on to
        trim.
        """
        if self._reach(_complete, self.component, forward=False):
            return
        (left,) = self._operations.sum_each(_count_left, reads=[self.component])
        self.left, self._step = int(left), "count"
        for vector in (self._known, self._word, self._came):
            vector.fill(0)

    def _reach(self, reach: Any, changing: Vector, forward: bool) -> bool:
        """Spread the words of the vertices that were reached last, and call ``reach``, which sets
        the words of vertices that are reached now. Returns whether there are any.
        """
        least = np.uint64(0) if self._pivot is None else np.uint64(self._pivot + 1)
        if not forward and least:
            least = ~least
        operations, ends = self._operations, (self._word, self._came)
        changed = operations.spread(Min(_NONE, least), *ends, forward, self._last)
        self._word.fill(_NONE, self._last)
        reads = [self._known] if changing is not self._known else []
        vectors = changing, self._word, self._came
        (count,) = operations.sum_each(reach, *vectors, reads=reads, places=changed)
        self._last = operations.where(self._word, _NONE, among=changed)
        return bool(count)


class _DepthFirst:
    """A search by the kernel, of a graph whose edges are in memory. Its fields are those of
    ``_Rounds``, and it saves the same: the components that are complete. A round is a call of the
    kernel.
    """

    def __init__(self, operations: EdgeOperations, rows: Rows) -> None:
        self._operations = operations
        self._piece = rows.piece
        n = len(rows.offsets) - 1
        self._component = np.full(n, UNREACHED, np.uint32)
        self.done = 0
        state = self.state()
        saved = operations.load(state)
        if saved is not None:
            self.done = saved.done
            self._component[state["known"].own != 0] = UNREACHED
        del state
        self._reached = np.where(self._component == UNREACHED, np.uint32(0), COMPLETE)
        self._path, self._numbers = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self._edges = np.empty(n, np.uint64)
        self._search = Search(0, 0, 0, 0)

    @classmethod
    def of(cls, operations: EdgeOperations) -> _DepthFirst | None:
        """Return None if the edges are not in host memory as one subgraph."""
        rows = operations.rows_along(True)
        return None if rows is None else cls(operations, rows)

    @property
    def component(self) -> Vector:
        return _vector(self._component)

    @property
    def left(self) -> int:
        return len(self._component) - self._search.start

    def state(self) -> Mapping[str, Vector]:
        nothing = np.zeros(len(self._component), np.uint64)
        return {"component": self.component, "known": _vector(nothing), "word": _vector(nothing)}

    def facts(self) -> Any:
        return "count", 0, None

    def go_on(self) -> bool:
        """Search on, unless all components are complete. Returns whether it did."""
        if not self.left and not self._search.depth:
            return False
        arrays = self._reached, self._path, self._edges, self._numbers
        self._search, edges = find_components(
            self._piece, self._component, *arrays, self._search, _EDGES_AT_ONCE
        )
        self._operations.note(edges)
        self.done += 1
        return True


def _vector(values: NDArray) -> Vector:
    return Vector(values, np.empty(0, values.dtype))


# Functions of slices of vectors, with counted: as in ``sum_each``


def _count_left(counted: Any, component: Any) -> Any:
    return ((component == UNREACHED) & counted).sum()


def _set_left(word: Any, component: Any) -> None:
    word[:] = component == UNREACHED


def _take(counted: Any, component: Any, known: Any, word: Any, came: Any, number: Any) -> Any:
    """Take what came from the counts of vertices that are left, and trim. Returns how many vertices
    are trimmed.
    """
    left = component == UNREACHED
    known -= came * left
    known[~left] = 0
    came[:] = 0
    leave = left & ((known & _LOW == 0) | (known >> _HALF == 0))
    component[leave] = number[leave]
    known[leave] = 0
    word[:] = leave
    return (leave & counted).sum()


def _ways(known: Any) -> Any:
    """Return how many edges enter each vertex, times how many leave it."""
    return (known & _LOW).astype(np.float64) * (known >> _HALF)


def _most_ways(known: Any) -> float:
    return float(_ways(known).max()) if known.size else 0.0


def _negative_least(most: float, known: Any, number: Any) -> float:
    """Return minus the least vertex that has the most ways through it."""
    found = number[_ways(known) == most]
    return -float(found.min()) if found.size else -math.inf


def _colour(search: int, pivot: int | None, known: Any, word: Any, number: Any) -> None:
    """Give each vertex that is left a colour of its own; only the pivot, if there is one. The low
    half of a colour is the number of its first vertex and 1, the high half is random.
    """
    left = known != 0
    colour = number.astype(np.uint64) + np.uint64(1)
    if pivot is None:
        colour |= _hashed(number, search) << _HALF
        has_colour = left
    else:
        has_colour = number == pivot
    known[left] = _NONE
    known[has_colour] = word[has_colour] = colour[has_colour]


def _hashed(number: Any, search: int) -> Any:
    """Return a hash of each 32-bit number as uint64: MurmurHash3's finalizer (Appleby)."""
    hashed = number ^ np.uint32(0x9E3779B9 * search & 0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed ^= hashed >> np.uint32(shift)
        hashed *= np.uint32(factor)
    return (hashed ^ hashed >> np.uint32(16)).astype(np.uint64)


def _take_colours(counted: Any, known: Any, word: Any, came: Any) -> Any:
    """Take lesser colours that came. Returns how many vertices do."""
    lesser = came < known
    known[lesser] = came[lesser]
    word[:] = np.where(lesser, came, _NONE)
    came[:] = _NONE
    return (lesser & counted).sum()


def _find_firsts(component: Any, word: Any, known: Any, number: Any) -> None:
    """Begin a component with each vertex that has kept its own colour. Words are the colours'
    complements: an edge leads to a colour that is not greater, so the least complement that comes
    back to a vertex tells whether its own colour is among them.
    """
    is_first = (known != _NONE) & (known & _LOW == number.astype(np.uint64) + np.uint64(1))
    component[is_first] = number[is_first]
    word[:] = np.where(is_first, ~known, _NONE)


def _complete(counted: Any, component: Any, word: Any, came: Any, known: Any) -> Any:
    """Add vertices to the component of the first vertex of their colour. Returns how many."""
    found = (came == ~known) & (component == UNREACHED)
    component[found] = ((known[found] & _LOW) - np.uint64(1)).astype(np.uint32)
    word[:] = np.where(found, came, _NONE)
    came[:] = _NONE
    return (found & counted).sum()


def _copy(labels: Any, component: Any) -> None:
    labels[:] = component


def rounds_bytes(counts: Counts) -> int:
    """Return the bytes of ``_Rounds``, which are more than those of ``_DepthFirst``."""
    lists_of_reached = 2 * 4 * (counts.own + counts.shared)
    shared_sums = 8 * counts.shared
    vectors = vectors_bytes(counts, (*_STATE.values(), _WORDS, _NUMBERS))
    return vectors + lists_bytes(counts) + lists_of_reached + shared_sums


@dataclass(frozen=True)
class Strong:
    """The question. condense: whether it asks for the edges between components."""

    condense: bool = False
    step = "round"
    weighted = False

    @property
    def name(self) -> str:
        return "condensation" if self.condense else "strong"

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {}

    def program(self, names: Names, info: GraphInfo) -> StrongProgram | CondensationProgram:
        return self._kind(info.directed)

    @property
    def _kind(self) -> type[StrongProgram | CondensationProgram]:
        return CondensationProgram if self.condense else StrongProgram

    def calls(self, weighted: bool) -> Calls:
        return self._kind(directed=True).calls

    def held_bytes(self, counts: Counts) -> int:
        return self._kind(directed=True).held_bytes(counts)  # the greater

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        component = given.values["component"]
        assert isinstance(component, np.ndarray)
        count = name_components(component, names)
        sizes = np.zeros(len(component), np.uint32)
        tree_sizes(component, sizes)
        record = StrongRecord(
            components=count,
            largest=int(sizes.max(initial=0)),
            alone=int(np.count_nonzero(sizes == 1)),
            rounds=given.record["rounds"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        if self.condense:
            return _condensed(component, given, names, record)
        column = Column("component", component, vertices=True, repeats=True)
        group_sizes = Column(SIZE, sizes, missing=0)
        return Answer((column,), {"strong": record}, group_sizes=group_sizes)


def _condensed(
    component: NDArray[np.uint32], given: ProgramResult, names: Names, record: StrongRecord
) -> Answer:
    """Return the edges between components, by rising ids. component: the name of each vertex's."""
    src, dst = (component[np.asarray(given.values[name])] for name in ("src", "dst"))
    number = numbers_by_id(names)
    rows = np.argsort(number[src].astype(np.uint64) << _HALF | number[dst])
    edges = np.asarray(given.values["edges"]).astype(np.int64)[rows]
    facts = CondensationRecord(**record, edges=len(edges))
    pairs = Pairs(src[rows], dst[rows])
    return Answer((Column("edges", edges),), {"condensation": facts}, pairs=pairs)


def planned(info: GraphInfo) -> StrongProgram:
    """Return the program for a plan."""
    return StrongProgram(info.directed)


def condensing(info: GraphInfo) -> CondensationProgram:
    """Return the program of a condensation for a plan."""
    return CondensationProgram(info.directed)
