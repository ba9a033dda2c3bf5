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
    help="Probability that the random walk follows an edge instead of jumping; at least 0, less "
    "than 1.",
)
@click.option(
    "--tolerance",
    default=1e-6,
    show_default=True,
    type=options.Number(),
    help="Stop when the absolute changes of all scores in an iteration add up to less than this.",
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
    help="Run exactly this many iterations. Excludes --tolerance and --max-iterations.",
)
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="File of the vertices that the walk jumps to, with a column vertex and, if they are not "
    "equally likely, a column weight.  [default: all vertices, equally likely]",
)
@click.option(
    "--dangling",
    type=click.Choice(["even", "none"]),
    default="even",
    show_default=True,
    help="Treatment of the scores of vertices that no edge leaves. even: the scores are spread "
    "over the vertices that the walk jumps to; none: they are dropped.",
)
@click.option("--unweighted", is_flag=True, help="Ignore the weights of the graph.")
@click.option(
    "--precision",
    type=click.Choice(["double", "single"]),
    default="double",
    show_default=True,
    help="Precision of the scores. single: 32-bit scores, with a relative error of at most 1e-6; "
    "faster on GPUs.",
)
@options.weight_options
@click.option("--strict", is_flag=True, help="Exit with 1 if the scores have not converged.")
def pagerank(graph: str, output: str, strict: bool, **values: Any) -> None:
    """Compute the PageRank of every vertex of GRAPH.

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.
    Edges are undirected unless --directed is given; an undirected edge leads both ways.

    The result OUTPUT has the columns vertex and pagerank, with a row for every vertex. The scores
    add up to 1, except with --dangling none. An edge that several rows name counts once. If the
    graph has weights, the walk follows an edge with a probability in proportion to its weight.
    OUTPUT.run.json records the run.

    \b
    delegraph pagerank graph.dg -o ranks/
    delegraph pagerank edges/ -o ranks/ --directed --tolerance 1e-8
    delegraph pagerank graph.dg -o ranks/ --iterations 20
    delegraph pagerank edges/ -o ranks/ --weight amount --duplicates sum

    The scores with --personalize are those of NetworkX. The tol of NetworkX is for one vertex: for
    the same accuracy, give the number of vertices times tol as --tolerance.
    """
    from ...pipeline.api import pagerank

    typed = options.given(values)
    if "iterations" in typed and {"tolerance", "max_iterations"} & typed.keys():
        raise click.UsageError(
            "--iterations excludes --tolerance and --max-iterations: leave one of them out"
        )

    def told(record: Any) -> str:
        found = record["pagerank"]
        number = found["iterations"]
        done = f"{number} iteration{'s'[: number > 1]}, the last one changed {found['change']:.1e}"
        return f"{done}: not converged" if found["converged"] is False else done

    record = run_and_tell(pagerank, told, graph, output, **values)
    if strict and record["pagerank"]["converged"] is False:
        sys.exit(1)
