"""A program whose ranks have a device each: over shares of the edges, or each over the whole graph,
where what there is to be done is dealt out to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device
from ....kernels.gpu_programs.ranks import Ranks
from ....kernels.gpu_programs.rows import ProgramGraph
from ....partition.store.store import Store
from ...ranks.communicator import Communicator
from ...ranks.nccl import device_arrays
from ...results.checkpoint import Checkpoint
from ..device_share import DeviceShare, Room
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

    def room(self, device: Device) -> Room:
        return self.share.room(self.program, device)

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
            if ranks.rank:
                folder = folder.with_name(f"{folder.name}-{ranks.rank}")
            search = f"{search}, rank {ranks.rank} of {ranks.size}"
            checkpoint = Checkpoint(folder, seconds, search, loaded=loaded)
        given, ended = Given({}, {}), False
        try:
            given = self.program.run_on(graph, checkpoint, lambda *_: ranks.check())
        except KeyboardInterrupt:
            ended = True  # the others hear of it, and end, too
        every = _gathered(given, ended, ranks)
        if ranks.rank:
            return Given({}, given.record)
        found = [np.asarray(array) for some in every[1:] for array in some.values.values()]
        sent = sum(array.nbytes for array in found)
        found = whole.put_together(every)
        return Given(found.values, {**found.record, "sent": sent})


def _gathered(given: Given, ended: bool, ranks: Ranks) -> list[Given]:
    """What all ranks found, on rank 0. Raises KeyboardInterrupt where any has ended."""
    told = [np.array([ended])]
    record = np.frombuffer(json.dumps(given.record).encode(), np.uint8)
    whole = [*told, record, *(np.asarray(some) for some in given.values.values())]
    messages = [whole if rank == 0 else told for rank in range(ranks.size)]
    came = ranks.tell(messages)
    if any(some[0][0] for some in came):
        raise KeyboardInterrupt
    if ranks.rank:
        return []
    return [
        Given(dict(zip(given.values, values, strict=True)), json.loads(about.tobytes()))
        for _, about, *values in came
    ]
