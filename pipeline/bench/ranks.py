"""Graph500's protocol on a generated graph, by several workers with a GPU each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...kernels.base.team import Team
from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device, open_device
from ...kernels.gpu.search import PUSH_COST
from ...kernels.gpu_ranks.delegate_layout import DelegateLayout
from ...kernels.gpu_ranks.delegate_rows import DelegateRows
from ...kernels.gpu_ranks.grid_layout import GridLayout
from ...kernels.gpu_ranks.search import Search
from ...partition.errors import DelegraphError, InputError
from ...partition.store.grid import Grid, LayoutName, grid_of
from ...partition.store.layout import table_1_bytes
from ..build.generate import Recipe
from ..build.generated import Prepared, prepare
from ..ranks.communicator import TIMEOUT_SECONDS, Communicator, barrier
from ..ranks.jobs import RankJob, Way
from ..ranks.nccl import device_arrays
from ..ranks.on_workers import Done, lease, run_on_workers, workers_of
from ..run.cluster import ClusterOptions, open_cluster
from ..run.devices import has_device_each
from ..run.execute import Progress
from .device import Measured, draw_positions, facts_of, make_edges, measure, report_of
from .protocol import BenchReport, run_all
from .searchers import DeviceRankCheck, DeviceRankSearcher, Exchanged, tell


@dataclass(frozen=True)
class Placing:
    """How ranks share a graph that they generate.

    grid: of layout 2d; None for the squarest. threshold: of delegates; None for the automatic one.
    push_only: of a grid, as its paper searches. Raises InputError where these do not go together.
    """

    layout: LayoutName = "delegate"
    grid: Grid | None = None
    threshold: int | None = None
    push_only: bool = False

    def __post_init__(self) -> None:
        if self.grid is not None and self.layout != "2d":
            raise InputError(f"a grid ({self.grid}) is for --layout 2d, not {self.layout}")
        if self.threshold is not None and self.layout != "delegate":
            raise InputError(f"--threshold is for --layout delegate, not {self.layout}")

    def grid_for(self, ranks: int) -> Grid | None:
        """None for delegates."""
        if self.grid is not None and self.grid.partitions != ranks:
            raise InputError(
                f"a grid of {self.grid} takes {self.grid.partitions} ranks, not {ranks}"
            )
        return grid_of(self.layout, ranks, self.grid)


@dataclass(frozen=True)
class BenchJob:
    """On rank 0 ``run`` gives (Measured, Exchanged, or None of one rank)."""

    recipe: Recipe
    sources: int
    seed: int
    placing: Placing
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

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        device = open_device(0, self.device_limit)
        gpu_prepare.warm_up(device, self.recipe.candidates, False)
        return [Way(0, self)]  # what is generated stands on the devices

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
            batches = make_edges(self.recipe, device, rank, communicator.size)
            cupy.cuda.Device().synchronize()
            barrier(communicator)
            began = time.perf_counter()
            grid = self.placing.grid_for(communicator.size)
            prepared = prepare(
                device, batches, self.recipe.domain, communicator, self.placing.threshold, grid
            )
            cupy.get_default_memory_pool().free_all_blocks()
            search = self._search(device, prepared, communicator)
        try:
            search.connect(communicator.exchange)
            with device.use() as cupy:
                cupy.cuda.Device().synchronize()
            done = time.perf_counter()
            with_edges = _with_edges(prepared)
            used = sum(m[0].tolist()[0] for m in tell(communicator, with_edges))
            chosen, ids = draw_positions(
                prepared.id_of_position, used, self.sources, self.seed, device
            )
            check = DeviceRankCheck(search, communicator, prepared.rows_from)
            searcher = DeviceRankSearcher(search, communicator, check)
            searcher.warm_up(chosen[0])
            compiled = time.perf_counter()
            runs = run_all(searcher, chosen, ids, None)
        finally:
            search.close()
        barrier(communicator)  # all have closed
        exchanged = searcher.exchanged(runs, _table_bytes(prepared, communicator))
        vertices = prepared.rows.numbering.vertices
        facts = facts_of(self.recipe, vertices, prepared.input_rows, prepared.edges)
        facts |= {"partitions": communicator.size, "layout": self.placing.layout}
        threshold = prepared.threshold
        if threshold is None:
            direction = "push" if self.placing.push_only else "push-pull"
            facts |= {"grid": str(grid), "direction": direction}
        else:
            facts |= {
                "threshold": threshold.value,
                "delegates": threshold.delegates,
                "nn_share": threshold.nn_share,
            }
        if rank:
            return None
        return Measured(runs, ids, facts, done - began, compiled - done), exchanged

    def _search(
        self, device: Device, prepared: Prepared, communicator: Communicator
    ) -> Search[Any]:
        if isinstance(prepared.rows, DelegateRows):
            return Search(DelegateLayout(device, prepared.rows), communicator.check)
        push_cost = 0.0 if self.placing.push_only else PUSH_COST
        return Search(GridLayout(device, prepared.rows), communicator.check, push_cost)


def _with_edges(prepared: Prepared) -> int:
    """Vertices of a rank that input rows touch; delegates, on rank 0."""
    return int((prepared.rows_from > 0).sum())


def _table_bytes(prepared: Prepared, communicator: Communicator) -> int | None:
    """Of all ranks' graphs, by Table I; None in a grid."""
    if prepared.threshold is None:
        return None
    own = prepared.entries["nn"], sum(prepared.entries.values())
    nn, entries = np.sum([m[0].tolist() for m in tell(communicator, *own)], axis=0).tolist()
    vertices, delegates = prepared.rows.numbering.vertices, prepared.threshold.delegates
    return table_1_bytes(vertices, delegates, communicator.size, int(entries), int(nn))


class ScalingRow(NamedTuple):
    """A graph that was searched by so many ranks. efficiency: its rate, at the median, over that of
    the first row times the ranks. notes: lines for the user, of devices that would not do.
    """

    ranks: int
    report: BenchReport
    exchanged: Exchanged | None
    efficiency: float
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        exchanged = None if self.exchanged is None else self.exchanged._asdict()
        return {**self._asdict(), "exchanged": exchanged}


def bench_on_workers(
    runs: Sequence[tuple[int, Recipe]],
    sources: int,
    seed: int,
    threads: int,
    cluster_options: ClusterOptions,
    placing: Placing = Placing(),
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
    jobs = [
        (
            ranks,
            BenchJob(recipe, sources, seed, placing, timeout, device_limit=device_limit),
        )
        for ranks, recipe in runs
    ]

    def reported(done: Done) -> tuple[BenchReport, Exchanged | None]:
        measured, exchanged = done.results[0]
        return report_of(measured, str(done.devices), threads, seed), exchanged

    with (
        open_cluster(cluster_options, threads, devices) as cluster,
        lease(cluster.client, timeout),
    ):
        workers = workers_of(cluster.client)
        for ranks, _ in runs:
            placing.grid_for(ranks or len(workers))
        return scale(cluster.client, workers, jobs, _enough, reported, progress)


def scale(
    client: Any,
    workers: Sequence[str],
    jobs: Sequence[tuple[int, RankJob]],
    check_room: Any,
    reported: Callable[[Done], tuple[BenchReport, Exchanged | None]],
    progress: Progress | None,
) -> list[ScalingRow]:
    """Do one job after the other, each by so many ranks; 0: as many as there are workers.

    check_room: see run_on_workers. Raises InputError for more ranks than workers, DelegraphError
    where a rank is lost.
    """
    rows: list[ScalingRow] = []
    for number, (asked, job) in enumerate(jobs, 1):
        ranks = asked or len(workers)
        if ranks > len(workers):
            raise InputError(f"{ranks} ranks need as many workers; there are {len(workers)}")
        done = run_on_workers(client, workers[:ranks], job, check_room)
        if len(done.results) != ranks:  # done again on those that were left
            raise DelegraphError(done.notes[-1])
        report, exchanged = reported(done)
        rate = report["gteps"]["median"] / ranks
        first = rows[0].report["gteps"]["median"] / rows[0].ranks if rows else rate
        rows.append(ScalingRow(ranks, report, exchanged, rate / first, tuple(done.notes)))
        if progress:
            progress("graphs", number, len(jobs))
    return rows


def ranks_up_to(ranks: int) -> list[int]:
    """By powers of two.

    >>> ranks_up_to(4)
    [1, 2, 4]
    """
    steps = [2**i for i in range(ranks.bit_length())]
    if steps[-1] != ranks:
        raise InputError(f"scaling is measured up to a power of two of workers, not {ranks}")
    return steps


def scaling_runs(recipe: Recipe, ranks: int, scaling: str) -> list[tuple[int, Recipe]]:
    """Up to so many ranks, by powers of two: of the same graph ("strong"), or ("weak") of graphs
    with as many vertices a rank, of which ``recipe`` is the last.

    >>> graph = Recipe("kronecker", scale=20)
    >>> [(ranks, some.scale) for ranks, some in scaling_runs(graph, 4, "weak")]
    [(1, 18), (2, 19), (4, 20)]
    """
    steps = ranks_up_to(ranks)
    if scaling == "strong":
        return [(step, recipe) for step in steps]
    if recipe.kind == "grid":
        return [(step, replace(recipe, height=recipe.height * step // ranks)) for step in steps]
    last = ranks.bit_length()
    return [(s, replace(recipe, scale=recipe.scale - last + s.bit_length())) for s in steps]


def _enough(ranks: int, baseline: int, needs: Sequence[int]) -> int:
    """Of the hosts nothing is asked."""
    return 0
