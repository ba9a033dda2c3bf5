"""``delegraph bench``."""

from __future__ import annotations

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
    from 1 to 255). Each run of betweenness has 4 sources; of closeness and eccentricity, 64. The
    command prints seconds (for pagerank also those of an iteration) and EVPS: vertices and edges
    divided by seconds, as LDBC Graphalytics defines it. With workers, a first run of each number of
    workers does not count.

    --ablation measures a search by masked products on the CPU: without optimizations, with one more
    in each row, and with all but one. One row has the search of bfs.
    """
    from ...partition.errors import InputError
    from ...pipeline.api import (
        bench,
        bench_ablation,
        bench_across,
        bench_algorithm,
        bench_algorithm_across,
    )
    from ...pipeline.reports.bench import (
        ablation_table,
        algorithm_scaling_table,
        algorithm_table,
        exchanged_line,
        quartiles_table,
        scaling_table,
        where,
        where_of_all,
    )

    def refuse(values: dict[str, object], why: str) -> None:
        for name in given(values):
            raise InputError(f"{why}: leave out --{name.replace('_', '-')}")

    across = {
        "workers": workers,
        "scheduler": scheduler,
        "scheduler_file": scheduler_file,
        "timeout": timeout,
        "scaling": scaling,
        "layout": layout,
        "grid": grid,
        "threshold": threshold,
        "strategy": strategy,
    }
    by_workers = bool(workers or scheduler or scheduler_file)
    on_workers: Any = {
        "scaling": scaling,
        "seed": seed,
        "timeout": timeout,
        "threads": threads,
        "memory_limit": memory_limit,
        "device": device,
        "device_memory_limit": device_memory_limit,
        "workers": workers,
        "scheduler": scheduler,
        "scheduler_file": scheduler_file,
    }
    if algorithm is not None:
        others = ("layout", "grid", "threshold", "strategy")
        refuse(
            {**{name: across[name] for name in others}, "ablation": ablation},
            f"--algorithm {algorithm} uses a store as it was built",
        )
    if algorithm is not None and by_workers:
        with shown(quiet) as progress:
            measured = bench_algorithm_across(
                graph,
                algorithm,
                runs=sources or 16,
                progress=progress,
                **on_workers,
            )
        for note in (note for row in measured for note in row.notes):
            talk(quiet, note)
        if as_json:
            print_json([row.document() for row in measured])
            return
        last = measured[-1].report
        told = f"{last['runs']} runs of {algorithm} each, last results valid, {last['method']}"
        click.echo(f"{told}, on {where_of_all(last)}")
        click.echo(algorithm_scaling_table(measured))
        return
    if algorithm is not None:
        for name in given({"scaling": scaling, "timeout": timeout}):
            raise InputError(f"--{name} is only for several worker processes: give --workers too")
        with shown(quiet) as progress:
            found = bench_algorithm(
                graph,
                algorithm,
                runs=sources or 16,
                seed=seed,
                device=device,
                memory_limit=memory_limit,
                device_memory_limit=device_memory_limit,
                threads=threads,
                progress=progress,
            )
        if as_json:
            print_json(found)
            return
        click.echo(algorithm_table(found))
        return
    sources = sources or 64
    if ablation:
        values = {
            **across,
            "device_memory_limit": device_memory_limit,
            "memory_limit": memory_limit,
        }
        if device not in ("auto", "cpu"):
            values["device"] = device
        refuse(values, "--ablation searches in memory on the CPU")
        with shown(quiet) as progress:
            figures = bench_ablation(
                graph, sources=sources, seed=seed, threads=threads, progress=progress
            )
        if as_json:
            print_json(figures)
            return
        count, cores = len(figures["sources"]), figures["threads"]
        click.echo(
            f"{count} searches in each way, all valid, on {cores} threads of the CPU; medians"
        )
        click.echo(ablation_table(figures))
        return
    if by_workers:
        if given({"strategy": strategy}):
            raise InputError("--strategy is only for searches on one GPU: leave out --strategy")
        shape = {"layout": layout, "grid": grid, "threshold": threshold}
        with shown(quiet) as progress:
            rows = bench_across(
                graph,
                sources=sources,
                progress=progress,
                **on_workers,
                **given(shape),
            )
        for note in (note for row in rows for note in row.notes):
            talk(quiet, note)
        if as_json:
            print_json([row.document() for row in rows])
            return
        report, exchanged = rows[-1].report, rows[-1].exchanged
        click.echo(f"{len(report['sources'])} searches each, all valid, on {where_of_all(report)}")
        click.echo(scaling_table(rows))
        if exchanged is not None:
            click.echo(exchanged_line(exchanged))
        return
    values = {
        "scaling": scaling,
        "layout": layout,
        "grid": grid,
        "threshold": threshold,
        "timeout": timeout,
        "memory_limit": memory_limit,
    }
    for name in given(values):
        option = name.replace("_", "-")
        raise InputError(f"--{option} is only for several worker processes: give --workers too")
    with shown(quiet) as progress:
        report = bench(
            graph,
            sources=sources,
            seed=seed,
            device=device,
            device_memory_limit=device_memory_limit,
            strategy=strategy,
            threads=threads,
            progress=progress,
        )
    if as_json:
        print_json(report)
        return
    click.echo(
        f"{len(report['sources'])} searches, all valid; {report['gteps_harmonic_mean']:.3f} GTEPS "
        f"(harmonic mean), on {where(report)}"
        f"{', over slices' if report['method'] == 'slices' else ''}"
    )
    rows = [
        ("search, ms", report["search_seconds"], 1e3),
        ("GTEPS", report["gteps"], 1.0),
        ("depth", report["depth"], 1.0),
    ]
    click.echo(quartiles_table(rows))
    built = report["preparation_seconds"]
    click.echo(
        f"preparation {'unknown' if built is None else f'{built:.3f} s'}, "
        f"load {report['load_seconds']:.3f} s, compile {report['compile_seconds']:.3f} s"
    )
