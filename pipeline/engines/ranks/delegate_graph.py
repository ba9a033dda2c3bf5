"""What a rank holds of a graph: whole partitions, and a copy of the delegates.

The delegate layout (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster, Algorithm
1): rank r of R holds the partitions p with p mod R = r. What belongs to delegates is there once,
however many partitions the rank holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.graph import UNREACHED
from ....kernels.base.numbering import Numbering, by_rule, by_table
from ....kernels.pieces.visit import rows_with_edges
from ....partition.store.layout import kept_subgraphs, local_rows
from ....partition.store.store import Store, stem_of
from ..direction import Pullable
from ..streamed_graph import reverse_of
from .edges import AnyRows, Loader


class Vertices:
    """The state of the delegates, or of the normal vertices of one partition.

    numbering: their global ids. visited, found: bitmaps; found: in this superstep. distance: int32,
    -1 where unreached. parent: uint32, global ids, UNREACHED where not known here. frontier:
    uint32, local ids, rising.
    """

    def __init__(self, count: int, numbering: Numbering) -> None:
        self.count = count
        self.numbering = numbering
        self.visited = bitmap.empty(count)
        self.found = np.zeros_like(self.visited)
        self.distance = np.full(count, -1, np.int32)
        self.parent = np.full(count, UNREACHED, np.uint32)
        self.frontier = np.empty(0, np.uint32)
        self._queue = np.empty(count, np.uint32)

    def begin(self, vertex: int) -> None:
        self.found[vertex // bitmap.WORD] |= np.uint64(1 << vertex % bitmap.WORD)
        self.advance(0)

    def clear(self) -> None:
        """Forget a search."""
        for bits in (self.visited, self.found):
            bits[:] = 0
        self.distance[:] = -1
        self.parent[:] = UNREACHED
        self.frontier = self._queue[:0]

    def advance(self, level: int) -> None:
        """What was found becomes the frontier, at distance ``level``."""
        count = bitmap.difference(self.found, self.visited, self._queue)
        self.visited |= self.found
        self.found[:] = 0
        self.frontier = self._queue[:count].copy()
        self.distance[self.frontier] = level


@dataclass
class Flow:
    """A subgraph of a partition: what carries a search from its rows to its targets.

    backward: rows of the targets, to pull along; None where it only pushes. targets: None for
    those of nn, which belong to any partition. pullable: what a pull can still find of them; whole:
    before a search.
    """

    name: str
    forward: AnyRows
    backward: AnyRows | None
    rows: Vertices
    targets: Vertices | None
    whole: Pullable
    pullable: Pullable = field(init=False)

    def __post_init__(self) -> None:
        self.pullable = self.whole

    @property
    def leaving(self) -> int:
        """Edges from the frontier."""
        return int(rows_with_edges(self.forward.offsets, self.rows.frontier)[1])

    def enter(self) -> None:
        """The targets' frontier is no longer there for a pull to find."""
        if self.backward is not None and self.targets is not None and len(self.targets.frontier):
            rows, edges = rows_with_edges(self.backward.offsets, self.targets.frontier)
            left = self.pullable
            self.pullable = Pullable(left.rows - int(rows), left.edges - int(edges))


@dataclass
class Part:
    """A partition that a rank holds."""

    number: int
    normals: Vertices
    flows: list[Flow]


@dataclass
class RankGraph:
    """partitions: of the whole graph. sent: bitmap over all vertices, those sent away."""

    rank: int
    ranks: int
    partitions: int
    vertices: int
    delegates: Vertices
    parts: list[Part]
    sent: NDArray[np.uint64]

    @classmethod
    def load(cls, loader: Loader, rank: int, ranks: int) -> RankGraph:
        store = loader.store
        info = store.info
        table = store.delegates(loader.team)
        delegates = Vertices(len(table), by_table(table))
        parts = []
        for p in range(rank, info.partitions, ranks):
            normals = Vertices(
                local_rows(info.vertices, info.partitions, p), by_rule(info.partitions, p)
            )
            names = kept_subgraphs(None, info.directed)
            rows = {name: loader.rows(p, name) for name in names}
            kinds = {"n": normals, "d": delegates}
            flows = []
            for name in kept_subgraphs(None, directed=False):
                backward = rows[reverse_of(name, info.directed)] if name != "nn" else None
                flows.append(
                    Flow(
                        name,
                        rows[name],
                        backward,
                        kinds[name[0]],
                        kinds[name[1]] if name != "nn" else None,
                        pullable(None if backward is None else np.diff(backward.offsets)),
                    )
                )
            parts.append(Part(p, normals, flows))
        sent = bitmap.empty(info.vertices)
        return cls(rank, ranks, info.partitions, info.vertices, delegates, parts, sent)

    @property
    def flows(self) -> list[Flow]:
        return [flow for part in self.parts for flow in part.flows]

    @property
    def kinds(self) -> list[Vertices]:
        """The state of the delegates and of each partition's normal vertices."""
        return [self.delegates, *self.normals.values()]

    @property
    def normals(self) -> dict[int, Vertices]:
        """The normal vertices of each partition."""
        return {part.number: part.normals for part in self.parts}

    def clear(self) -> None:
        """Forget a search: another one may begin."""
        for vertices in self.kinds:
            vertices.clear()
        for flow in self.flows:
            flow.pullable = flow.whole
        self.sent[:] = 0

    def begin(self, source: int) -> None:
        """source: a global id; every rank is told."""
        place = np.flatnonzero(self.delegates.numbering.table == source)
        if len(place):
            self.delegates.begin(int(place[0]))
        else:
            for part in self.parts:
                if source % self.partitions == part.number:
                    part.normals.begin(source // self.partitions)
        for flow in self.flows:
            flow.enter()


def delegate_bytes(store: Store, rank: int, ranks: int) -> int:
    """Bytes that loading and searching a rank's share holds at most."""
    info = store.info
    parts = range(rank, info.partitions, ranks)
    held = info.delegates + sum(local_rows(info.vertices, info.partitions, p) for p in parts)
    # State of the delegates; their ids, and the bitmap of what was sent.
    state = vertex_bytes(info.delegates) + 4 * info.delegates + info.vertices // 8
    # A target along nn stands, with its parent, in the list that is made, sorted, and kept; what
    # the others send, with its parents, until the end.
    own = sum(store.files[file].bytes for p in parts for file in store.shards(p, "nn"))
    others = 4 * info.subgraph_edges["nn"] - own
    came = 8 * min(others // 4, (ranks - 1) * held)
    return share_bytes(store, parts) + state + 6 * min(own, 4 * info.vertices) + came


def share_bytes(store: Store, parts: Sequence[int]) -> int:
    """Of partitions: their subgraphs, and the state of the vertices that belong to them."""
    info = store.info
    prefixes = tuple(stem_of(p, "") for p in parts)
    graph = sum(record.bytes for name, record in store.files.items() if name.startswith(prefixes))
    return graph + sum(vertex_bytes(local_rows(info.vertices, info.partitions, p)) for p in parts)


def vertex_bytes(count: int) -> int:
    """Of ``Vertices``: distance, parent, frontier and the next one, two bitmaps."""
    return count * (4 * 4) + count // 4


def pullable(degrees: NDArray[np.unsignedinteger] | None) -> Pullable:
    """What a pull can find of rows of so many edges; of none that it could go along, nothing."""
    if degrees is None:
        return Pullable(0, 0)
    return Pullable(int(np.count_nonzero(degrees)), int(degrees.sum(dtype=np.int64)))
