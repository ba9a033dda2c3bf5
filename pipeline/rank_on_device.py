"""A rank of a search by several devices, whatever the layout of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..kernels.device import Device
from ..kernels.gpu_grid import GpuGridSearch
from ..kernels.gpu_rank import GpuRankSearch
from ..kernels.team import Team
from ..partition.store import Store
from . import device_grid, device_rank
from .communicator import Communicator
from .device_search import Room
from .metrics import SuperstepRecord

DeviceSearchOfRank = GpuRankSearch | GpuGridSearch


def room_for(store: Store, rank: int, ranks: int, device: Device) -> Room:
    """Where a rank's targets go. DeviceMemoryError: nowhere."""
    how = device_rank if store.info.grid is None else device_grid
    return how.room_for(store, rank, ranks, device)


def load(
    store: Store,
    device: Device,
    rank: int,
    ranks: int,
    team: Team,
    check: Callable[[], None] = lambda: None,
) -> DeviceSearchOfRank:
    """Reads and verifies the partitions of a rank. check: called before each shard, and while the
    rank searches.
    """
    arguments = (store, device, rank, ranks, team, room_for(store, rank, ranks, device), check)
    if store.info.grid is None:
        return GpuRankSearch(device, device_rank.load(*arguments), check)
    return GpuGridSearch(device, device_grid.load(*arguments), check)


def finish(
    search: DeviceSearchOfRank, communicator: Communicator, folder: Path
) -> list[SuperstepRecord]:
    """Save what a rank found in ``folder``; on rank 0, what the ranks did together."""
    if isinstance(search, GpuGridSearch):
        return device_grid.finish(search, communicator, folder)
    return device_rank.finish(search, communicator, folder)
