"""Merging of dictionaries in memory, in ranges of ids that threads merge side by side.

Cuts from a sample of all dictionaries bound the ranges. Each dictionary is sorted by range, each
range of all dictionaries is merged, and the ids of one range precede those of the next. The
distinct ids of a range stay in a core's cache while the range is merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.prepare import ranges as kernels
from ..input.arrow import as_arrow, as_numpy, compute, string_ends
from ..input.id_types import is_string
from ..input.ids import merge_dictionaries

RANGE_IDS = 1 << 17
"""Ids in a range, over all dictionaries, on average."""

MOST_RANGES = 1 << 10

_SAMPLES = 32  # of each range


class SortedByRange(NamedTuple):
    """The order of a dictionary's ids by range. order: the places of the ids in the dictionary,
    range after range (uint32). starts: the start of each range in ``order``, followed by the end.
    sizes: the bytes of each range's strings; empty if ids are no strings.
    """

    ids: pa.Array
    order: NDArray[np.uint32]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def places(self, number: int) -> NDArray[np.uint32]:
        """Return the places of a range's ids."""
        return self.order[self.starts[number] : self.starts[number + 1]]


class MergedRange(NamedTuple):
    """One range of all dictionaries. ids: its distinct ids, rising. places: the places of the
    dictionaries' ids among them (uint32), dictionary after dictionary.
    """

    ids: pa.Array
    places: NDArray[np.uint32]


class Merged:
    """All dictionaries merged into one that is sorted."""

    def __init__(
        self, dictionaries: Sequence[SortedByRange], ranges: Sequence[MergedRange]
    ) -> None:
        # Their ids are not needed any more.
        self._dictionaries = [dictionary._replace(ids=pa.nulls(0)) for dictionary in dictionaries]
        self._ranges = ranges
        self._bases = np.cumsum([0, *(len(part.ids) for part in ranges)])
        sizes = np.array([np.diff(dictionary.starts) for dictionary in dictionaries])
        self._first = np.cumsum(sizes, axis=0) - sizes

    @property
    def count(self) -> int:
        """The number of distinct ids."""
        return int(self._bases[-1])

    def ids(self) -> pa.Array:
        """Return the distinct ids, rising."""
        return pa.concat_arrays([part.ids for part in self._ranges])

    def places(self, number: int) -> NDArray[np.uint32]:
        """Return the places (uint32) of the ids of one dictionary among all ids."""
        dictionary = self._dictionaries[number]
        places = np.empty(len(dictionary.order), np.uint32)
        for r, part in enumerate(self._ranges):
            at, first = dictionary.places(r), self._first[number, r]
            places[at] = part.places[first : first + len(at)] + np.uint32(self._bases[r])
        return places


def choose_cuts(dictionaries: Sequence[pa.Array]) -> pa.Array:
    """Return the ids at which ranges begin, rising; the first range begins at no id."""
    total = sum(map(len, dictionaries))
    ranges = min(total // RANGE_IDS, MOST_RANGES)
    if ranges < 2:
        return dictionaries[0][:0]
    step = max(1, total // (_SAMPLES * ranges))
    samples = [ids.take(as_arrow(np.arange(0, len(ids), step))) for ids in dictionaries]
    sample = pa.concat_arrays(samples)
    order = as_numpy(compute("sort_indices", sample))
    at = order[np.arange(1, ranges) * len(order) // ranges]
    return compute("unique", sample.take(as_arrow(at)))


def sort_by_range(dictionary: pa.Array, cuts: pa.Array) -> SortedByRange:
    """Sort the places of a dictionary's ids by range. cuts: where ranges begin."""
    ranges = np.zeros(len(dictionary), np.uint16)
    order = np.empty(len(dictionary), np.uint32)
    starts = np.empty(len(cuts) + 2, np.int64)
    sizes = np.empty(len(cuts) + 1 if is_string(dictionary.type) else 0, np.int64)
    if is_string(dictionary.type):
        texts, ends = _texts_of(dictionary)
        if len(cuts):
            kernels.find_text_ranges(texts, ends, *_texts_of(cuts), ranges)
        kernels.count_bytes(ends, ranges, sizes)
    else:
        kernels.find_ranges(_keys_of(dictionary), _keys_of(cuts), ranges)
    kernels.sort_by_range(ranges, starts, order)
    return SortedByRange(dictionary, order, starts, sizes)


def merge_range(number: int, dictionaries: Sequence[SortedByRange]) -> MergedRange:
    """Merge one range of all dictionaries."""
    id_type = dictionaries[0].ids.type
    if is_string(id_type):
        range_ids = _strings_of(number, dictionaries)
    else:
        parts = [as_numpy(dictionary.ids)[dictionary.places(number)] for dictionary in dictionaries]
        range_ids = as_arrow(np.concatenate(parts))
    ids, (places,) = merge_dictionaries([range_ids], id_type)
    assert ids.values is not None
    return MergedRange(ids.values, places)


def _strings_of(number: int, dictionaries: Sequence[SortedByRange]) -> pa.Array:
    """Return the strings of one range of all dictionaries."""
    count = sum(len(dictionary.places(number)) for dictionary in dictionaries)
    texts = np.empty(sum(int(dictionary.sizes[number]) for dictionary in dictionaries), np.uint8)
    ends = np.zeros(count + 1, np.int64)
    at = 0
    for dictionary in dictionaries:
        places = dictionary.places(number)
        kernels.gather_texts(*_texts_of(dictionary.ids), places, texts, ends, at)
        at += len(places)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)


def _texts_of(strings: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of strings, and the bounds of each string."""
    texts, ends = np.frombuffer(strings.buffers()[2] or b"", np.uint8), string_ends(strings)
    for array in (texts, ends):
        array.flags.writeable = False  # as the kernels are compiled for
    return texts, ends


def _keys_of(ids: pa.Array) -> NDArray[np.uint64]:
    """Return a uint64 key for each id, in the order of the ids. Ids of 16 bytes that share their
    first eight bytes have the same key.
    """
    values = as_numpy(ids)
    if values.dtype.kind == "V":
        return values.view(">u8")[:: values.itemsize // 8].astype(np.uint64)
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
