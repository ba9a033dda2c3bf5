"""Parquet edge lists: finding the files, checking them, reading them in bounded batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from ..disk.outputs import facts_of, is_store
from ..errors import InputError

BATCH_ROWS = 1 << 18
READ_BYTES = 1 << 20  # of a column chunk at a time: a row group may be larger than memory
CHUNK_ROWS = 1 << 20
_SUFFIXES = (".parquet", ".parq", ".pq")


@dataclass(frozen=True)
class EdgeFile:
    """A file of the input. row_groups: rows of each. modified: its time, in nanoseconds.

    metadata: its footer, parsed once; None in another process, which parses it again.
    """

    path: str
    row_groups: tuple[int, ...]
    bytes: int
    modified: int
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
    """An edge list whose files were opened and whose columns were found to hold ids.

    id_type: the common Arrow type of both columns in all files: an integer or string type.
    bounds: least and greatest id by the files' statistics, None where these are missing or
        the ids are strings.
    fingerprint: of the content as far as the files' sizes and footers tell, and the columns.
    """

    files: tuple[EdgeFile, ...]
    src: str
    dst: str
    id_type: pa.DataType
    bounds: tuple[int, int] | None
    fingerprint: str

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
        """Raises InputError if a file was written since it was opened."""
        for file in self.files:
            try:
                facts = os.stat(file.path)
            except OSError as error:
                raise InputError(f"{file.path}: gone while it was read") from error
            if (facts.st_size, facts.st_mtime_ns) != (file.bytes, file.modified):
                raise InputError(f"{file.path}: changed while it was read; run again")

    def batches(self, chunk: Chunk) -> Iterator[tuple[pa.Array, pa.Array]]:
        """The chunk's ids in batches of at most BATCH_ROWS rows, as ``id_type``, without nulls."""
        path, group = chunk.file.path, chunk.row_groups.start
        try:
            with pq.ParquetFile(
                path,
                metadata=chunk.file.metadata,
                buffer_size=READ_BYTES,
                pre_buffer=False,
            ) as file:
                for group in chunk.row_groups:
                    for batch in file.iter_batches(
                        BATCH_ROWS,
                        row_groups=[group],
                        columns=[self.src, self.dst],
                        use_threads=False,
                    ):
                        yield (
                            self._column(batch, self.src, path, group),
                            self._column(batch, self.dst, path, group),
                        )
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path}: row group {group} cannot be read: {_one_line(error)}"
            ) from error

    def _column(self, batch: pa.RecordBatch, name: str, path: str, group: int) -> pa.Array:
        column = batch.column(name)
        if column.null_count:
            raise InputError(
                f"{path}: column {name!r} holds nulls in row group {group}: "
                "every row needs both ids; leave such rows out"
            )
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column.cast(self.id_type)


def open_edges(path: str | os.PathLike, src: str = "src", dst: str = "dst") -> EdgeList:
    """Open a Parquet file, a folder of them or a glob; reads footers only.

    Raises InputError for what is missing, not Parquet, truncated, without rows, or whose
    columns do not hold integers or strings of one comparable type.
    """
    if is_store(path):
        raise InputError(f"{path} is a store, not an edge list: it is built already")
    files, types, extremes = [], {}, []
    digest = xxhash.xxh3_128(f"{src}\0{dst}".encode())
    for name in _find(os.fspath(path)):
        try:
            with pq.ParquetFile(name) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{name}: not a Parquet file, or a truncated one: {_one_line(error)}"
            ) from error
        if facts_of(schema.metadata, "result") is not None:
            raise InputError(f"{name} is a result of bfs, not an edge list")
        for column in (src, dst):
            types.setdefault(_id_type(name, schema, column), f"{name}: column {column!r}")
        groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        facts = os.stat(name)
        size = facts.st_size
        files.append(EdgeFile(name, groups, size, facts.st_mtime_ns, metadata))
        extremes.append(_extremes(metadata, src, dst))
        digest.update(f"{size}\0".encode())
        digest.update(_footer(name))
    edges = EdgeList(
        tuple(files), src, dst, _common_type(types), _bounds(extremes), digest.hexdigest()
    )
    if not edges.rows:
        raise InputError(f"{path}: zero rows: a graph without vertices cannot be searched")
    return edges


def _find(path: str) -> list[str]:
    if os.path.isdir(path):
        files = [
            str(file)
            for file in Path(path).rglob("*")
            if file.suffix.lower() in _SUFFIXES
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
        ]
        if not files:
            raise InputError(f"{path}: the folder holds no Parquet files ({', '.join(_SUFFIXES)})")
    elif os.path.exists(path):
        files = [path]
    elif glob.has_magic(path):
        files = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
        if not files:
            raise InputError(f"{path}: no file matches")
    else:
        raise InputError(f"{path}: no such file or folder")
    return sorted(files)


def _id_type(name: str, schema: pa.Schema, column: str) -> pa.DataType:
    if schema.names.count(column) != 1:
        found = "two columns" if column in schema.names else "no column"
        raise InputError(
            f"{name}: {found} named {column!r}; it has {', '.join(schema.names)} "
            "(name yours with --src and --dst)"
        )
    id_type = schema.field(column).type
    if pa.types.is_dictionary(id_type):
        id_type = id_type.value_type
    if pa.types.is_integer(id_type) or is_string(id_type):
        return id_type
    raise InputError(f"{name}: column {column!r} is {id_type}; ids are integers or strings")


def is_string(id_type: pa.DataType) -> bool:
    return (
        pa.types.is_string(id_type)
        or pa.types.is_large_string(id_type)
        or pa.types.is_string_view(id_type)
    )


def _common_type(types: dict[pa.DataType, str]) -> pa.DataType:
    """The one type that holds every id, or InputError naming two columns that do not compare."""
    kinds = list(types)
    if all(is_string(kind) for kind in kinds):
        return pa.large_string() if pa.large_string() in kinds else pa.string()
    if any(is_string(kind) for kind in kinds):
        string = next(kind for kind in kinds if is_string(kind))
        other = next(kind for kind in kinds if not is_string(kind))
        raise InputError(
            f"{types[string]} is {string} but {types[other]} is {other}: ids of both columns "
            "must have one type"
        )
    signed = [kind.bit_width for kind in kinds if pa.types.is_signed_integer(kind)]
    unsigned = [kind.bit_width for kind in kinds if pa.types.is_unsigned_integer(kind)]
    if not signed:
        return _integer("uint", max(unsigned))
    width = max(signed + [2 * bits for bits in unsigned])
    if width > 64:
        raise InputError(
            f"{types[pa.uint64()]} is uint64 but another column is signed: no 64-bit type holds "
            "both; convert one of them"
        )
    return _integer("int", width)


def _integer(kind: str, bits: int) -> pa.DataType:
    return pa.type_for_alias(f"{kind}{bits}")


def _extremes(metadata: pq.FileMetaData, src: str, dst: str) -> list[int] | None:
    """Least and greatest id of each column chunk, None if the statistics lack one."""
    found = []
    for group in range(metadata.num_row_groups):
        if not metadata.row_group(group).num_rows:
            continue
        for i in range(metadata.num_columns):
            column = metadata.row_group(group).column(i)
            if column.path_in_schema in (src, dst):
                statistics = column.statistics
                if statistics is None or not statistics.has_min_max:
                    return None
                if not isinstance(statistics.min, int):
                    return None
                found += [statistics.min, statistics.max]
    return found


def _bounds(extremes: list[list[int] | None]) -> tuple[int, int] | None:
    known = [value for found in extremes for value in found or []]
    if not known or any(found is None for found in extremes):
        return None
    return min(known), max(known)


def _footer(name: str) -> bytes:
    """The raw footer: row counts, statistics, offsets and sizes of every column chunk."""
    with open(name, "rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        return file.read(length)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
