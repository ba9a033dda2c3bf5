"""A rank of a search by several devices in a grid of partitions (layouts 2d and 1d): what it loads
from a store, and what it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_VERTICES, NEXT
from ....kernels.gpu.search import widened
from ....kernels.gpu_ranks.grid_mail import Letters, inboxes_of
from ....kernels.gpu_ranks.grid_rows import GridNumbering, GridRows, GridRowsMaker
from ....kernels.gpu_ranks.grid_search import MOST_QUEUED, GpuGridSearch, GridLevel
from ....kernels.gpu_ranks.grid_structures import ARRIVAL
from ....kernels.gpu_ranks.grid_structures import LEVEL as LEVEL_RECORD
from ....kernels.gpu_ranks.launches import LEVELS as MOST_LEVELS
from ....kernels.gpu_ranks.numbering import aligned
from ....partition.disk.memory import format_bytes
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, Message
from ...run.records import SuperstepRecord
from ..device import Room
from ..ranks.result import Part, RankResult
from .rows import make_rows

_SLACK = 96 << 20  # small arrays, what the pool rounds up


def numbering_of(store: Store, ranks: int) -> GridNumbering:
    grid = store.info.grid
    assert grid is not None
    return GridNumbering(ranks, grid.rows, grid.columns, store.info.vertices)


def room_for(store: Store, rank: int, ranks: int, device: Device, beside: int = 0) -> Room:
    """Where the targets of a rank's tiles go.

    beside: bytes that are held on the device beside the rows and their search.
    Raises DeviceMemoryError where not even what must be on the device fits.
    """
    info = store.info
    known = numbering_of(store, ranks).known(rank)
    own, rows, numbers = known.own_numbers, known.row_numbers, known.numbers
    parts = range(rank, info.partitions, ranks)
    names = kept_subgraphs(info.grid, info.directed)
    targets = [
        sum(store.files[file].bytes for p in parts for file in store.shards(p, name))
        for name in names
    ]
    if numbers > MOST_VERTICES:
        raise DeviceMemoryError(
            f"rank {rank} of {ranks} would know {numbers:,} vertices: too many for a device"
        )
    offsets = 8 * len(names) * (3 * rows + len(parts) * (rows + 1))
    columns = 4 * (1 + NEXT) * rows
    bitmaps = (2 * numbers + 2 * rows + own + 4 * numbers) // 8
    queue = (4 + 2 * 8) * min(rows, MOST_QUEUED)
    state = own * (1 + 4) + 4 * numbers + bitmaps + queue + rows
    # What others say of a partition, where the host carries it: a bitmap, a list, what is wanted.
    told = inboxes_of(Letters(numbering_of(store, ranks)), rank)
    inboxes = 3 * sum(aligned(known.at[p].vertices) // 8 for _, p in told)
    records = MOST_LEVELS * LEVEL_RECORD.itemsize
    loading = store.largest_shard
    least = offsets + columns + state + inboxes + records + loading + _SLACK
    least += beside
    if least > device.memory_bytes:
        raise DeviceMemoryError(
            f"{format_bytes(device.memory_bytes)} may be held on {device}, and rank {rank} of "
            f"{ranks} needs {format_bytes(least)} there"
        )
    near = min(max(targets) // 4, (device.memory_bytes - least) // (4 * len(names)))
    pinned = sum(max(0, some - 4 * near) for some in targets)
    result = 2 * (4 + 4) * own
    host = pinned + max(result, loading + 8 * rows)
    there = least + sum(min(some, 4 * near) for some in targets)
    return Room(near, host, there, max(targets) // 4)


def numbers_of(store: Store, rank: int, ranks: int) -> tuple[int, int]:
    """What a rank knows: own vertices, and ghosts."""
    known = numbering_of(store, ranks).known(rank)
    return known.own_numbers, known.numbers - known.own_numbers


def load(
    store: Store,
    device: Device,
    rank: int,
    ranks: int,
    team: Team,
    room: Room,
    check: Callable[[], None] = lambda: None,
) -> GridRows:
    """Reads and verifies the partitions of a rank, a shard at a time.

    check: called before each subgraph, and each shard.
    """
    info = store.info
    maker = GridRowsMaker(device, numbering_of(store, ranks), rank, info.directed, room.near)
    make_rows(store, maker, kept_subgraphs(info.grid, info.directed), team, check)
    return maker.finish()


def collect(
    search: GpuGridSearch, communicator: Communicator
) -> tuple[RankResult, list[SuperstepRecord]]:
    """What a rank found; on rank 0, what the ranks did together."""
    known = search.rows.known
    with search.device.use():
        distance = widened(search.distance.get())
        parent = search.parent[: known.own_numbers].get()
    parts = {
        p: Part(distance[first : first + vertices], parent[first : first + vertices])
        for p, first, vertices, _ in known.segments[: known.own]
    }
    levels = search.levels()
    counts = np.array([level[1:-1] for level in levels], np.int64).reshape(-1, 4)
    told: Message = [counts.ravel()]
    nothing: Message = []
    size = communicator.size
    came = communicator.exchange([told if peer == 0 else nothing for peer in range(size)])
    if communicator.rank:
        return RankResult(parts, None), []
    together = np.sum([message[0] for message in came], axis=0).reshape(counts.shape)
    no_delegates = Part(np.empty(0, np.int32), np.empty(0, np.uint32))
    records = list(_records(levels, together, search.seconds(), search.rows.numbering))
    return RankResult(parts, no_delegates), records


def _records(
    levels: list[GridLevel], together: NDArray[np.int64], seconds: float, grid: GridNumbering
) -> Iterator[SuperstepRecord]:
    """Times are rank 0's."""
    clocks = max(1, sum(sum(level.clocks) for level in levels))
    frontier = 1
    for i, (found, examined, expand, fold) in enumerate(together.tolist()):
        if not (found or examined):
            return
        pulled = levels[i].direction == "pull"
        expands = 1 + (pulled and grid.columns > 1)
        rounds = expands + ((grid.rows if pulled else grid.columns) > 1)
        yield SuperstepRecord(
            level=i + 1,
            direction={"all": levels[i].direction},
            frontier=frontier,
            found=found,
            edges_examined=examined,
            bytes_read=0,
            blocks_skipped=0,
            bytes_sent={
                "expand": expand,
                "fold": fold,
                "control": rounds * grid.ranks * (grid.ranks - 1) * ARRIVAL.itemsize,
            },
            seconds=seconds * sum(levels[i].clocks) / clocks,
        )
        frontier = found
