"""Matrix Market's coordinate format (math.nist.gov/MatrixMarket/formats.html). An entry is an edge
from its row to its column; both are numbered from 1.

A general matrix holds directed edges. A symmetric matrix is stored as one triangle, with each
undirected edge once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ...partition.errors import InputError
from ...partition.numbers import parse_integer, shown
from .consistency import Vertices
from .edge_lines import WEIGHT_TYPES, EdgeLines, LineColumns
from .text import TextFile

_BANNER = "%%MatrixMarket matrix coordinate FIELD SYMMETRY"
_WEIGHTS = {"pattern": None, "integer": WEIGHT_TYPES["int64"], "real": WEIGHT_TYPES["float64"]}
_DIRECTED = {"general": True, "symmetric": False}
_ROW_BYTES = 8  # bytes to count for a vertex without edges, which the file does not list


class MatrixMarket(EdgeLines):
    """A square matrix as a graph file. A vertex whose row and column have no entries is
    isolated.
    """

    def __init__(self, file: TextFile, limit: int) -> None:
        field, symmetry = _banner(file)
        size, self._entries = _size(file)
        self._vertices = Vertices(range(1, size + 1), limit)
        self._path = file.path
        weight_type = _WEIGHTS[field]
        columns = 2 if weight_type is None else 3
        layout = LineColumns(
            comment="%",
            columns=columns,
            places=tuple(range(columns)),
            weight_type=weight_type,
            known=self._vertices.see,
            told=f"they are numbered from 1 to {size:,}",
            positions=True,
            id_hint="",
        )
        super().__init__(file, layout, file.blocks(), _DIRECTED[symmetry])
        self.held_bytes = self._vertices.bytes

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        if edges != self._entries:
            raise InputError(
                f"{self._path}: {edges:,} entries, but its header promises {self._entries:,}"
            )
        yield from self._vertices.self_loops(self.schema)


def _banner(file: TextFile) -> tuple[str, str]:
    number, line = file.line() or (1, "")
    words = line.lower().split()
    if words[:3] != _BANNER.lower().split()[:3] or len(words) != 5:
        raise file.error(number, f"not a Matrix Market file: the file must begin with {_BANNER!r}")
    field, symmetry = words[3:]
    if field not in _WEIGHTS:
        told = f"entries are {shown(field)}, but must be {' or '.join(_WEIGHTS)}"
        raise file.error(number, told)
    if symmetry not in _DIRECTED:
        told = f"the matrix is {shown(symmetry)}, but must be {' or '.join(_DIRECTED)}"
        raise file.error(number, told)
    return field, symmetry


def _size(file: TextFile) -> tuple[int, int]:
    """Return the numbers of vertices and of entries."""
    while found := file.line():
        number, line = found
        words = line.split()
        if not words or words[0].startswith("%"):
            continue
        try:
            rows, columns, entries = (parse_integer(word, 0, 2**63 - 1) for word in words)
        except (InputError, ValueError) as error:  # not a number, or not three of them
            told = f"the line must hold the numbers of rows, columns and entries, not {shown(line)}"
            raise file.error(number, told) from error
        if rows != columns:
            told = f"{rows:,} rows and {columns:,} columns: the matrix of a graph must be square"
            raise file.error(number, told)
        file.check_vertices(number, rows, _ROW_BYTES)
        return rows, entries
    raise InputError(f"{file.path}: the file ends before the line with its sizes")
