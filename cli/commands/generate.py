"""``delegraph generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..progress import shown

if TYPE_CHECKING:
    from ...pipeline.build.generate import Kind


@click.group(cls=options.Group)
def generate() -> None:
    """Generate a synthetic edge list as a folder of Parquet files.

    The same options always give the same rows, with any number of threads.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    delegraph generate grid --height 300 --width 300 --drop 0.2 -o road/
    """


_HOW = ("threads",)  # options that do not change the rows

_seed = click.option(
    "--seed",
    type=options.WholeNumber(min=0, limit=options.GREATEST_SEED),
    default=1,
    show_default=True,
    help="Seed of the random generator.",
)
_scale = click.option(
    "--scale",
    type=options.WholeNumber(),
    required=True,
    help="Binary logarithm of the number of vertices: 2^SCALE vertices.",
)
_weighted = click.option(
    "--weighted",
    is_flag=True,
    help="Add a column weight: integers from 1 to 255. Rows that name the same two vertices have "
    "the same weight.",
)
_edge_factor = click.option(
    "--edge-factor",
    type=options.WholeNumber(),
    default=16,
    show_default=True,
    help="Number of rows per vertex.",
)


def _shared(command: Any) -> Any:
    for option in (
        options.debug,
        options.quiet,
        options.as_json,
        options.overwrite,
        options.threads,
        options.output,
        _weighted,
        _seed,
    ):
        command = option(command)
    return command


@generate.command()
@_scale
@_edge_factor
@_shared
def kronecker(**values: Any) -> None:
    """Generate Graph500's Kronecker graph, which has hubs and about 7 levels.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    """
    _write("kronecker", **values)


@generate.command()
@_scale
@_edge_factor
@_shared
def uniform(**values: Any) -> None:
    """Generate a uniform random graph, where all vertices have similar degrees.

    \b
    delegraph generate uniform --scale 16 --edge-factor 8 -o edges/
    """
    _write("uniform", **values)


@generate.command()
@click.option(
    "--height", type=options.WholeNumber(), required=True, help="Number of rows of cells."
)
@click.option(
    "--width", type=options.WholeNumber(), required=True, help="Number of cells in a row."
)
@click.option(
    "--drop",
    type=options.Number(),
    default=0.0,
    show_default=True,
    help="Share of the edges to remove, at least 0 and less than 1.",
)
@_shared
def grid(**values: Any) -> None:
    """Generate a grid of cells, which has many levels, as a road network has.

    \b
    delegraph generate grid --height 300 --width 300 --drop 0.2 -o road/
    """
    _write("grid", **values)


def _write(
    kind: Kind, as_json: bool, quiet: bool, output: str, overwrite: bool, **values: Any
) -> None:
    from ...pipeline.api import generate
    from ...pipeline.build.generate import Recipe, rows_there

    recipe = {name: value for name, value in values.items() if name not in _HOW}
    rows = None if overwrite else rows_there(Recipe(kind, **recipe), output)
    already = rows is not None
    if rows is None:
        with shown(quiet) as progress:
            rows = generate(kind, output, overwrite=overwrite, progress=progress, **values)
    if as_json:
        told = {"kind": kind, **recipe, "output": output, "rows": rows, "already": already}
        options.print_json(told)
        return
    click.echo(f"{output}: {rows:,} rows")
    if already:
        options.talk(quiet, f"{output}: already generated")
