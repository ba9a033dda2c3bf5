"""Weights of edges: from a column of numbers to 32 bits each.

A weight is a float of 32 bits or an unsigned integer of as many, and not negative: the bits of
either kind rise with the weight. All that lies before the store moves and compares bits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError
from .arrow import as_numpy

WeightType = Literal["float32", "uint32"]
"""Of a store's weights: of columns of floats, and of integers."""

Duplicates = Literal["min", "max", "sum"]
"""How the weights of rows that are the same edge are combined."""

NO_WEIGHTS = np.empty(0, np.uint32)
MOST = (1 << 32) - 1
"""The greatest weight that is an integer."""


class Weight(NamedTuple):
    """A column of weights, and what all of them can be."""

    column: str
    kind: WeightType


def weight_type_of(name: str, schema: pa.Schema, column: str) -> WeightType:
    """InputError where a file has no such column, or one of something else."""
    if schema.names.count(column) != 1:
        found = "two columns" if column in schema.names else "no column"
        raise InputError(
            f"{name}: {found} named {column!r} for weights; it has {', '.join(schema.names)}"
        )
    kind = schema.field(column).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_floating(kind):
        return "float32"
    if pa.types.is_integer(kind):
        return "uint32"
    raise InputError(f"{name}: column {column!r} is {kind}; weights are floats or integers")


def bits_of(column: pa.Array, kind: WeightType, where: str) -> NDArray[np.uint32]:
    """The bits of some weights. where: the column and its place, for the InputError."""
    if column.null_count:
        raise InputError(f"{where}: holds nulls: every row needs a weight; leave such rows out")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == "uint32":
        integers = as_numpy(column)
        fits = (integers >= 0) & (integers <= MOST)
        _check(column, fits, f"{where}: weights that are integers lie between 0 and {MOST:,}")
        return integers.astype(np.uint32)
    values = as_numpy(column.cast(pa.float32(), safe=False)) + np.float32(0)  # of -0.0 too
    fits = np.isfinite(values) & (values >= 0)
    _check(column, fits, f"{where}: weights are numbers from 0 to {np.finfo(np.float32).max:.2g}")
    return values.view(np.uint32)


def _check(column: pa.Array, fits: NDArray[np.bool_], message: str) -> None:
    if not fits.all():
        raise InputError(f"{message}, not {column[int(np.argmin(fits))].as_py()}")
