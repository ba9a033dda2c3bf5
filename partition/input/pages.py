"""Bounds on the bytes that reading a column of Parquet holds, from the footer and the headers of
its pages.

Arrow decompresses a column page by page, each page whole, and the strings of a batch are bounded by
the pages that it overlaps. The header of each page has its size and its number of values. Small
column chunks are bounded by their sizes in the footer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..disk.remote import buffer_bytes, open_file, source_of
from .arrow import string_ends
from .thrift import read_struct

BATCH_BYTES = 1 << 22
"""Approximate bytes of a column's strings in a batch, if strings have equal lengths."""

STRING_BYTES = 24
"""Bytes of a string beside its characters: offsets, and its place in a hash table."""

_LEAST_ROWS = 1 << 12
_SMALL = 1 << 21  # bytes of a column chunk whose page headers need not be read
_HEADER = 1 << 10  # bytes of a page's header, unless it has long statistics
_BY_DICTIONARY = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_UNFOLDS = 16  # bound on the growth of strings whose pages omit shared prefixes


class Reading(NamedTuple):
    """Bytes of reading. held: most for a row group, held by Arrow for both columns, beyond a batch
    of integers. batch: most for a row group, of a batch's strings in both columns, with
    STRING_BYTES each. texts: in all, the characters of every batch's distinct strings. distinct: in
    all, the characters of all strings, each once.
    """

    held: int = 0
    batch: int = 0
    texts: int = 0
    distinct: int = 0


class Page(NamedTuple):
    """Facts in a page's header. values: number of values; 0 for a dictionary. packed, unpacked:
    bytes. plain: whether the page holds values, rather than places in a dictionary.
    """

    values: int
    packed: int
    unpacked: int
    plain: bool


def column_chunks(
    metadata: pq.FileMetaData, group: int, names: Sequence[str]
) -> list[pq.ColumnChunkMetaData]:
    """Return the chunks of the named columns in a row group."""
    schema, row_group = metadata.schema, metadata.row_group(group)
    # (Other columns are not examined: PyArrow ends the process if they are damaged.)
    places = [i for i in range(metadata.num_columns) if schema.column(i).path in names]
    return [row_group.column(i) for i in places]


def first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the position of a chunk's first page in the file."""
    if not chunk.dictionary_page_offset:  # None, or 0 from some writers
        return chunk.data_page_offset
    return min(chunk.data_page_offset, chunk.dictionary_page_offset)


class Way(NamedTuple):
    """The way a column chunk is read. rows: the most rows at once. coded: whether strings are read
    as places in a dictionary that Arrow keeps for the row group; if not, they are read as strings.
    reading: the bytes held.
    """

    rows: int
    coded: bool
    reading: Reading


def reading_of(path: str, metadata: pq.FileMetaData, names: Sequence[str], most: int) -> Reading:
    """Return the bytes that reading a file holds. most: rows of a batch."""
    held = batch = texts = distinct = 0
    with open_file(path) as file:
        for group in range(metadata.num_row_groups):
            if not metadata.row_group(group).num_rows:
                continue
            chunks = column_chunks(metadata, group, names)
            readings = [way_of(file, metadata, group, chunk, most).reading for chunk in chunks]
            held = max(held, sum(reading.held for reading in readings))
            batch = max(batch, sum(reading.batch for reading in readings))
            texts += sum(reading.texts for reading in readings)
            distinct += sum(reading.distinct for reading in readings)
    return Reading(held + buffer_bytes(path, len(names)), batch, texts, distinct)


def reading_by_footer(path: str, metadata: pq.FileMetaData, names: Sequence[str]) -> Reading:
    """Return a bound on the bytes that reading a file of integers holds, as if each column chunk
    were one page.
    """
    held = 0
    for group in range(metadata.num_row_groups):
        chunks = column_chunks(metadata, group, names)
        held = max(held, sum(_whole(chunk).held for chunk in chunks))
    return Reading(held + buffer_bytes(path, len(names)))


def _whole(chunk: pq.ColumnChunkMetaData) -> Reading:
    """Return a bound on the bytes that reading a chunk of integers holds, without knowing its
    pages.
    """
    has_dictionary = any("DICTIONARY" in encoding for encoding in chunk.encodings)
    dictionary = 2 * _bytes(chunk) if has_dictionary else 0
    return Reading(held=_bytes(chunk) + chunk.total_compressed_size + dictionary)


def rows_at_once(
    path: str,
    metadata: pq.FileMetaData,
    group: int,
    names: Sequence[str],
    most: int,
) -> int:
    """Return the number of rows that are read in one batch from a row group."""
    with open_file(path) as file:
        chunks = column_chunks(metadata, group, names)
        return min(way_of(file, metadata, group, chunk, most).rows for chunk in chunks)


def way_of(
    file: BinaryIO,
    metadata: pq.FileMetaData,
    group: int,
    chunk: pq.ColumnChunkMetaData,
    most: int,
) -> Way:
    """Return how a column chunk is read. most: rows of a batch of integers, or of short strings."""
    size, packed = _bytes(chunk), chunk.compression != "UNCOMPRESSED"
    pages = _pages_of(file, chunk) if size + chunk.total_compressed_size > _SMALL else []
    if not pages and not _is_text(chunk):
        return Way(most, False, _whole(chunk))
    largest = max(
        (page.packed * packed + page.unpacked for page in pages),
        default=size + chunk.total_compressed_size,
    )
    dictionary = sum(page.unpacked for page in pages if not page.values) if pages else size
    if not _is_text(chunk):
        return Way(most, False, Reading(held=largest + 2 * dictionary))
    can_be_coded = set(chunk.encodings) <= _BY_DICTIONARY
    if not can_be_coded or chunk.dictionary_page_offset is None:
        dictionary = 0
    # If pages of places and of strings mix, many rows may have the same long string.
    mixed = any(page.plain for page in pages)
    longest = 0
    if mixed and dictionary:
        longest = _longest(file.name, metadata, group, chunk.path_in_schema, pages)
    mean = size // max(1, chunk.num_values)
    rows = max(_LEAST_ROWS, BATCH_BYTES // (max(mean, longest // 4) + 8))
    rows = min(most, 1 << (rows.bit_length() - 1))  # smaller batches lie within these
    plain = size
    if pages:
        plain = _most_in_a_batch(pages, rows) * (_UNFOLDS if _leaves_out_prefixes(chunk) else 1)
    unpacked = plain + rows * longest
    coded = can_be_coded and (not mixed or size <= max(unpacked, BATCH_BYTES))
    strings = STRING_BYTES * min(rows, chunk.num_values)
    # Arrow's hash table of strings, the strings, and the copy of them that it returns.
    held = largest + 5 * ((size if mixed else plain + dictionary) if coded else unpacked)
    batches = -(-chunk.num_values // rows)
    return Way(
        rows,
        coded,
        Reading(
            held + 3 * strings,
            plain + dictionary + strings,
            size + dictionary * (batches - 1),
            size,
        ),
    )


def _longest(
    path: str, metadata: pq.FileMetaData, group: int, name: str, pages: Sequence[Page]
) -> int:
    """Return the bytes of the longest string of a dictionary; if reading it fails, the bytes of the
    whole dictionary.
    """
    whole = sum(page.unpacked for page in pages if not page.values)
    if pages[0].values or pages[1].plain:
        return whole
    try:
        with pq.ParquetFile(
            source_of(path),
            metadata=metadata,
            read_dictionary=[name],
            buffer_size=1 << 20,
            pre_buffer=False,
        ) as file:
            # Reading the first row reads the whole dictionary.
            batches = file.iter_batches(1, row_groups=[group], columns=[name], use_threads=False)
            strings = next(batches).column(0).dictionary.cast(pa.large_string())
    except (pa.ArrowException, OSError, StopIteration):
        return whole
    return int(np.diff(string_ends(strings)).max())


def _bytes(chunk: pq.ColumnChunkMetaData) -> int:
    """Return a bound on the bytes of a chunk's values, uncompressed."""
    return chunk.total_uncompressed_size * (_UNFOLDS if _leaves_out_prefixes(chunk) else 1)


def _is_text(chunk: pq.ColumnChunkMetaData) -> bool:
    return chunk.physical_type == "BYTE_ARRAY"


def _leaves_out_prefixes(chunk: pq.ColumnChunkMetaData) -> bool:
    return "DELTA_BYTE_ARRAY" in chunk.encodings


def _most_in_a_batch(pages: Sequence[Page], rows: int) -> int:
    """Return the most bytes of plain pages that overlap a batch of ``rows`` rows, over all batches
    that begin at a multiple of ``rows``.
    """
    values = np.array([page.values for page in pages], np.int64)
    sizes = np.array([page.unpacked if page.plain else 0 for page in pages], np.int64)
    ends = np.cumsum(values)
    change = np.zeros(int(ends[-1]) // rows + 2, np.int64)
    np.add.at(change, (ends - values) // rows, sizes)
    np.add.at(change, np.maximum(ends - 1, 0) // rows + 1, -sizes)
    return int(np.cumsum(change).max())


def _pages_of(file: BinaryIO, chunk: pq.ColumnChunkMetaData) -> list[Page]:
    """Return the pages of a chunk from their headers; an empty list if a header cannot be read.
    Reading the data will then report the error.
    """
    at = first_page(chunk)
    end = at + chunk.total_compressed_size
    pages = []
    try:
        while at < end:
            fields, length = _header(file, at)
            about = fields.get(5) or fields.get(8) or {}
            plain = about.get(2 if 5 in fields else 4) not in (2, 8)
            pages.append(Page(about.get(1, 0), fields[3], fields[2], bool(about) and plain))
            if min(pages[-1][:3]) < 0:
                return []
            at += length + fields[3]
    except (LookupError, ValueError, OSError):
        return []
    return pages if sum(page.values for page in pages) == chunk.num_values else []


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a page's header by number, and the header's length."""
    size = _HEADER
    while True:
        file.seek(at)
        data = file.read(size)
        try:
            return read_struct(data, 0)
        except IndexError:
            if len(data) < size:
                raise
            size *= 16


def of_all(readings: Iterator[Reading]) -> Reading:
    """Combine the readings of several files into one."""
    held, batch, texts, distinct = zip(*readings, strict=True)
    return Reading(max(held), max(batch), sum(texts), sum(distinct))
