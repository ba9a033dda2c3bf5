"""Where an edge is stored: pure arithmetic from a graph's counts to places.

The delegate layout (Pan, Pearce, Owens: Scalable Breadth-First Search on a GPU Cluster,
Algorithm 1 and Table I) with P partitions. A vertex with global id v belongs to partition
v mod P and is row v div P there. Delegates are copied to every partition and numbered by
rank. Of the four subgraphs of a partition, nn and nd have a row for every vertex that
belongs to it, dn and dd one for every delegate; the targets are

| subgraph | row | target |
|---|---|---|
| nn | local id | global id |
| nd | local id | delegate |
| dn | delegate | local id |
| dd | delegate | delegate |

With one partition there is nothing to separate for: no delegates, and nn is the whole graph
in one CSR. A directed graph keeps transposes beside: of nn with one partition, of nd, dn and
dd with several (nn only pushes then).

Every subgraph is built in ranges of rows, cut so that each holds about as many edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.csr import SLOTS, SUBGRAPHS, Placement
from .order import VertexOrder

ROWS_IN_ONE_PARTITION = 1 << 30
"""Up to this many input rows a graph gets one partition by default."""

MAX_PARTITIONS = 9999  # their folders' names have four digits

_KEYS_A_RANGE = 1 << 20
_RANGE_TABLE = 1 << 16


def default_partitions(rows: int) -> int:
    """The least power of two that leaves at most ROWS_IN_ONE_PARTITION rows in each.

    >>> [default_partitions(rows) for rows in (1, 1 << 30, (1 << 30) + 1)]
    [1, 1, 2]
    """
    return 1 << max(0, -(-rows // ROWS_IN_ONE_PARTITION) - 1).bit_length()


@dataclass(frozen=True)
class Ranges:
    """Consecutive ranges of rows: range of row r is ``table[r >> shift]``.

    table: uint32. starts: int64 (ranges + 1,); range i is rows starts[i] .. starts[i + 1] - 1.
    """

    table: NDArray[np.uint32]
    shift: int
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1


def cut_ranges(edges_by_row: NDArray[np.integer], ranges: int) -> Ranges:
    """Cut rows into at most ``ranges`` ranges of about equally many edges, at multiples of 2^k.

    >>> cut_ranges(np.array([4, 1, 1, 2]), 2).starts.tolist()
    [0, 1, 4]
    """
    rows = len(edges_by_row)
    shift = max(0, (max(rows, 1) - 1).bit_length() - _RANGE_TABLE.bit_length() + 1)
    edges = edges_by_row.astype(np.int64)
    groups = np.add.reduceat(edges, np.arange(0, rows, 1 << shift)) if rows else edges
    before = np.cumsum(groups) - groups
    total = max(1, int(np.sum(groups)))
    wanted = np.minimum((before * ranges) // total, ranges - 1)  # rows without edges come last
    cut = np.diff(wanted, prepend=-1) > 0
    table = (np.cumsum(cut) - 1).astype(np.uint32)
    starts = np.append(np.flatnonzero(cut) << shift, rows).astype(np.int64)
    return Ranges(table, shift, starts)


@dataclass(frozen=True)
class Subgraph:
    """One slot of a partition: a subgraph or a transpose, with its ranges and its buckets."""

    partition: int
    name: str
    rows: int
    ranges: Ranges
    first_bucket: int

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """(bucket, first row, rows) of each range."""
        for i in range(len(self.ranges)):
            start, stop = self.ranges.starts[i : i + 2]
            yield self.first_bucket + i, int(start), int(stop - start)


@dataclass(frozen=True)
class Layout:
    partitions: int
    delegates: int
    directed: bool
    placement: Placement
    subgraphs: tuple[Subgraph, ...]
    buckets: int


def local_rows(vertices: int, partitions: int, partition: int) -> int:
    """Vertices that belong to a partition.

    >>> [local_rows(10, 4, p) for p in range(4)]
    [3, 3, 2, 2]
    """
    return (vertices - partition + partitions - 1) // partitions


def kept_subgraphs(partitions: int, directed: bool) -> tuple[str, ...]:
    """Names of what a partition stores, in order; ``reverse-`` marks a transpose."""
    kept = SUBGRAPHS if partitions > 1 else ("nn",)
    if not directed:
        return kept
    return kept + tuple(f"reverse-{name}" for name in (kept[1:] or kept))


def _has_delegate_rows(name: str) -> bool:
    # A transpose has the targets of its subgraph as rows.
    return (name[-1] if name.startswith("reverse-") else name[0]) == "d"


def plan_layout(order: VertexOrder, partitions: int, delegates: int, directed: bool) -> Layout:
    n = order.vertices
    by_global = order.degree
    if order.global_of_rank is not None:
        by_global = np.empty_like(order.degree)
        by_global[order.global_of_rank] = order.degree
    # Partitions are alike: the first one's cuts serve all (it has the most rows).
    ranges_wanted = max(1, int(order.degree.sum()) // partitions // _KEYS_A_RANGE)
    normal = cut_ranges(by_global[::partitions], ranges_wanted)
    delegate = cut_ranges(order.degree[:delegates], ranges_wanted)

    first_bucket = np.full(partitions * SLOTS, -1, np.int64)
    subgraphs = []
    bucket = 0
    for p in range(partitions):
        for name in kept_subgraphs(partitions, directed):
            slot = SUBGRAPHS.index(name[-2:]) + len(SUBGRAPHS) * name.startswith("reverse-")
            on_delegates = _has_delegate_rows(name)
            ranges = delegate if on_delegates else normal
            rows = delegates if on_delegates else local_rows(n, partitions, p)
            first_bucket[p * SLOTS + slot] = bucket
            subgraphs.append(Subgraph(p, name, rows, _clip(ranges, rows), bucket))
            bucket += len(ranges)
    placement = Placement(
        partitions,
        delegates,
        order.degree,
        np.empty(0, np.uint32) if order.global_of_rank is None else order.global_of_rank,
        first_bucket,
        normal.table,
        normal.shift,
        delegate.table,
        delegate.shift,
    )
    return Layout(partitions, delegates, directed, placement, tuple(subgraphs), bucket)


def _clip(ranges: Ranges, rows: int) -> Ranges:
    return Ranges(ranges.table, ranges.shift, np.minimum(ranges.starts, rows))
