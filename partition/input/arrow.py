"""Conversions between Arrow and NumPy, without copies and without pandas.

``pa.array``, ``to_numpy`` and ``to_pandas_dtype`` load pandas if it is installed. That takes a
quarter of a second, as long as a small search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

TEXT_BYTES = 1 << 24
"""Bytes of characters that are written at once, such as those of a row group of ids."""


def as_numpy(column: pa.Array | pa.ChunkedArray) -> NDArray:
    """Return the values of a column without nulls; read-only if that saves a copy. Binary of a
    fixed size becomes NumPy's void type of that size.

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


_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def numpy_type(kind: pa.DataType) -> np.dtype:
    """Return the NumPy type of a column of numbers, booleans, or binary of a fixed size.

    >>> numpy_type(pa.int32()), numpy_type(pa.float64()), numpy_type(pa.binary(16))
    (dtype('int32'), dtype('float64'), dtype('V16'))
    """
    if pa.types.is_fixed_size_binary(kind):
        return np.dtype((np.void, kind.byte_width))
    return np.dtype(_FLOATS.get(str(kind), str(kind)))


def compute(function: str, *arguments: Any, options: Any = None) -> Any:
    """Call one of Arrow's functions. The first call loads all of them, which takes as long as a
    small search.

    >>> compute("min_max", pa.array([3, 1, 2])).as_py()
    {'min': 1, 'max': 3}
    """
    import pyarrow.compute as pc

    return pc.call_function(function, list(arguments), options)


def load_functions() -> None:
    """Load Arrow's functions now, rather than at the first call: they take some memory."""
    compute("min_max", as_arrow(np.zeros(1, np.int64)))


def as_dictionary(column: pa.Array) -> pa.DictionaryArray:
    """Return strings as places (int32) in a dictionary (large_string) that has only strings that
    occur.

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
    """Return the start of each string of a large_string array in its characters, followed by the
    end of the last one.

    >>> string_ends(pa.array(["a", "bcd", "ef"], pa.large_string())[1:])
    array([1, 4, 6])
    """
    _, offsets, _ = strings.buffers()
    return np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)


def text_cuts(characters: NDArray[np.int64], most: int = TEXT_BYTES) -> list[int]:
    """Return the places at which to cut a sequence of strings, so that at most ``most`` bytes, or a
    single string, are between two cuts. characters: the bytes of each string.

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
    """Return a column of numbers, or of binary of a fixed size. It is null where ``null`` is set.

    >>> as_arrow(np.array([7, 8]), np.array([False, True])).to_pylist()
    [7, None]
    """
    values, length = np.ascontiguousarray(values), len(values)
    validity = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    is_void = values.dtype.kind == "V"
    kind = pa.binary(values.itemsize) if is_void else pa.from_numpy_dtype(values.dtype)
    values = values.view(np.uint8) if is_void else values  # a buffer type that Arrow knows
    return pa.Array.from_buffers(kind, length, [validity, pa.py_buffer(values)])


def strings(values: Sequence[str | None]) -> pa.Array:
    """Return a column of strings and nulls.

    >>> strings(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    texts = [(value or "").encode() for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    known = np.packbits([value is not None for value in values], bitorder="little")
    buffers = [pa.py_buffer(data) for data in (known, ends, b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of the values of a column that are not null.

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
    """Return the numbers of a column, with 0 for nulls, and a mask of the nulls; None if there are
    none.

    >>> numbers_and_nulls(pa.array([7, None], pa.uint32()))
    (array([7, 0], dtype=uint32), array([False,  True]))
    """
    if not column.null_count:
        return as_numpy(column), None
    null = ~valid(column)
    numbers = np.frombuffer(column.buffers()[1], numpy_type(column.type))
    return np.where(null, 0, numbers[column.offset :][: len(column)]), null
