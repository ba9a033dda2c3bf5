"""Between Arrow and NumPy without a copy and without pandas.

``pa.array`` and ``to_numpy`` load pandas wherever it is installed: a quarter of a second, as
long as a small search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

TEXT_BYTES = 1 << 24
"""Of characters that are written at once: those of a row group of ids."""


def as_numpy(column: pa.Array | pa.ChunkedArray) -> NDArray:
    """The numbers of a column without nulls; read-only where that saves a copy. Binary of a fixed
    size comes as NumPy's type of so many bytes.

    >>> as_numpy(pa.array([1, 2], pa.uint32()))
    array([1, 2], dtype=uint32)
    >>> as_numpy(pa.array([bytes(16)], pa.binary(16))).dtype
    dtype('V16')
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            parts = [np.empty(0, numpy_type(column.type)), *map(as_numpy, column.chunks)]
            return np.concatenate(parts)
        column = column.chunk(0)
    if pa.types.is_fixed_size_binary(column.type):
        values = np.frombuffer(column.buffers()[1] or b"", numpy_type(column.type))
        return values[column.offset : column.offset + len(column)]
    return np.from_dlpack(column)


def numpy_type(kind: pa.DataType) -> np.dtype:
    """That a column's values have in NumPy.

    >>> numpy_type(pa.int32()), numpy_type(pa.binary(16))
    (dtype('int32'), dtype('V16'))
    """
    if pa.types.is_fixed_size_binary(kind):
        return np.dtype((np.void, kind.byte_width))
    return np.dtype(kind.to_pandas_dtype())


def compute(function: str, *arguments: Any, options: Any = None) -> Any:
    """Call one of Arrow's functions. All are loaded at the first call, which takes as long as a
    small search.

    >>> compute("min_max", pa.array([3, 1, 2])).as_py()
    {'min': 1, 'max': 3}
    """
    import pyarrow.compute as pc

    return pc.call_function(function, list(arguments), options)


def load_functions() -> None:
    """Now, rather than with the first call: they take 45 MB."""
    compute("min_max", pa.array([0]))


def as_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Strings as places (int32) in a dictionary (large_string) of those that occur.

    >>> as_dictionary(pa.array(["b", "a", "b"]).dictionary_encode()[1:]).dictionary.to_pylist()
    ['b', 'a']
    """
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.large_string()).dictionary_encode()
    places = as_numpy(column.indices).astype(np.int32, copy=False)
    strings = column.dictionary.cast(pa.large_string())
    used = np.zeros(len(strings), np.bool_)
    used[places] = True
    if not used.all():
        places = (np.cumsum(used, dtype=np.int32) - np.int32(1))[places]
        strings = strings.take(as_arrow(np.flatnonzero(used)))
    return pa.DictionaryArray.from_arrays(as_arrow(places), strings)


def string_ends(strings: pa.Array) -> NDArray[np.int64]:
    """Where the strings of a large_string array begin in its characters, and where the last ends.

    >>> string_ends(pa.array(["a", "bcd", "ef"], pa.large_string())[1:])
    array([1, 4, 6])
    """
    _, offsets, _ = strings.buffers()
    return np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)


def text_cuts(characters: NDArray[np.int64], most: int = TEXT_BYTES) -> list[int]:
    """Where to cut strings of so many bytes each: ``most`` between two cuts, or one string.

    >>> text_cuts(np.array([TEXT_BYTES - 1, 1, 1, 2 * TEXT_BYTES, 5]))
    [0, 2, 3, 4, 5]
    """
    ends = np.cumsum(characters)
    cuts = [0]
    while cuts[-1] < len(ends):
        before = ends[cuts[-1] - 1] if cuts[-1] else 0
        fitting = int(np.searchsorted(ends, before + most, side="right"))
        cuts.append(max(cuts[-1] + 1, fitting))
    return cuts


def as_arrow(values: NDArray, null: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of numbers, or of so many bytes each, null where ``null`` is set.

    >>> as_arrow(np.array([7, 8]), np.array([False, True])).to_pylist()
    [7, None]
    """
    values, length = np.ascontiguousarray(values), len(values)
    validity = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    is_void = values.dtype.kind == "V"
    kind = pa.binary(values.itemsize) if is_void else pa.from_numpy_dtype(values.dtype)
    values = values.view(np.uint8) if is_void else values  # a buffer of which Arrow knows the type
    return pa.Array.from_buffers(kind, length, [validity, pa.py_buffer(values)])


def strings(values: Sequence[str | None]) -> pa.Array:
    """A column of strings and nulls.

    >>> strings(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    texts = [(value or "").encode() for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    known = np.packbits([value is not None for value in values], bitorder="little")
    buffers = [pa.py_buffer(data) for data in (known, ends, b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Where a column is not null.

    >>> valid(pa.array([1, None, 3]))
    array([ True, False,  True])
    """
    stored = column.buffers()[0]
    if stored is None:
        return np.full(len(column), not pa.types.is_null(column.type))
    last = column.offset + len(column)
    bits = np.unpackbits(np.frombuffer(stored, np.uint8), count=last, bitorder="little")
    return bits[column.offset :].view(np.bool_)


def numbers_and_nulls(column: pa.Array) -> tuple[NDArray, NDArray[np.bool_] | None]:
    """The numbers of a column, 0 where it is null; and where it is, None for nowhere.

    >>> numbers_and_nulls(pa.array([7, None], pa.uint32()))
    (array([7, 0], dtype=uint32), array([False,  True]))
    """
    if not column.null_count:
        return as_numpy(column), None
    null = ~valid(column)
    numbers = np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())
    return np.where(null, 0, numbers[column.offset :][: len(column)]), null
