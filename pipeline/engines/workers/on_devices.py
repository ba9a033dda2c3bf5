"""A program whose ranks have a device each: over shares of the edges, or each over the whole graph,
where what there is to be done is dealt out to them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....kernels.gpu_programs.ranks import Ranks
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, barrier
from ...ranks.nccl import device_arrays
from ...results.checkpoint import Checkpoint
from ..one_device.share import DeviceShare, ShareRoom
from ..operations.program import (
    DealtProgram,
    DeviceProgram,
    Program,
    ProgramResult,
    SharedProgram,
    counts_of,
)
from ..operations.saving import DealtSaving, DeviceSaving, SharedSaving

Place = tuple[Path, float, str]
"""Of a checkpoint (``Checkpoint.place``)."""


class RankProgram(NamedTuple):
    """A rank's part of a program, over what it loads. whole: what all of them run. heard: how often
    it holds what others have found: that of one, and of the next one, which may have come.
    """

    whole: Program
    program: DeviceProgram
    share: DeviceShare
    heard: int = 0

    @classmethod
    def of(cls, program: Program, store: Store, rank: int, size: int) -> RankProgram:
        if isinstance(program, DealtProgram):
            heard = min(size - 1, 2) if rank == 0 else 0
            return cls(program, program.of_rank(rank, size), DeviceShare(store), heard)
        assert isinstance(program, SharedProgram)
        return cls(program, program, DeviceShare(store, rank, size))

    def room(self, device: Device) -> ShareRoom:
        room = self.share.room(self.program, device)
        return room._replace(host=max(room.host, self.held_bytes))

    @property
    def dealt(self) -> bool:
        return isinstance(self.whole, DealtProgram)

    @property
    def held_bytes(self) -> int:
        """In host memory, once a rank has loaded."""
        return (1 + self.heard) * self.whole.held_bytes(counts_of(self.share.store))

    def compile(self, device: Device) -> None:
        """Before anything is loaded: what a compiler holds is there then."""
        near = self.room(device).near
        self.program.compile_on(self.share.like(self.program, device, near))

    def load(self, device: Device, team: Team, check: Callable[[], None]) -> ProgramGraph:
        """check: as of DeviceShare."""
        return self.share.load(self.program, device, self.room(device).near, team, check)

    def run(
        self,
        graph: ProgramGraph,
        ranks: Ranks,
        saved: Place | None,
        loaded: Callable[[int], None],
    ) -> ProgramResult | None:
        """Values of the whole graph, on rank 0; None on all ranks where they have saved what they
        have done, and ended. graph: as ``agreed`` gives it. saved: of the run. loaded: called
        where it goes on.
        """
        try:
            if isinstance(self.whole, DealtProgram) and ranks.size > 1:
                return self._run_dealt(self.whole, graph, ranks, saved, loaded)
            checkpoint = None
            if saved is not None and ranks.rank == 0:
                checkpoint = Checkpoint(*saved, loaded=loaded)
            if ranks.size == 1:
                return self.program.run_on(graph, DeviceSaving(checkpoint), lambda *_: None)
            assert isinstance(self.program, SharedProgram)
            return self.program.run_on_shares(graph, ranks, SharedSaving(ranks, checkpoint))
        except KeyboardInterrupt:  # no failure, of which the others had to be told
            return None

    def agreed(self, graph: ProgramGraph, ranks: Ranks) -> ProgramGraph:
        """Return the loaded graph, with the facts that only all ranks together know."""
        extra_bytes = graph.device.memory_bytes - self.room(graph.device).device
        if not self.dealt and ranks.size > 1 and graph.degree is not None:
            with ranks.device.use() as cupy:
                ranks.fold_whole(graph.degree, cupy.add)
        return replace(graph, extra_bytes=extra_bytes, ranks=self.share.ranks)

    def _run_dealt(
        self,
        whole: DealtProgram,
        graph: ProgramGraph,
        ranks: Ranks,
        saved: Place | None,
        loaded: Callable[[int], None],
    ) -> ProgramResult:
        dealt = None if saved is None else DealtSaving(ranks, Checkpoint(*saved, loaded=loaded))
        given = self.program.run_on(graph, dealt or DeviceSaving(None), lambda *_: ranks.check())
        if dealt:
            dealt.finish()
        found = _put_together(whole, given, ranks)
        (sent,) = ranks.total([ranks.sent])
        return ProgramResult(found.values, {**found.record, "sent": int(sent)})


def run_on_devices(
    programs: Sequence[Program],
    store: Store,
    communicator: Communicator,
    device: Device,
    load: Callable[[RankProgram, Callable[[], None]], ProgramGraph],
    saved: Place | None,
    loaded: Callable[[int], None],
) -> tuple[ProgramResult | None, list[float]]:
    """Return the result of the last program (``RankProgram.run``), and the seconds of each program,
    from one meeting of all ranks to the next. load: gives what the rank has loaded; of what is to
    be called meanwhile.
    """
    given, seconds = None, []
    with device_arrays(communicator, device) as ours:
        place = ours.rank, ours.size
        here, all_of = RankProgram.of(programs[0], store, *place), (ours.exchange, ours.check)
        graph = here.agreed(load(here, ours.check), Ranks(device, *place, *all_of))
        for program in programs:
            given = None  # what the one before has found
            here = RankProgram.of(program, store, *place)
            here.program.compile_on(graph)
            barrier(communicator)
            began = time.perf_counter()
            given = here.run(graph, Ranks(device, *place, *all_of), saved, loaded)
            if given is None:
                break
            barrier(communicator)
            seconds.append(time.perf_counter() - began)
    return given, seconds


def _put_together(whole: DealtProgram, given: ProgramResult, ranks: Ranks) -> ProgramResult:
    """Put together the results of all ranks, on rank 0, which hears of them one after the other."""
    nothing: list[Any] = []
    mine: list[Any] = []
    if ranks.rank > 0:
        about = json.dumps([list(given.values), given.record]).encode()
        mine = [np.frombuffer(about, np.uint8), *map(np.asarray, given.values.values())]
    for rank in range(1, ranks.size):
        to_first = mine if ranks.rank == rank else nothing
        messages = [to_first if other == 0 else nothing for other in range(ranks.size)]
        came = ranks.tell(messages)[rank]
        if ranks.rank == 0:
            columns, record = json.loads(came[0].tobytes())
            more = ProgramResult(dict(zip(columns, came[1:], strict=True)), record)
            given = whole.put_together(given, more)
            del came, more  # before others come
    return given if ranks.rank == 0 else ProgramResult({}, given.record)
