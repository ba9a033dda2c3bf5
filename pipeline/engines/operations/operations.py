"""The operations of a rank on vectors and edges, which algorithms are written in.

``gather`` is a product of the graph's matrix with a vector: every edge counts exactly once. Values
are gathered in the rows of the vertices that edges enter; a layout without such rows scatters them
from the vertices that edges leave. The last bits of a sum depend on where edges are cut, and so on
the engine, but never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap, numbering
from ....kernels.base.compiled import compile_kernels
from ....kernels.base.numbering import is_identity, renumber_all
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces import active, gather, piece, tally, vertices
from ....kernels.pieces.across import gather_across, scatter_across
from ....kernels.pieces.active import cut_turns
from ....kernels.pieces.gather import (
    CUTS,
    count_targets,
    gather_listed,
    gather_piece,
    gather_turns,
    join_cuts,
    push_piece,
    scatter_piece,
)
from ....kernels.pieces.operators import (
    FOLDS,
    TALLIED,
    Amounts,
    AmountsWithin,
    AnySum,
    Operator,
    Or,
    Rule,
    Spread,
    WholeSum,
    reads_weights,
)
from ....kernels.pieces.piece import Piece
from ....kernels.pieces.vertices import add_all, numbers_in
from ....partition.store.vertex_table import KeptLoops
from ...ranks.communicator import Communicator, Message
from ...results.checkpoint import Checkpoint
from ..ranks.edges import Active, AnyRows, Chosen, Rows
from ..ranks.graph import Adjacency, RankGraph, Side
from ..ranks.state import Ghosts
from .contract import Contracted, PairSums, contract
from .forests import NO_GROUPS, EdgeCounts, join_vertices
from .intersect import Intersections
from .marks import Marks, VertexPlaces, places_where, union
from .saving import SavedSteps, Values, VectorSaving
from .spill import no_pairs
from .tally import How, Note, Pickers, PlacedRule, Tallies, Way
from .trees import Trees
from .vectors import Links, Vector, VectorType, make_vector

WINDOW = 1 << 16
"""Number of values that a function gets in one call: they fit a core's cache."""

PUSHED_FOR_PULLED = 8
"""Number of edges that a pull, which stops early, passes in the time that a push follows one
edge.
"""

PUSHED_FOR_SUMMED = 2
"""Number of edges that a pull of sums, which passes every edge, passes in that time."""

ALL_FOR_LISTED = 8
"""Number of values that are visited in order in the time that one is picked by a list of places."""

DEGREES = VectorType(np.uint32, ghosts=True)

Follow = Callable[[Adjacency, Piece, NDArray[np.uint32], int, int], None]
"""Function that is called with a subgraph, a piece of it, and rows of the piece as in relax.py."""

Some = Callable[..., Any]
"""Function that is called with ``counted`` (as NumPy's ``where``) and slices of vectors. It returns
numbers to be added up.
"""


_NUMBERED = 1 << 18
"""Number of vertices whose numbers are set at once."""


class Calls(NamedTuple):
    """The kernels that a program calls, so that they are compiled before its memory is planned.

    operators: types of operators.py that it gives to operations; whole: the same where all edges
    are in memory as one subgraph, None for no difference. kernels: kernels that the program calls
    itself, and modules, which stand for all kernels in them. spills: whether the program may put
    rows on disk and call operations over them, wherever its graph is.
    """

    operators: Sequence[type] = ()
    kernels: Sequence[Any] = ()
    whole: Sequence[type] | None = None
    spills: bool = False


class SlowBits(NamedTuple):
    """Bits that few vertices have in a spread by ``Or``. others: the monoid of all other bits.
    places: gives the few vertices. Rows that pull stop once they have all other bits, and the few
    are pushed along their own edges.
    """

    others: Or
    places: Callable[[], VertexPlaces]


class _Part(NamedTuple):
    """Values of one segment in several vectors. changing: the first so many arrays may change.
    places: the places of vertices in question; None for all.
    """

    arrays: list[NDArray]
    changing: int
    places: NDArray[np.uint32] | None

    def windows(self) -> list[slice]:
        """Return windows that cover the places. There is at least one, even if a rank has no
        vertices.
        """
        count = len(self.arrays[0] if self.places is None else self.places)
        return [slice(first, first + WINDOW) for first in range(0, max(1, count), WINDOW)]

    def at(self, window: slice) -> slice | NDArray[np.uint32]:
        return window if self.places is None else self.places[window]

    def call(self, function: Callable[..., Any], window: slice) -> Any:
        """Call a function with a window's values, store changed values, and return the function's
        result.
        """
        at = self.at(window)
        values = [array[at] for array in self.arrays]
        given = function(*values)
        if self.places is not None:
            for array, changed in zip(self.arrays[: self.changing], values, strict=False):
                array[at] = changed
        return given


class _Held(NamedTuple):
    """Those of some vertices that a segment holds. which: their numbers among the vertices. places:
    in the segment.
    """

    which: NDArray[np.int64]
    places: NDArray[np.int64]


class SegmentLoops(NamedTuple):
    """The self-loops of the vertices of a segment, at their places."""

    places: NDArray[np.int64]
    weights: NDArray[np.float64]


class Loops(NamedTuple):
    """The self-loops of the vertices that a rank has. Those of shared vertices are among its own
    ones, too, where their values are meaningless.
    """

    own: SegmentLoops
    shared: SegmentLoops


class Operations:
    """The operations of one rank. directed: whether the graph is. checkpoint: as in VectorSaving.
    extra_bytes: bytes that a program may hold beyond what it has declared. scratch: the folder for
    files of a program; None for that of temporary files. note: called with the counts of edges and
    of bytes read, for operations that are a part of others'; None to count them here.
    """

    def __init__(
        self,
        graph: RankGraph,
        communicator: Communicator,
        team: Team,
        directed: bool,
        checkpoint: Checkpoint | None = None,
        extra_bytes: int = 0,
        scratch: Path | None = None,
        note: Note | None = None,
    ) -> None:
        self.graph = graph
        self.communicator = communicator
        self.team = team
        self.scratch = scratch
        self._note = note or self._count
        self._links: Links | None = None
        self._tallies: Tallies | None = None
        self._intersections: Intersections | None = None
        self._saving = VectorSaving(graph, communicator, checkpoint)
        self._due = False
        self.directed = directed
        self.extra_bytes = extra_bytes
        self._by_place = _is_by_place(graph)
        self._sums: dict[np.dtype, NDArray] = {}
        self._edges = self._read = self._sent = 0
        self._labels_sent = 0
        self._counted: NDArray[np.bool_] | bool = True
        if graph.shared is not None:
            self._counted = np.ones(graph.own.count, np.bool_)
            self._counted[graph.delegates_here] = False

    @property
    def links(self) -> Links:
        """Return the links, which are made at their first use. All ranks use them first at the same
        time.
        """
        if self._links is None:
            self._links = Links(self.graph, self.communicator)
            self._read += self._links.read
        return self._links

    @cached_property
    def _marks(self) -> Marks:
        """Return the marks of vertices whose edges are followed. They are set only during a
        product.
        """
        return Marks.none(self.graph)

    @cached_property
    def _changed(self) -> Marks:
        """Return the marks of vertices whose values have changed."""
        return Marks.none(self.graph)

    def _all_ways(self) -> list[Way]:
        """Return all ways that tell a vertex of its edges in either direction, each edge once."""
        directions = (True, False) if self.directed else (False,)
        return [Way(*way) for along in directions for way in self._pulls(along)]

    def _all_degrees(self) -> Vector:
        """Return the number of edges of each vertex in either direction, 2^32 - 1 at most."""
        degree = self.degrees(along=False)
        if self.directed:
            self.each(_add_up_to_most, degree, reads=[self.degrees(along=True)])
        return degree

    @cached_property
    def _delegates_by_id(self) -> NDArray[np.intp]:
        """Return the places of delegates by rising global id: vertices are looked up again and
        again.
        """
        return np.argsort(self.graph.delegates)

    def _shared_sums(self, dtype: np.dtype) -> NDArray:
        """Return this rank's sums for shared vertices, apart from values that all ranks have; zeros
        except during a push.
        """
        if dtype not in self._sums:
            count = 0 if self.graph.shared is None else self.graph.shared.count
            self._sums[dtype] = np.zeros(count, dtype)
        return self._sums[dtype]

    @cached_property
    def loops(self) -> Loops | None:
        """Return the self-loops that the graph keeps; None if it keeps none."""
        kept = self.graph.loops(self.team)
        if kept is None:
            return None
        weights = kept.weights.astype(np.float64)
        held = self._places_of(kept.vertices)
        return Loops(*(SegmentLoops(part.places, weights[part.which]) for part in held))

    @property
    def whole(self) -> Rows | None:
        """Return all edges by the vertices that they leave, if they are in memory as one set of
        rows by place; otherwise None.
        """
        return self.rows_along(True)

    def rows_along(self, along: bool) -> Rows | None:
        """Return all edges by the vertices that they leave (``along``) or enter; None as in
        ``whole``.
        """
        flow = self.graph.flows[0]
        side = flow.forward if along or not self.directed else flow.backward
        rows = side and side.rows
        return rows if self._by_place and isinstance(rows, Rows) else None

    def note(self, edges: int, read: int = 0) -> None:
        """Count edges of ``whole`` that a program has looked at by itself, and bytes that it has
        read from disk.
        """
        self._note(edges, read)

    def note_sent(self, sent: int) -> None:
        """Count bytes that a program has sent to other ranks by itself."""
        self._labels_sent += sent

    # Vectors

    def vector(self, kind: VectorType, value: Any = 0) -> Vector:
        """Return a new vector filled with ``value``. ``gather`` and ``spread`` need vectors with
        ghosts.
        """
        return make_vector(self.graph, kind, value, self.team)

    def each(
        self,
        function: Callable[..., None],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> None:
        """Call ``function`` with slices of vectors, on threads. reads: more vectors, which it does
        not change. places: the vertices to visit; None for all.
        """
        for part in self._parts(vectors, reads, places):

            def window(at: slice, part: _Part = part) -> None:
                part.call(function, at)

            self.team.map(window, part.windows())

    def sum_each(
        self,
        function: Some,
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]:
        """Call ``function`` as ``each`` does, and return the sums of its results over all ranks.
        Its first argument, ``counted``, is True or a mask of the vertices that count: a vertex that
        ranks share counts on one of them only.
        """
        counting = [(self._counted, True), (True, self.communicator.rank == 0)]
        totals: list[Any] = []
        parts = self._parts(vectors, reads, places)
        for (counted, adds), part in zip(counting, parts, strict=False):

            def window(at: slice, counted: Any = counted, part: _Part = part) -> Any:
                where = counted if counted is True else counted[part.at(at)]
                return part.call(partial(function, where), at)

            totals += [
                np.multiply(adds, result) for result in self.team.map(window, part.windows())
            ]
        return self.total(np.sum(totals, axis=0))

    def max_each(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]:
        """Call ``function`` as ``each`` does, and return the greatest of its results over all
        ranks.
        """
        found: list[Any] = []
        for part in self._parts(vectors, reads, places):

            def window(at: slice, part: _Part = part) -> Any:
                return part.call(function, at)

            found += self.team.map(window, part.windows())
        return self.everyones(np.max(found, axis=0)).max(axis=0)

    def where(
        self, values: Vector, other_than: Any = 0, among: VertexPlaces | None = None
    ) -> VertexPlaces:
        """Return the vertices whose value is not ``other_than``. among: the vertices that are
        looked at; None for all.
        """
        parts = values.own, values.shared
        if among is None:
            return VertexPlaces(*(places_where(part != other_than) for part in parts))
        pairs = zip(parts, among, strict=True)
        return VertexPlaces(*(places[part[places] != other_than] for part, places in pairs))

    def union(self, sets: Sequence[VertexPlaces | None]) -> VertexPlaces | None:
        """Return the vertices of several sets, each once; None if one of the sets is None."""
        return union(sets)

    def where_any(self, words: Vector, bits: np.uint64) -> VertexPlaces:
        """Return the vertices whose words have any of ``bits``."""
        own_places, shared_places = (
            places_where(part & bits != 0) for part in (words.own, words.shared)
        )
        return VertexPlaces(own_places, shared_places)

    def _parts(
        self, vectors: Sequence[Vector], reads: Sequence[Vector], places: VertexPlaces | None
    ) -> list[_Part]:
        """Return the own values of vectors and, if the graph has shared vertices, the shared
        ones.
        """
        all_vectors, changed = [*vectors, *reads], len(vectors)
        parts = [_Part([v.own for v in all_vectors], changed, places and places.own)]
        if self.graph.shared is not None:
            parts.append(_Part([v.shared for v in all_vectors], changed, places and places.shared))
        return parts

    def total(self, numbers: Any) -> NDArray[np.float64]:
        """Return the sums of numbers over all ranks; all ranks get the same."""
        return self.everyones(numbers).sum(axis=0)

    def everyones(self, numbers: Any) -> NDArray[np.float64]:
        """Return the numbers of all ranks, a row for each rank; all ranks get the same."""
        mine = np.array(numbers, np.float64, ndmin=1)
        if self.communicator.size == 1:
            return mine[None]
        told = np.append(mine, self._saving.due())
        came = self.communicator.exchange([[told] for _ in range(self.communicator.size)])
        whole = np.stack([message[0] for message in came])
        self._due = bool(whole[0, -1])
        return whole[:, :-1]

    def list_where(self, choose: Callable[..., Any], *vectors: Vector) -> list[NDArray]:
        """Return, on all ranks, the values that some vertices have in each of the vectors. choose:
        is called with slices of the vectors, and returns a mask.
        """
        mine: list[list[NDArray]] = []
        counting = (self._counted, self.communicator.rank == 0)
        for counted, part in zip(counting, self._parts((), vectors, None), strict=False):

            def window(at: slice, counted: Any = counted, part: _Part = part) -> list[NDArray]:
                counts = counted if isinstance(counted, bool) else counted[at]
                chosen = np.flatnonzero(part.call(choose, at) & counts)
                return [array[at][chosen] for array in part.arrays]

            mine += self.team.map(window, part.windows())
        lists = [np.concatenate(arrays) for arrays in zip(*mine, strict=True)]
        ranks = self.communicator.size
        if ranks == 1:
            return lists
        self.note_sent((ranks - 1) * sum(array.nbytes for array in lists))
        came = self.communicator.exchange([lists] * ranks)
        return [np.concatenate(arrays) for arrays in zip(*came, strict=True)]

    def id_order(self) -> NDArray[np.uint32]:
        """Return the global ids of all vertices by rising user id: uint32 (vertices,)."""
        return self.graph.id_order(self.team)

    # Checkpoints

    @property
    def is_single(self) -> bool:
        """Return whether there is one rank."""
        return self.communicator.size == 1

    def kept_loops(self) -> KeptLoops | None:
        """Return the self-loops that the graph keeps, on all ranks; None if it keeps none."""
        return self.graph.loops(self.team)

    def end_round(self, is_alone: bool) -> None:
        """End a round, of all ranks, which then know whether to save, or of rank 0 alone."""
        self.communicator.check()
        if not is_alone:
            self.total(0)

    def saved_facts(self) -> Any:
        """Return the facts that were saved, by which a program makes the arrays that ``load``
        fills; None if nothing was saved.
        """
        return self._saving.facts()

    def load(self, values: Values) -> SavedSteps | None:
        """Fill vectors, and arrays that are the same on all ranks, with saved values. Returns None
        if nothing was saved.
        """
        return self._saving.load(values)

    def due(self) -> bool:
        """Return whether to save, the same on all ranks: rank 0 has told the others with the last
        sum.
        """
        return self._saving.due() if self.communicator.size == 1 else self._due

    def save(self, done: int, values: Values, facts: Any = None) -> None:
        """Save the values after ``done`` steps. values: the same set that ``load`` fills, in every
        save. facts: JSON values. Raises KeyboardInterrupt on all ranks after the save if the run
        has been asked to end.
        """
        self._saving.save(done, values, facts)

    def due_alone(self) -> bool:
        """Return whether to save, on rank 0, which does something alone."""
        return self._saving.due()

    def save_alone(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        """Save arrays as ``save`` does, on rank 0, which does something alone: the others wait for
        it in ``end_alone``.
        """
        self._saving.save_alone(done, arrays, facts)

    def end_alone(self, told: Message) -> Message:
        """End what rank 0 does alone, while the others wait for it here. Returns what it tells, on
        all ranks. Raises KeyboardInterrupt as ``save`` does.
        """
        told = [] if self.communicator.rank else told
        others = self.communicator.size - 1
        self.note_sent(others * sum(np.asarray(part).nbytes for part in told))
        return self._saving.end_alone(told)

    def degrees(self, along: bool = True) -> Vector:
        """Return the number of edges that enter each vertex (``along``) or leave it: uint32,
        without ghosts. A layout without rows of the vertices that edges enter scans other rows.
        """
        degree = self.vector(DEGREES)
        for adjacency, how in self._pulls(along):
            self.communicator.check()
            if how == "gather":
                self._count_rows(adjacency, degree)
            else:
                self._count_targets(adjacency, degree)
        self.links.fold(degree, np.add)
        degree.ghosts.clear()
        return degree

    def _count_rows(self, adjacency: Adjacency, degree: Vector) -> None:
        side, offsets = adjacency.source, adjacency.rows.offsets
        values = degree.at(side.segment, self.graph)
        for first in range(0, side.count, WINDOW):
            last = min(first + WINDOW, side.count)
            rows = renumber_all(side.places, np.arange(first, last, dtype=np.uint32))
            values[rows] += np.diff(offsets[first : last + 1]).astype(np.uint32)

    def _count_targets(self, adjacency: Adjacency, degree: Vector) -> None:
        side = adjacency.target
        values = degree.at(side.segment, self.graph)

        def visit(piece: Piece, *_: Any) -> None:
            count_targets(piece, side.places, values)

        visits = adjacency.rows.every(Team(1), visit)
        self._note(int(adjacency.rows.offsets[-1]), visits.read)

    def put(self, into: Vector, vertices: NDArray[np.uint32], values: NDArray) -> VertexPlaces:
        """Set the values of vertices, given by global id, in ``into``; each rank sets those that it
        has. Returns their places.
        """
        own, shared = self._places_of(vertices)
        into.own[own.places] = values[own.which]
        into.shared[shared.places] = values[shared.which]
        return VertexPlaces(own.places.astype(np.uint32), shared.places.astype(np.uint32))

    def fetch(self, values: Vector, vertices: NDArray[np.uint32]) -> NDArray:
        """Return the values of vertices, given by global id. All ranks ask for the same ones."""
        own, shared = self._places_of(vertices)
        found = np.zeros(len(vertices), values.own.dtype)
        found[own.which] = values.own[own.places]
        found[shared.which] = values.shared[shared.places]
        communicator = self.communicator
        if communicator.size == 1:
            return found
        mine = np.setdiff1d(own.which, shared.which)
        message = [mine, found[mine]]
        self.note_sent((communicator.size - 1) * sum(part.nbytes for part in message))
        for which, came in communicator.exchange([message] * communicator.size):
            found[which] = came
        return found

    def _places_of(self, vertices: NDArray[np.uint32]) -> tuple[_Held, _Held]:
        """Return which of some vertices are in the own segment and in the shared one."""
        graph = self.graph
        if graph.partitions == 1:
            here, own_places = np.arange(len(vertices)), vertices.astype(np.int64)
        else:
            local, partition = np.divmod(vertices.astype(np.int64), graph.partitions)
            here = np.flatnonzero(partition % graph.ranks == graph.rank)
            own_places = local[here] * len(graph.held) + partition[here] // graph.ranks
        shared, places = np.zeros(0, np.int64), np.zeros(0, np.int64)
        if graph.shared is not None and len(graph.delegates):
            rows = self._delegates_by_id
            at = np.searchsorted(graph.delegates, vertices, sorter=rows)
            at = rows[np.minimum(at, len(rows) - 1)]
            shared = np.flatnonzero(graph.delegates[at] == vertices)
            places = at[shared]
        return _Held(here, own_places), _Held(shared, places)

    def put_numbers(self, into: Vector, order: NDArray[np.uint32] | None = None) -> None:
        """Set each vertex's value to its place in an order of global ids; None for the global id
        itself. A window at a time, so that little memory is taken.
        """
        for first in range(0, self.graph.vertices, _NUMBERED):
            last = min(first + _NUMBERED, self.graph.vertices)
            numbers = np.arange(first, last, dtype=np.uint32)
            vertices = numbers if order is None else order[first:last]
            if self.graph.partitions == 1 and self.graph.shared is None:
                into.own[vertices] = numbers
            else:
                self.put(into, vertices, numbers)

    # Edges

    def gather(
        self,
        operator: AnySum,
        x: Vector,
        y: Vector,
        along: bool = True,
        wanted: VertexPlaces | None = None,
        *,
        loops: int = 0,
    ) -> None:
        """Combine ``x[u]`` of every edge u -> v into ``y[v]``. Both vectors have ghosts.

        along: whether edges are followed in their direction, or against it. wanted: the vertices
        whose ``y`` is needed, None for all; ``y`` of other vertices is then undefined. It is
        allowed only for sums without weights. loops: how many times the self-loops that the graph
        keeps count.
        """
        self.links.expand(x)
        if wanted is not None:
            self._mark(wanted)
        self._product(operator, x, y, self._pulls(along), wanted)
        if wanted is not None:
            self._unmark()
        if loops and self.loops is not None:
            weighted = reads_weights(operator)
            for of_segment, values, came in _by_segment(self.loops, x, y):
                times = loops * of_segment.weights if weighted else loops
                came[of_segment.places] += times * values[of_segment.places]

    def add_loops(self, degree: Vector, times: int) -> None:
        """Add the self-loops that the graph keeps, ``times`` times, to the number of edges of each
        vertex.
        """
        if self.loops is not None:
            for of_segment, counts in _by_segment(self.loops, degree):
                counts[of_segment.places] += np.uint32(times)

    def gather_across(
        self, operator: AmountsWithin, x: Vector, y: Vector, along: bool = True
    ) -> None:
        """Combine what every edge u -> v gives to v, by ``x[v]``, ``x[u]`` and its weight, into
        ``y[v]``. The ``y`` of a vertex whose ``x`` is the unit stays. Both vectors have ghosts.

        along: whether edges are followed in their direction, or against it.
        """
        self.links.expand(x)
        for values in y.ghosts.values():
            values[:] = operator.unit
        for adjacency, how in self._pulls(along):
            self.communicator.check()
            source, target = adjacency.source, adjacency.target
            ends = self.ends(adjacency, x)
            kernel, entered = (
                (gather_across, source) if how == "gather" else (scatter_across, target)
            )
            into = y.at(entered.segment, self.graph)

            def visit(
                piece: Piece, *_: Any, kernel: Any = kernel, ends: Any = ends, into: Any = into
            ) -> None:
                kernel(operator, piece, *ends, into)

            visits = self._rows(adjacency, operator).every(self.team, visit)
            self._note(int(adjacency.rows.offsets[-1]), visits.read)
        self.links.fold(y, FOLDS[type(operator)])

    def spread(
        self,
        operator: Spread,
        x: Vector,
        y: Vector,
        along: bool,
        places: VertexPlaces,
        aside: SlowBits | None = None,
    ) -> VertexPlaces | None:
        """Combine ``x[u]`` of every edge u -> v into ``y[v]``, by pushing from the vertices in
        ``places`` if they have few edges, else by pulling. Every edge counts exactly once.

        places: all vertices whose ``x`` is not the unit. along: whether edges are followed in their
        direction, or against it. aside: bits that few vertices have, the same on all ranks; only
        with ``Or``, as edges of these vertices may count twice. Ghosts
        have the unit before and after. Returns the vertices whose ``y`` has changed; None if any
        may have changed, or so many that a list of them does not pay.
        """
        if self._push_few(operator, x, y, along, places):
            changed = self._changed.take()
            listed = len(changed.own) + len(changed.shared)
            here = len(y.own) + len(y.shared)
            return changed if listed * ALL_FOR_LISTED < here else None
        if aside is not None and self._push_few(operator, x, y, along, aside.places()):
            self._changed.clear()
            operator = aside.others
        self.links.expand(x)
        self._product(operator, x, y, self._pulls(along))
        for ghosts in (*x.ghosts.values(), *y.ghosts.values()):
            ghosts[:] = operator.unit
        return None

    def _push_few(
        self, operator: Spread, x: Vector, y: Vector, along: bool, places: VertexPlaces
    ) -> bool:
        """Push along the edges of the vertices in ``places``, if that takes less time than a pull.
        Returns whether it did; ``_changed`` then marks the vertices whose ``y`` has changed.
        """
        sums = isinstance(operator, WholeSum)
        pushes = self._pushes(along)
        if not all(how == "scatter" for _, how in pushes):
            return False
        adjacencies = [adjacency for adjacency, _ in pushes]
        self._mark(places)
        told = self._tell_ghosts(x, adjacencies)
        edges = [(self._active(a, places).edges, int(a.rows.offsets[-1])) for a in adjacencies]
        few, all_edges = self.total(np.sum(edges, axis=0))
        pays = few * (PUSHED_FOR_SUMMED if sums else PUSHED_FOR_PULLED) < all_edges
        if pays:
            into = replace(y, shared=self._shared_sums(y.shared.dtype)) if sums else y
            for adjacency in adjacencies:  # a list of rows at a time
                self._push(operator, adjacency, self._active(adjacency, places), x, into)
            came = self._changed.ghost_places()
            self.links.fold_marked(y, self._changed, FOLDS[type(operator)], into.shared)
            if sums:
                into.shared[bitmap.members(self._changed.shared)] = operator.unit
            for values, ghost_places in ((x, told), (y, came)):
                for ghost, at in ghost_places.items():
                    values.ghosts[ghost][at] = operator.unit
        self._unmark()
        return bool(pays)

    def _tell_ghosts(
        self, x: Vector, adjacencies: Sequence[Adjacency]
    ) -> dict[int, NDArray[np.uint32]]:
        """Send values of marked vertices to the ghosts that edges leave, and mark these ghosts.
        Returns their places, by ghost segment.
        """
        if not any(isinstance(a.source.segment, Ghosts) for a in adjacencies):
            return {}
        self.links.expand_marked(x, self._marks)
        return self._marks.ghost_places()

    def follow(self, values: Vector, frontier: Marks, follow: Follow) -> int:
        """Call ``follow`` for each subgraph, with pieces that hold the edges leaving the frontier.
        Returns the number of these edges.

        values: of the frontier's vertices; ghosts that edges leave receive them from their owners.
        The marks of ghosts are cleared at the end.
        """
        edges = 0
        forward = self._forward()
        if any(isinstance(adjacency.source.segment, Ghosts) for adjacency in forward):
            self.links.expand_marked(values, frontier)
        for adjacency in forward:
            self.communicator.check()
            side = adjacency.source
            words = frontier.at(side.segment, self.graph)
            active = adjacency.rows.active(self.team, Chosen(side.places, words, side.count))

            def visit(
                piece: Piece,
                queue: NDArray,
                first: int,
                last: int,
                _: int,
                a: Adjacency = adjacency,
            ) -> None:
                follow(a, piece, queue, first, last)

            self._note(active.edges, adjacency.rows.push(self.team, active, visit).read)
            edges += active.edges
        for words in frontier.ghosts.values():
            words[:] = 0
        return edges

    def _product(
        self,
        operator: Operator,
        x: Vector,
        y: Vector,
        ways: Iterable[tuple[Adjacency, How]],
        wanted: VertexPlaces | None = None,
    ) -> None:
        """Combine values along all edges. wanted: the vertices whose rows are gathered, except in
        ghost segments; None for all.
        """
        for values in y.ghosts.values():
            values[:] = operator.unit
        if self.communicator.rank and isinstance(operator, AnySum | WholeSum):
            y.shared[:] = operator.unit  # earlier values of shared vertices count on rank 0 only
        for adjacency, how in ways:
            self.communicator.check()
            source, target = adjacency.source, adjacency.target
            if how == "gather":
                ends = self._values(y, source), self._values(x, target)
                active_rows = None
                if wanted is not None and not isinstance(source.segment, Ghosts):
                    active_rows = self._active(adjacency, wanted)
                self._gather(operator, adjacency, active_rows, *ends)
            else:
                self._scatter(operator, adjacency, self._values(x, source), self._values(y, target))
        self.links.fold(y, FOLDS[type(operator)])

    def tally(
        self,
        rule: Rule | PlacedRule,
        amounts: Amounts,
        x: Vector,
        y: Vector,
        pickers: Pickers | None = None,
    ) -> None:
        """Set ``y[v]`` to the label that the vertex prefers of its neighbours' labels ``x[u]``, by
        the sums of what their edges amount to. Edges of either direction count; an edge in both
        directions counts twice in a directed graph. ``y`` stays where a vertex has no edges.

        x: uint32, with ghosts, labels below the number of vertices. y: uint32, without ghosts.
        pickers: the vertices whose ``y`` is set; None for all.
        """
        if self._tallies is None:
            place = self.graph, self.communicator, self.team
            ways, degrees = self._all_ways(), self._all_degrees
            self._tallies = Tallies(*place, ways, degrees, self.total, self._note)
        leaving, entering = self.rows_along(True), self.rows_along(False)
        if leaving is not None and entering is not None:
            rows = leaving, entering if self.directed else None
            own_rule = rule.own if isinstance(rule, PlacedRule) else rule
            self._tallies.pick_whole(own_rule, amounts, *rows, x.own, y.own, pickers)
            return
        self.links.expand(x)
        if pickers is not None:
            self.links.expand(pickers.turns)
        whole = self._by_place and not self.directed
        self._tallies.pick_by_windows(rule, amounts, x, y, whole, pickers)

    def forget_tallies(self) -> None:
        """Free what tallies hold from one to the next."""
        if self._tallies is not None:
            self._labels_sent += self._tallies.sent
            self._tallies = None

    def intersect(self) -> Intersections:
        """Return the intersections of the neighbours of all edges' ends, of which nothing is
        counted yet. They are made once.
        """
        place = self.graph, self.communicator, self.team
        self._intersections = Intersections(
            *place, self._all_ways(), self.directed, self.extra_bytes, self._note
        )
        return self._intersections

    def contract(self, labels: Vector, amounts: Amounts, planned: int = 0) -> Contracted:
        """Return, on rank 0, the edges between labels: each pair of labels once, with the sum of
        what its edges amount to. Other ranks get none. In an undirected graph the first label of a
        pair is the lesser one.

        labels: uint32, with ghosts, below the number of vertices. planned: the number of pairs that
        the program has planned for. Raises LimitError if more do not fit memory.
        """
        found = PairSums(self.graph.vertices, self.extra_bytes, planned)
        self.add_pairs(found, labels, amounts, loops=False)
        pairs = found.held()
        assert pairs is not None
        return Contracted.of(no_pairs() if self.communicator.rank else pairs)

    def add_pairs(self, found: PairSums, labels: Vector, amounts: Amounts, loops: bool) -> None:
        """Add the edges between labels to ``found`` on rank 0; that of other ranks is empty then.

        labels: as in ``contract``. loops: whether the edges inside labels are told, too; of an
        undirected graph each counts twice.
        """
        self.links.expand(labels)
        place = self.graph, self.communicator, self.team, self._forward(), self.directed
        sent = contract(found, *place, self._note, labels, amounts, loops)
        self._labels_sent += sent

    def join(self, groups: NDArray[np.uint32] = NO_GROUPS) -> NDArray[np.uint32]:
        """Join the ends of edges, and return the trees, as forests.join_vertices does. groups: by
        global id; if given, only edges inside a group are followed.
        """
        place = self.graph, self.communicator, self.team, self.directed
        trees, edge_counts = join_vertices(*place, groups)
        self._note(edge_counts.edges, edge_counts.read)
        self._labels_sent += edge_counts.sent
        return trees

    def trees(self) -> Trees:
        """Return the trees of a spanning forest: each vertex is one."""
        return Trees(self, self._all_ways(), self._note)

    def edge_counts(self) -> EdgeCounts:
        """Return the counts of all ranks since the last call."""
        sent = self._labels_sent
        for sender in (self._links, self._tallies, self._intersections):
            sent += 0 if sender is None else sender.sent
        done = self.total([self._edges, self._read, sent - self._sent])
        self._edges = self._read = 0
        self._sent = sent
        return EdgeCounts(*(int(count) for count in done))

    def ends(self, adjacency: Adjacency, values: Vector) -> tuple[Any, NDArray, Any, NDArray]:
        """Return the places of a subgraph's rows and values by place, and those of its targets."""
        return *self._values(values, adjacency.source), *self._values(values, adjacency.target)

    # Helpers of the operations

    def _forward(self) -> list[Adjacency]:
        """Return the subgraphs that have each edge once, in the row of the vertex that the edge
        leaves.
        """
        return [a for a in self.graph.adjacencies if not a.name.startswith("reverse")]

    def _pulls(self, along: bool) -> list[tuple[Adjacency, How]]:
        """Return each edge once, with how values travel along it: gathered in the row of the vertex
        that the edge enters, or scattered if there are no such rows.
        """
        if not self.directed or not along:
            return [(adjacency, "gather") for adjacency in self._forward()]
        return [
            (flow.forward, "scatter") if flow.backward is None else (flow.backward, "gather")
            for flow in self.graph.flows
        ]

    def _pushes(self, along: bool) -> list[tuple[Adjacency, How]]:
        """Return each edge once, with how values travel along it: scattered from the row of the
        vertex that the edge leaves, or gathered if there are no such rows.
        """
        if not self.directed or along:
            return [(adjacency, "scatter") for adjacency in self._forward()]
        return [
            (flow.forward, "gather") if flow.backward is None else (flow.backward, "scatter")
            for flow in self.graph.flows
        ]

    def _mark(self, places: VertexPlaces) -> None:
        """Mark the places for ``_active``."""
        if not self._by_place:
            self._marks.put(places)

    def _unmark(self) -> None:
        if not self._by_place:
            self._marks.clear()

    def _active(self, adjacency: Adjacency, places: VertexPlaces) -> Active:
        """Return the active rows of a subgraph: the rows of the vertices in ``places``, which must
        be marked.
        """
        side = adjacency.source
        if self._by_place:
            chosen = Chosen.of_lists([places.own], side.count)
        else:
            chosen = Chosen(side.places, self._marks.at(side.segment, self.graph), side.count)
        return adjacency.rows.active(self.team, chosen)

    def _values(self, values: Vector, side: Side) -> tuple[Any, NDArray]:
        return side.places, values.at(side.segment, self.graph)

    def _gather(
        self, operator: Operator, adjacency: Adjacency, active_rows: Active | None, y: Any, x: Any
    ) -> None:
        """Gather values into the rows of a subgraph. active_rows: None for all. y: places and
        values of the rows. x: places and values of the targets.
        """
        rows = self._rows(adjacency, operator)
        if active_rows is not None and isinstance(rows, Rows):

            def visit_listed(
                piece: Piece, queue: NDArray, first: int, last: int, most: int
            ) -> None:
                gather_listed(operator, piece, queue, first, last, *x, *y)

            rows.push(self.team, active_rows, visit_listed)
            self._edges += active_rows.edges
            return
        if isinstance(rows, Rows):
            turns = -(-len(rows.targets) // gather.EDGES_A_TURN)
            cut = np.full(CUTS * turns, -1, np.int64)
            parts = np.empty(CUTS * turns, y[1].dtype)
            team = self.team if turns > 1 else Team(1)
            taken = no_turns(team.threads)
            team.run(gather_turns, operator, rows.piece, *x, *y, cut, parts, taken)
            join_cuts(operator, y[1], cut, parts)
            self._edges += len(rows.targets)
            return

        def visit(piece: Piece, *_: Any) -> tuple[NDArray, NDArray]:
            cut, parts = np.full(CUTS, -1, np.int64), np.empty(CUTS, y[1].dtype)
            gather_piece(operator, piece, *x, *y, cut, parts)
            return cut, parts

        if active_rows is None:
            visits, edges = rows.every(self.team, visit), int(rows.offsets[-1])
        else:
            visits, edges = rows.push(self.team, active_rows, visit), active_rows.edges
        self._note(edges, visits.read)
        for cut, parts in visits.results:
            join_cuts(operator, y[1], cut, parts)

    def _push(
        self, operator: Spread, adjacency: Adjacency, active: Active, x: Vector, y: Vector
    ) -> None:
        """Push values from active rows to their targets, and mark the targets whose values
        change.
        """
        self.communicator.check()
        source, target = adjacency.source, adjacency.target
        ends = *self._values(x, source), *self._values(y, target)
        changed = self._changed.at(target.segment, self.graph)

        def visit(piece: Piece, queue: NDArray, first: int, last: int, most: int) -> None:
            push_piece(operator, piece, queue, first, last, *ends, changed)

        rows = self._rows(adjacency, operator)
        self._note(active.edges, rows.push(self.team, active, visit).read)

    def _scatter(self, operator: Operator, adjacency: Adjacency, x: Any, y: Any) -> None:
        def visit(piece: Piece, *_: Any) -> None:
            scatter_piece(operator, piece, *x, *y)

        visits = self._rows(adjacency, operator).every(Team(1), visit)
        self._note(int(adjacency.rows.offsets[-1]), visits.read)

    def _rows(self, adjacency: Adjacency, operator: Any) -> AnyRows:
        """Return the rows of a subgraph, without weights if an operator does not use any."""
        return adjacency.rows if reads_weights(operator) else adjacency.rows.unweighted

    def _count(self, edges: int, read: int) -> None:
        self._edges += edges
        self._read += read


def _add_up_to_most(degree: NDArray[np.uint32], other: NDArray[np.uint32]) -> None:
    degree += np.minimum(other, ~degree)


def _is_by_place(graph: RankGraph) -> bool:
    """Return whether the graph has one subgraph (and its reverse) whose rows and targets are
    numbered by place.
    """
    ends = [side for a in graph.adjacencies for side in (a.source, a.target)]
    is_single = len({a.name.removeprefix("reverse-") for a in graph.adjacencies}) == 1
    return is_single and all(end.segment is graph.own and is_identity(end.places) for end in ends)


def warm_up(
    offset_types: Iterable[np.dtype], calls: Calls, whole: bool = False, load: bool = True
) -> None:
    """Compile, or load from the cache, the kernels that a program calls, itself and by operations.

    offset_types: dtypes of the offsets of the subgraphs. whole: whether all edges are in memory as
    one subgraph, whose rows and targets are places. load: whether to load kernels that only
    operations call (compile_kernels).
    """
    if whole and calls.spills:  # these are loaded only if it comes to that
        warm_up(offset_types, calls._replace(kernels=()), load=False)
    operators = calls.whole if whole and calls.whole is not None else calls.operators
    types, unused_operators = set(offset_types), (FOLDS.keys() | TALLIED) - set(operators)
    kernels: list[Any] = [bitmap, numbering, piece]
    tallies = TALLIED & set(operators)
    if not whole:
        kernels += [active, vertices, gather, *([tally] if tallies else [])]
    else:
        kernels += [cut_turns, numbers_in, add_all]
        if operators:
            kernels += [gather_turns, join_cuts]
        if set(get_args(Spread)) & set(operators):
            kernels.append(push_piece)
        if tallies:
            whole_kernels = tally.cut_rows, tally.tally_turns, tally.tally_class
            kernels += [*whole_kernels, tally.pick_of_entries]
    if AmountsWithin in operators:
        kernels += [gather_across, scatter_across]
    compile_kernels(*kernels, load=load, leave_out=unused_operators, offsets=types)
    compile_kernels(*calls.kernels, leave_out=FOLDS.keys() - set(calls.operators), offsets=types)


def _by_segment(loops: Loops, *vectors: Vector) -> list[tuple[Any, ...]]:
    """Return the loops of each segment with the values of vectors there."""
    own = loops.own, *(vector.own for vector in vectors)
    return [own, (loops.shared, *(vector.shared for vector in vectors))]
