"""Graph500's protocol on a store by several workers, each of which loads its share once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.gpu.device import Device, open_device
from ...kernels.gpu.graph import Array
from ...kernels.gpu_ranks.search import Search
from ...partition.errors import LimitError
from ...partition.store.layout import table_1_bytes
from ...partition.store.store import Store, open_store
from ..engines.device_ranks.layouts import RankOnDevice
from ..engines.ranks.search import load_rank, rank_bytes
from ..engines.ranks.search import warm_up as warm_up_search
from ..ranks.communicator import Communicator, barrier
from ..ranks.jobs import Way
from ..ranks.nccl import device_arrays
from ..run.resources import TIMEOUT_SECONDS
from .check import RankCheck, check_bytes, edges_of, stored_edges
from .check import warm_up as warm_up_check
from .protocol import (
    Measured,
    Sources,
    measure,
    rows_bytes,
    rows_from_vertex,
    run_all,
    timed_engines,
)
from .protocol import check_bytes as check_bytes_alone
from .searchers import (
    BUSY,
    Checked,
    CpuRankSearcher,
    DeviceRankCheck,
    DeviceRankSearcher,
    Exchanged,
    RankSearcher,
)


@dataclass(frozen=True)
class StoreBenchJob:
    """A bench of a store. Implements RankJob; on rank 0, ``run`` returns Measured, by its clock,
    and Exchanged (None for a single rank).

    sources: global ids. names: the user ids of the sources. must_fit: whether devices that are too
    small are an error; if not, the CPUs search.
    """

    store: Path
    sources: tuple[int, ...]
    names: tuple[int | str, ...]
    timeout: float = TIMEOUT_SECONDS
    device: str = "cpu"
    device_limit: int | None = None
    must_fit: bool = False

    @property
    def paths(self) -> list[str]:
        return [str(self.store)]

    def for_device(self, device: str, why: str = "") -> StoreBenchJob:
        if device == "cpu" and self.must_fit:
            raise LimitError(why)
        return replace(self, device=device)

    def fresh_attempt(self) -> StoreBenchJob:
        return self

    def with_extra(self, extra_bytes: int) -> StoreBenchJob:
        return self

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        store, device = open_store(self.store), self._device()
        n = store.info.vertices
        if size == 1:
            rows = 8 * n
            engine = timed_engines(store, device, threads)[0]
            engine.compile()
            need = engine.need().host + (0 if device else check_bytes_alone(store))
        else:
            rows = 8 * n if needs_rows(store, rank, device) else 0
            need = share_bytes(store, rank, size, device)
            if device is None:
                warm_up_search(store.offsets_types())
            else:
                here = RankOnDevice(store, rank, size)
                here.compile(device, here.room_for(device, searcher_bytes(here)))
        warm_up_check(store.offsets_types())
        return [Way(max(need + rows, rows_bytes(store) if rows else 0), self)]

    def run(
        self, communicator: Communicator, team: Team
    ) -> tuple[Measured, Exchanged | None] | None:
        store, device, rank = open_store(self.store), self._device(), communicator.rank
        alone = communicator.size == 1
        rows_from = None
        if alone or needs_rows(store, rank, device):
            rows_from = rows_from_vertex(store, team)
        if alone:
            assert rows_from is not None
            drawn = Sources(list(self.sources), list(self.names))
            engine = timed_engines(store, device, team.threads)[0]
            return measure(engine, rows_from, drawn), None
        barrier(communicator)
        began = time.perf_counter()
        with open_searcher(store, communicator, team, device, rows_from) as searcher:
            barrier(communicator)
            loaded = time.perf_counter()
            searcher.warm_up(self.sources[0])
            compiled = time.perf_counter()
            timings = run_all(searcher, self.sources, self.names, None)
            exchanged = searcher.exchanged(timings, _table_bytes(store))
        barrier(communicator)  # all ranks have closed their memory
        if rank:
            return None
        return Measured(timings, loaded - began, compiled - loaded), exchanged

    def _device(self) -> Device | None:
        return open_device(0, self.device_limit) if self.device == "cuda" else None


def _table_bytes(store: Store) -> int | None:
    """Return the bytes of all ranks' graphs by the formula of Table I; None for a grid."""
    info = store.info
    if info.grid is not None:
        return None
    entries, nn = sum(info.subgraph_edges.values()), info.subgraph_edges["nn"]
    return table_1_bytes(info.vertices, info.delegates, info.partitions, entries, nn)


@contextmanager
def open_searcher(
    store: Store,
    communicator: Communicator,
    team: Team,
    device: Device | None,
    rows_from: NDArray[np.int64] | None,
) -> Iterator[RankSearcher]:
    """Load a rank's share of a store, and yield its searcher.

    device: the device to search on; None for the CPUs. rows_from: the number of input rows that
    leave each vertex, by global id; None unless ``needs_rows``.
    """
    rank, ranks, info = communicator.rank, communicator.size, store.info
    place = rank, ranks

    def checking(edges: Any) -> RankCheck:
        table = store.delegates(team)
        return RankCheck(communicator, info.vertices, info.partitions, table, edges, rows_from)

    if device is None:
        graph = load_rank(store, *place, team, communicator.check)
        check = checking(lambda: edges_of(graph))
        yield CpuRankSearcher(graph, communicator, team, check)
        return
    with device_arrays(communicator, device) as ours:
        here = RankOnDevice(store, *place)
        gpu = here.load(device, team, ours.check, searcher_bytes(here))
        try:
            gpu.connect(ours.exchange)
            if checked_on_device(store):
                assert rows_from is not None
                there = DeviceRankCheck(gpu, ours, _rows_from_own(gpu, rows_from))
            else:
                on_host = checking(lambda: stored_edges(store, *place, team))

                def there(source: int) -> Checked:
                    return on_host(source, here.collect(gpu, ours)[0])

            yield DeviceRankSearcher(gpu, ours, there)
        finally:
            gpu.close()


def checked_on_device(store: Store) -> bool:
    """Return whether ranks on devices check their results there: only for undirected graphs."""
    return not store.info.directed  # each edge is in the rows of both its ends


def needs_rows(store: Store, rank: int, device: Device | None) -> bool:
    """Return whether a rank needs the numbers of input rows of vertices."""
    return rank == 0 or (device is not None and checked_on_device(store))


def share_bytes(store: Store, rank: int, ranks: int, device: Device | None) -> int:
    """Return the most bytes that ``open_searcher`` and its searches hold on a rank's host. Raises
    DeviceMemoryError if the device has too little memory.
    """
    if device is None:
        return rank_bytes(store, rank, ranks) + check_bytes(store, rank, ranks)
    here = RankOnDevice(store, rank, ranks)
    host = here.room_for(device, searcher_bytes(here)).host_bytes
    if checked_on_device(store) and store.info.grid is not None:
        return host + (4 + 4) * sum(here.numbers)
    if checked_on_device(store):
        # Messages with the distances of ghosts, and of delegates that other ranks own.
        told = (4 + 4) * store.info.vertices // ranks + store.info.delegates
        return host + 4 * told
    result = (4 + 4) * store.info.vertices // ranks
    return host + result + check_bytes(store, rank, ranks)


def searcher_bytes(here: RankOnDevice) -> int:
    """Return the bytes that a DeviceRankSearcher holds on the device, beside the graph and its
    search.
    """
    own_count, ghosts = here.numbers
    # Ids and distances; in a grid also parents, marks of joined vertices, received distances.
    vertex_bytes = 4 + 4 if here.store.info.grid is None else 4 + (4 + 1 + 1) + 4 + 1
    return 4 * BUSY + vertex_bytes * (own_count + ghosts) + (8 + 4) * own_count


def _rows_from_own(gpu: Search[Any], rows_from: NDArray[np.int64]) -> Array:
    """Return the numbers of input rows by the rank's own numbers, on its device."""
    with gpu.device.use() as cupy:
        ids = gpu.rows.owned_ids(cupy).get()
    there = ids != UNREACHED
    own_rows_from = np.zeros(len(ids), np.uint64)
    own_rows_from[there] = rows_from[ids[there]]
    with gpu.device.use() as cupy:
        return cupy.asarray(own_rows_from)
