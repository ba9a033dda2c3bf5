"""Temporary Parquet edge lists of graphs in memory, written batch by batch.

The first batch decides the types of the columns. If a later one needs wider types, as ids above
2^63 do, the rows so far are written again with these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...partition.disk.system_errors import parquet_writer
from ...partition.disk.temporary import TemporaryFolder
from ...partition.disk.urls import named
from ...partition.errors import DelegraphError, InputError, one_line
from ...partition.input.id_types import type_name
from ..build.prepare import BuildOptions
from .kinds import EdgeSource, Kind, kind_of
from .matrices import batches_of_matrix
from .networkx_graphs import batches_of_networkx
from .pairs import batches_of_array, batches_of_pairs
from .tables import batches_of_relation, batches_of_table

_NAME = "the graph"
"""The name of a graph in memory, in messages about its file."""

_WEIGHT = "weight"
"""The only name of the weights of a source whose columns have no names."""

_MARKING = "networkx", "matrix"
"""Kinds that know of isolated vertices, which are marked by self-loops in the edge list."""


@contextmanager
def as_edge_list(
    graph: str | PathLike[str] | EdgeSource, options: BuildOptions
) -> Iterator[tuple[str, BuildOptions]]:
    """Yield the path of an edge list, and the options to read it with; a graph in memory is first
    written to a temporary Parquet file.

    Where self-loops are kept, a graph without weights that knows of isolated vertices gets the
    weight 1 for its edges and 0 for the self-loops that mark these vertices.

    Raises TypeError for an object that is no graph; InputError for a graph that lacks the columns
    or the weights of the options, or that Parquet cannot hold.
    """
    if isinstance(graph, (str, PathLike)):
        yield named(graph), options
        return
    kind = kind_of(graph)
    ones = options.keeps_loops and options.weight is None and kind in _MARKING
    batches = _batches(graph, kind, options, ones)
    if ones:
        options = replace(options, weight=_WEIGHT)
    columns = _columns(options)
    # What a caller's own iterator raises is left alone.
    refused: tuple[type[Exception], ...] = (pa.ArrowException, UnicodeError)
    if kind == "table":
        refused += (TypeError, ValueError)
    with TemporaryFolder() as folder:
        path = Path(folder) / "edges.parquet"
        try:
            _write(path, columns, batches)
        except refused as error:
            if kind == "table" and "non-struct" in str(error):  # a single column, as a Series
                raise InputError(
                    f"{type(graph).__name__} is no table: give a frame with the columns "
                    f"{options.src} and {options.dst}"
                ) from error
            raise InputError(f"Parquet cannot hold the edges: {one_line(error)}") from error
        try:
            yield str(path), options
        except DelegraphError as error:
            error.args = tuple(
                _without_file(part, path) if type(part) is str else part for part in error.args
            )
            raise


def _without_file(message: str, path: Path) -> str:
    """Return a message about the temporary file as one about the graph in memory."""
    return re.sub(r" (in|of) row group \d+", "", message.replace(str(path), _NAME))


def _batches(
    source: Any, kind: Kind, options: BuildOptions, ones: bool
) -> Iterator[list[pa.Array]]:
    """Return the batches of a graph in memory. ones: edges get the weight 1, and marks 0."""
    weighted = options.weight is not None
    columns = _columns(options)
    if kind == "table":
        return batches_of_table(source, columns)
    if kind == "relation":
        return batches_of_relation(source, columns)
    if (options.src, options.dst) != (BuildOptions.src, BuildOptions.dst):
        raise InputError("only a table has names of columns: leave out --src and --dst")
    if kind == "networkx":
        return batches_of_networkx(source, options.weight, options.directed, ones)
    if options.weight not in (None, _WEIGHT):
        raise InputError(f"the weights of this graph are named {_WEIGHT!r}, not {options.weight!r}")
    if kind == "matrix":
        return batches_of_matrix(source, weighted, ones)
    return (batches_of_array if kind == "array" else batches_of_pairs)(source, weighted)


def _columns(options: BuildOptions) -> list[str]:
    weight = () if options.weight is None else (options.weight,)
    return [options.src, options.dst, *weight]


def _write(path: Path, columns: Sequence[str], batches: Iterator[list[pa.Array]]) -> None:
    """Write batches of edges. Without any batch, the file has no rows."""
    first = next(batches, None) or [pa.array([], pa.int64()) for _ in columns]
    stream: Iterator[list[pa.Array]] = chain([first], batches)
    kinds = [array.type for array in first]
    while True:
        schema = pa.schema(list(zip(columns, kinds, strict=True)))
        wider = _write_while_fitting(path, schema, stream)
        if wider is None:
            return
        kinds = [array.type for array in wider[0]]
        narrow = path.with_name("narrow.parquet")
        path.rename(narrow)
        stream = chain(_widened(narrow, kinds), wider, stream)


def _write_while_fitting(
    path: Path, schema: pa.Schema, batches: Iterator[list[pa.Array]]
) -> list[list[pa.Array]] | None:
    """Write batches. Returns the first batch that needs wider types, and has them; None if there is
    none.
    """
    with parquet_writer(path, schema, compression="zstd") as writer:
        for batch in batches:
            kinds = [_wider(kind, array) for kind, array in zip(schema.types, batch, strict=True)]
            cast = [_cast(array, kind) for array, kind in zip(batch, kinds, strict=True)]
            if kinds != schema.types:
                return [cast]
            writer.write_batch(pa.record_batch(cast, schema))
    return None


def _widened(path: Path, kinds: Sequence[pa.DataType]) -> Iterator[list[pa.Array]]:
    """Yield the rows of a file with wider types, and remove the file."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield [_cast(array, kind) for array, kind in zip(batch.columns, kinds, strict=True)]
    path.unlink()


def _wider(kind: pa.DataType, array: pa.Array) -> pa.DataType:
    """Return a type that holds values of a column's type and of an array.

    Raises InputError for integers and strings.
    """
    if array.type == kind or not len(array):
        return kind
    if pa.types.is_integer(kind) and pa.types.is_integer(array.type):
        return pa.uint64()
    if _is_number(kind) and _is_number(array.type):
        return pa.float64()
    raise InputError(
        "ids must be all integers, all strings or all UUIDs: there are both "
        f"{type_name(kind)} and {type_name(array.type)}"
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    try:
        return array.cast(kind, safe=pa.types.is_integer(kind))
    except pa.ArrowInvalid as error:
        raise InputError(
            "no integer type of 64 bits holds all ids: some are negative, and others 2^63 or more"
        ) from error
