"""A rank on a device in any layout of the store: what it loads, and what it finds.

delegates.py and grid.py have the parts that differ between layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.search import WideKernel
from ....kernels.gpu_ranks.search import Search
from ....partition.disk.memory import format_bytes
from ....partition.store.store import Store
from ...questions.bfs import SuperstepRecord
from ...ranks.communicator import Communicator, Message
from ...results.superstep_log import SuperstepLog
from ..one_device.search import Room
from ..ranks.result import RankResult, save
from .delegates import DelegatesOfRank
from .grid import GridOfRank
from .needs import Needs

_SLACK = 96 << 20  # bytes for small arrays, and for what the memory pool rounds up


class Maker(Protocol):
    """The interface of DelegateRowsMaker and GridRowsMaker."""

    def count(self, partition: int, name: str, offsets: NDArray) -> None: ...

    def begin(self) -> None: ...

    def place(self, partition: int, name: str, begin: int, targets: NDArray[np.uint32]) -> None: ...

    def end(self, partition: int, name: str) -> None: ...

    def finish(self) -> Any: ...


class LayoutOfRank(Protocol):
    """The parts of a rank's work that differ between layouts.

    subgraphs: their names, in the order in which they are loaded.
    """

    @property
    def subgraphs(self) -> Sequence[str]: ...

    @property
    def numbers(self) -> tuple[int, int]:
        """Return bounds on the vertices that the rank knows: on delegates and own vertices
        together, and on ghosts.
        """
        ...

    @property
    def kernel(self) -> WideKernel: ...

    def needs(self, device: Device) -> Needs: ...

    def maker(self, device: Device, near: int, team: Team) -> Maker: ...

    def search_of(self, device: Device, rows: Any) -> Any:
        """Return the kernels.gpu_ranks.search.RankLayout of the loaded rows."""
        ...

    def result(self, search: Search[Any], communicator: Communicator) -> RankResult: ...

    def found(self, level: Any) -> int:
        """Return the number of vertices that a rank found in a superstep, counted so that the sum
        over ranks counts each vertex once.
        """
        ...

    def step(self, direction: str) -> tuple[dict[str, str], int]:
        """Return the direction of each kind of edges, and the bytes by which all ranks tell each
        other that mail is written.
        """
        ...


@dataclass(frozen=True)
class RankOnDevice:
    """A rank, one of ``ranks`` ranks that search a store on devices."""

    store: Store
    rank: int
    ranks: int

    @property
    def layout(self) -> LayoutOfRank:
        kind = DelegatesOfRank if self.store.info.grid is None else GridOfRank
        return kind(self.store, self.rank, self.ranks)

    @property
    def numbers(self) -> tuple[int, int]:
        """Return bounds on the vertices that the rank knows: on delegates and own vertices
        together, and on ghosts.
        """
        return self.layout.numbers

    def room_for(self, device: Device, reserved_bytes: int = 0) -> Room:
        """Return the split of the graph's targets between device memory and host memory.

        reserved_bytes: bytes that are held on the device beside the rank's rows and their search.
        Raises DeviceMemoryError if the arrays that must be on the device do not fit.
        """
        needs = self.layout.needs(device)
        loading = self.store.largest_shard
        least = needs.device + loading + _SLACK + reserved_bytes
        if least > device.memory_bytes:
            raise DeviceMemoryError(
                f"only {format_bytes(device.memory_bytes)} of memory may be used on {device}, but "
                f"rank {self.rank} of {self.ranks} needs {format_bytes(least)} there"
            )
        edge_bytes = 4 * len(needs.targets)
        near = min(max(needs.targets) // 4, (device.memory_bytes - least) // edge_bytes)
        pinned = sum(max(0, target_bytes - 4 * near) for target_bytes in needs.targets)
        result = 2 * (4 + 4) * needs.own
        host = pinned + max(result, loading + 8 * needs.rows) + needs.host
        there = sum(min(target_bytes, 4 * near) for target_bytes in needs.targets)
        return Room(near, host, least + there, max(needs.targets) // 4)

    def compile(self, device: Device, room: Room) -> None:
        """Compile the search before anything is loaded: see Room."""
        room.compile(device, self.layout.kernel)

    def load(
        self,
        device: Device,
        team: Team,
        check: Callable[[], None] = lambda: None,
        reserved_bytes: int = 0,
    ) -> Search[Any]:
        """Read and verify the rank's partitions, and return their search.

        check: called before each shard, and while the rank searches. reserved_bytes: as in
        ``room_for``.
        """
        rows = self.load_rows(device, self.room_for(device, reserved_bytes).near, team, check)
        return Search(self.layout.search_of(device, rows), check)

    def load_rows(
        self, device: Device, near: int, team: Team, check: Callable[[], None] = lambda: None
    ) -> Any:
        """Return the DelegateRows or GridRows of the rank, loaded shard by shard. near: as in
        Room.
        """
        store, layout = self.store, self.layout
        maker = layout.maker(device, near, team)
        parts = range(self.rank, store.info.partitions, self.ranks)
        places = [(p, name) for name in layout.subgraphs for p in parts]
        for p, name in places:
            check()
            maker.count(p, name, store.offsets(p, name, team))
        maker.begin()
        buffer = np.empty(store.largest_shard // 4, np.uint32)
        for p, name in places:
            begin = 0
            for file in store.shards(p, name):
                check()
                shard = store.read_shard(p, name, file, buffer, team)
                maker.place(p, name, begin, shard)
                begin += len(shard)
            maker.end(p, name)
        return maker.finish()

    def collect(
        self, search: Search[Any], communicator: Communicator
    ) -> tuple[RankResult, SuperstepLog]:
        """Return the rank's result and, on rank 0, the log of all ranks' supersteps; other ranks'
        log is empty.
        """
        result = self.layout.result(search, communicator)
        return result, self._records(search, communicator)

    def finish(self, search: Search[Any], communicator: Communicator, folder: Path) -> SuperstepLog:
        """Save the rank's result in ``folder``, and return the log of all ranks' supersteps, which
        is empty unless on rank 0.
        """
        result, records = self.collect(search, communicator)
        save(result, folder)
        return records

    def _records(self, search: Search[Any], communicator: Communicator) -> SuperstepLog:
        """Return the log of all ranks' supersteps on rank 0, an empty log on other ranks. Counts
        are sums over ranks; directions and seconds are those of rank 0.
        """
        layout, levels = self.layout, search.levels()
        told = [(layout.found(level), level.examined, *level.sent.values()) for level in levels]
        counts: Message = [np.array(told, np.int64).ravel()]
        nothing: Message = []
        ranks = range(communicator.size)
        came = communicator.exchange([counts if peer == 0 else nothing for peer in ranks])
        if self.rank:
            return SuperstepLog()
        together = np.sum([message[0] for message in came], axis=0).reshape(len(told), 4)
        clocks = max(1, sum(sum(level.clocks) for level in levels))
        frontier, records = 1, SuperstepLog()
        for i, (level, (found, examined, *sent)) in enumerate(
            zip(levels, together.tolist(), strict=True)
        ):
            if not (found or examined):
                break
            direction, control = layout.step(level.direction)
            bytes_sent = dict(zip(level.sent, sent, strict=True))
            records.append(
                SuperstepRecord(
                    level=i + 1,
                    direction=direction,
                    frontier=frontier,
                    found=found,
                    edges_examined=examined,
                    bytes_read=0,
                    blocks_skipped=0,
                    bytes_sent={**bytes_sent, "control": control},
                    seconds=search.seconds() * sum(level.clocks) / clocks,
                )
            )
            frontier = found
        return records
