"""What ranks do together on Dask workers (ranks.py brings them together): search a store."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, open_device
from ....partition.store.store import Store, open_store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...ranks.nccl import device_arrays
from ...results.superstep_log import SuperstepLog
from ..device_ranks.layouts import RankOnDevice
from ..engine import Engine
from ..ranks.edges import stream_team
from ..ranks.result import result_of, save, save_whole
from ..ranks.search import load_rank, rank_bytes, rank_stream_bytes, search_rank, warm_up
from ..store import engines_of_store

ON_DISK = 1


@dataclass(frozen=True)
class SearchJob:
    """A search of a store from ``source``, a global id.

    folder: where attempts leave what they find (ranks/result.py), this one in ``place``. way:
    the place of the engine among those that a rank could take; on CPUs, in memory and ON_DISK. On
    rank 0 ``run`` gives the supersteps of
    all ranks together.
    """

    store: Path
    source: int
    max_depth: int | None
    folder: Path
    timeout: float
    device: str = "cpu"
    device_limit: int | None = None
    place: Path = Path()
    way: int = 0

    @property
    def paths(self) -> list[str]:
        return [str(self.store), str(self.place)]

    def on(self, device: str, why: str = "") -> SearchJob:
        return replace(self, device=device)

    def again(self) -> SearchJob:
        place = self.folder / uuid.uuid4().hex  # an attempt that was given up may still write
        place.mkdir()
        return replace(self, place=place)

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        store = open_store(self.store)
        device = self._device()
        if size == 1:
            engines = engines_alone(store, device, threads)
            for engine in engines:
                engine.compile()
            needs = [engine.need().host for engine in engines]
        elif device is not None:
            here = RankOnDevice(store, rank, size)
            room = here.room_for(device)
            here.compile(device, room)
            needs = [room.host_bytes]
        else:
            warm_up(store.offsets_types())
            place = store, rank, size
            needs = [rank_bytes(*place), rank_stream_bytes(*place, threads)]
        return [Way(need, replace(self, way=way)) for way, need in enumerate(needs)]

    def run(self, communicator: Communicator, team: Team) -> SuperstepLog:
        store = open_store(self.store)
        if communicator.size == 1:
            return self._run_alone(store, team)
        device = self._device()
        if device is not None:
            with device_arrays(communicator, device) as communicator:
                return self._run_on_device(store, device, communicator, team)
        place = communicator.rank, communicator.size
        if self.way == ON_DISK:
            team = stream_team(team.threads)
        graph = load_rank(store, *place, team, communicator.check, self.way == ON_DISK)
        found = search_rank(graph, self.source, communicator, team, self.max_depth)
        save(result_of(graph), self.place)
        return found.supersteps

    def _run_alone(self, store: Store, team: Team) -> SuperstepLog:
        """One rank has all partitions, as a process of its own has."""
        engine = engines_alone(store, self._device(), team.threads)[self.way]
        engine.load()
        found = engine.search(self.source, self.max_depth)
        engine.close()
        save_whole(self.place, found.distance, found.parent)
        return found.supersteps

    def _run_on_device(
        self, store: Store, device: Device, communicator: Communicator, team: Team
    ) -> SuperstepLog:
        here = RankOnDevice(store, communicator.rank, communicator.size)
        gpu = here.load(device, team, communicator.check)
        gpu.warm_up()
        try:
            gpu.connect(communicator.exchange)
            gpu.run(gpu.rows.number(self.source), self.max_depth)
            supersteps = here.finish(gpu, communicator, self.place)
        finally:
            gpu.close()
        barrier(communicator)  # all have closed
        return supersteps

    def _device(self) -> Device | None:
        return open_device(0, self.device_limit) if self.device == "cuda" else None


def engines_alone(store: Store, device: Device | None, threads: int) -> list[Engine]:
    """Of a rank that is alone, as of one process: on its device, or in memory and on disk."""
    engines = engines_of_store(store, None, device, threads)
    return engines[:1] if device else engines
