"""The work of programs over a store, for ranks on Dask workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...results.checkpoint import Checkpoint
from ..one_device.share import DeviceShare
from ..operations.operations import Operations
from ..operations.operations import warm_up as warm_up_operations
from ..operations.program import Program, ProgramResult, counts_of, program_bytes
from ..operations.vectors import Vector
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph
from ..ranks.result import save_vectors, save_whole
from ..ranks.search import load_rank, warm_up
from .job import ON_DEVICE, ON_DISK, Job
from .on_devices import RankProgram, run_on_devices
from .share import share_of


class ProgramDone(NamedTuple):
    """The outcome of programs on a rank. columns: names of the last program's columns, which ranks
    have saved. record: of rank 0. went_on: on rank 0, the number of steps done if the run has
    resumed. seconds: of each program, from one barrier of all ranks to the next.
    """

    columns: list[str]
    record: dict[str, Any]
    went_on: list[int]
    seconds: list[float]


@dataclass(frozen=True)
class ProgramWork:
    """Programs that run one after the other, and hold no more than the first one.

    saved: the place of rank 0's checkpoint (``Checkpoint.place``), from which another attempt
    resumes; None without checkpoints. share: the name under which workers keep their shares for
    this command; empty if they keep none.
    """

    programs: tuple[Program, ...]
    saved: tuple[Path, float, str] | None = None
    share: str = ""

    @property
    def program(self) -> Program:
        return self.programs[0]

    def get_ready(self, job: Job, store: Store, rank: int, size: int, threads: int) -> list[Way]:
        share = share_of(self.share)
        device = job.gpu()
        if device is not None:
            kept = share.holds(rank, size, [ON_DEVICE])
            here = RankProgram.of(self.program, store, rank, size)
            here.compile(device)
            need = here.held_bytes if kept else here.room(device).host
            fits_one = DeviceShare(store).fits_near(here.program, device)
            return [Way(need, replace(job, way=ON_DEVICE, fits_one=fits_one))]
        warm_up(store.offsets_types())
        warm_up_operations(store.offsets_types(), self.program.calls)
        place = self.program, store, rank, size, threads
        needs = [program_bytes(*place, on_disk) for on_disk in (False, True)]
        if share.holds(rank, size, range(len(needs))):
            assert share.of is not None
            needs[share.of[2]] = self.program.held_bytes(counts_of(store, rank, size))
        return job.ways(needs)

    def run(
        self, job: Job, store: Store, communicator: Communicator, team: Team
    ) -> ProgramDone | None:
        """Run the programs. Returns None on all ranks if they have saved their state and ended."""
        went_on: list[int] = []
        device = job.gpu()
        if device is not None:
            given, seconds = self._run_on_device(job, store, device, communicator, team, went_on)
            if given is not None and communicator.rank == 0:
                save_whole(job.place, {k: np.asarray(v) for k, v in given.values.items()})
        else:
            given, seconds = self._run_on_cpus(job, store, communicator, team, went_on)
        if given is None:
            return None
        barrier(communicator)  # all ranks have written
        return ProgramDone(list(given.values), given.record, went_on, seconds)

    def _run_on_device(
        self,
        job: Job,
        store: Store,
        device: Device,
        communicator: Communicator,
        team: Team,
        went_on: list[int],
    ) -> tuple[ProgramResult | None, list[float]]:
        place = communicator.rank, communicator.size
        share = share_of(self.share)

        def load(here: RankProgram, check: Callable[[], None]) -> ProgramGraph:
            if not here.dealt:
                return here.load(device, team, check)
            return share.load((*place, job.way), lambda: here.load(device, team, check))

        return run_on_devices(
            self.programs, store, communicator, device, load, self.saved, went_on.append
        )

    def _run_on_cpus(
        self,
        job: Job,
        store: Store,
        communicator: Communicator,
        team: Team,
        went_on: list[int],
    ) -> tuple[ProgramResult | None, list[float]]:
        if job.way == ON_DISK:
            team = stream_team(team.threads)
        graph = self._load(job, store, communicator, team)
        checkpoint = self.saved and Checkpoint(*self.saved, loaded=went_on.append)
        given, operations, seconds = None, None, []
        for program in self.programs:
            given = operations = None  # frees the earlier program's result
            how = store.info.directed, checkpoint, job.extra_bytes, job.place
            operations = Operations(graph, communicator, team, *how)
            barrier(communicator)
            began = time.perf_counter()
            try:
                given = program.run(operations, lambda *_: None)
            except KeyboardInterrupt:
                return None, seconds
            barrier(communicator)
            seconds.append(time.perf_counter() - began)
        assert given is not None
        whole = {k: np.asarray(v) for k, v in given.values.items() if not isinstance(v, Vector)}
        parts = {k: (v.own, v.shared) for k, v in given.values.items() if isinstance(v, Vector)}
        if whole and communicator.rank == 0:
            save_whole(job.place, whole)
        if parts:
            save_vectors(job.place, parts, graph.held, communicator.rank)
        return given, seconds

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        device = job.gpu()
        assert device is not None
        return RankProgram.of(self.program, store, rank, size).room(device).device

    def _load(self, job: Job, store: Store, communicator: Communicator, team: Team) -> RankGraph:
        share, place = share_of(self.share), (communicator.rank, communicator.size)
        share.at_work[:] = [communicator]
        at_work = share.at_work  # the graph must not hold its share

        def check() -> None:
            at_work[0].check()

        how = team, check, job.way == ON_DISK, self.program.weighted
        return share.load((*place, job.way), lambda: load_rank(store, *place, *how))
