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
    """Prepare EDGES (a Parquet file, a folder of them or a glob) as the store OUTPUT.

    EDGES may stand in an object store, at s3://, gs:// or abfs://; a store stands on a disk of this
    machine.

    \b
    delegraph build edges/ -o graph.dg
    delegraph build 'part-*.parquet' -o web.dg --directed --src from --dst to
    delegraph build edges/ -o graph.dg --memory-limit 4GB --workers 4
    delegraph build roads/ -o roads.dg --weight metres
    delegraph build s3://bucket/edges -o graph.dg
    delegraph build edges/ -o grid.dg --partitions 8 --layout 2d --grid 2x4
    delegraph build edges/ -o graph.dg --partitions 4 --device cuda --workers 4

    Keeps within the memory limit: what does not fit goes through scratch files. 'delegraph plan'
    says beforehand what each step will hold. A build that was cut off goes on after its last
    finished step when the same command runs again.

    With --device cuda the edges are counted, sorted and cut into rows on a GPU, with --workers or
    --scheduler on one GPU of each worker; the store is the same. Edges that do not fit the GPUs'
    memory are built on the CPU, as ever. Of a build on GPUs that was cut off, only the numbering
    of ids is kept.
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
