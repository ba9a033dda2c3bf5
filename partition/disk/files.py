"""Files that detect damage. The manifest has the xxh3 checksum of every block of BLOCK_BYTES, which
is verified when the block is first read.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from ...kernels.base.team import Team
from ..errors import InputError
from .system_errors import naming_file, raise_failure

BLOCK_BYTES = 1 << 20
HEADER_BYTES = 128


@dataclass(frozen=True)
class FileRecord:
    """The manifest's record of a file: its size, and the xxh3_64 of each block, in hexadecimal."""

    bytes: int
    xxh3: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "xxh3": list(self.xxh3)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileRecord:
        return cls(int(value["bytes"]), tuple(value["xxh3"]))

    def length(self, dtype: DTypeLike) -> int:
        """Return the number of elements in the file of an array."""
        return (self.bytes - HEADER_BYTES) // np.dtype(dtype).itemsize


def record_of(path: Path) -> FileRecord:
    """Return the record of a file that was written without ArrayWriter."""
    hashes = []
    size = 0
    with naming_file(path), open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            hashes.append(xxhash.xxh3_64_hexdigest(block))
            size += len(block)
    return FileRecord(size, tuple(hashes))


class Values(NamedTuple):
    """The values that an array's file may hold. dtype: their type. allowed: their range; None for
    any.
    """

    dtype: np.dtype
    allowed: range | None = None


class ArrayWriter:
    """A writer of a one-dimensional ``.npy`` file in pieces, whose length is known only at the end.

    Leaving the context closes the file; ``finish`` completes the file and returns its record.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._length = 0
        self._path = path
        self._file = open(path, "w+b")  # noqa: SIM115 - closed by __exit__
        self._hashes: list[str] = []
        self._block = xxhash.xxh3_64()
        self._in_block = 0
        self._write(memoryview(_npy_header(self._dtype, 0)))

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *error: object) -> None:
        with naming_file(self._path):
            self._file.close()

    def append(self, values: NDArray) -> None:
        with naming_file(self._path):
            self._write(memoryview(np.ascontiguousarray(values, self._dtype)).cast("B"))
        self._length += len(values)

    def finish(self) -> FileRecord:
        """Complete the file, wait until it is on the disk, and return its record."""
        if self._in_block:
            self._end_block()
        with naming_file(self._path):
            self._file.seek(0)
            self._file.write(_npy_header(self._dtype, self._length))
            self._file.seek(0)
            self._hashes[0] = xxhash.xxh3_64_hexdigest(self._file.read(BLOCK_BYTES))
            os.fsync(self._file.fileno())
        size = HEADER_BYTES + self._length * self._dtype.itemsize
        return FileRecord(size, tuple(self._hashes))

    def _write(self, view: memoryview) -> None:
        self._file.write(view)
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


def _npy_header(dtype: np.dtype, length: int) -> bytes:
    """Return a version 1.0 header. It is always 128 bytes, so that the data always begin at the
    same offset.
    """
    fields = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + fields.encode().ljust(HEADER_BYTES - 11) + b"\n"


def read_array(path: Path, record: FileRecord, team: Team) -> NDArray:
    """Read a ``.npy`` file written by ArrayWriter, verifying every block."""
    data = read_verified(path, record, team)
    return data[HEADER_BYTES:].view(_dtype_of(path, data[:HEADER_BYTES].tobytes()))


def _dtype_of(path: Path, header: bytes) -> np.dtype:
    try:
        if header[:10] != b"\x93NUMPY\x01\x00\x76\x00":
            raise ValueError(header[:10])
        return np.dtype(header.split(b"'")[3].decode())
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"{path}: damaged: its header is not that of a NumPy array") from error


def read_array_into(
    path: Path, record: FileRecord, into: NDArray, team: Team, allowed: range | None = None
) -> None:
    """Read a whole array of known length and type, verifying every block.

    allowed: the range that its values must be in. Raises InputError, which names the file, for
    damage or other values.
    """
    view, values = into.view(np.uint8), Values(into.dtype, allowed)
    head = np.empty(min(BLOCK_BYTES, record.bytes), np.uint8)
    _read_part(path, record, range(min(1, len(record.xxh3))), head, Team(1), values)
    view[: len(head) - HEADER_BYTES] = head[HEADER_BYTES:]
    rest = view[len(head) - HEADER_BYTES :]
    _read_part(path, record, range(1, len(record.xxh3)), rest, team, values)


def read_array_block(path: Path, record: FileRecord, values: Values, k: int) -> tuple[int, NDArray]:
    """Read and verify block ``k`` of an array. Returns the index of its first element, and its
    elements.
    """
    start = k * BLOCK_BYTES
    data = np.empty(min(BLOCK_BYTES, record.bytes - start), np.uint8)
    _read_part(path, record, range(k, k + 1), data, Team(1), values)
    if k == 0:
        data, start = data[HEADER_BYTES:], HEADER_BYTES
    return (start - HEADER_BYTES) // values.dtype.itemsize, data.view(values.dtype)


def read_verified(path: Path, record: FileRecord, team: Team) -> NDArray[np.uint8]:
    """Return a file's bytes. Raises InputError, which names the file, if its size or a checksum is
    wrong.
    """
    data = np.empty(record.bytes, np.uint8)
    _read_part(path, record, range(len(record.xxh3)), data, team)
    return data


def verify_file(path: Path, record: FileRecord, team: Team) -> None:
    """Verify every block of a file. One block for each thread is held in memory.

    Raises InputError, which names the file, if its size or a checksum is wrong.
    """

    def check(k: int) -> None:
        data = np.empty(min(BLOCK_BYTES, record.bytes - k * BLOCK_BYTES), np.uint8)
        _read_part(path, record, range(k, k + 1), data, Team(1))

    team.map(check, range(len(record.xxh3)))


def _read_part(
    path: Path,
    record: FileRecord,
    blocks: range,
    data: NDArray[np.uint8],
    team: Team,
    values: Values | None = None,
) -> None:
    """Read consecutive blocks into ``data``, and verify them."""
    first = blocks.start * BLOCK_BYTES

    def read_block(k: int) -> None:
        block = data[k * BLOCK_BYTES - first : (k + 1) * BLOCK_BYTES - first]
        if os.preadv(descriptor, [block], k * BLOCK_BYTES) != len(block):
            raise damaged_block(path, k)
        check_block(path, record, k, block, values)

    try:
        descriptor = open_regular(path)
        try:
            team.map(read_block, blocks)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def check_block(
    path: Path, record: FileRecord, k: int, block: NDArray[np.uint8], values: Values | None = None
) -> None:
    """Verify a whole block while it is in the cache: its checksum, and the values that its array
    may hold.

    Raises InputError, which names the file.
    """
    if xxhash.xxh3_64_hexdigest(block) != record.xxh3[k]:
        raise damaged_block(path, k)
    if values is None:
        return
    if k == 0:
        if block[:HEADER_BYTES].tobytes() != _npy_header(values.dtype, record.length(values.dtype)):
            raise wrong_contents(path, f"its header is not that of a NumPy array of {values.dtype}")
        block = block[HEADER_BYTES:]
    numbers, allowed = block.view(values.dtype), values.allowed
    if allowed is None or not len(numbers):
        return
    most, least = int(numbers.max()), allowed.start and int(numbers.min())
    if most >= allowed.stop or least < allowed.start:
        wrong = most if most >= allowed.stop else least
        first, last = allowed.start, allowed.stop - 1
        raise wrong_contents(
            path, f"value {wrong:,} in block {k} is not from {first:,} to {last:,}"
        )


def wrong_contents(path: Path, what: str) -> InputError:
    """Return the error for a file that matches its checksums but holds values that no build
    writes.
    """
    return InputError(f"{path}: invalid contents: {what}; build the store again")


def open_regular(path: Path) -> int:
    """Return a descriptor to read a file by. Raises OSError for a link, and for a pipe or a device,
    without reading it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def file_bytes(path: str | Path, most: int = -1) -> bytes:
    """Return a file's bytes, at most the first ``most`` of them; -1 for all. Links are followed.
    Raises OSError for a pipe or a device, without reading it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    with open(descriptor, "rb") as file, naming_file(path):
        return file.read(most)


def read_regular(path: Path) -> bytes:
    """Return a small file's bytes. Raises InputError, which names the file, if it is no regular
    file or cannot be read.
    """
    try:
        with open(open_regular(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise_failure(path, error)
        why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise InputError(f"{path}: cannot be read: {why}") from error


def read_small(path: str | Path, most: int) -> bytes:
    """Return the bytes of a file that a user names. Raises InputError if it is no regular file, has
    more than ``most`` bytes, or cannot be read.
    """
    try:
        data = file_bytes(path, most + 1)  # some files report a size of 0 but hold bytes
    except OSError as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise InputError(f"{path}: the file is larger than the limit of {most:,} bytes")
    return data


def read_json(path: str | Path) -> Any:
    """Return the document of a JSON file. Raises OSError or ValueError if there is none."""
    try:
        return json.loads(file_bytes(path))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def damaged_block(path: Path, block: int) -> InputError:
    """Return the error for a block that does not match its checksum."""
    return InputError(
        f"{path}: damaged: block {block} (bytes from {block * BLOCK_BYTES:,}) does not match "
        "its checksum; build the store again"
    )
