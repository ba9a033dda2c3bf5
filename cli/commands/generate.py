"""``delegraph generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...partition.numbers import GREATEST_SEED
from .. import options
from ..command import Group
from ..numbers import Number, WholeNumber
from ..progress import shown
from ..talk import print_json, talk

if TYPE_CHECKING:
    from ...pipeline.build.generate import Kind


@click.group(cls=Group)
def generate() -> None:
    """Generate a synthetic edge list, as a folder of Parquet files.

    The rows depend on the options only, not on threads or files.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    delegraph generate grid --height 300 --width 300 --drop 0.2 -o road/
    delegraph generate blocks --vertices 10000 --blocks 50 --mixing 0.3 -o groups/
    """


_HOW = ("threads",)  # options that do not change the rows

_seed = click.option(
    "--seed",
    type=WholeNumber(min=0, limit=GREATEST_SEED),
    default=1,
    show_default=True,
    help="Seed of the random numbers.",
)
_scale = click.option(
    "--scale",
    type=WholeNumber(),
    required=True,
    help="Binary logarithm of the number of vertices: 2^SCALE.",
)
_weighted = click.option(
    "--weighted",
    is_flag=True,
    help="Add a column weight: integers from 1 to 255, one for each pair of vertices.",
)
_edge_factor = click.option(
    "--edge-factor",
    type=WholeNumber(),
    default=16,
    show_default=True,
    help="Number of rows for each vertex.",
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
    """Generate Graph500's Kronecker graph: a few vertices have very many edges.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    """
    _write("kronecker", **values)


@generate.command()
@_scale
@_edge_factor
@_shared
def uniform(**values: Any) -> None:
    """Generate a uniform random graph: all vertices have about the same number of edges.

    \b
    delegraph generate uniform --scale 16 --edge-factor 8 -o edges/
    """
    _write("uniform", **values)


@generate.command()
@click.option("--height", type=WholeNumber(), required=True, help="Number of rows of the grid.")
@click.option(
    "--width",
    type=WholeNumber(),
    required=True,
    help="Number of vertices in a row of the grid.",
)
@click.option(
    "--drop",
    type=Number(),
    default=0.0,
    show_default=True,
    help="Share of edges to remove, from 0 to 1.",
)
@_shared
def grid(**values: Any) -> None:
    """Generate a grid of vertices joined to their neighbours, with long paths like a road network.

    \b
    delegraph generate grid --height 300 --width 300 --drop 0.2 -o road/
    """
    _write("grid", **values)


@generate.command()
@click.option("--vertices", type=WholeNumber(), required=True, help="Number of vertices.")
@click.option("--blocks", type=WholeNumber(), required=True, help="Number of blocks.")
@click.option(
    "--degree",
    type=WholeNumber(),
    default=16,
    show_default=True,
    help="Mean number of rows that touch a vertex.",
)
@click.option(
    "--mixing",
    type=Number(),
    required=True,
    help="Share of edges that lead to another block, from 0 to 1.",
)
@click.option(
    "--sizes",
    type=click.Choice(["equal", "zipf"]),
    default="equal",
    show_default=True,
    help="Sizes of blocks. zipf: the k-th block has about 1/k of the vertices of the first.",
)
@click.option(
    "--truth",
    is_flag=True,
    help="Write the block of each vertex instead of the edges: columns vertex and block.",
)
@_shared
def blocks(**values: Any) -> None:
    """Generate a planted partition: blocks of vertices with many edges inside.

    It tests whether communities are found. Each row joins a random vertex to one in the
    same block, or, for the share --mixing of rows, to one in another block (stochastic block
    model). There are no self-loops. Rows may repeat an edge. Ids tell nothing of blocks.

    The same options with --truth write a table of all vertices and their blocks instead. Blocks are
    numbered from 0, the largest first.

    \b
    delegraph generate blocks --vertices 10000 --blocks 50 --mixing 0.3 -o groups/
    delegraph generate blocks --vertices 10000 --blocks 50 --mixing 0.3 --truth -o truth/
    """
    _write("blocks", **values)


def _write(
    kind: Kind, as_json: bool, quiet: bool, output: str, overwrite: bool, **values: Any
) -> None:
    from ...pipeline.build.generate import Recipe, rows_there
    from ...pipeline.edge_lists import generate

    recipe = {name: value for name, value in values.items() if name not in _HOW}
    rows = None if overwrite else rows_there(Recipe(kind, **recipe), output)
    already = rows is not None
    if rows is None:
        with shown(quiet) as progress:
            rows = generate(kind, output, overwrite=overwrite, progress=progress, **values)
    if as_json:
        told = {"kind": kind, **recipe, "output": output, "rows": rows, "already": already}
        print_json(told)
        return
    click.echo(f"{output}: {rows:,} rows")
    if already:
        talk(quiet, f"{output}: already generated")
