"""The operation ``intersect`` on a device (cuda/pieces/intersect.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..gpu import prepare
from ..gpu.device import pack, unsigned_name, without_fields
from ..gpu.graph import Array, offsets_dtype
from ..gpu_programs.rows import ProgramGraph, kernel_of, rows_at
from ..pieces.intersect import Corners
from ..prepare.weights import SUM, Combining

SHORT = 64
"""Most entries of a row that a warp takes: a power of two."""

PART = 1024
"""Number of entries of a longer row that a block takes at once: a power of two."""

ENTRIES_AT_ONCE = 1 << 26
"""Number of entries of rows after which the host tells how far a run is, and may save it."""

EARLIER = np.dtype([(name, "u8") for name in ("offsets", "targets", "ways")], align=True)
AT_VERTICES = np.dtype([(name, "u8") for name in ("triangles", "edges", "looked")], align=True)
AT_EDGES = np.dtype([(name, "u8") for name in ("triangles", "looked")], align=True)

_SOURCE = "pieces/intersect.cu"
_THREADS = 256
_AT_ONCE = 1 << 24  # vertices whose shares are computed at once
_SLACK = 32 << 20  # small arrays, what a sort takes beside keys, and what the pool rounds up


class EarlierRows:
    """Rows of the neighbours that come before each vertex, by falling degree. An entry of a row
    stands for an edge, whatever its directions. All arrays are on the device.

    positions: uint32, of each vertex; (0,) if these are the vertices' numbers. degree: int64, by
    position; an edge in both directions counts twice. lengths, offsets: of rows, by position.
    targets: uint32, positions, rising in each row. ways: uint32, the number of directed edges at
    each entry, 1 or 2; None unless ``with_ways`` is set.
    """

    def __init__(self, graph: ProgramGraph, with_ways: bool) -> None:
        self._device, n = graph.device, graph.vertices
        with graph.device.use() as cupy:
            self.degree = _degrees(graph)
            self.positions = _positions(cupy, self.degree)
            if len(self.positions):
                by_vertex, self.degree = self.degree, cupy.empty_like(self.degree)
                self.degree[self.positions] = by_vertex
                del by_vertex
            keys = _keys(graph, self.positions)
            prepare.sort(cupy, keys)
            ones = cupy.ones(len(keys), np.uint32) if with_ways else None
            combining = Combining(SUM, False) if with_ways else None
            made = prepare.rows_of(graph.device, keys, n, ones, combining)
            self.lengths, self.targets, self.ways = made
            self.offsets = prepare.offsets_of(graph.device, made.counts, len(made.targets))
        rows = pack(EARLIER, offsets=self.offsets, targets=self.targets, ways=self.ways)
        self.packed = without_fields(rows)

    def spans(self, done: int) -> Iterator[tuple[int, int]]:
        """Yield the bounds of rows from ``done`` on, so many at a time that they have
        ENTRIES_AT_ONCE entries, or are one row.
        """
        n = len(self.lengths)
        while done < n:
            with self._device.use() as cupy:
                reached = min(int(self.offsets[done]) + ENTRIES_AT_ONCE, len(self.targets))
                end = cupy.asarray([reached], self.offsets.dtype)
                last = int(cupy.searchsorted(self.offsets, end, "right")[0]) - 1
            last = min(n, max(last, done + 1))
            yield done, last
            done = last

    def count(self, kind: str, counts: np.ndarray, first: int, last: int) -> None:
        """Count the triangles whose last corners are from position ``first`` on, before ``last``.
        kind: the name in C++ of the type of what is counted. counts: packed.
        """
        with self._device.use() as cupy:
            lengths = self.lengths[first:last]
            # (For an operator between an array and a number, CuPy imports all that SciPy has.)
            is_long = cupy.greater(lengths, np.uint32(SHORT))
            is_short = cupy.logical_and(cupy.greater(lengths, np.uint32(1)), ~is_long)
            short = _listed(cupy, is_short, first)
            blocks = -(-32 * len(short) // _THREADS)
            self._launch("count_short", kind, blocks, counts, short)
            long = _listed(cupy, is_long, first)
            parts = cupy.floor_divide(cupy.add(self.lengths[long], np.uint32(PART - 1)), PART)
            ends = cupy.cumsum(parts, dtype=np.int64)
            at = cupy.arange(int(ends[-1]) if len(ends) else 0)
            of = cupy.searchsorted(ends, at, "right")
            numbers = cupy.subtract(at, (ends - parts)[of]).astype(np.uint32)
            self._launch("count_long", kind, len(at), counts, long[of], numbers)

    def _launch(
        self, function: str, kind: str, blocks: int, counts: np.ndarray, *lists: Array
    ) -> None:
        if blocks:
            name = count_name(function, self.offsets.dtype, kind)
            kernel, count = self._device.kernel(_SOURCE, name), np.uint32(len(lists[0]))
            kernel((blocks,), (_THREADS,), (self.packed, *lists, count, counts))


class Intersecting:
    """The triangles at each vertex of a graph. corners: what has been counted so far, by position,
    on the device; a neighbour that edges in both directions lead to counts twice until the later
    one of both vertices is finished.
    """

    def __init__(self, graph: ProgramGraph) -> None:
        directed = not graph.twice
        self._device, self._rows = graph.device, EarlierRows(graph, directed)
        n = graph.vertices
        with graph.device.use() as cupy:
            triangles, edges = cupy.zeros(n, np.int64), cupy.zeros(n if directed else 0, np.int64)
            self._looked = cupy.zeros(1, np.uint64)
        self.corners = Corners(self._rows.degree, triangles, edges)
        counts = pack(AT_VERTICES, triangles=triangles, edges=edges, looked=self._looked)
        self._counts, self._kind = without_fields(counts), _kind(directed)

    @property
    def positions(self) -> Array:
        return self._rows.positions

    def groups(self, done: int) -> Iterator[int]:
        """Count the triangles whose last corners have positions from ``done`` on. Yields the number
        of vertices that are finished, now and then.
        """
        for first, last in self._rows.spans(done):
            self._count_once(first, last)
            self._rows.count(self._kind, self._counts, first, last)
            yield last

    def joined_shares(self, joined: Array) -> tuple[Array, int]:
        """Return the share of the pairs of each vertex's neighbours that are joined, and the number
        of pairs of all vertices. joined: of each vertex, like the share by position.
        """
        with self._device.use() as cupy:
            shares, high, low = cupy.empty(len(joined)), 0, 0
            for first in range(0, len(joined), _AT_ONCE):
                of = slice(first, first + _AT_ONCE)
                count = self.corners.neighbours[of].astype(np.uint64)
                pairs = cupy.right_shift(count * (count - (count > 0)), np.uint64(1))
                cupy.divide(joined[of], cupy.maximum(pairs, np.uint64(1)), out=shares[of])
                high += int(cupy.right_shift(pairs, np.uint64(32)).sum())
                low += int(cupy.bitwise_and(pairs, np.uint64(0xFFFFFFFF)).sum())
            return shares, (high << 32) + low

    def looked(self) -> int:
        """Return the number of entries that were looked at since the last call."""
        with self._device.use():
            looked = int(self._looked[0])
            self._looked.fill(0)
        return looked

    def _count_once(self, first: int, last: int) -> None:
        """Count a neighbour once that edges in both directions lead to, in the rows from ``first``
        to ``last``.
        """
        rows = self._rows
        if rows.ways is None:
            return
        with self._device.use() as cupy:
            begin, end = int(rows.offsets[first]), int(rows.offsets[last])
            twice = cupy.flatnonzero(cupy.equal(rows.ways[begin:end], np.uint32(2)))
            twice = cupy.add(twice, begin)
            neighbours = self.corners.neighbours
            later = rows_at(cupy, rows.offsets, twice)
            for ends in (later, rows.targets[twice].astype(np.int64)):
                counts = cupy.bincount(ends, minlength=len(neighbours))
                cupy.subtract(neighbours, counts.astype(np.int64), out=neighbours)


def count_supports(graph: ProgramGraph, rows: EarlierRows) -> tuple[Array, int]:
    """Return the number of triangles that each edge is in, by entry of ``rows``: uint32; and the
    number of entries that were looked at.
    """
    with graph.device.use() as cupy:
        supports, looked = cupy.zeros(len(rows.targets), np.uint32), cupy.zeros(1, np.uint64)
        counts = without_fields(pack(AT_EDGES, triangles=supports, looked=looked))
        for first, last in rows.spans(0):
            rows.count("AtEdges", counts, first, last)
        return supports, int(looked[0])


def _degrees(graph: ProgramGraph) -> Array:
    """Return the number of edges of each vertex, in either direction: int64, by vertex."""
    rows = graph.cut.rows
    degree = (rows.offsets[1:] - rows.offsets[:-1]).astype(np.int64)
    if not graph.twice:
        arguments = rows.targets(), np.uint64(rows.edges), degree
        graph.device.launch(_SOURCE, f"count_ends<{graph.cut.tiered}>", rows.edges, arguments)
    return degree


def _positions(cupy: Any, degree: Array) -> Array:
    """Return the positions of vertices, as ``EarlierRows`` has them."""
    if not bool(cupy.any(degree[1:] > degree[:-1])):
        return cupy.empty(0, np.uint32)
    order = cupy.argsort(cupy.negative(degree), kind="stable")
    positions = cupy.empty(len(degree), np.uint32)
    positions[order] = cupy.arange(len(degree), dtype=np.uint32)
    return positions


def _keys(graph: ProgramGraph, positions: Array) -> Array:
    """Return a key for each edge, in any order."""
    cupy, edges = graph.device.cupy, graph.cut.rows.edges
    keys = cupy.empty(edges // 2 if graph.twice else edges, np.uint64)
    position, listed = positions if len(positions) else np.uint64(0), cupy.zeros(1, np.uint64)
    _listing(graph)(graph.cut.packed(), position, keys, listed)
    return keys


def _listed(cupy: Any, wanted: Array, first: int) -> Array:
    """Return the places of true values, counted from ``first``: uint32."""
    return cupy.add(cupy.flatnonzero(wanted), first).astype(np.uint32)


def _listing(graph: ProgramGraph) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered, str(graph.twice).lower()
    return kernel_of(graph.device, _SOURCE, "list_earlier", kinds)


def _kind(directed: bool) -> str:
    return f"AtVertices<{str(directed).lower()}>"


def count_name(function: str, offsets: np.dtype, kind: str) -> str:
    """Return the instance of a kernel that counts. offsets: the type of rows' offsets. kind: of
    what is counted.
    """
    most = SHORT if function == "count_short" else PART
    return f"{function}<{unsigned_name(offsets)}, {kind}, {most}, {_THREADS}>"


def warm_up(graph: ProgramGraph, kind: str = "") -> None:
    """Compile, or load from the cache, the kernels. kind: of what is counted; "" for what
    ``Intersecting`` counts.
    """
    device, entries = graph.device, graph.cut.rows.edges
    offsets, kind = offsets_dtype(entries // (1 + graph.twice)), kind or _kind(not graph.twice)
    names = [count_name(function, offsets, kind) for function in ("count_short", "count_long")]
    names += [] if graph.twice else [f"count_ends<{graph.cut.tiered}>"]
    tasks = [partial(device.kernel, _SOURCE, name) for name in names]
    device.together([*tasks, partial(_listing, graph)])


def earlier_bytes(vertices: int, entries: int) -> int:
    """Return the most bytes that EarlierRows hold while they are made: arrays by vertex, and keys
    of as many edges, each with its weight.
    """
    by_vertex = 4 + 8 + 4 + 8 + 4 * 8  # the last ones: to put vertices in order
    return by_vertex * vertices + (8 + 4 + 4 + 4) * entries + _SLACK


def intersecting_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that an intersecting holds."""
    return earlier_bytes(vertices, entries) + 2 * 8 * vertices
