"""Betweenness centrality: the number of shortest paths between other vertices that lead through a
vertex.

Brandes (A Faster Algorithm for Betweenness Centrality, 2001): from each source, shortest paths are
counted level by level, and dependencies are added up on the way back. Counts and sums are 64-bit
floats; counts that leave their range have an exponent of their own (wide_paths.py). In an
undirected graph each pair counts once. Some sources may stand for all: ``scale_factors``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.compiled import compile_kernels
from ...kernels.base.graph import UNREACHED
from ...kernels.gpu_programs import betweenness as on_device
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.gather import gather_listed
from ...kernels.pieces.operators import Or, Sum
from ...kernels.pieces.piece import Piece
from ...kernels.programs import paths as path_kernels
from ...kernels.programs import wide_paths
from ...kernels.programs.paths import (
    MOST_PATHS,
    add_levels,
    count_alone,
    count_levels,
    depend_alone,
    take_in,
)
from ...partition.store.manifest import GraphInfo
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.marks import Marks, PlacesByLevel, VertexPlaces, levels_bytes, marks_bytes
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import ANSWERED, Saving
from ..engines.operations.vectors import Counts, Vector, VectorType, vectors_bytes
from ..engines.operations.wide_paths import WidePaths, wide_paths_bytes
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.weights import NamedVertices
from .many_sources import (
    SOURCE_BYTES,
    Sources,
    left_of,
    nothing_answered,
    some_places,
    sources_of,
    sources_record,
)
from .run import Answer
from .searches import lists_bytes

_FEW_EDGES = 1 << 20
"""Most edges of a level that one thread takes alone, whatever the number of threads, so that sums
are the same. Threads that share a level look at its edges three times. Chosen on two cores.
"""

_MOST_APART = 1 << 22
"""The most edges of a level with which each source is one thread's, if there are several sources;
if there are fewer sources, _FEW_EDGES. All threads together look through a larger level sooner.
"""

_SEVERAL = 4
_TELLING = 8
"""A source tells how large levels are if it reaches one in so many vertices."""

_AT_ONCE = 1 << 12
"""The most levels that a call counts."""

_ANY = 1 << 62
"""A number of edges that no level exceeds."""

_ALONE_BYTES = 3 * 4 + 3 * 8
"""Bytes for each vertex, for a source that one thread takes: with exponents, which few graphs
need.
"""


_SCORES = VectorType(np.float64)

_WORDS = VectorType(np.uint64, ghosts=True)
_SHARES = VectorType(np.float64, ghosts=True)
_PATHS = _WORDS, _WORDS, VectorType(np.float64), _SHARES, _SHARES
"""The vectors of ``_Paths``: reached, edge, paths, share, came."""


@dataclass(frozen=True)
class BetweennessProgram:
    """The program: dependencies of ``sources`` (global ids) on each vertex, added up, not scaled.

    vertices: of the graph. dealt: which rank's part this is, of how many ranks.
    """

    vertices: int
    sources: NDArray[np.uint32]
    dealt: tuple[int, int] = (0, 1)
    columns = ("betweenness", "source")
    weighted = wants_degrees = scans_once = False
    rows = ReadRows.BY_SOURCE
    calls = Calls((Or, Sum), (path_kernels, gather_listed))

    def held_bytes(self, counts: Counts) -> int:
        return brandes_bytes(counts) + SOURCE_BYTES * len(self.sources)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        score, answered = operations.vector(_SCORES), nothing_answered(self.sources)
        state, count = {"score": score, ANSWERED: answered}, len(self.sources)
        operations.load(state)
        left, first = left_of(answered), 0
        sources, done = self.sources[left], count - len(left)
        paths = _Apart.of(operations, self.sources, score) or _Paths(operations, score)
        while first < len(left):
            batch = slice(first, first + paths.add(sources[first:]))
            answered[left[batch]] = True
            done, first = done + batch.stop - first, batch.stop
            tell(done, count, "")
            if operations.due():
                operations.save(done, state)
        record = {**operations.edge_counts()._asdict(), "directed": operations.directed}
        return ProgramResult({"betweenness": score, "source": self.sources}, record)

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices, entries)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        score, answered = np.zeros(self.vertices), nothing_answered(self.sources)
        state, count = {"score": score, ANSWERED: answered}, len(self.sources)
        saving.load(state)
        done, left, first = int(answered.sum()), left_of(answered, *self.dealt), 0
        sources, brandes = self.sources[left], on_device.GpuBrandes(graph, score)
        while first < len(left):
            batch = slice(first, first + brandes.run(sources[first:]))
            answered[left[batch]] = True
            done, first = done + batch.stop - first, batch.stop
            tell(done, count, "")
            if saving.due():
                score[:] = brandes.score()
                saving.save(done, state)
        score[:] = brandes.score()
        record = {**EdgeCounts(edges=brandes.edges)._asdict(), "directed": not graph.twice}
        return ProgramResult({"betweenness": score, "source": self.sources}, record)

    def of_rank(self, rank: int, ranks: int) -> BetweennessProgram:
        return replace(self, dealt=(rank, ranks))

    def put_together(self, given: ProgramResult, next_result: ProgramResult) -> ProgramResult:
        score = np.asarray(given.values["betweenness"])
        score += np.asarray(next_result.values["betweenness"])
        edge_counts = {
            name: given.record[name] + next_result.record[name] for name in EdgeCounts._fields
        }
        values = {**given.values, "betweenness": score}
        return ProgramResult(values, {**given.record, **edge_counts})


class _Paths:
    """The shortest paths from one source at a time.

    reached, edge: words, of which one bit is used. reached: vertices that were reached. edge: those
    that were reached last. levels: the vertices of each level. found: a bitmap of the vertices of
    one level. paths: the number of shortest paths that lead to a vertex. share: the vector that a
    product combines. came: the result of the product.
    """

    def __init__(self, operations: Operations, score: Vector) -> None:
        self._operations = operations
        self._score = score
        vectors = [operations.vector(kind) for kind in _PATHS]
        self._reached, self._edge, self._paths, self._share, self._came = vectors
        self._levels = PlacesByLevel(len(score.own), len(score.shared))
        self._found = Marks.none(operations.graph).own
        self._wide: WidePaths | None = None

    def add(self, sources: NDArray[np.uint32]) -> int:
        """Add the paths from the first source; return how many sources these were."""
        with np.errstate(over="ignore"):  # such paths are counted again
            self._count_from(sources[0])
        counted = [self._paths.own.max(initial=0), self._paths.shared.max(initial=0)]
        if self._operations.everyones(counted).max() > MOST_PATHS:
            if self._wide is None:
                vectors = self._score, self._paths, self._share, self._came
                self._wide = WidePaths(self._operations, *vectors)
            self._wide.add(self._levels)
        else:
            self._add_up()
        return 1

    def _count_from(self, source: np.uint32) -> None:
        """Find the levels, and count the shortest paths that lead to each vertex."""
        operations, edge, share = self._operations, self._edge, self._share
        here = np.array([source], np.uint32)
        for vector, value in ((self._reached, 1), (edge, 1), (self._paths, 1.0), (share, 1.0)):
            vector.fill(0)
            operations.put(vector, here, np.array([value]))
        self._levels.clear()
        self._levels.append(operations.where(edge))
        while self._count_small_levels() and self._count_level():
            pass

    def _count_small_levels(self) -> bool:
        """Count levels by one thread, as long as they are small. Returns whether there may be more
        levels.
        """
        levels, rows = self._levels, self._operations.whole
        if rows is None:
            return True
        begun, ends, count = levels[len(levels) - 1], np.empty(_AT_ONCE, np.int64), _AT_ONCE
        vectors = self._reached.own, self._paths.own
        while count == _AT_ONCE:
            first, last = levels.own_last
            count, edges = count_levels(
                rows.piece, _FEW_EDGES, *vectors, self._found, levels.own, first, last, ends
            )
            self._operations.note(edges)
            levels.extend(ends[:count])
        now = levels[len(levels) - 1]
        for vector in (self._edge, self._share):
            vector.fill(0, begun)
        self._edge.fill(1, now)
        self._share.own[now.own] = self._paths.own[now.own]
        if len(now.own):
            return True
        levels.pop()
        return False

    def _count_level(self) -> bool:
        """Count the next level. Returns whether there is one."""
        operations, edge, share, places = (
            self._operations,
            self._edge,
            self._share,
            self._levels[len(self._levels) - 1],
        )
        either = Or(np.uint64(0), np.uint64(1))
        reached = operations.spread(either, edge, self._reached, True, places)
        if reached is not None:
            edge.fill(0, places)
        reads = self._reached, self._paths
        (found,) = operations.sum_each(_find, edge, reads=reads, places=reached)
        if not found:
            return False
        new = operations.where(edge) if reached is None else reached
        self._add(share, along=True, wanted=new)
        share.fill(0, places)
        operations.each(_enter, self._paths, share, reads=[self._came], places=new)
        self._levels.append(new)
        return True

    def _add_up(self) -> None:
        """Add up the dependencies of all levels on the levels before them."""
        operations, levels = self._operations, self._levels
        level = len(levels) - 1
        self._share.fill(0, levels[level])
        vectors, reads = (self._share, self._score), (self._paths, self._came)
        rows, ends = operations.whole, levels.own_ends()
        while level:  # the source itself is no vertex between
            if rows is not None:
                own_values = [v.own for v in (self._paths, self._share, self._came, self._score)]
                level, edges = add_levels(
                    rows.piece, _FEW_EDGES, levels.own, ends, level, *own_values
                )
                operations.note(edges)
            if level:
                self._add(self._share, along=False, wanted=levels[level])
                if level + 1 < len(levels):
                    self._share.fill(0, levels[level + 1])
                operations.each(_depend, *vectors, reads=reads, places=levels[level])
                level -= 1

    def _add(self, share: Vector, along: bool, wanted: VertexPlaces) -> None:
        """Add the values that come along edges to some vertices."""
        self._came.fill(0, wanted)
        self._operations.gather(Sum(), share, self._came, along, wanted)


class _Alone:
    """A source that one thread takes (paths.py). reached: the number of vertices reached."""

    def __init__(self, piece: Piece, vertices: int) -> None:
        self._piece = piece
        self._number = np.full(vertices, UNREACHED)
        self._places = np.empty(vertices, np.uint32)
        self._paths, self._share = np.empty(vertices), np.empty(vertices)
        self._ends = np.empty(vertices + 2, np.int64)
        self._exponents: NDArray[np.int32] | None = None
        self._source = -1

    def count(self, source: int, most: int) -> int:
        """Count paths from ``source`` until a level has more than ``most`` edges, unless they are
        counted already. Returns the number of edges that were looked at.
        """
        if source == self._source:
            return 0
        if self._source >= 0:
            self._number.fill(UNREACHED)
        vectors = self._number, self._places, self._paths, self._ends
        found = count_alone(self._piece, source, most, *vectors)
        self._levels, self.reached, edges, self._most_paths = found
        self._source = source
        return edges

    @property
    def counted(self) -> bool:
        """Return whether no level had too many edges."""
        return self._levels > 0

    def add_up(self) -> int:
        """Add up the dependencies on each vertex. Returns the number of edges that were looked
        at.
        """
        found = self._piece, self._number, self._places, self._paths
        levels = self._ends, self._levels
        if self._most_paths <= MOST_PATHS:
            return depend_alone(*found, self._share, *levels)
        if self._exponents is None:
            compile_kernels(wide_paths, offsets=self._piece.offsets.dtype)
            self._exponents = np.empty(len(self._number), np.int32)
        edges = wide_paths.count_again(*found, self._exponents, *levels)
        return edges + wide_paths.depend_wide(*found, self._exponents, self._share, *levels)

    def move_to(self, score: NDArray[np.float64]) -> None:
        """Add the dependencies to the score, and forget the source."""
        take_in(self._number, self._places, self._paths, self.reached, score)
        self._source = -1


class _Apart:
    """A way to take several sources at once, each by one thread. Their dependencies are added to
    the score in the order of the sources, so the score is the same for any number of threads.
    """

    def __init__(self, operations: Operations, score: Vector, threads: list[_Alone]) -> None:
        self._operations = operations
        self._score = score.own
        self._threads = threads

    @classmethod
    def of(
        cls, operations: Operations, sources: NDArray[np.uint32], score: Vector
    ) -> _Apart | None:
        """Return a new object of this class; or None if threads should share sources, because edges
        are not in memory as one subgraph, levels are large, or there is no room.
        """
        rows, n = operations.whole, operations.graph.vertices
        threads = min(operations.team.threads, len(sources))
        if rows is None or threads * _ALONE_BYTES * n > operations.extra_bytes:
            return None
        most = _MOST_APART if len(sources) >= _SEVERAL else _FEW_EDGES
        first = _Alone(rows.piece, n)
        operations.note(first.count(int(sources[0]), most))
        if first.counted and _TELLING * first.reached < n:
            degrees = rows.offsets[sources.astype(np.int64) + 1] - rows.offsets[sources]
            operations.note(first.count(int(sources[np.argmax(degrees)]), most))
        if not first.counted:
            return None
        return cls(operations, score, [first, *(_Alone(rows.piece, n) for _ in range(1, threads))])

    def add(self, sources: NDArray[np.uint32]) -> int:
        """Add the paths from as many sources as there are threads; return how many these were."""

        def run(pair: tuple[_Alone, int]) -> int:
            alone, source = pair
            return alone.count(source, _ANY) + alone.add_up()

        pairs = list(zip(self._threads, sources.tolist(), strict=False))
        self._operations.note(sum(self._operations.team.map(run, pairs)))
        for alone, _ in pairs:
            alone.move_to(self._score)
        return len(pairs)


def _find(counted: Any, edge: NDArray, reached: NDArray, paths: NDArray) -> int:
    """Make the new vertices the edge; return how many they are."""
    np.logical_and(reached != 0, paths == 0, out=edge, casting="unsafe")
    return int(np.count_nonzero((edge != 0) & counted))


def _enter(paths: NDArray, share: NDArray, came: NDArray) -> None:
    """Give the vertices found as many paths as came."""
    paths[:] = came
    share[:] = came


def _depend(share: NDArray, score: NDArray, paths: NDArray, came: NDArray) -> None:
    """Add the dependencies that came along edges from the level after this one, and set the shares
    for the level before.
    """
    dependency = paths * came
    score += dependency
    share[:] = (1 + dependency) / paths


def scale_factors(
    vertices: int, sources: int, directed: bool, normalized: bool
) -> tuple[float, float]:
    """Return the factors of the sums of a vertex that is no source, and of one that is.

    A path leads through a vertex only if it begins elsewhere, so a source has one source less than
    others have, and each has n - 1 that there might be (NetworkX 3.6 scales so). Of an only source
    nothing is known: NaN. An undirected graph has each pair twice.

    >>> scale_factors(5, 5, directed=True, normalized=False)  # all of them
    (0.8, 1.0)
    >>> scale_factors(5, 1, directed=True, normalized=False)
    (4.0, nan)
    """
    most = vertices - 1
    if most < 2:  # no path has a vertex between its ends
        return 1.0, 1.0
    whole = 1 / (most - 1) if normalized else most / (1 if directed else 2)
    return whole / sources, whole / (sources - 1) if sources > 1 else math.nan


_UNKNOWN = -1.0
"""The value that becomes null in the result."""

_ONLY_SOURCE = "paths are counted from one source only, so the value of the source itself is null"


def brandes_bytes(counts: Counts) -> int:
    here = counts.own + counts.shared
    levels = levels_bytes(here) + marks_bytes(counts.own) + 8 * here  # ends, for a call
    vectors = vectors_bytes(counts, (_SCORES, *_PATHS)) + wide_paths_bytes(counts)
    return vectors + levels + lists_bytes(counts)


@dataclass(frozen=True)
class Betweenness:
    """The question. sources: whose shortest paths are counted."""

    sources: Sources
    normalized: bool = False
    name = "betweenness"
    step = "source"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {**self.sources.told_by_id(id_type), "normalized": self.normalized}

    def program(self, names: Names, info: GraphInfo) -> Program:
        return BetweennessProgram(info.vertices, self.sources.places(names))

    def calls(self, weighted: bool) -> Calls:
        return BetweennessProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return brandes_bytes(counts) + SOURCE_BYTES * self.sources.most(counts.vertices)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        score, sources = given.values["betweenness"], given.values["source"]
        assert isinstance(score, np.ndarray)
        assert isinstance(sources, np.ndarray)
        other_factor, source_factor = scale_factors(
            len(score), len(sources), given.record["directed"], self.normalized
        )
        values = score * other_factor
        values[sources] = _UNKNOWN if math.isnan(source_factor) else score[sources] * source_factor
        record = sources_record(len(sources), method, given)
        column = Column("betweenness", values, missing=_UNKNOWN)
        notes = (_ONLY_SOURCE,) if math.isnan(source_factor) else ()
        return Answer((column,), {"betweenness": record}, notes=notes)


def betweenness_of(sources: int | NamedVertices | None, seed: int, normalized: bool) -> Betweenness:
    return Betweenness(sources_of(sources, seed), normalized)


def planned(info: GraphInfo) -> BetweennessProgram:
    """Return the program for a plan: paths from all vertices."""
    return BetweennessProgram(info.vertices, some_places(info.vertices))
