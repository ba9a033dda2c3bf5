"""Weights of edges: from a column of numbers to 32 bits each.

A weight is a 32-bit float or a 32-bit unsigned integer, and is not negative, so the bits of either
kind rise with the weight. All code before the store moves and compares bits. The changes of 64-bit
floats by rounding are counted while they are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError
from .arrow import as_numpy, compute
from .id_types import cast

WeightType = Literal["float32", "uint32"]
"""Types of a store's weights: float32 for columns of floats, uint32 for columns of integers."""

Duplicates = Literal["min", "max", "sum"]
"""The rule that combines the weights of rows with the same edge."""

LoopsChoice = Literal["drop", "keep"]
"""The choice between dropping self-loops and keeping, for each vertex, the weight of its own."""

NO_WEIGHTS = np.empty(0, np.uint32)
MOST = (1 << 32) - 1
"""The greatest integer weight."""

_MOST_FLOAT = np.finfo(np.float32).max

_ROWS_AT_ONCE = 1 << 14
"""Number of rows whose changes are computed at once, in the cache."""


class Weight(NamedTuple):
    """A column of weights, and the type that holds all of them."""

    column: str
    kind: WeightType


@dataclass
class Rounding:
    """Changes of weights by rounding. rounded: the number of rows whose weight 32 bits do not hold
    exactly. greatest_change: the greatest change of one weight, as a share of the weight.
    """

    rounded: int = 0
    greatest_change: float = 0.0

    def include(self, rounded: int, greatest_change: float) -> None:
        self.rounded += rounded
        self.greatest_change = max(self.greatest_change, greatest_change)

    def as_tuple(self) -> tuple[int, float]:
        """Return the counts as a tuple, which a task can return and a journal can hold."""
        return self.rounded, self.greatest_change


def total_rounding(parts: Iterable[tuple[int, float]]) -> Rounding:
    """Return the rounding of all rows. parts: ``Rounding.as_tuple`` of parts of the rows, in any
    order.

    >>> total_rounding([(2, 1e-8), (1, 5e-8)])
    Rounding(rounded=3, greatest_change=5e-08)
    """
    total = Rounding()
    for part in parts:
        total.include(*part)
    return total


def weight_type_of(name: str, schema: pa.Schema, column: str) -> WeightType:
    """Return the type of a file's weights. Raises InputError if the file has no such column, or one
    that holds no numbers.
    """
    if schema.names.count(column) != 1:
        found = "two columns" if column in schema.names else "no column"
        raise InputError(
            f"{name}: {found} named {column!r} for weights; it has {', '.join(schema.names)}"
        )
    kind = schema.field(column).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.scale > 0):
        return "float32"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return "uint32"
    raise InputError(
        f"{name}: column {column!r} is {kind}, but weights must be numbers or booleans; "
        f"{cast(column, 'DOUBLE', 'float64')}"
    )


def bits_of(
    column: pa.Array, kind: WeightType, where: str, rounding: Rounding | None = None
) -> NDArray[np.uint32]:
    """Return the bits of weights. where: the column and its place, for messages. rounding: receives
    the changes by rounding to 32 bits. Raises InputError for nulls, and for weights that 32 bits
    cannot hold.
    """
    if column.null_count:
        raise InputError(f"{where} holds nulls: every row needs a weight; leave such rows out")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
        column = _as_numbers(column, kind, where)
    if kind == "uint32":
        integers = as_numpy(column)
        fits = (integers >= 0) & (integers <= MOST)
        _check(column, fits, f"{where}: integer weights must be from 0 to {MOST:,}")
        return integers.astype(np.uint32)
    values = as_numpy(column.cast(pa.float32(), safe=False)) + np.float32(0)  # -0.0 becomes 0.0
    given = values
    if pa.types.is_float64(column.type):
        given = as_numpy(column)
    elif pa.types.is_integer(column.type):  # other files have floats
        given = as_numpy(column).astype(np.longdouble)  # holds 64 bits exactly
    if given is not values:
        _add_changes(given, values, where, rounding or Rounding())
    fits = np.isfinite(values) & (given >= 0)
    _check(column, fits, f"{where}: weights must be numbers from 0 to {_MOST_FLOAT:.2g}")
    return values.view(np.uint32)


def _add_changes(
    given: NDArray[np.floating], kept: NDArray[np.float32], where: str, rounding: Rounding
) -> None:
    """Add the changes by rounding. Raises InputError for a finite weight that would become infinite
    in 32 bits, or a positive one that would become 0: its edge would have no length, or no walk
    would follow it.
    """
    for first in range(0, len(given), _ROWS_AT_ONCE):
        original, rounded = (
            given[first : first + _ROWS_AT_ONCE],
            kept[first : first + _ROWS_AT_ONCE],
        )
        changed = rounded != original
        count = int(np.count_nonzero(changed))
        if not count:
            continue
        original, rounded = original[changed], rounded[changed]
        if not (original > 0).all():
            return  # the caller refuses values that are no weights
        change = float((np.abs(rounded - original) / original).max())
        if change >= 1:  # a weight has become 0, or infinite
            lost = float(original[np.argmax((rounded == 0) | np.isinf(rounded))])
            raise InputError(f"{where}: {_lost(lost)}")
        rounding.include(count, change)


def _lost(weight: float) -> str:
    """Return the message about a weight that 32 bits cannot hold, with advice."""
    became, digits = ("0", -37) if weight < 1 else ("infinite", 37)
    scale = 10.0 ** min(300, digits - math.floor(math.log10(weight)))
    return (
        f"the weight {weight!r} would become {became} in 32 bits: multiply all weights, for "
        f"example by {scale:.0e}"
    )


def _as_numbers(column: pa.Array, kind: WeightType, where: str) -> pa.Array:
    """Return decimals, and booleans as 1 and 0, as integers or floats."""
    if pa.types.is_boolean(column.type):
        return column.cast(pa.uint8())
    if column.type.bit_width < 128:  # Arrow fails to cast these to a type of more digits
        column = column.cast(pa.decimal128(38, column.type.scale))
    if kind == "float32":
        return column.cast(pa.float64())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        least, most = compute("min_max", column).as_py().values()
        wrong = least if least < 0 else most
        raise InputError(
            f"{where}: integer weights must be from 0 to {MOST:,}, not {wrong}"
        ) from error


def _check(column: pa.Array, fits: NDArray[np.bool_], message: str) -> None:
    if not fits.all():
        raise InputError(f"{message}, not {column[int(np.argmin(fits))].as_py()}")
