"""What ranks do together on Dask workers (ranks.py brings them together): search a store."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from ....kernels.base.team import Team
from ....kernels.bfs.cpu import CpuBackend
from ....kernels.gpu.device import Device, open_device
from ....kernels.gpu.search import GpuSearch
from ....partition.store.store import Store, open_store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...ranks.nccl import device_arrays
from ...run.records import SuperstepRecord
from .. import device as device_search
from ..bytes import graph_bytes, stream_bytes
from ..device_ranks.layouts import RankOnDevice
from ..disk import stream_search, stream_team
from ..disk import warm_up as warm_up_stream
from ..memory import search as search_graph
from ..ranks.result import result_of, save, save_whole
from ..ranks.search import load_rank, rank_bytes, rank_stream_bytes, search_rank, warm_up
from ..streamed_graph import StreamedGraph, subgraphs_of


@dataclass(frozen=True)
class SearchJob:
    """A search of a store from ``source``, a global id.

    folder: where attempts leave what they find (rank_result.py), this one in ``place``. on_disk:
    edges are read as they are searched; on CPUs alone. On rank 0 ``run`` gives the supersteps of
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
    on_disk: bool = False

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
        if self.device == "cuda":
            device = self._open_device()
            if size == 1:
                return [Way(device_search.room_for(store, device).host_bytes, self)]
            return [Way(RankOnDevice(store, rank, size).room_for(device).host_bytes, self)]
        offset_types = {store.offsets_type(*place) for place in subgraphs_of(store)}
        if size == 1:
            warm_up_stream(offset_types)
            needs = graph_bytes(store), stream_bytes(store, threads)
        else:
            warm_up(offset_types)
            place = store, rank, size
            needs = rank_bytes(*place), rank_stream_bytes(*place, threads)
        return [Way(needs[0], self), Way(needs[1], replace(self, on_disk=True))]

    def run(self, communicator: Communicator, team: Team) -> list[SuperstepRecord]:
        store = open_store(self.store)
        if communicator.size == 1:
            return self._run_alone(store, team)
        if self.device == "cuda":
            device = self._open_device()
            with device_arrays(communicator, device) as communicator:
                return self._run_on_device(store, device, communicator, team)
        place = communicator.rank, communicator.size
        if self.on_disk:
            team = stream_team(team.threads)
        graph = load_rank(store, *place, team, communicator.check, self.on_disk)
        found = search_rank(graph, self.source, communicator, team, self.max_depth)
        save(result_of(graph), self.place)
        return found.supersteps

    def _run_alone(self, store: Store, team: Team) -> list[SuperstepRecord]:
        """One rank has all partitions, merged into one graph where they are in memory."""
        if self.device == "cuda":
            device = self._open_device()
            room = device_search.room_for(store, device)
            gpu = GpuSearch(device, device_search.load(store, device, room, team))
            found = device_search.search_on_device(gpu, self.source, self.max_depth)
        elif self.on_disk:
            graph, team = StreamedGraph.of(store, team), stream_team(team.threads)
            found = stream_search(graph, self.source, team, self.max_depth)
        else:
            backend = CpuBackend(team.threads)
            found = search_graph(store.graph(team), self.source, backend, self.max_depth)
        save_whole(self.place, found.distance, found.parent)
        return found.supersteps

    def _run_on_device(
        self, store: Store, device: Device, communicator: Communicator, team: Team
    ) -> list[SuperstepRecord]:
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

    def _open_device(self) -> Device:
        return open_device(0, self.device_limit)
