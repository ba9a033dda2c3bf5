"""Shortest paths from one vertex along weighted edges, none of them negative.

Delta-stepping (Meyer, Sanders: Delta-stepping: a parallelizable shortest path algorithm, 2003):
vertices leave by buckets of distances. The vertices in a bucket shorten distances along their
edges, time and again, until the bucket is empty; then the next bucket begins at the least distance
that is left. The width of a bucket follows from the bucket before: wider, if that one had little to
do; narrower, if vertices left it more than once.

Parents follow from the distances: the last edge of a shortest path leads to its target from a
vertex that is nearer; or, if the edge weighs nothing, from a vertex as near that has a parent
already. So parents form a tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.bitmap import members
from ...kernels.base.graph import UNREACHED
from ...kernels.base.numbering import Numbering
from ...kernels.base.turns import no_turns
from ...kernels.gpu_programs import shared_paths as on_devices
from ...kernels.gpu_programs import shortest_paths as on_device
from ...kernels.gpu_programs.meeting import closed_by_all
from ...kernels.gpu_programs.ranks import Ranks
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.piece import Piece
from ...kernels.programs import relax
from ...kernels.programs.relax import (
    FAR,
    NARROWEST,
    Bucket,
    Rule,
    adopt_piece,
    adopt_rows,
    next_bucket,
    relax_alone,
    relax_piece,
    take_below,
)
from ...partition.errors import DelegraphError, InputError
from ...partition.input.id_types import shown_id
from ...partition.input.ids import parse_id
from ...partition.store.manifest import GraphInfo, WeightInfo
from ..engines.operations.forests import EdgeCounts, global_ids
from ..engines.operations.marks import Marks, add, mark_where, marks_bytes
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts, Vector, VectorType, links_bytes, vectors_bytes
from ..engines.ranks.edges import EDGES_A_TURN, Rows
from ..engines.ranks.graph import Adjacency, Side
from ..questions.sssp import ShortestPathsRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from .bfs import find
from .run import Answer

LITTLE = 1 << 12
"""Number of edges of a bucket below which the next bucket is wider, as so few edges are no work."""

AGAIN = 0.25
"""Share of vertices that leave a bucket again, among all that leave it, from which on the next
bucket is narrower.
"""

_FEW_VERTICES = EDGES_A_TURN
"""The most vertices of a frontier that one thread follows alone. The frontier has a turn's edges at
most, too.
"""

_WORK_AT_ONCE = 1 << 22
"""Number of edges and words of bitmaps between two looks at the clock."""

_DISTANCES = VectorType(np.float64, ghosts=True)
_PARENTS = VectorType(np.uint32)
_OFFERS = VectorType(np.uint32, ghosts=True)
"""The type of a vector with parents that are offered to vertices without one."""

EXACT = 2.0**53
"""The limit below which floats of 64 bits hold all whole numbers exactly."""


@dataclass(frozen=True)
class DeltaStepping:
    """The program. source: global id. weights: the type of the store's weights. most: the greatest
    length of paths.

    mean_degree: of the vertices; with the mean weight it says how wide the first bucket is.
    """

    source: int
    weights: WeightInfo
    mean_degree: float
    most: float
    columns = ("distance", "parent")
    weighted = True
    wants_degrees = scans_once = False
    rows = ReadRows.BY_SOURCE
    calls = Calls(kernels=(relax,))

    def held_bytes(self, counts: Counts) -> int:
        return paths_bytes(counts)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        paths = PathSearch(self, operations)
        rounds = paths.begin()
        while paths.next_frontier():
            rounds += paths.relax()
            tell(rounds, 0, f"distance {paths.bucket.limit:.6g}")
            if operations.due():
                bucket = [paths.bucket.begin, paths.bucket.width]
                operations.save(rounds, {"distance": paths.distance}, bucket)
        paths.leave_out()
        values = {"distance": paths.distance, "parent": paths.parents()}
        record = {"rounds": rounds, "buckets": paths.bucket.number, "integers": not paths.floats}
        return ProgramResult(values, {**operations.edge_counts()._asdict(), **record})

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices, entries)

    def compile_on(self, graph: ProgramGraph) -> None:
        (on_device if graph.ranks == 1 else on_devices).warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        done, width, so_far = self._saved(saving, graph.vertices)
        asked = graph, self.source, width, self.most
        whole = self.weights.kind == "uint32" and so_far is None
        paths = on_device.GpuWholePaths(*asked) if whole else on_device.GpuPaths(*asked, so_far)
        in_vain = 0
        while not paths.done:
            paths.run()
            if isinstance(paths, on_device.GpuWholePaths) and paths.beyond:
                in_vain = paths.edges
                del paths  # before others need its memory
                paths = on_device.GpuPaths(*asked)
                continue
            tell(done + paths.rounds, 0, f"distance {paths.bucket[0]:.6g}")
            if saving.due():
                distance = {"distance": paths.distances()}
                saving.save(done + paths.rounds, distance, list(paths.bucket))
        edge_counts = EdgeCounts(edges=in_vain + paths.edges)._asdict()
        parent = paths.parents()
        values = {"distance": paths.distances(), "parent": parent}
        return ProgramResult(values, {**edge_counts, **self._record(done, paths)})

    def exchange_bytes(self, vertices: int) -> int:
        return on_devices.exchange_bytes(vertices)

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        done, width, so_far = self._saved(saving, graph.vertices)
        found = on_devices.shared_paths(graph, ranks, self.source, width, self.most, so_far)
        with closed_by_all(found, ranks) as paths:
            while not paths.done:
                if paths.step(saving.due()):
                    distance = {"distance": paths.known()}
                    saving.save(done + paths.rounds, distance, list(paths.bucket))
            values, parent = {}, paths.adopt()
            if ranks.rank == 0:
                values = {"distance": paths.distances(), "parent": parent.get()}
        edges, sent = ranks.total([paths.edges, ranks.sent])
        edge_counts = EdgeCounts(edges=int(edges), sent=int(sent))._asdict()
        return ProgramResult(values, {**edge_counts, **self._record(done, paths)})

    def _saved(
        self, saving: Saving, vertices: int
    ) -> tuple[int, float, tuple[NDArray[np.float64], float] | None]:
        """Return the rounds that an earlier run has done, the width of the bucket that it was in,
        and the distances and the begin of that bucket, if anything was saved.
        """
        distance = np.empty(vertices)
        saved = saving.load({"distance": distance})
        if saved is None:
            return 0, self.first_width, None
        begin, width = saved.facts
        return saved.done, width, (distance, begin)

    def _record(self, done: int, paths: on_device.GpuPaths) -> dict[str, Any]:
        """Return the record's facts. done: the number of rounds before the rounds of ``paths``."""
        return {
            "rounds": done + paths.rounds,
            "buckets": paths.buckets,
            "integers": self.weights.kind == "uint32",
        }

    @property
    def first_width(self) -> float:
        """Return the width of the first bucket."""
        return max(self.weights.mean / max(1.0, self.mean_degree), NARROWEST)


class PathSearch:
    """A rank's part of the search for shortest paths. most: the greatest length of paths.

    pending: vertices whose edges have to be followed, still or again. frontier: those of them that
    are in the bucket. better: vertices whose distances a round has made less. left: vertices that
    have left the bucket.
    """

    def __init__(self, of: DeltaStepping, operations: Operations) -> None:
        self._of = of
        self._operations = operations
        self.most = of.most
        self.floats = of.weights.kind == "float32"
        graph = operations.graph
        self.distance = operations.vector(_DISTANCES, np.inf)
        self._pending, self._frontier, self._better, self._left = (
            Marks.none(graph) for _ in range(4)
        )
        width = of.first_width
        self.bucket = Bucket(0.0, width, width)
        self._rule = Rule(LITTLE, AGAIN, float(np.nextafter(of.most, np.inf)))
        self._count = 0.0
        few = 0 if operations.whole is None else min(_FEW_VERTICES, graph.vertices) + 1
        self._lists = np.empty((2, few), np.uint32)

    def begin(self) -> int:
        """Begin from saved distances, or else from the source. Returns the number of rounds
        done.
        """
        saved = self._operations.load({"distance": self.distance})
        if saved:
            begin, width = saved.facts
            self.bucket = Bucket(begin, width, begin + width)
            for marks, distance in (
                (self._pending.own, self.distance.own),
                (self._pending.shared, self.distance.shared),
            ):
                mark_where(marks, np.isfinite(distance) & (distance >= begin))
            return saved.done
        self.start()
        return 0

    def start(self) -> None:
        """Begin from the source."""
        source = np.array([self._of.source], np.uint32)
        self._pending.put(self._operations.put(self.distance, source, np.zeros(1)))

    def end_at(self, most: float) -> None:
        """Ignore paths that are longer than ``most`` from now on."""
        self.most = most
        self._rule = self._rule._replace(beyond=float(np.nextafter(most, np.inf)))

    def _mark_reached(self, marks: Marks) -> None:
        mark_where(marks.own, np.isfinite(self.distance.own))
        mark_where(marks.shared, np.isfinite(self.distance.shared))

    def next_frontier(self) -> bool:
        """Take the vertices in the bucket, or in the next bucket that holds any, as the frontier.
        Returns whether there are any.
        """
        while True:
            self._count, least = self._take()
            if self._count:
                return True
            if not least <= self.most or least == np.inf:
                return False
            self._next_bucket(least)

    def _take(self) -> tuple[float, float]:
        """Take the pending vertices in the bucket as the frontier. Returns their number, over all
        ranks, and the least distance of the other pending vertices.
        """
        communicator = self._operations.communicator
        bits = self._limit_bits()
        taken, again, least = 0, 0, FAR
        for counts, values, segment in (
            (True, self.distance.own, "own"),
            (communicator.rank == 0, self.distance.shared, "shared"),
        ):
            marks = self._pending, self._frontier, self._left
            pending, frontier, left = (getattr(mark, segment) for mark in marks)
            count, before, stay = take_below(pending, values.view(np.uint64), bits, frontier, left)
            least = min(least, stay)
            taken += count * counts
            again += before * counts
        numbers = [taken, again, float(np.uint64(least).view(np.float64))]
        came = self._operations.everyones(numbers)
        all_taken, all_again = (float(count) for count in came[:, :2].sum(axis=0))
        bucket = self.bucket
        self.bucket = bucket._replace(
            taken=bucket.taken + all_taken, again=bucket.again + all_again
        )
        return all_taken, float(came[:, 2].min())

    def _next_bucket(self, least: float) -> None:
        (edges,) = self._operations.total([self.bucket.edges])
        self.bucket = next_bucket(self.bucket._replace(edges=float(edges)), self._rule, least)
        self._left.clear()

    def relax(self) -> int:
        """Let the frontier's edges shorten distances, on all ranks. Returns the number of rounds
        done.
        """
        rows = self._operations.whole
        rounds = 0
        if rows is not None and self._count <= _FEW_VERTICES:
            rounds = self._relax_small(rows)
        if not rounds:
            self._relax_together()
        return rounds or 1

    def _relax_small(self, rows: Rows) -> int:
        """Do rounds by one thread. Returns their number, which is 0 if this round is large."""
        self.bucket, rounds, edges = relax_alone(
            rows.piece,
            self.floats,
            self.distance.own.view(np.uint64),
            self.bucket,
            self._rule,
            self._frontier.own,
            self._pending.own,
            self._left.own,
            *self._lists,
            EDGES_A_TURN,
            _WORK_AT_ONCE,
        )
        self._operations.note(edges)
        return rounds

    def _limit_bits(self) -> np.uint64:
        return np.float64(min(self.bucket.limit, self._rule.beyond)).view(np.uint64)

    def _relax_together(self) -> None:
        operations, distance, graph = self._operations, self.distance, self._operations.graph
        by_place = operations.whole is not None

        def follow(
            adjacency: Adjacency, piece: Piece, queue: NDArray[np.uint32], first: int, last: int
        ) -> None:
            source, target = adjacency.source, adjacency.target
            places = (None, None) if by_place else (source.places, target.places)
            rows = places[0], self._bits(source), self._frontier.at(source.segment, graph)
            ends = places[1], self._bits(target), self._better.at(target.segment, graph)
            relax_piece(piece, self.floats, queue, first, last, *rows, *ends)

        edges = self.bucket.edges + operations.follow(distance, self._frontier, follow)
        self.bucket = self.bucket._replace(edges=edges)
        operations.links.fold_marked(distance, self._better, np.minimum)
        self._pending.own |= self._better.own
        self._pending.shared |= self._better.shared
        self._better.clear()

    def _bits(self, side: Side) -> NDArray[np.uint64]:
        """Return the distances at one end of a subgraph, as bits."""
        return self.distance.at(side.segment, self._operations.graph).view(np.uint64)

    def leave_out(self) -> None:
        """Leave out vertices that are too far, among those that edges have reached."""
        if self.most < math.inf:
            self._operations.each(self._without, self.distance)

    def _without(self, distance: NDArray[np.float64]) -> None:
        distance[distance > self.most] = np.inf

    def parents(self) -> Vector:
        """Return the parents. Call this once distances do not change any more."""
        operations, distance = self._operations, self.distance
        operations.links.expand(distance)
        parent = operations.vector(_PARENTS, UNREACHED)
        source = np.array([self._of.source], np.uint32)
        operations.put(parent, source, np.zeros(1, np.uint32))  # it takes no other
        ids = {id(a): global_ids(a.source) for a in operations.graph.adjacencies}
        rows = operations.whole
        if rows is not None and not operations.directed:
            orphans = self._look_back(rows, parent.own)
        else:
            orphans = self._take_offers(parent, ids)
        if orphans:
            self._adopt_alike(parent, ids, orphans)
        operations.put(parent, source, np.array([UNREACHED]))
        return parent

    def _look_back(self, rows: Rows, parent: NDArray[np.uint32]) -> float:
        """Let vertices look for a parent in their rows, as edges lead both ways. Returns the number
        of vertices that find none.
        """
        team, bits = self._operations.team, self.distance.own.view(np.uint64)
        found = team.run(adopt_rows, rows.piece, self.floats, bits, parent, no_turns(team.threads))
        self._operations.note(sum(edge_counts for edge_counts, _ in found))
        return sum(orphans for _, orphans in found)

    def _take_offers(self, parent: Vector, ids: dict[int, Numbering]) -> float:
        """Let vertices offer themselves as parents to vertices that are farther. Returns the number
        of vertices that have no parent afterwards.
        """
        operations = self._operations
        offered = operations.vector(_OFFERS, UNREACHED)
        self._mark_reached(self._frontier)
        self._offer(offered, ids, alike=False)
        operations.links.fold(offered, np.minimum)
        operations.each(_take_least, parent, offered)
        (orphans,) = operations.sum_each(_orphans, self.distance, parent)
        return float(orphans)

    def _adopt_alike(self, parent: Vector, ids: dict[int, Numbering], orphans: float) -> None:
        """Give parents to vertices that are as near as their neighbours, from vertex to vertex,
        until all have one.
        """
        operations = self._operations
        offered = operations.vector(_OFFERS, UNREACHED)
        self._better.clear()
        mark_where(self._frontier.own, parent.own != UNREACHED)
        mark_where(self._frontier.shared, parent.shared != UNREACHED)
        while orphans:
            self._offer(offered, ids, alike=True)
            adopted = {ghost: members(words) for ghost, words in self._better.ghosts.items()}
            operations.links.fold_marked(offered, self._better, np.minimum)
            orphans -= self._adopt(parent, offered)
            for ghost, places in adopted.items():
                offered.ghosts[ghost][places] = UNREACHED

    def _offer(self, offered: Vector, ids: dict[int, Numbering], alike: bool) -> None:
        """Offer the vertices of the frontier as parents to their neighbours. ids: numberings from
        rows to global ids, by subgraph.
        """
        operations, distance, graph = self._operations, self.distance, self._operations.graph

        def follow(
            adjacency: Adjacency, piece: Piece, queue: NDArray[np.uint32], first: int, last: int
        ) -> None:
            source, target = adjacency.source, adjacency.target
            frontier = self._frontier.at(source.segment, graph)
            rows = source.places, ids[id(adjacency)], self._bits(source), frontier
            offers = offered.at(target.segment, graph), self._better.at(target.segment, graph)
            ends = target.places, self._bits(target), *offers, alike
            adopt_piece(piece, self.floats, queue, first, last, *rows, *ends)

        operations.follow(distance, self._frontier, follow)

    def _adopt(self, parent: Vector, offered: Vector) -> float:
        """Let vertices that had no parent take the parent that they are offered, and make these
        vertices the next frontier. Returns their number.
        """
        count = 0
        counts = True, self._operations.communicator.rank == 0
        for counted, segment in zip(counts, ("own", "shared"), strict=True):
            words = getattr(self._better, segment)
            parents, offers = getattr(parent, segment), getattr(offered, segment)
            at = members(words)
            new = at[parents[at] == UNREACHED]
            parents[new] = offers[new]
            offers[at] = UNREACHED
            words[:] = 0
            frontier = getattr(self._frontier, segment)
            frontier[:] = 0
            add(frontier, new)
            count += len(new) * counted
        (found,) = self._operations.total([count])
        return float(found)


def _take_least(parent: NDArray[np.uint32], offered: NDArray[np.uint32]) -> None:
    np.minimum(parent, offered, out=parent)


def _orphans(counted: Any, distance: NDArray[np.float64], parent: NDArray[np.uint32]) -> int:
    return int(np.count_nonzero(np.isfinite(distance) & (parent == UNREACHED) & counted))


def paths_bytes(counts: Counts) -> int:
    """Return the bytes of vectors, bitmaps, the rows of a frontier, and messages between ranks."""
    here, ghosts, ranks = counts.own + counts.shared, counts.ghosts, counts.ranks
    vectors = vectors_bytes(counts, (_DISTANCES, _PARENTS, _OFFERS))
    told = links_bytes(ghosts) + 2 * 12 * counts.shared * (ranks if ranks > 1 else 0)
    # Rows, one more bitmap as bytes, and distances as integers.
    lists = 2 * 4 * (_FEW_VERTICES + 1)
    vectors += 5 * marks_bytes(here + ghosts) + lists
    return vectors + told + (4 + 1) * here + 8 * counts.vertices


def _program(source: int, info: GraphInfo, most: float) -> DeltaStepping:
    assert info.weights is not None
    return DeltaStepping(source, info.weights, mean_degree_of(info), most)


def mean_degree_of(info: GraphInfo) -> float:
    return sum(info.subgraph_edges.values()) / max(1, info.vertices)


def planned(info: GraphInfo) -> DeltaStepping:
    """Return the program for a plan, with any source. Raises InputError if the graph has no
    weights.
    """
    if info.weights is None:
        raise InputError("the store has no weights: build it again with --weight COL")
    return _program(0, info, math.inf)


@dataclass(frozen=True)
class ShortestPaths:
    """The question. source: as typed. max_distance: of paths; None for any."""

    source: str
    max_distance: float | None = None
    name = "sssp"
    step = "round"
    weighted = True

    def __post_init__(self) -> None:
        if self.max_distance is not None and not 0 <= self.max_distance < math.inf:
            raise InputError(
                f"max_distance must be a number of at least 0, not {self.max_distance}; leave it "
                "out for no bound"
            )

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {
            "source": shown_id(parse_id(self.source, id_type)),
            "max_distance": self.max_distance,
        }

    def program(self, names: Names, info: GraphInfo) -> Program:
        most = math.inf if self.max_distance is None else self.max_distance
        return _program(find(names, self.source).place, info, most)

    def calls(self, weighted: bool) -> Calls:
        return DeltaStepping.calls

    def held_bytes(self, counts: Counts) -> int:
        return paths_bytes(counts)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        distance, parent = (np.asarray(given.values[name]) for name in DeltaStepping.columns)
        reached = np.isfinite(distance)
        farthest = float(distance.max(where=reached, initial=0.0))
        column = Column("distance", distance, missing=math.inf)
        if given.record["integers"]:
            if farthest >= EXACT:
                raise DelegraphError(f"distances of {farthest:g} are too large to be exact")
            whole = np.where(reached, distance, -1.0).astype(np.int64)
            column = Column("distance", whole, missing=-1)
        record = ShortestPathsRecord(
            source=shown_id(parse_id(self.source, names.id_type)),
            max_distance=self.max_distance,
            reached=int(np.count_nonzero(reached)),
            farthest=farthest,
            rounds=given.record["rounds"],
            buckets=given.record["buckets"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        parents = Column("parent", parent, vertices=True, missing=int(UNREACHED))
        return Answer((column, parents), {"sssp": record})
