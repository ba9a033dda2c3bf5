"""Timings of algorithms other than breadth-first search, over a store that stays loaded; a
generated graph becomes a temporary store.

The time of a run is that of the algorithm alone, from the loaded graph to the arrays of its result.
Shortest paths begin at a random vertex with an edge to follow, another vertex in each run
(Graph500, GAP). Betweenness counts the paths from four such vertices (GAP's bc). Closeness and
eccentricity are computed for 64 vertices. EVPS of LDBC Graphalytics are vertices and edges over
seconds.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import harmonic_mean
from typing import Any, NotRequired, TypedDict

from ...kernels.base.team import Team
from ...kernels.base.together import WIDTH
from ...partition.disk.temporary import TemporaryFolder
from ...partition.errors import DelegraphError, InputError
from ...partition.input.edges import open_edges
from ...partition.store.store import Store
from ..algorithms.programs import ProgramQuestion
from ..algorithms.validate import validate_result
from ..build.build import build_store
from ..build.generate import Recipe, generate_edges
from ..build.prepare import BuildOptions
from ..parameter_checks import algorithm_of
from ..questions import QUESTIONS
from ..result import Result
from ..results.names import names_of_store
from ..run.execute import Executor
from ..run.records import hardware, versions
from ..run.resources import Resources
from .device import facts_of
from .protocol import (
    BenchOptions,
    Quartiles,
    draw_sources,
    facts_of_store,
    quartiles,
    rows_from_vertex,
)

Vertices = list[int | str]

BENCHED = {name: question for name, question in QUESTIONS.items() if question.in_bench}
"""Questions that the bench measures, by name."""


def benched(name: str, vertices: Vertices) -> ProgramQuestion:
    """Return the algorithm of a question as the bench measures it. vertices: drawn at random; a
    question that takes vertices gets as many of them as its declaration says.
    """
    question, values = BENCHED[name], {}
    if question.bench_parameter is not None:
        parameter, count = question.bench_parameter
        values[parameter] = vertices[0] if count == 1 else vertices[:count]
    return algorithm_of(question, values)[1]


def needs_weights(name: str) -> bool:
    """Return whether the bench of a question needs edges with weights."""
    return benched(name, [0]).weighted


class AlgorithmReport(TypedDict):
    """Report of an algorithm's runs. seconds: of a run. iteration_seconds: of an iteration, if
    the question has any, averaged in each run. evps: harmonic mean of vertices and edges over the
    seconds.
    """

    algorithm: str
    graph: dict[str, Any]
    versions: dict[str, str]
    hardware: dict[str, str | int]
    device: str
    method: str
    threads: int
    seed: int
    runs: int
    seconds: Quartiles
    iteration_seconds: NotRequired[Quartiles]
    evps: float


def bench_algorithm(
    store: Store,
    algorithm: str,
    graph: Any,
    options: BenchOptions,
    resources: Resources,
    recipe: Recipe | None = None,
) -> AlgorithmReport:
    """Run an algorithm over a store several times and validate the last result.

    graph: the open store. options: the number of runs is its ``sources``. recipe: of a generated
    graph; None for a store. Raises DelegraphError if the result breaks a rule.
    """
    seconds: list[float] = []
    found: Any = None
    asked = runs_of(store, algorithm, options)
    for run, question in enumerate(asked):
        found = graph.ask(question)
        seconds.append(found.seconds)
        if options.progress:
            options.progress(f"bench {algorithm}", run + 1, len(asked))
    check(store, found, options.threads, resources)
    facts = facts_of_runs(store, recipe)
    return report_of_runs(algorithm, facts, seconds, found.record, options.threads, options.seed)


def runs_of(store: Store, algorithm: str, options: BenchOptions) -> list[ProgramQuestion]:
    """Return the question of each run."""
    team = Team(options.threads)
    drawn: Vertices = []
    if BENCHED[algorithm].bench_parameter is not None:
        draw_options = replace(options, sources=options.sources * WIDTH)
        drawn = draw_sources(
            names_of_store(store, team), rows_from_vertex(store, team), draw_options
        ).ids
    step = WIDTH if len(drawn) >= options.sources * WIDTH else 1
    firsts = [run * step % max(1, len(drawn)) for run in range(options.sources)]
    return [benched(algorithm, (drawn[i:] + drawn[:i])[:WIDTH]) for i in firsts]


def facts_of_runs(store: Store, recipe: Recipe | None) -> dict[str, Any]:
    """Return the facts of the graph for a report. recipe: of a generated graph; None for a
    store.
    """
    info = store.info
    if recipe is not None:
        return facts_of(recipe, info.vertices, info.rows, info.edges)
    return facts_of_store(str(store.path), info)


def report_of_runs(
    algorithm: str,
    graph: dict[str, Any],
    seconds: list[float],
    record: Any,
    threads: int,
    seed: int,
) -> AlgorithmReport:
    """Return the report of runs. record: the run record of one of them."""
    size = graph["vertices"] + graph["edges"]
    report = AlgorithmReport(
        algorithm=algorithm,
        graph=graph,
        versions=versions(),
        hardware=hardware(),
        device=record["device"],
        method=record[algorithm]["method"],
        threads=threads,
        seed=seed,
        runs=len(seconds),
        seconds=quartiles(seconds),
        evps=harmonic_mean([size / spent for spent in seconds]),
    )
    if "iterations" in record:
        iterations = len(record["iterations"])  # the same number in every run
        report["iteration_seconds"] = quartiles([spent / iterations for spent in seconds])
    return report


@contextmanager
def generated_store(
    recipe: Recipe, executor: Executor, resources: Resources, partitions: int | None = None
) -> Iterator[Path]:
    """Build a temporary store of the recipe's edges, and yield its path. The store is removed at
    the end of the block.
    """
    choices = BuildOptions(weight="weight" if recipe.weighted else None, partitions=partitions)
    with TemporaryFolder() as folder:
        edges, store = Path(folder) / "edges", Path(folder) / "graph.dg"
        generate_edges(recipe, edges, executor)
        opened = open_edges(edges, weight=choices.weight)
        build_store(opened, store, choices, executor, resources, resources.chosen_device())
        shutil.rmtree(edges)
        yield store


def check_algorithm(name: str, runs: int) -> None:
    if name not in BENCHED:
        raise InputError(f"--algorithm {name} is unknown: choose one of {', '.join(BENCHED)}")
    if runs < 1:
        raise InputError(f"{runs} runs: at least one is needed")


def check(store: Store, result: Result, threads: int, resources: Resources) -> None:
    """Raise DelegraphError if the result breaks a rule."""
    with TemporaryFolder() as folder:
        written = Path(folder) / "result"
        result.write(written)
        verdict = validate_result(str(store.path), str(written), None, Executor(threads), resources)
    broken = [rule["meaning"] for rule in verdict["rules"] if rule["violations"]]
    if broken:
        raise DelegraphError(f"{result.name} breaks a rule: {'; '.join(broken)}")
