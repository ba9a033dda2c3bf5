"""A rank of a search by several devices: what it loads from a store, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_SHORT, NEXT
from ....kernels.gpu.search import widened
from ....kernels.gpu_ranks.delegate_rows import MOST_NUMBERS, RankRows, RankRowsMaker
from ....kernels.gpu_ranks.delegate_search import GpuRankSearch, RankLevel
from ....kernels.gpu_ranks.delegate_structures import ARRIVAL
from ....kernels.gpu_ranks.delegate_structures import LEVEL as LEVEL_RECORD
from ....kernels.gpu_ranks.launches import LEVELS as MOST_LEVELS
from ....kernels.gpu_ranks.numbering import ALIGNED, RankNumbering, aligned
from ....partition.disk.memory import format_bytes
from ....partition.store.layout import ends_of, kept_subgraphs, local_rows
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, Message
from ...run.records import SuperstepRecord
from ..device import Room
from ..ranks.result import Part, RankResult
from .rows import make_rows

_SLACK = 96 << 20  # small arrays, queues, what the pool rounds up


def room_for(store: Store, rank: int, ranks: int, device: Device, beside: int = 0) -> Room:
    """Where the targets of a rank's dd, dn and nd go; nn is on the device.

    beside: bytes that are held on the device beside the rows and their search.
    Raises DeviceMemoryError where not even what must be on the device fits.
    """
    info = store.info
    nn, forward, reverse = _target_bytes(store, rank, ranks)
    parts = range(rank, info.partitions, ranks)
    delegates = _delegate_numbers(store)
    own, ghosts = numbers_of(store, rank, ranks)
    normals = own - delegates
    offsets = 8 * 2 * (own * (2 if info.directed else 1) + normals)
    kinds = 4 if info.directed else 2  # of subgraphs with a row for each delegate
    stored_offsets = 8 * (kinds * delegates * len(parts) + 3 * (own + len(parts)))
    if nn // 4 >= MOST_SHORT or own + ghosts > MOST_NUMBERS:
        raise DeviceMemoryError(
            f"rank {rank} of {ranks} has {nn // 4:,} edges between normal vertices and would know "
            f"up to {own + ghosts:,} vertices: too many for a device"
        )
    columns = 4 * (1 + NEXT) * own
    mailed = delegates + ghosts  # in two rounds, as a bitmap and as a list
    bitmaps = (2 * (own + ghosts) + own + 4 * mailed + 2 * delegates) // 8
    rows_along_nn = 8 * min(normals, nn // 4)
    state = own * (1 + 4) + 4 * (own + ghosts) + bitmaps + rows_along_nn
    # A ghost's number stands with its owner, too; while they are numbered, a bitmap of all
    # vertices, and the numbers of delegates.
    known = 4 * 2 * ghosts + info.vertices // 4 + 4 * 2 * delegates
    records = MOST_LEVELS * LEVEL_RECORD.itemsize
    loading = store.largest_shard
    least = nn + offsets + stored_offsets + columns + state + known + records + loading + _SLACK
    least += beside
    if least > device.memory_bytes:
        raise DeviceMemoryError(
            f"{format_bytes(device.memory_bytes)} may be held on {device}, and rank {rank} of "
            f"{ranks} needs {format_bytes(least)} there"
        )
    ways = 2 if info.directed else 1
    near = min(max(forward, reverse) // 4, (device.memory_bytes - least) // (4 * ways))
    pinned = sum(max(0, some - 4 * near) for some in (forward, reverse))
    result = 2 * (4 + 4) * own
    host = pinned + max(result, loading + 8 * own) + 4 * ghosts
    there = least + sum(min(some, 4 * near) for some in (forward, reverse))
    return Room(near, host, there, max(forward, reverse) // 4)


def numbers_of(store: Store, rank: int, ranks: int) -> tuple[int, int]:
    """What a rank knows, at most: delegates and own vertices; ghosts."""
    info, parts = store.info, range(rank, store.info.partitions, ranks)
    skipped = info.delegates if info.order == "degree" else 0
    normals = sum(
        aligned(
            local_rows(info.vertices, info.partitions, p) - local_rows(skipped, info.partitions, p)
        )
        for p in parts
    )
    nn = _target_bytes(store, rank, ranks)[0]
    return _delegate_numbers(store) + normals, min(nn // 4, info.vertices) + ranks * ALIGNED


def _delegate_numbers(store: Store) -> int:
    """At most: those of each partition begin at a multiple of ALIGNED."""
    return aligned(store.info.delegates) + store.info.partitions * ALIGNED


def _target_bytes(store: Store, rank: int, ranks: int) -> tuple[int, int, int]:
    """Of a rank: of nn, of the other rows, and of their transposes."""
    info = store.info
    sums = [0, 0, 0]
    for name in kept_subgraphs(info.grid, info.directed):
        kind = 0 if name == "nn" else 2 if name.startswith("reverse-") else 1
        for p in range(rank, info.partitions, ranks):
            sums[kind] += sum(store.files[file].bytes for file in store.shards(p, name))
    return sums[0], sums[1], sums[2]


def load(
    store: Store,
    device: Device,
    rank: int,
    ranks: int,
    team: Team,
    room: Room,
    check: Callable[[], None] = lambda: None,
) -> RankRows:
    """Reads and verifies the partitions of a rank, a shard at a time.

    check: called before each subgraph, and each shard.
    """
    info = store.info
    delegates = None if info.order == "degree" else store.delegates(team)
    numbering = RankNumbering.of(
        *(ranks, info.partitions, info.vertices),
        info.delegates if delegates is None else delegates,
    )
    maker = RankRowsMaker(device, numbering, rank, info.directed, delegates, room.near)
    # Hubs first: a row's delegates come before its normal vertices.
    names = sorted(
        kept_subgraphs(info.grid, info.directed), key=lambda name: ends_of(name)[1] == "n"
    )
    make_rows(store, maker, names, team, check)
    return maker.finish()


def collect(
    search: GpuRankSearch, communicator: Communicator
) -> tuple[RankResult, list[SuperstepRecord]]:
    """What a rank found; on rank 0, what the ranks did together.

    The distances of delegates come to rank 0 from their owners, parents from those who found them.
    """
    rows, numbering = search.rows, search.rows.numbering
    ranks, rank, end = communicator.size, communicator.rank, search.rows.numbering.first_normal
    with search.device.use():
        distance = widened(search.distance.get())
        parent = search.parent[: rows.own_numbers].get()
        known = search.knows()[:end].get()
    parts = {p: Part(*_parts(numbering, rank, p, distance, parent)) for p in numbering.own(rank)}
    parents = np.where(known, parent[:end], UNREACHED)
    known = np.flatnonzero(known).astype(np.uint32)
    levels = search.levels()
    counts = np.array([level[1:-1] for level in levels], np.int64).reshape(-1, 5)
    nothing: Message = []
    own = slice(*numbering.own_delegates(rank))
    told: Message = [distance[own], known, parents[known], counts.ravel()]
    came = communicator.exchange([told if peer == 0 else nothing for peer in range(ranks)])
    records: list[SuperstepRecord] = []
    delegates: Part | None = None
    if rank == 0:
        together = counts.copy()
        for peer, (distances, places, theirs, more) in enumerate(came):
            distance[slice(*numbering.own_delegates(peer))] = distances
            if peer != rank:
                parents[places] = theirs
                together += more.reshape(counts.shape)
        together[:, 1] = counts[:, 1]  # delegates: all ranks have them
        numbers = rows.delegate_numbers(np)
        delegates = Part(distance[numbers], parents[numbers])
        records = list(_records(levels, together, search.seconds(), ranks))
    return RankResult(parts, delegates), records


def _parts(
    numbering: RankNumbering, rank: int, partition: int, *every: NDArray
) -> Iterator[NDArray]:
    """Of a partition's rows, from all that a rank has; what rows of delegates get says nothing."""
    _, first, vertices, skipped = numbering.normal_segments(rank)[partition]
    for values in every:
        yield np.concatenate([values[:1].repeat(skipped), values[first : first + vertices]])


def _records(
    levels: list[RankLevel], together: NDArray[np.int64], seconds: float, ranks: int
) -> Iterator[SuperstepRecord]:
    """Directions and times are rank 0's."""
    clocks = max(1, sum(sum(level.clocks) for level in levels))
    frontier = 1
    for i, (normals, delegates, examined, *sent) in enumerate(together.tolist()):
        if not (normals or delegates or examined):
            return
        direction = levels[i].direction
        yield SuperstepRecord(
            level=i + 1,
            direction={"nn": "push", "nd": direction, "dn": direction, "dd": direction},
            frontier=frontier,
            found=normals + delegates,
            edges_examined=examined,
            bytes_read=0,
            blocks_skipped=0,
            bytes_sent={
                "delegates": sent[0],
                "normals": sent[1],
                "control": ranks * (ranks - 1) * ARRIVAL.itemsize,
            },
            seconds=seconds * sum(levels[i].clocks) / clocks,
        )
        frontier = normals + delegates
