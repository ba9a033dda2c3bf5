"""Searches of one graph by a rank, timed and checked together with all other ranks (see
protocol.Searcher).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...kernels.base.team import Team
from ...kernels.bfs.check import Violations
from ...kernels.gpu.graph import Array
from ...kernels.gpu_ranks.check import Checker
from ...kernels.gpu_ranks.delegate_layout import DelegateLevel
from ...kernels.gpu_ranks.grid_layout import GridLevel
from ...kernels.gpu_ranks.search import Search
from ...kernels.gpu_ranks.structures import PHASES
from ...partition.disk.memory import held_bytes
from ..engines.ranks.edges import Rows
from ..engines.ranks.graph import RankGraph
from ..engines.ranks.result import result_of
from ..engines.ranks.search import search_rank
from ..questions.bfs import SuperstepRecord
from ..ranks.communicator import Communicator, barrier
from ..results.supersteps import ends
from .check import RankCheck
from .protocol import Timings

BUSY = 1 << 26  # words that keep a device busy while launches are queued

Checked = tuple[Violations, int, int]
"""The result of Searcher.check."""


class Exchanged(NamedTuple):
    """Facts of searches by several ranks, summed over ranks except ``held_bytes``.

    bytes_sent: of a search, on average, by kind. supersteps: of a search, on average. direct:
    whether ranks read each other's memory. held_bytes: all bytes of the rank that holds most, on
    its device, or in its process if ranks run on CPUs. graph_bytes: of all ranks' graphs as they
    are in memory. table_bytes: of these graphs by Table I of Pan, Pearce, Owens; None for a grid.
    levels: of the search of median time, the work of rank 0 on its device, or of all ranks on CPUs.
    """

    bytes_sent: dict[str, float]
    supersteps: float
    direct: bool
    held_bytes: int
    graph_bytes: int
    table_bytes: int | None
    levels: list[dict[str, Any]]


class RankSearcher(Protocol):
    """Searches that all ranks call together. On rank 0 at least, ``check`` returns the number of
    rows reached.

    exchanged: returns the facts of all checked searches. timings: of these searches.
    """

    def warm_up(self, source: int) -> None: ...

    def search(self, source: int) -> float: ...

    def check(self, source: int) -> Checked: ...

    def exchanged(self, timings: Timings, table_bytes: int | None) -> Exchanged: ...


class CpuRankSearcher:
    """Searches of a rank on its CPUs. supersteps: on rank 0, of each search, of all ranks
    together.
    """

    def __init__(
        self, graph: RankGraph, communicator: Communicator, team: Team, check: RankCheck
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._team = team
        self._check = check
        self.supersteps: list[Sequence[SuperstepRecord]] = []

    def warm_up(self, source: int) -> None:
        """Do nothing: kernels were compiled before the ranks met."""

    def search(self, source: int) -> float:
        """Search from ``source``. Returns the seconds of the slowest rank, from a barrier of all
        ranks; ranks end together.
        """
        barrier(self._communicator)
        began = time.perf_counter()
        found = search_rank(self._graph, source, self._communicator, self._team)
        seconds = time.perf_counter() - began
        self.supersteps.append(found.supersteps)
        return max(message[0].tolist()[0] for message in tell(self._communicator, seconds))

    def check(self, source: int) -> Checked:
        return self._check(source, result_of(self._graph))

    def exchanged(self, timings: Timings, table_bytes: int | None) -> Exchanged:
        searches = self.supersteps
        steps = [step["bytes_sent"] for levels in searches for step in levels]
        kinds = steps[0] if steps else {}
        told = [
            message[0].tolist()
            for message in tell(self._communicator, held_bytes(), _graph_bytes(self._graph))
        ]
        return Exchanged(
            bytes_sent={kind: sum(step[kind] for step in steps) / len(searches) for kind in kinds},
            supersteps=float(np.mean([len(levels) for levels in searches])),
            direct=False,
            held_bytes=int(max(held for held, _ in told)),
            graph_bytes=int(sum(graph for _, graph in told)),
            table_bytes=table_bytes,
            levels=[dict(step) for step in ends(searches[_median(timings)])],
        )


class DeviceRankCheck:
    """A check of searches on devices, for an undirected graph.

    rows_from: the number of input rows that touch each vertex, by the rank's own numbers, on its
    device; 0 for delegates that other ranks own.
    """

    def __init__(self, gpu: Search[Any], communicator: Communicator, rows_from: Array) -> None:
        self._gpu = gpu
        self._communicator = communicator
        self._rows_from = rows_from
        self._checker = Checker(gpu, communicator.exchange)

    def __call__(self, source: int) -> Checked:
        """Check the last search. Returns the violations that this rank knows, the number of input
        rows that all ranks reached (counted by their ends), and the depth.
        """
        violations = self._checker.check(source)
        rows = self._checker.rows_reached(self._rows_from)
        found = [level.found for level in self._gpu.levels()]
        told = [m[0].tolist() for m in tell(self._communicator, rows, *found)]
        rows, *together = np.sum(told, axis=0).tolist()
        return violations, int(rows), int(np.count_nonzero(together))


class DeviceRankSearcher:
    """Searches of a rank on its device. check: checks the last search. levels: this rank's work in
    each checked search.
    """

    def __init__(
        self,
        gpu: Search[Any],
        communicator: Communicator,
        check: Callable[[int], Checked],
    ) -> None:
        self._device = device = gpu.device
        self._gpu = gpu
        self._communicator = communicator
        self._check = check
        self.levels: list[Sequence[DelegateLevel | GridLevel]] = []
        with device.use() as cupy:
            self._busy = cupy.zeros(BUSY, np.uint32)

    def warm_up(self, source: int) -> None:
        self._gpu.warm_up()
        self._gpu.run(self._gpu.rows.number(source))

    def search(self, source: int) -> float:
        """Search from ``source``. Returns the seconds from the moment at which the last rank
        begins.

        Ranks that began earlier wait for the last one and count that time, so the least time of all
        ranks is taken; all ranks end together. Links between the devices are awake, as in a
        sequence of searches.
        """
        number = self._gpu.rows.number(source)
        barrier(self._communicator)
        with self._device.use():
            for _ in range(4):  # meanwhile all launches are queued on every rank
                self._busy += np.uint32(1)
            self._gpu.align()
            self._gpu.run(number)
        return min(
            message[0].tolist()[0] for message in tell(self._communicator, self._gpu.seconds())
        )

    def check(self, source: int) -> Checked:
        checked = self._check(source)
        self.levels.append(self._gpu.levels())
        return checked

    def exchanged(self, timings: Timings, table_bytes: int | None) -> Exchanged:
        searches, gpu = self.levels, self._gpu
        kinds = searches[0][0].sent
        sent = [
            sum(level.sent[kind] for levels in searches for level in levels) / len(searches)
            for kind in kinds
        ]
        pool = self._device.cupy.get_default_memory_pool()
        held = pool.used_bytes() + gpu.peer_bytes
        told = [
            message[0].tolist() for message in tell(self._communicator, held, gpu.rows.bytes, *sent)
        ]
        _, graph, *sent = np.sum(told, axis=0).tolist()
        return Exchanged(
            bytes_sent=dict(zip(kinds, sent, strict=True)),
            supersteps=float(np.mean([len(levels) for levels in searches])),
            direct=gpu.direct,
            held_bytes=int(max(message[0] for message in told)),
            graph_bytes=int(graph),
            table_bytes=table_bytes,
            levels=_levels(searches[_median(timings)], timings.seconds[_median(timings)]),
        )


def tell(communicator: Communicator, *values: float) -> list[list[Any]]:
    """Return the numbers of all ranks, by rank."""
    return communicator.exchange([[np.array(values)]] * communicator.size)


def _median(timings: Timings) -> int:
    """Return the index of the search of median time."""
    return int(np.argsort(timings.seconds)[len(timings.seconds) // 2])


def _levels(levels: Sequence[DelegateLevel | GridLevel], seconds: float) -> list[dict[str, Any]]:
    """Return this rank's work in each level of a search that took ``seconds``."""
    scale = seconds / max(1, sum(sum(level.clocks) for level in levels))
    return [
        {
            **level._asdict(),
            "clocks": dict(zip(PHASES, level.clocks, strict=True)),
            "seconds": sum(level.clocks) * scale,
        }
        for level in ends(levels)
    ]


def _graph_bytes(graph: RankGraph) -> int:
    """Return the bytes of a rank's rows in host memory."""
    held = [adjacency.rows for adjacency in graph.adjacencies if isinstance(adjacency.rows, Rows)]
    return sum(array.nbytes for rows in held for array in rows)
