"""Scatter: batches of edges become runs of keys, grouped by bucket (csr.scatter).

One task makes a run from some chunks of the input, with a segment for each batch. Runs are held in
memory, or in files of their own. In both cases the keys of neighbouring buckets can be read from
every segment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.arrays import Buffers
from ...kernels.prepare import csr
from ..disk.scratch import FileScratch, Scratch, lost, scratch_file
from ..disk.system_errors import naming_file, raise_failure
from ..errors import InputError
from ..input.ids import Batch
from ..input.sources import EdgeSource
from ..input.weights import NO_WEIGHTS, Rounding
from .layout import Layout, Ranges

NO_OFFSETS = np.empty(0, np.int64)


@dataclass(frozen=True)
class PositionTable:
    """Positions by dense id, in the scratch of the tasks that need them."""

    scratch: Scratch
    spans: tuple[range, ...]

    def translate(
        self, columns: Sequence[NDArray[np.uint32]], buffers: Buffers
    ) -> list[NDArray[np.uint32]]:
        """Return the positions of columns of dense ids.

        Raises InputError for an id that was no vertex when degrees were counted.
        """
        positions = [
            buffers.take(f"positions {i}", len(column), np.uint32)
            for i, column in enumerate(columns)
        ]
        known = []
        for i, span in enumerate(self.spans):
            table = self.scratch.load(f"position-{i}")
            for column, into in zip(columns, positions, strict=True):
                known.append(csr.translate(column, span.start, table, into))
        if not all(known):
            raise InputError("the edge list changed while it was read; run again")
        return positions


def rows_by_class(
    chunks: Sequence[int], source: EdgeSource, table: PositionTable, classes: Ranges, rows: int
) -> NDArray[np.int64]:
    """Return the number of rows by the class of the higher degree of their two ends, for the
    threshold.
    """
    histogram, buffers = np.zeros(len(classes), np.int64), Buffers()
    for batch in source.batches(chunks, rows):
        u, v = table.translate(batch, buffers)
        csr.histogram_of_first_position(
            u, v, classes.table, classes.shift, classes.starts, histogram
        )
        del batch  # freed before the next one is read
    return histogram


class Slice(NamedTuple):
    """The keys of neighbouring buckets, from one segment of a run.

    rows: uint16, within the bucket's range. targets: uint32, positions. weights: uint32, their
    bits, or (0,). offsets: int64 (buckets + 1,), the start of each bucket's keys.
    """

    rows: NDArray[np.uint16]
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32]
    offsets: NDArray[np.int64]

    def buckets(self, first: int, stop: int) -> Slice:
        start, end = self.offsets[first], self.offsets[stop]
        offsets = self.offsets[first : stop + 1] - start
        span = slice(start, end)
        return Slice(self.rows[span], self.targets[span], self.weights[span], offsets)

    def keys(self, first: int, count: int) -> Slice:
        """Return ``count`` keys from key ``first`` on, of any bucket."""
        span = slice(first, first + count)
        return Slice(self.rows[span], self.targets[span], self.weights[span], NO_OFFSETS)


def room_for(keys: int, weighted: bool, buffers: Buffers) -> Slice:
    """Return an uninitialized slice for this many keys, in arrays of ``buffers``."""
    return Slice(
        buffers.take("rows", keys, np.uint16),
        buffers.take("targets", keys, np.uint32),
        buffers.take("weights", keys if weighted else 0, np.uint32),
        NO_OFFSETS,
    )


class Runs(Protocol):
    """Keys grouped by bucket, in segments; each segment is made of a batch of edges."""

    def buckets(self, first: int, stop: int, into: Slice | None = None) -> Iterator[Slice]:
        """Yield buckets ``first`` .. ``stop - 1`` of every segment. into: arrays for the keys of
        all of them, if they must be read from files; None for new arrays.
        """
        ...

    def keys(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return the number of keys in each of these buckets, over all segments."""
        ...


@dataclass(frozen=True)
class MemoryRuns:
    segments: Sequence[Slice]

    def buckets(self, first: int, stop: int, into: Slice | None = None) -> Iterator[Slice]:
        return (segment.buckets(first, stop) for segment in self.segments)

    def keys(self, first: int, stop: int) -> NDArray[np.int64]:
        sizes = [np.diff(segment.offsets[first : stop + 1]) for segment in self.segments]
        return np.asarray(np.sum(sizes, axis=0, dtype=np.int64))


@dataclass(frozen=True)
class FileRuns:
    """Runs in files. ``run-NAME`` holds for each segment its targets, then its rows, then its
    weights if ``weighted`` is set. ``index-NAME`` holds the offsets of segments, shape (segments,
    buckets + 1).
    """

    scratch: FileScratch
    names: tuple[str, ...]
    weighted: bool = False

    def buckets(self, first: int, stop: int, into: Slice | None = None) -> Iterator[Slice]:
        at = 0
        for name in self.names:
            index = self.scratch.load(f"index-{name}")
            begin = 0
            path = Path(self.scratch.folder, f"run-{name}")
            with _opened(path) as file:
                for segment in index:
                    keys = int(segment[-1])
                    start, count = int(segment[first]), int(segment[stop] - segment[first])
                    offsets = segment[first : stop + 1] - start
                    room, begins = into, at
                    if room is None:
                        room, begins = room_for(count, self.weighted, Buffers()), 0
                    part = room.keys(begins, count)
                    _read(path, file, part.targets, begin + 4 * start)
                    _read(path, file, part.rows, begin + 4 * keys + 2 * start)
                    _read(path, file, part.weights, begin + 6 * keys + 4 * start)
                    yield part._replace(offsets=offsets)
                    begin += (10 if self.weighted else 6) * keys
                    at += count

    def keys(self, first: int, stop: int) -> NDArray[np.int64]:
        total = np.zeros(stop - first, np.int64)
        for name in self.names:
            index = self.scratch.load(f"index-{name}")[:, first : stop + 1]
            total += np.diff(index, axis=1).sum(axis=0)
        return total


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise_failure(path, error)
        raise lost(path) from error


def _read(path: Path, file: BinaryIO, into: NDArray, position: int) -> None:
    if not len(into):
        return
    with naming_file(path):
        count = os.preadv(file.fileno(), [into.view(np.uint8)], position)
    if count != into.nbytes:
        raise lost(path)


def scatter_batch(batch: Batch, table: PositionTable, layout: Layout, buffers: Buffers) -> Slice:
    """Return the keys of a batch, grouped by bucket. They are in arrays of ``buffers``, which the
    next batch overwrites.
    """
    offsets = np.empty(layout.buckets + 1, np.int64)
    u, v = table.translate(batch[:2], buffers)
    weights = batch[2] if len(batch) > 2 else NO_WEIGHTS
    room = room_for(2 * len(u), len(weights) > 0, buffers)
    how = layout.placement, layout.directed, offsets
    csr.scatter(u, v, weights, *how, room.rows, room.targets, room.weights)
    return room.keys(0, int(offsets[-1]))._replace(offsets=offsets)


def scatter_to_file(
    chunks: Sequence[int],
    name: str,
    source: EdgeSource,
    table: PositionTable,
    layout: Layout,
    rows: int,
    scratch: FileScratch,
) -> tuple[int, float]:
    """Scatter chunks into the run NAME, with a segment for each batch of ``rows`` rows. Returns the
    changes of their weights by rounding to 32 bits, if they were read now (``Rounding.as_tuple``).
    """
    layout, buffers = with_global_ids(layout, scratch), Buffers()
    index, rounding = [], Rounding()
    with scratch_file(Path(scratch.folder, f"run-{name}")) as file:
        for batch in source.batches(chunks, rows, True, rounding):
            segment = scatter_batch(batch, table, layout, buffers)
            file.write(segment.targets)
            file.write(segment.rows)
            file.write(segment.weights)
            index.append(segment.offsets)
            del batch  # freed before the next one is read
    scratch.save(f"index-{name}", np.stack(index))
    return rounding.as_tuple()


def with_global_ids(layout: Layout, scratch: Scratch) -> Layout:
    """Return the layout with the global ids by position, loaded from scratch. They have an entry
    for each vertex, so they are not sent with tasks.
    """
    if layout.numbered_by_position:
        return layout
    placement = layout.placement._replace(global_id=scratch.load("global"))
    return replace(layout, placement=placement)
