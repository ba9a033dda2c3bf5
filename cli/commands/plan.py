"""``delegraph plan``."""

from __future__ import annotations

from typing import Any

import click

from ...pipeline.questions import FORMS
from .. import options
from ..command import command
from ..progress import shown
from ..talk import given, print_json, talk


@command("Temporary stores")
@click.argument("edges", type=click.Path())
@options.device
@options.device_memory_limit
@options.memory_limit
@click.option(
    "--exact",
    is_flag=True,
    help="Read and count the edges first, and plan exactly what build will run.",
)
@options.cluster_options
@options.build_options
@options.weight_options
@options.loops
@options.threads
@options.scratch
@click.option(
    "--algorithm",
    type=click.Choice(list(FORMS)),
    default="bfs",
    show_default=True,
    help="Question to plan for a store. bfs-each is bfs --sources, bfs-together is bfs --sources "
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
    """Show how much memory and disk a command would need. Nothing is written.

    For an edge list: each step of a build. For a store: a search, or another --algorithm with its
    default options. EDGES is an edge list or a store; an edge list may be a URL (s3://, gs://,
    abfs://).

    \b
    delegraph plan edges/ --memory-limit 1GB
    delegraph plan edges/ --memory-limit 1GB --exact --json
    delegraph plan graph.dg --memory-limit 512MB
    delegraph plan graph.dg --device cuda
    delegraph plan graph.dg --workers 4

    Figures for an edge list are upper bounds from the files' metadata; --exact reads and counts the
    edges. If no plan fits the limit, the command exits with 2 and names the least limit that
    suffices.

    For a store with workers, the plan has a task for each worker. Every task counts as much as the
    task of the worker that holds most.
    """
    from ...pipeline.api import plan
    from ...pipeline.reports.report import lines, plan_document

    with shown(quiet) as progress:
        found = plan(
            edges,
            exact=exact,
            progress=progress,
            **given(values),
        )
    for note in found.notes:
        talk(quiet, note)
    document = plan_document(found)
    if as_json:
        print_json(document)
    else:
        click.echo(lines(document))
