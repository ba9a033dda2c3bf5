"""Graph500's rules over results of searches of a store by several ranks, checked on their hosts, in
any layout.

kernels/bfs/check.py defines the rules. All ranks get the distances and parents of all vertices, and
each rank checks its own edges. Rank 0 also checks the tree, and that for each vertex some rank has
an edge to its parent. So each violation counts once, as in a check by one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.compiled import compile_kernels
from ...kernels.base.numbering import by_table
from ...kernels.base.team import Team
from ...kernels.bfs import check as rules
from ...kernels.bfs.check import (
    RULES,
    TREE_BYTES,
    Violations,
    check_joined,
    check_rows,
    check_tree,
)
from ...partition.disk.files import BLOCK_BYTES
from ...partition.store.layout import kept_subgraphs, numberings
from ...partition.store.manifest import stem_of
from ...partition.store.store import EdgeBlock, Store
from ..engines.ranks.edges import Rows
from ..engines.ranks.graph import RankGraph
from ..engines.ranks.result import Part, RankResult, put_together
from ..ranks.communicator import Communicator, Message

Edges = Iterator[EdgeBlock]


@dataclass(frozen=True)
class RankCheck:
    """A check of one rank's searches; all ranks call it together.

    delegates: their global ids. edges: yields the rank's edges as global ids, undirected edges in
    both directions. rows_from: on rank 0, the number of input rows that leave each vertex, by
    global id; None on other ranks.
    """

    communicator: Communicator
    vertices: int
    partitions: int
    delegates: NDArray[np.uint32]
    edges: Callable[[], Edges]
    rows_from: NDArray[np.int64] | None

    def __call__(self, source: int, result: RankResult) -> tuple[Violations, int, int]:
        """Check a search from ``source``, a global id. Returns the violations of all ranks, the
        number of input rows reached (counted by their ends; 0 unless on rank 0), and the depth.
        """
        distance, parent = self._gather(result)
        violations = Violations()
        joined = np.zeros(self.vertices, np.uint8)
        for block in self.edges():
            check_rows(*block, distance, parent, None, joined, violations)
        joined = self._joined_anywhere(joined)
        rows = 0
        if self.rows_from is not None:
            check_tree(distance, parent, source, None, violations)
            check_joined(parent, joined, violations)
            rows = int(self.rows_from[distance >= 0].sum())
        return self._sum(violations), rows, int(distance.max())

    def _gather(self, result: RankResult) -> Part:
        """Return the distances and parents of all vertices by global id, gathered from all
        ranks.
        """
        size = self.communicator.size
        told: Message = [column for p in sorted(result.parts) for column in result.parts[p]]
        told += [] if result.delegates is None else result.delegates
        came = self.communicator.exchange([told] * size)
        delegates = Part(*came[0][-2:])
        parts = (
            (p, Part(*came[rank][2 * i : 2 * i + 2]))
            for rank in range(size)
            for i, p in enumerate(range(rank, self.partitions, size))
        )
        return put_together(self.vertices, self.partitions, parts, self.delegates, delegates)

    def _joined_anywhere(self, joined: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return on rank 0 a mask of the vertices that any rank has joined to their parents; an
        empty array on other ranks.
        """
        bits = np.packbits(joined)
        nothing = np.empty(0, np.uint8)
        size = self.communicator.size
        came = self.communicator.exchange([[nothing if peer else bits] for peer in range(size)])
        together = np.bitwise_or.reduce([message[0] for message in came])
        return np.unpackbits(together, count=0 if self.communicator.rank else self.vertices)

    def _sum(self, violations: Violations) -> Violations:
        counts = np.array([violations.count[rule] for rule in RULES])
        came = self.communicator.exchange([[counts]] * self.communicator.size)
        sums = np.sum([message[0] for message in came], axis=0).tolist()
        return Violations(dict(zip(RULES, sums, strict=True)), violations.example)


def edges_of(graph: RankGraph) -> Edges:
    """Yield all edges that a rank holds in memory, as global ids."""
    table = by_table(graph.delegates)
    for adjacency in (flow.forward for flow in graph.flows):
        place = adjacency.partition, adjacency.name
        sources, targets = numberings(*place, graph.partitions, graph.grid, table)
        rows = adjacency.rows
        assert isinstance(rows, Rows)
        yield EdgeBlock(rows.offsets, 0, rows.targets, sources, targets)


def check_bytes(store: Store, rank: int, ranks: int) -> int:
    """Return the most bytes that a check holds, beside the rank's own results."""
    info = store.info
    n = info.vertices
    gathered = 2 * (4 + 4) * n  # as received, and by global id
    most_rows = max(
        store.files[f"{stem_of(p, name)}.offsets.npy"].bytes // 4
        for p in range(rank, info.partitions, ranks)
        for name in kept_subgraphs(info.grid, directed=False)
    )
    block = 8 * most_rows + 2 * BLOCK_BYTES
    tree = 0 if rank else TREE_BYTES * n + 8 * n  # and rows_from
    return gathered + n + ranks * (n // 8) + max(block, tree)


def warm_up(offset_types: Iterable[np.dtype]) -> None:
    """Compile, or load from the cache, the kernels of a check. offset_types: of the subgraphs."""
    compile_kernels(rules, offsets=set(offset_types))


def stored_edges(store: Store, rank: int, ranks: int, team: Team) -> Edges:
    """Yield all edges of a rank, as ``edges_of`` does, but read from the store."""
    for blocks in store.edge_blocks(team, range(rank, store.info.partitions, ranks)):
        for read in blocks:
            yield read()
