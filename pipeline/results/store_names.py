"""Names of a store's vertices, streamed from its vertex table.

Finding a vertex reads a few row groups. Writing a result reads each row group once for its piece.
Decoding parents holds the user ids of all vertices once: ids of one size in an array by global id;
strings in one buffer by rising id, with an array of each global id's place in that buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...partition.disk.files import verify_file, wrong_contents
from ...partition.disk.system_errors import read_metadata
from ...partition.errors import DelegraphError
from ...partition.input.arrow import (
    as_arrow,
    as_numpy,
    numbers_and_nulls,
    numpy_type,
    string_ends,
)
from ...partition.input.id_types import Id, is_bytes, is_string, storage_type, stored, type_named
from ...partition.input.ids import find_id
from ...partition.store.manifest import VERTICES
from ...partition.store.store import Store
from ...partition.store.vertex_table import check_all_seen, check_ids, check_places, opened
from .names import PARENT_BYTES, id_bytes


class StoreNames:
    """Names (names.py) for arrays by global id. The constructor verifies the checksums of the
    vertex table.
    """

    def __init__(self, store: Store, team: Team) -> None:
        self._path, self._info = store.path / VERTICES, store.info
        self._identity = _identity(self._path)
        self._team = Team(1)
        verify_file(self._path, store.files[VERTICES], team)
        with opened(self._path, self._path, store.info) as file:
            self.id_type: pa.DataType = file.schema_arrow.field("vertex").type
            self._groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            self._text_bytes = _text_bytes(file.metadata) if is_string(self.id_type) else 0
        self._vertices = store.info.vertices
        if sum(self._groups) != self._vertices or min(*self._groups, self._text_bytes) < 0:
            raise wrong_contents(self._path, "the sizes of the row groups do not add up")
        self._lock = Lock()
        self._ends: dict[int, tuple[Any, Any] | None] = {}  # of pieces whose ids are known to rise
        self._keeping = Lock()
        self._room = 0
        self._kept: dict[int, tuple[pa.Array, NDArray[np.uint32]]] = {}

    @property
    def room(self) -> int:
        """Return the bytes of pieces that may be kept beside those that are kept already."""
        return self._room

    def keep(self, room: int) -> None:
        """Keep the pieces that are read from now on, up to ``room`` bytes of them."""
        with self._keeping:
            self._kept.clear()
            self._room = room

    @property
    def pieces(self) -> Sequence[int]:
        return self._groups

    def piece(self, number: int) -> tuple[pa.Array, NDArray[np.uint32]]:
        self._check_unchanged()
        if kept := self._kept.get(number):
            return kept
        piece = self._read(number)
        size = piece[0].nbytes + piece[1].nbytes
        with self._keeping:
            if number not in self._kept and size <= self._room:
                self._room -= size
                self._kept[number] = piece
        return piece

    def _read(self, number: int) -> tuple[pa.Array, NDArray[np.uint32]]:
        with opened(self._path, self._path, self._info) as file:
            table = file.read_row_group(number, ["vertex", "global_id"], use_threads=False)
        ids, places = table["vertex"].combine_chunks(), as_numpy(table["global_id"])
        if len(ids) != self._groups[number]:
            raise wrong_contents(self._path, f"{len(ids):,} rows in row group {number}")
        check_places(self._path, places, self._vertices)
        return ids, places

    def _check_unchanged(self) -> None:
        if _identity(self._path) != self._identity:
            store = self._path.parent
            raise DelegraphError(f"{store} has changed since it was opened: run again")

    def find(self, value: Id) -> int | None:
        low, high = 0, len(self._groups)
        while low < high:
            middle = (low + high) // 2
            ends = self._ends_of(middle)
            if ends is not None and value < ends[0]:
                high = middle
            elif ends is None or value > ends[1]:
                low = middle + 1
            else:
                ids, index = self.piece(middle)
                place = find_id(stored(ids), value)
                return None if place is None else int(index[place])
        self._check_unchanged()  # (As reading a piece does.)
        return None

    def _ends_of(self, number: int) -> tuple[Any, Any] | None:
        """Return the first and the last id of a piece; None if it is empty."""
        if number not in self._ends:
            ids, _ = self.piece(number)
            check_ids(self._path, ids)
            ids = stored(ids)
            self._ends[number] = (ids[0].as_py(), ids[-1].as_py()) if len(ids) else None
        return self._ends[number]

    def decode(self, places: pa.Array) -> pa.Array:
        at, null = numbers_and_nulls(places)
        ids = self._ids()
        if isinstance(ids, np.ndarray):
            decoded = as_arrow(ids[at], null)
            return decoded.cast(self.id_type) if is_bytes(self.id_type) else decoded
        texts, position = ids
        return texts.take(as_arrow(position[at], null)).cast(self.id_type)

    def widths(self, places: NDArray[np.uint32]) -> NDArray[np.int64] | None:
        ids = self._ids()
        if isinstance(ids, np.ndarray):
            return None
        texts, position = ids
        at, ends = position[places], string_ends(texts)
        return ends[at + np.int64(1)] - ends[at]

    def prepare(self, at_once: int) -> None:
        self._team = Team(at_once)
        self._ids()

    def _ids(self) -> NDArray | tuple[pa.Array, NDArray[np.uint32]]:
        with self._lock:  # several tasks write at once, and only one must load the ids
            return self._texts if is_string(self.id_type) else self._numbers

    def _all_pieces(self) -> Iterator[tuple[pa.Array, NDArray[np.uint32]]]:
        """Yield ``piece`` of every row group in turn, and verify that ids rise and that every
        vertex occurs once.
        """
        seen = np.zeros(self._vertices, np.bool_)
        last: list[pa.Array] = []
        for ids, places in self._team.stream(self.piece, range(len(self._groups))):
            check_ids(self._path, ids)
            if len(ids):
                check_ids(self._path, pa.concat_arrays([*last, ids[:1]]))
                last = [ids[-1:]]
            seen[places] = True
            yield ids, places
        check_all_seen(self._path, seen)

    @cached_property
    def _numbers(self) -> NDArray:
        """Return the user ids by global id: integers, or 16 bytes each."""
        ids: NDArray = np.empty(self._vertices, numpy_type(storage_type(self.id_type)))
        for vertex, index in self._all_pieces():
            ids[index] = as_numpy(stored(vertex))
        return ids

    @cached_property
    def _texts(self) -> tuple[pa.Array, NDArray[np.uint32]]:
        """Return the user ids (large_string) by rising id, and each global id's place among them
        (uint32).
        """
        offsets = np.zeros(self._vertices + 1, np.int64)
        text = np.empty(self._text_bytes, np.uint8)
        position = np.empty(self._vertices, np.uint32)
        at = 0
        for vertex, index in self._all_pieces():
            rows = slice(at, at + len(index))
            position[index] = np.arange(rows.start, rows.stop, dtype=np.uint32)
            _, offset_buffer, data = vertex.cast(pa.large_string()).buffers()
            first = vertex.offset
            ends = np.frombuffer(offset_buffer, np.int64)[first : first + len(vertex) + 1]
            start = offsets[at]
            offsets[at + 1 : rows.stop + 1] = ends[1:] - ends[0] + start
            stop = offsets[rows.stop]
            if stop > len(text):
                raise wrong_contents(self._path, "more text than the file states")
            text[start:stop] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
            at = rows.stop
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), self._vertices, buffers), position


_WIDTHS = 32  # bytes of a row for the places of strings, their ends, widths and running sums


def text_bytes(store: Store) -> int:
    """Return a bound on the bytes of all ids' characters in a store; 0 unless ids are strings."""
    if not is_string(type_named(store.info.id_type)):
        return 0
    return _text_bytes(read_metadata(store.path / VERTICES))


def _text_bytes(metadata: pq.FileMetaData) -> int:
    """Return a bound on the bytes of the ids' characters: the uncompressed bytes of the column's
    pages, which also hold lengths.
    """
    return sum(_texts_of_groups(metadata))


def _texts_of_groups(metadata: pq.FileMetaData) -> list[int]:
    column = metadata.schema.names.index("vertex")
    groups = range(metadata.num_row_groups)
    return [metadata.row_group(i).column(column).total_uncompressed_size for i in groups]


def names_bytes(store: Store, threads: int) -> int:
    """Return the most bytes that finding the source and writing a result hold, beyond the result's
    arrays.
    """
    metadata = read_metadata(store.path / VERTICES)
    schema = metadata.schema.to_arrow_schema()
    id_type = schema.field("vertex").type
    n = store.info.vertices
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    width = id_bytes(id_type)
    if is_string(id_type):
        texts = _texts_of_groups(metadata)
        held = sum(texts) + n * (8 + 4)
        # A page has a four-byte length for each string; all other bytes may be one vertex's id.
        texts = [max(0, size - 4 * rows) for size, rows in zip(texts, groups, strict=True)]
        parents = PARENT_BYTES + max(texts, default=0)
        texts = [
            4 * size + 2 * parents + _WIDTHS * rows
            for size, rows in zip(texts, groups, strict=True)
        ]
    else:
        held = n * width
        texts = [0] * len(groups)
    held += n  # a byte for each vertex, to check that every vertex occurs once
    # Bytes of a row in the piece that a task writes: the vertex's id, as read and as decoded, and
    # its place; the parent's place and id; the distance; twice, for the encoded pages; null masks.
    row_bytes = 2 * (3 * width + 3 * 4) + 4
    pieces = [text + rows * row_bytes for text, rows in zip(texts, groups, strict=True)]
    return held + min(threads, len(groups)) * max(pieces, default=0)


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return the device, inode and modification time (ns) of a file, which differ if the file was
    replaced or rewritten; None if there is no file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
