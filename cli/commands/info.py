"""``delegraph info``."""

from __future__ import annotations

import click

from .. import options
from ..command import command
from ..numbers import WholeNumber
from ..talk import bar_mark, print_json, talk


@command()
@click.argument("path", type=click.Path())
@options.ends
@click.option(
    "--ranks",
    type=WholeNumber(min=1),
    help="For a store: show also what this many workers would each hold and send.",
)
@options.as_json
@options.debug
def info(path: str, src: str, dst: str, ranks: int | None, as_json: bool) -> None:
    """Describe an edge list, a store or a result.

    PATH of an edge list or a result may be a URL (s3://, gs://, abfs://).

    \b
    delegraph info edges/
    delegraph info graph.dg --json
    delegraph info graph.dg --ranks 4
    delegraph info distances/
    """
    from ...pipeline.reports.report import describe, lines

    document = describe(path, src, dst, ranks)
    for note in document.get("notes", ()):
        talk(False, note)
    if as_json:
        print_json(document)
    else:
        click.echo(lines(document, bar_mark()))
