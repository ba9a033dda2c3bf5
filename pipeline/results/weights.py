"""Vertices that a user names: in a Parquet file with ``vertex`` and maybe ``weight``, or typed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray

from ...partition.disk.memory import format_bytes, machine_bytes
from ...partition.disk.remote import source_of
from ...partition.disk.system_errors import raise_failure
from ...partition.disk.urls import is_remote
from ...partition.errors import InputError, one_line
from ...partition.input.arrow import as_arrow, as_numpy, compute, numpy_type, strings, valid
from ...partition.input.find import check_regular
from ...partition.input.id_types import (
    Id,
    as_ids,
    column_type,
    is_bytes,
    is_string,
    shown_id,
    storage_type,
    stored,
    type_name,
)
from ...partition.input.ids import MAX_VERTICES, parse_id
from ...partition.numbers import shown
from .names import Names

WEIGHT_BYTES = 64
"""Bytes of a named vertex with an id of eight bytes, while it is read, sorted and found."""

_ROWS_AT_ONCE = 1 << 16


def typed(value: object) -> str:
    """Return an id as a user would type it: 16 bytes as a UUID. Raises InputError for a number that
    is no id.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InputError(f"source {shown(value)} is outside every id type")
    return str(shown_id(value) if isinstance(value, bytes) else value)


class VertexWeights(NamedTuple):
    """Named vertices with weights. vertex: user ids, each once. weight: float64, none negative, at
    least one positive. given: where the user named them, for messages.
    """

    given: str
    vertex: pa.Array
    weight: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return the weights scaled so that they add up to 1."""
        scaled = self.weight / self.weight.max()  # the sum of what is given may be infinite
        return scaled / scaled.sum()

    @property
    def digest(self) -> str:
        """Return a digest of the vertices and weights, whatever the order of rows."""
        order = compute("array_sort_indices", self.vertex)
        named = xxhash.xxh3_128()
        for start in range(0, len(order), _ROWS_AT_ONCE):
            some = order.slice(start, _ROWS_AT_ONCE)
            weights = self.weight[as_numpy(some)].tolist()
            for value, weight in zip(self.vertex.take(some).to_pylist(), weights, strict=True):
                named.update(f"{value!r} {weight!r}\n".encode())
        return named.hexdigest()

    def places(self, names: Names) -> NDArray[np.uint32]:
        """Return the places of the vertices in the arrays of a graph. Raises InputError for a
        vertex that is not there.
        """
        places = np.zeros(len(self.vertex), np.uint32)
        found = np.zeros(len(self.vertex), np.bool_)
        import pyarrow.compute as pc  # as arrow.compute has it

        wanted = pc.SetLookupOptions(value_set=self.vertex)
        for number in range(len(names.pieces)):
            vertex, at = names.piece(number)
            which = compute("index_in", stored(vertex).cast(self.vertex.type), options=wanted)
            here = valid(which)
            rows = as_numpy(which.fill_null(0))[here]
            places[rows] = at[here]
            found[rows] = True
        if not found.all():
            missing = shown_id(self.vertex[int(np.argmin(found))].as_py())
            raise InputError(f"{self.given}: {missing!r} is not a vertex of the graph")
        return places


def digest_of(vertex: pa.Array) -> str:
    """Return a digest of the named vertices, whatever their weights."""
    return VertexWeights("", stored(vertex), np.ones(len(vertex))).digest


class VertexFile:
    """A file of named vertices, local or in an object store, read once, when first needed.

    weighted: whether ``weight`` means something; else all vertices are alike.
    """

    def __init__(self, path: str, weighted: bool = False) -> None:
        self.path = path
        self._columns = ("vertex", "weight") if weighted else ("vertex",)
        self._read: VertexWeights | None = None

    def read(self, id_type: pa.DataType) -> VertexWeights:
        """Read the file. id_type: of the graph. Raises InputError for a bad weight or vertex."""
        if self._read is None:
            self._read = _read_weights(self.path, self._columns, id_type)
        return self._read


def _read_weights(path: str, known: Sequence[str], id_type: pa.DataType) -> VertexWeights:
    if not is_remote(path) and os.path.exists(path):
        check_regular(path)
    try:
        with pq.ParquetFile(source_of(path)) as file:
            there = file.schema_arrow.names
            columns = [name for name in known if name in there]
            for name in columns:
                if there.count(name) > 1:
                    raise InputError(f"{path}: column {name!r} occurs twice")
            _check_rows(path, file.metadata.num_rows)
            table = file.read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error
    if "vertex" not in table.column_names:
        raise InputError(f"{path}: column 'vertex' is missing")
    if not table.num_rows:
        raise InputError(f"{path}: the file has no vertices")
    vertex = _read_ids(f"{path}: column 'vertex'", table["vertex"].combine_chunks(), id_type)
    _check_once(f"{path}: column 'vertex'", vertex)
    weight = np.ones(len(vertex))
    if "weight" in table.column_names:
        try:
            column = table["weight"].cast(pa.float64()).combine_chunks()
        except pa.ArrowException as error:
            raise InputError(f"{path}: column 'weight': {one_line(error)}") from error
        weight = as_numpy(column.fill_null(np.nan)).astype(np.float64)
    _check_weights(f"{path}: column 'weight'", weight)
    return VertexWeights(str(path), vertex, weight)


def _read_ids(where: str, column: pa.Array, id_type: pa.DataType) -> pa.Array:
    """Read ids as large_string, integers or 16 bytes."""
    if column.null_count:
        raise InputError(f"{where}: holds nulls")
    given = column_type(where, column.type, False, "vertex")
    if (is_string(given), is_bytes(given)) != (is_string(id_type), is_bytes(id_type)):
        raise InputError(
            f"{where}: ids are {type_name(given)}, but the graph's ids are {type_name(id_type)}: "
            "cast them"
        )
    try:
        if is_string(id_type):
            return column.cast(given).cast(pa.large_string())
        return as_ids(column, id_type, where, "vertex")
    except pa.ArrowException as error:
        raise InputError(f"{where}: {one_line(error)}") from error


def _check_rows(path: str, rows: int) -> None:
    """Raise InputError for more rows than a graph has vertices, or than memory takes."""
    if rows > MAX_VERTICES:
        raise InputError(
            f"{path}: {rows:,} rows; a graph can have at most {MAX_VERTICES:,} vertices"
        )
    need, most = rows * WEIGHT_BYTES, machine_bytes()
    if need > most:
        raise InputError(
            f"{path}: its {rows:,} rows take {format_bytes(need)} of memory, but this machine has "
            f"{format_bytes(most)}: give fewer vertices"
        )


class TypedVertices:
    """Vertices as a user typed them. given, weight: as in VertexWeights; None: all alike."""

    def __init__(
        self, ids: Sequence[Id | UUID], given: str, weight: Sequence[float] | None = None
    ) -> None:
        self._ids = [typed(value) for value in ids]
        self._given = given
        try:
            self._weight = np.ones(len(ids)) if weight is None else np.array(weight, np.float64)
        except (OverflowError, TypeError, ValueError):
            raise InputError(
                f"{given}: weights must be finite numbers, not {shown(weight)}"
            ) from None

    def read(self, id_type: pa.DataType) -> VertexWeights:
        """Read the typed ids. id_type: of the graph. Raises InputError for a text that is no id of
        the graph.
        """
        if not self._ids:
            raise InputError(f"{self._given}: no vertices are given")
        values = [parse_id(value, id_type) for value in self._ids]
        if is_string(id_type):
            vertex = strings([str(value) for value in values]).cast(pa.large_string())
        elif is_bytes(id_type):
            every = b"".join(value for value in values if isinstance(value, bytes))
            vertex = as_arrow(np.frombuffer(every, numpy_type(storage_type(id_type))))
        else:
            vertex = as_arrow(np.array(values, id_type.to_pandas_dtype()))
        _check_once(self._given, vertex)
        _check_weights(self._given, self._weight)
        return VertexWeights(self._given, vertex, self._weight)


NamedVertices = VertexFile | TypedVertices


def _check_weights(where: str, weight: NDArray[np.float64]) -> None:
    if not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise InputError(
            f"{where}: weights must be finite and not negative, and at least one must be positive"
        )


def _check_once(where: str, vertex: pa.Array) -> None:
    counts = compute("value_counts", vertex)
    if len(counts) < len(vertex):
        most = int(np.argmax(as_numpy(counts.field("counts"))))
        raise InputError(
            f"{where}: {shown_id(counts.field('values')[most].as_py())!r} occurs twice"
        )
