"""``delegraph report``."""

from __future__ import annotations

import click

from .. import options
from ..command import command
from ..talk import talk


@command()
@click.argument("path", type=click.Path())
@click.option(
    "--graph",
    type=click.Path(),
    help="Of a result: the store or the edge list that it is of. The page then shows a part of the "
    "graph: around the sources of a search, or around the vertices at the top.",
)
@options.ends
@click.option(
    "--weight", metavar="COL", help="Column of weights of an edge list, if the result goes by them."
)
@options.output
@options.overwrite
@options.quiet
@options.debug
def report(
    path: str,
    graph: str | None,
    src: str,
    dst: str,
    weight: str | None,
    output: str,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Draw a store, a result, a batch or a bench as an HTML page.

    PATH is a store, a result, the job file of a batch, or a file with the output of 'bench --json'.

    \b
    delegraph report graph.dg -o graph.html
    delegraph report distances/ -o distances.html
    delegraph report distances/ -o around.html --graph edges/
    delegraph report nightly.toml -o nightly.html
    delegraph bench graph.dg --json > bench.json
    delegraph report bench.json -o bench.html

    The page is one file that loads nothing else. Its facts come from PATH and from the run record
    beside it (for a batch, its ledger). If a fact is in neither, the page says so.
    """
    from ...pipeline.api import report

    report(path, output, overwrite, graph=graph, src=src, dst=dst, weight=weight)
    talk(quiet, f"{output}: written")
