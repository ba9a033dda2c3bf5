"""Rows of a result, in pieces: a row for each vertex, or rows of pairs of vertices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.input.arrow import as_arrow, text_cuts
from .columns import Column, Columns, schema_of
from .names import PARENT_BYTES, ROW_GROUP, Names, file_rows


class Rows(Protocol):
    """Rows that can be written. schema: of the rows. pieces: the number of rows of each piece.
    repeated: the names of columns with few distinct values.
    """

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def pieces(self) -> Sequence[int]: ...
    @property
    def repeated(self) -> list[str]: ...

    def batches(self, piece: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece: in one batch, or in several if the ids of vertices in the
        columns are long.
        """
        ...

    def prepare(self, at_once: int) -> None:
        """Load the ids that rows need. at_once: the number of pieces that are made at the same
        time.
        """
        ...


class Pairs(NamedTuple):
    """Pairs of vertices that the rows of a result are of, in the order of the rows. first, second:
    places, uint32, as long as the rows are many.
    """

    first: NDArray[np.uint32]
    second: NDArray[np.uint32]


@dataclass(frozen=True)
class VertexRows:
    """A row for each vertex, by rising id. only: a mask of the places to tell of; None for all.
    by_row: whether values are indexed by row, not by place.
    """

    names: Names
    columns: Columns
    only: NDArray[np.bool_] | None = None
    by_row: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        vertex = pa.field("vertex", self.names.id_type, nullable=False)
        return schema_of(self.names, self.columns).insert(0, vertex)

    @property
    def pieces(self) -> Sequence[int]:
        return self.names.pieces

    @property
    def repeated(self) -> list[str]:
        return [column.name for column in self.columns if column.repeats]

    def batches(self, piece: int) -> Iterator[pa.RecordBatch]:
        vertex, at = self.names.piece(piece)
        if self.only is not None:
            told = np.flatnonzero(self.only[at])
            vertex, at = vertex.take(as_arrow(told)), at[told]
        schema, begin = self.schema, sum(self.pieces[:piece])
        read = slice(begin, begin + len(vertex)) if self.by_row else at
        for rows, arrays in _arrays_of(self.names, self.columns, read, len(vertex)):
            yield pa.record_batch([vertex[rows], *arrays], schema=schema)

    def prepare(self, at_once: int) -> None:
        if any(column.vertices for column in self.columns):
            self.names.prepare(at_once)


@dataclass(frozen=True)
class PairRows:
    """A row for each of some pairs of vertices, in the pairs' order. keys: the names of the pairs'
    two columns. The values of the columns are indexed by row.

    A pair may repeat, as for each step of a path: whether it may occur once only is for the
    question's judge to say. A column may hold vertices, too.
    """

    names: Names
    keys: Sequence[str]
    pairs: Pairs
    columns: Columns

    @cached_property
    def schema(self) -> pa.Schema:
        return schema_of(self.names, self._all)

    @property
    def _all(self) -> list[Column]:
        first, second = self.keys
        ends = (first, self.pairs.first), (second, self.pairs.second)
        return [
            *(Column(name, at, vertices=True, repeats=True) for name, at in ends),
            *self.columns,
        ]

    @property
    def _piece_rows(self) -> int:
        return min(ROW_GROUP, file_rows(len(self.pairs.first)))

    @property
    def pieces(self) -> Sequence[int]:
        rows, step = len(self.pairs.first), self._piece_rows
        return [min(step, rows - start) for start in range(0, rows, step)] or [0]

    @property
    def repeated(self) -> list[str]:
        return [column.name for column in self._all if column.repeats]

    def batches(self, piece: int) -> Iterator[pa.RecordBatch]:
        start, schema = piece * self._piece_rows, self.schema
        at = np.arange(start, start + self.pieces[piece])
        for _, arrays in _arrays_of(self.names, self._all, at, len(at)):
            yield pa.record_batch(arrays, schema=schema)

    def prepare(self, at_once: int) -> None:
        self.names.prepare(at_once)


def _arrays_of(
    names: Names, columns: Columns, at: NDArray | slice, count: int
) -> Iterator[tuple[slice, list[pa.Array]]]:
    """Yield, for some of the rows at a time, which these are, and the arrays of the columns. at:
    the index of each row in the columns' values. count: of the rows.
    """
    values = [column.values[at] for column in columns]
    nulls = [
        None if column.missing is None else some == column.missing
        for column, some in zip(columns, values, strict=True)
    ]
    widths: list[NDArray[np.int64]] = []  # of each row, in columns of long ids
    for column, some, null in zip(columns, values, nulls, strict=True):
        if column.vertices:
            if null is not None:
                some[null] = 0
            of_each = names.widths(some)
            if of_each is not None:
                widths.append(of_each if null is None else np.where(null, 0, of_each))
    cuts = text_cuts(np.sum(widths, axis=0), PARENT_BYTES) if widths and count else [0, count]
    for start, stop in pairwise(cuts):
        rows, arrays = slice(start, stop), []
        for column, some, null in zip(columns, values, nulls, strict=True):
            array = as_arrow(some[rows], None if null is None else null[rows])
            arrays.append(names.decode(array) if column.vertices else array)
        yield rows, arrays
