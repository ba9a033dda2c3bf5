"""``delegraph plan``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..progress import shown


@options.command()
@click.argument("edges", type=click.Path())
@options.device
@options.device_memory_limit
@options.memory_limit
@click.option("--exact", is_flag=True, help="Count first, then plan exactly what build will run.")
@options.cluster_options
@options.build_options
@options.weight_options
@options.threads
@options.scratch
@click.option(
    "--algorithm",
    type=click.Choice(
        [
            *("bfs", "bfs-each", "bfs-together", "components", "pagerank", "sssp"),
            *("closeness", "eccentricity", "betweenness"),
        ]
    ),
    default="bfs",
    show_default=True,
    help="What would run over a store; bfs-each and bfs-together: bfs --sources.",
)
@options.as_json
@options.quiet
@options.debug
def plan(
    edges: str,
    exact: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Say what building EDGES would hold and write, step by step; of a store, what bfs would, or
    another --algorithm with its default options.

    From the input's metadata alone, in a moment: upper bounds. With --exact the edges are read
    and counted first. What does not fit is refused (exit 2), with the least limit that would do.
    EDGES may stand in an object store, as s3://bucket/edges.

    \b
    delegraph plan edges/ --memory-limit 1GB
    delegraph plan edges/ --memory-limit 1GB --exact --json
    delegraph plan graph.dg --memory-limit 512MB
    delegraph plan graph.dg --device cuda
    delegraph plan graph.dg --workers 4

    Of a store and workers: the search alone, a task for each worker, which counts as the one that
    holds most.
    """
    from ...pipeline.api import plan
    from ...pipeline.reports.report import lines, plan_document

    with shown(quiet) as progress:
        found = plan(
            edges,
            exact=exact,
            progress=progress,
            **options.given(values),
        )
    for note in found.notes:
        options.talk(quiet, note)
    document = plan_document(found)
    if as_json:
        options.print_json(document)
    else:
        click.echo(lines(document))
