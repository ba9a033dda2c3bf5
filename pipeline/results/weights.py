"""Vertices that a user names, typed or in a Parquet file with a column ``vertex`` and an optional
``weight``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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
from ...partition.input.arrow import (
    as_arrow,
    as_numpy,
    compute,
    numbers_and_nulls,
    numpy_type,
    strings,
)
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
"""Bytes that a named vertex with an eight-byte id takes while the file is read, sorted and looked
up.
"""

_ROWS_AT_ONCE = 1 << 16


def typed(value: object) -> str:
    """Return an id as a user would type it; 16 bytes become the text of a UUID. Raises InputError
    for an integer that no id type holds.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InputError(f"source {shown(value)} is outside every id type")
    return str(shown_id(value) if isinstance(value, bytes) else value)


class VertexWeights(NamedTuple):
    """Named vertices with weights. given: the place where the user named them, for messages.
    vertex: user ids, each once. weight: float64, none negative, at least one positive.
    """

    given: str
    vertex: pa.Array
    weight: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return the weights scaled so that they add up to 1."""
        scaled = self.weight / self.weight.max()  # so that no sum of weights overflows
        return scaled / scaled.sum()

    @property
    def digest(self) -> str:
        """Return a digest of the vertices and weights that does not depend on the order of rows."""
        order = compute("array_sort_indices", self.vertex)
        named = xxhash.xxh3_128()
        for start in range(0, len(order), _ROWS_AT_ONCE):
            rows = order.slice(start, _ROWS_AT_ONCE)
            weights = self.weight[as_numpy(rows)].tolist()
            for value, weight in zip(self.vertex.take(rows).to_pylist(), weights, strict=True):
                named.update(f"{value!r} {weight!r}\n".encode())
        return named.hexdigest()

    def places(self, names: Names) -> NDArray[np.uint32]:
        """Return the places of the vertices in the arrays of a graph. Raises InputError for a
        vertex that the graph does not have.
        """
        places, found = find_places(self.vertex, names)
        if not found.all():
            missing = shown_id(self.vertex[int(np.argmin(found))].as_py())
            raise InputError(f"{self.given}: {missing!r} is not a vertex of the graph")
        return places


def find_places(vertex: pa.Array, names: Names) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the places of user ids, each of which occurs once, in the arrays of a graph, and
    whether the graph has them.
    """
    places = np.zeros(len(vertex), np.uint32)
    found = np.zeros(len(vertex), np.bool_)
    rows_in = (
        _numbers_in(as_numpy(vertex)) if pa.types.is_integer(vertex.type) else _values_in(vertex)
    )
    for number in range(len(names.pieces)):
        piece, at = names.piece(number)
        rows, here = rows_in(stored(piece).cast(vertex.type))
        places[rows] = at[here]
        found[rows] = True
    return places, found


_RowsIn = Callable[[pa.Array], tuple[NDArray, NDArray]]
"""A function that returns which values a piece has, and where: the piece's ids rise."""


def _numbers_in(wanted: NDArray) -> _RowsIn:
    order = np.argsort(wanted)
    rising = wanted[order]

    def rows_in(piece: pa.Array) -> tuple[NDArray, NDArray]:
        ids = as_numpy(piece)
        first, stop = (
            (np.searchsorted(rising, ids[0]), np.searchsorted(rising, ids[-1], side="right"))
            if len(ids)
            else (0, 0)
        )
        some = rising[first:stop]
        at = np.searchsorted(ids, some)
        here = ids[at] == some
        return order[first:stop][here], at[here]

    return rows_in


def _values_in(wanted: pa.Array) -> _RowsIn:
    import pyarrow.compute as pc  # as arrow.compute has it

    options = pc.SetLookupOptions(value_set=wanted)

    def rows_in(piece: pa.Array) -> tuple[NDArray, NDArray]:
        which, null = numbers_and_nulls(compute("index_in", piece, options=options))
        here = np.arange(len(which)) if null is None else np.flatnonzero(~null)
        return which[here], here

    return rows_in


def digest_of(vertex: pa.Array) -> str:
    """Return a digest of the vertices alone: every weight counts as 1."""
    return VertexWeights("", stored(vertex), np.ones(len(vertex))).digest


def add_pairs(digest: xxhash.xxh3_128, first: pa.Array, second: pa.Array) -> None:
    """Add pairs of user ids, in their order, to a digest of such pairs."""
    for start in range(0, len(first), _ROWS_AT_ONCE):
        ends = (stored(end.slice(start, _ROWS_AT_ONCE)).to_pylist() for end in (first, second))
        digest.update("".join(f"{u!r} {v!r}\n" for u, v in zip(*ends, strict=True)).encode())


class VertexFile:
    """A file of named vertices, local or in an object store. The file is read at the first
    ``read``.

    weighted: whether the column ``weight`` counts; otherwise it is ignored and every vertex weighs
    1.
    """

    def __init__(self, path: str, weighted: bool = False) -> None:
        self.path = path
        self._columns = ("vertex", "weight") if weighted else ("vertex",)
        self._read: VertexWeights | None = None

    def read(self, id_type: pa.DataType) -> VertexWeights:
        """Read the file, or return what an earlier call has read. id_type: the graph's id type.
        Raises InputError for a bad weight or vertex.
        """
        if self._read is None:
            self._read = _read_weights(self.path, self._columns, id_type)
        return self._read


def read_table(path: str, known: Sequence[str]) -> pa.Table:
    """Read those of some columns that a Parquet file has, each of which may occur once."""
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
            return file.read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from error


def _read_weights(path: str, known: Sequence[str], id_type: pa.DataType) -> VertexWeights:
    table = read_table(path, known)
    if "vertex" not in table.column_names:
        raise InputError(f"{path}: column 'vertex' is missing")
    if not table.num_rows:
        raise InputError(f"{path}: the file has no vertices")
    vertex = read_ids(f"{path}: column 'vertex'", table["vertex"].combine_chunks(), id_type)
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


def read_ids(where: str, column: pa.Array, id_type: pa.DataType) -> pa.Array:
    """Return the ids as large_string, integers or 16 bytes. Raises InputError for nulls, or if the
    ids do not fit the graph's id type.
    """
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
    """Raise InputError if there are more rows than a graph can have vertices, or than fit in
    memory.
    """
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


def parse_ids(typed_ids: Sequence[str], id_type: pa.DataType) -> pa.Array:
    """Return typed ids as large_string, integers or 16 bytes. Raises InputError for a text that is
    no id of this type.
    """
    values = [parse_id(value, id_type) for value in typed_ids]
    if is_string(id_type):
        return strings([str(value) for value in values]).cast(pa.large_string())
    if is_bytes(id_type):
        data = b"".join(value for value in values if isinstance(value, bytes))
        return as_arrow(np.frombuffer(data, numpy_type(storage_type(id_type))))
    return as_arrow(np.array(values, numpy_type(id_type)))


class TypedVertices:
    """Vertices that a user typed. given, weight: as in VertexWeights. If ``weight`` is None, every
    vertex weighs 1.
    """

    def __init__(
        self, ids: Sequence[Id | UUID], given: str, weight: Sequence[float] | None = None
    ) -> None:
        self._ids = [typed(value) for value in ids]
        self._given = given
        self._read: tuple[pa.DataType, VertexWeights] | None = None
        try:
            self._weight = np.ones(len(ids)) if weight is None else np.array(weight, np.float64)
        except (OverflowError, TypeError, ValueError):
            raise InputError(
                f"{given}: weights must be finite numbers, not {shown(weight)}"
            ) from None

    def read(self, id_type: pa.DataType) -> VertexWeights:
        """Parse the typed ids. id_type: the graph's id type. Raises InputError for a text that is
        no id of this type, an id that occurs twice, and bad weights.
        """
        if self._read is None or self._read[0] != id_type:
            self._read = id_type, self._parse(id_type)
        return self._read[1]

    def _parse(self, id_type: pa.DataType) -> VertexWeights:
        if not self._ids:
            raise InputError(f"{self._given}: no vertices are given")
        vertex = parse_ids(self._ids, id_type)
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
