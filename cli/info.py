"""``delegraph info``."""

from __future__ import annotations

import click

from . import options


@click.command()
@click.argument("path", type=click.Path())
@click.option("--src", default="src", show_default=True, help="Column of sources, of an edge list.")
@click.option("--dst", default="dst", show_default=True, help="Column of targets, of an edge list.")
@options.as_json
@options.debug
def info(path: str, src: str, dst: str, as_json: bool) -> None:
    """Describe PATH: an edge list, a store or a result.

    \b
    delegraph info edges/
    delegraph info graph.dg --json
    delegraph info distances/
    """
    from ..pipeline.report import describe, lines

    document = describe(path, src, dst)
    if as_json:
        options.print_json(document)
    else:
        click.echo(lines(document))
