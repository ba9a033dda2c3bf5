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
    """Write an HTML page about PATH.

    PATH is a store, a result, the job file of a batch, or a file with the output of bench --json.

    \b
    delegraph report graph.dg -o graph.html
    delegraph report distances/ -o distances.html
    delegraph report nightly.toml -o nightly.html
    delegraph bench graph.dg --json > bench.json
    delegraph report bench.json -o bench.html

    The page is one file and loads nothing from the network. Its facts come from PATH and from the
    run record beside PATH (of a batch, from the ledger). The page lists the facts that are missing
    there.
    """
    from ...pipeline.api import report

    report(path, output, overwrite)
    options.talk(quiet, f"{output}: written")
