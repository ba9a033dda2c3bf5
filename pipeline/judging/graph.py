"""The graph that results are judged against: its edges, which can be read again and again, and its
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...kernels.judging.distances import count_ends, put_targets
from ...partition.store.store import Store
from ...partition.store.vertex_table import KeptLoops
from ..results.names import VertexNames, names_of_store

Weighted = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]
"""Sources, targets and weights of a batch of edges."""


class Rows(NamedTuple):
    """Compressed sparse rows: the targets of ``u`` are ``targets[offsets[u]:offsets[u + 1]]``."""

    offsets: NDArray[np.int64]
    targets: NDArray[np.uint32]


@dataclass
class JudgedEdges:
    """A graph that results are judged against.

    places: the length of arrays by place. batches: yields all edges at each call, in any order;
    undirected edges in one direction or both. weighted_batches: the same with weights (float64);
    None for a graph without weights. float_weights: whether these are floats, not integers. edges:
    the number of edges that ``batches`` yields.
    extra_bytes: bytes that a judge may hold beyond what it always holds. loops: the self-loops that
    the graph keeps.
    """

    names: VertexNames
    places: int
    fingerprint: str
    directed: bool
    batches: Callable[[], Iterator[tuple[NDArray[np.uint32], ...]]]
    weighted_batches: Callable[[], Iterator[Weighted]] | None = None
    float_weights: bool = False
    edges: int = 0
    extra_bytes: int = 0
    loops: KeptLoops | None = None
    team: Team = field(default_factory=lambda: Team(1))

    def take(self, wanted: int) -> bool:
        """Take ``wanted`` bytes from the extra bytes. Returns False, and takes none, if there are
        fewer.
        """
        if wanted > self.extra_bytes:
            return False
        self.extra_bytes -= wanted
        return True

    def loops_by(self, weighted: bool) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Return the places of vertices whose self-loops the graph keeps, and how much each counts:
        1, or its weight.
        """
        if self.loops is None:
            return np.empty(0, np.uint32), np.empty(0)
        weights = self.loops.weights.astype(np.float64)
        return self.loops.vertices, weights if weighted else np.ones(len(weights))

    def rows(self, along: bool) -> Rows | None:
        """Return rows of all edges, or of all reversed edges; None if rows do not fit the memory
        limit. Batches must have undirected edges in both directions.
        """
        if not self.take((8 + 8) * (self.places + 1) + 4 * self.edges):
            return None
        offsets = np.zeros(self.places + 1, np.int64)
        for ends in self.batches():
            count_ends(ends[0 if along else 1], offsets[1:])
        np.cumsum(offsets, out=offsets)
        targets = np.empty(int(offsets[-1]), np.uint32)
        room = offsets[:-1].copy()
        for ends in self.batches():
            put_targets(*(ends[:2] if along else ends[1::-1]), room, targets)
        return Rows(offsets, targets)

    def keep_batches(self) -> None:
        """Keep all edges in memory if they fit the limit, since judges read them again and
        again.
        """
        if self.take(8 * self.edges):
            kept = list(self.batches())
            self.batches = lambda: iter(kept)


def judged_edges(store: Store, team: Team, extra_bytes: int = 0) -> JudgedEdges:
    """Return the graph of a store. It has every edge once, undirected edges in both directions."""
    info, names = store.info, names_of_store(store, team)

    def weighted() -> Iterator[Weighted]:
        for sources, targets, weights in store.weighted_batches(team):
            yield sources, targets, weights.astype(np.float64)

    return JudgedEdges(
        names,
        info.vertices,
        info.fingerprint,
        info.directed,
        lambda: store.edge_batches(team),
        None if info.weights is None else weighted,
        info.weights is not None and info.weights.kind == "float32",
        sum(info.subgraph_edges.values()),
        extra_bytes,
        store.loops(team),
        team,
    )
