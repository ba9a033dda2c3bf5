"""The sorted dictionary of ids that are no dense integers, out of core.

Every batch of the input is written as places in a sorted dictionary of its own. The batches'
dictionaries are then merged range of ids by range, each range small enough for memory: cut where
samples of all dictionaries say. A range gives its distinct ids, rising, and for every batch the
places of its ids among them; with the ranges one after the other these are dense ids.

What tasks leave in the scratch folder: of batch B ``places-B``, ``ids-B`` and ``samples-B``;
``positions`` (batches, ranges + 1; where each range begins in each batch's dictionary); of range R
``merged-R`` and ``range-R``. Strings are their bytes, with ``-offsets`` beside.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..disk.scratch import FileScratch
from .arrow import as_arrow, as_numpy
from .edges import Chunk, EdgeList, is_string
from .ids import Batch, merge_dictionaries

ENCODE_ROWS = 1 << 19
RANGE_BYTES = 1 << 24
"""Of ids in one range, over all batches' dictionaries, about."""

_SAMPLES_A_BATCH = 256


def encode_chunk(edges: EdgeList, chunk: Chunk, number: int, scratch: FileScratch) -> list[int]:
    """Write a chunk's batches; returns the rows of each."""
    written = []
    for batch, pieces in enumerate(_gather(edges.batches(chunk), ENCODE_ROWS)):
        rows = sum(len(src) for src, _ in pieces)
        columns = [pair[side] for side in (0, 1) for pair in pieces]
        if is_string(edges.id_type):
            columns = [column.cast(pa.large_string()) for column in columns]
        encoded = pa.concat_arrays(columns).dictionary_encode()
        order = pc.call_function("sort_indices", [encoded.dictionary])
        place = np.empty(len(order), np.uint32)
        place[as_numpy(order)] = np.arange(len(order), dtype=np.uint32)
        name = f"{number}-{batch}"
        scratch.save(f"places-{name}", place[as_numpy(encoded.indices)])
        ids = encoded.dictionary.take(order)
        _save(scratch, f"ids-{name}", ids)
        step = max(1, len(ids) // _SAMPLES_A_BATCH)
        _save(scratch, f"samples-{name}", ids.take(as_arrow(np.arange(0, len(ids), step))))
        written.append(rows)
    return written


def _gather(
    batches: Iterator[tuple[pa.Array, pa.Array]], rows: int
) -> Iterator[list[tuple[pa.Array, pa.Array]]]:
    held, count = [], 0
    for pair in batches:
        held.append(pair)
        count += len(pair[0])
        if count >= rows:
            yield held
            held, count = [], 0
    if held:
        yield held


def cut_dictionary(scratch: FileScratch, batches: Sequence[str], id_type: pa.DataType) -> int:
    """Decide the ranges and write ``positions``; returns their number."""
    samples = [_load_all(scratch, f"samples-{name}", id_type) for name in batches]
    size = sum(scratch.path(f"ids-{name}").stat().st_size for name in batches)
    ranges = max(1, -(-size // RANGE_BYTES))
    merged = pa.concat_arrays(samples)
    merged = merged.take(pc.call_function("sort_indices", [merged]))
    cuts = sorted({merged[i * len(merged) // ranges].as_py() for i in range(1, ranges)})
    positions = np.zeros((len(batches), len(cuts) + 2), np.int64)
    for row, name in zip(positions, batches, strict=True):
        ids = _load_all(scratch, f"ids-{name}", id_type)
        row[1:-1] = [_position(ids, cut) for cut in cuts]
        row[-1] = len(ids)
    scratch.save("positions", positions)
    return len(cuts) + 1


def _position(ids: pa.Array, value: int | str) -> int:
    return bisect_left(range(len(ids)), value, key=lambda i: ids[i].as_py())


def _load_all(scratch: FileScratch, name: str, id_type: pa.DataType) -> pa.Array:
    count = (
        len(scratch.load(f"{name}-offsets")) - 1 if is_string(id_type) else len(scratch.load(name))
    )
    return _load(scratch, name, id_type, 0, count)


def merge_range(
    number: int, scratch: FileScratch, batches: Sequence[str], id_type: pa.DataType
) -> int:
    """Merge one range of all batches' dictionaries; returns its distinct ids."""
    positions = scratch.load("positions")[:, number : number + 2]
    some = [
        _load(scratch, f"ids-{name}", id_type, start, stop)
        for name, (start, stop) in zip(batches, positions.tolist(), strict=True)
    ]
    ids, places = merge_dictionaries(some, id_type)
    assert ids.values is not None
    scratch.save(f"merged-{number}", np.concatenate(places))
    _save(scratch, f"range-{number}", ids.values)
    return ids.domain


@dataclass(frozen=True)
class EncodedSource:
    """An edge list whose ids went through the dictionary; a chunk is a chunk of the input.

    chunk_batches: rows of each batch of each chunk. bases: dense id of each range's first id, and
    the number of ids.
    """

    scratch: FileScratch
    chunk_batches: tuple[tuple[int, ...], ...]
    bases: tuple[int, ...]

    @property
    def domain(self) -> int:
        return self.bases[-1]

    @property
    def chunk_rows(self) -> tuple[int, ...]:
        return tuple(sum(rows) for rows in self.chunk_batches)

    def batches(self, chunks: Sequence[int], rows: int) -> Iterator[Batch]:
        positions = self.scratch.load("positions")
        sizes = np.diff(positions, axis=1)
        begins = np.cumsum(sizes, axis=0) - sizes  # of each batch within each range's places
        first = np.cumsum([0, *(len(batches) for batches in self.chunk_batches)])
        for c in chunks:
            for batch, batch_rows in enumerate(self.chunk_batches[c]):
                b = first[c] + batch
                dense = np.empty(positions[b, -1], np.uint32)
                for r, base in enumerate(self.bases[:-1]):
                    begin, size = begins[b, r], sizes[b, r]
                    merged = self.scratch.part(f"merged-{r}", begin, begin + size)
                    at = positions[b, r]
                    dense[at : at + size] = merged + np.uint32(base)
                places = self.scratch.load(f"places-{c}-{batch}")
                for start in range(0, batch_rows, rows):
                    stop = min(start + rows, batch_rows)
                    yield (
                        dense[places[start:stop]],
                        dense[places[batch_rows + start : batch_rows + stop]],
                    )

    def decode(self, dense: NDArray[np.uint32], id_type: pa.DataType) -> pa.Array:
        """The user's ids of some rising, neighbouring dense ids."""
        if not len(dense):
            return pa.nulls(0, id_type)
        first, last = int(dense[0]), int(dense[-1])
        some = [
            _load(
                self.scratch,
                f"range-{r}",
                id_type,
                max(0, first - base),
                min(self.bases[r + 1], last + 1) - base,
            )
            for r, base in enumerate(self.bases[:-1])
            if base <= last and self.bases[r + 1] > first
        ]
        ids = pa.concat_arrays(some).take(as_arrow(dense - np.uint32(first)))
        return ids.cast(id_type)


def _save(scratch: FileScratch, name: str, ids: pa.Array) -> None:
    if is_string(ids.type):
        _, offsets, data = ids.buffers()
        scratch.save(
            f"{name}-offsets", np.frombuffer(offsets, np.int64, len(ids) + 1, 8 * ids.offset)
        )
        scratch.save(name, np.frombuffer(data or b"", np.uint8))
    else:
        scratch.save(name, as_numpy(ids))


def _load(scratch: FileScratch, name: str, id_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """Some of the ids that were saved."""
    if not is_string(id_type):
        return as_arrow(scratch.part(name, start, stop))
    offsets = scratch.part(f"{name}-offsets", start, stop + 1)
    data = scratch.part(name, int(offsets[0]), int(offsets[-1]))
    offsets -= offsets[0]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), stop - start, buffers)
