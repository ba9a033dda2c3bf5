"""``delegraph pagerank``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@click.option(
    "--damping",
    default=0.85,
    show_default=True,
    type=options.Number(),
    help="Probability that the random walk follows an edge; otherwise it jumps to some vertex.",
)
@click.option(
    "--tolerance",
    default=1e-6,
    show_default=True,
    type=options.Number(),
    help="Stop when an iteration changes less than this, summed over all vertices.",
)
@click.option(
    "--max-iterations",
    default=100,
    show_default=True,
    type=options.WholeNumber(min=1),
    help="Stop after this many iterations, even if the tolerance is not met.",
)
@click.option(
    "--iterations",
    type=options.WholeNumber(min=1),
    help="Run exactly this many iterations.",
)
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="Jump to these vertices only: a file with a column vertex and, optionally, weight.",
)
@click.option(
    "--dangling",
    type=click.Choice(["even", "none"]),
    default="even",
    show_default=True,
    help="What becomes of the scores of vertices that no edge leaves: even (they are spread as "
    "jumps are) or none (they are dropped).",
)
@click.option("--unweighted", is_flag=True, help="Ignore the weights of the graph.")
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="single: 32-bit values with a relative error of at most 1e-6, faster on GPUs.",
)
@options.weight_options
@click.option("--strict", is_flag=True, help="Exit with 1 if the run has not converged.")
@options.running
@options.device_if_named
@options.device_memory_limit
def pagerank(graph: str, output: str, strict: bool, **values: Any) -> None:
    """Compute PageRank. The scores add up to 1, unless --dangling none drops some.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph pagerank graph.dg -o ranks/
    delegraph pagerank edges/ -o ranks/ --directed --tolerance 1e-8
    delegraph pagerank graph.dg -o ranks/ --iterations 20
    delegraph pagerank edges/ -o ranks/ --weight amount --duplicates sum

    OUTPUT has the columns vertex and pagerank. Self-loops are left out, and rows that repeat an
    edge count once. If the graph has weights, the random walk follows an edge with a
    probability in proportion to its weight. The run record stands beside OUTPUT: OUTPUT.run.json.

    A run that does not converge writes its result, says so, and exits with 0, or with 1 if --strict
    is given. NetworkX multiplies its tolerance by the number of vertices.
    """
    from ...pipeline.api import pagerank

    typed = options.given(values)
    if "iterations" in typed and {"tolerance", "max_iterations"} & typed.keys():
        raise click.UsageError(
            "--iterations cannot be combined with --tolerance or --max-iterations"
        )

    def told(record: Any) -> str:
        found = record["pagerank"]
        number = found["iterations"]
        done = f"{number} iteration{'s'[: number > 1]}, the last one changed {found['change']:.1e}"
        return f"{done}: not converged" if found["converged"] is False else done

    record = run_and_tell(pagerank, told, graph, output, **values)
    if strict and record["pagerank"]["converged"] is False:
        sys.exit(1)
