"""Graph500's protocol by several workers, on a store or on graphs that the workers generate; and by
1, 2, 4, ... workers, to show scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ...kernels.base.team import Team
from ...partition.errors import InputError
from ...partition.store.store import open_store
from ..build.generate import Recipe
from ..build.prepare import BuildOptions
from ..engines.workers.client import check_room, open_workers
from ..ranks.jobs import CheckRoom, RankJob, Room
from ..ranks.lease import lease
from ..ranks.on_workers import Done, run_on_workers, workers_of
from ..results.names import names_of_store
from ..run.cluster import Cluster, open_cluster
from ..run.devices import has_device_each
from ..run.execute import Progress
from ..run.resources import Resources
from .device import parse_recipe
from .protocol import (
    Benched,
    BenchOptions,
    BenchReport,
    draw_sources,
    facts_of_store,
    preparation_seconds,
    report,
    rows_from_vertex,
)
from .ranks import BenchJob, Placing
from .searchers import Exchanged
from .store_ranks import StoreBenchJob

R = TypeVar("R")


class ScalingRow(NamedTuple):
    """The measurement of searches by a number of ranks. efficiency: their median rate for each
    rank, over that of the first row. exchanged: None for a single rank. notes: lines for the user
    about devices that cannot be used.
    """

    ranks: int
    report: BenchReport
    exchanged: Exchanged | None
    efficiency: float
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        exchanged = None if self.exchanged is None else self.exchanged._asdict()
        return {**self._asdict(), "exchanged": exchanged}


def bench_by_workers(
    graph: str,
    scaling: str | None,
    resources: Resources,
    shape: BuildOptions,
    shaped: set[str],
    options: BenchOptions,
) -> list[ScalingRow]:
    """Run the protocol by workers.

    graph: a store, or the name of a graph to generate. scaling: "strong", "weak" or None. shape:
    layout, grid and threshold of a generated graph. shaped: the names of the options of a build
    that the user chose. Raises InputError for options that exclude each other.
    """
    recipe = parse_recipe(graph)
    workers = resources.cluster.workers or 0
    check_scaling(scaling, workers, recipe)
    if recipe is None:
        if shaped:
            named = sorted(shaped)[0]
            raise InputError(f"--{named} was fixed when the store was built: leave it out")
        return bench_stored(graph, ranks_up_to(workers) if scaling else [0], resources, options)
    if shaped - {"layout", "grid", "threshold"}:
        named = sorted(shaped - {"layout", "grid", "threshold"})[0]
        raise InputError(f"--{named} is only for edge lists: leave it out for a generated graph")
    if scaling is not None and shape.grid is not None:
        raise InputError(
            "--grid is for one number of workers, --scaling for several: leave one out"
        )
    if resources.device not in ("auto", "cuda"):
        raise InputError(
            f"a generated graph needs a GPU for each worker: leave out --device {resources.device}"
        )
    if resources.memory_limit is not None:
        raise InputError("--memory-limit is only for stores: leave it out for a generated graph")
    runs = scaling_runs(recipe, workers, scaling) if scaling else [(0, recipe)]
    placing = Placing(shape.layout, shape.grid, shape.threshold)
    return bench_generated(runs, placing, resources, options)


def bench_generated(
    runs: Sequence[tuple[int, Recipe]],
    placing: Placing,
    resources: Resources,
    options: BenchOptions,
) -> list[ScalingRow]:
    """Generate, prepare and search graphs across workers with a GPU each, one graph after the
    other.

    runs: pairs of a number of ranks and a graph; 0 ranks means as many as there are workers. Raises
    InputError for more ranks than workers, DelegraphError if a result breaks a rule.
    """
    asked = resources.cluster.workers or 0
    devices = asked > 0 and has_device_each("cuda", asked)
    limit = resources.device_memory_limit
    timeout, alone = resources.cluster.timeout, replace(options, progress=None)
    jobs = [
        (ranks, BenchJob(recipe, alone, placing, timeout, device_limit=limit))
        for ranks, recipe in runs
    ]

    def reported(done: Done) -> tuple[tuple[BenchReport, Exchanged | None], float]:
        measured, benched, exchanged = done.results[0]
        found = report(measured, benched, options.seed, str(done.devices))
        return (found, exchanged), found["gteps"]["median"]

    with (
        open_cluster(resources.cluster, options.threads, devices) as cluster,
        lease(cluster, timeout),
    ):
        workers = workers_of(cluster)
        for ranks, _ in runs:
            placing.grid_for(ranks or len(workers))
        return _searched(scale(cluster, workers, jobs, _first_way, reported, options.progress))


def bench_stored(
    path: str | Path, runs: Sequence[int], resources: Resources, options: BenchOptions
) -> list[ScalingRow]:
    """Search a store from the same sources by several numbers of ranks, one number after the other.

    runs: the numbers of ranks; 0 means as many as there are workers, at most one for each
    partition. Raises InputError for more ranks than partitions, LimitError if a share does not fit
    (its edges are not read from disk), DelegraphError if a result breaks a rule.
    """
    store = open_store(path)
    info, team = store.info, Team(options.threads)
    drawn = draw_sources(names_of_store(store, team), rows_from_vertex(store, team), options)
    with open_workers(store, resources, options.threads) as (cluster, workers, device):
        job = StoreBenchJob(
            store.path.resolve(),
            tuple(drawn.places),
            tuple(drawn.ids),
            resources.cluster.timeout,
            device,
            device_limit=resources.device_memory_limit,
            must_fit=resources.device == "cuda",
        )

        def reported(done: Done) -> tuple[tuple[BenchReport, Exchanged | None], float]:
            measured, exchanged = done.results[0]
            ranks = len(done.results)
            facts = facts_of_store(path, info) | {"layout": info.layout}
            if info.grid is None:
                facts |= {
                    "threshold": info.threshold,
                    "delegates": info.delegates,
                    "nn_share": info.nn_row_share,
                }
            threads = ranks * cluster.threads
            benched = Benched(facts, info.directed, drawn.ids, threads, preparation_seconds(store))
            found = report(measured, benched, options.seed, done.devices)
            return (found, exchanged), found["gteps"]["median"]

        room = partial(check_room, resources.limit, cluster)
        jobs = [(ranks, job) for ranks in runs]
        return _searched(scale(cluster, workers, jobs, room, reported, options.progress))


class Scaled(NamedTuple, Generic[R]):
    """The measurement of a number of ranks. efficiency: the rate for each rank, over that of the
    first measurement. notes: as in a ScalingRow.
    """

    ranks: int
    measured: R
    efficiency: float
    notes: tuple[str, ...]


def scale(
    cluster: Cluster,
    workers: Sequence[str],
    jobs: Sequence[tuple[int, RankJob]],
    check_room: CheckRoom,
    reported: Callable[[Done], tuple[R, float]],
    progress: Progress | None,
) -> list[Scaled[R]]:
    """Run jobs one after the other, each by its number of ranks; 0 means as many as there are
    workers.

    check_room: see CheckRoom. reported: returns the measurement and its rate. If a worker is
    lost, its job is measured on the remaining workers, and jobs that need more workers are left
    out. Raises InputError for more ranks than workers.
    """
    most, left = max(asked or len(workers) for asked, _ in jobs), list(workers)
    if most > len(workers):
        raise InputError(f"{most} ranks need {most} workers, but there are only {len(workers)}")
    rows: list[Scaled[R]] = []
    first = 0.0
    for number, (asked, job) in enumerate(jobs, 1):
        if asked > len(left):
            note = f"{asked} and more ranks are not measured: only {len(left)} workers are left"
            rows[-1] = rows[-1]._replace(notes=(*rows[-1].notes, note))
            break
        on = left[: asked or len(left)]
        done = run_on_workers(cluster, on, job, check_room)
        left = [worker for worker in left if worker in done.workers or worker not in on]
        ranks = len(done.workers)
        measured, rate = reported(done)
        first = first or rate / ranks
        rows.append(Scaled(ranks, measured, rate / ranks / first, tuple(done.notes)))
        if progress:
            progress("graphs", number, len(jobs))
    return rows


def _searched(
    rows: Sequence[Scaled[tuple[BenchReport, Exchanged | None]]],
) -> list[ScalingRow]:
    return [ScalingRow(row.ranks, *row.measured, row.efficiency, row.notes) for row in rows]


def check_scaling(scaling: str | None, workers: int, recipe: Recipe | None) -> None:
    """Raise InputError if the scaling is impossible. recipe: of a generated graph; None for a
    store.
    """
    if scaling is not None and not workers:
        raise InputError("--scaling needs --workers, the greatest number of workers to measure")
    if scaling == "weak" and recipe is None:
        raise InputError(
            "--scaling weak needs a generated graph, such as kronecker:27: for a store give "
            "--scaling strong"
        )


def ranks_up_to(ranks: int) -> list[int]:
    """Return the powers of two up to ``ranks``. Raises InputError if ``ranks`` is not one of them.

    >>> ranks_up_to(4)
    [1, 2, 4]
    """
    steps = [2**i for i in range(ranks.bit_length())]
    if steps[-1] != ranks:
        raise InputError(f"--scaling needs a number of workers that is a power of two, not {ranks}")
    return steps


def scaling_runs(recipe: Recipe, ranks: int, scaling: str) -> list[tuple[int, Recipe]]:
    """Return the powers of two up to ``ranks``, each with a graph. scaling "strong": the same
    graph. "weak": graphs with the same number of vertices for each rank; ``recipe`` is the last
    one.

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


def _first_way(ranks: int, baseline: int, needs: Sequence[int]) -> Room:
    """Return the room for the first way, whatever memory it needs on hosts."""
    return Room(0)
