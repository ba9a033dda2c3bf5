"""A program whose ranks have a device each: over shares of the edges, or each over the whole graph,
where what there is to be done is dealt out to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....kernels.gpu_programs.ranks import Ranks
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.store import Store
from ...ranks.communicator import Communicator
from ...ranks.nccl import device_arrays
from ...results.checkpoint import Checkpoint
from ..device_share import DeviceShare, ShareRoom
from ..operations.program import DealtProgram, DeviceProgram, Given, Program, SharedProgram
from ..operations.saving import RanksSaving

Place = tuple[Path, float, str]
"""Of a checkpoint (``Checkpoint.place``)."""


def runs_on_devices(program: Program) -> bool:
    return isinstance(program, SharedProgram | DealtProgram)


class OfRank(NamedTuple):
    """What a rank runs, over what it loads. whole: what all of them run."""

    whole: Program
    program: DeviceProgram
    share: DeviceShare

    @classmethod
    def of(cls, program: Program, store: Store, rank: int, size: int) -> OfRank:
        if isinstance(program, DealtProgram):
            return cls(program, program.of_rank(rank, size), DeviceShare(store))
        assert isinstance(program, SharedProgram)
        return cls(program, program, DeviceShare(store, rank, size))

    def room(self, device: Device) -> ShareRoom:
        return self.share.room(self.program, device)

    def compile(self, device: Device) -> None:
        """Before anything is loaded: what a compiler holds is there then."""
        near = self.room(device).near
        self.program.compile_on(self.share.like(self.program, device, near))

    def run(
        self,
        device: Device,
        communicator: Communicator,
        team: Team,
        saved: Place | None,
        loaded: Callable[[int], None],
    ) -> Given | None:
        """Values of the whole graph, on rank 0; None on all ranks where they have saved what they
        have done, and ended. saved: of the run. loaded: called where it goes on.
        """
        room = self.room(device)
        with device_arrays(communicator, device) as ours:
            graph = self.share.load(self.program, device, room.near, team, ours.check)
            graph = replace(graph, spare=device.memory_bytes - room.device, ranks=self.share.ranks)
            self.program.compile_on(graph)
            ranks = Ranks(device, ours.rank, ours.size, ours.exchange, ours.check)
            try:
                if isinstance(self.whole, DealtProgram) and ours.size > 1:
                    return self._run_dealt(self.whole, graph, ranks, saved, loaded)
                checkpoint = None
                if saved is not None and ours.rank == 0:
                    checkpoint = Checkpoint(*saved, loaded=loaded)
                if ours.size == 1:
                    return self.program.run_on(graph, checkpoint, lambda *_: None)
                return self._run_on_share(graph, ranks, checkpoint)
            except KeyboardInterrupt:  # no failure, of which the others had to be told
                return None

    def _run_on_share(
        self, graph: ProgramGraph, ranks: Ranks, checkpoint: Checkpoint | None
    ) -> Given:
        assert isinstance(self.program, SharedProgram)
        if graph.degree is not None:
            with ranks.device.use() as cupy:
                ranks.fold_whole(graph.degree, cupy.add)
        return self.program.run_on_shares(graph, ranks, RanksSaving(ranks, checkpoint))

    def _run_dealt(
        self,
        whole: DealtProgram,
        graph: ProgramGraph,
        ranks: Ranks,
        saved: Place | None,
        loaded: Callable[[int], None],
    ) -> Given:
        """Each saves by itself, and goes on if there are as many ranks."""
        checkpoint = None
        if saved is not None:
            folder, seconds, search = saved
            here = f"{ranks.rank}-of-{ranks.size}"
            if ranks.rank:
                folder = folder.with_name(f"{folder.name}-{here}")
            checkpoint = Checkpoint(folder, seconds, f"{search}, rank {here}", loaded=loaded)
        given, ended = Given({}, {}), False
        try:
            given = self.program.run_on(graph, checkpoint, lambda *_: ranks.check())
        except KeyboardInterrupt:
            ended = True  # the others hear of it, and end, too
        (any_ended,) = ranks.total([ended])
        if any_ended:
            raise KeyboardInterrupt
        found = _put_together(whole, given, ranks)
        (sent,) = ranks.total([ranks.sent])
        return Given(found.values, {**found.record, "sent": int(sent)})


def _put_together(whole: DealtProgram, given: Given, ranks: Ranks) -> Given:
    """What all ranks found, on rank 0, which hears of them one after the other."""
    nothing: list[Any] = []
    record = np.frombuffer(json.dumps(given.record).encode(), np.uint8)
    mine = [record, *(np.asarray(some) for some in given.values.values())]
    for rank in range(1, ranks.size):
        to_first = mine if ranks.rank == rank else nothing
        messages = [to_first if other == 0 else nothing for other in range(ranks.size)]
        came = ranks.tell(messages)[rank]
        if ranks.rank == 0:
            about, *values = came
            named = dict(zip(given.values, values, strict=True))
            given = whole.put_together([given, Given(named, json.loads(about.tobytes()))])
    return given if ranks.rank == 0 else Given({}, given.record)
