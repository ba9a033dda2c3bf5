"""A rank of a search by several devices: what it loads from a store, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..kernels.device import Device, DeviceMemoryError
from ..kernels.device_graph import MOST_SHORT, NEXT
from ..kernels.gpu_rank import GpuRankSearch, RankLevel
from ..kernels.gpu_search import widened
from ..kernels.graph import UNREACHED
from ..kernels.rank_launches import LEVELS as MOST_LEVELS
from ..kernels.rank_rows import (
    ALIGNED,
    MOST_NUMBERS,
    RankNumbering,
    RankRows,
    RankRowsMaker,
    aligned,
)
from ..kernels.rank_structures import ARRIVAL
from ..kernels.rank_structures import LEVEL as LEVEL_RECORD
from ..kernels.team import Team
from ..partition.layout import ends_of, kept_subgraphs
from ..partition.memory import format_bytes
from ..partition.store import Store
from .communicator import Communicator, Message
from .device_rows import make_rows
from .device_search import Room
from .metrics import SuperstepRecord
from .rank_result import Part, RankResult

_SLACK = 96 << 20  # small arrays, queues, what the pool rounds up


def numbering_of(store: Store, ranks: int) -> RankNumbering:
    info = store.info
    hubs_first = info.order == "degree"
    return RankNumbering(ranks, info.partitions, info.vertices, info.delegates, hubs_first)


def room_for(store: Store, rank: int, ranks: int, device: Device, beside: int = 0) -> Room:
    """Where the targets of a rank's dd, dn and nd go; nn is on the device.

    beside: bytes that are held on the device beside the rows and their search.
    Raises DeviceMemoryError where not even what must be on the device fits.
    """
    info, numbering = store.info, numbering_of(store, ranks)
    nn, forward, reverse = _target_bytes(store, rank, ranks)
    normals = numbering.normals(rank)
    own, ghosts = numbers_of(store, rank, ranks)
    offsets = 8 * 2 * (own * (2 if info.directed else 1) + normals)
    kinds = 4 if info.directed else 2  # of subgraphs with a row for each delegate
    parts = numbering.parts(rank)
    stored_offsets = 8 * (kinds * info.delegates * parts + 3 * (normals + info.delegates + parts))
    if nn // 4 >= MOST_SHORT or own + ghosts > MOST_NUMBERS:
        raise DeviceMemoryError(
            f"rank {rank} of {ranks} has {nn // 4:,} edges between normal vertices and would know "
            f"up to {own + ghosts:,} vertices: too many for a device"
        )
    columns = 4 * (1 + NEXT) * own
    mailed = numbering.first_normal + ghosts  # in two rounds, as a bitmap and as a list
    bitmaps = (2 * (own + ghosts) + own + 4 * mailed + 3 * numbering.first_normal) // 8
    rows_along_nn = 8 * min(normals, nn // 4)
    state = own * (1 + 4) + 4 * (own + ghosts) + bitmaps + rows_along_nn
    # A ghost's number stands with its owner, too; a bitmap of all vertices while they are numbered.
    known = 4 * 2 * ghosts + info.vertices // 4
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
    return Room(near, host, least + sum(min(some, 4 * near) for some in (forward, reverse)))


def numbers_of(store: Store, rank: int, ranks: int) -> tuple[int, int]:
    """What a rank knows: delegates and own vertices; at most so many ghosts."""
    numbering = numbering_of(store, ranks)
    normals = numbering.normals(rank)
    own = numbering.first_normal + aligned(normals)
    nn = _target_bytes(store, rank, ranks)[0]
    return own, min(nn // 4, store.info.vertices - normals) + ranks * ALIGNED


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
    info, numbering = store.info, numbering_of(store, ranks)
    maker = RankRowsMaker(device, numbering, rank, info.directed, room.near)
    # Hubs first: a row's delegates come before its normal vertices.
    names = sorted(
        kept_subgraphs(info.grid, info.directed), key=lambda name: ends_of(name)[1] == "n"
    )
    make_rows(store, maker, names, team, check)
    return maker.finish(None if numbering.hubs_first else store.delegates(team))


def collect(
    search: GpuRankSearch, communicator: Communicator
) -> tuple[RankResult, list[SuperstepRecord]]:
    """What a rank found; on rank 0, what the ranks did together.

    The parents of delegates come to rank 0 from those who found them.
    """
    rows, numbering = search.rows, search.rows.numbering
    ranks, rank = communicator.size, communicator.rank
    with search.device.use():
        distance = widened(search.distance.get())
        parent = search.parent[: rows.own_numbers].get()
        known = search.knows()[: numbering.delegates].get()
    parts = {
        p: Part(_part(rows, p, distance), _part(rows, p, parent))
        for p in range(rank, numbering.partitions, ranks)
    }
    parents = np.where(known, parent[: numbering.delegates], UNREACHED)
    known = np.flatnonzero(known).astype(np.uint32)
    levels = search.levels()
    counts = np.array([level[1:-1] for level in levels], np.int64).reshape(-1, 5)
    nothing: Message = []
    told: Message = [known, parents[known], counts.ravel()]
    came = communicator.exchange([told if peer == 0 else nothing for peer in range(ranks)])
    records: list[SuperstepRecord] = []
    delegates: Part | None = None
    if rank == 0:
        together = counts.copy()
        for peer, (places, theirs, more) in enumerate(came):
            if peer != rank:
                parents[places] = theirs
                together += more.reshape(counts.shape)
        together[:, 1] = counts[:, 1]  # delegates: all ranks have them
        delegates = Part(distance[: numbering.delegates], parents)
        records = list(_records(levels, together, search.seconds(), ranks))
    return RankResult(parts, delegates), records


def _part(rows: RankRows, partition: int, values: NDArray) -> NDArray:
    """Of a partition's rows, from all that a rank has; what rows of delegates get says nothing."""
    numbering = rows.numbering
    step, first = numbering.place_of_part(rows.rank, partition)
    count = len(range(partition, numbering.vertices, numbering.partitions))
    begin = max(0, -(first // step))
    part = np.full(count, values.dtype.type(-1) if values.dtype.kind == "i" else UNREACHED)
    part = part.astype(values.dtype)
    own = values[numbering.first_normal + begin * step + first :: step]
    part[begin:] = own[: count - begin]
    return part


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
