"""The places where layouts store edges: pure arithmetic from a graph's counts to places.

The delegate layout (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster, Algorithm 1
and Table I) has P partitions. A vertex with global id v belongs to partition v mod P and is row v
div P there. Delegates are copied to every partition and numbered by position. Of the four subgraphs
of a partition, nn and nd have a row for every vertex that belongs to it, dn and dd one for every
delegate. Rows and targets are:

| subgraph | row | target |
|---|---|---|
| nn | local id | global id |
| nd | local id | delegate |
| dn | delegate | local id |
| dd | delegate | delegate |

A directed graph also stores transposes of nd, dn and dd; along nn a search only pushes. The other
layouts are grids (grid.py), whose only subgraph is nn, with ``reverse-nn`` of a directed graph. One
partition needs no delegates: nn is the whole graph in one CSR, a grid of one partition.

Every subgraph is built in ranges of rows, cut so that each holds a bounded number of edges, or one
row. A shard is a sequence of ranges whose targets are in one file. Ranges and shards depend on the
graph alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.numbering import Numbering, by_rule
from ...kernels.prepare.csr import SLOTS, SUBGRAPHS, Placement, cut_rows
from .grid import Grid
from .order import VertexOrder

ROWS_IN_ONE_PARTITION = 1 << 30
"""Most input rows of a graph that gets one partition by default."""

MAX_PARTITIONS = 9999  # their folders' names have four digits

RANGE_EDGES = 1 << 20
RANGE_ROWS = 1 << 16  # a row within its range has 16 bits
SHARD_EDGES = 1 << 23
SHARD_ROWS = 1 << 22
SHARDS = 256  # approximate bound on the shards of a subgraph of any size
_RANGE_TABLE = 1 << 16
_WINDOW = 1 << 18


def default_partitions(rows: int) -> int:
    """Return the least power of two that leaves at most ROWS_IN_ONE_PARTITION rows in each
    partition.

    >>> [default_partitions(rows) for rows in (1, 1 << 30, (1 << 30) + 1)]
    [1, 1, 2]
    """
    return 1 << max(0, -(-rows // ROWS_IN_ONE_PARTITION) - 1).bit_length()


@dataclass(frozen=True)
class Ranges:
    """Consecutive ranges of rows: range i is rows ``starts[i]`` .. ``starts[i + 1] - 1``.

    starts: int64 (ranges + 1,). table: uint32, the range of row ``g << shift`` (csr.range_of).
    edges: int64 (ranges,), a bound on the edges of each (edges of delegates count as spread evenly
    over partitions).
    """

    starts: NDArray[np.int64]
    edges: NDArray[np.int64]
    table: NDArray[np.uint32]
    shift: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def at(cls, starts: NDArray[np.int64], edges: NDArray[np.int64]) -> Ranges:
        rows = int(starts[-1])
        shift = max(0, (max(rows, 1) - 1).bit_length() - _RANGE_TABLE.bit_length() + 1)
        groups = np.arange(0, rows + (1 << shift), 1 << shift)
        table = np.searchsorted(starts[1:], groups, side="right")
        last = max(0, len(starts) - 2)
        return cls(starts, edges, np.minimum(table, last).astype(np.uint32), shift)


def cut_ranges(edges: NDArray[np.integer], repeats: NDArray[np.int64] | None = None) -> Ranges:
    """Cut rows into ranges of at most RANGE_EDGES edges and RANGE_ROWS rows, or of one row.

    edges: of each row. repeats: if given, ``edges[i]`` stands for ``repeats[i]`` rows.

    >>> ranges = cut_ranges(np.array([RANGE_EDGES - 5, 5, 9, 1, 0]))
    >>> ranges.starts.tolist(), ranges.edges.tolist()
    ([0, 2, 5], [1048576, 10])
    """
    repeat_counts = np.ones(0, np.int64) if repeats is None else repeats
    total = int(edges.sum() if repeats is None else edges @ repeats)
    rows = len(edges) if repeats is None else int(repeats.sum())
    # Of two neighbours, one has RANGE_ROWS rows, or both together exceed RANGE_EDGES edges.
    starts = np.empty(2 * (total // RANGE_EDGES) + 2 * (rows // RANGE_ROWS) + 4, np.int64)
    count = cut_rows(edges, repeat_counts, RANGE_EDGES, RANGE_ROWS, starts)
    starts = starts[: count + 1].copy()
    return Ranges.at(starts, _edges_of(edges, repeats, starts))


def _edges_of(
    edges: NDArray[np.integer], repeats: NDArray[np.int64] | None, starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of edges of the rows between each of ``starts`` and the next."""
    if len(starts) == 1:
        return np.empty(0, np.int64)
    if repeats is None:
        return np.add.reduceat(edges, starts[:-1], dtype=np.int64)
    row_ends = np.append(0, np.cumsum(repeats))
    edge_ends = np.append(0, np.cumsum(edges.astype(np.int64) * repeats))
    run = np.minimum(np.searchsorted(row_ends, starts, side="right") - 1, len(edges) - 1)
    return np.diff(edge_ends[run] + (starts - row_ends[run]) * edges[run].astype(np.int64))


@dataclass(frozen=True)
class Subgraph:
    """One slot of a partition: a subgraph or a transpose, with its ranges and its buckets.

    first_bucket: the bucket of its first range; those of its other ranges follow.
    """

    partition: int
    name: str
    rows: int
    ranges: Ranges
    first_bucket: int

    @property
    def most_edges(self) -> int:
        """Return a bound on the subgraph's edges."""
        return int(self.ranges.edges.sum())

    def shards(self) -> list[Shard]:
        size = max(SHARD_EDGES, self.most_edges // SHARDS)
        before = np.cumsum(self.ranges.edges) - self.ranges.edges
        number = before // size + self.ranges.starts[:-1] // SHARD_ROWS
        firsts = np.flatnonzero(np.diff(number, prepend=-1))
        return [
            Shard(self, i, int(first), int(stop))
            for i, (first, stop) in enumerate(pairwise([*firsts, len(self.ranges)]))
        ]


@dataclass(frozen=True)
class Shard:
    """Ranges ``first`` .. ``stop - 1`` of a subgraph, whose targets are in one file."""

    subgraph: Subgraph
    number: int
    first: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """The layout of a store. grid: None for the delegate layout. numbered_by_position: whether
    global ids are positions; if not, ``placement.global_id`` is left empty, and tasks that need it
    fill it in.
    """

    partitions: int
    grid: Grid | None
    delegates: int
    directed: bool
    numbered_by_position: bool
    placement: Placement
    subgraphs: tuple[Subgraph, ...]
    buckets: int


def table_1_bytes(vertices: int, delegates: int, partitions: int, entries: int, nn: int) -> int:
    """Return the bytes of a graph in the delegate layout, over all partitions: 8n + 8dP + 4m +
    4|Enn|.

    entries: m, edges in both directions. nn: those along nn. Source: Pan, Pearce, Owens, Table I.

    >>> table_1_bytes(1000, 10, 4, 20_000, 500)
    90320
    """
    return 8 * vertices + 8 * delegates * partitions + 4 * entries + 4 * nn


def local_rows(vertices: int, partitions: int, partition: int) -> int:
    """Return the number of vertices that belong to a partition.

    >>> [local_rows(10, 4, p) for p in range(4)]
    [3, 3, 2, 2]
    """
    return (vertices - partition + partitions - 1) // partitions


def offsets_dtype(most_edges: int) -> type[np.unsignedinteger]:
    """Return the type of a subgraph's offsets, from a bound on its edges."""
    return np.uint32 if most_edges < 2**32 else np.uint64


def kept_subgraphs(grid: Grid | None, directed: bool) -> tuple[str, ...]:
    """Return the names of the subgraphs that a partition stores, in order; ``reverse-`` marks a
    transpose.

    >>> kept_subgraphs(None, False), kept_subgraphs(Grid(2, 2), True)
    (('nn', 'nd', 'dn', 'dd'), ('nn', 'reverse-nn'))
    """
    kept = SUBGRAPHS if grid is None else ("nn",)
    if not directed:
        return kept
    return kept + tuple(f"reverse-{name}" for name in (kept[1:] or kept))


def ends_of(name: str) -> str:
    """Return the kinds of the rows and of the targets of a subgraph or a transpose, "n" or "d"
    each.

    >>> ends_of("nd"), ends_of("reverse-nd")
    ('nd', 'dn')
    """
    return name[:-3:-1] if name.startswith("reverse-") else name


def numberings(
    partition: int, name: str, partitions: int, grid: Grid | None, delegates: Numbering
) -> tuple[Numbering, Numbering]:
    """Return the numberings from the rows of a partition's subgraph, and from its targets, to
    global ids.
    """
    if grid is not None:
        return grid.of_column(grid.column(partition)), grid.of_row(grid.row(partition))
    kinds = {"n": by_rule(partitions, partition), "d": delegates}
    row, target = ends_of(name)
    return kinds[row], by_rule() if name == "nn" else kinds[target]


def plan_layout(
    order: VertexOrder, partitions: int, grid: Grid | None, delegates: int, directed: bool
) -> Layout:
    """Return the layout of a graph. grid: None for the delegate layout; a grid has no delegates."""
    n = order.vertices
    # One cut serves all partitions: each row counts as the longest row of any partition.
    stride = partitions if grid is None else grid.columns
    if order.global_of_position is None:
        positions = order.first_positions(stride)
        normal = cut_ranges(order.distinct, np.diff(positions))
    else:
        by_local = np.zeros(local_rows(n, stride, 0), order.distinct.dtype)
        for first in range(0, n, _WINDOW):
            vertices = order.global_of_position[first : first + _WINDOW]
            degree = order.degree_between(first, first + len(vertices))
            np.maximum.at(by_local, vertices // np.uint32(stride), degree)
        normal = cut_ranges(by_local)
    delegate_degree = order.degree(delegates)
    of_each = (delegate_degree.astype(np.int64) + partitions - 1) // partitions
    delegate = cut_ranges(of_each.astype(delegate_degree.dtype))

    first_bucket = np.full(partitions * SLOTS, -1, np.int64)
    subgraphs = []
    bucket = 0
    for p in range(partitions):
        for name in kept_subgraphs(grid, directed):
            slot = SUBGRAPHS.index(name[-2:]) + len(SUBGRAPHS) * name.startswith("reverse-")
            on_delegates = ends_of(name)[0] == "d"
            ranges = delegate if on_delegates else normal
            rows = delegates if on_delegates else local_rows(n, stride, p % stride)
            first_bucket[p * SLOTS + slot] = bucket
            subgraphs.append(Subgraph(p, name, rows, _clip(ranges, rows), bucket))
            bucket += len(ranges)
    placement = Placement(
        partitions,
        0 if grid is None else grid.columns,
        delegates,
        delegate_degree,
        np.empty(0, np.uint32),
        first_bucket,
        normal.table,
        normal.shift,
        normal.starts,
        delegate.table,
        delegate.shift,
        delegate.starts,
    )
    by_position = order.global_of_position is None
    return Layout(
        partitions, grid, delegates, directed, by_position, placement, tuple(subgraphs), bucket
    )


def _clip(ranges: Ranges, rows: int) -> Ranges:
    return replace(ranges, starts=np.minimum(ranges.starts, rows))
