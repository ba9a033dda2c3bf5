"""Batches of edges from a sparse matrix of SciPy: a stored entry (i, j) is an edge from i to j.

Rows and columns in CSR and CSC are written out batch by batch; no whole copy is made. A vertex
whose row and column have no entry is marked by a self-loop, as in all edge lists. Where self-loops
are kept, that loop has the weight 0, which makes it none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.errors import InputError

_AT_ONCE = 1 << 18
"""Entries in a batch."""

_FILLED = "bsr", "dia"
"""Formats that store zeros between entries, so a zero in them is no entry."""


def batches_of_matrix(matrix: Any, weighted: bool, ones: bool = False) -> Iterator[list[pa.Array]]:
    """Yield rows, columns and, if ``weighted``, values of a matrix's entries. ones: entries have
    the weight 1, whatever their values, and the self-loops of vertices without entries 0.

    Raises InputError unless the matrix is square, and its values are numbers if they are weights.
    """
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"the sparse matrix has the shape {shape}: an adjacency matrix is square, with a row "
            "and a column for each vertex"
        )
    if weighted and matrix.dtype.kind not in "buif":
        raise InputError(f"the sparse matrix holds {matrix.dtype}: weights must be real numbers")
    alone = np.ones(shape[0], np.bool_)
    kind = np.dtype(np.int64) if ones else matrix.dtype
    for rows, columns, values in _entries(matrix):
        alone[rows] = alone[columns] = False
        values = np.ones(len(rows), kind) if ones else values
        yield _batch(rows, columns, values if weighted or ones else None)
    lone = np.flatnonzero(alone)
    for first in range(0, len(lone), _AT_ONCE):
        vertices = lone[first : first + _AT_ONCE]
        none = np.zeros(len(vertices), kind)
        yield _batch(vertices, vertices, none if weighted or ones else None)


def _entries(matrix: Any) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
    """Yield rows, columns and values of entries."""
    if matrix.format in ("csr", "csc"):
        for first in range(0, int(matrix.indptr[-1]), _AT_ONCE):
            last = min(first + _AT_ONCE, int(matrix.indptr[-1]))
            major = np.searchsorted(matrix.indptr, np.arange(first, last), "right") - 1
            minor, values = matrix.indices[first:last], matrix.data[first:last]
            rows, columns = (major, minor) if matrix.format == "csr" else (minor, major)
            yield rows, columns, values
        return
    entries = matrix.tocoo(copy=False)
    for first in range(0, len(entries.data), _AT_ONCE):
        span = slice(first, first + _AT_ONCE)
        rows, columns, values = entries.row[span], entries.col[span], entries.data[span]
        if matrix.format in _FILLED:
            kept = values != 0
            rows, columns, values = rows[kept], columns[kept], values[kept]
        yield rows, columns, values


def _batch(rows: NDArray, columns: NDArray, values: NDArray | None) -> list[pa.Array]:
    ends = [pa.array(end.astype(np.int64)) for end in (rows, columns)]
    if values is None:
        return ends
    wide = values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8)
    return [*ends, pa.array(values.astype(np.float64) if wide else values)]
