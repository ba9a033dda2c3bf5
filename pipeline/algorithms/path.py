"""Shortest paths between given pairs of vertices: their lengths, or each of their steps.

Where all edges are in memory, each pair is searched for from both ends by one thread, and threads
take different pairs (kernels/programs/pairs.py). Otherwise the pairs of a source share a search,
which ends once it has reached their targets: in hops, 64 sources share their passes over the edges
(searches.py); by weights, a source has its passes to itself (sssp.py).

Of several shortest paths by hops or whole weights, the one with the fewest edges is told, and of
these the one with the least ids, from the first vertex that differs. A search from one side finds
it by ranks: vertices that are as many edges from the source get ranks in the order of their least
paths. Such a path leads through the vertex of the least rank among those before its end, so ranks
of one level decide those of the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.bitmap import members
from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.base.together import WIDTH
from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...kernels.pieces.piece import Piece
from ...kernels.programs import pairs, relax, steps
from ...kernels.programs.pairs import (
    AHEAD,
    SIDE_BYTES,
    HeapSide,
    forget_levels,
    forget_side,
    hops_between,
    meet,
    trace_floats,
    trace_hops,
    trace_whole,
)
from ...kernels.programs.steps import offer_ranks
from ...partition.disk.memory import format_bytes
from ...partition.errors import DelegraphError, LimitError
from ...partition.store.manifest import GraphInfo, WeightInfo
from ..engines.operations.marks import Marks, marks_bytes
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import ProgramResult, Tell
from ..engines.operations.saving import ANSWERED
from ..engines.operations.vectors import Counts, Vector, VectorType, vectors_bytes
from ..engines.ranks.edges import Rows
from ..engines.ranks.graph import Adjacency
from ..questions.path import PathsRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.rows import Pairs
from .many_sources import some_places
from .named_pairs import PAIR_IDS_BYTES, NamedPairs, OnePair
from .run import Answer
from .searches import Searches, sums_bytes
from .sssp import EXACT, DeltaStepping, PathSearch, mean_degree_of, paths_bytes

_AT_ONCE = 64
"""Number of pairs that are searched for between two looks at the clock."""

_NUMBERS = VectorType(np.uint32)
_RANKS = VectorType(np.uint32, ghosts=True)

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_NO_DISTANCES = np.zeros(0, np.uint64)

PAIR_BYTES = 96
"""Bytes for each pair: its ends, distance, number of steps, and these again in a result."""

STEP_BYTES = 72
"""Bytes for each vertex on a path: the vertex and its distance, twice, and a row of a result."""

_LEAST_STEPS, _STEPS_A_PAIR = 1 << 16, 16
"""Steps that a program plans for: in all, and for each pair. More take extra bytes."""


class Path(NamedTuple):
    """A path. vertices: global ids, from the source to the target. distances: float64, from the
    source.
    """

    vertices: NDArray[np.uint32]
    distances: NDArray[np.float64]


@dataclass(frozen=True)
class PathsProgram:
    """The program. source, target: global ids of the pairs. weights: of the graph, if they count;
    None for hops. mean_degree: of the vertices. nodes: whether paths are told.

    Values: ``distance``, float64 by pair, infinite if there is no path. With ``nodes`` also
    ``steps``, by pair the number of vertices on its path, and ``vertex`` and ``along``, the
    vertices of all paths and their distances.
    """

    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    weights: WeightInfo | None
    mean_degree: float = 1.0
    nodes: bool = False
    scans_once = False

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def floats(self) -> bool:
        return self.weights is not None and self.weights.kind == "float32"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("distance", "steps", "vertex", "along") if self.nodes else ("distance",)

    @property
    def calls(self) -> Calls:
        return calls_of(self.weighted)

    def held_bytes(self, counts: Counts) -> int:
        return held_bytes(counts, len(self.source), self.weighted, self.nodes)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        found = _FoundPaths(self, operations)
        rows = operations.rows_along(True), operations.rows_along(False)
        if rows[0] is not None and rows[1] is not None:
            batches = _InMemory(self, operations, rows[0], rows[1]).batches
        elif self.nodes:
            batches = partial(_paths_from_sources, self, operations)
        elif self.weighted:
            batches = partial(_distances_from_sources, self, operations)
        else:
            batches = partial(_hops_together, self, operations)
        for some, distances, paths in batches(found.left()):
            found.put(some, distances, paths)
            tell(found.done, len(self.source), "")
            operations.total([0])  # all ranks agree on saving
            if operations.due():
                found.save()
        kind = "float64" if self.floats else "int64" if self.weighted else "int32"
        return ProgramResult(found.values(), {**operations.edge_counts()._asdict(), "kind": kind})


_Batch = tuple[NDArray[np.int64], NDArray[np.float64], list[Path]]
"""Pairs by number, their distances, and, if paths are told, the path of each: an empty one where
there is none.
"""


class _FoundPaths:
    """Distances and paths found so far, the same on all ranks. done: the number of pairs."""

    def __init__(self, program: PathsProgram, operations: Operations) -> None:
        self._program = program
        self._operations = operations
        count = len(program.source)
        self._answered = np.zeros(count, np.bool_)
        self._distance = np.full(count, np.inf)
        self._steps = np.zeros(count, np.int64)
        self._paths: list[tuple[int, Path]] = []
        self._count = 0
        self._most = _planned_steps(count) + operations.extra_bytes // 2 // STEP_BYTES
        facts = operations.saved_facts()
        if facts is not None:
            state = self._state(facts)
            operations.load(state)
            self._keep(state)
        self.done = int(self._answered.sum())

    def left(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self._answered)

    def put(
        self, some: NDArray[np.int64], distances: NDArray[np.float64], paths: list[Path]
    ) -> None:
        """Keep what a batch has found. Raises DelegraphError for sums that are not exact, and
        LimitError if paths do not fit memory.
        """
        program = self._program
        farthest = float(distances.max(where=np.isfinite(distances), initial=0.0))
        if program.weighted and not program.floats and farthest >= EXACT:
            raise DelegraphError(f"distances of {farthest:g} are too large to be exact")
        self._distance[some] = distances
        for pair, path in zip(some.tolist() if program.nodes else (), paths, strict=False):
            self._steps[pair] = len(path.vertices)
            self._count += len(path.vertices)
            self._paths.append((pair, path))
        self._answered[some] = True
        self.done += len(some)
        if self._count > self._most:
            more = format_bytes(2 * STEP_BYTES * self._count)
            raise LimitError(
                f"the paths do not fit the memory limit: those of {self.done:,} of "
                f"{len(self._answered):,} pairs have {self._count:,} vertices; give {more} more "
                "for as many again, ask for fewer pairs at a time, or leave out --nodes"
            )

    def save(self) -> None:
        self._operations.save(self.done, self._state(self._count), self._count)

    def values(self) -> dict[str, NDArray]:
        """Return the columns."""
        if not self._program.nodes:
            return {"distance": self._distance}
        return {
            name: values for name, values in self._state(self._count).items() if name != ANSWERED
        }

    def _state(self, steps: int) -> dict[str, NDArray]:
        """Return everything as arrays, of paths with so many vertices."""
        state = {"distance": self._distance, ANSWERED: self._answered}
        if not self._program.nodes:
            return state
        vertex, along = np.zeros(steps, np.uint32), np.zeros(steps)
        first = np.cumsum(self._steps) - self._steps
        for pair, path in self._paths:
            span = slice(first[pair], first[pair] + len(path.vertices))
            vertex[span], along[span] = path
        return {**state, "steps": self._steps, "vertex": vertex, "along": along}

    def _keep(self, state: dict[str, NDArray]) -> None:
        """Keep the paths of a state that was loaded."""
        if not self._program.nodes:
            return
        ends = np.cumsum(self._steps)
        for pair in np.flatnonzero(self._steps).tolist():
            span = slice(ends[pair] - self._steps[pair], ends[pair])
            self._paths.append((pair, Path(state["vertex"][span], state["along"][span])))
        self._count = int(self._steps.sum())


# In memory


class _InMemory:
    """Searches from both ends, of as many pairs at a time as there are threads and room."""

    def __init__(
        self, program: PathsProgram, operations: Operations, leaving: Rows, entering: Rows
    ) -> None:
        self._program = program
        self._operations = operations
        self._pieces = leaving.piece, entering.piece
        n = operations.graph.vertices
        self._number = np.zeros(0, np.uint32)
        if program.nodes:
            number = operations.vector(_NUMBERS)
            operations.put_numbers(number, operations.id_order())
            self._number = number.own
        room = search_bytes(Counts(n, n, 0, 0), program.weighted, program.nodes)
        room += operations.extra_bytes // 2
        alone = pair_search_bytes(n, program.weighted, program.nodes)
        threads = max(1, min(operations.team.threads, room // max(1, alone)))
        shared = threads == operations.team.threads
        self._team = operations.team if shared else Team(threads)
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(threads):
            self._free.put(_HeapSearch(n) if self._weighted else _LevelSearch(n, program.nodes))

    @property
    def _weighted(self) -> bool:
        return self._program.weighted

    def batches(self, left: NDArray[np.int64]) -> Iterator[_Batch]:
        for first in range(0, len(left), _AT_ONCE):
            some = left[first : first + _AT_ONCE]
            found = self._team.map(self._search, some.tolist())
            self._operations.note(sum(edges for _, _, edges in found))
            yield some, np.array([distance for distance, _, _ in found]), [p for _, p, _ in found]

    def _search(self, pair: int) -> tuple[float, Path, int]:
        program, search = self._program, self._free.get()
        ends = int(program.source[pair]), int(program.target[pair])
        try:
            return search.run(*self._pieces, *ends, program, self._number)
        finally:
            self._free.put(search)


_NO_PATH = Path(np.zeros(0, np.uint32), np.zeros(0))


class _LevelSearch:
    """The arrays of a search in hops, which is run for one pair after the other. nodes: whether
    paths are told.
    """

    def __init__(self, vertices: int, nodes: bool) -> None:
        self._seen = np.zeros(vertices, np.uint8)
        self._queues = [np.zeros(vertices + AHEAD, np.uint32) for _ in range(2)]
        self._levels = [np.full(vertices * nodes, -1, np.int32) for _ in range(2)]

    def run(
        self,
        leaving: Piece,
        entering: Piece,
        source: int,
        target: int,
        program: PathsProgram,
        number: NDArray[np.uint32],
    ) -> tuple[float, Path, int]:
        """Return the distance, the path, if paths are told, and the number of edges looked at."""
        seen, queues, levels = self._seen, self._queues, self._levels
        ends, place = (source, target), (seen, *queues, *levels)
        hops, count, count_back, edges = hops_between(leaving, entering, *ends, *place)
        path = _NO_PATH
        if program.nodes and hops >= 0:
            path = Path(np.empty(hops + 1, np.uint32), np.arange(hops + 1, dtype=np.float64))
            lists = *queues, *levels, count, count_back
            edges += trace_hops(leaving, entering, hops, *lists, number, path.vertices)
        for queue, vertices in zip(queues, (count, count_back), strict=True):
            forget_levels(seen, queue, vertices, *levels)
        return math.inf if hops < 0 else float(hops), path, edges


class _HeapSearch:
    """The arrays of a search by weights, which is run for one pair after the other."""

    def __init__(self, vertices: int) -> None:
        self._sides = [
            HeapSide(np.empty(vertices), *(np.zeros(vertices, np.uint32) for _ in range(3)))
            for _ in range(2)
        ]

    def run(
        self,
        leaving: Piece,
        entering: Piece,
        source: int,
        target: int,
        program: PathsProgram,
        number: NDArray[np.uint32],
    ) -> tuple[float, Path, int]:
        """Return as ``_LevelSearch.run``. Floats are added up from the source on."""
        side, back = self._sides
        found = meet(leaving, entering, program.floats, source, target, side, back)
        distance, path, done_back, looked = found.distance, _NO_PATH, found.done_back, 0
        if found.vertex >= 0 and (program.nodes or program.floats):
            path = Path(np.empty(found.hops + 1, np.uint32), np.empty(found.hops + 1))
            if program.floats:
                looked = trace_floats(leaving, entering, side, back, found, *path)
                distance = float(path.distances[-1])
            else:
                trace = found, source, number, *path
                done_back, looked = trace_whole(leaving, side, back, *trace)
        forget_side(side, found.open, found.done)
        forget_side(back, found.open_back, done_back)
        return distance, path, found.edges + looked


# From disk, or by several ranks


def _by_source(
    program: PathsProgram, left: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.int64]]]:
    """Return the sources of the pairs that are left, each with its pairs."""
    order = left[np.argsort(program.source[left], kind="stable")]
    sources, first = np.unique(program.source[order], return_index=True)
    return list(zip(sources.tolist(), np.split(order, first[1:]), strict=True))


def _hops_together(
    program: PathsProgram, operations: Operations, left: NDArray[np.int64]
) -> Iterator[_Batch]:
    """Search from 64 sources at a time, until each has reached its targets."""
    searches, groups = Searches(operations), _by_source(program, left)
    for first in range(0, len(groups), WIDTH):
        group = groups[first : first + WIDTH]
        some = np.concatenate([of_source for _, of_source in group])
        sizes = [len(of_source) for _, of_source in group]
        bits = np.uint64(1) << np.repeat(np.arange(len(group), dtype=np.uint64), sizes)
        targets = program.target[some]
        distances = np.where(program.source[some] == targets, 0.0, np.inf)
        levels = searches.levels(np.array([source for source, _ in group], np.uint32), along=True)
        while np.isinf(distances).any():
            level, _ = next(levels, (0, None))
            if not level:
                break
            reached = operations.fetch(searches.seen, targets) & bits != 0
            distances[reached & np.isinf(distances)] = level
        yield some, distances, []


def _distances_from_sources(
    program: PathsProgram, operations: Operations, left: NDArray[np.int64]
) -> Iterator[_Batch]:
    for source, some in _by_source(program, left):
        _, distances = _search_by_weights(program, operations, source, program.target[some])
        yield some, distances, []


def _search_by_weights(
    program: PathsProgram, operations: Operations, source: int, targets: NDArray[np.uint32]
) -> tuple[Vector, NDArray[np.float64]]:
    """Search from a source until all targets have their distances. Returns the distances of all
    vertices that are no farther, and those of the targets.
    """
    assert program.weights is not None
    search = PathSearch(
        DeltaStepping(source, program.weights, program.mean_degree, math.inf), operations
    )
    search.start()
    while search.next_frontier():
        search.relax()
        farthest = float(operations.fetch(search.distance, targets).max())
        if farthest < search.most:
            search.end_at(farthest)
    search.leave_out()
    return search.distance, operations.fetch(search.distance, targets)


def _paths_from_sources(
    program: PathsProgram, operations: Operations, left: NDArray[np.int64]
) -> Iterator[_Batch]:
    order = operations.id_order()
    number = operations.vector(_NUMBERS)
    operations.put_numbers(number, order)
    for source, some in _by_source(program, left):
        targets = program.target[some]
        distance, distances = None, np.zeros(len(some))
        if program.weighted:
            distance, distances = _search_by_weights(program, operations, source, targets)
        wanted = targets[np.isfinite(distances)]
        search = _LeastPaths(operations, source, number, order, distance, program.floats)
        search.run(wanted)
        paths = [search.path_to(int(target)) for target in targets]
        if not program.weighted:
            distances = np.array([p.distances[-1] if len(p.distances) else np.inf for p in paths])
        yield some, distances, paths


class _LeastPaths:
    """A search, edge by edge, for the least shortest paths from a source. Vertices are ranked by
    number of edges, then by their least paths.

    number: of vertices, by rising id; order: the vertices with these numbers. distance: of all
    vertices, where edges have weights; None for hops. vertex, before: by rank, the same on all
    ranks: the vertex (global id), and the rank of the vertex before it on its path.
    """

    def __init__(
        self,
        operations: Operations,
        source: int,
        number: Vector,
        order: NDArray[np.uint32],
        distance: Vector | None,
        floats: bool,
    ) -> None:
        self._operations = operations
        self._number, self._order = number, order
        self._distance, self._floats = distance, floats
        self._rank = operations.vector(_RANKS, UNREACHED)
        self._offered = operations.vector(_RANKS, UNREACHED)
        self._frontier, self._better = (Marks.none(operations.graph) for _ in range(2))
        n = operations.graph.vertices
        self._vertex, self._before = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        self._count, self._reached = 0, {}
        if distance is not None:
            operations.links.expand(distance)
        self._rank_vertices(np.array([source], np.uint32), np.zeros(1, np.uint32))

    def run(self, targets: NDArray[np.uint32]) -> None:
        """Search until the targets are ranked, or nothing is left to be."""
        self._note_targets(targets, 0)
        while len(self._reached) < len(targets):
            first = self._count
            words = np.sort(self._new_words())
            if not len(words):
                return
            self._rank_vertices(self._order[words & _LOW], (words >> _HALF).astype(np.uint32))
            self._note_targets(targets, first)

    def _note_targets(self, targets: NDArray[np.uint32], first: int) -> None:
        """Note the targets among the vertices from rank ``first`` on."""
        ranked = self._vertex[first : self._count]
        for at in np.flatnonzero(np.isin(ranked, targets)).tolist():
            self._reached[int(ranked[at])] = first + at

    def _rank_vertices(self, vertices: NDArray[np.uint32], before: NDArray[np.uint32]) -> None:
        """Give the next ranks to vertices, and make them the frontier."""
        ranks = np.arange(self._count, self._count + len(vertices), dtype=np.uint32)
        self._vertex[ranks], self._before[ranks] = vertices, before
        self._frontier.clear()
        self._frontier.put(self._operations.put(self._rank, vertices, ranks))
        self._count += len(vertices)

    def _new_words(self) -> NDArray[np.uint64]:
        """Return, on all ranks, a word for each vertex that the frontier's edges reach for the
        first time: the least rank of a vertex before it, and its number.
        """
        operations, offered, better = self._operations, self._offered, self._better
        operations.follow(self._rank, self._frontier, self._offer)
        ghosts = {ghost: members(words) for ghost, words in better.ghosts.items()}
        operations.links.fold_marked(offered, better, np.minimum)
        for ghost, places in ghosts.items():
            offered.ghosts[ghost][places] = UNREACHED
        words = []
        for segment, tells in (("own", True), ("shared", operations.communicator.rank == 0)):
            offers, ranks = getattr(offered, segment), getattr(self._rank, segment)
            at = members(getattr(better, segment))
            new = at[ranks[at] == UNREACHED]
            numbers = getattr(self._number, segment)[new]
            if tells:
                words.append(offers[new].astype(np.uint64) << _HALF | numbers)
            offers[at] = UNREACHED
        better.clear()
        communicator = operations.communicator
        mine = np.concatenate(words)
        operations.note_sent((communicator.size - 1) * mine.nbytes)
        came = communicator.exchange([[mine]] * communicator.size)
        return np.concatenate([part for (part,) in came])

    def _offer(
        self, adjacency: Adjacency, piece: Piece, queue: NDArray[np.uint32], first: int, last: int
    ) -> None:
        source, target = adjacency.source, adjacency.target
        graph, distance = self._operations.graph, self._distance

        def bits(segment: Any) -> NDArray[np.uint64]:
            if distance is None:
                return _NO_DISTANCES
            return distance.at(segment, graph).view(np.uint64)

        weighted = distance is not None, self._floats
        rows = source.places, self._rank.at(source.segment, graph), bits(source.segment)
        offers = self._offered.at(target.segment, graph), bits(target.segment)
        frontier, better = self._frontier, self._better.at(target.segment, graph)
        marked = frontier.at(source.segment, graph)
        ends = target.places, *offers, better
        offer_ranks(piece, *weighted, queue, first, last, *rows, marked, *ends)

    def path_to(self, target: int) -> Path:
        """Return the path to a target, which is empty if there is none. All ranks ask at once."""
        rank = self._reached.get(target)
        if rank is None:
            return _NO_PATH
        ranks = [rank]
        while ranks[-1]:
            ranks.append(int(self._before[ranks[-1]]))
        vertices = self._vertex[ranks[::-1]]
        if self._distance is None:
            return Path(vertices, np.arange(len(vertices), dtype=np.float64))
        return Path(vertices, self._operations.fetch(self._distance, vertices))


# Plans


def calls_of(weighted: bool) -> Calls:
    """Return the kernels of the program."""
    return Calls((Or,), (pairs, steps, relax if weighted else count_bits))


def pair_search_bytes(vertices: int, weighted: bool, nodes: bool) -> int:
    """Return the bytes of the arrays of a search in memory."""
    seen, queues, levels = 1, 2 * 4, 2 * 4 * nodes
    return vertices * (2 * SIDE_BYTES if weighted else seen + queues + levels)


def search_bytes(counts: Counts, weighted: bool, nodes: bool) -> int:
    """Return the bytes of a search: in memory, or from disk or by ranks, whichever takes more."""
    n, numbers = counts.vertices, 0
    passes = paths_bytes(counts) if weighted else 0 if nodes else sums_bytes(counts)
    if nodes:
        ranks, words = vectors_bytes(counts, [_RANKS, _RANKS]), 4 * 8 * n
        passes += ranks + words + 2 * 4 * n + 2 * marks_bytes(counts.own + counts.ghosts)
        numbers = 4 * n + vectors_bytes(counts, [_NUMBERS])
    alone = pair_search_bytes(n, weighted, nodes) if counts.ranks == 1 else 0
    return numbers + max(alone, passes)


def _planned_steps(pairs: int) -> int:
    return _LEAST_STEPS + _STEPS_A_PAIR * pairs


def held_bytes(counts: Counts, pairs: int, weighted: bool, nodes: bool) -> int:
    """Return the bytes of a search and of what is found. pairs: their number."""
    found = PAIR_BYTES * pairs + (STEP_BYTES * _planned_steps(pairs) if nodes else 0)
    return search_bytes(counts, weighted, nodes) + found


@dataclass(frozen=True)
class PathQuestion:
    """The question. pairs: of vertices. nodes: whether paths are told. unweighted: whether weights
    do not count.
    """

    pairs: NamedPairs
    nodes: bool = False
    unweighted: bool = False
    step = "pair"
    weighted = False

    @property
    def name(self) -> str:
        return "path-nodes" if self.nodes else "path"

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        unweighted = {"unweighted": True} if self.unweighted else {}
        return {**self.pairs.told(id_type), **unweighted}

    def program(self, names: Names, info: GraphInfo) -> PathsProgram:
        places = self.pairs.read(names.id_type).places(names)
        weights = None if self.unweighted else info.weights
        return PathsProgram(*places, weights, mean_degree_of(info), self.nodes)

    def calls(self, weighted: bool) -> Calls:
        return calls_of(weighted and not self.unweighted)

    def held_bytes(self, counts: Counts) -> int:
        ids = PAIR_IDS_BYTES * self.pairs.count
        return ids + held_bytes(counts, self.pairs.count, not self.unweighted, self.nodes)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        pairs = self.pairs.read(names.id_type)
        places = pairs.places(names)
        distance = np.asarray(given.values["distance"])
        reached = np.isfinite(distance)
        vertices = np.asarray(given.values["vertex"]) if self.nodes else None
        record = PathsRecord(
            pairs=len(distance),
            repeated=pairs.repeated,
            unreached=int(np.count_nonzero(~reached)),
            farthest=float(distance.max(where=reached, initial=0.0)),
            steps=None if vertices is None else len(vertices),
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        facts = {"path": record}
        kind = given.record["kind"]
        if vertices is None:
            return Answer([_distance_column(distance, kind)], facts, pairs=Pairs(*places))
        steps = np.asarray(given.values["steps"])
        of_row = np.repeat(np.arange(len(steps), dtype=np.uint32), steps)
        first = np.repeat(np.cumsum(steps) - steps, steps)
        columns = [
            Column("step", (np.arange(len(of_row)) - first).astype(np.int32), repeats=True),
            Column("vertex", vertices, vertices=True),
            _distance_column(np.asarray(given.values["along"]), kind),
        ]
        source, target = places
        return Answer(columns, facts, pairs=Pairs(source[of_row], target[of_row]))


def _distance_column(distance: NDArray[np.float64], kind: str) -> Column:
    """Return the column of distances. kind: the type of its values."""
    if kind == "float64":
        return Column("distance", distance, missing=math.inf)
    whole = np.where(np.isfinite(distance), distance, -1.0).astype(kind)
    return Column("distance", whole, missing=-1)


def distances_of(
    source: str | None, target: str | None, pairs: NamedPairs | None, unweighted: bool
) -> PathQuestion:
    """Return the question for distances: between the pairs, or from a source to a target."""
    if pairs is None:
        assert source is not None
        assert target is not None
        pairs = OnePair(source, target)
    return PathQuestion(pairs, unweighted=unweighted)


def nodes_of(**given: Any) -> PathQuestion:
    """Return the question for paths. given: as ``distances_of`` takes it."""
    return replace(distances_of(**given), nodes=True)


def planned(info: GraphInfo) -> PathsProgram:
    """Return the program for a plan, of one pair."""
    return PathsProgram(some_places(1), some_places(1), info.weights)


def planned_nodes(info: GraphInfo) -> PathsProgram:
    """Return the program that tells paths for a plan, of one pair."""
    return replace(planned(info), nodes=True)
