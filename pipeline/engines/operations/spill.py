"""Files of a contraction that does not fit memory: runs of pairs, and the rows that they make.

A run has distinct pairs by rising key. Runs are merged by *shares*: the next pairs of all runs are
read, and those up to the least of the last keys are sorted together and added up. If there are many
runs, the oldest ones are first merged into one, so that a share has long parts of each.

The rows are two files, of targets and of what their edges amount to, which are then read as the
rows of a store on disk are.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.base.sort import radix_sort_with
from ....kernels.pieces.contract import add_up_pairs
from ....partition.disk.scratch import lost
from ....partition.disk.system_errors import naming_file, raise_failure
from ....partition.disk.temporary import TemporaryFolder
from ....partition.store.edge_stream import FileStream
from ..ranks.edges import RowsOnDisk

_RUNS_AT_ONCE = 64
"""The most runs that are merged at once."""

_LEAST_OF_RUN = 1 << 8
"""Number of pairs of a run that a merge may always hold."""

_NARROWED_AT_ONCE = 1 << 17

_HALF = np.uint64(32)


class Pairs(NamedTuple):
    """Pairs of labels with sums. keys: uint64, as kernels/pieces/contract.py has them. sums:
    uint64.
    """

    keys: NDArray[np.uint64]
    sums: NDArray[np.uint64]

    def between(self, first: int, last: int) -> Pairs:
        return Pairs(self.keys[first:last], self.sums[first:last])

    @property
    def turned(self) -> Pairs:
        """Return the pairs of different labels with the other label first, in no order."""
        keys = self.keys >> _HALF | self.keys << _HALF
        others = keys != self.keys
        return Pairs(keys[others], self.sums[others])


def no_pairs() -> Pairs:
    return Pairs(np.empty(0, np.uint64), np.empty(0, np.uint64))


def add_up(some: list[Pairs], bits: int) -> Pairs:
    """Return the distinct pairs of some lists, which are emptied, by rising key. bits: number of
    bits of a label.
    """
    keys, sums = (np.concatenate(arrays) for arrays in zip(*some, strict=True))
    some.clear()
    count = len(keys)
    places, scratch = np.arange(count, dtype=np.uint32), np.empty(count, np.uint32)
    order = radix_sort_with(keys, places, np.empty(count, np.uint64), scratch, bits, bits)
    into = Pairs(np.empty(count, np.uint64), np.empty(count, np.uint64))
    distinct = add_up_pairs(*order, sums, *into)
    return Pairs(into.keys[:distinct].copy(), into.sums[:distinct].copy())


class Spill:
    """The files of contractions, in a temporary folder that is made when it is needed.

    parent: the folder to make it in; None for that of temporary files. note: called with the number
    of bytes that were read.
    """

    def __init__(self, parent: Path | None, note: Callable[[int], None]) -> None:
        self._parent = parent
        self.note = note
        self._temporary: TemporaryFolder | None = None
        self._made = 0

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *error: object) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def new_folder(self) -> Path:
        """Return a new folder for the files of a contraction."""
        if self._temporary is None:
            self._temporary = TemporaryFolder(parent=self._parent)
        self._made += 1
        folder = Path(self._temporary.name, str(self._made))
        folder.mkdir()
        return folder

    def clear(self, keep: Path | None = None) -> None:
        """Remove all folders, or all but one."""
        if self._temporary is None:
            return
        for folder in Path(self._temporary.name).iterdir():
            if folder.is_dir() and folder != keep:
                shutil.rmtree(folder)


class PairRuns:
    """Runs of pairs in a folder of their own. bits: number of bits of a label. room: number of
    pairs that a merge may hold. check: called before each part of a merge.
    """

    def __init__(
        self, spill: Spill, bits: int, room: int, check: Callable[[], None] = lambda: None
    ) -> None:
        self.folder = spill.new_folder()
        self._note = spill.note
        self._bits, self._room, self._check = bits, room, check
        self._files: deque[Path] = deque()
        self._made = 0

    def write(self, parts: Iterable[Pairs]) -> None:
        """Write a run. parts: of its pairs, by rising key."""
        path = self.folder / f"run-{self._made}"
        self._made += 1
        with _File(path) as file:
            for pairs in parts:
                file.append(np.stack(pairs, axis=1))
        self._files.append(path)

    def merged(self) -> Iterator[Pairs]:
        """Yield the distinct pairs of all runs, in parts by rising key. No run is left then."""
        while len(self._files) > _RUNS_AT_ONCE:
            oldest = [self._files.popleft() for _ in range(_RUNS_AT_ONCE)]
            self.write(self._merge(oldest))
        yield from self._merge([*self._files])
        self._files.clear()

    def _merge(self, paths: list[Path]) -> Iterator[Pairs]:
        most = max(_LEAST_OF_RUN, self._room // max(1, len(paths)))
        with ExitStack() as files:
            runs = [_Run(path, files.enter_context(open(path, "rb"))) for path in paths]
            while runs:
                self._check()
                self._note(sum(run.read_up_to(most) for run in runs))
                runs = [run for run in runs if len(run.pairs.keys)]
                lasts = [run.pairs.keys[-1] for run in runs if not run.is_at_end]
                parts = [run.take(min(lasts, default=None)) for run in runs]
                if parts:
                    yield add_up(parts, self._bits) if len(parts) > 1 else parts[0]
        for path in paths:
            path.unlink()


class _Run:
    """A run that is read. pairs: those that were read and not yet taken. is_at_end: whether no
    others follow.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self.pairs, self.is_at_end = no_pairs(), False

    def read_up_to(self, most: int) -> int:
        """Read pairs until ``most`` are held. Returns the number of bytes read."""
        wanted = most - len(self.pairs.keys)
        if self.is_at_end or wanted <= 0:
            return 0
        with naming_file(self._path):
            came = np.fromfile(self._file, np.uint64, 2 * wanted).reshape(-1, 2)
        self.is_at_end = len(came) < wanted
        columns = zip(self.pairs, came.T, strict=True)
        self.pairs = Pairs(*(np.concatenate(arrays) for arrays in columns))
        return came.nbytes

    def take(self, last: np.uint64 | None) -> Pairs:
        """Take the pairs with keys up to ``last``; None for all."""
        count = len(self.pairs.keys)
        if last is not None:
            count = int(np.searchsorted(self.pairs.keys, last, side="right"))
        taken = self.pairs.between(0, count)
        self.pairs = self.pairs.between(count, len(self.pairs.keys))
        return taken


class _File:
    """A file that arrays are appended to. Errors name it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "wb")  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        with naming_file(self._path):
            self._file.close()

    def append(self, values: NDArray) -> None:
        with naming_file(self._path):
            self._file.write(values.reshape(-1).view(np.uint8))


class StoredSums:
    """Sums in a file: uint64. total: of all of them. note: as in Spill."""

    def __init__(self, path: Path, sums: NDArray[np.uint64], note: Callable[[int], None]) -> None:
        self.count, self.total = len(sums), int(sums.sum(dtype=np.uint64))
        self._path, self._note = path, note
        with _File(path) as file:
            file.append(sums)

    def read(self, at: slice) -> NDArray[np.uint64]:
        """Return the sums in a range."""
        count = at.stop - at.start
        try:
            sums = np.fromfile(self._path, np.uint64, count, offset=8 * at.start)
        except OSError as error:
            raise_failure(self._path, error)
            raise lost(self._path) from error
        if len(sums) < count:
            raise lost(self._path)
        self._note(sums.nbytes)
        return sums


def write_rows(
    folder: Path,
    pairs: Iterable[Pairs],
    inside: NDArray[np.uint64],
    offsets_type: DTypeLike,
    check: Callable[[], None],
) -> RowsOnDisk:
    """Write the rows of the graph between labels, and return them. pairs: of all its edges in both
    directions, by rising key. inside: uint64, by label, receives what the edges inside it amount
    to. check: as in RowsOnDisk.
    """
    offsets = np.zeros(len(inside) + 1, offsets_type)
    targets, amounts, greatest = folder / "targets", folder / "amounts", 0
    with _File(targets) as targets_file, _File(amounts) as amounts_file:
        for keys, sums in pairs:
            first, other = (keys >> _HALF).astype(np.uint32), keys.astype(np.uint32)
            is_inside = first == other
            inside[first[is_inside]] += sums[is_inside]
            first, other, sums = (part[~is_inside] for part in (first, other, sums))
            rows, counts = np.unique(first, return_counts=True)
            offsets[rows + np.uint32(1)] += counts.astype(offsets.dtype)
            targets_file.append(other)
            amounts_file.append(sums)
            greatest = max(greatest, int(sums.max(initial=0)))
    np.cumsum(offsets, dtype=offsets.dtype, out=offsets)
    edges = int(offsets[-1])
    stream = FileStream(targets, edges, np.uint32)
    weights = FileStream(amounts, edges, np.uint64, _narrowed(amounts, edges, greatest))
    return RowsOnDisk(offsets, stream, [], check, weights)


def _narrowed(path: Path, length: int, greatest: int) -> np.dtype:
    """Rewrite a file of uint64 by the narrowest type that holds its values, and return this type:
    the file is read again and again.
    """
    narrow = np.min_scalar_type(greatest)
    if narrow == np.uint64:
        return narrow
    written = path.with_name(f"{path.name}-narrow")
    with open(path, "rb") as wide, _File(written) as file:
        for first in range(0, length, _NARROWED_AT_ONCE):
            count = min(_NARROWED_AT_ONCE, length - first)
            file.append(np.fromfile(wide, np.uint64, count).astype(narrow))
    written.replace(path)
    return narrow
