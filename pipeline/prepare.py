"""Preparation: blocks of edges become ranges of compressed sparse rows.

degrees -> (threshold) -> scatter -> build, each a step of independent tasks: the number of
blocks and of threads changes the time and the memory, never the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ..partition import build
from ..partition.edges import EdgeList
from ..partition.errors import InputError
from ..partition.ids import Ids
from ..partition.layout import (
    MAX_PARTITIONS,
    Layout,
    Subgraph,
    default_partitions,
    plan_layout,
)
from ..partition.order import (
    Order,
    Threshold,
    VertexOrder,
    choose_threshold,
    degree_classes,
    order_vertices,
)
from .execute import Executor
from .plan import BuildBytes
from .read import DenseEdges, warm_up_read

_BLOCKS_AT_ONCE = 8  # blocks a thread scatters before they are let go
_RANGES_AT_ONCE = 64  # built ranges that may wait to be taken


@dataclass(frozen=True)
class BuildOptions:
    """What the user may choose about a store.

    partitions: None for the default, which depends on the number of rows. threshold: vertices
    of higher degree are delegates; None for the automatic one.
    """

    directed: bool = False
    src: str = "src"
    dst: str = "dst"
    partitions: int | None = None
    threshold: int | None = None
    order: Order = "degree"

    def __post_init__(self) -> None:
        for name in ("partitions", "threshold"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be positive, not {value}")
        if self.partitions is not None and self.partitions > MAX_PARTITIONS:
            raise InputError(
                f"{self.partitions:,} partitions: a store has {MAX_PARTITIONS:,} at most"
            )
        if self.order not in get_args(Order):
            raise InputError(f"no order {self.order!r}: {', '.join(get_args(Order))}")
        if self.src == self.dst:
            raise InputError(f"src and dst are both column {self.src!r}: an edge has two ends")

    @property
    def shapes_store(self) -> bool:
        """Whether anything but the reading of the input was asked for."""
        return (self.partitions, self.threshold, self.order) != (None, None, "degree")

    def partitions_for(self, rows: int) -> int:
        """The number of partitions of a graph of so many input rows."""
        return self.partitions or default_partitions(rows)


@dataclass(frozen=True)
class Prepared:
    """A graph whose edges are scattered: its rows can be built range by range.

    out_degree: by dense id; empty if undirected.
    """

    ids: Ids
    order: VertexOrder
    out_degree: NDArray[np.unsignedinteger]
    threshold: Threshold
    layout: Layout
    runs: list[build.Run]
    rows: int
    self_loops: int

    def most_edges(self, subgraph: Subgraph) -> int:
        """Edges of a subgraph before duplicates are dropped."""
        return sum(
            int(run.offsets[bucket + 1] - run.offsets[bucket])
            for run in self.runs
            for bucket, _, _ in subgraph.buckets()
        )


def prepare(dense: DenseEdges, options: BuildOptions, executor: Executor) -> Prepared:
    """Count, order and scatter; takes the blocks out of ``dense`` as it goes."""
    rows = dense.rows
    need = BuildBytes(rows, dense.ids.domain, executor.threads)
    degree, out_degree, loops = _degrees(dense, options.directed, executor, need)
    order = order_vertices(degree, dense.present, options.order)
    del degree
    partitions = options.partitions_for(rows)
    threshold = _threshold(dense, order, partitions, options.threshold, executor, need)
    layout = plan_layout(order, partitions, threshold.delegates, options.directed)
    runs: list[build.Run] = []
    at_once = _BLOCKS_AT_ONCE * executor.threads
    blocks = len(dense.blocks)
    for _ in range(0, blocks, at_once):
        runs += executor.step(
            "scatter",
            lambda block: build.scatter_block(block, order, layout),
            dense.blocks[:at_once],
            need.scatter,
            total=blocks,
        )
        del dense.blocks[:at_once]  # their keys are in the runs now
    return Prepared(dense.ids, order, out_degree, threshold, layout, runs, rows, loops)


def built_ranges(
    prepared: Prepared, subgraph: Subgraph, executor: Executor
) -> Iterator[build.Rows]:
    """The rows of a subgraph, range after range."""
    need = BuildBytes(prepared.rows, prepared.ids.domain, executor.threads).build
    partitions = prepared.layout.partitions

    def build_one(bucket: tuple[int, int, int]) -> build.Rows:
        return build.build_range(prepared.runs, *bucket, subgraph, prepared.order, partitions)

    buckets = list(subgraph.buckets())
    for first in range(0, len(buckets), _RANGES_AT_ONCE):
        some = buckets[first : first + _RANGES_AT_ONCE]
        yield from executor.step("build", build_one, some, need, total=prepared.layout.buckets)


def warm_up_build(edges: EdgeList, directed: bool, executor: Executor) -> None:
    """Compile, or load from the cache, what building will call: builds a graph of one edge."""
    warm_up_read(edges, executor)
    one_edge = (np.array([0], np.uint32), np.array([1], np.uint32))

    def build_one_edge(nothing: None) -> None:
        degree, _, _ = build.count_degrees([one_edge], 2, np.uint32, directed)
        order = order_vertices(degree, np.ones(2, np.uint8), "degree")
        layout = plan_layout(order, 1, 0, directed)
        build.rows_by_class([one_edge], order, np.zeros(2, np.uint32), 1)
        run = build.scatter_block(one_edge, order, layout)
        subgraph = layout.subgraphs[0]
        build.build_range([run], *next(subgraph.buckets()), subgraph, order, 1)

    executor.step("compile", build_one_edge, [None])


def _degrees(
    dense: DenseEdges, directed: bool, executor: Executor, need: BuildBytes
) -> tuple[NDArray, NDArray, int]:
    # Each task counts into an array of its own: no more of them than the edges are worth.
    domain = dense.ids.domain
    groups = max(1, min(executor.threads, len(dense.blocks), dense.rows // (domain + 1)))
    dtype = np.uint32 if dense.rows < 2**31 else np.uint64
    counted = executor.step(
        "degrees",
        lambda i: build.count_degrees(dense.blocks[i::groups], domain, dtype, directed),
        range(groups),
        need.degrees,
    )
    degree, out_degree, loops = counted[0]
    for more, more_out, more_loops in counted[1:]:
        degree += more
        out_degree += more_out
        loops += more_loops
    return degree, out_degree, loops


def _threshold(
    dense: DenseEdges,
    order: VertexOrder,
    partitions: int,
    wanted: int | None,
    executor: Executor,
    need: BuildBytes,
) -> Threshold:
    if partitions == 1:
        return Threshold(int(order.degree[0]), 0, 1.0, "one partition")
    distinct, degree_class = degree_classes(order.degree)
    counted = executor.step(
        "threshold",
        lambda block: build.rows_by_class([block], order, degree_class, len(distinct)),
        dense.blocks,
        need.degrees,
    )
    return choose_threshold(order.degree, distinct, np.sum(counted, axis=0), partitions, wanted)
