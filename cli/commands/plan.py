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
@click.option(
    "--exact",
    is_flag=True,
    help="Read and count the edges first, to plan exactly the build that will run.",
)
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
    help="Question to plan on a store. bfs-each: bfs --sources; bfs-together: bfs --sources "
    "--together.",
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
    """Estimate the memory and the disk space of a build, or of a question, step by step.

    If EDGES is a Parquet edge list, the command plans 'delegraph build'. If EDGES is a store, the
    command plans bfs, or another --algorithm with its default options. An edge list may be an
    s3://, gs:// or abfs:// URL.

    The plan of a build shows upper bounds, from the metadata of the files alone; it takes a moment.
    With --exact the command reads and counts the edges first. If the work does not fit the memory
    limit, the command fails with exit code 2 and names the least limit that is enough.

    \b
    delegraph plan edges/ --memory-limit 1GB
    delegraph plan edges/ --memory-limit 1GB --exact --json
    delegraph plan graph.dg --memory-limit 512MB
    delegraph plan graph.dg --device cuda
    delegraph plan graph.dg --workers 4

    For a store with --workers the plan shows the search alone. It has one task for each worker
    process, with the memory of the process that holds the most.
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
