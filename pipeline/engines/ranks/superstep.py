"""A superstep of a rank, in any layout: look, expand, visit and fold, as the layout's table of
routes says.

    look     find the frontier's rows in every subgraph, and take them out of the rows that a pull
             can find
    expand   send the frontier to the ranks that hold copies of its vertices; if all ranks take one
             direction, send counters too, whose sums decide on the end or the direction
    visit    push or pull along every flow
    fold     send each rank one message with the vertices found that it owns, and the shared
             vertices found; all ranks then know all shared vertices, and whether any was found

No rank looks for vertices known as visited: their owners expanded them when they were the frontier.
If the direction is agreed on, each rank counts the vertices that it owns, in its own subgraphs. In
a grid of R rows this is one of the R tiles that have a vertex's edges, a fair sample of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.numbering import by_rule
from ....kernels.base.team import Team
from ....kernels.pieces.piece import Ends, Piece
from ....kernels.pieces.pull import pull_piece
from ....kernels.pieces.push import push_piece
from ....kernels.pieces.vertices import admit
from ....partition.store.layout import local_rows
from ...ranks.communicator import Communicator, Message
from ..direction import Direction
from .edges import EdgeCounts, Visits, total
from .graph import Flow, RankGraph
from .packing import NONE, packed, unpacked
from .remote import Remote, by_partition, joined
from .routes import Kind, members, partitions_of
from .state import Ghosts, Vertices

Choose = Callable[[int, int, int], Direction]
"""A rule with the signature of direction.choose."""


Found = tuple[int, int, Ends]
"""The outcome of a visit: the number of vertices found, the number of edges examined, and the ends
that list the vertices.
"""


class Told:
    """The frontier of a partition of ``of`` vertices: local ids, and the part of a message that
    holds them.
    """

    def __init__(self, local: NDArray[np.uint32], of: int) -> None:
        self.local = local
        self._of = of

    @cached_property
    def part(self) -> NDArray:
        return packed(self.local, self.local, self._of)[0]


class Superstep(NamedTuple):
    """A rank's work in one superstep.

    entered: vertices of the next frontier; each counts on one rank only. sent: bytes sent to other
    ranks by kind, with the same kinds in every superstep. more: whether there may be another
    superstep; the same on all ranks.
    """

    entered: int
    edge_counts: EdgeCounts
    directions: dict[str, Direction]
    sent: dict[str, int]
    more: bool


class Supersteps:
    """The supersteps of one search. remote: the vertices that were sent to owners, whose parents
    follow at the end.
    """

    def __init__(
        self, graph: RankGraph, communicator: Communicator, team: Team, choose: Choose
    ) -> None:
        self.remote = Remote(graph)
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._choose = choose

    def run(self, level: int) -> Superstep:
        """Find the vertices at distance ``level``, with all other ranks. Raises RankError."""
        graph, routes = self._graph, self._graph.routes
        kinds = [*routes.messages.values(), "control"]
        sent = dict.fromkeys(kinds if self._communicator.size > 1 else [], 0)
        first = routes.expand["push"]
        graph.renew(*graph.vertex_states)
        frontier = self._frontier()
        for p, told in frontier.items():
            for kind in graph.ghosts:
                self._enter(kind, p, told.local, expanded=kind in first)
        graph.renew(*graph.every_ghost)
        for adjacency in graph.adjacencies:
            adjacency.look(self._team)
        for flow in graph.flows:
            flow.enter()
        agreed: Direction | None = None
        if routes.agreed:
            vertices, *work = self._expand(first, frontier, self._counters(), sent).tolist()
            if not vertices:
                return Superstep(0, EdgeCounts(), {}, sent, more=False)
            agreed = self._choose(*work)
            later: list[Kind] = [kind for kind in routes.expand[agreed] if kind not in first]
            for p, told in frontier.items():
                for kind in later:
                    self._enter(kind, p, told.local, expanded=True)
            if later:
                self._expand(later, frontier, np.zeros(0, np.int64), sent)
            graph.renew(*graph.every_ghost)  # expands have changed their frontiers
        directions: dict[str, Direction] = {}
        found, looks = 0, []
        for flow in graph.flows:
            self._communicator.check()
            direction = agreed or self._direction(flow)
            if flow.forward.active.edges or flow.name not in directions:
                directions[flow.name] = direction
            new, edge_counts = (
                self._push(flow) if direction == "push" else self._pull(flow, found > 0)
            )
            found += new
            looks.append(edge_counts)
        anywhere = self._fold(level, agreed or "push", found, sent)
        for vertices in graph.vertex_states:
            vertices.advance(level)
        for ghosts in graph.every_ghost:
            ghosts.told.clear()
        entered = graph.own.entered
        if graph.shared is not None and graph.rank == 0:  # all ranks have them; they count once
            entered += graph.shared.entered
        is_unfinished = routes.agreed or anywhere > 0
        return Superstep(entered, total(looks), directions, sent, is_unfinished)

    def _frontier(self) -> dict[int, Told]:
        """Return the frontier of each partition held, to be sent to other ranks; empty on a single
        rank.
        """
        graph = self._graph
        if self._communicator.size == 1:
            return {}
        whole = graph.vertices, graph.partitions
        return {p: Told(graph.frontier(p), local_rows(*whole, p)) for p in graph.held}

    def _enter(self, kind: Kind, partition: int, local: NDArray[np.uint32], expanded: bool) -> None:
        """Enter frontier vertices of a partition into all ghost segments of a kind that contain the
        partition.
        """
        for ghosts in self._graph.ghosts[kind]:
            if partition in ghosts.segment:
                ghosts.enter(partition, local, expanded)

    def _counters(self) -> NDArray[np.int64]:
        """Return the number of frontier vertices, and the arguments of ``choose``, as this rank
        counts them.
        """
        flows = self._graph.flows
        leaving = sum(flow.forward.active.edges for flow in flows)
        rows, edges = np.sum([flow.pullable for flow in flows], axis=0)
        return np.array([self._graph.own.entered, leaving, rows, edges], np.int64)

    def _direction(self, flow: Flow) -> Direction:
        leaving = flow.forward.active.edges
        if flow.backward is None or not leaving:
            return "push"
        return self._choose(leaving, *flow.pullable)

    def _expand(
        self,
        kinds: Sequence[Kind],
        frontier: dict[int, Told],
        counters: NDArray[np.int64],
        sent: dict[str, int],
    ) -> NDArray[np.int64]:
        """Send the frontier to all ranks that hold copies of its vertices. Returns the sums of
        counters over ranks.
        """
        graph, size = self._graph, self._communicator.size
        heads: list[list[int]] = [counters.tolist() for _ in range(size)]
        parts: list[list[NDArray]] = [[] for _ in range(size)]
        for p, told in frontier.items():
            segments = [partitions_of(kind, p, graph.partitions, graph.grid) for kind in kinds]
            for rank in {q % size for segment in segments for q in segment} - {graph.rank}:
                heads[rank] += [p, len(told.local)]
                parts[rank].append(told.part)
        sums = np.zeros_like(counters)
        for head, *bodies in self._exchange("expand", heads, parts, sent):
            sums += head[: len(counters)]
            numbers = head[len(counters) :].tolist()
            for part, p, count in zip(bodies, numbers[::2], numbers[1::2], strict=True):
                of = local_rows(graph.vertices, graph.partitions, p)
                local = unpacked(part, count, of)
                for kind in kinds:
                    self._enter(kind, p, local, expanded=True)
        return sums

    def _push(self, flow: Flow) -> tuple[int, EdgeCounts]:
        """Push along a flow. Returns the number of vertices found, and the counts of edges."""
        adjacency = flow.forward
        source, target = adjacency.source, adjacency.target
        if isinstance(source.segment, Ghosts):  # expands have changed its frontier
            adjacency.look(self._team)
        start = source.segment.pushing(source.frontier)

        def visit(piece: Piece, queue: NDArray, first: int, last: int, most: int) -> Found:
            ends = target.segment.ends(target.places, most)
            return *push_piece(piece, queue, first, last, start, ends), ends

        visits = adjacency.rows.push(self._team, adjacency.active, visit)
        return self._keep(visits, target.segment)

    def _pull(self, flow: Flow, some_found: bool) -> tuple[int, EdgeCounts]:
        """Pull along a flow. Returns the number of vertices found, and the counts of edges.
        some_found: whether earlier flows have found any vertex in this superstep.
        """
        adjacency = flow.backward
        assert adjacency is not None
        source, target = adjacency.target, adjacency.source
        start = source.segment.pulling(source.frontier)

        def visit(piece: Piece, queue: NDArray, first: int, last: int, most: int) -> Found:
            ends = target.segment.ends(target.places, most)
            return *pull_piece(piece, first, last, start, ends), ends

        known = target.segment.visited
        if some_found and isinstance(target.segment, Vertices):
            known = known | target.segment.found
        visits = adjacency.rows.pull(self._team, target.places, known, visit)
        return self._keep(visits, target.segment)

    def _keep(self, visits: Visits, segment: Vertices | Ghosts) -> tuple[int, EdgeCounts]:
        """Keep the vertices that visits found. Returns the number of vertices found, with vertices
        of other ranks counted when they are first kept for sending; and the counts of edges.
        """
        done = visits.results
        edge_counts = EdgeCounts(
            sum(int(edges) for _, edges, _ in done), visits.read, visits.skipped
        )
        if isinstance(segment, Vertices):
            return sum(new for new, _, _ in done), edge_counts
        if not any(new for new, _, _ in done):
            return 0, edge_counts
        vertices = joined(ends.vertices[:new] for new, _, ends in done)
        parents = joined(ends.parents[:new] for new, _, ends in done)
        away = by_partition(vertices, parents, segment.segment)
        return sum(self.remote.add(batch) for batch in away), edge_counts

    def _fold(self, level: int, direction: Direction, found: int, sent: dict[str, int]) -> int:
        """Send the vertices found to their owners. If the graph has shared vertices, returns the
        number of vertices found by all ranks; otherwise 0 or ``found``.
        """
        graph, size = self._graph, self._communicator.size
        kinds, shared = graph.routes.fold[direction], graph.shared
        place = graph.partitions, graph.grid
        apart = shared is not None or any(members(kind, *place) > 1 for kind in kinds)
        if size == 1 or not apart:
            return found
        heads, parts = [], []
        for rank in range(size):
            head, part = self.remote.pack(rank)
            heads.append(head)
            parts.append(part)
        common: list[int] = []
        told: list[NDArray] = []
        if shared is not None:
            listed = bitmap.members(shared.found)
            common, told = [found, len(listed)], [packed(listed, listed, shared.count)[0]]
        heads = [common + head for head in heads]
        anywhere = 0
        for rank, (head, *arrays) in enumerate(self._exchange("fold", heads, parts, sent, told)):
            numbers = head.tolist()
            if shared is not None:
                vertices = unpacked(arrays.pop(0), numbers[1], shared.count)
                state = shared.visited, shared.found, shared.parent
                admit(vertices, NONE, by_rule(), *state)
                anywhere += numbers[0]
            self.remote.unpack(rank, level, numbers[len(common) :], arrays)
        return anywhere

    def _exchange(
        self,
        kind: str,
        heads: Sequence[list[int]],
        parts: Sequence[list[NDArray]],
        sent: dict[str, int],
        told: Sequence[NDArray] = (),
    ) -> list[Message]:
        """Send one message to each rank, and count its bytes in ``sent``. told: arrays that all
        messages begin with.
        """
        names = self._graph.routes.messages
        messages: list[Message] = [
            [np.array(head, np.int64), *told, *part]
            for head, part in zip(heads, parts, strict=True)
        ]
        for rank, rank_parts in enumerate(parts):
            if rank != self._communicator.rank:
                sent["control"] += messages[rank][0].nbytes
                sent[names[kind]] += sum(part.nbytes for part in rank_parts)
                if told:
                    sent[names["shared"]] += sum(part.nbytes for part in told)
        return self._communicator.exchange(messages)
