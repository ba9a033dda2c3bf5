"""Columns of a result other than ``vertex``: the values that an algorithm computes for vertices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from ..._version import __version__
from .names import Names


class Values(Protocol):
    """Values of vertices, by place: an array, or something that is read from elsewhere when it is
    indexed.
    """

    @property
    def dtype(self) -> np.dtype: ...
    @property
    def itemsize(self) -> int: ...
    def __getitem__(self, at: Any, /) -> Any:
        """Return the values at places, as an array."""
        ...


@runtime_checkable
class OnDevice(Protocol):
    """Values that are on a GPU, or were."""

    def by_row(self, names: Names) -> Any:
        """Return the values in the order of a result's rows, as an array on the GPU: int32
        distances, or int64 rows of vertices; -1 where there is none.
        """
        ...

    def column(self, names: Names) -> pa.Array | None:
        """Return the values as a column in host memory; None unless they are numbers that are only
        on the GPU, and there is room to put them in order.
        """
        ...

    def fetched_by_row(self, names: Names) -> Values | None:
        """Return the values in host memory, indexed by row; None unless they are only on the GPU,
        and there is room to put them in order.
        """
        ...


class Column(NamedTuple):
    """A column of a result. values: indexed by place in the arrays of a graph. vertices: whether
    the values are places of vertices, which are written as user ids. missing: the value that is
    written as null; None if no value is. repeats: whether the column has few distinct values, so
    that a Parquet dictionary pays.
    """

    name: str
    values: Values
    vertices: bool = False
    missing: float | None = None
    repeats: bool = False


Columns = Sequence[Column]


def fetched_by_row(columns: Columns, names: Names) -> Columns | None:
    """Return columns whose values are on a GPU with values in host memory, indexed by row; None
    unless all of them can be had.
    """
    moved = []
    for column in columns:
        assert isinstance(column.values, OnDevice)
        values = column.values.fetched_by_row(names)
        if values is None:
            return None
        moved.append(column._replace(values=values))
    return moved


def read_values(columns: Columns) -> None:
    """Have values that are elsewhere brought to host memory, so that they count as held."""
    for column in columns:
        column.values[:0]


def schema_of(names: Names, columns: Columns) -> pa.Schema:
    """Return the schema of some columns, with metadata for pandas."""
    fields = []
    for column in columns:
        kind = names.id_type if column.vertices else pa.from_numpy_dtype(column.values.dtype)
        fields.append(pa.field(column.name, kind, nullable=column.missing is not None))
    return pa.schema(fields, _pandas_metadata(fields))


def _pandas_metadata(fields: Sequence[pa.Field]) -> dict[bytes, bytes]:
    """Return the key-value metadata by which pandas reads nullable integers as its nullable integer
    types rather than as floats, which cannot hold all 64-bit integers. The metadata changes nothing
    for other columns and other readers.
    """
    columns = [
        {
            "name": field.name,
            "field_name": field.name,
            "pandas_type": str(field.type),
            "numpy_type": str(field.type).replace("uint", "UInt").replace("int", "Int"),
            "metadata": None,
        }
        for field in fields
        if field.nullable and pa.types.is_integer(field.type)
    ]
    if not columns:
        return {}
    told = {
        "index_columns": [],
        "column_indexes": [],
        "columns": columns,
        "creator": {"library": "delegraph", "version": __version__},
        "pandas_version": None,
    }
    return {b"pandas": json.dumps(told).encode()}
