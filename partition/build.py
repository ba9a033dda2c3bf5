"""Scatter and build: from blocks of edges to the arrays of each partition.

``scatter_block`` turns one block into one run, keys grouped by bucket with an index.
``build_range`` gathers one bucket from all runs, sorts it and drops duplicates: the rows of
one range of one subgraph. Ranges put one after the other make the subgraph, whatever the
blocks were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels import csr
from ..kernels.sort import radix_sort
from .ids import Block
from .layout import Layout, Subgraph
from .order import VertexOrder


@dataclass(frozen=True)
class Run:
    """The keys of one block: bucket b's are ``keys[offsets[b]:offsets[b + 1]]``.

    keys: uint64. offsets: int64 (buckets + 1,).
    """

    keys: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    def bucket(self, b: int) -> NDArray[np.uint64]:
        return self.keys[self.offsets[b] : self.offsets[b + 1]]


@dataclass(frozen=True)
class Rows:
    """Rows of a subgraph: targets of each row, and all targets, row after row, hub first.

    counts: int64 (rows,). targets: uint32.
    """

    counts: NDArray[np.int64]
    targets: NDArray[np.uint32]


def count_degrees(
    blocks: Sequence[Block], domain: int, dtype: DTypeLike, directed: bool
) -> tuple[NDArray, NDArray, int]:
    """Degrees by dense id, out-degrees (empty if undirected), and the number of self-loops."""
    degree = np.zeros(domain, dtype)
    out_degree = np.zeros(domain if directed else 0, dtype)
    loops = 0
    for src, dst in blocks:
        loops += csr.count_degrees(src, dst, degree)
        if directed:
            csr.count_sources(src, dst, out_degree)
    return degree, out_degree, loops


def rows_by_class(
    blocks: Sequence[Block], order: VertexOrder, degree_class: NDArray[np.uint32], classes: int
) -> NDArray[np.int64]:
    """Rows by the class of the higher degree of their two ends (for the threshold)."""
    histogram = np.zeros(classes, np.int64)
    for src, dst in blocks:
        csr.histogram_of_lowest_rank(src, dst, order.rank_of_dense, degree_class, histogram)
    return histogram


def scatter_block(block: Block, order: VertexOrder, layout: Layout) -> Run:
    offsets = np.empty(layout.buckets + 1, np.int64)
    keys = csr.scatter(*block, order.rank_of_dense, layout.placement, layout.directed, offsets)
    return Run(keys, offsets)


def build_range(
    runs: Sequence[Run],
    bucket: int,
    first_row: int,
    rows: int,
    subgraph: Subgraph,
    order: VertexOrder,
    partitions: int,
) -> Rows:
    keys = np.concatenate([run.bucket(bucket) for run in runs])
    keys -= np.uint64(first_row << 32)
    rank_bits = (order.vertices - 1).bit_length()
    row_bits = max(rows - 1, 0).bit_length()
    keys = radix_sort(keys, np.empty_like(keys), rank_bits, row_bits)
    counts = np.zeros(rows, np.int64)
    ranks = np.empty(len(keys), np.uint32)
    kept = csr.rows_from_sorted(keys, counts, ranks)
    return Rows(counts, _target_ids(ranks[:kept].copy(), subgraph, order, partitions))


def _target_ids(
    ranks: NDArray[np.uint32], subgraph: Subgraph, order: VertexOrder, partitions: int
) -> NDArray[np.uint32]:
    """Ranks to what the subgraph calls its targets (the table in layout.py)."""
    name = subgraph.name
    target = name[-2] if name.startswith("reverse-") else name[-1]
    if target == "d":
        return ranks
    ids = ranks if order.global_of_rank is None else order.global_of_rank[ranks]
    return ids if name.endswith("nn") else ids // np.uint32(partitions)
