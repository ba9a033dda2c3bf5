"""A digest of the contents of an edge list: of the pages of its columns, and of the footers.

Sizes and footers alone do not tell files apart: two files of equal rows and bounds may share both.
The pages are read in their compressed form, without decoding, at the speed of the disk: in pieces,
on several threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow.parquet as pq
import xxhash

from ...kernels.base.team import Team
from ...kernels.base.threads import available_threads
from ..disk.remote import open_file
from ..disk.system_errors import raise_failure
from ..disk.urls import is_remote
from ..errors import InputError
from .pages import column_chunks, first_page

_PIECE_BYTES = 1 << 24  # a part of the definition: another size gives other digests
_READ_BYTES, _ASKED_BYTES = 1 << 20, 1 << 22  # read at once from a disk, an object store
_MOST_THREADS = 8


class Opened(Protocol):
    """A file whose footer has been read."""

    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def metadata(self) -> pq.FileMetaData | None: ...


class _Range(NamedTuple):
    """A range of bytes in a file."""

    first: int
    stop: int


class Contents:
    """The contents of columns of files, in this order. They are read at the first use of
    ``digest``.
    """

    def __init__(self, files: Sequence[Opened], columns: Sequence[str]) -> None:
        self._files = tuple(files)
        self._columns = tuple(columns)

    @cached_property
    def digest(self) -> str:
        """Return 128 bits in hexadecimal: the digest of the digests of all pieces.

        Raises InputError if a file cannot be read.
        """
        digest = xxhash.xxh3_128("\0".join(self._columns).encode())
        team = Team(min(_MOST_THREADS, available_threads()))
        for file in self._files:
            digest.update(f"{file.bytes}\0".encode())
            try:
                with open_file(file.path) as opened:
                    parts = _parts(file, self._columns, opened)
                    pieces = list(chain.from_iterable(map(_pieces, parts)))
                    remote = is_remote(file.path)  # requests are made one after the other
                    of_piece = partial(_digest, opened, remote)
                    for piece_digest in (Team(1) if remote else team).map(of_piece, pieces):
                        digest.update(piece_digest)
            except OSError as error:
                raise_failure(file.path, error)
                raise InputError(f"{file.path}: cannot be read: {error.strerror}") from error
        return digest.hexdigest()


def _parts(file: Opened, columns: Sequence[str], opened: BinaryIO) -> Iterator[_Range]:
    """Yield the ranges of the columns' pages, and of the footer."""
    assert file.metadata is not None  # only the process that opened the file has it
    for group in range(file.metadata.num_row_groups):
        for column in column_chunks(file.metadata, group, columns):
            first = first_page(column)
            yield _Range(first, first + column.total_compressed_size)
    opened.seek(file.bytes - 8)
    length = int.from_bytes(opened.read(4), "little")
    yield _Range(file.bytes - 8 - length, file.bytes - 8)


def _pieces(part: _Range) -> Iterator[_Range]:
    for first in range(max(0, part.first), part.stop, _PIECE_BYTES):
        yield _Range(first, min(first + _PIECE_BYTES, part.stop))


def _digest(opened: BinaryIO, remote: bool, piece: _Range) -> bytes:
    """Return the digest of a piece's bytes. A damaged file may end before the piece does."""
    digest, at = xxhash.xxh3_128(), piece.first
    size = _ASKED_BYTES if remote else _READ_BYTES
    buffer = memoryview(bytearray(min(size, piece.stop - piece.first)))

    def fill(into: memoryview, at: int) -> int:
        if not remote:
            return os.preadv(opened.fileno(), [into], at)
        opened.seek(at)
        return opened.readinto(into)  # pyright: ignore

    while at < piece.stop:
        into = buffer[: piece.stop - at]
        if not (read := fill(into, at)):
            break
        digest.update(into[:read])
        at += read
    return digest.digest()
