"""The operation ``intersect`` on a device (cuda/pieces/intersect.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..gpu import prepare
from ..gpu.device import pack, unsigned_name, without_fields
from ..gpu.graph import Array, offsets_dtype
from ..gpu_programs.rows import ProgramGraph, kernel_of
from ..pieces.intersect import Corners
from ..prepare.weights import SUM, Combining

SHORT = 64
"""Most entries of a row that a warp takes: a power of two."""

PART = 1024
"""Number of entries of a longer row that a block takes at once: a power of two."""

ENTRIES_AT_ONCE = 1 << 26
"""Number of entries of rows after which the host tells how far a run is, and may save it."""

EARLIER = np.dtype([(name, "u8") for name in ("offsets", "targets", "ways")], align=True)
CORNERS = np.dtype([(name, "u8") for name in ("triangles", "edges", "looked")], align=True)

_SOURCE = "pieces/intersect.cu"
_THREADS = 256
_SLACK = 32 << 20  # small arrays, what a sort takes beside keys, and what the pool rounds up


class Intersecting:
    """The triangles at each vertex of a graph.

    positions: uint32, of each vertex, by falling degree; (0,) if these are the vertices' numbers.
    corners: what has been counted so far, by position; a neighbour that edges in both directions
    lead to counts twice until the later one of both vertices is finished. All arrays are on the
    device.
    """

    def __init__(self, graph: ProgramGraph) -> None:
        self._graph, self._device = graph, graph.device
        n, directed = graph.vertices, not graph.twice
        with self._device.use() as cupy:
            neighbours = self._degrees(cupy)
            self.positions = _positions(cupy, neighbours)
            if len(self.positions):
                by_vertex, neighbours = neighbours, cupy.empty_like(neighbours)
                neighbours[self.positions] = by_vertex
                del by_vertex
            keys = self._keys(cupy)
            prepare.sort(cupy, keys)
            # Of an edge in both directions there are two keys, which become an entry of weight 2.
            weights, combining = None, None
            if directed:
                weights, combining = cupy.ones(len(keys), np.uint32), Combining(SUM, False)
            made = prepare.rows_of(self._device, keys, n, weights, combining)
            del keys, weights
            self._lengths, self._targets, self._ways = made
            self._offsets = prepare.offsets_of(self._device, made.counts, len(made.targets))
            triangles, edges = cupy.zeros(n, np.int64), cupy.zeros(n if directed else 0, np.int64)
            self._looked = cupy.zeros(1, np.uint64)
        self.corners = Corners(neighbours, triangles, edges)
        rows = pack(EARLIER, offsets=self._offsets, targets=self._targets, ways=self._ways)
        counts = pack(CORNERS, triangles=triangles, edges=edges, looked=self._looked)
        self._packed = without_fields(rows), without_fields(counts)

    def groups(self, done: int) -> Iterator[int]:
        """Count the triangles whose last corners have positions from ``done`` on. Yields the number
        of vertices that are finished, now and then.
        """
        n = self._graph.vertices
        while done < n:
            with self._device.use() as cupy:
                reached = int(self._offsets[done]) + ENTRIES_AT_ONCE
                end = cupy.asarray([min(reached, len(self._targets))], self._offsets.dtype)
                last = int(cupy.searchsorted(self._offsets, end, "right")[0]) - 1
                last = min(n, max(last, done + 1))
                self._count_once(cupy, done, last)
                self._count(cupy, done, last)
            done = last
            yield done

    def looked(self) -> int:
        """Return the number of entries that were looked at since the last call."""
        with self._device.use():
            looked = int(self._looked[0])
            self._looked.fill(0)
        return looked

    def _degrees(self, cupy: Any) -> Array:
        """Return the number of edges of each vertex, in either direction: int64, by vertex."""
        rows, device = self._graph.cut.rows, self._device
        degree = (rows.offsets[1:] - rows.offsets[:-1]).astype(np.int64)
        if not self._graph.twice:
            name = f"count_ends<{self._graph.cut.tiered}>"
            arguments = rows.targets(), np.uint64(rows.edges), degree
            device.launch(_SOURCE, name, rows.edges, arguments)
        return degree

    def _keys(self, cupy: Any) -> Array:
        """Return a key for each edge, in any order."""
        graph, rows = self._graph, self._graph.cut.rows
        keys = cupy.empty(rows.edges // 2 if graph.twice else rows.edges, np.uint64)
        positions = self.positions if len(self.positions) else np.uint64(0)
        _listing(graph)(graph.cut.packed(), positions, keys, cupy.zeros(1, np.uint64))
        return keys

    def _count_once(self, cupy: Any, first: int, last: int) -> None:
        """Count a neighbour once, if edges in both directions lead to it, in the rows from
        ``first`` to ``last``.
        """
        if self._ways is None:
            return
        begin, end = int(self._offsets[first]), int(self._offsets[last])
        twice = cupy.flatnonzero(cupy.equal(self._ways[begin:end], np.uint32(2)))
        twice = cupy.add(twice, begin)
        rows = cupy.searchsorted(self._offsets, twice.astype(self._offsets.dtype), "right")
        neighbours, later = self.corners.neighbours, cupy.subtract(rows, 1)
        for ends in (later, self._targets[twice].astype(np.int64)):
            counts = cupy.bincount(ends, minlength=len(neighbours))
            cupy.subtract(neighbours, counts.astype(np.int64), out=neighbours)

    def _count(self, cupy: Any, first: int, last: int) -> None:
        lengths = self._lengths[first:last]
        # (For an operator between an array and a number, CuPy imports all that SciPy has.)
        is_long = cupy.greater(lengths, np.uint32(SHORT))
        is_short = cupy.logical_and(cupy.greater(lengths, np.uint32(1)), ~is_long)
        short = _listed(cupy, is_short, first)
        self._launch("count_short", -(-32 * len(short) // _THREADS), short)
        long = _listed(cupy, is_long, first)
        parts = cupy.floor_divide(cupy.add(self._lengths[long], np.uint32(PART - 1)), PART)
        ends = cupy.cumsum(parts, dtype=np.int64)
        at = cupy.arange(int(ends[-1]) if len(ends) else 0)
        of = cupy.searchsorted(ends, at, "right")
        numbers = cupy.subtract(at, (ends - parts)[of]).astype(np.uint32)
        self._launch("count_long", len(at), long[of], numbers)

    def _launch(self, function: str, blocks: int, *lists: Array) -> None:
        if blocks:
            name = count_name(function, self._offsets.dtype, self._ways is not None)
            kernel, (rows, counts) = self._device.kernel(_SOURCE, name), self._packed
            kernel((blocks,), (_THREADS,), (rows, *lists, np.uint32(len(lists[0])), counts))


def _positions(cupy: Any, degree: Array) -> Array:
    """Return the positions of vertices, as ``Intersecting`` has them."""
    if not bool(cupy.any(degree[1:] > degree[:-1])):
        return cupy.empty(0, np.uint32)
    order = cupy.argsort(cupy.negative(degree), kind="stable")
    positions = cupy.empty(len(degree), np.uint32)
    positions[order] = cupy.arange(len(degree), dtype=np.uint32)
    return positions


def _listed(cupy: Any, wanted: Array, first: int) -> Array:
    """Return the places of true values, counted from ``first``: uint32."""
    return cupy.add(cupy.flatnonzero(wanted), first).astype(np.uint32)


def _listing(graph: ProgramGraph) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered, str(graph.twice).lower()
    return kernel_of(graph.device, _SOURCE, "list_earlier", kinds)


def count_name(function: str, offsets: np.dtype, directed: bool) -> str:
    """Return the instance of a kernel that counts. offsets: the type of rows' offsets."""
    most = SHORT if function == "count_short" else PART
    return f"{function}<{unsigned_name(offsets)}, {str(directed).lower()}, {most}, {_THREADS}>"


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels."""
    device, entries = graph.device, graph.cut.rows.edges
    offsets = offsets_dtype(entries // 2 if graph.twice else entries)
    names = [count_name(name, offsets, not graph.twice) for name in ("count_short", "count_long")]
    names += [] if graph.twice else [f"count_ends<{graph.cut.tiered}>"]
    tasks = [partial(device.kernel, _SOURCE, name) for name in names]
    device.together([*tasks, partial(_listing, graph)])


def intersecting_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that an intersecting holds: arrays by vertex, and keys of as many edges,
    each with its weight, from which rows are made.
    """
    by_vertex = 4 + 3 * 8 + 4 + 8 + 4 * 8  # the last ones: to put vertices in order
    return by_vertex * vertices + (8 + 4 + 4 + 4) * entries + _SLACK
