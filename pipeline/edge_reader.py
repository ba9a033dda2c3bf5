"""The edges of a store or an edge list as a stream of Arrow batches, with user ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from ..kernels.base.team import Team
from ..partition.input.arrow import as_arrow
from ..partition.input.edges import EdgeList
from ..partition.store.store import Store
from .results.names import Names


def edge_reader(
    graph: Store | EdgeList, names: Names, check: Callable[[], object]
) -> pa.RecordBatchReader:
    """Return the edges as ``src``, ``dst`` and, of a graph with weights, ``weight``.

    check: called before each batch; raises an error if the graph is closed.

    Of a store, each edge once: of an undirected one, from the vertex that comes first in the
    store's order; then the self-loops that it keeps, one for a vertex. Of an edge list, every row.
    Raises InputError, while it is read, for damage.
    """
    fields = [pa.field(name, names.id_type, nullable=False) for name in ("src", "dst")]
    if isinstance(graph, Store):
        if graph.info.weights is not None:
            kind = pa.from_numpy_dtype(graph.weight_type)
            fields.append(pa.field("weight", kind, nullable=False))
        batches = _edges_of_store(graph, names)
    else:
        if graph.weight is not None:
            kind = pa.from_numpy_dtype(np.dtype(graph.weight.kind))
            fields.append(pa.field("weight", kind, nullable=False))
        batches = _rows_of_list(graph, names.id_type)
    schema = pa.schema(fields)

    def made() -> Iterator[pa.RecordBatch]:
        check()
        for columns in batches:
            yield pa.record_batch(columns, schema=schema)
            check()

    return pa.RecordBatchReader.from_batches(schema, made())


def _edges_of_store(store: Store, names: Names) -> Iterator[list[pa.Array]]:
    team = Team(1)
    names.prepare(1)
    weighted = store.info.weights is not None
    batches = store.weighted_batches(team) if weighted else store.edge_batches(team)
    for batch in chain(batches, store.loop_batches(team)):
        if not store.info.directed:
            once = np.flatnonzero(batch[0] <= batch[1])
            batch = [column[once] for column in batch]
        ends = [names.decode(as_arrow(column)) for column in batch[:2]]
        yield [*ends, *(as_arrow(column) for column in batch[2:])]


def _rows_of_list(edges: EdgeList, id_type: pa.DataType) -> Iterator[list[pa.Array]]:
    for chunk in edges.chunks():
        for src, dst, bits in edges.weighted_batches(chunk, edges.weight is not None):
            columns = [_plain(column).cast(id_type) for column in (src, dst)]
            if edges.weight is not None:
                columns.append(as_arrow(bits.view(edges.weight.kind)))
            yield columns


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
