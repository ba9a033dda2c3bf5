"""``delegraph bench``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ...partition.numbers import GREATEST_SEED
from ...pipeline.questions import QUESTIONS
from .. import options
from ..command import command
from ..numbers import WholeNumber
from ..progress import shown
from ..talk import given, print_json, talk

if TYPE_CHECKING:
    from ...partition.store.grid import Grid, LayoutName
    from ...pipeline.engines.engine import Strategy


_BENCHED = [name for name, question in QUESTIONS.items() if question.in_bench]

_SHAPE = "layout", "grid", "threshold"
_LIMITS = "device", "memory_limit", "device_memory_limit"
_ON_WORKERS = "scaling", "timeout", *_LIMITS, "workers", "scheduler", "scheduler_file"

_ONLY_BY_WORKERS = "{} is only for several worker processes: give --workers too"


@command()
@click.argument("graph", type=click.Path())
@options.device
@options.device_memory_limit
@options.strategy
@options.memory_limit
@click.option(
    "--algorithm",
    metavar="NAME",
    help=f"Measure this question instead: {', '.join(_BENCHED)}.",
)
@click.option(
    "--sources",
    type=WholeNumber(min=1),
    help="Number of searches, or of runs of --algorithm.  [default: 64 searches, 16 runs]",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0, limit=GREATEST_SEED),
    default=1,
    show_default=True,
    help="Seed that chooses the sources.",
)
@options.cluster_options
@click.option(
    "--scaling",
    type=click.Choice(["weak", "strong"]),
    help="Measure with 1, 2, 4, ... workers: the same graph (strong), or a share of the same size "
    "for each worker (weak).",
)
@click.option(
    "--layout",
    type=click.Choice(["delegate", "2d", "1d"]),
    help="How the edges of a generated graph are dealt out to workers, as in build.  "
    "[default: delegate]",
)
@options.grid
@options.threshold
@click.option(
    "--ablation",
    is_flag=True,
    help="Measure what each of five optimizations of a search brings, on the CPU.",
)
@options.threads
@options.as_json
@options.quiet
@options.debug
def bench(
    graph: str,
    device: str,
    device_memory_limit: int | None,
    strategy: Strategy,
    memory_limit: int | None,
    algorithm: str | None,
    sources: int | None,
    seed: int,
    workers: int | None,
    scheduler: str | None,
    scheduler_file: str | None,
    scaling: str | None,
    layout: LayoutName | None,
    grid: Grid | None,
    threshold: int | None,
    timeout: float,
    ablation: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure searches from random sources, and validate each result.

    GRAPH is a store, or a graph to generate on a GPU: kronecker:SCALE, uniform:SCALE or
    grid:HEIGHTxWIDTH. With --algorithm, a temporary store of the generated graph is built first,
    also without a GPU.

    \b
    delegraph bench graph.dg --sources 64 --seed 1
    delegraph bench kronecker:24 --device cuda
    delegraph bench graph.dg --workers 4 --scaling strong
    delegraph bench kronecker:29 --workers 4 --scaling weak
    delegraph bench graph.dg --ablation
    delegraph bench graph.dg --algorithm pagerank
    delegraph bench kronecker:12 --algorithm sssp
    delegraph bench graph.dg --algorithm components --workers 4 --scaling strong

    The protocol is Graph500's: every source has an edge. GTEPS are the input rows of the searched
    component divided by the time of the search, in 10^9 rows a second. The mean of rates is
    harmonic.

    With workers, each worker holds a share of the graph in memory. A store needs at least as many
    partitions as there are workers. A generated graph needs a GPU for each worker.

    --algorithm measures another question, from the loaded graph to the arrays of a result, and
    validates the last run. Each run of sssp has another random source (generated graphs get weights
    from 1 to 255). Each run of betweenness has 4 sources; of closeness, harmonic and eccentricity,
    64. The command prints seconds (for pagerank also those of an iteration) and EVPS: vertices and
    edges divided by seconds, as LDBC Graphalytics defines it. With workers, a first run of each
    number of workers does not count.

    --ablation measures a search by masked products on the CPU: without optimizations, with one more
    in each row, and with all but one. One row has the search of bfs.
    """
    from ...partition.errors import InputError
    from ...pipeline import api
    from ...pipeline.reports import bench as texts

    values: dict[str, Any] = {
        "device": device,
        "device_memory_limit": device_memory_limit,
        "memory_limit": memory_limit,
        "strategy": strategy,
        "workers": workers,
        "scheduler": scheduler,
        "scheduler_file": scheduler_file,
        "timeout": timeout,
        "scaling": scaling,
        "layout": layout,
        "grid": grid,
        "threshold": threshold,
        "ablation": ablation,
    }

    def refuse(names: Iterable[str], why: str) -> None:
        """why: with {} for the option."""
        for name in given({name: values[name] for name in names}):
            raise InputError(why.format(f"--{name.replace('_', '-')}"))

    measure: Callable[..., Any]
    text: Callable[[Any], str]
    names: Iterable[str]
    typed: Iterable[str] = ()
    by_workers = bool(workers or scheduler or scheduler_file)
    if algorithm is not None:
        why = f"--algorithm {algorithm} uses a store as it was built: leave out {{}}"
        refuse((*_SHAPE, "strategy", "ablation"), why)
        if by_workers:
            measure, text, names = api.bench_algorithm_across, texts.algorithms_text, _ON_WORKERS
        else:
            refuse(("scaling", "timeout"), _ONLY_BY_WORKERS)
            measure, text, names = api.bench_algorithm, texts.algorithm_text, _LIMITS
        measure = partial(measure, algorithm=algorithm, runs=sources or 16)
    else:
        if ablation:
            fine = ("ablation", "device") if device in ("auto", "cpu") else ("ablation",)
            why = "--ablation searches in memory on the CPU: leave out {}"
            refuse([name for name in values if name not in fine], why)
            measure, text, names = api.bench_ablation, texts.ablation_text, ()
        elif by_workers:
            refuse(["strategy"], "--strategy is only for searches on one GPU: leave out {}")
            measure, text, names = api.bench_across, texts.searches_by_ranks_text, _ON_WORKERS
            typed = _SHAPE
        else:
            refuse(("scaling", *_SHAPE, "timeout", "memory_limit"), _ONLY_BY_WORKERS)
            measure, text = api.bench, texts.searches_text
            names = "device", "device_memory_limit", "strategy"
        measure = partial(measure, sources=sources or 64)
    options = {name: values[name] for name in names}
    options |= given({name: values[name] for name in typed})
    with shown(quiet) as progress:
        measured = measure(graph, seed=seed, threads=threads, progress=progress, **options)
    rows: list[Any] = measured if by_workers else []
    for row in rows:
        for note in row.notes:
            talk(quiet, note)
    if as_json:
        print_json([row.document() for row in rows] if by_workers else measured)
        return
    click.echo(text(measured))
