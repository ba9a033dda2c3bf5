"""Facts about ids in a Parquet footer: how many there are, the least and the greatest.

The footer's bytes are parsed here: structs in Thrift's compact protocol, whose fields have the
numbers of parquet.thrift. (PyArrow's ``ColumnChunkMetaData`` also decodes a chunk's statistics and
size histograms, and ends the process if one of these is damaged.)
"""

from __future__ import annotations

from itertools import pairwise

from ..errors import InputError
from .thrift import Fields, read_struct

_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4  # _ROWS: in a file, and in a row group
_REPETITION, _CHILDREN = 3, 5  # in a column of the schema
_COLUMNS, _META_DATA = 1, 3
_TYPE, _PATH, _VALUES, _BYTES, _DATA, _DICTIONARY, _STATISTICS, _SIZES = 1, 3, 5, 7, 9, 11, 12, 16
_OLD_MAX, _OLD_MIN, _MAX, _MIN = 1, 2, 5, 6
_STRING_BYTES, _REPEATED, _DEFINED = 1, 2, 3  # histograms of how often a value is there
_OPTIONAL, _STRING = 1, 6
_ENCODINGS, _CODEC = 2, 4
_CODECS, _KNOWN_ENCODINGS = 8, set(range(10)) - {1}


def extremes(name: str, footer: bytes, columns: dict[str, bool | None]) -> list[int] | None:
    """Return the least and the greatest id of each column chunk, in one list; None if any
    statistics lack one.

    columns: by column, whether it holds signed integers; None for strings, whose statistics are
    ignored. Raises InputError, which names the file, for a footer that is damaged or contradicts
    itself.
    """
    try:
        file, _ = read_struct(footer, 0)
        groups = file.get(_ROW_GROUPS, [])
        below_root = file[_SCHEMA][1:]  # empty if there are no columns
        leaves = [column for column in below_root if not column.get(_CHILDREN)]
        chunks = [_chunks(group, leaves, columns) for group in groups]
        wrong = _contradiction(file, groups, chunks)
        found = [
            bound
            for group, group_chunks in zip(groups, chunks, strict=True)
            for column, chunk in group_chunks.items()
            if group[_ROWS]
            for bound in _bounds(chunk.get(_STATISTICS, {}), columns[column])
        ]
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{name}: its footer is damaged; write the file again") from error
    if wrong:
        raise InputError(f"{name}: {wrong}: its footer is damaged; write the file again")
    known = [bound for bound in found if bound is not None]
    return known if len(known) == len(found) else None


def _contradiction(
    file: Fields, groups: list[Fields], chunks: list[dict[str, Fields]]
) -> str | None:
    """Describe the first contradiction in a footer; None if there is none."""
    rows = [group[_ROWS] for group in groups]
    for number, group_chunks in enumerate(chunks):
        for column, chunk in group_chunks.items():
            if not 0 <= rows[number] == chunk[_VALUES]:
                return (
                    f"row group {number} has {rows[number]:,} rows, but {chunk[_VALUES]:,} values "
                    f"in column {column!r}"
                )
    if file[_ROWS] != sum(rows):
        return f"{file[_ROWS]:,} rows, but {sum(rows):,} rows in its row groups"
    return "two columns overlap" if _overlap(groups) else None


def _overlap(groups: list[Fields]) -> bool:
    """Return whether two chunks share bytes: a damaged offset may lead to another column."""
    ranges = []
    for group in groups:
        for chunk in group[_COLUMNS]:
            if group[_ROWS] and (chunk := chunk.get(_META_DATA)):  # no metadata: encrypted
                first = chunk[_DATA]
                if 0 < chunk.get(_DICTIONARY, 0) < first:
                    first = chunk[_DICTIONARY]
                ranges.append((first, first + chunk[_BYTES]))
    ranges.sort()
    return any(stop > start for (_, stop), (start, _) in pairwise(ranges))


def _chunks(
    group: Fields, leaves: list[Fields], columns: dict[str, bool | None]
) -> dict[str, Fields]:
    """Return the metadata of the named columns' chunks in a row group.

    leaves: the columns of the schema. Raises LookupError or ValueError if metadata are missing or
    damaged.
    """
    chunks = {}
    for leaf, chunk in zip(leaves, group[_COLUMNS], strict=True):
        chunk = chunk.get(_META_DATA, {})
        path = chunk.get(_PATH, [])
        if len(path) == 1 and (name := path[0].decode()) in columns:
            _check_known(chunk)
            _check_sizes(chunk, leaf)
            chunks[name] = chunk
    return {column: chunks[column] for column in columns}


def _check_known(chunk: Fields) -> None:
    """Raise ValueError for an unknown codec or encoding, at which PyArrow would end the process."""
    if chunk[_CODEC] not in range(_CODECS) or not set(chunk[_ENCODINGS]) <= _KNOWN_ENCODINGS:
        raise ValueError("a codec or an encoding that is none")


def _check_sizes(chunk: Fields, leaf: Fields) -> None:
    """Raise ValueError for histograms at which PyArrow would end the process."""
    sizes = chunk.get(_SIZES, {})
    levels = 2 if leaf.get(_REPETITION) == _OPTIONAL else 1
    if (
        len(sizes.get(_DEFINED, [])) not in (0, levels)
        or len(sizes.get(_REPEATED, [])) not in (0, 1)
        or (_STRING_BYTES in sizes and chunk[_TYPE] != _STRING)
    ):
        raise ValueError("histograms of another size")


def _bounds(statistics: Fields, signed: bool | None) -> list[int | None]:
    if signed is None:
        return [None]
    least, most = statistics.get(_MIN), statistics.get(_MAX)
    if signed and (least is None or most is None):  # old fields, which compare as signed
        least, most = statistics.get(_OLD_MIN), statistics.get(_OLD_MAX)
    return [
        int.from_bytes(value, "little", signed=signed) if value is not None else None
        for value in (least, most)
    ]
