"""``delegraph build``."""

from __future__ import annotations

from typing import Any

import click

from . import options


@click.command()
@click.argument("edges", type=click.Path())
@options.output
@options.build_options
@options.threads
@options.overwrite
@options.as_json
@options.quiet
@options.debug
def build(
    edges: str,
    output: str,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **build_values: Any,
) -> None:
    """Prepare EDGES (a Parquet file, a folder of them or a glob) as the store OUTPUT.

    \b
    delegraph build edges/ -o graph.dg
    delegraph build 'part-*.parquet' -o web.dg --directed --src from --dst to
    """
    from ..pipeline.api import build
    from ..pipeline.report import lines, store_document

    with options.ProgressLine(quiet) as progress:
        store = build(
            edges,
            output,
            threads=threads,
            overwrite=overwrite,
            progress=progress,
            **build_values,
        )
    options.talk(quiet, f"{output}: written")
    document = store_document(store)
    if as_json:
        options.print_json(document)
    else:
        click.echo(lines(document))
