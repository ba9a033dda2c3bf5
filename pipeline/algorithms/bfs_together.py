"""Breadth-first search from several sources together: hop distance to the nearest source, and which
source that is.

If several sources are at the same distance, the first by user id is taken. A vertex takes the least
number that its neighbours of the level before have taken, so that the result is the same however it
is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.gpu_programs import searches as on_device
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.operators import Min
from ...partition.input.arrow import load_functions
from ...partition.store.manifest import GraphInfo
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.marks import VertexPlaces
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts, Vector, VectorType, vectors_bytes
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.weights import NamedVertices, digest_of
from .bfs import check_depth
from .many_sources import SOURCE_BYTES, searches_record, some_places, sources_by_id
from .run import Answer
from .searches import lists_bytes

_NOTHING = np.uint64(2**64 - 1)
_DONE = np.uint64(0)
"""The value of a vertex that has been reached. No value is less, so the vertex's row is passed
over.
"""

_NUMBERS = VectorType(np.uint64, ghosts=True)
"""The type of vectors with the numbers of sources that vertices have taken."""
_DISTANCES = VectorType(np.int32)
_NEAREST = VectorType(np.uint32)


@dataclass(frozen=True)
class NearestSourceProgram:
    """The program. sources: global ids; if several are equally near, the first of these is taken.
    max_depth: levels at most; None for all.
    """

    sources: NDArray[np.uint32]
    max_depth: int | None = None
    columns = ("distance", "nearest")
    weighted = wants_degrees = scans_once = False
    rows = ReadRows.BY_SOURCE
    calls = Calls((Min,))

    def held_bytes(self, counts: Counts) -> int:
        return nearest_bytes(counts) + SOURCE_BYTES * len(self.sources)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        search = _Search(operations, self.sources)
        level = search.begin()
        while self.max_depth is None or level < self.max_depth:
            if not search.step(level + 1):
                break
            level += 1
            tell(level, level + 1, "")
            if operations.due():
                operations.save(level, search.state())
        (reached,) = operations.sum_each(_count, search.distance)
        operations.each(partial(_name, self.sources), search.nearest)
        record = {**operations.edge_counts()._asdict(), "reached": int(reached), "depth": level}
        return ProgramResult({"distance": search.distance, "nearest": search.nearest}, record)

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.nearest_bytes(vertices, entries)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up_nearest(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        del saving, tell  # it is one launch
        found = on_device.nearest(graph, self.sources, self.max_depth)
        reached = found.distance != UNREACHED
        distance = found.distance.view(np.int32)  # the greatest number is -1
        nearest = np.full(len(reached), UNREACHED, np.uint32)
        nearest[reached] = self.sources[found.nearest[reached]]
        record = {"reached": int(np.count_nonzero(reached)), "depth": found.levels}
        edge_counts = EdgeCounts(edges=found.edges)._asdict()
        return ProgramResult({"distance": distance, "nearest": nearest}, {**edge_counts, **record})

    def of_rank(self, rank: int, ranks: int) -> NearestSourceProgram:
        return replace(self, sources=np.array_split(self.sources, ranks)[rank])

    def put_together(self, given: ProgramResult, next_result: ProgramResult) -> ProgramResult:
        """Join the results from two parts of the sources. next_result: from sources that follow,
        which are taken where they are nearer.
        """
        distance, nearest = (np.asarray(given.values[name]) for name in self.columns)
        next_distance, next_nearest = (
            np.asarray(next_result.values[name]) for name in self.columns
        )
        # Unsigned, -1 is the greatest number.
        nearer = next_distance.view(np.uint32) < distance.view(np.uint32)
        distance[nearer], nearest[nearer] = next_distance[nearer], next_nearest[nearer]
        edges = given.record["edges"] + next_result.record["edges"]
        reached, depth = int(np.count_nonzero(distance >= 0)), int(distance.max())
        record = {**given.record, "edges": edges, "reached": reached, "depth": depth}
        return ProgramResult({"distance": distance, "nearest": nearest}, record)


class _Search:
    """The vectors of a search. frontier: for vertices of the last level, the number of the source
    that the vertex has taken, from 1 on; _NOTHING for other vertices. came: the least number that a
    vertex's neighbours have taken. nearest: numbers of sources, UNREACHED where there is none.
    places: of the frontier; None if it may be any vertices.
    """

    def __init__(self, operations: Operations, sources: NDArray[np.uint32]) -> None:
        self._operations = operations
        self._frontier = operations.vector(_NUMBERS, _NOTHING)
        self._came = operations.vector(_NUMBERS, _NOTHING)
        self.distance = operations.vector(_DISTANCES, -1)
        self.nearest = operations.vector(_NEAREST, UNREACHED)
        self._places: VertexPlaces | None = None
        numbers = np.arange(1, len(sources) + 1, dtype=np.uint64)
        zeros = np.zeros(len(sources), np.int32)
        for vector, values in (
            (self._frontier, numbers),
            (self._came, zeros),
            (self.distance, zeros),
            (self.nearest, numbers),
        ):
            operations.put(vector, sources, values)

    def begin(self) -> int:
        """Begin from saved values, or else from the sources. Returns the last level that is
        done.
        """
        saved = self._operations.load(self.state())
        if saved is None:
            return 0
        vectors = self._frontier, self._came, self.distance, self.nearest
        self._operations.each(partial(_stand_at, saved.done), *vectors)
        return saved.done

    def state(self) -> dict[str, Vector]:
        return {"distance": self.distance, "nearest": self.nearest}

    def step(self, level: int) -> int:
        """Search one level. Returns the number of its vertices."""
        operations, least = self._operations, Min(_NOTHING, _DONE)
        frontier = self._frontier
        if self._places is None:
            self._places = operations.where(frontier, other_than=_NOTHING)
        reached = operations.spread(least, frontier, self._came, True, self._places)
        if reached is not None:
            frontier.fill(_NOTHING, self._places)
        vectors = frontier, self._came, self.distance, self.nearest
        (found,) = operations.sum_each(partial(_advance, level), *vectors, places=reached)
        self._places = reached
        return int(found)


def _advance(
    level: int,
    counted: Any,
    frontier: NDArray,
    came: NDArray,
    distance: NDArray,
    nearest: NDArray,
) -> int:
    """Make the new vertices the frontier, and return their number."""
    new = (came != _NOTHING) & (came != _DONE)
    frontier[:] = _NOTHING
    frontier[new] = nearest[new] = came[new]
    distance[new] = level
    came[new] = _DONE
    return int(np.count_nonzero(new & counted))


def _stand_at(
    level: int, frontier: NDArray, came: NDArray, distance: NDArray, nearest: NDArray
) -> None:
    last = distance == level
    frontier[:] = _NOTHING
    frontier[last] = nearest[last]
    came[distance >= 0] = _DONE


def _count(counted: Any, distance: NDArray) -> int:
    return int(np.count_nonzero((distance >= 0) & counted))


def _name(sources: NDArray[np.uint32], nearest: NDArray) -> None:
    """Replace the numbers of sources by the sources' global ids."""
    reached = nearest != UNREACHED
    nearest[reached] = sources[nearest[reached] - 1]


def nearest_bytes(counts: Counts) -> int:
    vectors = _NUMBERS, _NUMBERS, _DISTANCES, _NEAREST
    return vectors_bytes(counts, vectors) + lists_bytes(counts)


@dataclass(frozen=True)
class BfsTogether:
    """The question. max_depth: as of NearestSourceProgram."""

    sources: NamedVertices
    max_depth: int | None = None
    name = "bfs-together"
    step = "level"
    weighted = False

    def __post_init__(self) -> None:
        check_depth(self.max_depth)

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        named = digest_of(self.sources.read(id_type).vertex)
        return {"sources": named, "max_depth": self.max_depth}

    def program(self, names: Names, info: GraphInfo) -> Program:
        return NearestSourceProgram(sources_by_id(self.sources, names)[1], self.max_depth)

    def calls(self, weighted: bool) -> Calls:
        return NearestSourceProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return nearest_bytes(counts) + SOURCE_BYTES * counts.vertices  # all may be named

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        distance, nearest = (
            np.asarray(given.values[name]) for name in NearestSourceProgram.columns
        )
        columns = (
            Column("distance", distance, missing=-1, repeats=True),
            Column("nearest", nearest, vertices=True, missing=int(UNREACHED)),
        )
        sources = int(np.count_nonzero(distance == 0))
        return Answer(
            columns, {"searches": searches_record(sources, self.max_depth, method, given)}
        )


def planned(info: GraphInfo) -> NearestSourceProgram:
    """Return the program for a plan. It has one source, as the number of sources makes no
    difference.
    """
    load_functions()  # as where sources are looked up
    return NearestSourceProgram(some_places(1))
