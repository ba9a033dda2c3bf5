"""Results of several searches: a row for each vertex that each search has reached.

part-00000.parquet, ...     source, vertex, distance: by rising source, then by rising vertex
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Protocol, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.pieces.gather import count_bits
from ...partition.disk.digests import file_digest
from ...partition.disk.outputs import mark
from ...partition.disk.system_errors import parquet_writer
from ...partition.input.arrow import TEXT_BYTES, as_arrow
from ...partition.input.id_types import is_string
from .names import PARENT_BYTES, Names
from .result import ResultInfo, parts_of

_LEAST_ROWS = 1 << 16
"""Least rows of a row group, where the pieces of the vertices have fewer."""


class Distances(Protocol):
    """Distances of a batch of searches. They are indexed by place in the arrays of a graph, or in
    another order after ``put_in`` has permuted them.
    """

    def put_in(self, order: NDArray[np.uint32]) -> None: ...

    def counts(self, inside: slice) -> NDArray[np.int64]:
        """Return how many of the vertices in the slice each search has reached."""
        ...

    def of(self, search: int, inside: slice) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Return which vertices of the slice one search has reached (a mask), and the distances of
        the reached ones.
        """
        ...


class InBits:
    """Distances of up to 64 searches as bits. reached: uint64 (n,), bit ``i`` set where search
    ``i`` has reached the vertex. bits: one array of words for each bit of the distance, the lowest
    bit first; bit ``i`` of a word belongs to search ``i``.
    """

    def __init__(self, reached: NDArray[np.uint64], bits: list[NDArray]) -> None:
        self._reached = reached
        self._bits = bits

    def put_in(self, order: NDArray[np.uint32]) -> None:
        self._reached = self._reached[order]
        for i, words in enumerate(self._bits):
            self._bits[i] = words[order]  # one at a time, so that only one copy is in memory

    def counts(self, inside: slice) -> NDArray[np.int64]:
        counts = np.zeros(64, np.int64)
        count_bits(self._reached[inside], counts)
        return counts

    def of(self, search: int, inside: slice) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        there = _bit(self._reached[inside], search)
        at = np.flatnonzero(there)
        distance = np.zeros(len(at), np.int32)
        for i, words in enumerate(self._bits):
            distance |= _bit(words[inside], search)[at].astype(np.int32) << i
        return there, distance


class Plain:
    """Distances as unsigned numbers, an array for each search. The greatest number of the dtype
    means that the vertex is not reached.
    """

    def __init__(self, distances: list[NDArray]) -> None:
        self._distances = distances

    def put_in(self, order: NDArray[np.uint32]) -> None:
        for distance in self._distances:
            distance[:] = distance[order]

    def counts(self, inside: slice) -> NDArray[np.int64]:
        return np.array(
            [np.count_nonzero(_there(distance[inside])) for distance in self._distances]
        )

    def of(self, search: int, inside: slice) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        distance = self._distances[search][inside]
        there = _there(distance)
        return there, distance[there].astype(np.int32)


def _there(distance: NDArray) -> NDArray[np.bool_]:
    return distance != np.iinfo(distance.dtype).max


class RowsBySource:
    """Rows that a batch of searches yields, ordered by source.

    ids: the sources' user ids, rising. parts: for each file, a range of numbers that count the
    pieces of the vertices source by source: all pieces of the first source come first. count: the
    number of all rows.
    """

    def __init__(self, names: Names, ids: pa.Array, distances: Distances) -> None:
        self.names = names
        self._ids = ids.cast(names.id_type)
        self._distances = distances
        distances.put_in(np.concatenate([names.piece(i)[1] for i in range(len(names.pieces))]))
        starts = np.cumsum([0, *names.pieces]).tolist()
        self._pieces = [slice(*ends) for ends in pairwise(starts)]
        counts = np.array([distances.counts(inside)[: len(ids)] for inside in self._pieces])
        found = counts.T.ravel()
        self.parts = parts_of(found.tolist())
        self.count = int(found.sum())

    @cached_property
    def schema(self) -> pa.Schema:
        id_type = self.names.id_type
        kinds = {"source": id_type, "vertex": id_type, "distance": pa.int32()}
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])

    def batches(self, part: range) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file in batches. A batch has the rows of one piece, of several short
        pieces, or of a part of a piece if the source's id is long.
        """
        group: list[pa.RecordBatch] = []
        most = max(_LEAST_ROWS, *self.names.pieces)
        for batch in self._batches_of_pieces(part):
            group.append(batch)
            rows = sum(held_batch.num_rows for held_batch in group)
            if rows >= most or sum(held_batch.nbytes for held_batch in group) >= TEXT_BYTES:
                yield pa.concat_batches(group)
                group = []
        if group:
            yield pa.concat_batches(group)

    def _batches_of_pieces(self, part: range) -> Iterator[pa.RecordBatch]:
        held, vertex = -1, self._ids[:0]
        for place in part:
            source, number = divmod(place, len(self.names.pieces))
            if number != held:  # a small graph has one piece, which all sources share
                vertex, held = self.names.piece(number)[0], number
            there, distance = self._distances.of(source, self._pieces[number])
            reached = vertex.take(as_arrow(np.flatnonzero(there)))
            step = self._rows_of(source)
            for first in range(0, len(distance), step):
                rows = slice(first, first + step)
                arrays = [pa.repeat(self._ids[source], len(distance[rows])), reached[rows]]
                yield pa.record_batch([*arrays, as_arrow(distance[rows])], schema=self.schema)

    def _rows_of(self, source: int) -> int:
        """Return the most rows that are made at once: fewer if the source has a long string id."""
        name = self._ids[source : source + 1].nbytes
        return max(1, PARENT_BYTES // name) if is_string(self.names.id_type) else 1 << 62


class Batches(Sequence[RowsBySource]):
    """Rows of batches, each made when it is first read.

    make: for each batch, a function that is called once.
    """

    def __init__(self, make: Iterable[Callable[[], RowsBySource]]) -> None:
        self._make: list[Callable[[], RowsBySource] | None] = [*make]
        self._made: dict[int, RowsBySource] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._make)

    @overload
    def __getitem__(self, at: int) -> RowsBySource: ...
    @overload
    def __getitem__(self, at: slice) -> list[RowsBySource]: ...
    def __getitem__(self, at: int | slice) -> RowsBySource | list[RowsBySource]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        with self._lock:
            make = self._make[at]
            if make is not None:
                self._made[at] = make()
                self._make[at] = None  # it holds what the rows are made of
            return self._made[at]


def _bit(words: NDArray, number: int) -> NDArray[np.bool_]:
    return words & words.dtype.type(1 << number) != 0


def write_rows(
    folder: Path,
    rows: RowsBySource,
    info: ResultInfo,
    first: int,
    step: Callable[[Callable[[int], str], Iterable[int]], list[str]],
) -> list[str]:
    """Write the rows into files that are numbered from ``first`` on, and return the digest of each
    file.

    step: calls a function for each file number and returns the results.
    """
    schema = rows.schema.with_metadata(mark("result", **info.facts))

    def write_file(number: int) -> str:
        path = folder / part_name(first + number)
        with parquet_writer(
            path,
            schema,
            compression="snappy",
            use_dictionary=["source", "distance"],
        ) as writer:
            for batch in rows.batches(rows.parts[number]):
                writer.write_batch(batch, row_group_size=max(1, len(batch)))
        return file_digest(path)

    return step(write_file, range(len(rows.parts)))


def part_name(number: int) -> str:
    return f"part-{number:05}.parquet"


def remove_files(folder: Path, first: int) -> None:
    """Remove the files from number ``first`` on, which an earlier attempt may have left."""
    for path in sorted(folder.glob("part-*.parquet"))[first:]:
        path.unlink()
