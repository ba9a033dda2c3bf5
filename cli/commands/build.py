"""``delegraph build``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..progress import shown


@options.command()
@click.argument("edges", type=click.Path())
@options.output
@options.build_options
@options.weight_options
@options.memory_limit
@options.cluster_options
@options.device
@options.device_memory_limit
@options.threads
@options.scratch
@options.restart
@options.overwrite
@options.as_json
@options.quiet
@options.debug
def build(
    edges: str,
    output: str,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Build the store OUTPUT, a prepared graph, from the Parquet edge list EDGES.

    EDGES is a Parquet file, a folder of Parquet files or a glob. It may be an s3://, gs:// or
    abfs:// URL. OUTPUT is a folder on a disk of this machine. Edges are undirected unless
    --directed is given.

    \b
    delegraph build edges/ -o graph.dg
    delegraph build 'part-*.parquet' -o web.dg --directed --src from --dst to
    delegraph build edges/ -o graph.dg --memory-limit 4GB --workers 4
    delegraph build roads/ -o roads.dg --weight metres
    delegraph build s3://bucket/edges -o graph.dg
    delegraph build edges/ -o grid.dg --partitions 8 --layout 2d --grid 2x4
    delegraph build edges/ -o graph.dg --partitions 4 --device cuda --workers 4

    A build stays within the memory limit. Data that does not fit goes through scratch files.
    'delegraph plan' estimates the memory of each step beforehand. If a build is interrupted, the
    same command continues it after the last finished step.

    With --device cuda a GPU counts and sorts the edges; with --workers or --scheduler each worker
    process uses one GPU. The store is the same. If the edges do not fit GPU memory, the CPU builds
    the store. An interrupted build on GPUs keeps only the numbering of the ids.
    """
    from ...pipeline.api import build
    from ...pipeline.reports.report import lines, store_document

    with shown(quiet) as progress:
        built = build(
            edges,
            output,
            overwrite=overwrite,
            progress=progress,
            **values,
        )
    for note in built.notes:
        options.talk(quiet, note)
    options.tell_reused(quiet, built.reused)
    options.talk(quiet, f"{output}: {'already built' if built.already else 'written'}")
    document = store_document(built.store)
    if as_json:
        options.print_json({**document, "already": built.already, "notes": list(built.notes)})
    else:
        click.echo(lines(document))
