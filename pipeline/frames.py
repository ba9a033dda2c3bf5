"""Tables in memory as edge lists: Arrow's, and frames of pandas or Polars."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from ..partition.disk.system_errors import parquet_writer
from ..partition.disk.temporary import TemporaryFolder
from ..partition.disk.urls import named
from ..partition.errors import InputError, one_line
from .build.prepare import BuildOptions


class Frame(Protocol):
    """Table that gives its columns as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@contextmanager
def as_path(edges: str | PathLike[str] | Frame, columns: Sequence[str]) -> Iterator[str]:
    """Yield the path of an edge list; columns of a table are first written to a temporary Parquet
    file, batch by batch.

    Raises TypeError for an object that is neither; InputError for a table that lacks the columns,
    or that Parquet cannot hold.
    """
    if isinstance(edges, (str, PathLike)):
        yield named(edges)
        return
    if not hasattr(edges, "__arrow_c_stream__"):
        raise TypeError(
            f"{type(edges).__name__} is not a path, an Arrow table, or a frame of pandas or "
            "Polars: convert it to one of these, with a column for each end of an edge"
        )
    with TemporaryFolder() as folder:
        path = Path(folder) / "edges.parquet"
        try:
            _write(edges, columns, path)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"Parquet cannot hold the table: {one_line(error)}") from error
        yield str(path)


def columns_of(options: BuildOptions) -> list[str]:
    """Return the columns to read of an edge list."""
    weight = [] if options.weight is None else [options.weight]
    return [options.src, options.dst, *weight]


def _write(edges: Frame, columns: Sequence[str], path: Path) -> None:
    with pa.RecordBatchReader.from_stream(_only(edges, columns)) as batches:
        there = batches.schema.names
        for column in columns:
            if there.count(column) != 1:
                found = "two columns" if column in there else "no column"
                raise InputError(
                    f"the table: {found} named {column!r}; it has {', '.join(there)} (give the "
                    "names of your columns with src and dst)"
                )
        kinds = [_kept_as(batches.schema.field(column).type) for column in columns]
        schema = pa.schema(list(zip(columns, kinds, strict=True)))
        with parquet_writer(path, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(_plain(batch.select(list(columns))).cast(schema))


def _only(edges: Frame, columns: Sequence[str]) -> Any:
    """Return a frame without its other columns, which Arrow might not hold; the whole frame where
    it lacks one of the columns.
    """
    if all(column in getattr(edges, "columns", ()) for column in columns):
        with contextlib.suppress(TypeError, KeyError):  # Arrow's columns are no names
            return cast(Any, edges)[list(columns)]
    return edges


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without dictionaries, whose views of strings Arrow does not cast."""

    def plain(column: pa.Array) -> pa.Array:
        if not isinstance(column, pa.DictionaryArray):
            return column
        values = column.dictionary.cast(_kept_as(column.dictionary.type))
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()

    return pa.RecordBatch.from_arrays([*map(plain, batch.columns)], names=batch.schema.names)


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """Return the type to write: views of strings, as Polars has them, become plain strings, which
    all readers know.
    """
    if pa.types.is_dictionary(kind):
        return _kept_as(kind.value_type)
    return pa.large_string() if pa.types.is_string_view(kind) else kind
