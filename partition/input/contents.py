"""A digest of what an edge list says: of the pages of its two columns, and of the footers.

Sizes and footers alone do not tell files apart: two of equal rows and bounds may share both. The
pages are read as they stand there, compressed, at the speed of the disk, and not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow.parquet as pq
import xxhash

from ..disk.remote import open_file
from ..errors import InputError
from .pages import column_chunks, first_page

_READ_BYTES = 4 << 20


class Opened(Protocol):
    """A file whose footer was read."""

    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def metadata(self) -> pq.FileMetaData | None: ...


class _Range(NamedTuple):
    """Bytes of a file."""

    first: int
    stop: int


class Contents:
    """Of some files, in this order, and their columns; read when the digest is asked for."""

    def __init__(self, files: Sequence[Opened], columns: Sequence[str]) -> None:
        self._files = tuple(files)
        self._columns = tuple(columns)

    @cached_property
    def digest(self) -> str:
        """128 bits, hexadecimal. Raises InputError where a file cannot be read."""
        digest = xxhash.xxh3_128("\0".join(self._columns).encode())
        buffer = memoryview(bytearray(_READ_BYTES))
        for file in self._files:
            digest.update(f"{file.bytes}\0".encode())
            try:
                with open_file(file.path) as opened:
                    for part in _parts(file, self._columns, opened):
                        _update(digest, opened, part, buffer)
            except OSError as error:
                raise InputError(f"{file.path}: cannot be read: {error.strerror}") from error
        return digest.hexdigest()


def _parts(file: Opened, columns: Sequence[str], opened: BinaryIO) -> Iterator[_Range]:
    """The pages of the columns, and the footer."""
    assert file.metadata is not None  # by the process that has opened it
    for group in range(file.metadata.num_row_groups):
        for column in column_chunks(file.metadata, group, columns):
            first = first_page(column)
            yield _Range(first, first + column.total_compressed_size)
    opened.seek(file.bytes - 8)
    length = int.from_bytes(opened.read(4), "little")
    yield _Range(file.bytes - 8 - length, file.bytes - 8)


def _update(digest: xxhash.xxh3_128, opened: BinaryIO, part: _Range, buffer: memoryview) -> None:
    """Of a damaged file's ranges, what there is."""
    at = max(0, part.first)
    opened.seek(at)
    while at < part.stop:
        read = opened.readinto(buffer[: min(len(buffer), part.stop - at)])  # pyright: ignore
        if not read:
            break
        digest.update(buffer[:read])
        at += read
