"""A rank's part of a graph: the subgraphs of its partitions, and the segments between which their
edges lead.

A single rank has all vertices in its own segment, by global id, delegates included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.numbering import Numbering, by_rule, by_table
from ....kernels.base.team import Team
from ....kernels.pieces.vertices import add_all
from ....partition.store.grid import ONE, Grid
from ....partition.store.layout import kept_subgraphs, local_rows
from ....partition.store.manifest import GraphInfo, is_weights, stem_of
from ....partition.store.store import Store
from ....partition.store.whole import IdOrder, Loops
from ..direction import Pullable
from .edges import NO_ROWS, Active, AnyRows, Chosen, Loader
from .routes import (
    Ends,
    Kind,
    Routes,
    count_of,
    lies_in,
    owned,
    partitions_of,
    places,
    reverse_of,
    routes_of,
    segments_of,
)
from .state import Ghosts, Vertices

LOOP_BYTES = 64
"""Bytes of a self-loop: as read, and by the places of its vertex, while these are looked up."""


@dataclass
class Side:
    """An end of a subgraph, its rows or its targets. places: numbering from the subgraph's
    ``count`` numbers to places in the segment. frontier: the part of the frontier that is known
    here, made anew in every superstep.
    """

    segment: Vertices | Ghosts
    places: Numbering
    count: int
    frontier: Chosen = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.frontier = self.segment.chosen(self.places, self.count)


@dataclass
class Adjacency:
    """A subgraph of a partition, with its two ends. active: its rows in the frontier, as far as the
    frontier is known here.
    """

    partition: int
    name: str
    rows: AnyRows
    source: Side
    target: Side
    active: Active = NO_ROWS

    def look(self, team: Team) -> None:
        """Find the rows in the frontier."""
        self.active = self.rows.active(team, self.source.frontier)


@dataclass
class Flow:
    """A way for a search to go (routes.Route): it pushes from the rows of ``forward``, and pulls
    into the rows of ``backward``, unless that is None.

    pullable: the rows of ``backward`` that this rank owns and that a pull can still find. whole:
    the same before a search.
    """

    name: str
    forward: Adjacency
    backward: Adjacency | None
    whole: Pullable
    pullable: Pullable

    def enter(self) -> None:
        """Take the rows in the frontier out of ``pullable``."""
        if self.backward is not None:
            rows, edges = self.backward.active[:2]
            self.pullable = Pullable(self.pullable.rows - rows, self.pullable.edges - edges)


@dataclass
class RankGraph:
    """A rank's part of a graph. partitions, vertices: of the whole graph. held: the partitions of
    this rank. own: the state of their vertices. delegates: their global ids. shared: the state of
    the delegates; None on a single rank, and in a grid. ghosts: by kind. sides: by kind and
    segment; the sides of own vertices by single partitions, one for each partition held. id_order,
    loops: as Store.id_order and Store.loops.
    """

    rank: int
    ranks: int
    partitions: int
    vertices: int
    grid: Grid | None
    routes: Routes
    held: range
    own: Vertices
    delegates: NDArray[np.uint32]
    shared: Vertices | None
    ghosts: dict[Kind, list[Ghosts]]
    sides: dict[tuple[Kind, range], Side]
    adjacencies: list[Adjacency]
    flows: list[Flow]
    id_order: IdOrder
    loops: Loops

    @property
    def vertex_states(self) -> list[Vertices]:
        """Return the states of the own segment, and of the shared one if there is one."""
        return [self.own] if self.shared is None else [self.own, self.shared]

    @property
    def every_ghost(self) -> list[Ghosts]:
        return [ghosts for kind in self.ghosts.values() for ghosts in kind]

    @property
    def delegates_here(self) -> NDArray[np.int64]:
        """Return the places of shared vertices in the own segment, whose own values are
        meaningless.
        """
        shared = self.delegates[: 0 if self.shared is None else None].astype(np.int64)
        local, partition = np.divmod(shared, self.partitions)
        here = partition % self.ranks == self.rank
        return local[here] * len(self.held) + partition[here] // self.ranks

    def within(self, partition: int) -> Numbering:
        """Return the numbering from the local ids of a partition that is held to places in the own
        segment.
        """
        return places(range(partition, partition + 1), self.held)

    def frontier(self, partition: int) -> NDArray[np.uint32]:
        """Return the frontier's vertices in a partition that is held, by local id."""
        return self.sides["own", range(partition, partition + 1)].frontier.listed

    def renew(self, *segments: Vertices | Ghosts) -> None:
        """Make the frontiers of the sides in these segments anew, after the frontier has
        changed.
        """
        for side in self.sides.values():
            if side.segment in segments:
                side.renew()

    def begin(self, source: int) -> None:
        """Begin a search from ``source``, a global id, on every rank. The state of an earlier
        search is cleared.
        """
        for state in (*self.vertex_states, *self.every_ghost):
            state.clear()
        for flow in self.flows:
            flow.pullable = flow.whole
        local, partition = divmod(source, self.partitions)
        place = np.flatnonzero(self.delegates == source)
        if self.shared is not None and len(place):
            self.shared.begin(int(place[0]))
        elif partition in self.held:
            self.own.begin(local * len(self.held) + self.held.index(partition))

    def resume(
        self, distance: NDArray[np.int32], parent: NDArray[np.uint32], level: int, team: Team
    ) -> None:
        """Resume a search after ``level`` on a single rank. distance, parent: by global id; the
        search changes them.
        """
        own_vertices = self.own
        own_vertices.resume(distance, parent, level)
        before = own_vertices.visited ^ own_vertices.frontier
        for flow in self.flows:
            if flow.backward is not None:
                side = flow.backward.source
                unvisited = Chosen(side.places, ~before, side.count)
                flow.pullable = Pullable(*flow.backward.rows.active(team, unvisited)[:2])


def graph_of_rows(rows: AnyRows) -> RankGraph:
    """Return the graph of undirected edges that stand in rows, in both directions. It has one
    partition; its global ids are the numbers of the rows.
    """
    count = len(rows.offsets) - 1
    own = Vertices(count, by_rule())
    side = Side(own, by_rule(), count)
    adjacency = Adjacency(0, "nn", rows, side, side)
    nothing = Pullable(0, 0)
    return RankGraph(
        rank=0,
        ranks=1,
        partitions=1,
        vertices=count,
        grid=ONE,
        routes=routes_of(ONE),
        held=range(1),
        own=own,
        delegates=np.empty(0, np.uint32),
        shared=None,
        ghosts={},
        sides={("own", range(1)): side},
        adjacencies=[adjacency],
        flows=[Flow("all", adjacency, adjacency, nothing, nothing)],
        id_order=lambda team: np.arange(count, dtype=np.uint32),
        loops=lambda team: None,
    )


def load(loader: Loader, rank: int, ranks: int) -> RankGraph:
    return _Loading(loader, rank, ranks).graph()


class _Loading:
    def __init__(self, loader: Loader, rank: int, ranks: int) -> None:
        info = loader.store.info
        n = info.vertices
        self._loader, self._rank, self._ranks = loader, rank, ranks
        self._routes = routes_of(info.grid)
        self._held = owned(rank, ranks, info.partitions)
        ids = places(self._held, range(info.partitions))
        self._own = Vertices(count_of(self._held, n, info.partitions), ids)
        self._delegates = loader.store.delegates(loader.team)
        self._shared = None
        if info.grid is None and ranks > 1:
            self._shared = Vertices(len(self._delegates), by_table(self._delegates))
        self._sides: dict[tuple[Kind, range], Side] = {}
        self._ghosts: dict[Kind, dict[range, Ghosts]] = {
            kind: {
                segment: Ghosts(segment, count_of(segment, n, info.partitions), info.partitions)
                for segment in segments
            }
            for kind, segments in segments_of(info, rank, ranks).items()
        }

    def graph(self) -> RankGraph:
        info = self._loader.store.info
        for p in self._held:
            self._side("own", p)
        made = list(self._flows())
        ghosts: dict[Kind, list[Ghosts]] = {
            kind: list(by_segment.values()) for kind, by_segment in self._ghosts.items()
        }
        adjacencies = {id(a): a for flow in made for a in (flow.forward, flow.backward) if a}
        return RankGraph(
            rank=self._rank,
            ranks=self._ranks,
            partitions=info.partitions,
            vertices=info.vertices,
            grid=info.grid,
            routes=self._routes,
            held=self._held,
            own=self._own,
            delegates=self._delegates,
            shared=self._shared,
            ghosts=ghosts,
            sides=self._sides,
            adjacencies=list(adjacencies.values()),
            flows=made,
            id_order=self._loader.store.id_order,
            loops=self._loader.store.loops,
        )

    def _flows(self) -> Iterator[Flow]:
        info = self._loader.store.info
        for p in self._held:
            rows = {
                name: self._loader.rows(p, name)
                for name in kept_subgraphs(info.grid, info.directed)
            }
            made: dict[str, Adjacency] = {}
            for route in self._routes.flows:
                names = route.subgraph, reverse_of(route.subgraph, info.directed)
                ends = route.push, route.pull and Ends(*reversed(route.pull))
                for name, joined in zip(names, ends, strict=True):
                    if joined is not None and name not in made:
                        sides = self._side(joined.source, p), self._side(joined.target, p)
                        made[name] = Adjacency(p, name, rows[name], *sides)
                backward = made[names[1]] if route.pull else None
                whole = self._pullable(backward)
                yield Flow(route.name, made[names[0]], backward, whole, whole)

    def _side(self, kind: Kind, partition: int) -> Side:
        info = self._loader.store.info
        segment = range(partition, partition + 1)
        if kind == "shared":
            segment = range(0)
        elif kind != "own":
            segment = partitions_of(kind, partition, info.partitions, info.grid)
        if len(segment) == 1:  # a grid of one row, or of one column
            kind = "own"
        if (kind, segment) not in self._sides:
            self._sides[kind, segment] = self._made(kind, segment)
        return self._sides[kind, segment]

    def _made(self, kind: Kind, segment: range) -> Side:
        info = self._loader.store.info
        if kind == "shared":
            count = len(self._delegates)
            if self._shared is None:
                return Side(self._own, by_table(self._delegates), count)
            return Side(self._shared, by_rule(), count)
        count = count_of(segment, info.vertices, info.partitions)
        if lies_in(segment, self._held):
            return Side(self._own, places(segment, self._held), count)
        return Side(self._ghosts[kind][segment], by_rule(), count)

    def _pullable(self, backward: Adjacency | None) -> Pullable:
        """Count the vertices that a pull can find before a search, in rows that this rank owns."""
        if backward is None:
            return Pullable(0, 0)
        side, segment = backward.source, backward.source.segment
        bits = np.zeros(-(-segment.count // WORD), np.uint64)
        if isinstance(segment, Vertices):
            bits = ~bits
        else:
            info = self._loader.store.info
            for p in (p for p in segment.segment if p in self._held):
                vertices = np.arange(local_rows(info.vertices, info.partitions, p), dtype=np.uint32)
                add_all(vertices, places(range(p, p + 1), segment.segment), bits)
        chosen = Chosen(side.places, bits, side.count)
        return Pullable(*backward.rows.active(self._loader.team, chosen)[:2])


def rows_bytes(store: Store, rank: int, ranks: int, weighted: bool = False) -> int:
    """Return the bytes that a rank's share of a graph holds before any search."""
    info = store.info
    held = owned(rank, ranks, info.partitions)
    counts = [count_of(held, info.vertices, info.partitions), info.delegates]
    for kind_segments in segments_of(info, rank, ranks).values() if ranks > 1 else ():
        counts += [count_of(segment, info.vertices, info.partitions) for segment in kind_segments]
    bitmaps = sum(map(bitmaps_bytes, counts))
    return _files_bytes(store, held, weighted) + bitmaps + 4 * info.delegates + loops_bytes(info)


def _files_bytes(store: Store, held: range, weighted: bool = False) -> int:
    prefixes = tuple(stem_of(p, "") for p in held)
    return sum(
        record.bytes
        for name, record in store.files.items()
        if name.startswith(prefixes) and (weighted or not is_weights(name))
    )


def share_bytes(store: Store, rank: int, ranks: int) -> int:
    """Return the most bytes that loading and searching a rank's share hold."""
    info = store.info
    held = owned(rank, ranks, info.partitions)
    n, own_count = info.vertices, count_of(held, info.vertices, info.partitions)
    graph = _files_bytes(store, held)
    state = vertex_bytes(own_count) + 4 * info.delegates
    if len(held) > 1:  # a flow needs a bitmap of the vertices that earlier flows have found
        state += own_count // 8
    if ranks == 1:
        return graph + state
    segments = segments_of(info, rank, ranks)
    ghosts: dict[Kind, list[int]] = {
        kind: [count_of(s, n, info.partitions) for s in kind_segments]
        for kind, kind_segments in segments.items()
    }
    state += sum(sum(counts) // 4 for counts in ghosts.values())  # two bitmaps
    listed = 8 * max(own_count, *(max(counts, default=0) for counts in ghosts.values()))
    shared = 0 if info.grid is not None else info.delegates
    return graph + state + vertex_bytes(shared) + listed + _sent_bytes(store, held, ranks, ghosts)


def _sent_bytes(store: Store, held: range, ranks: int, ghosts: dict[Kind, list[int]]) -> int:
    """Return the bytes of lists of vertices found, sent or received, with their parents; they are
    held until the end of the search.
    """
    info, grid = store.info, store.info.grid
    found = sum(sum(counts) for counts in ghosts.values())
    if grid is None:
        # A target along nn, with its parent, is in three lists: as found, as sorted, as kept.
        own_bytes = sum(store.files[file].bytes for p in held for file in store.shards(p, "nn"))
        other_edges = info.subgraph_edges["nn"] - own_bytes // 4
        here = info.delegates + count_of(held, info.vertices, info.partitions)
        return 6 * min(own_bytes, 4 * found) + 8 * min(other_edges, (ranks - 1) * here)
    other_ranks = min(ranks, grid.rows) + min(ranks, grid.columns) - 2
    most = max(local_rows(info.vertices, info.partitions, p) for p in held)
    return 6 * 4 * found + 8 * other_ranks * most * len(held)


def vertex_bytes(count: int) -> int:
    """Return the bytes of ``Vertices``: distance, parent and three bitmaps."""
    return count * (4 + 4) + bitmaps_bytes(count)


def loops_bytes(info: GraphInfo) -> int:
    """Return the bytes that the self-loops of a graph take in operations."""
    return LOOP_BYTES * (info.loops or 0)


def bitmaps_bytes(count: int) -> int:
    """Return the bytes of the three bitmaps of ``Vertices``."""
    return 3 * 8 * -(-count // WORD)
