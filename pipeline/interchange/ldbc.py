"""LDBC Graphalytics' graphs (ldbcouncil.org/benchmarks/graphalytics): the file ``.e`` has an edge
on each line, with a weight if edges have weights; the file ``.v`` beside it has a vertex on each
line.

Only ``.v`` lists vertices without edges. Neither file says whether edges are directed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from .consistency import Vertices
from .delimited import NAME_HINT
from .edge_lines import EdgeLines, LineColumns, first_look, with_types
from .graph_file import check_room
from .text import COMPRESSIONS, TextFile


class Graphalytics(EdgeLines):
    """The edges of an ``.e`` file, between the vertices of its ``.v`` file."""

    def __init__(
        self,
        file: TextFile,
        limit: int,
        weight_type: str = "auto",
        max_unpacked: float | None = None,
    ) -> None:
        path = vertex_file(file.path)
        self._vertices = Vertices(_read_vertices(path, limit, max_unpacked), limit)
        told = f"{path} does not list it"
        layout = LineColumns(known=self._vertices.see, told=told, id_hint=NAME_HINT)
        block, columns, blocks = first_look(file, layout)
        if columns == 3:
            layout = replace(layout, columns=3, places=(0, 1, 2))
        super().__init__(file, with_types(file, layout, block, weight_type=weight_type), blocks)
        self.held_bytes = self._vertices.bytes

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        return self._vertices.self_loops(self.schema)


def vertex_file(path: str) -> str:
    """Return the ``.v`` file beside an ``.e`` file, compressed or not. Raises InputError if there
    is none.
    """
    edges = Path(path)
    if edges.suffix in COMPRESSIONS:
        edges = edges.with_suffix("")
    plain = edges.with_suffix(".v")
    for ending in ("", *COMPRESSIONS):
        if (found := Path(f"{plain}{ending}")).is_file():
            return str(found)
    raise InputError(f"{plain}: missing; this file must list the vertices of {path}, one per line")


def _read_vertices(path: str, limit: int, max_unpacked: float | None) -> NDArray[np.int64]:
    """Return the ids of the vertices, rising. Raises InputError if there are none, or for a vertex
    that is listed twice.
    """
    layout, parts, count = LineColumns(columns=1, places=(0, 0), id_hint=NAME_HINT), [], 0
    file = TextFile(path, max_unpacked)
    try:
        for block in file.blocks():
            parts.append(as_numpy(layout.parse(file, block).column("src")))
            count += len(parts[-1])
            check_room(3 * 8 * count, limit)  # in parts, joined, and sorted
    finally:
        file.close()
    ids = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    if not len(ids):
        raise InputError(f"{path}: the file has no vertices")
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if len(twice):
        raise InputError(f"{path}: vertex {ids[twice[0]]} is listed twice")
    return ids
