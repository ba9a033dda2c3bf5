"""``delegraph info``."""

from __future__ import annotations

import click

from .. import options


@options.command()
@click.argument("path", type=click.Path())
@click.option("--src", default="src", show_default=True, help="Column of sources, of an edge list.")
@click.option("--dst", default="dst", show_default=True, help="Column of targets, of an edge list.")
@click.option(
    "--ranks",
    type=options.WholeNumber(min=1),
    help="Of a store: what so many workers would hold each, and send each other.",
)
@options.as_json
@options.debug
def info(path: str, src: str, dst: str, ranks: int | None, as_json: bool) -> None:
    """Describe PATH: an edge list, a store or a result, here or, but for stores, at s3://...

    \b
    delegraph info edges/
    delegraph info graph.dg --json
    delegraph info graph.dg --ranks 4
    delegraph info distances/
    """
    from ...pipeline.reports.report import describe, lines

    document = describe(path, src, dst, ranks)
    for note in document.get("notes", ()):
        options.talk(False, note)
    if as_json:
        options.print_json(document)
    else:
        click.echo(lines(document))
