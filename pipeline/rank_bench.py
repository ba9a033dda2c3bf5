"""Graph500's protocol on a generated graph, by several workers with a GPU each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..kernels import gpu_prepare
from ..kernels.check import Violations
from ..kernels.device import Device, open_device
from ..kernels.gpu_rank import GpuRankSearch, RankLevel
from ..kernels.gpu_rank_check import RankChecker
from ..kernels.rank_rows import RankRows
from ..kernels.team import Team
from ..partition.errors import DelegraphError, InputError
from ..partition.layout import table_1_bytes
from .bench import BenchReport, Runs, run_all
from .cluster import ClusterOptions, open_cluster
from .communicator import TIMEOUT_SECONDS, Communicator, barrier
from .device_bench import Measured, draw_ranks, facts_of, make_edges, measure, report_of
from .devices import has_device_each
from .execute import Progress
from .generate import Recipe
from .nccl import device_arrays
from .rank_prepare import Prepared, prepare
from .ranks import lease, run_on_workers, workers_of

_BUSY = 1 << 26  # words that keep a device busy while its launches are put in line


class Exchanged(NamedTuple):
    """Of searches by several ranks, all of them together, but for bytes on devices.

    delegate_bytes, normal_bytes: sent a search, on average. supersteps: the same. device_bytes: all
    that the rank holds that holds most. table_bytes: of all ranks' graphs by Table I of Pan,
    Pearce, Owens; graph_bytes: as they stand on the devices. levels: what rank 0 did in the search
    of median time.
    """

    delegate_bytes: float
    normal_bytes: float
    supersteps: float
    direct: bool
    device_bytes: int
    graph_bytes: int
    table_bytes: int
    levels: list[dict[str, Any]]


@dataclass(frozen=True)
class BenchJob:
    """On rank 0 ``run`` gives (Measured, Exchanged, or None of one rank)."""

    recipe: Recipe
    sources: int
    seed: int
    threshold: int | None
    timeout: float
    device: str = "cuda"
    device_limit: int | None = None

    @property
    def paths(self) -> list[str]:
        return []

    def on(self, device: str, why: str = "") -> BenchJob:
        if device != "cuda":
            raise DelegraphError(f"a graph is generated on GPUs only: {why}")
        return replace(self, device=device)

    def again(self) -> BenchJob:
        return self

    def get_ready(self, rank: int, size: int) -> int:
        device = open_device(0, self.device_limit)
        gpu_prepare.warm_up(device, self.recipe.candidates, False)
        return 0  # what is generated stands on the devices

    def run(
        self, communicator: Communicator, team: Team
    ) -> tuple[Measured, Exchanged | None] | None:
        device = open_device(0, self.device_limit)
        if communicator.size == 1:  # nothing to separate for: no threshold
            return measure(self.recipe, self.sources, self.seed, device), None
        with device_arrays(communicator, device) as communicator:
            return self._run(device, communicator)

    def _run(
        self, device: Device, communicator: Communicator
    ) -> tuple[Measured, Exchanged | None] | None:
        rank = communicator.rank
        with device.use() as cupy:
            blocks = make_edges(self.recipe, device, rank, communicator.size)
            cupy.cuda.Device().synchronize()
            barrier(communicator)
            began = time.perf_counter()
            prepared = prepare(device, blocks, self.recipe.domain, communicator, self.threshold)
            cupy.get_default_memory_pool().free_all_blocks()
            search = GpuRankSearch(device, prepared.rows, communicator.check)
        try:
            search.connect(communicator.exchange)
            with device.use() as cupy:
                cupy.cuda.Device().synchronize()
            done = time.perf_counter()
            with_edges = _with_edges(prepared)
            used = sum(m[0].tolist()[0] for m in _tell(communicator, with_edges))
            chosen, ids = draw_ranks(prepared.id_of_rank, used, self.sources, self.seed, device)
            searcher = _RankSearcher(device, prepared, search, communicator)
            searcher.warm_up(chosen[0])
            compiled = time.perf_counter()
            runs = run_all(searcher, chosen, ids, None)
        finally:
            search.close()
        barrier(communicator)  # all have closed
        exchanged = _exchanged(device, prepared, search, communicator, searcher.levels, runs)
        vertices = prepared.rows.numbering.vertices
        facts = facts_of(self.recipe, vertices, prepared.input_rows, prepared.edges)
        threshold = prepared.threshold
        facts |= {
            "partitions": communicator.size,
            "threshold": threshold.value,
            "delegates": threshold.delegates,
            "nn_share": threshold.nn_share,
        }
        if rank:
            return None
        return Measured(runs, ids, facts, done - began, compiled - done), exchanged


class _RankSearcher:
    """Searches of a graph by all ranks, timed and checked (see device_search.DeviceSearcher).

    levels: of each search that was checked, what this rank did.
    """

    def __init__(
        self, device: Device, prepared: Prepared, search: GpuRankSearch, communicator: Communicator
    ) -> None:
        self._device = device
        self._rows = prepared.rows
        self._rows_from = prepared.rows_from
        self.gpu = search
        self._communicator = communicator
        self.levels: list[list[RankLevel]] = []
        self._checker = RankChecker(device, search, communicator.exchange)
        with device.use() as cupy:
            self._busy = cupy.zeros(_BUSY, np.uint32)

    def warm_up(self, source: int) -> None:
        self.gpu.warm_up()
        self.gpu.run(self._rows.number(source))

    def search(self, source: int) -> float:
        """Seconds from the moment at which the last rank begins.

        Those that began before it wait for it, and count that; they all end together.
        """
        number = self._rows.number(source)
        barrier(self._communicator)
        with self._device.use():
            for _ in range(4):  # meanwhile all launches get in line, on every rank
                self._busy += np.uint32(1)
            self.gpu.align()
            self.gpu.run(number)
        return min(
            message[0].tolist()[0] for message in _tell(self._communicator, self.gpu.seconds())
        )

    def check(self, source: int) -> tuple[Violations, int, int]:
        """Rules that are broken as far as this rank knows; of all ranks, rows, by their ends, that
        were reached, and the depth.
        """
        violations = self._checker.check(source)
        rows = self._checker.rows_reached(self._rows_from)
        levels = self.gpu.levels()
        self.levels.append(levels)
        found = [level.normals + level.delegates for level in levels]
        told = [m[0].tolist() for m in _tell(self._communicator, rows, *found)]
        rows, *together = np.sum(told, axis=0).tolist()
        return violations, int(rows), int(np.count_nonzero(together))


def _of_median(runs: Runs, every: list[list[RankLevel]]) -> list[dict[str, Any]]:
    """What this rank did in the search of median time."""
    median = int(np.argsort(runs.seconds)[len(runs.seconds) // 2])
    clocks = sum(level.clocks for level in every[median])
    scale = runs.seconds[median] / max(1, clocks)
    return [{**level._asdict(), "seconds": level.clocks * scale} for level in every[median]]


def _exchanged(
    device: Device,
    prepared: Prepared,
    search: GpuRankSearch,
    communicator: Communicator,
    every: list[list[RankLevel]],
    runs: Runs,
) -> Exchanged:
    sent = [
        (sum(s.delegate_bytes for s in some), sum(s.normal_bytes for s in some)) for some in every
    ]
    delegates, normals = np.mean(sent, axis=0).tolist()
    own = graph_bytes(prepared.rows)
    pool = device.cupy.get_default_memory_pool()
    held = pool.used_bytes() + search.peer_bytes
    nn, entries = prepared.entries["nn"], sum(prepared.entries.values())
    told = [m[0].tolist() for m in _tell(communicator, delegates, normals, own, held, nn, entries)]
    sums = np.sum(told, axis=0).tolist()
    n, d, ranks = (
        prepared.rows.numbering.vertices,
        prepared.threshold.delegates,
        communicator.size,
    )
    return Exchanged(
        delegate_bytes=sums[0],
        normal_bytes=sums[1],
        supersteps=float(np.mean([len(some) for some in every])),
        direct=search.direct,
        device_bytes=int(max(some[3] for some in told)),
        graph_bytes=int(sums[2]),
        table_bytes=table_1_bytes(n, d, ranks, int(sums[5]), int(sums[4])),
        levels=_of_median(runs, every),
    )


def graph_bytes(rows: RankRows) -> int:
    """Of a rank's rows as they stand on its device: offsets, targets, numbers of ghosts."""
    forward = rows.graph.forward
    ghosts = sum(some.nbytes for some in rows.ghosts)
    own = forward.offsets.nbytes + 4 * forward.edges
    return own + rows.nn_offsets.nbytes + rows.nn_targets.nbytes + ghosts


def _with_edges(prepared: Prepared) -> int:
    """Vertices of a rank that input rows touch; delegates, on rank 0."""
    return int((prepared.rows_from > 0).sum())


def _tell(communicator: Communicator, *values: float) -> list[list[Any]]:
    """All ranks' numbers, by rank."""
    return communicator.exchange([[np.array(values)]] * communicator.size)


class ScalingRow(NamedTuple):
    """A graph that was searched by so many ranks. efficiency: its rate, at the median, over that of
    the first row times the ranks.
    """

    ranks: int
    report: BenchReport
    exchanged: Exchanged | None
    efficiency: float

    def document(self) -> dict[str, Any]:
        exchanged = None if self.exchanged is None else self.exchanged._asdict()
        return {**self._asdict(), "exchanged": exchanged}


def bench_on_workers(
    runs: Sequence[tuple[int, Recipe]],
    sources: int,
    seed: int,
    threads: int,
    cluster_options: ClusterOptions,
    threshold: int | None = None,
    timeout: float = TIMEOUT_SECONDS,
    device_limit: int | None = None,
    progress: Progress | None = None,
) -> list[ScalingRow]:
    """Generate, prepare and search graphs across workers with a GPU each, one after the other.

    runs: (ranks, graph); 0 ranks: as many as there are workers. Raises InputError for more ranks
    than workers, DelegraphError if a result breaks a rule.
    """
    asked = cluster_options.workers or 0
    devices = asked > 0 and has_device_each("cuda", asked)
    rows: list[ScalingRow] = []
    with (
        open_cluster(cluster_options, threads, devices) as cluster,
        lease(cluster.client, timeout),
    ):
        workers = workers_of(cluster.client)
        for done, (ranks, recipe) in enumerate(runs):
            ranks = ranks or len(workers)
            if ranks > len(workers):
                raise InputError(f"{ranks} ranks need as many workers; there are {len(workers)}")
            job = BenchJob(recipe, sources, seed, threshold, timeout, device_limit=device_limit)
            ended = run_on_workers(cluster.client, workers[:ranks], job, _enough)
            if len(ended.results) != ranks:  # done again on those that were left
                raise DelegraphError(ended.notes[-1])
            measured, exchanged = ended.results[0]
            report = report_of(measured, str(ended.devices), threads, seed)
            rate = report["gteps"]["median"] / ranks
            first = rows[0].report["gteps"]["median"] / rows[0].ranks if rows else rate
            rows.append(ScalingRow(ranks, report, exchanged, rate / first))
            if progress:
                progress("graphs", done + 1, len(runs))
    return rows


def scaling_runs(recipe: Recipe, ranks: int, scaling: str) -> list[tuple[int, Recipe]]:
    """Up to so many ranks, by powers of two: of the same graph ("strong"), or ("weak") of graphs
    with as many vertices a rank, of which ``recipe`` is the last.

    >>> graph = Recipe("kronecker", scale=20)
    >>> [(ranks, some.scale) for ranks, some in scaling_runs(graph, 4, "weak")]
    [(1, 18), (2, 19), (4, 20)]
    """
    steps = [2**i for i in range(ranks.bit_length())]
    if steps[-1] != ranks:
        raise InputError(f"scaling is measured up to a power of two of workers, not {ranks}")
    if scaling == "strong":
        return [(step, recipe) for step in steps]
    if recipe.kind == "grid":
        return [(step, replace(recipe, height=recipe.height * step // ranks)) for step in steps]
    last = ranks.bit_length()
    return [(s, replace(recipe, scale=recipe.scale - last + s.bit_length())) for s in steps]


def _enough(ranks: int, baseline: int, need: int) -> None:
    """Of the hosts nothing is asked."""
