"""The mapping between the user's vertex ids and dense ids.

Dense ids are 32-bit numbers in ``[0, domain)``, rising with the user's ids. Non-negative integers
that are nearly dense are used as they are, gaps included. The dense id of any other id (sparse,
negative, a string) is its place in the sorted dictionary of all ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.compiled import compile_kernels
from ...kernels.prepare import ingest, ranges
from ...kernels.prepare.ingest import take_dense
from ..errors import InputError
from ..numbers import parse_integer, shown
from .arrow import as_arrow, as_numpy, compute, numbers_and_nulls, numpy_type, string_ends
from .edges import Chunk, EdgeList
from .id_types import Id, in_range, is_bytes, is_string, type_name
from .pages import STRING_BYTES
from .weights import Rounding

MAX_VERTICES = 2**32 - 2
"""Most vertices of a graph: local ids have 32 bits, and one value means 'none'."""

ENCODE_ROWS = 1 << 19
ENCODE_BYTES = 1 << 23
"""Bytes of strings, with STRING_BYTES each, that are put into one dictionary."""
_SAMPLE_ROWS = 1 << 15
_FEW_REPEAT = 0.75  # of a sample is distinct
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_WHOLE = re.compile(r"(.*[0-9])\.0*")
_PARSED = 16  # texts: a call parses its source more than once
_SMALL_FACTOR = 8
_ALWAYS_DENSE = 1 << 10

Batch = tuple[NDArray[np.uint32], ...]
"""Sources and targets of rows as dense ids and, if weights are read, the bits of weights
(weights.py).
"""


@dataclass(frozen=True)
class Ids:
    """The user's ids by dense id.

    id_type: the user's Arrow type. domain: dense ids are below it. values: the id of each dense id
    (UUIDs as their bytes), rising; None if dense ids are the user's ids.
    """

    id_type: pa.DataType
    domain: int
    values: pa.Array | None

    def decode(self, dense: pa.Array) -> pa.Array:
        """Return the user's ids, in the user's type, of dense ids (uint32; nulls stay nulls)."""
        if self.values is None:
            numbers, null = numbers_and_nulls(dense)
            return as_arrow(numbers.astype(numpy_type(self.id_type)), null)
        return self.values.take(dense).cast(self.id_type)

    def characters(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return the bytes of each of the string ids ``first`` .. ``stop - 1``."""
        assert self.values is not None
        return np.diff(string_ends(self.values.slice(first, stop - first)))

    def widths(self, dense: NDArray[np.uint32]) -> NDArray[np.int64] | None:
        """Return the bytes of each id; None unless ids are strings."""
        if self.values is None or not is_string(self.id_type):
            return None
        ends = string_ends(self.values)
        return ends[dense + np.int64(1)] - ends[dense]

    def find(self, value: Id) -> int | None:
        """Return the dense id of a user's id; None if it has none. (If dense ids are the user's
        ids, the result may be a gap.)
        """
        if self.values is not None:
            return find_id(self.values, value)
        return value if isinstance(value, int) and 0 <= value < self.domain else None


@lru_cache(_PARSED)
def parse_id(text: str, id_type: pa.DataType) -> Id:
    """Return a vertex typed on a command line as a value of the graph's id type. Raises InputError
    for a text that is no such value.
    """
    if is_string(id_type):
        return text
    if is_bytes(id_type):
        try:
            return UUID(text.strip()).bytes
        except ValueError as error:
            kind = type_name(id_type)
            raise InputError(
                f"source {shown(text)} is not a UUID, but the graph's ids are {kind}: write it as "
                "32 hexadecimal digits"
            ) from error
    whole = _WHOLE.fullmatch(text)  # the form in which floats are printed
    text = whole[1] if whole else text
    if not _INTEGER.fullmatch(text):
        raise InputError(
            f"source {shown(text)} is not an integer, but the graph's ids are {id_type}"
        )
    try:
        value = parse_integer(text.strip(), -(2**64), 2**64)
    except InputError:
        value = None
    if value is None or not in_range(value, id_type):
        raise InputError(f"source {shown(text)} is outside {id_type}, the graph's id type")
    return value


def find_id(values: pa.Array | pa.ChunkedArray, value: Id) -> int | None:
    """Return the place of ``value`` in rising ``values``; None if it is not there.

    (Python orders strings by code point, which is the order of their UTF-8 bytes.)
    """
    if isinstance(value, int) and isinstance(values, pa.Array):
        numbers = as_numpy(values)
        place = int(np.searchsorted(numbers, numbers.dtype.type(value)))
        return place if place < len(numbers) and numbers[place] == value else None
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle].as_py() < value:
            low = middle + 1
        else:
            high = middle
    return low if low < len(values) and values[low].as_py() == value else None


def check_size(vertices: int) -> None:
    """Raise InputError for more vertices than a graph can have."""
    if vertices > MAX_VERTICES:
        raise InputError(
            f"the edge list has {vertices:,} vertices; a graph can have at most {MAX_VERTICES:,}"
        )


def may_be_dense(bounds: tuple[int, int] | None, rows: int) -> bool:
    """Return whether ids within ``bounds`` are dense enough for a table indexed by id."""
    return bounds is not None and bounds[0] >= 0 and bounds[1] < 2 * rows + _ALWAYS_DENSE


def chunk_bounds(edges: EdgeList, chunk: Chunk) -> tuple[int, int]:
    """Return the least and the greatest integer id of a chunk, read from the data."""
    extremes = [
        compute("min_max", column).as_py() for pair in edges.batches(chunk) for column in pair
    ]
    return min(e["min"] for e in extremes), max(e["max"] for e in extremes)


def dense_batches(
    edges: EdgeList,
    chunks: Sequence[Chunk],
    domain: int,
    rows: int,
    present: NDArray[np.uint8] | None = None,
    weights: bool = False,
    rounding: Rounding | None = None,
) -> Iterator[Batch]:
    """Read chunks whose ids are dense as they are, and yield batches of ``rows`` rows; the last
    batch may be shorter.

    present: (domain,), receives 1 for each id that occurs. weights: whether weights are read.
    rounding: receives the changes of weights by rounding to 32 bits.
    """
    marked = np.empty(0, np.uint8) if present is None else present
    left = sum(chunk.rows for chunk in chunks)
    weights = weights and edges.weight is not None
    batch = _empty_batch(min(rows, left), weights)
    at = 0
    for chunk in chunks:
        for *columns, bits in edges.weighted_batches(chunk, weights, rounding):
            taken = 0
            while taken < len(columns[0]):
                count = min(len(columns[0]) - taken, len(batch[0]) - at)
                for column, dense in zip(columns, batch[:2], strict=True):
                    ids = as_numpy(column.slice(taken, count))
                    ids = ids.astype(_taken_as(edges.id_type), copy=False)
                    ids.flags.writeable = False  # so that one compiled variant fits all
                    wrong = take_dense(ids, domain, dense[at : at + count], marked)
                    if wrong >= 0:
                        raise InputError(
                            f"{chunk.file.path}: id {ids[wrong]} is outside the range in the "
                            "file's own statistics; write the file again"
                        )
                if weights:
                    batch[2][at : at + count] = bits[taken : taken + count]
                taken += count
                at += count
                left -= count
                if at == len(batch[0]):
                    yield batch
                    batch = _empty_batch(min(rows, left), weights)
                    at = 0


def _empty_batch(rows: int, weights: bool) -> Batch:
    return tuple(np.empty(rows, np.uint32) for _ in range(2 + weights))


def _taken_as(id_type: pa.DataType) -> type[np.signedinteger]:
    """Return the type for which ``take_dense`` is compiled: one of two, rather than one for every
    width.
    """
    return np.int32 if id_type == pa.int32() else np.int64


def compile_reading(id_type: pa.DataType) -> None:
    """Compile the kernels that ``dense_batches`` calls, and those that merge dictionaries."""
    if pa.types.is_integer(id_type):
        compile_kernels(ingest, ids=_taken_as(id_type))
    of_keys = ranges.find_ranges, ranges.sort_by_range
    compile_kernels(*([ranges] if is_string(id_type) else of_keys), load=False)


def compact(batches: Sequence[Batch], ids: Ids, present: NDArray[np.uint8]) -> Ids:
    """Renumber ids without gaps, in the batches too, if few ids of the domain occur. Returns the
    new ids.
    """
    used = np.flatnonzero(present)
    if ids.domain <= _SMALL_FACTOR * len(used) + _ALWAYS_DENSE:
        return ids
    place = np.cumsum(present, dtype=np.uint32) - np.uint32(1)
    for batch in batches:
        for column in batch[:2]:
            column[:] = place[column]
    return Ids(ids.id_type, len(used), as_arrow(used))


def read_encoded(
    edges: EdgeList, chunk: Chunk, rounding: Rounding | None = None, repeats: bool = False
) -> Iterator[tuple[Batch, pa.Array]]:
    """Read a chunk of ids of any type as places in dictionaries, and yield pieces.

    rounding: as in ``dense_batches``. repeats: whether a dictionary may have an id more than once,
    if that saves time: finding the few ids that repeat takes longer than merging them twice.

    A piece ends with the batch that brings it to ENCODE_ROWS rows or ENCODE_BYTES of strings.
    """
    held: list[tuple[pa.Array, pa.Array, NDArray[np.uint32]]] = []
    rows = size = 0
    for src, dst, bits in edges.weighted_batches(chunk, True, rounding):
        held.append((src, dst, bits))
        rows += len(src)
        size += _string_bytes(src) + _string_bytes(dst)
        if rows >= ENCODE_ROWS or size >= ENCODE_BYTES:
            piece = _encode(held, repeats)
            held, rows, size = [], 0, 0
            yield piece
    if held:
        yield _encode(held, repeats)


def _string_bytes(column: pa.Array) -> int:
    """Return the bytes of strings in a batch's column that count towards a piece; 0 for
    integers.
    """
    if not pa.types.is_dictionary(column.type):
        return 0
    ends = string_ends(column.dictionary)
    return int(ends[-1] - ends[0]) + STRING_BYTES * (len(ends) - 1)


def _encode(
    held: list[tuple[pa.Array, pa.Array, NDArray[np.uint32]]], repeats: bool
) -> tuple[Batch, pa.Array]:
    columns: list[pa.Array] = [src for src, _, _ in held] + [dst for _, dst, _ in held]
    rows = sum(len(part[0]) for part in held)
    bits = np.concatenate([part[2] for part in held])
    weights = (bits,) if len(bits) else ()
    if not pa.types.is_dictionary(columns[0].type):
        few = repeats and _few_repeat(columns[0][:_SAMPLE_ROWS], held[0][1][:_SAMPLE_ROWS])
        places, dictionary = _distinct(columns, few)
        return (places[:rows], places[rows:], *weights), dictionary
    few = repeats and _few_repeat(columns[0].dictionary, held[0][1].dictionary)
    place, dictionary = _distinct([column.dictionary for column in columns], few)
    places = np.empty(2 * rows, np.uint32)
    at = first = 0
    for column in columns:
        places[at : at + len(column)] = place[first:][as_numpy(column.indices)]
        at += len(column)
        first += len(column.dictionary)
    return (places[:rows], places[rows:], *weights), dictionary


def _few_repeat(src: pa.Array, dst: pa.Array) -> bool:
    """Return whether few ids of samples occur more than once."""
    sample = pa.concat_arrays([src, dst])
    return compute("count_distinct", sample).as_py() >= _FEW_REPEAT * len(sample)


def _distinct(parts: list[pa.Array], few_repeat: bool) -> tuple[NDArray[np.uint32], pa.Array]:
    """Return the places of ids in a dictionary of them, and the dictionary: the ids themselves if
    few repeat.
    """
    ids = pa.concat_arrays(parts)
    if few_repeat:
        return np.arange(len(ids), dtype=np.uint32), ids
    encoded = ids.dictionary_encode()
    return as_numpy(encoded.indices).astype(np.uint32), encoded.dictionary


def merge_dictionaries(
    dictionaries: Sequence[pa.Array], id_type: pa.DataType
) -> tuple[Ids, list[NDArray[np.uint32]]]:
    """Merge dictionaries into one that is sorted. Returns it, and the places of each dictionary's
    ids in it.
    """
    merged = pa.concat_arrays(list(dictionaries)).dictionary_encode()
    order = compute("sort_indices", merged.dictionary)
    place = np.empty(len(order), np.uint32)
    place[as_numpy(order)] = np.arange(len(order), dtype=np.uint32)
    places = place[as_numpy(merged.indices)]
    ends = np.cumsum([len(dictionary) for dictionary in dictionaries])
    ids = Ids(id_type, len(order), merged.dictionary.take(order))
    return ids, np.split(places, ends[:-1])


def translate(batch: Batch, places: NDArray[np.uint32]) -> Batch:
    """Return the dense ids of a piece that ``read_encoded`` has read. places: of its dictionary's
    ids.
    """
    src, dst, *weights = batch
    return places[src], places[dst], *weights
