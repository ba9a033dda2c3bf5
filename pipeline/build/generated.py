"""Preparation of a generated graph across ranks with a device each. Nothing is written to disk.

Every rank makes its slice of the edges. Degrees are added up over all ranks, and each rank computes
the positions of vertices. Keys (cuda/prepare/prepare.cu) are sent to the rank that has their
partition, which sorts them. Each rank has one partition, in the layout of delegates or of a grid,
as in a store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device
from ...kernels.gpu.graph import Array
from ...kernels.gpu.peer_memory import PeerMemory, all_to_all
from ...kernels.gpu.prepare import Columns, Degrees, Positions, RowPlacement
from ...kernels.gpu_ranks.delegate_rows import DelegateRows, DelegateRowsMaker
from ...kernels.gpu_ranks.grid_rows import GridNumbering, GridRows, GridRowsMaker
from ...kernels.gpu_ranks.numbering import DelegateNumbering
from ...kernels.prepare.csr import SLOTS, SUBGRAPHS
from ...partition.store.grid import Grid
from ...partition.store.layout import local_rows
from ...partition.store.order import Threshold, VertexOrder, choose_threshold
from ..ranks.communicator import Communicator

NN_SHARE = 0.0005
"""Share of nn rows aimed at by an automatic threshold: a device handles delegates faster than nn
rows.
"""
_PIECE = 1 << 28  # targets whose places in a grid are computed at once
_DELEGATE_ROWS = (SUBGRAPHS.index("dn"), SUBGRAPHS.index("dd"))


class Prepared(NamedTuple):
    """A rank's share of a graph, ready to be searched.

    rows_from: the number of input rows that touch each vertex, by the rank's own numbers; 0 for
    delegates that other ranks own. id_of_position: uint32, of all vertices, on the device.
    threshold: None in a grid. edges, input_rows: of the whole graph. entries: of this rank, by
    subgraph.
    """

    rows: DelegateRows | GridRows
    rows_from: Array
    id_of_position: Array
    threshold: Threshold | None
    edges: int
    input_rows: int
    entries: dict[str, int]


def prepare(
    device: Device,
    batches: list[Columns],
    domain: int,
    communicator: Communicator,
    threshold: int | None,
    grid: Grid | None = None,
) -> Prepared:
    """Prepare a rank's share of a graph.

    batches: this rank's edges, as dense ids below ``domain``; emptied. grid: of as many partitions
    as ranks; None for the layout of delegates.
    """
    rank, ranks = communicator.rank, communicator.size
    own_rows = sum(len(src) for src, _ in batches)
    rows = total(communicator, np.array([own_rows]))[0]
    with device.use() as cupy:
        positions = _position_vertices(device, batches, domain, int(rows), communicator)
        order = VertexOrder(*gpu_prepare.degree_classes(device, positions.degree))
        n, chosen = order.vertices, None
        if grid is None:
            histogram = gpu_prepare.count_classes(device, batches, positions, order.counts)
            histogram = total(communicator, histogram)
            chosen = choose_threshold(order, histogram, ranks, threshold, NN_SHARE)
        places, firsts = _places(n, chosen.delegates if chosen else 0, ranks, grid)
        keys = _sort_own(device, batches, positions, places, firsts, communicator)
        row_count = int(firsts[rank + 1] - firsts[rank])
        counted = gpu_prepare.rows_of(device, keys, row_count)
        del keys
        cupy.get_default_memory_pool().free_all_blocks()
        if chosen is None:
            assert grid is not None
            numbering = GridNumbering(ranks, grid.rows, grid.columns, n)
            made, entries = _take_tile(device, numbering, grid, rank, counted)
            own_segments = [made.known.at[rank]]
        else:
            numbering = DelegateNumbering.of(ranks, ranks, n, chosen.delegates)
            maker = DelegateRowsMaker(device, numbering, rank, directed=False)
            entries = _take(maker, rank, counted, n, chosen.delegates)
            made = maker.finish()
            segments = (numbering.delegate_segments, numbering.normal_segments(rank))
            own_segments = [by_rank[rank] for by_rank in segments]
        del counted
        rows_from = cupy.zeros(made.own_numbers, np.uint64)
        for _, first, vertices, skipped in own_segments:
            own_degrees = positions.degree[rank::ranks][skipped : skipped + vertices]
            rows_from[first : first + vertices] = own_degrees
        edges = total(communicator, np.array([sum(entries.values())]))[0] // 2
        ids = positions.id_of_position
        return Prepared(made, rows_from, ids, chosen, int(edges), int(rows), entries)


def _position_vertices(
    device: Device, batches: list[Columns], domain: int, rows: int, communicator: Communicator
) -> Positions:
    """Compute the positions of vertices, which are the same on every rank."""
    cupy = device.cupy
    found = gpu_prepare.count_degrees(device, batches, domain, rows, directed=False)
    degree = combine(device, found.degree, communicator, cupy.sum)
    looped = combine(device, found.looped, communicator, cupy.max)
    return gpu_prepare.position_vertices(device, Degrees(degree, None, looped, found.loops))


def combine(
    device: Device, values: Array, communicator: Communicator, how: Callable[..., Array]
) -> Array:
    """Combine the arrays of all ranks by a sum or another reduction, and return the result on each
    rank. Each rank reduces one part, then all ranks gather the parts.
    """
    ranks, rank = communicator.size, communicator.rank
    starts = [len(values) * r // ranks for r in range(ranks + 1)]
    memory = PeerMemory(device, values.nbytes)
    memory.array(0, len(values), values.dtype)[:] = values
    parts = all_to_all(device, memory, starts, values.dtype, communicator.exchange, rank)
    length = starts[rank + 1] - starts[rank]
    summed = how(parts.reshape(ranks, length), axis=0).astype(values.dtype)
    del parts
    memory = PeerMemory(device, ranks * summed.nbytes)
    copies = memory.array(0, ranks * length, values.dtype).reshape(ranks, length)
    copies[:] = summed
    at = [length * r for r in range(ranks + 1)]
    return all_to_all(device, memory, at, values.dtype, communicator.exchange, rank)


def _places(
    vertices: int, delegates: int, ranks: int, grid: Grid | None
) -> tuple[RowPlacement, NDArray[np.int64]]:
    """Return the placement of edges in rows, and the first row of each rank's partition, followed
    by the end.
    """
    first_row = np.full(ranks * SLOTS, -1, np.int64)
    firsts = [0]
    at = 0
    for p in range(ranks):
        if grid is not None:
            first_row[p * SLOTS] = at
            at += local_rows(vertices, grid.columns, grid.column(p))
        for i in range(len(SUBGRAPHS) if grid is None else 0):
            first_row[p * SLOTS + i] = at
            at += delegates if i in _DELEGATE_ROWS else local_rows(vertices, ranks, p)
        firsts.append(at)
    columns = 0 if grid is None else grid.columns
    places = RowPlacement(first_row, at, False, ranks, delegates, columns=columns)
    return places, np.array(firsts)


def _sort_own(
    device: Device,
    batches: list[Columns],
    positions: Positions,
    places: RowPlacement,
    firsts: NDArray[np.int64],
    communicator: Communicator,
) -> Array:
    """Return the sorted keys of this rank's rows, numbered from its first row."""
    cupy, rank = device.cupy, communicator.rank
    keys = gpu_prepare.sorted_keys(device, batches, positions, places).keys
    bounds = cupy.asarray(firsts.astype(np.uint64) << np.uint64(32))
    starts = cupy.searchsorted(keys, bounds).get().tolist()
    mine = [keys]
    del keys
    return exchange_keys(device, mine, starts, int(firsts[rank]), communicator)


def exchange_keys(
    device: Device,
    keys: list[Array],
    starts: Sequence[int],
    first_row: int,
    communicator: Communicator,
) -> Array:
    """Send each rank its share of sorted keys, and return the received keys, sorted.

    keys: a list of one array, which is taken out of it and freed before other keys arrive. starts:
    the start of each rank's share, followed by the end. first_row: the row that gets number 0
    afterwards.
    """
    with device.use() as cupy:
        memory = PeerMemory(device, 8 * starts[-1])
        memory.array(0, starts[-1], np.uint64)[:] = keys.pop()[: starts[-1]]
        cupy.get_default_memory_pool().free_all_blocks()
        exchange = communicator.exchange
        came = all_to_all(device, memory, starts, np.uint64, exchange, communicator.rank)
        del memory
        came -= np.uint64(first_row << 32)
        gpu_prepare.sort(cupy, came)
    return came


def _take(
    maker: DelegateRowsMaker, rank: int, counted: Any, vertices: int, delegates: int
) -> dict[str, int]:
    """Hand the rows of a partition to ``maker`` as a store's subgraphs. Returns the number of
    entries in each.
    """
    cupy, ranks = maker.device.cupy, maker.numbering.ranks
    normal_rows = local_rows(vertices, ranks, rank)
    offsets, targets, edges = {}, {}, {}
    row = at = 0
    for i, name in enumerate(SUBGRAPHS):
        count = delegates if i in _DELEGATE_ROWS else normal_rows
        lengths = counted.counts[row : row + count]
        row_offsets = cupy.zeros(count + 1, np.uint64)
        row_offsets[1:] = cupy.cumsum(lengths, dtype=np.uint64)
        edges[name] = int(row_offsets[-1])
        offsets[name], targets[name] = row_offsets, counted.targets[at : at + edges[name]]
        row, at = row + count, at + edges[name]
        maker.count(rank, name, row_offsets)
    maker.begin()
    for name in sorted(SUBGRAPHS, key=lambda name: name[1] == "n"):  # hubs first
        if name == "dn":
            targets[name] //= np.uint32(ranks)
        maker.place(rank, name, 0, targets[name])
        maker.end(rank, name)
    return edges


def _take_tile(
    device: Device, numbering: GridNumbering, grid: Grid, rank: int, counted: Any
) -> tuple[GridRows, dict[str, int]]:
    """Make the GridRows of a partition. Returns these and the number of entries."""
    cupy, edges = device.cupy, len(counted.targets)
    maker = GridRowsMaker(device, numbering, rank, directed=False)
    offsets = cupy.zeros(len(counted.counts) + 1, np.uint64)
    offsets[1:] = cupy.cumsum(counted.counts, dtype=np.uint64)
    maker.count(rank, "nn", offsets)
    maker.begin()
    for at in range(0, edges, _PIECE):
        maker.place(rank, "nn", at, grid.in_row(counted.targets[at : at + _PIECE]))
    maker.end(rank, "nn")
    return maker.finish(), {"nn": edges}


def total(communicator: Communicator, values: NDArray) -> NDArray[np.int64]:
    """Return the sum of values over all ranks, the same on each rank."""
    told = communicator.exchange([[values.astype(np.int64)]] * communicator.size)
    return np.sum([message[0] for message in told], axis=0)
