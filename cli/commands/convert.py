"""``delegraph convert``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..progress import shown


def _max_unpacked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ...partition.disk.memory import as_bytes
    from ...partition.errors import InputError

    try:
        as_bytes(None if value == "none" else value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None
    return value


@options.command()
@click.argument("input", type=click.Path())
@options.output
@click.option(
    "--from",
    "format",
    type=click.Choice(
        ["csv", "tsv", "snap", "mtx", "el", "wel", "sg", "wsg", "graphalytics", "metis"]
    ),
    metavar="FORMAT",
    help="Format of a graph file: csv, tsv, snap, mtx, el, wel, sg, wsg, graphalytics or metis.  "
    "[default: by its name]",
)
@click.option("--src", metavar="COL", help="Column of sources: a name, or a number from 1.")
@click.option("--dst", metavar="COL", help="Column of targets.")
@click.option(
    "--weight", metavar="COL", help="Column of weights.  [default: 'weight', if it has a header]"
)
@click.option(
    "--no-header", is_flag=True, help="The first line of CSV or TSV is an edge, names no columns."
)
@click.option(
    "--id-type",
    type=click.Choice(["auto", "int64", "uint64", "string"]),
    default="auto",
    show_default=True,
    help="Of ids in CSV, TSV or SNAP's text; auto: by the first 2 MiB. 007 is a string.",
)
@click.option(
    "--weight-type",
    type=click.Choice(["auto", "int64", "float64"]),
    default="auto",
    show_default=True,
    help="Of weights in text, unless its format says it; auto: by the first 2 MiB.",
)
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    callback=_max_unpacked,
    help="What a compressed file may unpack to, as 20GB, or none: any number of bytes.  "
    "[default: 256 MiB, or 200 times the file]",
)
@options.memory_limit
@options.threads
@options.overwrite
@options.as_json
@options.quiet
@options.debug
def convert(
    input: str, output: str, no_header: bool, as_json: bool, quiet: bool, **values: Any
) -> None:
    """Convert INPUT, a graph file of another program, to the Parquet edge list OUTPUT; or a store
    to SciPy's sparse matrix (.npz), or a result to LDBC Graphalytics' text (.txt).

    \b
    delegraph convert web.mtx.gz -o edges/
    delegraph convert links.csv -o edges/ --src from --dst to --weight metres
    delegraph convert soc.txt.zst -o edges/ --from snap --weight 3
    delegraph convert graph500-22.e -o edges/
    delegraph convert graph.dg -o graph.npz
    delegraph convert distances/ -o distances.txt

    \b
    .csv .tsv      columns by the names in the first line, or by number
    .txt .snap     SNAP: columns between blanks, comments after #
    .mtx           Matrix Market, coordinate: general is directed, symmetric not
    .el .wel       GAP: an edge a line, with its weight
    .sg .wsg       GAP, serialized
    .e             LDBC Graphalytics, with the vertices in .v beside it
    .graph .metis  METIS

    Text may be compressed, as .gz or .zst. Vertices keep the numbers that they have in the file:
    in Matrix Market and METIS they begin at 1. Of an undirected graph each edge is written once. A
    vertex without edges is written as a self-loop of weight 0: a build drops the loop and keeps the
    vertex.

    In the matrix, rows and columns are vertices by rising id; 'vertex' in the file holds the ids.
    """
    from ...pipeline.api import convert

    with shown(quiet) as progress:
        converted = convert(input, output, header=not no_header, progress=progress, **values)
    record = converted.record
    if as_json:
        options.print_json({**record, "already": converted.already})
        return
    for note in record.get("notes", []):  # of versions before there were any, none
        options.talk(quiet, note)
    options.talk(quiet, _told(record))
    click.echo(f"{output}: {record['rows']:,} {_ROWS[record['written']]}")
    if converted.already:
        options.talk(quiet, f"{output}: converted already")


_ROWS = {"edge list": "rows", "matrix": "entries", "text": "lines"}


def _told(record: Any) -> str:
    """What a person has to know to go on."""
    known = {True: "directed: search with --directed", False: "undirected"}
    told = [f"edges are {known[record['directed']]}"] if record["directed"] is not None else []
    if record["weighted"] and record["written"] == "edge list":
        told.append("weights: build with --weight weight")
    if record["isolated"]:
        told.append(f"vertices without edges: {record['isolated']:,}")
    return "; ".join([f"read as {record['format']}", *told])
