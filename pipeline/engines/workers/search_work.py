"""A search of a store by ranks on Dask workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...ranks.nccl import device_arrays
from ...results.superstep_log import SuperstepLog
from ..device_ranks.layouts import RankOnDevice
from ..engine import SearchEngine
from ..one_device.search import fits_near, room_for
from ..ranks.edges import stream_team
from ..ranks.result import Part, result_of, save, save_whole
from ..ranks.search import load_rank, rank_bytes, rank_stream_bytes, search_rank, warm_up
from ..table import searches_of_store
from .job import ON_DISK, Job
from .share import forget_others


@dataclass(frozen=True)
class SearchWork:
    """A search from ``source``, a global id; of a rank that is alone, as in one process."""

    source: int
    max_depth: int | None = None

    def get_ready(self, job: Job, store: Store, rank: int, size: int, threads: int) -> list[Way]:
        forget_others("")
        device = job.gpu()
        if size == 1:
            engines = engines_alone(store, device, threads)
            for engine in engines:
                engine.compile()
            needs = [engine.need().host for engine in engines]
        elif device is not None:
            here = RankOnDevice(store, rank, size)
            room = here.room_for(device)
            here.compile(device, room)
            return [Way(room.host_bytes, replace(job, fits_one=fits_near(store, device)))]
        else:
            warm_up(store.offsets_types())
            place = store, rank, size
            needs = [rank_bytes(*place), rank_stream_bytes(*place, threads)]
        return job.ways(needs)

    def run(self, job: Job, store: Store, communicator: Communicator, team: Team) -> SuperstepLog:
        """On rank 0, the supersteps of all ranks together."""
        if communicator.size == 1:
            return self._run_alone(job, store, team)
        device = job.gpu()
        if device is not None:
            with device_arrays(communicator, device) as communicator:
                return self._run_on_device(job, store, device, communicator, team)
        place = communicator.rank, communicator.size
        if job.way == ON_DISK:
            team = stream_team(team.threads)
        graph = load_rank(store, *place, team, communicator.check, job.way == ON_DISK)
        found = search_rank(graph, self.source, communicator, team, self.max_depth)
        save(result_of(graph), job.place)
        return found.supersteps

    def _run_alone(self, job: Job, store: Store, team: Team) -> SuperstepLog:
        """One rank has all partitions, as a process of its own has."""
        engine = engines_alone(store, job.gpu(), team.threads)[job.way]
        engine.load()
        found = engine.search(self.source, self.max_depth)
        engine.close()
        save_whole(job.place, Part(found.distance, found.parent)._asdict())
        return found.supersteps

    def _run_on_device(
        self, job: Job, store: Store, device: Device, communicator: Communicator, team: Team
    ) -> SuperstepLog:
        here = RankOnDevice(store, communicator.rank, communicator.size)
        gpu = here.load(device, team, communicator.check)
        gpu.warm_up()
        try:
            gpu.connect(communicator.exchange)
            gpu.run(gpu.rows.number(self.source), self.max_depth)
            supersteps = here.finish(gpu, communicator, job.place)
        finally:
            gpu.close()
        barrier(communicator)  # all have closed
        return supersteps

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        device = job.gpu()
        assert device is not None
        if size == 1:
            return room_for(store, device).device_bytes
        return RankOnDevice(store, rank, size).room_for(device).device_bytes


def engines_alone(store: Store, device: Device | None, threads: int) -> list[SearchEngine]:
    """Engines of a rank that is alone: on its device, or in memory and on disk."""
    engines = searches_of_store(store, None, device, threads)
    return engines[:1] if device else engines
