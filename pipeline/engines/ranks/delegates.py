"""Supersteps in the delegate layout: visits along the subgraphs, then one message to every rank.

Of a superstep a message says which delegates its sender found, and which normal vertices of the
receiver's partitions it found along nn. So all ranks know all delegates again, and whether
anything was found at all. Directions are each rank's own choice, a subgraph of a partition at a
time: pushing along the one and pulling along the reverse of another finds the same vertices (Pan,
Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster, sections IV and V).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.team import Team
from ....kernels.pieces.visit import add_all, admit, pull_rows, push_rows
from ....kernels.prepare.csr import SUBGRAPHS
from ...ranks.communicator import Communicator, Message
from ..direction import Direction
from .delegate_graph import Flow, RankGraph, Vertices
from .edges import Looked, total
from .packing import as_list, packed, unpacked
from .remote_vertices import Away, RemoteVertices, by_partition, push_remote
from .superstep import Choose, Superstep


@dataclass
class DelegateSupersteps:
    graph: RankGraph
    communicator: Communicator
    team: Team
    choose: Choose

    def __post_init__(self) -> None:
        graph = self.graph
        self.remote = RemoteVertices(graph.normals, graph.vertices, graph.partitions, graph.ranks)

    def superstep(self, level: int) -> Superstep:
        graph, size = self.graph, self.communicator.size
        found = 0
        looks: list[Looked] = []
        directions: dict[str, Direction] = dict.fromkeys(SUBGRAPHS, "push")
        for part in graph.parts:
            for flow in part.flows:
                self.communicator.check()
                if not len(flow.rows.frontier):
                    continue
                if flow.targets is None:
                    new, looked = self._push_away(flow)
                else:
                    directions[flow.name], new, looked = self._visit(flow, flow.targets)
                found += new
                looks.append(looked)
        delegates = as_list(graph.delegates.found)
        messages = [self._message(rank, found, delegates) for rank in range(size)]
        sent = {"delegates": 0, "normals": 0, "control": 0}
        for rank, (head, told, *normals) in enumerate(messages):
            if rank != graph.rank:
                sent["control"] += head.nbytes
                sent["delegates"] += told.nbytes
                sent["normals"] += sum(part.nbytes for part in normals)
        anything = 0
        for rank, message in enumerate(self.communicator.exchange(messages)):
            anything += self._receive(rank, level, message)
        for vertices in graph.kinds:
            vertices.advance(level)
        for part in graph.parts:  # nothing is sent away that is known to be found
            add_all(part.normals.frontier, part.normals.numbering, graph.sent)
        for flow in graph.flows:
            flow.enter()
        entered = sum(len(part.normals.frontier) for part in graph.parts)
        if graph.rank == 0:  # all ranks have them; they count once
            entered += len(graph.delegates.frontier)
        return Superstep(entered, total(looks), directions, sent, more=anything > 0)

    def _visit(self, flow: Flow, targets: Vertices) -> tuple[Direction, int, Looked]:
        """Direction, vertices found here, what was looked at."""
        leaving, numbering = flow.leaving, flow.rows.numbering
        if not leaving:
            return "push", 0, Looked()
        state = targets.visited, targets.found, targets.parent
        direction = self.choose(leaving, *flow.pullable)
        if direction == "pull":
            assert flow.backward is not None
            reached = flow.rows.visited
            visits = flow.backward.pull(
                self.team,
                lambda piece, first, last: pull_rows(
                    *piece, first, last, numbering, reached, *state
                ),
                *(targets.visited, targets.found),
            )
        else:
            visits = flow.forward.push(
                self.team,
                flow.rows.frontier,
                lambda piece, queue: push_rows(*piece, queue, numbering, *state),
            )
        new = sum(new for new, _ in visits.results)
        return direction, new, visits.looked(edges for _, edges in visits.results)

    def _push_away(self, flow: Flow) -> tuple[int, Looked]:
        """Vertices found along nn, what was looked at."""
        rows = flow.rows
        away, parents, looked = push_remote(
            self.team, flow.forward, rows.frontier, rows.numbering, self.graph.sent
        )
        found = by_partition(away, parents, self.graph.partitions)
        return sum(self.remote.add(Away(*some)) for some in found), looked

    def _message(self, rank: int, found: int, delegates: NDArray[np.uint32]) -> Message:
        """For a rank. Head: vertices found, delegates, and partition and vertices of each part."""
        places, parts = self.remote.pack(rank)
        told, _ = packed(delegates, delegates, self.graph.delegates.count)
        return [np.array([found, len(delegates), *places], np.int64), told, *parts]

    def _receive(self, rank: int, level: int, message: Message) -> int:
        """Enter what a rank sent; how much it found."""
        head, delegates, *parts = message
        found, count, *places = head.tolist()
        told = unpacked(delegates, count, self.graph.delegates.count)
        admit(told, self.graph.delegates.visited, self.graph.delegates.found)
        self.remote.unpack(rank, level, places, parts)
        return found
