"""Preparation on a device: degrees, positions and compressed sparse rows (cuda/prepare/prepare.cu).

Edges are dense ids, below 2^32 - 1, in arrays on the device. Of R rows, the largest buffers are
the edges (8 R bytes), their keys (16 R) and what the library's radix sort takes beside (16 R);
edges are let go of before the sort, so that 32 R bytes and some tables over the vertices are the
most that is held (``bytes_needed``); 88 R where weights go along. One sort serves all subgraphs of
all partitions, and the transposes: a key's upper half is a row numbered over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.graph import UNREACHED
from ..prepare.csr import SLOTS, degree_dtype
from ..prepare.weights import Combining
from .device import LONG_STRIP, Device, DeviceError, pack, strip_lanes, unsigned_name
from .graph import offsets_dtype

MOST_ROWS = 2**32 - 2
"""The most rows of all subgraphs together. They are numbered with 32 bits, of which one value is
taken.
"""

_SOURCE = "prepare/prepare.cu"
_SLACK = 32 << 20  # small arrays, and what the pool rounds up
_PART = 1 << 20  # vertices that are looked at together, whose places are within the slack

Columns = tuple[Any, ...]
"""The columns of some edges: sources and targets, uint32 arrays on the device, of one length; then
the bits of their weights, as long, if weights are kept.
"""


def bytes_needed(
    rows: int,
    domain: int,
    directed: bool,
    subgraph_rows: int | None = None,
    delegates: int = 0,
    weighted: bool = False,
) -> int:
    """Return the bytes that preparing a graph holds on the device at most, its result included.

    rows: of the input. domain: dense ids lie below it, so there are at most as many vertices.
    subgraph_rows: of all subgraphs together, if there are several. weighted: whether weights go
    along.

    >>> bytes_needed(2**31, 2**27, False) / 2**30 < 80
    True
    """
    degree = np.dtype(degree_dtype(rows)).itemsize
    by_id = domain * (4 + 1 + degree * (2 if directed else 1))  # position, looped, degrees
    ordering = domain * (4 + degree + 8) + _sort_bytes(domain)  # by position: id, degree; keys
    by_position = domain * (4 + degree + 4) + 16 * delegates  # and global ids
    own_rows = domain * (2 if directed else 1) if subgraph_rows is None else subgraph_rows
    pair, key = 8 * rows, 16 * rows
    written = 8 * rows + (4 + 8 + 8) * own_rows + 2 * 8 * (key // 8 // LONG_STRIP + 1)
    sorting = key + _sort_bytes(2 * rows)
    if weighted:
        pair, written = pair + 4 * rows, written + 2 * 8 * rows
        sorting = 8 * rows + key + 2 * _sort_bytes(2 * rows) + 2 * key
    return (
        _SLACK + by_id + max(pair + ordering, by_position + max(pair + key, sorting, key + written))
    )


def _sort_bytes(keys: int) -> int:
    """Return a bound on what the library's radix sort of 64-bit keys holds beside the keys."""
    return 8 * keys + min(keys, 1 << 28) // 4 + (8 << 20)


class Degrees(NamedTuple):
    """Degrees by dense id, on the device.

    degree, out_degree: uint32 or uint64; out_degree: None for undirected graphs. looped: uint8, 1
    if a vertex has a self-loop; an id with a self-loop is a vertex, with other edges or without.
    loops: uint64 (1,).
    """

    degree: Any
    out_degree: Any
    looped: Any
    loops: Any


def count_degrees(
    device: Device, batches: Sequence[Columns], domain: int, rows: int, directed: bool
) -> Degrees:
    """Count the rows that touch each vertex, duplicates included and self-loops not.

    rows: of the whole graph, which decide the type of a degree.
    """
    dtype = degree_dtype(rows)
    with device.use() as cupy:
        _make_room(cupy, domain * (1 + 2 * np.dtype(dtype).itemsize))
        found = Degrees(
            cupy.zeros(domain, dtype),
            cupy.zeros(domain, dtype) if directed else None,
            cupy.zeros(domain, np.uint8),
            cupy.zeros(1, np.uint64),
        )
        function = f"count_degrees<{unsigned_name(dtype)}>"
        out_degree = np.uint64(0) if found.out_degree is None else found.out_degree
        for src, dst, *_ in batches:
            arguments = (src, dst, np.uint64(len(src)), found.degree, out_degree)
            device.launch(_SOURCE, function, len(src), (*arguments, found.looped, found.loops))
    return found


class Positions(NamedTuple):
    """The vertices by falling degree, ties by id, on the device.

    position: uint32 by dense id, UNREACHED where the id is no vertex. id_of_position: uint32 (n,).
    degree: by position, of the type that degrees have.
    """

    position: Any
    id_of_position: Any
    degree: Any


def position_vertices(device: Device, degrees: Degrees) -> Positions:
    """Order the vertices by falling degree. Raises DeviceError for a degree of 2^32 or more."""
    domain = len(degrees.degree)
    name = unsigned_name(degrees.degree.dtype)
    with device.use() as cupy:
        keys = cupy.empty(domain, np.uint64)
        found = cupy.zeros(2, np.uint64)
        arguments = (degrees.degree, degrees.looped, np.uint64(domain), keys, found)
        device.launch(_SOURCE, f"order_keys<{name}>", domain, arguments)
        vertices, large = (int(number) for number in found.get())
        if large:
            raise DeviceError(f"{large} vertices have 2^32 edges or more: build with --device cpu")
        sort(cupy, keys)
        positions = Positions(
            cupy.full(domain, UNREACHED, np.uint32),
            cupy.empty(vertices, np.uint32),
            cupy.empty(vertices, degrees.degree.dtype),
        )
        arguments = (keys, np.uint64(vertices), *positions)
        device.launch(_SOURCE, f"number_vertices<{name}>", vertices, arguments)
    return positions


def positions_by_id(device: Device, position: Any) -> np.ndarray:
    """Return the positions of the vertices, by rising dense id: uint32, in host memory. position:
    as of Positions.
    """
    parts = [np.empty(0, np.uint32)]
    with device.use() as cupy:
        for at in range(0, len(position), _PART):
            part = position[at : at + _PART]
            # (For an operator between an array and a number, CuPy imports all that SciPy has.)
            known = cupy.flatnonzero(cupy.not_equal(part, np.uint32(UNREACHED)))
            parts.append(device.fetch(part.take(known)))
    return np.concatenate(parts)


def degree_classes(device: Device, degree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct degrees, falling, and the number of vertices of each (int64), in host
    memory.

    degree: by position.
    """
    with device.use() as cupy:
        starts = np.zeros(1, np.int64)
        if len(degree) > 1:
            changes = cupy.flatnonzero(degree[1:] != degree[:-1]).get()
            starts = np.append(starts, changes + 1)  # (On a device, CuPy would import much for it.)
        distinct = degree.take(cupy.asarray(starts)).get()
    return distinct, np.diff(np.append(starts, len(degree)))


def count_classes(
    device: Device, batches: Sequence[Columns], positions: Positions, counts: np.ndarray
) -> np.ndarray:
    """Count rows by the class of the higher degree of their two ends, int64; self-loops are left
    out.

    counts: vertices of each degree, falling.
    """
    with device.use() as cupy:
        ends = cupy.asarray(np.cumsum(counts).astype(np.uint64))
        histogram = cupy.zeros(len(counts), np.uint64)
        for src, dst, *_ in batches:
            edges = (src, dst, np.uint64(len(src)), positions.position)
            arguments = (*edges, ends, np.uint32(len(counts)), histogram)
            device.launch(_SOURCE, "count_classes", len(src), arguments)
        return histogram.get().astype(np.int64)


_PLACING = np.dtype(
    [
        *(
            (name, np.uint64)
            for name in ("position", "global_of_position", "delegate_degree", "first_row")
        ),
        *((name, np.uint32) for name in ("partitions", "columns", "delegates", "directed")),
    ],
    align=True,
)


class RowPlacement(NamedTuple):
    """A table of where edges go. By default this is one graph in which global ids are positions.

    first_row: int64 (partitions * csr.SLOTS,); the first row of each slot, numbered over all slots
    that are kept; -1 for a slot that is not kept. rows: of all slots together. global_of_position:
    uint32 on the device; None for the identity. delegates: positions below it are delegates.
    columns: of the grid, 0 if there is no grid.
    """

    first_row: np.ndarray
    rows: int
    directed: bool
    partitions: int = 1
    delegates: int = 0
    global_of_position: Any = None
    columns: int = 0


def one_graph(vertices: int, directed: bool) -> RowPlacement:
    """Place the rows of all vertices by position, followed by the rows of the transpose if
    directed.
    """
    first_row = np.full(SLOTS, -1, np.int64)
    first_row[0] = 0
    if directed:
        first_row[SLOTS // 2] = vertices
    return RowPlacement(first_row, vertices * (2 if directed else 1), directed)


class SortedKeys(NamedTuple):
    """Sorted keys of rows. keys: uint64, row << 32 | position of the target, with duplicates. The
    keys of what is left out (self-loops, subgraphs that are not kept) are 2^64 - 1, and stand at
    the end. weights: uint32, by key; None where there are none.
    """

    keys: Any
    weights: Any = None


def sorted_keys(
    device: Device, batches: list[Columns], positions: Positions, places: RowPlacement
) -> SortedKeys:
    """Return the sorted keys of all rows, and the weights if the edges have some.

    batches: emptied on the way, so that edges can be let go of; each row gives two keys.
    """
    if places.rows > MOST_ROWS:
        raise DeviceError(
            f"{places.rows:,} rows in all subgraphs; a GPU takes at most {MOST_ROWS:,}"
        )
    rows = sum(len(batch[0]) for batch in batches)
    weighted = any(len(batch) > 2 for batch in batches)
    with device.use() as cupy:
        first_row = np.where(places.first_row < 0, UNREACHED, places.first_row)
        tables = {
            "position": positions.position,
            "global_of_position": places.global_of_position,
            "delegate_degree": positions.degree[: places.delegates].astype(np.uint64),
            "first_row": cupy.asarray(first_row.astype(np.uint32)),
        }
        placing = pack(
            _PLACING,
            **tables,
            partitions=places.partitions,
            columns=places.columns,
            delegates=places.delegates,
            directed=int(places.directed),
        )
        _make_room(cupy, (24 if weighted else 16) * rows)
        keys = cupy.empty(2 * rows, np.uint64)
        bits = cupy.empty(2 * rows, np.uint32) if weighted else None
        at = 0
        while batches:
            src, dst, *weights = batches.pop()
            n = len(src)
            ways = keys[at : at + n], keys[at + n : at + 2 * n]
            device.launch(_SOURCE, "make_keys", n, (src, dst, np.uint64(n), placing, *ways))
            if bits is not None:
                bits[at : at + 2 * n].reshape(2, n)[:] = weights[0]
            at += 2 * n
            del src, dst, weights
        if bits is None:
            sort(cupy, keys)
            return SortedKeys(keys)
        return sort_with(cupy, keys, bits)


def sort(cupy: Any, keys: Any) -> None:
    """Sort keys in place. Raises OutOfMemoryError if there is no room for the sort's buffer."""
    if len(keys) == 0:
        return
    size = _sort_bytes(len(keys))
    _make_room(cupy, size)
    # Kept by the pool for the sort, which could not tell us cleanly that it got nothing.
    cupy.empty(size, np.uint8)
    keys.sort()


def sort_with(cupy: Any, keys: Any, weights: Any) -> SortedKeys:
    """Sort keys together with their weights. Raises OutOfMemoryError as ``sort`` does."""
    if len(keys) == 0:
        return SortedKeys(keys, weights)
    sizes = 8 * len(keys), 8 * len(keys), 2 * _sort_bytes(len(keys))  # a copy, places, the buffer
    _make_room(cupy, sum(sizes))
    kept = [cupy.empty(size, np.uint8) for size in sizes]
    del kept
    order = cupy.argsort(keys)
    return SortedKeys(keys.take(order), weights.take(order))


def _make_room(cupy: Any, size: int) -> None:
    """Have the pool give back the memory that it keeps, if ``size`` more bytes would pass its
    limit.

    By itself the pool does so only if the device is full.
    """
    pool = cupy.get_default_memory_pool()
    limit = pool.get_limit()
    if limit and pool.total_bytes() + size > limit:
        pool.free_all_blocks()


class CountedRows(NamedTuple):
    """Compressed sparse rows in the making, on the device.

    counts: uint32 (rows,), targets of each row. targets: uint32, positions, row after row, rising.
    weights: uint32, of each; None where there are none.
    """

    counts: Any
    targets: Any
    weights: Any = None


def rows_of(
    device: Device, keys: Any, rows: int, weights: Any = None, combining: Combining | None = None
) -> CountedRows:
    """Drop the duplicates of sorted keys, whose rows lie below ``rows``.

    weights: by key. combining: how weights of duplicates are combined. Raises OverflowError if a
    sum is more than 32 bits can say.
    """
    count = len(keys)
    strips = -(-count // LONG_STRIP)
    with device.use() as cupy:
        distinct = cupy.empty(strips, np.uint64)
        size = (np.uint64(count), np.uint64(strips))
        device.launch(_SOURCE, "count_distinct", strip_lanes(count), (keys, *size, distinct))
        ends = cupy.cumsum(distinct, dtype=np.uint64)
        left = int(ends[-1]) if strips else 0
        _make_room(cupy, 4 * (left + rows) + (4 * left if combining else 0))
        made = CountedRows(cupy.zeros(rows, np.uint32), cupy.empty(left, np.uint32))
        device.launch(_SOURCE, "write_rows", strip_lanes(count), (keys, *size, ends, *made[:2]))
        if combining is None:
            return made
        combined, large = cupy.empty(left, np.uint32), cupy.zeros(1, np.uint64)
        function = f"combine_weights<{combining.how}, {str(combining.floats).lower()}>"
        of = keys, *size, ends, weights, combined, large
        device.launch(_SOURCE, function, strip_lanes(count), of)
        if int(large[0]):
            raise OverflowError("sums of weights are more than 32 bits can say")
    return made._replace(weights=combined)


def offsets_of(device: Device, counts: Any, edges: int) -> Any:
    """Compute where each row begins, and the end: uint32 if ``edges``, the sum of ``counts``,
    allows it, else uint64.
    """
    dtype = offsets_dtype(edges)
    with device.use() as cupy:
        offsets = cupy.zeros(len(counts) + 1, dtype)
        offsets[1:] = cupy.cumsum(counts, dtype=dtype)
    return offsets


@dataclass(frozen=True)
class DeviceRows:
    """A graph on the device, numbered by position: compressed sparse rows, neighbours hub first.

    offsets, reverse_offsets: uint32 or uint64 (n + 1,). targets, reverse_targets: uint32. In an
    undirected graph, the reverse ones are the same arrays. degree: by position, the number of input
    rows that touch each vertex. rows_from: by position, the number of input rows that leave it
    (undirected: the same array). position: uint32 by dense id, UNREACHED where the id is no vertex.
    id_of_position: uint32. self_loops: of the input. weights, reverse_weights: uint32, bits of each
    target's weight; None if there are none.
    """

    offsets: Any
    targets: Any
    reverse_offsets: Any
    reverse_targets: Any
    degree: Any
    rows_from: Any
    position: Any
    id_of_position: Any
    self_loops: int
    weights: Any = None
    reverse_weights: Any = None

    @property
    def vertices(self) -> int:
        return len(self.id_of_position)


def prepare(
    device: Device,
    batches: list[Columns],
    domain: int,
    directed: bool,
    combining: Combining | None = None,
) -> DeviceRows:
    """Make rows by position from edges on the device.

    batches: of dense ids below ``domain``; the list is emptied, and edges that nothing else holds
    are freed before the sort. combining: of the weights that come along. Holds ``bytes_needed`` at
    most. Raises DeviceMemoryError where the device has no room, DeviceError for what it cannot
    number, OverflowError where a sum of weights is more than 32 bits can say.
    """
    rows = sum(len(batch[0]) for batch in batches)
    with device.use():
        degrees = count_degrees(device, batches, domain, rows, directed)
        positions = position_vertices(device, degrees)
        position, id_of_position, degree = positions
        rows_from = degree if degrees.out_degree is None else degrees.out_degree[id_of_position]
        self_loops = int(degrees.loops[0])
        del degrees
        n = len(id_of_position)
        places = one_graph(n, directed)
        keys, weights = sorted_keys(device, batches, positions, places)
        del positions
        counts, targets, weights = rows_of(device, keys, places.rows, weights, combining)
        del keys
        if not directed:
            offsets = offsets_of(device, counts, len(targets))
            forward = reverse = (offsets, targets)
            both = weights, weights
        else:
            # Every edge stands in both halves.
            half = len(targets) // 2
            forward = offsets_of(device, counts[:n], half), targets[:half]
            reverse = offsets_of(device, counts[n:], half), targets[half:]
            both = (None, None) if weights is None else (weights[:half], weights[half:])
    of_vertices = degree, rows_from, position, id_of_position, self_loops
    return DeviceRows(*forward, *reverse, *of_vertices, *both)


def warm_up(device: Device, rows: int, directed: bool, combining: Combining | None = None) -> None:
    """Compile what preparing a graph of ``rows`` input rows calls, by preparing one edge."""
    with device.use() as cupy:
        edge = tuple(cupy.asarray(np.array([end], np.uint32)) for end in (0, 1))
        if combining is not None:
            edge = *edge, edge[0]
        degrees = count_degrees(device, [edge], 2, rows, directed)
        positions = position_vertices(device, degrees)
        count_classes(device, [edge], positions, np.array([2]))
        degree_classes(device, positions.degree)
        positions_by_id(device, positions.position)
        found = sorted_keys(device, [edge], positions, one_graph(2, directed))
        rows_of(device, found.keys, 4, found.weights, combining)
