"""The sorted dictionary of ids that are no dense integers, out of core.

Every batch of the input is written as places in a sorted dictionary of its own. The batches'
dictionaries are then merged in ranges of ids. A range is small enough for memory; samples of all
dictionaries decide where ranges are cut. Merging a range gives its distinct ids, rising, and for
every batch the places of its ids among them. The dense id of an id is its place in its range, plus
the number of ids in earlier ranges.

Tasks leave these arrays in the scratch folder: for batch B ``places-B``, ``ids-B``, ``samples-B``,
``sizes-B`` and, if there are weights, ``weights-B``; ``positions`` (batches, ranges + 1), the start
of each range in each batch's dictionary; for range R ``merged-R`` and ``range-R``. Strings are
stored as their bytes, with an array ``-offsets``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..disk.scratch import FileScratch
from ..input.arrow import as_arrow, as_numpy, compute, string_ends
from ..input.edges import Chunk, EdgeList
from ..input.id_types import Id, is_string
from ..input.ids import Batch, merge_dictionaries, read_encoded
from ..input.pages import STRING_BYTES
from ..input.weights import Rounding

RANGE_BYTES = 1 << 24
"""Approximate bytes of ids in one range, over all batches' dictionaries."""

_SAMPLES_A_BATCH = 256
_SAMPLE_BYTES = 1 << 16


def encode_chunk(
    edges: EdgeList, chunk: Chunk, number: int, scratch: FileScratch, rounding: Rounding
) -> list[int]:
    """Write the batches of a chunk. Returns the number of rows of each. rounding: receives the
    changes of weights by rounding to 32 bits.
    """
    written = []
    for batch, (columns, dictionary) in enumerate(read_encoded(edges, chunk, rounding)):
        order = compute("sort_indices", dictionary)
        place = np.empty(len(order), np.uint32)
        place[as_numpy(order)] = np.arange(len(order), dtype=np.uint32)
        name = f"{number}-{batch}"
        scratch.save(f"places-{name}", place[np.concatenate(columns[:2])])
        if edges.weight is not None:
            scratch.save(f"weights-{name}", columns[2])
        ids = dictionary.take(order)
        _save(scratch, f"ids-{name}", ids)
        at, sizes = _sample(_ends(ids))
        _save(scratch, f"samples-{name}", ids.take(as_arrow(at)))
        scratch.save(f"sizes-{name}", sizes)
        written.append(len(columns[0]))
    return written


def _ends(ids: pa.Array) -> NDArray[np.int64]:
    """Return for each id the bytes up to its end, counted as merging takes them."""
    if not is_string(ids.type):
        return np.arange(1, len(ids) + 1) * (ids.type.bit_width // 8)
    ends = string_ends(ids)
    return ends[1:] - ends[0] + STRING_BYTES * np.arange(1, len(ids) + 1)


def _sample(ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return places at about equal distances in bytes, the first place included, and the bytes from
    each one to the next.
    """
    steps = np.arange(0, ends[-1], max(1, min(ends[-1] // _SAMPLES_A_BATCH, _SAMPLE_BYTES)))
    at = np.unique(np.searchsorted(ends, steps, side="right"))
    begins = ends[at - 1] * (at > 0)
    return at, np.diff(begins, append=ends[-1])


def cut_dictionary(scratch: FileScratch, batches: Sequence[str], id_type: pa.DataType) -> list[int]:
    """Choose the ranges and write ``positions``. Returns the bytes of ids in each range."""
    samples = pa.concat_arrays([_load_all(scratch, f"samples-{name}", id_type) for name in batches])
    sampled = np.concatenate([scratch.load(f"sizes-{name}") for name in batches])
    order = as_numpy(compute("sort_indices", samples))
    ends = np.cumsum(sampled[order])
    steps = np.arange(RANGE_BYTES, ends[-1], RANGE_BYTES)
    at = order[np.searchsorted(ends, steps, side="right")]
    cuts = sorted({samples[i].as_py() for i in at.tolist()} - {samples[int(order[0])].as_py()})
    positions = np.zeros((len(batches), len(cuts) + 2), np.int64)
    sizes = np.zeros(len(cuts) + 1, np.int64)
    for row, name in zip(positions, batches, strict=True):
        ids = _load_all(scratch, f"ids-{name}", id_type)
        row[1:-1] = [_position(ids, cut) for cut in cuts]
        row[-1] = len(ids)
        sizes += np.diff(np.append(0, _ends(ids))[row])
    scratch.save("positions", positions)
    return sizes.tolist()


def _position(ids: pa.Array, value: Id) -> int:
    return bisect_left(range(len(ids)), value, key=lambda i: ids[i].as_py())


def _load_all(scratch: FileScratch, name: str, id_type: pa.DataType) -> pa.Array:
    count = (
        len(scratch.load(f"{name}-offsets")) - 1 if is_string(id_type) else len(scratch.load(name))
    )
    return _load(scratch, name, id_type, 0, count)


def merge_range(
    number: int, scratch: FileScratch, batches: Sequence[str], id_type: pa.DataType
) -> int:
    """Merge one range of all batches' dictionaries. Returns the number of its distinct ids."""
    positions = scratch.load("positions")[:, number : number + 2]
    parts = [
        _load(scratch, f"ids-{name}", id_type, start, stop)
        for name, (start, stop) in zip(batches, positions.tolist(), strict=True)
    ]
    ids, places = merge_dictionaries(parts, id_type)
    assert ids.values is not None
    scratch.save(f"merged-{number}", np.concatenate(places))
    _save(scratch, f"range-{number}", ids.values)
    return ids.domain


@dataclass(frozen=True)
class EncodedSource:
    """An edge list whose ids went through the dictionary. Its chunks are those of the input.

    chunk_batches: the rows of each batch of each chunk. bases: the dense id of each range's first
    id, followed by the number of ids. weighted: whether there are weights.
    """

    scratch: FileScratch
    chunk_batches: tuple[tuple[int, ...], ...]
    bases: tuple[int, ...]
    weighted: bool = False

    @property
    def domain(self) -> int:
        return self.bases[-1]

    @property
    def chunk_rows(self) -> tuple[int, ...]:
        return tuple(sum(rows) for rows in self.chunk_batches)

    @property
    def text_bytes(self) -> int:
        """Return a bound on the bytes of distinct ids: the size of their files, with short
        headers.
        """
        ranges = range(len(self.bases) - 1)
        return sum(self.scratch.bytes(f"range-{r}") for r in ranges)

    def batches(
        self,
        chunks: Sequence[int],
        rows: int,
        weights: bool = False,
        rounding: Rounding | None = None,
    ) -> Iterator[Batch]:
        """Yield the edges of chunks as dense ids, in batches of at most ``rows`` rows. rounding:
        not used; weights were rounded when the ids were encoded.
        """
        positions = self.scratch.load("positions")
        sizes = np.diff(positions, axis=1)
        begins = np.cumsum(sizes, axis=0) - sizes  # start of each batch within each range's places
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
                bits = []
                if weights and self.weighted:
                    bits.append(self.scratch.load(f"weights-{c}-{batch}"))
                for start in range(0, batch_rows, rows):
                    stop = min(start + rows, batch_rows)
                    yield (
                        dense[places[start:stop]],
                        dense[places[batch_rows + start : batch_rows + stop]],
                        *(column[start:stop] for column in bits),
                    )

    def characters(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return the bytes of each of the string ids ``first`` .. ``stop - 1``."""
        parts = [
            self.scratch.part(f"range-{r}-offsets", max(first, base) - base, end - base + 1)
            for r, base in enumerate(self.bases[:-1])
            if max(first, base) < (end := min(stop, self.bases[r + 1]))
        ]
        return np.concatenate([np.diff(offsets) for offsets in parts])

    def decode(self, dense: NDArray[np.uint32], id_type: pa.DataType) -> pa.Array:
        """Return the user's ids of rising dense ids. All ids between the first and the last are
        read.
        """
        if not len(dense):
            return pa.nulls(0, id_type)
        first, last = int(dense[0]), int(dense[-1])
        parts = [
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
        ids = pa.concat_arrays(parts).take(as_arrow(dense - np.uint32(first)))
        return ids.cast(id_type)


def _save(scratch: FileScratch, name: str, ids: pa.Array) -> None:
    if is_string(ids.type):
        data = ids.buffers()[2]
        scratch.save(f"{name}-offsets", string_ends(ids))
        scratch.save(name, np.frombuffer(data or b"", np.uint8))
    else:
        scratch.save(name, as_numpy(ids))


def _load(scratch: FileScratch, name: str, id_type: pa.DataType, start: int, stop: int) -> pa.Array:
    """Load saved ids ``start`` .. ``stop - 1``."""
    if not is_string(id_type):
        return as_arrow(scratch.part(name, start, stop))
    offsets = scratch.part(f"{name}-offsets", start, stop + 1)
    data = scratch.part(name, int(offsets[0]), int(offsets[-1]))
    offsets -= offsets[0]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), stop - start, buffers)
