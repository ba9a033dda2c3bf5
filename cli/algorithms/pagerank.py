"""``delegraph pagerank``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@click.option(
    "--damping",
    default=0.85,
    show_default=True,
    type=options.Number(),
    help="How likely the walk follows an edge, rather than teleporting.",
)
@click.option(
    "--tolerance",
    default=1e-6,
    show_default=True,
    type=options.Number(),
    help="Stop once an iteration changes less in all (the sum over vertices, not its mean).",
)
@click.option(
    "--max-iterations",
    default=100,
    show_default=True,
    type=options.WholeNumber(min=1),
    help="Stop then all the same, and say so.",
)
@click.option(
    "--iterations",
    type=options.WholeNumber(min=1),
    help="Do exactly so many, whatever they change.",
)
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="Teleport to these vertices only: columns vertex and, unless all are alike, weight.",
)
@click.option(
    "--dangling",
    type=click.Choice(["even", "none"]),
    default="even",
    show_default=True,
    help="What vertices hold that no edge leaves: spread as the walk teleports, or dropped.",
)
@click.option("--unweighted", is_flag=True, help="Edges count alike, even where they have weights.")
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="single: 32-bit ranks, off by 1e-6 at most, relatively; faster on GPUs.",
)
@options.weight_options
@click.option("--strict", is_flag=True, help="Exit with 1 if it has not converged.")
def pagerank(graph: str, output: str, strict: bool, **values: Any) -> None:
    """PageRank of GRAPH, a store or a Parquet edge list, here or at s3://...

    Writes the folder OUTPUT with vertex and pagerank of every vertex, which add up to 1, and the
    run's record beside it, OUTPUT.run.json. Edges count once, whatever their rows; in an undirected
    graph they lead both ways. Where the graph has weights, an edge is as likely as its weight says.

    \b
    delegraph pagerank graph.dg -o ranks/
    delegraph pagerank edges/ -o ranks/ --directed --tolerance 1e-8
    delegraph pagerank graph.dg -o ranks/ --iterations 20
    delegraph pagerank edges/ -o ranks/ --weight amount --duplicates sum

    Personalised ranks are those of NetworkX, whose tolerance is this one's, for each vertex.
    """
    from ...pipeline.api import pagerank

    typed = options.given(values)
    if "iterations" in typed and {"tolerance", "max_iterations"} & typed.keys():
        raise click.UsageError("--iterations leaves no room for --tolerance and --max-iterations")

    def told(record: Any) -> str:
        found = record["pagerank"]
        number = found["iterations"]
        done = f"{number} iteration{'s'[: number > 1]}, the last one changed {found['change']:.1e}"
        return f"{done}: not converged" if found["converged"] is False else done

    record = run_and_tell(pagerank, told, graph, output, **values)
    if strict and record["pagerank"]["converged"] is False:
        sys.exit(1)
