"""A digest of what an edge list says: of the pages of its two columns, and of the footers.

Sizes and footers alone do not tell files apart: two of equal rows and bounds may share both. The
pages are read as they stand there, compressed, at the speed of the disk, and not decoded. On a disk
a few threads read ahead, since copying from the system's cache takes longer than the digest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, cycle
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow.parquet as pq
import xxhash

from ...kernels.base.team import Team
from ..disk.remote import open_file
from ..disk.urls import is_remote
from ..errors import InputError
from .pages import column_chunks, first_page

_READ_BYTES = 4 << 20
_THREADS = 4


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
        for file in self._files:
            digest.update(f"{file.bytes}\0".encode())
            try:
                with open_file(file.path) as opened:
                    parts = list(_parts(file, self._columns, opened))
                    pieces = chain.from_iterable(map(_pieces, parts))
                    for data in _read(opened, is_remote(file.path), pieces):
                        digest.update(data)
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


def _pieces(part: _Range) -> Iterator[_Range]:
    """Of a damaged file's ranges, what may be there."""
    for first in range(max(0, part.first), part.stop, _READ_BYTES):
        yield _Range(first, min(first + _READ_BYTES, part.stop))


def _read(opened: BinaryIO, remote: bool, pieces: Iterator[_Range]) -> Iterator[memoryview]:
    """The bytes of each piece, as many as there are, in order; there until the next one is asked.

    remote: its requests come one after the other.
    """
    team = Team(1 if remote else _THREADS)
    buffers = [memoryview(bytearray(_READ_BYTES)) for _ in range(team.threads)]

    def fill(place: tuple[_Range, memoryview]) -> memoryview:
        piece, buffer = place
        into, at = buffer[: piece.stop - piece.first], 0
        while at < len(into):
            if remote:
                opened.seek(piece.first + at)
                read = opened.readinto(into[at:])  # pyright: ignore
            else:
                read = os.preadv(opened.fileno(), [into[at:]], piece.first + at)
            if not read:
                break
            at += read
        return into[:at]

    yield from team.stream(fill, zip(pieces, cycle(buffers), strict=False))
