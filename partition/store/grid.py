"""A grid of partitions: where the layouts 2d and 1d store an edge. Pure arithmetic.

In a grid of R x C partitions, partition p is in grid row p div C and grid column p mod C. A vertex
with global id v belongs to partition v mod P, as in every layout, and so to that partition's row
and column. An edge is stored in the column of its source and the row of its target (Bisson,
Bernaschi, Mastrostefano: Parallel Distributed Breadth First Search on the Kepler Architecture,
section 2.2; there vertices are dealt out in blocks), as an entry of a CSR:

| | is | numbers up to about |
|---|---|---|
| its CSR row | the place of its source among the vertices of the grid column | n / C |
| its target | the place of its target among the vertices of the grid row | n / R |

``1d`` is the grid of one row: a partition has all edges that leave its own vertices, and targets
are global ids. One partition, ``csr``, is the grid of one row and one column.

For steps against the direction of edges, the store also needs each vertex's incoming edges. For a
directed graph they are a second CSR, ``reverse-nn``, with all edges reversed. For an undirected
graph the CSR ``nn`` already has them. In the reversed CSR, the vertices of a partition's grid
column are the targets of edges, and those of its grid row the sources.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, Literal, NamedTuple

from ...kernels.base.numbering import Numbering, by_rule
from ..errors import InputError
from ..numbers import parse_integer, shown

_LONGEST_SIDE = 10**9
"""Most rows or columns of a grid that is parsed. The number of partitions has another limit
(layout.py).
"""

LayoutName = Literal["delegate", "2d", "1d"]


class Grid(NamedTuple):
    """A grid of partitions. rows, columns: R and C.

    >>> grid = Grid(2, 3)
    >>> [[grid.partition(row, column) for column in range(3)] for row in range(2)]
    [[0, 1, 2], [3, 4, 5]]
    """

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"

    @property
    def partitions(self) -> int:
        return self.rows * self.columns

    def partition(self, row: int, column: int) -> int:
        return row * self.columns + column

    def row(self, v: int) -> int:
        """Return the grid row of a vertex or a partition.

        >>> [Grid(2, 3).row(v) for v in range(8)]
        [0, 0, 0, 1, 1, 1, 0, 0]
        """
        return v // self.columns % self.rows

    def column(self, v: int) -> int:
        """Return the grid column of a vertex or a partition.

        >>> [Grid(2, 3).column(v) for v in range(8)]
        [0, 1, 2, 0, 1, 2, 0, 1]
        """
        return v % self.columns

    def in_row(self, v: Any) -> Any:
        """Return the place of a vertex among those of its grid row, for an int or an array.

        >>> [(v, Grid(2, 3).in_row(v)) for v in range(12) if Grid(2, 3).row(v) == 1]
        [(3, 0), (4, 1), (5, 2), (9, 3), (10, 4), (11, 5)]
        """
        if self.rows == 1:
            return v
        return v // self.partitions * self.columns + v % self.columns

    def of_row(self, row: int) -> Numbering:
        """Return the numbering from places to global ids of the vertices of a grid row.

        >>> import numpy as np
        >>> from delegraph.kernels.base.numbering import renumber_all
        >>> renumber_all(Grid(2, 3).of_row(1), np.arange(6, dtype=np.uint32)).tolist()
        [3, 4, 5, 9, 10, 11]
        """
        if self.rows == 1:
            return by_rule()
        return by_rule(self.partitions, row * self.columns, self.columns)

    def of_column(self, column: int) -> Numbering:
        """Return the numbering from places to global ids of the vertices of a grid column.

        >>> import numpy as np
        >>> from delegraph.kernels.base.numbering import renumber_all
        >>> renumber_all(Grid(2, 3).of_column(1), np.arange(4, dtype=np.uint32)).tolist()
        [1, 4, 7, 10]
        """
        return by_rule(self.columns, column)

    def row_vertices(self, vertices: int, row: int) -> int:
        """Return the number of vertices of a grid row, in a graph of ``vertices`` vertices.

        >>> [Grid(2, 3).row_vertices(10, row) for row in range(2)]
        [6, 4]
        """
        whole, left = divmod(vertices, self.partitions)
        return whole * self.columns + min(max(left - row * self.columns, 0), self.columns)


def parse_grid(text: str) -> Grid:
    """Return the grid that a text such as "2x4" stands for. Raises InputError for any other text.

    >>> parse_grid("2x4")
    Grid(rows=2, columns=4)
    """
    rows, _, columns = text.lower().partition("x")
    try:
        return Grid(*(parse_integer(side, 0, _LONGEST_SIDE) for side in (rows, columns)))
    except InputError as error:
        raise InputError(
            f"{shown(text)} is not a grid: {error}; write rows x columns, such as 2x4"
        ) from None


ONE = Grid(1, 1)
"""The grid of a single partition, in any layout."""


def squarest(partitions: int) -> Grid:
    """Return the most square grid of ``partitions`` partitions that has no more rows than columns.

    >>> [str(squarest(partitions)) for partitions in (1, 2, 4, 6, 7, 12)]
    ['1x1', '1x2', '2x2', '2x3', '1x7', '3x4']
    """
    rows = next(r for r in range(isqrt(partitions), 0, -1) if partitions % r == 0)
    return Grid(rows, partitions // rows)


def grid_of(layout: LayoutName, partitions: int, wanted: Grid | None = None) -> Grid | None:
    """Return the grid of a layout; None for delegates. wanted: the user's grid, with the same
    number of partitions.

    >>> grid_of("2d", 6), grid_of("1d", 6), grid_of("delegate", 6), grid_of("delegate", 1)
    (Grid(rows=2, columns=3), Grid(rows=1, columns=6), None, Grid(rows=1, columns=1))
    """
    if partitions == 1:
        return ONE
    if layout == "delegate":
        return None
    return Grid(1, partitions) if layout == "1d" else wanted or squarest(partitions)
