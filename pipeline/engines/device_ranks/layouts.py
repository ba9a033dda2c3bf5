"""A rank of a search by several devices, whatever the layout of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....kernels.gpu_ranks.delegate_check import RankChecker
from ....kernels.gpu_ranks.delegate_check import global_ids as rank_ids
from ....kernels.gpu_ranks.delegate_search import KERNEL as DELEGATES
from ....kernels.gpu_ranks.delegate_search import GpuRankSearch
from ....kernels.gpu_ranks.grid_check import GridChecker
from ....kernels.gpu_ranks.grid_check import global_ids as grid_ids
from ....kernels.gpu_ranks.grid_search import KERNEL as GRID
from ....kernels.gpu_ranks.grid_search import GpuGridSearch
from ....partition.store.store import Store
from ...ranks.communicator import Communicator
from ...run.records import SuperstepRecord
from ..device import Room
from ..ranks.result import RankResult, save
from . import delegates as device_rank
from . import grid as device_grid

DeviceSearchOfRank = GpuRankSearch | GpuGridSearch


def room_for(store: Store, rank: int, ranks: int, device: Device, beside: int = 0) -> Room:
    """Where a rank's targets go. beside: what else is held there. DeviceMemoryError: nowhere."""
    how = device_rank if store.info.grid is None else device_grid
    return how.room_for(store, rank, ranks, device, beside)


def compile_search(store: Store, device: Device, room: Room) -> None:
    """Before anything is loaded: see Room."""
    room.compile(device, DELEGATES if store.info.grid is None else GRID)


def numbers_of(store: Store, rank: int, ranks: int) -> tuple[int, int]:
    """What a rank knows, at most: delegates and own vertices; ghosts."""
    how = device_rank if store.info.grid is None else device_grid
    return how.numbers_of(store, rank, ranks)


def load(
    store: Store,
    device: Device,
    rank: int,
    ranks: int,
    team: Team,
    check: Callable[[], None] = lambda: None,
    beside: int = 0,
) -> DeviceSearchOfRank:
    """Reads and verifies the partitions of a rank. check: called before each shard, and while the
    rank searches. beside: bytes that are held on the device besides.
    """
    room = room_for(store, rank, ranks, device, beside)
    arguments = (store, device, rank, ranks, team, room, check)
    if store.info.grid is None:
        return GpuRankSearch(device, device_rank.load(*arguments), check)
    return GpuGridSearch(device, device_grid.load(*arguments), check)


def collect(
    search: DeviceSearchOfRank, communicator: Communicator
) -> tuple[RankResult, list[SuperstepRecord]]:
    """What a rank found; on rank 0, what the ranks did together."""
    if isinstance(search, GpuGridSearch):
        return device_grid.collect(search, communicator)
    return device_rank.collect(search, communicator)


def finish(
    search: DeviceSearchOfRank, communicator: Communicator, folder: Path
) -> list[SuperstepRecord]:
    """Save what a rank found in ``folder``; on rank 0, what the ranks did together."""
    result, records = collect(search, communicator)
    save(result, folder)
    return records


def checker_of(search: DeviceSearchOfRank, communicator: Communicator) -> RankChecker | GridChecker:
    """Of what a search of an undirected graph finds, on the device."""
    if isinstance(search, GpuGridSearch):
        return GridChecker(search.device, search, communicator.exchange)
    return RankChecker(search.device, search, communicator.exchange)


def own_ids(search: DeviceSearchOfRank) -> NDArray[np.uint32]:
    """Global ids, by a rank's own numbers, of what it owns; else UNREACHED."""
    with search.device.use() as cupy:
        if isinstance(search, GpuGridSearch):
            return grid_ids(cupy, search.rows)[: search.rows.own_numbers].get()
        ids = rank_ids(cupy, search.rows)[: search.rows.own_numbers]
        numbering = search.rows.numbering
        first, end = numbering.own_delegates(search.rows.rank)
        ids[:first] = UNREACHED
        ids[end : numbering.first_normal] = UNREACHED
        return ids.get()
