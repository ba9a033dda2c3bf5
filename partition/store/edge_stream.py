"""The targets of a subgraph, read from disk in runs of pages into buffers of bounded size.

A block is the unit that has a checksum (files.py), a page is a part of a block. The first read of a
block reads it whole and verifies it. Later reads may read single pages, as a level with few
vertices far apart needs. Pages near each other form a run, which one call reads.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..disk import files
from ..disk.files import HEADER_BYTES, Values, check_block, damaged_block, open_regular
from ..disk.scratch import lost
from ..disk.system_errors import raise_failure
from ..errors import InputError
from .manifest import weights_of
from .store import Store

PAGES_A_BLOCK = 32
BRIDGED_PAGES = 3  # idle pages that take less time to read than another call would
BLOCKS_A_RUN = 4  # longer reads are hardly faster, and every thread holds a run

PAGE_VALUES = 1 << 12
"""Number of values of a page of a FileStream."""

_PAGES_A_RUN = 32
FILE_RUN_BYTES = PAGE_VALUES * _PAGES_A_RUN * 8

_PAGE = 8 + 2 + 4 * 8  # bytes of a page: its first edge, two marks, numbers while runs are cut
_RUN = 256  # bytes of a run: the run, its task, its result


class PageRun(NamedTuple):
    """Consecutive pages of a shard: ``first_page <= page < last_page``, numbered over the
    subgraph.
    """

    shard: int
    first_page: int
    last_page: int


def run_bytes() -> int:
    """Return the bytes of a buffer, which holds the longest run of a store."""
    return files.BLOCK_BYTES * BLOCKS_A_RUN


class Stream(Protocol):
    """Values of the edges of a subgraph on disk. The methods are those of EdgeStream. run_bytes: of
    a buffer.
    """

    page_starts: NDArray[np.int64]

    @property
    def run_bytes(self) -> int: ...
    @property
    def pages(self) -> int: ...
    def runs(self, active: NDArray[np.uint8]) -> list[PageRun]: ...
    def idle_blocks(self, active: NDArray[np.uint8]) -> int: ...
    def read(self, run: PageRun, buffer: NDArray[np.uint8]) -> tuple[int, NDArray, int]: ...


class EdgeStream:
    """The targets of one subgraph on disk, or its weights, which have the same pages.

    page_starts: int64 (pages + 1,); page k holds the edges page_starts[k] .. page_starts[k + 1] - 1
    of the subgraph. Every shard has whole blocks of pages. Its last pages may be empty, and its
    first ones if the file's header fills them.
    """

    def __init__(self, store: Store, partition: int, name: str, weights: bool = False) -> None:
        shards = store.shards(partition, name)
        self._values = store.targets(partition, name)
        if weights:
            shards = [weights_of(shard) for shard in shards]
            self._values = Values(store.weight_type)
        self._paths = [store.path / shard for shard in shards]
        self._records = [store.files[shard] for shard in shards]
        self._page_bytes = files.BLOCK_BYTES // PAGES_A_BLOCK
        blocks = [len(record.xxh3) for record in self._records]
        self._first_block = np.cumsum([0, *blocks])
        self._verified = np.zeros(sum(blocks), np.bool_)
        self.page_starts = self._page_starts()

    @property
    def run_bytes(self) -> int:
        return run_bytes()

    @property
    def blocks(self) -> int:
        return len(self._verified)

    @property
    def pages(self) -> int:
        return self.blocks * PAGES_A_BLOCK

    def _page_starts(self) -> NDArray[np.int64]:
        starts = np.empty(self.pages + 1, np.int64)
        edge = 0
        for shard, record in enumerate(self._records):
            first, last = self._first_block[shard : shard + 2] * PAGES_A_BLOCK
            length = record.length(np.uint32)
            byte = np.arange(last - first) * self._page_bytes - HEADER_BYTES
            starts[first:last] = edge + np.clip(byte // np.dtype(np.uint32).itemsize, 0, length)
            edge += length
        starts[-1] = edge
        return starts

    def runs(self, active: NDArray[np.uint8]) -> list[PageRun]:
        """Return the runs that hold all active pages. active: uint8 (pages,), nonzero for active
        pages.

        A block that was not read before is included whole, since its checksum must be verified.
        (Bridged pages are fewer than a block, so they belong to blocks that have active pages.)
        """
        by_block = active.reshape(self.blocks, PAGES_A_BLOCK)
        whole = by_block.any(axis=1) & ~self._verified
        pages = np.flatnonzero((by_block | whole[:, None]).ravel())
        block = pages // PAGES_A_BLOCK
        shard = np.searchsorted(self._first_block, block, side="right") - 1
        return _cut(pages, shard, (block - self._first_block[shard]) // BLOCKS_A_RUN)

    def idle_blocks(self, active: NDArray[np.uint8]) -> int:
        """Return the number of blocks without an active page."""
        busy = active.reshape(self.blocks, PAGES_A_BLOCK).any(axis=1)
        return self.blocks - int(np.count_nonzero(busy))

    def blocks_of(self, run: PageRun) -> range:
        """Return the blocks that a run overlaps."""
        return range(run.first_page // PAGES_A_BLOCK, -(-run.last_page // PAGES_A_BLOCK))

    def _place(self, run: PageRun) -> tuple[int, int]:
        """Return the first byte of a run in its file, and the number of its bytes."""
        before = int(self._first_block[run.shard]) * PAGES_A_BLOCK
        first = (run.first_page - before) * self._page_bytes
        last = (run.last_page - before) * self._page_bytes
        return first, min(last, self._records[run.shard].bytes) - first

    def read(self, run: PageRun, buffer: NDArray[np.uint8]) -> tuple[int, NDArray[np.uint32], int]:
        """Read a run into ``buffer`` (run_bytes(),). Returns its first edge, its values, and the
        bytes read.

        Raises InputError, which names the file, if a block that was not read before is damaged.
        """
        path = self._paths[run.shard]
        first, length = self._place(run)
        data = buffer[: max(length, 0)]
        try:
            descriptor = open_regular(path)
            try:
                got = os.preadv(descriptor, [data], first)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise_failure(path, error)
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        if got != len(data):
            raise damaged_block(path, (first + got) // files.BLOCK_BYTES)
        self._verify(run, first, data)
        start = int(self.page_starts[run.first_page])
        stop = int(self.page_starts[run.last_page])
        skipped = max(0, HEADER_BYTES - first)
        edges = data[skipped : skipped + 4 * (stop - start)].view(np.uint32)
        return start, edges, len(data)

    def _verify(self, run: PageRun, first: int, data: NDArray[np.uint8]) -> None:
        """Verify the blocks of a run that were not read before; the run has all of their bytes."""
        for block in self.blocks_of(run):
            if self._verified[block]:
                continue
            k = block - int(self._first_block[run.shard])
            at = k * files.BLOCK_BYTES - first
            whole = data[at : at + files.BLOCK_BYTES]
            path, record = self._paths[run.shard], self._records[run.shard]
            check_block(path, record, k, whole, self._values)
            self._verified[block] = True


class FileStream:
    """The values of a file that this process has written, which has nothing else in it.

    path: the file. length: the number of values. dtype: the type that they are read as. stored:
    their type in the file, which may be narrower.
    """

    def __init__(
        self, path: Path, length: int, dtype: DTypeLike, stored: DTypeLike | None = None
    ) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._stored = self._dtype if stored is None else np.dtype(stored)
        self._descriptor: int | None = None
        self._opening = Lock()
        pages = -(-length // PAGE_VALUES)
        self.page_starts = np.minimum(np.arange(pages + 1) * PAGE_VALUES, length)

    @property
    def run_bytes(self) -> int:
        return FILE_RUN_BYTES

    @property
    def pages(self) -> int:
        return len(self.page_starts) - 1

    def runs(self, active: NDArray[np.uint8]) -> list[PageRun]:
        """Return the runs that hold all active pages. active: as in EdgeStream."""
        pages = np.flatnonzero(active)
        return _cut(pages, np.zeros_like(pages), pages // _PAGES_A_RUN)

    def idle_blocks(self, active: NDArray[np.uint8]) -> int:
        """Return 0: the file has no blocks."""
        return 0

    def read(self, run: PageRun, buffer: NDArray[np.uint8]) -> tuple[int, NDArray, int]:
        """Read a run into ``buffer``. Returns its first edge, its values, and the bytes read.

        Raises LostScratchError if the file is gone or has become shorter.
        """
        start, stop = (int(self.page_starts[page]) for page in run[1:])
        values = buffer[: (stop - start) * self._dtype.itemsize]
        data = values[len(values) - (stop - start) * self._stored.itemsize :]
        try:
            got = os.preadv(self._opened(), [data], start * self._stored.itemsize)
        except OSError as error:
            raise_failure(self._path, error)
            raise lost(self._path) from error
        if got != len(data):
            raise lost(self._path)
        values = values.view(self._dtype)
        if self._stored != self._dtype:
            values[:] = data.view(self._stored)  # NumPy copies what overlaps
        return start, values, len(data)

    def _opened(self) -> int:
        """Return a descriptor of the file, which stays open: to open it takes as long as to read
        some pages.
        """
        with self._opening:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                weakref.finalize(self, os.close, self._descriptor)
            return self._descriptor


def _cut(pages: NDArray[np.int64], shard: NDArray, place: NDArray) -> list[PageRun]:
    """Return the runs of some pages that are near each other. shard, place: of each page; a run has
    pages of one shard and of one place.
    """
    if not len(pages):
        return []
    follows = np.diff(pages) <= 1 + BRIDGED_PAGES
    follows &= (np.diff(shard) == 0) & (np.diff(place) == 0)
    cuts = np.flatnonzero(~follows) + 1
    firsts = pages[np.concatenate([[0], cuts])]
    lasts = pages[np.concatenate([cuts - 1, [len(pages) - 1]])] + 1
    shards = shard[np.concatenate([[0], cuts])]
    columns = shards.tolist(), firsts.tolist(), lasts.tolist()
    return [PageRun(*run) for run in zip(*columns, strict=True)]


def stream_index_bytes(store: Store, partition: int, name: str) -> int:
    """Return the most bytes that an EdgeStream holds, with the marks of a level and its runs.

    Runs take most of these bytes if few active pages are close to each other: each run is a Python
    object.
    """
    return index_bytes(sum(len(store.files[file].xxh3) for file in store.shards(partition, name)))


def index_bytes(blocks: int) -> int:
    """Return the most bytes that an EdgeStream of ``blocks`` blocks holds."""
    return blocks * (1 + PAGES_A_BLOCK * (_PAGE + _RUN // (2 + BRIDGED_PAGES))) + 8
