"""What an algorithm gives each vertex: a column of its result beside ``vertex``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from .names import Names


class Column(NamedTuple):
    """values: by place in the arrays of a graph. vertices: whether they are places themselves, and
    written as user ids. missing: the value that becomes null; None where there is none. repeats:
    whether few values stand in many rows.
    """

    name: str
    values: NDArray
    vertices: bool = False
    missing: float | None = None
    repeats: bool = False


Columns = Sequence[Column]


def schema_of(names: Names, columns: Columns) -> pa.Schema:
    """Of a result: ``vertex`` and what each has."""
    fields = [pa.field("vertex", names.id_type, nullable=False)]
    for column in columns:
        kind = names.id_type if column.vertices else pa.from_numpy_dtype(column.values.dtype)
        fields.append(pa.field(column.name, kind, nullable=column.missing is not None))
    return pa.schema(fields)
