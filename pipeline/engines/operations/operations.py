"""Vectors and edges of a rank, as an algorithm sees them.

``gather`` is a product of the graph's matrix with a vector: every edge counts exactly once, along
the rows of the vertices that it enters, or, where a layout has no such rows, scattered from those
that it leaves. Sums depend on where edges are cut, and so on the engine, in the last bits; never on
the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.base import bitmap, numbering
from ....kernels.base.bitmap import WORD
from ....kernels.base.compiled import compile_kernels
from ....kernels.base.numbering import by_rule, by_table, is_identity, renumber_all
from ....kernels.base.team import Team
from ....kernels.pieces import forest, gather, piece
from ....kernels.pieces.gather import (
    CUTS,
    gather_listed,
    gather_piece,
    gather_turns,
    join_cuts,
    push_bits,
    scatter_piece,
)
from ....kernels.pieces.operators import FOLDS, Operator, Or, Sum
from ....kernels.pieces.piece import Piece
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Active, Chosen, Rows, Visits
from ..ranks.graph import Adjacency, RankGraph, Side
from ..ranks.state import Ghosts
from .vectors import Links, Vector, vector

WINDOW = 1 << 16
"""Values that a function of ``each`` is given at once: they stay in a core's cache."""

PUSHED_FOR_PULLED = 8
"""Edges that a pull gets through, stopping early, while one is followed from a list."""

How = Literal["gather", "scatter"]
"""To the rows of a subgraph from its targets, or to the targets from the rows."""

LABELS_AT_ONCE = 1 << 22
"""Of a forest, that a rank tells another."""

Some = Callable[..., Any]
"""Called with ``counted``, as NumPy's ``where``, and slices of vectors; gives numbers to add up."""


class Looked(NamedTuple):
    """What was done since it was last asked: edges looked at, bytes read, bytes sent to others."""

    edges: int = 0
    read: int = 0
    sent: int = 0


class Operations:
    """Of one rank. directed: of the store."""

    def __init__(
        self, graph: RankGraph, communicator: Communicator, team: Team, directed: bool
    ) -> None:
        self.graph = graph
        self.communicator = communicator
        self.team = team
        self._links: Links | None = None
        self.directed = directed
        self._edges = self._read = self._sent = 0
        self._labels_sent = 0
        self._counted: NDArray[np.bool_] | bool = True
        if graph.shared is not None:
            self._counted = np.ones(graph.own.count, np.bool_)
            self._counted[_delegates_here(graph)] = False

    @property
    def links(self) -> Links:
        """Made when they are first needed, which is when all ranks need them."""
        if self._links is None:
            self._links = Links(self.graph, self.communicator)
            self._read += self._links.read
        return self._links

    # Vectors

    def vector(self, dtype: DTypeLike, value: Any = 0, ghosts: bool = False) -> Vector:
        """ghosts: of what edges lead to, too, as ``gather`` wants it."""
        return vector(self.graph, dtype, value, ghosts)

    def each(self, some: Some, *vectors: Vector) -> NDArray[np.float64]:
        """Call ``some`` with slices of vectors, all of them, on threads; the sums of what it gives,
        over all ranks. counted: vertices whose numbers this rank adds: each counts on one rank.
        """
        parts: list[tuple[Any, list[NDArray]]] = [(self._counted, [v.own for v in vectors])]
        if self.graph.shared is not None:
            parts.append((self.communicator.rank == 0, [v.shared for v in vectors]))
        totals: list[Any] = []
        for counted, arrays in parts:

            def window(first: int, counted: Any = counted, arrays: Any = arrays) -> Any:
                at = slice(first, first + WINDOW)
                where = counted[at] if isinstance(counted, np.ndarray) else counted
                return some(where, *(array[at] for array in arrays))

            firsts = range(0, max(1, len(arrays[0])), WINDOW)  # a rank may have no vertices
            totals += self.team.map(window, firsts)
        return self.total(np.sum(totals, axis=0))

    def total(self, numbers: Any) -> NDArray[np.float64]:
        """Sums over all ranks, the same on each."""
        mine = np.atleast_1d(np.asarray(numbers, np.float64))
        if self.communicator.size == 1:
            return mine
        came = self.communicator.exchange([[mine] for _ in range(self.communicator.size)])
        return np.sum([message[0] for message in came], axis=0)

    def degrees(self) -> Vector:
        """Neighbours that each vertex's edges lead to: uint32, without ghosts."""
        degree = self.vector(np.uint32, 0, ghosts=True)
        for adjacency in self._forward():
            side, offsets = adjacency.source, adjacency.rows.offsets
            values = degree.at(side.segment, self.graph)
            for first in range(0, side.count, WINDOW):
                last = min(first + WINDOW, side.count)
                rows = renumber_all(side.places, np.arange(first, last, dtype=np.uint32))
                values[rows] += np.diff(offsets[first : last + 1]).astype(np.uint32)
        self.links.fold(degree, np.add)
        degree.ghosts.clear()
        return degree

    def put(self, into: Vector, vertices: NDArray[np.uint32], values: NDArray) -> None:
        """Values of some vertices, by global id: each rank takes those that it knows."""
        graph = self.graph
        local, partition = np.divmod(vertices.astype(np.int64), graph.partitions)
        here = partition % graph.ranks == graph.rank
        into.own[local[here] * len(graph.held) + partition[here] // graph.ranks] = values[here]
        if graph.shared is not None:
            rows = np.argsort(graph.delegates)
            at = np.searchsorted(graph.delegates, vertices, sorter=rows)
            at = rows[np.minimum(at, len(rows) - 1)] if len(rows) else at
            known = graph.delegates[at] == vertices if len(rows) else np.zeros(len(at), np.bool_)
            into.shared[at[known]] = values[known]

    # Edges

    def gather(
        self,
        operator: Sum,
        x: Vector,
        y: Vector,
        along: bool = True,
        wanted: Vector | None = None,
    ) -> None:
        """``y[v]`` = it combined with ``x[u]`` of every edge u -> v; both with ghosts.

        along: or against the direction of edges. wanted: of which vertices, nonzero where; what
        others get may be anything.
        """
        self.links.expand(x)
        pulls = self._pulls(along)
        active: dict[int, Active] | None = None
        if wanted is not None:
            active = {}
            for adjacency, how in pulls:
                segment = adjacency.source.segment
                if how == "gather" and not isinstance(segment, Ghosts):
                    chosen = self._chosen(wanted, adjacency.source)
                    active[id(adjacency)] = adjacency.rows.active(self.team, chosen)
        self._product(operator, x, y, pulls, active)

    def spread(self, operator: Or, x: Vector, y: Vector, along: bool) -> None:
        """The same of bits, which may be combined twice: from few vertices, by following the edges
        of these alone. along: or against their direction.
        """
        self.links.expand(x)
        pushes = [(a, how) for a, how in self._pushes(along) if how == "scatter"]
        active = {id(a): a.rows.active(self.team, self._chosen(x, a.source)) for a, _ in pushes}
        edges = sum(int(a.rows.offsets[-1]) for a, _ in pushes)
        few, all_edges = self.total([sum(some.edges for some in active.values()), edges])
        if few * PUSHED_FOR_PULLED >= all_edges:
            self._product(operator, x, y, self._pulls(along))
        else:
            self._product(operator, x, y, self._pushes(along), active)

    def _product(
        self,
        operator: Operator,
        x: Vector,
        y: Vector,
        ways: Iterable[tuple[Adjacency, How]],
        active: Mapping[int, Active] | None = None,
    ) -> None:
        """active: rows that are scattered, or gathered, of each; all of what is not there."""
        active = active or {}
        for values in y.ghosts.values():
            values[:] = operator.unit
        if self.communicator.rank and isinstance(operator, Sum):
            y.shared[:] = 0.0  # what shared ones have already counts once
        for adjacency, how in ways:
            self.communicator.check()
            source, target = adjacency.source, adjacency.target
            some = active.get(id(adjacency))
            if how == "gather":
                ends = self._values(y, source), self._values(x, target)
                self._gather(operator, adjacency, some, *ends)
                continue
            ends = self._values(x, source), self._values(y, target)
            if some is None:
                self._scatter(operator, adjacency, *ends)
            else:
                self._push(adjacency, some, *ends)
        self.links.fold(y, FOLDS[type(operator)])

    def join(self) -> NDArray[np.uint32]:
        """The least vertex, by global id, that edges join each vertex to: uint32, of all vertices;
        on rank 0. On others what is known there.

        Ranks join what they have themselves first. Then half of them tell the others, half of those
        the rest, and so on: a long path through all ranks takes no more rounds than any graph.
        """
        trees = np.arange(self.graph.vertices, dtype=np.uint32)
        sampled: list[Adjacency] = []
        # Another rank passes over its own largest tree: an edge between both would be missed.
        alone = self.communicator.size == 1
        for adjacency, twice in self._joined():
            if twice and alone and isinstance(adjacency.rows, Rows):
                sampled.append(adjacency)
            else:
                self._join_all(adjacency, trees, twice)
        if sampled:
            self._join_sampled(sampled, trees)
        self._flatten(trees)
        step = 1
        while step < self.communicator.size:
            self._merge(trees, step)
            step *= 2
        return trees

    def looked(self) -> Looked:
        sent = self._labels_sent + (self._links.sent if self._links else 0)
        done = Looked(self._edges, self._read, sent - self._sent)
        self._edges = self._read = 0
        self._sent = sent
        return done

    # What these are made of

    def _forward(self) -> Iterable[Adjacency]:
        """Each edge once, in the row of the vertex that it leaves."""
        return [a for a in self.graph.adjacencies if not a.name.startswith("reverse")]

    def _pulls(self, along: bool) -> list[tuple[Adjacency, How]]:
        """Each edge once, as far as there are such rows in that of the vertex it leads to."""
        if not self.directed or not along:
            return [(adjacency, "gather") for adjacency in self._forward()]
        return [
            (flow.forward, "scatter") if flow.backward is None else (flow.backward, "gather")
            for flow in self.graph.flows
        ]

    def _pushes(self, along: bool) -> list[tuple[Adjacency, How]]:
        """The same in that of the vertex it leads from."""
        if not self.directed or along:
            return [(adjacency, "scatter") for adjacency in self._forward()]
        return [
            (flow.forward, "gather") if flow.backward is None else (flow.backward, "scatter")
            for flow in self.graph.flows
        ]

    def _chosen(self, x: Vector, side: Side) -> Chosen:
        """Vertices with bits."""
        values = x.at(side.segment, self.graph)
        words = np.zeros(-(-len(values) // WORD), np.uint64)
        marked = np.packbits(values != 0, bitorder="little")
        words.view(np.uint8)[: len(marked)] = marked
        return Chosen(side.places, words, side.count)

    def _joined(self) -> Iterable[tuple[Adjacency, bool]]:
        """Each edge, and whether in the rows of both its ends."""
        if not self.directed:
            return [(adjacency, True) for adjacency in self.graph.adjacencies]
        return [(flow.forward, False) for flow in self.graph.flows]

    def _values(self, values: Vector, side: Side) -> tuple[Any, NDArray]:
        return side.places, values.at(side.segment, self.graph)

    def _gather(
        self, operator: Operator, adjacency: Adjacency, some: Active | None, y: Any, x: Any
    ) -> None:
        """some: rows; None for all. y, x: places and values, of the rows and of the targets."""
        rows = adjacency.rows
        if some is not None and isinstance(rows, Rows):

            def visit_listed(
                piece: Piece, queue: NDArray, first: int, last: int, most: int
            ) -> None:
                gather_listed(operator, piece, queue, first, last, *x, *y)

            rows.push(self.team, some, visit_listed)
            self._edges += some.edges
            return
        if isinstance(rows, Rows):
            turns = -(-len(rows.targets) // gather.EDGES_A_TURN)
            cut = np.full(CUTS * turns, -1, np.int64)
            parts = np.empty(CUTS * turns, y[1].dtype)
            cursor = np.zeros(1, np.int64)
            team = self.team if turns > 1 else Team(1)
            team.run(gather_turns, operator, *rows, *x, *y, cut, parts, cursor)
            join_cuts(operator, y[1], cut, parts)
            self._edges += len(rows.targets)
            return

        def visit(some: Piece, *_: Any) -> tuple[NDArray, NDArray]:
            cut, parts = np.full(CUTS, -1, np.int64), np.empty(CUTS, y[1].dtype)
            begin, end = some.begin, some.end
            gather_piece(
                operator, some.offsets, some.targets, begin, begin, end, *x, *y, cut, parts
            )
            return cut, parts

        if some is None:
            done = self._note(rows.every(self.team, visit), adjacency)
        else:
            visits = rows.push(self.team, some, visit)
            self._read += visits.read
            self._edges += some.edges
            done = visits.results
        for cut, parts in done:
            join_cuts(operator, y[1], cut, parts)

    def _push(self, adjacency: Adjacency, active: Active, x: Any, y: Any) -> None:
        def visit(some: Piece, queue: NDArray, first: int, last: int, most: int) -> None:
            push_bits(some, queue, first, last, *x, *y)

        visits = adjacency.rows.push(self.team, active, visit)
        self._read += visits.read
        self._edges += active.edges

    def _scatter(self, operator: Operator, adjacency: Adjacency, x: Any, y: Any) -> None:
        rows = adjacency.rows
        if isinstance(rows, Rows):
            edges = len(rows.targets)
            scatter_piece(operator, *rows, 0, 0, edges, *x, *y)
            self._edges += edges
            return

        def visit(some: Piece, *_: Any) -> None:
            at_hand = some.offsets, some.targets, some.begin, some.begin, some.end
            scatter_piece(operator, *at_hand, *x, *y)

        self._note(rows.every(Team(1), visit), adjacency)

    def _join_all(self, adjacency: Adjacency, trees: NDArray[np.uint32], twice: bool) -> None:
        rows, ids = adjacency.rows, _global_ids(adjacency)

        def visit(some: Piece, *_: Any) -> None:
            self.communicator.check()
            begin, end = some.begin, some.end
            forest.join_piece(some.offsets, some.targets, begin, begin, end, *ids, trees, twice)

        self._note(rows.every(self.team, visit), adjacency)

    def _join_sampled(self, adjacencies: list[Adjacency], trees: NDArray[np.uint32]) -> None:
        """As Afforest does: first some of each row, then rows that are not in the largest tree."""
        some = [(*a.rows, *_global_ids(a)) for a in adjacencies if isinstance(a.rows, Rows)]
        for rows in some:
            self.team.run(forest.join_first, *rows, trees, np.zeros(1, np.int64))
        self._flatten(trees)
        roots, counts = np.unique(trees[:: max(1, len(trees) // 1024)], return_counts=True)
        largest = roots[np.argmax(counts)]
        for rows in some:
            self.team.run(forest.join_rest, *rows, trees, largest, np.zeros(1, np.int64))
            self._edges += len(rows[1])

    def _merge(self, trees: NDArray[np.uint32], step: int) -> None:
        """Each rank that is an odd multiple of ``step`` tells the one ``step`` before it."""
        rank, size = self.communicator.rank, self.communicator.size
        tells = rank % (2 * step) == step
        hears = rank % (2 * step) == 0 and rank + step < size
        for first in range(0, len(trees), LABELS_AT_ONCE):
            labels = trees[first : first + LABELS_AT_ONCE]
            messages: list[Message] = [[] for _ in range(size)]
            if tells:
                messages[rank - step] = [labels]
                self._labels_sent += labels.nbytes
            came = self.communicator.exchange(messages)
            if hears:
                forest.join_labels(trees, first, came[rank + step][0])
        self._flatten(trees)

    def _flatten(self, trees: NDArray[np.uint32]) -> None:
        self.team.run(forest.flatten, trees, np.zeros(1, np.int64))

    def _note(self, visits: Visits, adjacency: Adjacency) -> list:
        self._read += visits.read
        self._edges += int(adjacency.rows.offsets[-1])
        return visits.results


def _global_ids(adjacency: Adjacency) -> tuple[Any, Any]:
    """From a subgraph's rows and its targets to global ids."""
    return tuple(_composed(side) for side in (adjacency.source, adjacency.target))


def _composed(side: Side) -> Any:
    if is_identity(side.places):
        return side.segment.ids
    if is_identity(side.segment.ids):
        return side.places
    first, second = side.places, side.segment.ids
    if first.width == second.width == 1 and not (len(first.table) or len(second.table)):
        addend = first.addend * second.multiplier + second.addend
        return by_rule(first.multiplier * second.multiplier, addend)
    numbers = np.arange(side.count, dtype=np.uint32)
    return by_table(renumber_all(second, renumber_all(first, numbers)))


def _delegates_here(graph: RankGraph) -> NDArray[np.int64]:
    """Places of delegates in the own segment, where nothing is known of them."""
    ids = graph.delegates.astype(np.int64)
    local, partition = np.divmod(ids, graph.partitions)
    here = partition % graph.ranks == graph.rank
    return local[here] * len(graph.held) + partition[here] // graph.ranks


def warm_up(offset_types: Iterable[np.dtype]) -> None:
    """Compile, or load from the cache, what operations call; offset_types: of the subgraphs."""
    compile_kernels(bitmap, numbering, piece, gather, forest, offsets=set(offset_types))
