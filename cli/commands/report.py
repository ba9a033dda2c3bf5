"""``delegraph report``."""

from __future__ import annotations

import click

from .. import options


@options.command()
@click.argument("path", type=click.Path())
@options.output
@options.overwrite
@options.quiet
@options.debug
def report(path: str, output: str, overwrite: bool, quiet: bool) -> None:
    """Write an HTML page about PATH: a store, a result, a batch, or what bench --json printed.

    \b
    delegraph report graph.dg -o graph.html
    delegraph report distances/ -o distances.html
    delegraph report nightly.toml -o nightly.html
    delegraph bench graph.dg --json > bench.json
    delegraph report bench.json -o bench.html

    The page is one file that loads nothing from anywhere. It takes what it tells from PATH and
    from the record beside it (of a batch, its ledger), and says what these do not hold.
    """
    from ...pipeline.api import report

    report(path, output, overwrite)
    options.talk(quiet, f"{output}: written")
