"""Batches of edges from pairs: ``(u, v)`` or ``(u, v, weight)`` of any iterable, or a NumPy array
of the shape (m, 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from operator import index
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from ...partition.errors import InputError
from ...partition.numbers import shown

_AT_ONCE = 1 << 16
"""Pairs in a batch."""

_INTEGERS = int, np.integer
_FRACTIONS = float, np.floating, Decimal, Fraction
_NUMBERS = *_INTEGERS, *_FRACTIONS, np.bool_


def batches_of_array(array: Any, weighted: bool) -> Iterator[list[pa.Array]]:
    """Yield both columns of an array of ids.

    Raises InputError for an array of another shape or type, or if weights are asked for.
    """
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"the array has the shape {array.shape}: give an array of the shape (m, 2), with both "
            "ends of an edge in each row, or a table if edges have weights"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise InputError("the array is masked: leave out masked rows, and give array.data")
    if weighted:
        raise InputError(
            "an array of the shape (m, 2) has no weights: give a table, or leave out --weight"
        )
    if array.dtype.kind not in "iu":
        yield from batches_of_pairs(map(np.ndarray.tolist, array), False)
        return
    for first in range(0, len(array), _AT_ONCE):
        rows = np.asarray(array[first : first + _AT_ONCE])
        wide = np.uint64 if array.dtype == np.uint64 else np.int64
        yield [pa.array(np.ascontiguousarray(rows[:, end], wide)) for end in (0, 1)]


def batches_of_pairs(pairs: Iterable[Any], weighted: bool) -> Iterator[list[pa.Array]]:
    """Yield the ends of edges and, if ``weighted``, their weights.

    Raises InputError for an edge that is neither ``(u, v)`` nor ``(u, v, weight)``, or whose ends
    are neither all integers, nor all strings, nor all UUIDs.
    """
    iterator, first, length = iter(pairs), 0, 0
    while rows := list(islice(iterator, _AT_ONCE)):
        length = length or _length_of(rows[0], 0)
        if not _all_of(rows, (tuple, list)) or set(map(len, rows)) != {length}:
            raise _odd_row(rows, first, length)
        if weighted and length == 2:
            raise InputError(
                "the pairs have no weights: give (u, v, weight), or leave out --weight"
            )
        columns = list(zip(*rows, strict=True))
        ends = _ids(columns[0] + columns[1])
        arrays = [ends[: len(rows)], ends[len(rows) :]]
        if weighted:
            arrays.append(_weights(columns[2]))
        yield arrays
        first += len(rows)


def _all_of(values: Iterable[Any], kinds: tuple[type, ...], besides: tuple[type, ...] = ()) -> bool:
    """Return whether all values are of some types, and none is of the types ``besides``."""
    return all(
        issubclass(kind, kinds) and not issubclass(kind, besides) for kind in set(map(type, values))
    )


def _length_of(row: Any, number: int) -> int:
    if isinstance(row, (tuple, list)) and len(row) in (2, 3):
        return len(row)
    raise InputError(f"edge {number} is {shown(row)}: give (u, v) or (u, v, weight)")


def _odd_row(rows: Sequence[Any], first: int, length: int) -> InputError:
    """Return the error about the first row that is unlike the first edge."""
    number, row = next(
        (number, row) for number, row in enumerate(rows, first) if _length_of(row, number) != length
    )
    return InputError(f"edge {number} is {shown(row)}: the first edge has {length} parts")


def _ids(values: Sequence[Any]) -> pa.Array:
    """Return ids as an array of int64, uint64, strings or UUIDs."""
    if _all_of(values, (str,)):
        return pa.array(map(str, values), pa.string())
    if _all_of(values, (UUID,)):
        return pa.array([value.bytes for value in values], pa.uuid())
    if not _all_of(values, (str, *_INTEGERS), (bool,)):
        wrong = next(value for value in values if not _all_of([value], (str, *_INTEGERS), (bool,)))
        raise InputError(
            f"{shown(wrong)} ({type(wrong).__name__}) cannot be a vertex: ids must be all "
            "integers, all strings or all UUIDs"
        )
    if not _all_of(values, _INTEGERS):
        text = next(value for value in values if isinstance(value, str))
        number = next(value for value in values if not isinstance(value, str))
        raise InputError(
            "ids must be all integers, all strings or all UUIDs: there are both "
            f"{shown(text)} and {number}"
        )
    return _integers(list(map(index, values)), "all ids, which are from")


def _weights(values: Sequence[Any]) -> pa.Array:
    """Return weights as an array of int64, or of float64 if one is no integer."""
    if not _all_of(values, _NUMBERS):
        wrong = next(value for value in values if not isinstance(value, _NUMBERS))
        raise InputError(f"the weight {shown(wrong)} is no number")
    if not _all_of(values, _NUMBERS, _FRACTIONS):
        return pa.array(map(float, values), pa.float64())
    return _integers(list(map(int, values)), "all weights, which are from")


def _integers(values: list[int], what: str) -> pa.Array:
    """Return an array of int64, or of uint64 if the values need it."""
    least, most = min(values), max(values)
    if least >= -(2**63) and most < 2**63:
        return pa.array(values, pa.int64())
    if least >= 0 and most < 2**64:
        return pa.array(values, pa.uint64())
    raise InputError(f"no integer type of 64 bits holds {what} {shown(least)} to {shown(most)}")
