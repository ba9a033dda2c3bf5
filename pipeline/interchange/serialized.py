"""GAP's serialized graphs (``writer.h`` of github.com/sbeamer/gapbs): ``.sg``, or with weights
``.wsg``.

    directed    1 byte
    entries     int64
    vertices    int64
    offsets     int64, vertices + 1
    neighbours  int32, entries; in .wsg each is followed by its weight, int32

A directed graph has a second set of offsets and neighbours, for the edges into each vertex. In an
undirected graph each edge is in the rows of both its ends; this module takes it from the row of the
lesser end. Both copies of the edges are read and compared, since the file has no other means to
detect damage.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from ...kernels.base.graph import rows_of_edges
from ...partition.disk.files import open_regular
from ...partition.errors import InputError
from ...partition.input.arrow import as_arrow
from .consistency import EdgeBalance
from .graph_file import EDGES, Piece, schema_of, self_loops

_HEADER = struct.Struct("<Bqq")
_OFFSET = np.dtype("<i8")
_ID = np.dtype("<i4")


class SerializedGraph:
    """A ``.sg`` or ``.wsg`` file. Implements GraphFile (graph_file.py). Its rows are read as they
    are needed.
    """

    held_bytes = 0
    notes = ()

    def __init__(self, path: str, weighted: bool) -> None:
        self._path = path
        entry = [("target", _ID), ("weight", _ID)] if weighted else [("target", _ID)]
        self._entry = np.dtype(entry)
        self.schema = schema_of(pa.int32(), pa.int32() if weighted else None)
        self._descriptor = open_regular(Path(os.path.realpath(path)))
        self.bytes = os.fstat(self._descriptor).st_size
        try:
            self._read_header()
        except BaseException:
            self.close()
            raise
        self._lock = Lock()
        self._above = self._below = 0  # entries of each triangle, counted by any thread
        self._balance = EdgeBalance()

    def _read_header(self) -> None:
        if self.bytes < _HEADER.size:
            raise InputError(f"{self._path}: {self.bytes} bytes are too few for a serialized graph")
        directed, self._entries, self._vertices = _HEADER.unpack(
            os.pread(self._descriptor, _HEADER.size, 0)
        )
        self.directed: bool | None = directed == 1
        if directed > 1 or self._entries < 0 or not 0 <= self._vertices < 2**31:
            told = f"direction {directed}, {self._entries:,} entries, {self._vertices:,} vertices"
            raise self._error(0, told)
        rows = (self._vertices + 1) * _OFFSET.itemsize + self._entries * self._entry.itemsize
        promised = _HEADER.size + rows * (2 if self.directed else 1)
        if self.bytes != promised:
            raise InputError(
                f"{self._path}: the file has {self.bytes:,} bytes, but its header promises "
                f"{promised:,}: {self._vertices:,} vertices and {self._entries:,} entries"
            )
        self._inverse = _HEADER.size + rows

    def _error(self, at: int, what: str) -> InputError:
        return InputError(f"{self._path}, byte {at:,}: {what}: the file is damaged, or not a graph")

    def _read(self, dtype: DTypeLike, at: int, count: int) -> NDArray:
        dtype = np.dtype(dtype)
        data = os.pread(self._descriptor, count * dtype.itemsize, at)
        if len(data) != count * dtype.itemsize:
            raise self._error(at + len(data), "the file ends")
        return np.frombuffer(data, dtype)

    def _offsets(self, start: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the offsets from byte ``start`` on in pieces, each with the number of its first
        row. The last offset of a piece is the first of the next piece. Raises InputError if they do
        not rise.
        """
        end = 0
        for row in range(0, self._vertices, EDGES):
            count = min(EDGES, self._vertices - row) + 1
            at = start + row * _OFFSET.itemsize
            offsets = self._read(_OFFSET, at, count)
            last = row + count == self._vertices + 1
            if (
                offsets[0] != end
                or (offsets[1:] < offsets[:-1]).any()  # differences could pass 64 bits
                or offsets[-1] > self._entries
                or (last and offsets[-1] != self._entries)
            ):
                raise self._error(at, f"offsets do not rise from 0 to {self._entries:,}")
            end = int(offsets[-1])
            yield row, offsets

    def pieces(self) -> Iterator[Piece]:
        """Yield the edges. Pieces of a directed graph's second half yield no edges; they are only
        compared with the first half.
        """
        for start in (_HEADER.size, self._inverse) if self.directed else (_HEADER.size,):
            for row, offsets in self._offsets(start):
                told = offsets.nbytes
                for first in range(int(offsets[0]), int(offsets[-1]), EDGES):
                    last = min(first + EDGES, int(offsets[-1]))
                    told += (last - first) * self._entry.itemsize
                    yield Piece(told, partial(self._edges, start, row, offsets, first, last))
                    told = 0

    def _edges(
        self, start: int, row: int, offsets: NDArray[np.int64], first: int, last: int
    ) -> pa.RecordBatch:
        base = start + (self._vertices + 1) * _OFFSET.itemsize
        at = base + first * self._entry.itemsize
        entries = self._read(self._entry, at, last - first)
        source = (row + rows_of_edges(offsets, first, last)).astype(_ID)
        target = entries["target"]
        wrong = (target < 0) | (target >= self._vertices)
        if wrong.any():
            place = int(wrong.argmax())
            told = f"vertex {target[place]:,} of {self._vertices:,}"
            raise self._error(at + place * self._entry.itemsize, told)
        columns = [source, *(entries[name] for name in self._entry.names or ())]
        if not self.directed:
            above, below = target > source, target < source
            with self._lock:
                self._above += int(np.count_nonzero(above))
                self._below += int(np.count_nonzero(below))
            self._compare([column[above] for column in columns], 1)
            self._compare([column[below] for column in columns], -1)
            columns = [column[~below] for column in columns]
        elif start == _HEADER.size:
            self._compare(columns, 1)
        else:
            self._compare(columns, -1)
            columns = [column[:0] for column in columns]
        return pa.record_batch([as_arrow(column) for column in columns], schema=self.schema)

    def _compare(self, columns: list[NDArray], sign: int) -> None:
        """Add edges to the balance of both copies. sign: -1 if the rows are the targets of the
        edges.
        """
        row, entry, *weights = columns
        ends = (row, entry) if sign > 0 else (entry, row)
        self._balance.add(*ends, weights[0] if weights else None, sign)

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        if self._above != self._below:
            raise InputError(
                f"{self._path}: {self._above:,} edges are in the row of their smaller vertex, and "
                f"{self._below:,} in the row of the larger one: an undirected edge must be in both"
            )
        if not self._balance.even:
            places = "the outgoing and the incoming edges"
            if not self.directed:
                places = "the rows of the two ends of an edge"
            told = "do not hold the same edges: the file is damaged, or not a graph"
            raise InputError(f"{self._path}: {places} {told}")
        rows = self._offsets(_HEADER.size)
        inverse = self._offsets(self._inverse if self.directed else _HEADER.size)
        for (row, out), (_, into) in zip(rows, inverse, strict=True):
            alone = np.flatnonzero((np.diff(out) == 0) & (np.diff(into) == 0))
            if len(alone):
                yield self_loops(as_arrow((row + alone).astype(_ID)), self.schema)

    def close(self) -> None:
        os.close(self._descriptor)
