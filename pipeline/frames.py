"""Tables in memory, as edge lists: Arrow's, and frames of pandas or Polars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..partition.disk.urls import named
from ..partition.errors import InputError, one_line


class Frame(Protocol):
    """Whatever gives its columns as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@contextmanager
def as_path(edges: str | PathLike[str] | Frame) -> Iterator[str]:
    """Of an edge list; a table is written to a temporary Parquet file, batch by batch.

    TypeError for what is neither; InputError for a table that Parquet cannot hold.
    """
    if isinstance(edges, (str, PathLike)):
        yield named(edges)
        return
    if not hasattr(edges, "__arrow_c_stream__"):
        raise TypeError(f"{type(edges).__name__} is no path, no Arrow table and no frame")
    with TemporaryDirectory(prefix="delegraph-") as folder:
        path = Path(folder) / "edges.parquet"
        try:
            _write(edges, path)
        except pa.ArrowException as error:
            raise InputError(f"a table that Parquet cannot hold: {one_line(error)}") from error
        yield str(path)


def _write(edges: Frame, path: Path) -> None:
    with pa.RecordBatchReader.from_stream(edges) as batches:
        schema = pa.schema([(field.name, _kept_as(field.type)) for field in batches.schema])
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch.cast(schema))


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """Views of strings, as Polars has them, are read by nobody else."""
    return pa.large_string() if pa.types.is_string_view(kind) else kind
