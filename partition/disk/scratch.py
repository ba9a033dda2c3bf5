"""Arrays between the steps of a build: held in memory, or in files that any worker can read.

A scratch file ends with the digest of its bytes. An attempt that reuses files of an earlier attempt
checks them first (``whole``).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from ..errors import LostScratchError
from .system_errors import naming_file, raise_failure, sync_to_disk

SCRATCH_NAMES = ("*.npy", "run-*")
_READ_BYTES = 4 << 20

_HEADERS = threading.Lock()
"""A lock, so that one header is read at a time. NumPy reads headers by Python's parser, which in
Python 3.11 fails if two threads are in it at once ("AST constructor recursion depth mismatch").
"""


class Scratch(Protocol):
    """Named arrays. A name is written once, whole; a task that runs again writes the same
    values.
    """

    def save(self, name: str, values: NDArray) -> None: ...

    def load(self, name: str) -> NDArray:
        """Return the array, which must not be written to. The array of a file is mapped: its pages
        are read when touched.
        """
        ...

    def remove(self, names: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class MemoryScratch:
    """Arrays held in this process."""

    arrays: dict[str, NDArray] = field(default_factory=dict)

    def save(self, name: str, values: NDArray) -> None:
        self.arrays[name] = values

    def load(self, name: str) -> NDArray:
        return self.arrays[name]

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            self.arrays.pop(name, None)


@dataclass(frozen=True)
class FileScratch:
    """Arrays as ``.npy`` files in a folder. A file that exists is whole and on the disk."""

    folder: str

    def path(self, name: str) -> Path:
        return Path(self.folder, f"{name}.npy")

    def save(self, name: str, values: NDArray) -> None:
        with scratch_file(self.path(name)) as file:
            # (np.save does not report a full disk.)
            values = np.ascontiguousarray(values)
            header = np.lib.format.header_data_from_array_1_0(values)
            np.lib.format.write_array_header_1_0(file, header)  # type: ignore[arg-type]
            file.write(values.reshape(-1).view(np.uint8))

    def load(self, name: str) -> NDArray:
        with self._naming_damage(name), _HEADERS:
            # Copied on writing, which never happens: kernels are compiled for writable arrays.
            mapped = np.load(self.path(name), mmap_mode="c", allow_pickle=False)
        return np.asarray(mapped)

    def bytes(self, name: str) -> int:
        """Return the size of an array's file, in bytes."""
        with self._naming_damage(name):
            return self.path(name).stat().st_size

    def part(self, name: str, start: int, stop: int) -> NDArray:
        """Return elements ``start`` .. ``stop - 1`` (for a table, rows), read rather than mapped.

        Touching a mapped page brings in many pages around it, which count as held memory.
        """
        with self._naming_damage(name), open(self.path(name), "rb") as file:
            with _HEADERS:
                np.lib.format.read_magic(file)
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            width = int(np.prod(shape[1:], dtype=np.int64))
            file.seek(start * width * dtype.itemsize, os.SEEK_CUR)
            values = np.fromfile(file, dtype, (stop - start) * width)
            return values.reshape(stop - start, *shape[1:])

    @contextlib.contextmanager
    def _naming_damage(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, EOFError) as error:
            raise_failure(self.path(name), error)
            raise lost(self.path(name)) from error

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            self.path(name).unlink(missing_ok=True)


class Sealed:
    """A file being written that will end with the digest of its bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = xxhash.xxh3_128()

    def write(self, piece: bytes | NDArray) -> None:
        self._digest.update(piece)
        self._file.write(piece)

    def seal(self) -> None:
        self._file.write(self._digest.digest())


@contextlib.contextmanager
def scratch_file(path: Path) -> Iterator[Sealed]:
    """Yield a scratch file to write. It appears under its name only when it is whole and on the
    disk.
    """
    with naming_file(path), replacing(path) as partial, open(partial, "wb") as file:
        sealed = Sealed(file)
        yield sealed
        sealed.seal()


def whole(path: Path) -> bool:
    """Return whether a scratch file matches its digest. The whole file is read."""
    digest, seal = xxhash.xxh3_128(), xxhash.xxh3_128().digest_size
    with naming_file(path), open(path, "rb") as file:
        left = os.fstat(file.fileno()).st_size - seal
        while left > 0 and (piece := file.read(min(left, _READ_BYTES))):
            digest.update(piece)
            left -= len(piece)
        return left == 0 and file.read() == digest.digest()


def lost(path: Path) -> LostScratchError:
    """Return the error for a scratch file that is gone or damaged."""
    return LostScratchError(f"{path}: scratch file is gone or damaged{LostScratchError.REMEDY}")


class replacing:  # noqa: N801 - reads as a verb
    """A context that gives a temporary path in the same folder. At its end, the file there is
    synced to the disk and replaces ``path``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        name = f".{path.name}.partial-{os.getpid()}-{threading.get_ident()}"
        self._partial = path.with_name(name)

    def __enter__(self) -> Path:
        return self._partial

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            self._partial.unlink(missing_ok=True)
            return
        sync_to_disk(self._partial)
        os.replace(self._partial, self._path)
