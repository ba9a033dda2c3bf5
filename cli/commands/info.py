"""``delegraph info``."""

from __future__ import annotations

import click

from .. import options


@options.command()
@click.argument("path", type=click.Path())
@click.option(
    "--src",
    metavar="COL",
    default="src",
    show_default=True,
    help="Column of an edge list that an edge leads from.",
)
@click.option(
    "--dst",
    metavar="COL",
    default="dst",
    show_default=True,
    help="Column of an edge list that an edge leads to.",
)
@click.option(
    "--ranks",
    type=options.WholeNumber(min=1),
    help="Number of worker processes (ranks): show how many bytes of a store each of them would "
    "hold and send.",
)
@options.as_json
@options.debug
def info(path: str, src: str, dst: str, ranks: int | None, as_json: bool) -> None:
    """Describe PATH: an edge list, a store or a result.

    An edge list or a result may be an s3://, gs:// or abfs:// URL.

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
