"""A graph in memory in the rows of one subgraph, by global id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import Graph
from ...kernels.base.team import Team
from ...kernels.prepare import merge
from .grid import ONE
from .layout import offsets_dtype
from .manifest import GraphInfo
from .vertex_table import KeptLoops

IdOrder = Callable[[Team], NDArray[np.uint32]]
"""Function that returns the global ids of all vertices by rising user id."""

Loops = Callable[[Team], KeptLoops | None]
"""Function that returns the self-loops that a graph keeps, as Store.loops does."""

_NONE = np.empty(0, np.uint32)
_ORDERING = 4 + 8 + 8  # bytes of a vertex: its place in the order, and arrays to compute that


class WholeRows(NamedTuple):
    """Compressed sparse rows: row ``u`` is ``targets[offsets[u]:offsets[u + 1]]``. weights: uint32,
    the bits of each target's weight; (0,) without weights.
    """

    offsets: NDArray
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32]


@dataclass(frozen=True)
class WholeGraph:
    """A graph in the form of a store of one partition, as far as ranks need it. rows: by name of
    the subgraph. id_order, loops: as Store.id_order and Store.loops.
    """

    info: GraphInfo
    rows: dict[str, WholeRows]
    id_order: IdOrder
    loops: Loops

    @classmethod
    def of(cls, info: GraphInfo, graph: Graph, id_order: IdOrder, loops: Loops) -> WholeGraph:
        """Return the whole graph with the rows of ``graph``. info: of the store that the graph was
        merged from.
        """
        rows = {"nn": WholeRows(graph.offsets, graph.targets, _NONE)}
        if info.directed:
            rows["reverse-nn"] = WholeRows(graph.reverse_offsets, graph.reverse_targets, _NONE)
        return cls(in_one_partition(info), rows, id_order, loops)

    def delegates(self, team: Team) -> NDArray[np.uint32]:
        return np.empty(0, np.uint32)

    def subgraph(self, partition: int, name: str, team: Team) -> tuple[NDArray, NDArray]:
        return self.rows[name][:2]

    def weights(self, partition: int, name: str, team: Team) -> NDArray[np.uint32]:
        return self.rows[name].weights

    def offsets_types(self) -> list[np.dtype]:
        return [rows.offsets.dtype for rows in self.rows.values()]

    def graph(self) -> Graph:
        """Return the graph in the form that searches use, with the same arrays."""
        forward = self.rows["nn"][:2]
        if not self.info.directed:
            return Graph.undirected(*forward)
        return Graph(*forward, *self.rows["reverse-nn"][:2])


def merged_rows(
    batches: list[tuple[NDArray[np.uint32], ...]], order: NDArray[np.uint32], directed: bool
) -> dict[str, WholeRows]:
    """Return rows of distinct edges by subgraph, undirected edges in both directions, with
    neighbours sorted by ``order``.

    batches: sources, targets and, if there are any, the bits of weights; the list is emptied.
    """
    n, entries = len(order), sum(len(sources) for sources, *_ in batches)
    weighted = any(len(batch) > 2 for batch in batches)
    leaving, entering = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for sources, targets, *_ in batches:
        merge.count(sources, leaving)
        merge.count(targets, entering)  # also if undirected: a store's edges may be inconsistent
    unordered = _empty_rows(leaving, entries, weighted)
    room = _room(unordered)
    while batches:
        sources, targets, *weights = batches.pop()
        merge.scatter(sources, targets, *(weights or [_NONE]), room, *unordered[1:])
    del room
    turned = _transposed(unordered, entering, order)
    if not directed:  # the rows are their own transpose
        return {"nn": turned}
    del unordered
    return {"nn": _transposed(turned, leaving, order), "reverse-nn": turned}


def _transposed(rows: WholeRows, counts: NDArray[np.int64], order: NDArray[np.uint32]) -> WholeRows:
    into = _empty_rows(counts, len(rows.targets), len(rows.weights) > 0)
    merge.transpose(*rows, order, _room(into), *into[1:])
    return into


def _empty_rows(counts: NDArray[np.int64], entries: int, weighted: bool) -> WholeRows:
    offsets = np.zeros(len(counts) + 1, offsets_dtype(entries))
    np.cumsum(counts, out=offsets[1:])
    targets = np.empty(entries, np.uint32)
    return WholeRows(offsets, targets, np.empty_like(targets) if weighted else _NONE)


def _room(rows: WholeRows) -> NDArray[np.int64]:
    return rows.offsets[:-1].astype(np.int64)


def in_one_partition(info: GraphInfo) -> GraphInfo:
    return replace(info, layout="csr", grid=ONE, partitions=1, delegates=0)


class MergedBytes(NamedTuple):
    """Bytes of merging a store's partitions. making: the most, while they are merged. staying: of
    the merged graph.
    """

    making: int
    staying: int


def merged_bytes(info: GraphInfo, weighted: bool = False) -> MergedBytes:
    """Return the bytes of merging a store's partitions (Store.merged)."""
    n, entries = info.vertices, sum(info.subgraph_edges.values())
    a_target = 4 * (1 + weighted)
    offsets = (n + 1) * merged_offsets(info).itemsize
    made = (offsets + a_target * entries) * (1 + info.directed)
    # Batches and unordered rows at once; unordered and ordered rows at once take less.
    making = 2 * offsets + n * (3 * 8 + _ORDERING) + (4 + 2 * a_target) * entries
    return MergedBytes(making, made)


def merged_offsets(info: GraphInfo) -> np.dtype:
    """Return the type of the whole graph's offsets. Each direction has as many entries as the
    store.
    """
    return np.dtype(offsets_dtype(sum(info.subgraph_edges.values())))
