"""Timings of algorithms other than breadth-first search by several workers, each of which loads its
share once.

The time of a run is from one barrier of all ranks to the next. As in algorithms.py, it covers the
work from the loaded graph to the arrays of a result, which stay on their ranks if these run on
CPUs.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..._version import __version__
from ...kernels.base.team import Team
from ...partition.disk.temporary import TemporaryFolder
from ...partition.errors import InputError
from ...partition.store.store import Store, open_store
from ..algorithms.programs import ProgramQuestion
from ..algorithms.run import Run, RunOptions, check_weights, resources_for
from ..build.generate import Recipe
from ..engines.engine import EngineFacts, Subject
from ..engines.operations.program import ProgramResult
from ..engines.ranks.result import gather_columns
from ..engines.subjects import subject_of
from ..engines.workers.client import check_partitions, check_room, method_of, open_ranks
from ..engines.workers.job import Job
from ..engines.workers.program_work import ProgramDone, ProgramWork
from ..ranks.on_workers import Done, workers_of
from ..result import Result
from ..results.names import names_of_store
from ..results.result import ResultInfo
from ..run.cluster import Cluster
from ..run.execute import Executor
from ..run.resources import ClusterOptions, Resources
from .across import check_scaling, ranks_up_to, scale, scaling_runs
from .algorithms import (
    AlgorithmReport,
    check,
    check_algorithm,
    facts_of_runs,
    generated_store,
    needs_weights,
    report_of_runs,
    runs_of,
)
from .device import parse_recipe
from .protocol import BenchOptions


class AlgorithmRow(NamedTuple):
    """The measurement of runs by a number of ranks. efficiency, notes: as in a ScalingRow, with
    EVPS as the rate.
    """

    ranks: int
    report: AlgorithmReport
    efficiency: float
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return self._asdict()


class _StoreQuestions(NamedTuple):
    """Questions about a store. questions: one for each run. subject: of the store, with its names
    in memory. recipe: of a generated graph; None for a store.
    """

    store: Store
    subject: Subject
    questions: list[ProgramQuestion]
    recipe: Recipe | None = None

    def job(self, folder: Path, resources: Resources, device: str) -> Job:
        """Return the job of all runs, preceded by one that is not counted, in which ranks connect
        and compile.
        """
        programs = [
            question.program(self.subject.names, self.store.info) for question in self.questions
        ]
        work = ProgramWork((programs[0], *programs))
        place, timeout = self.store.path.resolve(), resources.cluster.timeout
        limit, must_fit = resources.device_memory_limit, resources.device == "cuda"
        return Job(place, work, folder, timeout, device, limit, must_fit)


def bench_algorithm_by_workers(
    graph: str, algorithm: str, scaling: str | None, resources: Resources, options: BenchOptions
) -> list[AlgorithmRow]:
    """Time an algorithm by workers.

    graph: a store, or the name of a graph to generate, of which a store is built first. scaling:
    "strong", "weak" or None. options: the number of runs is its ``sources``. Raises InputError for
    options that exclude each other, LimitError if a share does not fit, DelegraphError if the last
    result of a number of ranks breaks a rule.
    """
    check_algorithm(algorithm, options.sources)
    steps = _steps(parse_recipe(graph), algorithm, scaling, resources.cluster.workers or 0)
    stored = open_store(graph) if steps[0][1] is None else None
    keeps_loops = stored is not None and bool(stored.info.loops)
    resources = resources_for(algorithm, resources, [], keeps_loops)
    if stored is not None:
        check_partitions(stored, resources)
        if needs_weights(algorithm):
            check_weights(stored, graph)
    with ExitStack() as stack:
        cluster, device = stack.enter_context(open_ranks(resources, options.threads))
        generated = partial(_generated, resources, options, cluster, stack)
        asked: dict[Recipe | None, _StoreQuestions] = {}
        for _, recipe in steps:
            if recipe not in asked:
                store = stored if recipe is None else generated(recipe)
                assert store is not None
                subject = subject_of(store, names_of_store(store, Team(options.threads)))
                asked[recipe] = _StoreQuestions(
                    store, subject, runs_of(store, algorithm, options), recipe
                )
        stores = {questions.store.path.resolve(): questions for questions in asked.values()}
        shared_folder = None if cluster.local else next(iter(stores)).parent  # that all workers see
        folder = stack.enter_context(TemporaryFolder(parent=shared_folder))
        place = Path(folder).resolve(), resources, device
        jobs = [(ranks, asked[recipe].job(*place)) for ranks, recipe in steps]

        def reported(done: Done) -> tuple[AlgorithmReport, float]:
            job = cast(Job, done.job)
            report = _report(stores[job.store], done, job, cluster, resources, options)
            return report, report["evps"]

        room = partial(check_room, resources.limit, cluster)
        on = workers_of(cluster)[: min(store.info.partitions for store, *_ in asked.values())]
        rows = scale(cluster, on, jobs, room, reported, options.progress)
    return [AlgorithmRow(row.ranks, row.measured, row.efficiency, row.notes) for row in rows]


def _steps(
    recipe: Recipe | None, algorithm: str, scaling: str | None, workers: int
) -> list[tuple[int, Recipe | None]]:
    """Return pairs of a number of ranks (0 for as many as there are workers) and a graph to
    generate (None for the store).
    """
    check_scaling(scaling, workers, recipe)
    if recipe is not None and not workers:
        raise InputError(
            "the workers of a cluster cannot see a graph that is generated here: give a store"
        )
    if recipe is None:
        return [(ranks, None) for ranks in (ranks_up_to(workers) if scaling else [0])]
    recipe = replace(recipe, weighted=needs_weights(algorithm))
    return [*scaling_runs(recipe, workers, scaling)] if scaling else [(0, recipe)]


def _generated(
    resources: Resources,
    options: BenchOptions,
    cluster: Cluster,
    stack: ExitStack,
    recipe: Recipe,
) -> Store:
    """Build a store of the recipe with a partition for each worker, and keep it until ``stack`` is
    closed. The CPUs of this process build it, since the workers have the devices.
    """
    alone = replace(resources, cluster=ClusterOptions(), device="cpu", device_memory_limit=None)
    return open_store(
        stack.enter_context(
            generated_store(
                recipe, Executor(options.threads, options.progress), alone, cluster.workers
            )
        )
    )


def _report(
    asked: _StoreQuestions,
    done: Done,
    job: Job,
    cluster: Cluster,
    resources: Resources,
    options: BenchOptions,
) -> AlgorithmReport:
    """Judge the result of the last run, and return the report of the runs. job: the attempt that
    finished.
    """
    given: ProgramDone = done.results[0]
    question, subject = asked.questions[-1], asked.subject
    method, record = method_of(done, job), subject.record
    values = gather_columns(asked.store, job.place, given.columns)
    found = ProgramResult(dict(zip(given.columns, values, strict=True)), given.record)
    chosen = question.options(subject.names.id_type)
    info = question.name, record["fingerprint"], record["directed"], chosen, __version__
    executor, alone = Executor(options.threads), replace(resources, cluster=ClusterOptions())
    run = Run(RunOptions(options.threads), executor, alone, None, ResultInfo(*info))
    ran = EngineFacts(subject, method, done.devices, len(done.results))
    result = Result(question.answer(found, subject.names, method), ran, run)
    check(asked.store, result, options.threads, alone)
    threads, facts = len(done.results) * cluster.threads, facts_of_runs(asked.store, asked.recipe)
    return report_of_runs(
        question.name, facts, given.seconds[1:], result.record, threads, options.seed
    )
