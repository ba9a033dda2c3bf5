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
    "[default: by the ending of its name]",
)
@click.option(
    "--src",
    metavar="COL",
    help="Column that an edge leads from: a name, or a number, counted from 1.",
)
@click.option(
    "--dst",
    metavar="COL",
    help="Column that an edge leads to: a name, or a number, counted from 1.",
)
@click.option(
    "--weight",
    metavar="COL",
    help="Column of weights: a name, or a number, counted from 1.  [default: the column 'weight', "
    "if the header has one]",
)
@click.option(
    "--no-header",
    is_flag=True,
    help="Read the first line of a CSV or TSV file as an edge, not as the names of the columns.",
)
@click.option(
    "--id-type",
    type=click.Choice(["auto", "int64", "uint64", "string"]),
    default="auto",
    show_default=True,
    help="Type of the ids in CSV, TSV or SNAP text. auto: chosen by the first 2 MiB; ids such as "
    "007 are strings.",
)
@click.option(
    "--weight-type",
    type=click.Choice(["auto", "int64", "float64"]),
    default="auto",
    show_default=True,
    help="Type of the weights in text whose format does not define it. auto: chosen by the first "
    "2 MiB.",
)
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    callback=_max_unpacked,
    help="Greatest unpacked size of a compressed file, such as 20GB; none: no limit.  "
    "[default: 200 times the file's size, at least 256 MiB]",
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
    """Convert a graph file, a store or a result to another format.

    A graph file becomes a Parquet edge list, OUTPUT. A store becomes a sparse matrix for SciPy, if
    OUTPUT ends in .npz. A result becomes text as LDBC Graphalytics defines it, if OUTPUT ends in
    .txt.

    \b
    delegraph convert web.mtx.gz -o edges/
    delegraph convert links.csv -o edges/ --src from --dst to --weight metres
    delegraph convert soc.txt.zst -o edges/ --from snap --weight 3
    delegraph convert graph500-22.e -o edges/
    delegraph convert graph.dg -o graph.npz
    delegraph convert distances/ -o distances.txt

    \b
    .csv .tsv      CSV, TSV: the first line names the columns, unless --no-header is given
    .txt .snap     SNAP: columns separated by blanks; # begins a comment
    .mtx           Matrix Market, coordinate format: general is directed, symmetric undirected
    .el .wel       GAP: one edge per line, .wel with its weight
    .sg .wsg       GAP, serialized
    .e             LDBC Graphalytics: edges; the vertices are in the .v file beside it
    .graph .metis  METIS

    Text may be compressed (.gz or .zst). Vertices keep their numbers, which begin at 1 in Matrix
    Market and METIS. Each undirected edge is written once. A vertex without edges is written as a
    self-loop of weight 0; 'delegraph build' drops the loop and keeps the vertex.

    The rows and columns of the matrix are the vertices by rising id. The array 'vertex' in the
    .npz file holds the ids.
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
        options.talk(quiet, f"{output}: already converted")


_ROWS = {"edge list": "rows", "matrix": "entries", "text": "lines"}


def _told(record: Any) -> str:
    """What a person has to know to go on."""
    known = {True: "directed: build or search with --directed", False: "undirected"}
    told = [f"edges are {known[record['directed']]}"] if record["directed"] is not None else []
    if record["weighted"] and record["written"] == "edge list":
        told.append("edges have weights: build with --weight weight")
    if record["isolated"]:
        told.append(f"vertices without edges: {record['isolated']:,}")
    return "; ".join([f"read as {record['format']}", *told])
