"""Results of several searches: a row for each vertex that each of them has reached.

part-00000.parquet, ...     source, vertex, distance: by rising source, then by rising vertex
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...kernels.pieces.gather import count_bits
from ...partition.disk.outputs import mark
from ...partition.input.arrow import TEXT_BYTES, as_arrow
from ...partition.input.edges import is_string
from .names import PARENT_BYTES, Names
from .result import ResultInfo, parts_of

_LEAST_ROWS = 1 << 16
"""Of a row group, where vertices have fewer pieces."""


class Rows:
    """What a batch of searches has found.

    ids: their sources', rising. reached: words by place in the arrays of a graph, a bit by source.
    bits: of distances, from the lowest on; words as these. parts: of each file, which pieces of the
    vertices of which source, all pieces of the first one first. count: of all rows.
    """

    def __init__(
        self, names: Names, ids: pa.Array, reached: NDArray[np.uint64], bits: list[NDArray]
    ) -> None:
        self.names = names
        self._ids = ids.cast(names.id_type)
        order = np.concatenate([names.piece(i)[1] for i in range(len(names.pieces))])
        self._reached = reached[order]
        self._bits = bits
        for i, words in enumerate(bits):
            bits[i] = words[order]  # one after the other: each takes the place of one
        self._starts = np.cumsum([0, *names.pieces]).tolist()
        counts = np.zeros((len(names.pieces), 64), np.int64)
        for count, (start, stop) in zip(counts, pairwise(self._starts), strict=True):
            count_bits(self._reached[start:stop], count)
        found = counts[:, : len(ids)].T.ravel()
        self.parts = parts_of(found.tolist())
        self.count = int(found.sum())

    @cached_property
    def schema(self) -> pa.Schema:
        id_type = self.names.id_type
        kinds = {"source": id_type, "vertex": id_type, "distance": pa.int32()}
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])

    def batches(self, part: range) -> Iterator[pa.RecordBatch]:
        """The rows of a file: of a piece each, or of several short ones."""
        some: list[pa.RecordBatch] = []
        most = max(_LEAST_ROWS, *self.names.pieces)
        for batch in self._pieces(part):
            some.append(batch)
            rows = sum(one.num_rows for one in some)
            if rows >= most or sum(one.nbytes for one in some) >= TEXT_BYTES:
                yield pa.concat_batches(some)
                some = []
        if some:
            yield pa.concat_batches(some)

    def _pieces(self, part: range) -> Iterator[pa.RecordBatch]:
        held, vertex = -1, self._ids[:0]
        for place in part:
            source, number = divmod(place, len(self.names.pieces))
            if number != held:  # the same for all sources of a small graph
                vertex, held = self.names.piece(number)[0], number
            inside = slice(self._starts[number], self._starts[number + 1])
            there = _bit(self._reached[inside], source)
            at = np.flatnonzero(there)
            distance = np.zeros(len(at), np.int32)
            for i, words in enumerate(self._bits):
                distance |= _bit(words[inside], source)[at].astype(np.int32) << i
            of = vertex.filter(pa.array(there))
            step = self._rows_of(source)
            for first in range(0, len(at), step):
                rows = slice(first, first + step)
                arrays = [pa.repeat(self._ids[source], len(at[rows])), of[rows]]
                yield pa.record_batch([*arrays, as_arrow(distance[rows])], schema=self.schema)

    def _rows_of(self, source: int) -> int:
        """That are made at once: fewer, where the source has a long name."""
        name = self._ids[source : source + 1].nbytes
        return max(1, PARENT_BYTES // name) if is_string(self.names.id_type) else 1 << 62


def _bit(words: NDArray, number: int) -> NDArray[np.bool_]:
    return words & words.dtype.type(1 << number) != 0


def write_rows(
    folder: Path,
    rows: Rows,
    info: ResultInfo,
    first: int,
    step: Callable[[Callable[[int], None], Iterable[int]], object],
) -> None:
    """Write the rows into files from number ``first`` on. step: calls a function for each file."""
    schema = rows.schema.with_metadata(mark("result", **asdict(info)))

    def write_file(number: int) -> None:
        with pq.ParquetWriter(
            folder / f"part-{first + number:05}.parquet",
            schema,
            compression="snappy",
            use_dictionary=["source", "distance"],  # pyright: ignore[reportArgumentType] - documented
        ) as writer:
            for batch in rows.batches(rows.parts[number]):
                writer.write_batch(batch, row_group_size=max(1, len(batch)))

    step(write_file, range(len(rows.parts)))


def remove_files(folder: Path, first: int) -> None:
    """From number ``first`` on: an earlier attempt may have written others."""
    for path in sorted(folder.glob("part-*.parquet"))[first:]:
        path.unlink()
