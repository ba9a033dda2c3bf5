"""Preparation: from a Parquet edge list to a store.

read -> (ids) -> degrees -> (threshold) -> scatter -> build, each a step of tasks over blocks
of edges; then the manifest. Every step's tasks are independent, so the number of blocks and
of threads changes the time and the memory, never the bytes of the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels.csr import SUBGRAPHS
from ..partition import build, ids
from ..partition.arrow import as_arrow
from ..partition.edges import EdgeList, open_edges
from ..partition.errors import InputError
from ..partition.files import new_folder
from ..partition.ids import Block, Ids
from ..partition.layout import Layout, Subgraph, default_partitions, plan_layout
from ..partition.order import (
    Order,
    Threshold,
    VertexOrder,
    choose_threshold,
    degree_classes,
    order_vertices,
)
from ..partition.store import GraphInfo, Store, StoreWriter, open_store
from .execute import Executor
from .metrics import BuildRecord, GraphRecord, check_outputs, command_record, write_record
from .plan import BuildBytes

_RANGES_AT_ONCE = 64  # built ranges that may wait to be written


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

    @property
    def shapes_store(self) -> bool:
        """Whether anything but the reading of the input was asked for."""
        return (self.partitions, self.threshold, self.order) != (None, None, "degree")


@dataclass(frozen=True)
class DenseEdges:
    """An edge list in memory, as blocks of dense ids.

    present: uint8 (domain,), 1 where a dense id is a vertex.
    """

    ids: Ids
    present: NDArray[np.uint8]
    blocks: list[Block]

    @property
    def rows(self) -> int:
        return sum(len(src) for src, _ in self.blocks)


def build_store(edges: EdgeList, output: Path, options: BuildOptions, executor: Executor) -> Store:
    """Build the store ``output``, which must not exist, from an edge list."""
    with new_folder(output) as folder:
        _build(edges, folder, options, executor)
    return open_store(output)


def build_graph(
    path: str | Path,
    output: str | Path,
    options: BuildOptions,
    executor: Executor,
    overwrite: bool = False,
) -> Store:
    """Prepare the Parquet edge list at ``path`` as the store ``output``.

    Raises InputError for bad input or an output that exists, before anything is written.
    """
    started = time.perf_counter()
    check_outputs(output, overwrite)
    edges = open_edges(path, options.src, options.dst)
    warm_up_build(edges, options.directed, executor)
    store = build_store(edges, Path(output), options, executor)
    record = BuildRecord(
        **command_record(executor.steps, executor.threads),
        graph=graph_record(store),
        seconds=time.perf_counter() - started,
    )
    write_record(output, record)
    return store


def graph_record(store: Store) -> GraphRecord:
    info = store.info
    return GraphRecord(
        fingerprint=info.fingerprint,
        directed=info.directed,
        vertices=info.vertices,
        rows=info.rows,
        id_type=info.id_type,
    )


def warm_up_read(edges: EdgeList, executor: Executor) -> None:
    """Compile, or load from the cache, what reading will call."""
    executor.step("compile", lambda _: ids.warm_up(edges.id_type), [None])


def warm_up_build(edges: EdgeList, directed: bool, executor: Executor) -> None:
    """Compile, or load from the cache, what building will call: builds a graph of one edge."""
    warm_up_read(edges, executor)
    one_edge = (np.array([0], np.uint32), np.array([1], np.uint32))

    def build_one_edge(nothing: None) -> None:
        degree, _, _ = build.count_degrees([one_edge], 2, np.uint32, directed)
        order = order_vertices(degree, np.ones(2, np.uint8), "degree")
        layout = plan_layout(order, 1, 0, directed)
        run = build.scatter_block(one_edge, order, layout)
        subgraph = layout.subgraphs[0]
        build.build_range([run], *next(subgraph.buckets()), subgraph, order, 1)

    executor.step("compile", build_one_edge, [None])


def read_edges(edges: EdgeList, executor: Executor) -> DenseEdges:
    """Read an edge list into memory as dense ids."""
    chunks = edges.chunks()
    bounds = edges.bounds
    if bounds is None and pa.types.is_integer(edges.id_type):
        found = executor.step("bounds", lambda c: ids.chunk_bounds(edges, c), chunks)
        bounds = min(low for low, _ in found), max(high for _, high in found)
    if bounds is not None and ids.may_be_dense(bounds, edges.rows):
        domain = bounds[1] + 1
        _check_size(domain)
        need = BuildBytes(edges.rows, domain, executor.threads).read
        present = np.zeros(domain, np.uint8)
        blocks = executor.step(
            "read", lambda c: ids.read_dense(edges, c, domain, present), chunks, need
        )
        numbering = ids.compact(blocks, Ids(edges.id_type, domain, None), present)
        if numbering.values is not None:
            present = np.ones(numbering.domain, np.uint8)
        return DenseEdges(numbering, present, blocks)

    need = BuildBytes(edges.rows, 0, executor.threads).read
    encoded = executor.step("read", lambda c: ids.read_encoded(edges, c), chunks, need)
    merged = executor.step(
        "ids",
        lambda dictionaries: ids.merge_dictionaries(dictionaries, edges.id_type),
        [[dictionary for _, dictionary in encoded]],
    )
    numbering, places = merged[0]
    _check_size(numbering.domain)
    work = [(block, place) for (block, _), place in zip(encoded, places, strict=True)]
    del encoded
    blocks = executor.step("encode", lambda pair: ids.translate(*pair), work, need)
    return DenseEdges(numbering, np.ones(numbering.domain, np.uint8), blocks)


def _check_size(domain: int) -> None:
    if domain > ids.MAX_VERTICES:
        raise InputError(f"{domain:,} vertices; a graph may have {ids.MAX_VERTICES:,}")


def _build(edges: EdgeList, folder: Path, options: BuildOptions, executor: Executor) -> None:
    dense = read_edges(edges, executor)
    rows = dense.rows
    need = BuildBytes(rows, dense.ids.domain, executor.threads)
    degree, out_degree, loops = _degrees(dense, options.directed, executor, need)
    order = order_vertices(degree, dense.present, options.order)
    del degree
    partitions = options.partitions or default_partitions(rows)
    threshold = _threshold(dense, order, partitions, options.threshold, executor, need)
    layout = plan_layout(order, partitions, threshold.delegates, options.directed)
    runs = executor.step(
        "scatter",
        lambda i: _scatter_and_free(dense.blocks, i, order, layout),
        range(len(dense.blocks)),
        need.scatter,
    )

    writer = StoreWriter(folder)
    writer.write_vertices(_vertex_table(dense.ids, order, out_degree))
    if partitions > 1:
        ranks = np.arange(threshold.delegates, dtype=np.uint32)
        writer.write_array(
            "delegates.npy", ranks if order.global_of_rank is None else order.global_of_rank[ranks]
        )
    written = dict.fromkeys(SUBGRAPHS, 0)
    for subgraph in layout.subgraphs:
        most = sum(
            int(run.offsets[bucket + 1] - run.offsets[bucket])
            for run in runs
            for bucket, _, _ in subgraph.buckets()
        )
        built = _built_ranges(runs, subgraph, order, partitions, executor, need)
        entries = writer.write_subgraph(subgraph.partition, subgraph.name, built, most)
        if subgraph.name in written:
            written[subgraph.name] += entries
    edges_kept = sum(written.values()) // (1 if options.directed else 2)
    writer.finish(
        GraphInfo(
            fingerprint=graph_fingerprint(edges, options.directed),
            src=edges.src,
            dst=edges.dst,
            id_type=str(edges.id_type),
            directed=options.directed,
            order=options.order,
            partitions=partitions,
            vertices=order.vertices,
            edges=edges_kept,
            rows=rows,
            self_loops=loops,
            duplicates=rows - loops - edges_kept,
            degree_histogram=_degree_histogram(order.degree),
            threshold=threshold.value,
            threshold_chosen_by=threshold.chosen_by,
            delegates=threshold.delegates,
            nn_row_share=threshold.nn_share,
            subgraph_edges={name: written[name] for name in SUBGRAPHS},
        )
    )


def graph_fingerprint(edges: EdgeList, directed: bool) -> str:
    """The same for every store and every result of one graph: its input and its direction."""
    return f"{edges.fingerprint}-{'directed' if directed else 'undirected'}"


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


def _scatter_and_free(blocks: list[Block], i: int, order: VertexOrder, layout: Layout) -> build.Run:
    run = build.scatter_block(blocks[i], order, layout)
    blocks[i] = (np.empty(0, np.uint32), np.empty(0, np.uint32))
    return run


def _built_ranges(
    runs: list[build.Run],
    subgraph: Subgraph,
    order: VertexOrder,
    partitions: int,
    executor: Executor,
    need: BuildBytes,
) -> Iterator[build.Rows]:
    def build_one(bucket: tuple[int, int, int]) -> build.Rows:
        return build.build_range(runs, *bucket, subgraph, order, partitions)

    buckets = list(subgraph.buckets())
    for first in range(0, len(buckets), _RANGES_AT_ONCE):
        yield from executor.step(
            "build",
            build_one,
            buckets[first : first + _RANGES_AT_ONCE],
            need.build,
        )


def _vertex_table(ids: Ids, order: VertexOrder, out_degree: NDArray) -> pa.Table:
    """The vertices by rising id: the user's id, global id, degree (and out-degree)."""
    by_id = np.argsort(order.dense_of_rank, kind="stable")
    dense = order.dense_of_rank[by_id]
    global_id = by_id.astype(np.uint32)
    if order.global_of_rank is not None:
        global_id = order.global_of_rank[by_id]
    columns = {
        "vertex": ids.decode(as_arrow(dense)),
        "global_id": as_arrow(global_id),
        "degree": as_arrow(order.degree[by_id]),
    }
    if len(out_degree):
        columns["out_degree"] = as_arrow(out_degree[dense])
    return pa.table(columns)


def _degree_histogram(degree: NDArray) -> tuple[int, ...]:
    """Vertices of degree 0, 1, 2-3, 4-7, ..."""
    bits = np.zeros(len(degree), np.int64)
    bits[degree > 0] = np.floor(np.log2(degree[degree > 0])).astype(np.int64) + 1
    return tuple(int(count) for count in np.bincount(bits))
