"""Parquet edge lists: finding the files, checking them, and reading them in bounded batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..disk.outputs import facts_of, is_store
from ..disk.remote import Source, buffer_size, open_file, opened, source_of, state_of
from ..disk.system_errors import raise_failure, read_metadata
from ..errors import InputError, one_line
from . import pages
from .arrow import as_dictionary, as_numpy
from .contents import Contents
from .find import NOTHING_LEFT_OUT, LeftOut, find_files, some_names
from .footer import extremes
from .id_types import (
    as_ids,
    column_type,
    common_type,
    converted_note,
    is_converted,
    is_string,
)
from .other_formats import not_parquet
from .weights import NO_WEIGHTS, Rounding, Weight, WeightType, bits_of, weight_type_of

BATCH_ROWS = 1 << 18
CHUNK_ROWS = 1 << 20
_CONVERTED_BYTES = 32  # bytes of a row while its ids are converted


_WEIGHT = "weight"


@dataclass(frozen=True)
class EdgeFile:
    """A file of the input. row_groups: the rows of each row group. modified: its modification time,
    in nanoseconds. tag: an object store's tag of its content.

    metadata: its footer, parsed once; None in another process, which parses it again.
    """

    path: str
    row_groups: tuple[int, ...]
    bytes: int
    modified: int
    tag: str
    metadata: pq.FileMetaData | None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "metadata": None}


@dataclass(frozen=True)
class Chunk:
    """A part of the input that one task reads: whole row groups of one file."""

    file: EdgeFile
    row_groups: range
    rows: int


@dataclass(frozen=True)
class EdgeList:
    """An open edge list whose columns hold ids.

    id_type: the common Arrow type of both columns in all files (id_types.py). bounds: the least and
    the greatest id by the files' statistics; None if these are missing or the ids are no integers.
    weight: the column of weights, and their type; None if no weights are read. contents: of the
    files, as they were when they were opened. left_out: files and folders beside them that are not
    read. told: other lines for the user. converted: whether any file has ids of another type.
    texts: whether any file stores ids as text, or as binary of any length.
    """

    files: tuple[EdgeFile, ...]
    src: str
    dst: str
    id_type: pa.DataType
    bounds: tuple[int, int] | None
    contents: Contents
    left_out: LeftOut = NOTHING_LEFT_OUT
    weight: Weight | None = None
    told: tuple[str, ...] = ()
    converted: bool = False
    texts: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are read."""
        ends = (self.src, self.dst)
        return ends if self.weight is None else (*ends, self.weight.column)

    @property
    def other_columns(self) -> list[str]:
        """Return the first file's columns that are not read. It needs the process that opened the
        files.
        """
        metadata = self.files[0].metadata
        assert metadata is not None
        names = metadata.schema.to_arrow_schema().names
        return [name for name in names if name not in self.columns]

    @property
    def weight_notes(self) -> tuple[str, ...]:
        """Return a line for the user if a column ``weight``, as ``convert`` writes it, is not read.
        It needs the process that opened the files.
        """
        if self.weight is not None or _WEIGHT not in self.other_columns:
            return ()
        return (f"the column {_WEIGHT} is not read: name it with --weight to go by it",)

    @property
    def fingerprint(self) -> str:
        """Return the digest of the files' contents. The first use reads the columns in full."""
        return self.contents.digest

    @property
    def notes(self) -> tuple[str, ...]:
        """Return lines for the user about files that are not read, and columns that are read as
        another type.
        """
        return (*self.left_out.notes, *self.told)

    @property
    def rows(self) -> int:
        return sum(sum(file.row_groups) for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def chunks(self, rows: int = CHUNK_ROWS) -> list[Chunk]:
        """Cut the input at row groups into chunks of about ``rows`` rows."""
        chunks = []
        for file in self.files:
            first, held = 0, 0
            for group, count in enumerate(file.row_groups):
                held += count
                if held >= rows or group == len(file.row_groups) - 1:
                    if held:
                        chunks.append(Chunk(file, range(first, group + 1), held))
                    first, held = group + 1, 0
        return chunks

    def check_unchanged(self) -> None:
        """Raise InputError if a file was written since it was opened."""
        for file in self.files:
            try:
                state = state_of(source_of(file.path))
            except OSError as error:
                raise_failure(file.path, error)
                raise InputError(f"{file.path}: removed while it was read") from error
            if state != (file.bytes, file.modified, file.tag):
                raise InputError(f"{file.path}: changed while it was read; run again")

    def batches(self, chunk: Chunk) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Return an iterator over the chunk's ids in batches of at most BATCH_ROWS rows, without
        nulls.

        Integers are yielded as ``id_type``, strings as dictionary arrays (arrow.py), UUIDs as their
        bytes.
        """
        return ((src, dst) for src, dst, _ in self.weighted_batches(chunk, weights=False))

    def weighted_batches(
        self, chunk: Chunk, weights: bool, rounding: Rounding | None = None
    ) -> Iterator[tuple[pa.Array, pa.Array, NDArray[np.uint32]]]:
        """Yield the batches of ``batches`` with the bits of weights; (0,) if there are none or
        ``weights`` is not set.

        rounding: receives the changes of weights by rounding to 32 bits.
        """
        path, group = chunk.file.path, chunk.row_groups.start
        names = self.columns if weights else (self.src, self.dst)
        try:
            metadata = chunk.file.metadata or read_metadata(source_of(path))
            for group in chunk.row_groups:
                read, rows = 0, chunk.file.row_groups[group]
                ways = self._ways(path, metadata, group)
                with pq.ParquetFile(
                    source_of(path),
                    metadata=metadata,
                    buffer_size=buffer_size(path),
                    pre_buffer=False,
                    page_checksum_verification=True,
                    read_dictionary=[name for name, way in ways.items() if way.coded],
                ) as file:
                    for batch in file.iter_batches(
                        min((way.rows for way in ways.values()), default=BATCH_ROWS),
                        row_groups=[group],
                        columns=list(names),
                        use_threads=False,
                    ):
                        src = self._column(batch, self.src, path, group)
                        dst = self._column(batch, self.dst, path, group)
                        read += len(src)
                        bits = self._weights(batch, path, group, weights, rounding)
                        as_many = len(src) == len(dst) and len(bits) in (0, len(src))
                        if read > rows or not as_many:
                            raise _wrong_rows(path, group, rows)
                        yield src, dst, bits
                    if read != rows:
                        raise _wrong_rows(path, group, rows)
        except (pa.ArrowException, OSError) as error:
            raise_failure(path, error)
            raise InputError(
                f"{path}: row group {group} cannot be read: {one_line(error)}"
            ) from error

    def _ways(self, path: str, metadata: pq.FileMetaData, group: int) -> dict[str, pages.Way]:
        """Return how the text columns of a row group are read; an empty dict for integers."""
        if not self.texts:
            return {}
        with open_file(path) as file:
            return {
                chunk.path_in_schema: pages.way_of(file, metadata, group, chunk, BATCH_ROWS)
                for chunk in pages.column_chunks(metadata, group, (self.src, self.dst))
            }

    @cached_property
    def reading(self) -> pages.Reading:
        """Return the bytes that reading a chunk holds, and those of all strings, from footers and
        page headers.
        """
        names = self.columns
        return self._with_conversion(
            pages.of_all(
                pages.reading_of(
                    file.path,
                    file.metadata or read_metadata(source_of(file.path)),
                    names,
                    BATCH_ROWS,
                )
                for file in self.files
                if sum(file.row_groups)
            )
        )

    @cached_property
    def reading_at_most(self) -> pages.Reading:
        """Return a bound on ``reading`` from footers alone; ``reading`` itself if ids are texts."""
        if self.texts:
            return self.reading
        return self._with_conversion(
            pages.of_all(
                pages.reading_by_footer(
                    file.path, file.metadata or read_metadata(source_of(file.path)), self.columns
                )
                for file in self.files
                if sum(file.row_groups)
            )
        )

    def _with_conversion(self, reading: pages.Reading) -> pages.Reading:
        converted_bytes = _CONVERTED_BYTES * BATCH_ROWS if self.converted else 0
        return reading._replace(held=reading.held + converted_bytes)

    def _weights(
        self,
        batch: pa.RecordBatch,
        path: str,
        group: int,
        wanted: bool,
        rounding: Rounding | None,
    ) -> NDArray[np.uint32]:
        if self.weight is None or not wanted:
            return NO_WEIGHTS
        name, kind = self.weight
        where = f"{path}: column {name!r} of row group {group}"
        return bits_of(batch.column(name), kind, where, rounding)

    def _column(self, batch: pa.RecordBatch, name: str, path: str, group: int) -> pa.Array:
        column = batch.column(name)
        if column.null_count:
            raise InputError(
                f"{path}: column {name!r} holds nulls in row group {group}: "
                "every row needs both ids; leave such rows out"
            )
        coded = pa.types.is_dictionary(column.type)
        if not is_string(self.id_type):
            if coded and not _fits(column):
                raise InputError(f"{path}: column {name!r} of row group {group} is damaged")
            where = f"{path}: column {name!r}, in row group {group},"
            return as_ids(column, self.id_type, where, name)
        if coded and not _fits(column):
            raise InputError(f"{path}: column {name!r} of row group {group} is damaged")
        try:
            (column.dictionary if coded else column).validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{path}: column {name!r} holds text that is not UTF-8 in row group {group}: "
                "write the file again with names in UTF-8"
            ) from error
        return as_dictionary(column)


def open_edges(
    path: str | os.PathLike, src: str = "src", dst: str = "dst", weight: str | None = None
) -> EdgeList:
    """Open a Parquet file, a folder of them or a glob. Only footers are read.

    weight: a column of weights to read as well. Raises InputError if files or columns are missing,
    are no Parquet, are truncated, have no rows, or do not hold ids of one comparable type.
    """
    if is_store(path):
        raise InputError(f"{path} is a store, not an edge list: it is built already")
    files: list[EdgeFile] = []
    bounds: list[list[int] | None] = []
    types: dict[pa.DataType, str] = {}
    by_column: dict[str, set[pa.DataType]] = {}
    weights: set[WeightType] = set()
    ignored: list[str] = []
    converted = texts = False
    found = find_files(os.fspath(path))
    for name in found.files:
        try:
            source = source_of(name)
            with pq.ParquetFile(source) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}: the name of a column is not UTF-8; rename the column"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise_failure(name, error)
            if isinstance(error, OSError) and error.errno is not None:  # an error of the system
                raise InputError(f"{name}: cannot be read: {error.strerror}") from error
            raise not_parquet(name, error, "a truncated one") from error
        if facts_of(schema.metadata, "result") is not None:
            raise InputError(f"{name} is a result, not an edge list")
        groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        kinds: dict[str, pa.DataType] = {}
        try:
            kinds = {column: _id_type(name, schema, metadata, column) for column in (src, dst)}
            if sum(groups):  # types of a file without rows do not matter
                for column, kind in kinds.items():
                    types.setdefault(kind, f"{name}: column {column!r}")
                    by_column.setdefault(column, set()).add(kind)
                    given = schema.field(column).type
                    converted |= is_converted(given) or is_converted(kind)
                    texts |= _is_text(metadata, column)
            if weight is not None:
                kind = weight_type_of(name, schema, weight)
                weights.update([kind] if sum(groups) else [])
        except InputError:
            if sum(groups) or metadata.num_rows:
                raise
            kinds = {}
            ignored.append(name)
        files.append(EdgeFile(name, groups, *state_of(source), metadata))
        footer = _footer(source)
        bounds.append(extremes(name, footer, {c: _signed(kind) for c, kind in kinds.items()}))
    if not any(sum(file.row_groups) for file in files):
        raise InputError(f"{path}: zero rows: a graph without vertices cannot be searched")
    id_type = common_type(types)
    return EdgeList(
        tuple(files),
        src,
        dst,
        id_type,
        _bounds(bounds) if pa.types.is_integer(id_type) else None,
        Contents(files, (src, dst) if weight is None else (src, dst, weight)),
        found.left_out,
        None if weight is None else Weight(weight, "float32" if "float32" in weights else "uint32"),
        (*_ignored_note(ignored), *converted_note(by_column, id_type)),
        converted,
        texts,
    )


def _id_type(name: str, schema: pa.Schema, metadata: pq.FileMetaData, column: str) -> pa.DataType:
    if schema.names.count(column) != 1:
        found = "two columns" if column in schema.names else "no column"
        raise InputError(
            f"{name}: {found} named {column!r}; it has {', '.join(schema.names)} "
            "(give the names of your columns with --src and --dst)"
        )
    leaf = _leaf(metadata, column)
    is_uuid = leaf is not None and leaf.logical_type.type == "UUID"
    where = f"{name}: column {column!r}"
    return column_type(where, schema.field(column).type, is_uuid, column)


def _leaf(metadata: pq.FileMetaData, column: str) -> pq.ColumnSchema | None:
    """Return Parquet's own schema of a column; None for a column that has columns below it."""
    leaves = (metadata.schema.column(i) for i in range(metadata.num_columns))
    return next((leaf for leaf in leaves if leaf.path == column), None)


def _is_text(metadata: pq.FileMetaData, column: str) -> bool:
    leaf = _leaf(metadata, column)
    return leaf is not None and leaf.physical_type == "BYTE_ARRAY"


def _ignored_note(names: list[str]) -> tuple[str, ...]:
    """Return a note about files that are ignored. names: of files without rows and without usable
    columns.
    """
    if not names:
        return ()
    return (
        f"{len(names):,} files without rows are ignored, although their columns are missing or "
        f"have other types: {some_names(names)}",
    )


def _signed(id_type: pa.DataType) -> bool | None:
    """Return whether integer ids are signed; None for other ids, whose statistics are not used."""
    return pa.types.is_signed_integer(id_type) if pa.types.is_integer(id_type) else None


def _bounds(extremes: list[list[int] | None]) -> tuple[int, int] | None:
    known = [value for found in extremes for value in found or []]
    if not known or any(found is None for found in extremes):
        return None
    return min(known), max(known)


def _footer(source: Source) -> bytes:
    """Return the raw footer, which has row counts, statistics, offsets and sizes of every column
    chunk.
    """
    with opened(source) as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        return file.read(length)


def _fits(column: pa.DictionaryArray) -> bool:
    """Return whether all places of a dictionary array are in its dictionary."""
    if not len(column):
        return True
    places = as_numpy(column.indices)
    return int(places.min()) >= 0 and int(places.max()) < len(column.dictionary)


def _wrong_rows(path: str, group: int, rows: int) -> InputError:
    return InputError(
        f"{path}: damaged: row group {group} does not hold {rows:,} values in both columns, "
        "although the footer says so; write the file again"
    )
