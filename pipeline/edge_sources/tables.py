"""Batches of edges from a table: of Arrow, pandas, Polars or DuckDB."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from ...partition.errors import InputError, one_line

_READERS = "to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch", "arrow"
"""Methods by which DuckDB's versions give a relation's rows as Arrow, the newest first."""


def batches_of_table(table: Any, columns: Sequence[str]) -> Iterator[list[pa.Array]]:
    """Yield the given columns of a table, batch by batch.

    Raises InputError for a table that lacks one of the columns.
    """
    with pa.RecordBatchReader.from_stream(_with_columns(table, columns)) as batches:
        yield from _selected(batches, columns)


def batches_of_relation(relation: Any, columns: Sequence[str]) -> Iterator[list[pa.Array]]:
    """Yield the given columns of a relation of DuckDB, batch by batch. DuckDB computes only these.

    Raises InputError for a relation that lacks one of the columns, or that DuckDB cannot compute.
    """
    with _duckdb_errors(), _reader_of(_with_columns_of_relation(relation, columns)) as batches:
        yield from _selected(batches, columns)


def _selected(batches: pa.RecordBatchReader, columns: Sequence[str]) -> Iterator[list[pa.Array]]:
    there = batches.schema.names
    for column in columns:
        if there.count(column) != 1:
            found = "two columns" if column in there else "no column"
            raise InputError(
                f"the table: {found} named {column!r}; it has {', '.join(there)} (give the "
                "names of your columns with --src, --dst and --weight)"
            )
    kinds = [_kept_as(batches.schema.field(column).type) for column in columns]
    yield [pa.array([], kind) for kind in kinds]
    for batch in batches:
        arrays = (_plain(batch.column(column)) for column in columns)
        yield [array.cast(kind) for array, kind in zip(arrays, kinds, strict=True)]


def _with_columns(table: Any, columns: Sequence[str]) -> Any:
    """Return a table without its other columns, which Arrow might not hold; the whole table where
    it lacks one of the columns.
    """
    if all(column in getattr(table, "columns", ()) for column in columns):
        with contextlib.suppress(TypeError, KeyError):  # Arrow's columns are no names
            return table[list(columns)]
    return table


def _with_columns_of_relation(relation: Any, columns: Sequence[str]) -> Any:
    if not hasattr(relation, "project") or any(
        column not in relation.columns for column in columns
    ):
        return relation
    quoted = ('"' + column.replace('"', '""') + '"' for column in columns)
    return relation.project(", ".join(quoted))


def _reader_of(relation: Any) -> pa.RecordBatchReader:
    """Return a reader of a relation's rows. Older versions of DuckDB have no Arrow stream."""
    if hasattr(relation, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(relation)
    name = next((name for name in _READERS if hasattr(relation, name)), None)
    if name is None or not hasattr(relation, "columns"):
        kind = type(relation).__name__
        raise InputError(f"{kind} is no relation of DuckDB: give one, such as connection.sql(...)")
    rows = getattr(relation, name)()
    return rows.to_reader() if isinstance(rows, pa.Table) else rows


@contextmanager
def _duckdb_errors() -> Iterator[None]:
    """Make DuckDB's errors InputErrors."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise InputError(f"DuckDB cannot compute the relation: {one_line(error)}") from error


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without a dictionary, whose views of strings Arrow does not cast."""
    if not isinstance(column, pa.DictionaryArray):
        return column
    values = column.dictionary.cast(_kept_as(column.dictionary.type))
    return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """Return the type to write: views of strings, as Polars has them, become plain strings, which
    all readers know.
    """
    if pa.types.is_dictionary(kind):
        return _kept_as(kind.value_type)
    return pa.large_string() if pa.types.is_string_view(kind) else kind
