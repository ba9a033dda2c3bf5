"""The operation ``spread`` on a device (cuda/pieces/spread.cu)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ..gpu.device import pack, without_fields
from ..gpu.graph import Array
from ..gpu_programs.rows import CutRows, ProgramGraph, kernel_of
from ..gpu_programs.shortest_paths import items_of
from ..pieces.operators import Spread, WholeSum

PUSHED_FOR_PULLED = 8
"""Number of edges that a pull, which stops early, passes in the time that a push follows one
edge.
"""

PUSHED_FOR_SUMMED = 2
"""Number of edges that a pull of sums, which passes every edge, passes in that time."""

ALL_FOR_LISTED = 8
"""Number of values that are visited in order in the time that one is picked by a list of places."""

WORDS: dict[np.dtype, np.dtype] = {
    np.dtype(word): np.dtype([("unit", word), ("full", word)], align=True)
    for word in (np.uint32, np.uint64)
}
COUNTS = np.dtype([("edges", "u8"), ("items", "u4"), ("changed", "u4")], align=True)

_SOURCE = "pieces/spread.cu"
_MANY = 1 << 30  # items, for as many blocks as are launched at most: the host does not know them
_ITEM = np.dtype([("vertex", "u4"), ("part", "u4")])


class Spreading:
    """The operation along the edges of a graph."""

    def __init__(self, graph: ProgramGraph) -> None:
        self._graph = graph
        self._packed = {
            id(rows): without_fields(rows.packed())
            for rows in (graph.cut, graph.back)
            if rows is not None
        }
        n, ways = graph.vertices, [graph.cut] if graph.back is None else [graph.cut, graph.back]
        with graph.device.use() as cupy:
            self._queue = cupy.empty(max(items_of(n, way.rows.edges) for way in ways), np.uint64)
            self._marks = cupy.zeros(-(-n // 32), np.uint32)
            self._counts = cupy.zeros(COUNTS.itemsize // 8, np.uint64)

    def run(
        self, operator: Spread, x: Array, y: Array, along: bool, places: Array
    ) -> tuple[Array | None, int]:
        """Combine ``x[u]`` of every edge u -> v into ``y[v]``: (n,), words of the operator, by
        vertex.

        along: whether edges are followed in their direction, or against it. places: uint32, all
        vertices whose ``x`` is not the unit. Returns the vertices whose ``y`` has changed, in any
        order, None if any may have changed, or so many that a list of them does not pay; and the
        number of edges that were looked at.
        """
        with self._graph.device.use():
            if len(places) == 0:
                return places, 0
            pulls, pushes = self._ways(along)
            packed = _words(operator)
            paid = PUSHED_FOR_SUMMED if isinstance(operator, WholeSum) else PUSHED_FOR_PULLED
            most = max(0, -(-pulls.rows.edges // paid) - 1) if paid else (1 << 64) - 1
            counts, changed = self._push(pushes, operator, packed, places, x, y, most)
            edges, count = int(counts["edges"]), int(counts["changed"])
            if edges > most:
                _pull(self._graph, pulls, type(operator))(self._packed[id(pulls)], packed, x, y)
                return None, pulls.rows.edges
            few = count * ALL_FOR_LISTED < self._graph.vertices
            return (changed[:count] if few else None), edges

    def _ways(self, along: bool) -> tuple[CutRows, CutRows]:
        """Return the rows that a pull goes through, and those that a push does. (``graph.cut`` has
        rows of the vertices that edges enter, if there are rows of both kinds.)
        """
        graph = self._graph
        if graph.twice:
            return graph.cut, graph.cut
        assert graph.back is not None
        return (graph.cut, graph.back) if along else (graph.back, graph.cut)

    def _push(
        self,
        rows: CutRows,
        operator: Spread,
        packed: np.ndarray,
        places: Array,
        x: Array,
        y: Array,
        most: int,
    ) -> tuple[np.ndarray, Array]:
        """Push from the vertices in ``places``, if they have ``most`` edges at most. Returns what
        was counted, with the fields of COUNTS, and the list of changed vertices.
        """
        device, count = self._graph.device, len(places)
        changed = device.cupy.empty(self._graph.vertices, np.uint32)
        self._counts.fill(0)
        arguments = rows.rows.offsets, places, np.uint32(count), self._queue, self._counts
        name = f"queue_places<{rows.rows.offset_type}>"
        device.launch(_SOURCE, name, -(-count // 32) * 32, arguments)
        lists = self._marks, changed, self._counts, np.uint64(most)
        arguments = self._packed[id(rows)], packed, self._queue, x, y, *lists
        device.launch(_SOURCE, _push_name(rows, type(operator)), _MANY, arguments)
        counts = self._counts.get().view(COUNTS)[0]
        if counts["changed"]:
            self._marks.fill(0)
        return counts, changed


@lru_cache(16)
def _words(operator: Spread) -> np.ndarray:
    """Return the operator's structure. (Operators that are equal may be of several types.)"""
    full = getattr(operator, "full", operator.unit)
    return without_fields(pack(WORDS[operator.unit.dtype], unit=operator.unit, full=full))


def _push_name(rows: CutRows, operator: type) -> str:
    return f"push_words<{rows.rows.offset_type}, {rows.tiered}, {operator.__name__}>"


def _pull(graph: ProgramGraph, rows: CutRows, operator: type) -> Any:
    kinds = rows.rows.offset_type, rows.tiered, operator.__name__
    return kernel_of(graph.device, _SOURCE, "pull_words", kinds)


def warm_up(graph: ProgramGraph, operators: Iterable[type]) -> None:
    """Compile, or load from the cache, the kernels of some operators."""
    for rows in filter(None, (graph.cut, graph.back)):
        graph.device.kernel(_SOURCE, f"queue_places<{rows.rows.offset_type}>")
        for operator in operators:
            graph.device.kernel(_SOURCE, _push_name(rows, operator))
            _pull(graph, rows, operator)


def spreading_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that a spreading holds: a queue, marks, two lists."""
    return _ITEM.itemsize * items_of(vertices, entries) + vertices // 8 + 2 * 4 * vertices
