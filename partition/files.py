"""Files that notice damage: each has the xxh3 checksum of every block of BLOCK_BYTES in the
manifest, verified when the block is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from ..kernels.team import Team
from .errors import InputError

BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class FileRecord:
    """What the manifest keeps of a file: its size, and the xxh3_64 of each block, in hex."""

    bytes: int
    xxh3: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "xxh3": list(self.xxh3)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileRecord:
        return cls(int(value["bytes"]), tuple(value["xxh3"]))


class ChecksummedFile:
    """A file written from front to back; ``close`` tells its size and its blocks' checksums."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b")  # noqa: SIM115 - closed by close() or abandon()
        self._hashes: list[str] = []
        self._block = xxhash.xxh3_64()
        self._in_block = 0
        self._bytes = 0

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._bytes += len(view)
        while len(view):
            part = view[: BLOCK_BYTES - self._in_block]
            self._block.update(part)
            self._in_block += len(part)
            view = view[len(part) :]
            if self._in_block == BLOCK_BYTES:
                self._end_block()

    def _end_block(self) -> None:
        self._hashes.append(self._block.hexdigest())
        self._block = xxhash.xxh3_64()
        self._in_block = 0

    def rewrite_start(self, data: bytes) -> None:
        """Replace the first bytes, once all else is written."""
        if self._in_block:
            self._end_block()
        self._file.seek(0)
        self._file.write(data)
        self._file.seek(0)
        self._hashes[0] = xxhash.xxh3_64_hexdigest(self._file.read(BLOCK_BYTES))

    def close(self) -> FileRecord:
        if self._in_block:
            self._end_block()
        self._file.close()
        return FileRecord(self._bytes, tuple(self._hashes))

    def abandon(self) -> None:
        self._file.close()


def record_of(path: Path) -> FileRecord:
    """Size and checksums of a file that something else wrote."""
    hashes = []
    size = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            hashes.append(xxhash.xxh3_64_hexdigest(block))
            size += len(block)
    return FileRecord(size, tuple(hashes))


class ArrayWriter:
    """A one-dimensional ``.npy`` file written in pieces; its length is known at the end."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._file = ChecksummedFile(path)
        self._file.write(_npy_header(self._dtype, 0))

    def append(self, values: NDArray) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype))
        self._length += len(values)

    def close(self) -> FileRecord:
        self._file.rewrite_start(_npy_header(self._dtype, self._length))
        return self._file.close()

    def abandon(self) -> None:
        self._file.abandon()


_HEADER_BYTES = 128


def _npy_header(dtype: np.dtype, length: int) -> bytes:
    """A version 1.0 header, always 128 bytes, so that the data start at one place."""
    fields = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + fields.encode().ljust(_HEADER_BYTES - 11) + b"\n"


def read_array(path: Path, record: FileRecord, team: Team) -> NDArray:
    """Read a ``.npy`` file written by ArrayWriter, verifying every block."""
    data = read_verified(path, record, team)
    header = data[:_HEADER_BYTES].tobytes()
    try:
        if header[:10] != b"\x93NUMPY\x01\x00\x76\x00":
            raise ValueError(header[:10])
        descr = header.split(b"'")[3].decode()
        return data[_HEADER_BYTES:].view(np.dtype(descr))
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"{path}: damaged: its header is not an array's") from error


def read_array_blocks(
    path: Path, record: FileRecord, dtype: DTypeLike
) -> Iterator[tuple[int, NDArray]]:
    """The array in pieces of a block each, verified: (index of the first element, elements)."""
    size = np.dtype(dtype).itemsize
    for k in range(len(record.xxh3)):
        data = _read_part(path, record, range(k, k + 1), Team(1))
        start = k * BLOCK_BYTES
        if k == 0:
            data, start = data[_HEADER_BYTES:], _HEADER_BYTES
        yield (start - _HEADER_BYTES) // size, data.view(dtype)


def read_verified(path: Path, record: FileRecord, team: Team) -> NDArray[np.uint8]:
    """A file's bytes. Raises InputError naming the file if size or a checksum is off."""
    return _read_part(path, record, range(len(record.xxh3)), team)


def _read_part(path: Path, record: FileRecord, blocks: range, team: Team) -> NDArray[np.uint8]:
    first = blocks.start * BLOCK_BYTES
    data = np.empty(min(blocks.stop * BLOCK_BYTES, record.bytes) - first, np.uint8)

    def read_block(k: int) -> bool:
        block = data[k * BLOCK_BYTES - first : (k + 1) * BLOCK_BYTES - first]
        got = os.preadv(descriptor, [block], k * BLOCK_BYTES)
        return got == len(block) and xxhash.xxh3_64_hexdigest(block) == record.xxh3[k]

    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            good: Sequence[bool] = team.map(read_block, blocks)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not all(good):
        block = blocks[good.index(False)]
        raise InputError(
            f"{path}: damaged: block {block} (bytes from {block * BLOCK_BYTES:,}) does not match "
            "its checksum; build the store again"
        )
    return data
