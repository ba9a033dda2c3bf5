"""Building: from a Parquet edge list to a store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels.csr import SUBGRAPHS
from ..partition.arrow import as_arrow
from ..partition.edges import EdgeList, open_edges
from ..partition.outputs import check_output, new_folder
from ..partition.store import GraphInfo, Store, StoreWriter, open_store
from .execute import Executor
from .metrics import BuildRecord, GraphRecord, command_record, write_record
from .prepare import BuildOptions, Prepared, built_ranges, prepare, warm_up_build
from .read import graph_fingerprint, read_edges

_VERTEX_ROWS = 1 << 20


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
    check_output(output, "store", overwrite, path)
    edges = open_edges(path, options.src, options.dst)
    warm_up_build(edges, options.directed, executor)
    store = build_store(edges, Path(output), options, executor, overwrite)
    record = BuildRecord(
        **command_record(executor.steps, executor.threads),
        graph=graph_record(store),
        seconds=time.perf_counter() - started,
    )
    write_record(output, record)
    return store


def build_store(
    edges: EdgeList,
    output: Path,
    options: BuildOptions,
    executor: Executor,
    overwrite: bool = False,
) -> Store:
    """Build the store ``output`` from an edge list."""
    with new_folder(output, "store", overwrite) as folder:
        prepared = prepare(read_edges(edges, executor), options, executor)
        _write(prepared, edges, folder, options, executor)
    return open_store(output)


def graph_record(store: Store) -> GraphRecord:
    info = store.info
    return GraphRecord(
        fingerprint=info.fingerprint,
        directed=info.directed,
        vertices=info.vertices,
        rows=info.rows,
        id_type=info.id_type,
    )


def _write(
    prepared: Prepared, edges: EdgeList, folder: Path, options: BuildOptions, executor: Executor
) -> None:
    order, threshold, layout = prepared.order, prepared.threshold, prepared.layout
    writer = StoreWriter(folder)
    writer.write_vertices(*_vertex_table(prepared))
    if layout.partitions > 1:
        ranks = np.arange(layout.delegates, dtype=np.uint32)
        writer.write_array(
            "delegates.npy", ranks if order.global_of_rank is None else order.global_of_rank[ranks]
        )
    written: dict[str, int] = dict.fromkeys(SUBGRAPHS, 0)
    for subgraph in layout.subgraphs:
        entries = writer.write_subgraph(
            subgraph.partition,
            subgraph.name,
            built_ranges(prepared, subgraph, executor),
            prepared.most_edges(subgraph),
        )
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
            partitions=layout.partitions,
            vertices=order.vertices,
            edges=edges_kept,
            rows=prepared.rows,
            self_loops=prepared.self_loops,
            duplicates=prepared.rows - prepared.self_loops - edges_kept,
            degree_histogram=_degree_histogram(order.degree),
            threshold=threshold.value,
            threshold_chosen_by=threshold.chosen_by,
            delegates=threshold.delegates,
            nn_row_share=threshold.nn_share,
            subgraph_edges=written,
        )
    )


def _vertex_table(prepared: Prepared) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The vertices by rising id: the user's id, global id, degree (and out-degree)."""
    order, out_degree = prepared.order, prepared.out_degree
    by_id, global_id = order.by_id()
    degree_type = pa.from_numpy_dtype(order.degree.dtype)
    fields = {
        "vertex": prepared.ids.id_type,
        "global_id": pa.uint32(),
        "degree": degree_type,
        **({"out_degree": degree_type} if len(out_degree) else {}),
    }
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(by_id), _VERTEX_ROWS):
            ranks = by_id[start : start + _VERTEX_ROWS]
            dense = order.dense_of_rank[ranks]
            columns = [
                prepared.ids.decode(as_arrow(dense)),
                as_arrow(global_id[start : start + _VERTEX_ROWS]),
                as_arrow(order.degree[ranks]),
            ]
            if len(out_degree):
                columns.append(as_arrow(out_degree[dense]))
            yield pa.record_batch(columns, schema=schema)

    return schema, batches()


def _degree_histogram(degree: NDArray) -> tuple[int, ...]:
    """Vertices of degree 0, 1, 2-3, 4-7, ..."""
    bits = np.zeros(len(degree), np.int64)
    bits[degree > 0] = np.floor(np.log2(degree[degree > 0])).astype(np.int64) + 1
    return tuple(int(count) for count in np.bincount(bits))
