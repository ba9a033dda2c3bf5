"""The work of a search of a store, for ranks on Dask workers."""

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
    """A search from ``source``, a global id. A single rank searches as one process does."""

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
        """Run the search. Returns the supersteps of all ranks together on rank 0."""
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
        """Search as a single rank, which has all partitions, with the engines of one process."""
        engine = engines_alone(store, job.gpu(), team.threads)[job.way]
        engine.load()
        found = engine.search(self.source, self.max_depth)
        engine.close()
        save_whole(job.place, Part(found.distance[:], found.parent[:])._asdict())
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
        barrier(communicator)  # all ranks have closed their memory
        return supersteps

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        device = job.gpu()
        assert device is not None
        if size == 1:
            return room_for(store, device).device_bytes
        return RankOnDevice(store, rank, size).room_for(device).device_bytes


def engines_alone(store: Store, device: Device | None, threads: int) -> list[SearchEngine]:
    """Return the engines of a single rank: on its device; or on CPUs, in memory and on disk."""
    engines = searches_of_store(store, None, device, threads)
    return engines[:1] if device else engines
