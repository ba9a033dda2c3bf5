"""What ranks do together on Dask workers (ranks.py brings them together): search a store, or run a
program over it.
"""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, open_device
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.errors import LimitError
from ....partition.store.store import Store, open_store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...ranks.nccl import device_arrays
from ...results.checkpoint import Checkpoint
from ...results.superstep_log import SuperstepLog
from ..device_ranks.layouts import RankOnDevice
from ..engine import SearchEngine
from ..one_device.search import fits_near, room_for
from ..one_device.share import DeviceShare
from ..operations.operations import Operations
from ..operations.operations import warm_up as warm_up_operations
from ..operations.program import Given, Program, counts_of, program_bytes
from ..operations.vectors import Vector
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph
from ..ranks.result import Part, result_of, save, save_vectors, save_whole
from ..ranks.search import load_rank, rank_bytes, rank_stream_bytes, search_rank, warm_up
from ..table import searches_of_store
from .on_devices import OfRank, run_on_devices

ON_DISK, ON_DEVICE = 1, 2

Loaded = TypeVar("Loaded", RankGraph, ProgramGraph)


@dataclass(frozen=True)
class SearchJob:
    """A search of a store from ``source``, a global id.

    folder: where attempts leave what they find (ranks/result.py), this one in ``place``. way:
    the place of the engine among those that a rank could take; on CPUs, in memory and ON_DISK.
    fits_one: whether one rank's device has room for the whole graph. On rank 0 ``run`` gives the
    supersteps of all ranks together.
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
    fits_one: bool = False

    @property
    def paths(self) -> list[str]:
        return [str(self.store), str(self.place)]

    def on(self, device: str, why: str = "") -> SearchJob:
        return replace(self, device=device)

    def again(self) -> SearchJob:
        return replace(self, place=_place_of_attempt(self.folder))

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        store = open_store(self.store)
        _share_of("")
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
            return [Way(room.host_bytes, replace(self, fits_one=fits_near(store, device)))]
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
        save_whole(self.place, Part(found.distance, found.parent)._asdict())
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

    def device_bytes(self, rank: int, size: int) -> int:
        """That a rank holds on its device."""
        store, device = open_store(self.store), open_device(0, self.device_limit)
        if size == 1:
            return room_for(store, device).device_bytes
        return RankOnDevice(store, rank, size).room_for(device).device_bytes

    def _device(self) -> Device | None:
        return open_device(0, self.device_limit) if self.device == "cuda" else None


def _place_of_attempt(folder: Path) -> Path:
    """Of its own: an attempt that was given up may still write."""
    place = folder / uuid.uuid4().hex
    place.mkdir()
    return place


class ProgramDone(NamedTuple):
    """Of the last program. columns: names of those that ranks have left. went_on: after so many
    steps, if it did; rank 0's, as the record. seconds: of each program, from one meeting of all
    ranks to the next.
    """

    columns: list[str]
    record: dict[str, Any]
    went_on: list[int]
    seconds: list[float]


class Share:
    """What a worker keeps loaded for one rank of a command after another.

    name: of the command. of: rank, ranks, and the way that edges are read. at_work: one
    communicator, which what is loaded on CPUs asks whether to go on. The client holds a share as
    what a task gives (``keep_share``): it goes when the client does.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.of: tuple[int, int, int] | None = None
        self.graph: RankGraph | ProgramGraph | None = None
        self.at_work: list[Communicator] = []

    def holds(self, rank: int, size: int, ways: Sequence[int]) -> bool:
        """One of these; what is of others is forgotten."""
        if self.of is not None and self.of[:2] == (rank, size) and self.of[2] in ways:
            return True
        self.of = self.graph = None
        return False

    def load(self, of: tuple[int, int, int], graph: Callable[[], Loaded]) -> Loaded:
        """What stands there, or what ``graph`` makes."""
        if self.graph is None or self.of != of:
            self.of = self.graph = None  # that is free before
            self.graph, self.of = graph(), of
        return cast(Any, self.graph)

    def __reduce__(self):
        return Share, (self.name,)  # what Dask might copy is empty


_shares: weakref.WeakValueDictionary[str, Share] = weakref.WeakValueDictionary()


def keep_share(name: str) -> Share:
    """A worker's task."""
    _shares[name] = share = Share(name)
    return share


def _share_of(name: str) -> Share:
    """Of a command. Others have ended: what they have loaded is forgotten."""
    for share in list(_shares.values()):
        if share.name != name:
            share.of = share.graph = None
    return _shares.get(name) or Share(name)


@dataclass(frozen=True)
class ProgramJob:
    """Programs over a store, one after the other, which hold no more than the first one.

    folder, place, way, device, device_limit, fits_one: as of a SearchJob. saved: of rank 0's
    checkpoint (``Checkpoint.place``), from which another attempt goes on; None for none. share: the
    name of what workers keep for this command, if they do. must_fit: whether devices that are too
    small are an error, rather than the CPUs' turn.
    """

    store: Path
    programs: tuple[Program, ...]
    folder: Path
    timeout: float
    saved: tuple[Path, float, str] | None = None
    share: str = ""
    device: str = "cpu"
    device_limit: int | None = None
    place: Path = Path()
    way: int = 0
    fits_one: bool = False
    must_fit: bool = False

    @property
    def program(self) -> Program:
        return self.programs[0]

    @property
    def paths(self) -> list[str]:
        return [str(self.store), str(self.place)]

    def on(self, device: str, why: str = "") -> ProgramJob:
        if device == "cpu" and self.must_fit:
            raise LimitError(why)
        return replace(self, device=device)

    def again(self) -> ProgramJob:
        return replace(self, place=_place_of_attempt(self.folder))

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        store = open_store(self.store)
        share = _share_of(self.share)
        if self.device == "cuda":
            kept = share.holds(rank, size, [ON_DEVICE])
            here, device = OfRank.of(self.program, store, rank, size), self._device()
            here.compile(device)
            need = here.held_bytes if kept else here.room(device).host
            fits_one = DeviceShare(store).fits_near(here.program, device)
            return [Way(need, replace(self, way=ON_DEVICE, fits_one=fits_one))]
        warm_up(store.offsets_types())
        warm_up_operations(store.offsets_types(), self.program.kernels)
        place = self.program, store, rank, size, threads
        needs = [program_bytes(*place, on_disk) for on_disk in (False, True)]
        if share.holds(rank, size, range(len(needs))):
            assert share.of is not None
            needs[share.of[2]] = self.program.held_bytes(counts_of(store, rank, size))
        return [Way(need, replace(self, way=way)) for way, need in enumerate(needs)]

    def run(self, communicator: Communicator, team: Team) -> ProgramDone | None:
        """None on all ranks where they have saved what they have done, and ended."""
        store = open_store(self.store)
        went_on: list[int] = []
        if self.device == "cuda":
            given, seconds = self._run_on_device(store, communicator, team, went_on)
            if given is not None and communicator.rank == 0:
                save_whole(self.place, {k: np.asarray(v) for k, v in given.values.items()})
        else:
            given, seconds = self._run_on_cpus(store, communicator, team, went_on)
        if given is None:
            return None
        barrier(communicator)  # all have written
        return ProgramDone(list(given.values), given.record, went_on, seconds)

    def _run_on_device(
        self, store: Store, communicator: Communicator, team: Team, went_on: list[int]
    ) -> tuple[Given | None, list[float]]:
        place, device = (communicator.rank, communicator.size), self._device()
        share = _share_of(self.share)

        def load(here: OfRank, check: Callable[[], None]) -> ProgramGraph:
            if not here.dealt:
                return here.load(device, team, check)
            return share.load((*place, self.way), lambda: here.load(device, team, check))

        of = self.programs, store, communicator, device
        return run_on_devices(*of, load, self.saved, went_on.append)

    def _run_on_cpus(
        self, store: Store, communicator: Communicator, team: Team, went_on: list[int]
    ) -> tuple[Given | None, list[float]]:
        if self.way == ON_DISK:
            team = stream_team(team.threads)
        graph = self._load(store, communicator, team)
        checkpoint = self.saved and Checkpoint(*self.saved, loaded=went_on.append)
        given, operations, seconds = None, None, []
        for program in self.programs:
            given = operations = None  # what the one before has found
            operations = Operations(graph, communicator, team, store.info.directed, checkpoint)
            barrier(communicator)
            began = time.perf_counter()
            try:
                given = program.run(operations, lambda *_: None)
            except KeyboardInterrupt:
                return None, seconds
            barrier(communicator)
            seconds.append(time.perf_counter() - began)
        assert given is not None
        whole = {k: v for k, v in given.values.items() if not isinstance(v, Vector)}
        parts = {k: (v.own, v.shared) for k, v in given.values.items() if isinstance(v, Vector)}
        if whole and communicator.rank == 0:
            save_whole(self.place, whole)
        if parts:
            save_vectors(self.place, parts, graph.held, communicator.rank)
        return given, seconds

    def device_bytes(self, rank: int, size: int) -> int:
        """That a rank holds on its device."""
        here = OfRank.of(self.program, open_store(self.store), rank, size)
        return here.room(self._device()).device

    def _device(self) -> Device:
        return open_device(0, self.device_limit)

    def _load(self, store: Store, communicator: Communicator, team: Team) -> RankGraph:
        share, place = _share_of(self.share), (communicator.rank, communicator.size)
        share.at_work[:] = [communicator]
        at_work = share.at_work  # the graph must not hold its share

        def check() -> None:
            at_work[0].check()

        how = team, check, self.way == ON_DISK, self.program.weighted
        return share.load((*place, self.way), lambda: load_rank(store, *place, *how))


def engines_alone(store: Store, device: Device | None, threads: int) -> list[SearchEngine]:
    """Of a rank that is alone, as of one process: on its device, or in memory and on disk."""
    engines = searches_of_store(store, None, device, threads)
    return engines[:1] if device else engines
