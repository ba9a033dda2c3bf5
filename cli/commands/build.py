"""``delegraph build``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..command import command
from ..progress import shown
from ..talk import print_json, talk, tell_reused


@command("Temporary stores")
@click.argument("edges", type=click.Path())
@options.output
@options.build_options
@options.weight_options
@options.loops
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
    """Prepare an edge list as a store, to ask it many questions.

    EDGES is a Parquet file, a folder of them, a glob, or a URL (s3://, gs://, abfs://). The store
    OUTPUT is a folder on a disk of this machine.

    \b
    delegraph build edges/ -o graph.dg
    delegraph build 'part-*.parquet' -o web.dg --directed --src from --dst to
    delegraph build edges/ -o graph.dg --memory-limit 4GB --workers 4
    delegraph build roads/ -o roads.dg --weight metres
    delegraph build s3://bucket/edges -o graph.dg
    delegraph build edges/ -o grid.dg --partitions 8 --layout 2d --grid 2x4
    delegraph build edges/ -o graph.dg --partitions 4 --device cuda --workers 4

    A build keeps within the memory limit: edges that do not fit go through scratch files.
    'delegraph plan' shows beforehand what each step holds. The same command resumes an interrupted
    build after its last finished step. The store's bytes do not depend on memory, threads or
    workers.

    A GPU counts, sorts and arranges the edges, if one is usable or --device cuda asks for it. With
    workers, each worker uses one GPU. If the edges do not fit in the GPUs' memory, the CPU builds
    the store. An interrupted build on GPUs keeps only the numbering of ids.
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
        talk(quiet, note)
    tell_reused(quiet, built.reused)
    talk(quiet, f"{output}: {'already built' if built.already else 'written'}")
    document = store_document(built.store)
    if as_json:
        print_json({**document, "already": built.already, "notes": list(built.notes)})
    else:
        click.echo(lines(document))
