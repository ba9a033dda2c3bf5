"""Programs whose ranks have a device each. Either the edges are shared out to the ranks, or each
rank has the whole graph and the work is dealt out.
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
"""The place of a checkpoint (``Checkpoint.place``)."""


class RankProgram(NamedTuple):
    """A rank's part of a program, with the share of the graph that it loads.

    whole: the program that all ranks run together. program: this rank's part. heard: how many
    results of other ranks this rank holds besides its own, at most: the one that it combines, and
    the next one, which may have come.
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
        """Return the bytes that the rank holds in host memory after loading."""
        return (1 + self.heard) * self.whole.held_bytes(counts_of(self.share.store))

    def compile(self, device: Device) -> None:
        """Compile the rank's part before anything is loaded, so that the compiler's memory is
        already allocated then.
        """
        near = self.room(device).near
        self.program.compile_on(self.share.like(self.program, device, near))

    def load(self, device: Device, team: Team, check: Callable[[], None]) -> ProgramGraph:
        """Load the rank's share. check: as in DeviceShare."""
        return self.share.load(self.program, device, self.room(device).near, team, check)

    def run(
        self,
        graph: ProgramGraph,
        ranks: Ranks,
        saved: Place | None,
        loaded: Callable[[int], None],
    ) -> ProgramResult | None:
        """Run the rank's part. Returns values of the whole graph on rank 0; None on all ranks if
        they have saved their state and ended.

        graph: as ``agreed`` returns it. saved: the place of the run's checkpoint. loaded: called
        with the number of steps done if the run resumes.
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
        except KeyboardInterrupt:  # not a failure that other ranks must learn of
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
    from one barrier of all ranks to the next.

    load: returns the rank's graph; its second argument must be called from time to time while
    loading. saved: the place of the run's checkpoint. loaded: as in ``RankProgram.run``.
    """
    given, seconds = None, []
    with device_arrays(communicator, device) as ours:
        place = ours.rank, ours.size
        here, all_of = RankProgram.of(programs[0], store, *place), (ours.exchange, ours.check)
        graph = here.agreed(load(here, ours.check), Ranks(device, *place, *all_of))
        for program in programs:
            given = None  # frees the earlier program's result
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
    """Combine the results of all ranks on rank 0, which receives them one rank after the other.
    Other ranks return a result without values.
    """
    nothing: list[Any] = []
    mine: list[Any] = []
    if ranks.rank > 0:
        about = json.dumps([list(given.values), given.record]).encode()
        mine = [np.frombuffer(about, np.uint8), *map(np.asarray, given.values.values())]
    for rank in range(1, ranks.size):
        to_first = mine if ranks.rank == rank else nothing
        messages = [to_first if peer == 0 else nothing for peer in range(ranks.size)]
        came = ranks.tell(messages)[rank]
        if ranks.rank == 0:
            columns, record = json.loads(came[0].tobytes())
            rank_result = ProgramResult(dict(zip(columns, came[1:], strict=True)), record)
            given = whole.put_together(given, rank_result)
            del came, rank_result  # before the next message comes
    return given if ranks.rank == 0 else ProgramResult({}, given.record)
