"""``delegraph convert``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..command import command
from ..progress import shown
from ..talk import print_json, talk


def _max_unpacked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ...partition.disk.memory import as_bytes
    from ...partition.errors import InputError

    try:
        as_bytes(None if value == "none" else value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None
    return value


@command()
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
@click.option("--src", metavar="COL", help="Column where edges begin: a name, or a number from 1.")
@click.option("--dst", metavar="COL", help="Column where edges end.")
@click.option(
    "--weight",
    metavar="COL",
    help="Column of weights.  [default: the column weight, if a header names it]",
)
@click.option(
    "--no-header",
    is_flag=True,
    help="The first line of CSV or TSV is an edge, not the names of columns.",
)
@click.option(
    "--id-type",
    type=click.Choice(["auto", "int64", "uint64", "string"]),
    default="auto",
    show_default=True,
    help="Type of ids in CSV, TSV and SNAP's text; auto: by the first 2 MiB. 007 is a string.",
)
@click.option(
    "--weight-type",
    type=click.Choice(["auto", "int64", "float64"]),
    default="auto",
    show_default=True,
    help="Type of weights in text formats that do not name a type; auto: by the first 2 MiB.",
)
@options.loops_option(
    help="keep: write an edge list to read with --loops keep --weight weight. Edges without "
    "weights get weight 1, and vertices without edges a self-loop of weight 0.",
)
@click.option(
    "--max-unpacked",
    metavar="SIZE",
    callback=_max_unpacked,
    help="Most bytes that a compressed file may unpack to, such as 20GB, or none for no bound.  "
    "[default: 256 MiB, or 200 times the file's size if that is more]",
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
    """Convert graph files of other programs to Parquet, and back.

    \b
    INPUT                           OUTPUT
    a graph file, as listed below   a Parquet edge list: src, dst and, if there are any, weight
    a store                         SciPy's sparse matrix, named .npz
    a result                        LDBC Graphalytics' text, named .txt

    \b
    delegraph convert web.mtx.gz -o edges/
    delegraph convert links.csv -o edges/ --src from --dst to --weight metres
    delegraph convert soc.txt.zst -o edges/ --from snap --weight 3
    delegraph convert graph500-22.e -o edges/
    delegraph convert graph.dg -o graph.npz
    delegraph convert distances/ -o distances.txt

    \b
    .csv .tsv      columns by the names in the first line, or by number
    .txt .snap     SNAP: columns separated by blanks, comments after #
    .mtx           Matrix Market, coordinate: general is directed, symmetric is not
    .el .wel       GAP: one edge a line; .wel also has the weight
    .sg .wsg       GAP, serialized
    .e             LDBC Graphalytics: edges; the vertices are in the .v file beside it
    .graph .metis  METIS

    Text may be compressed: .gz or .zst. Vertices keep their numbers; in Matrix Market and METIS
    the numbers begin at 1. Each edge of an undirected graph is written once. A vertex without edges
    is written as a self-loop of weight 0: questions drop the loop and keep the vertex.

    In SciPy's matrix, rows and columns are the vertices by rising id. The array 'vertex' in the
    .npz file has the ids.
    """
    from ...pipeline.edge_lists import convert

    with shown(quiet) as progress:
        converted = convert(input, output, header=not no_header, progress=progress, **values)
    record = converted.record
    if as_json:
        print_json({**record, "already": converted.already})
        return
    for note in record.get("notes", []):  # of versions before there were any, none
        talk(quiet, note)
    talk(quiet, _told(record))
    click.echo(f"{output}: {record['rows']:,} {_ROWS[record['written']]}")
    if converted.already:
        talk(quiet, f"{output}: already converted")


_ROWS = {"edge list": "rows", "matrix": "entries", "text": "lines"}


def _told(record: Any) -> str:
    """Return the lines that a person needs to continue."""
    known = {True: "directed: build or search with --directed", False: "undirected"}
    told = [f"edges are {known[record['directed']]}"] if record["directed"] is not None else []
    if record["weighted"] and record["written"] == "edge list":
        told.append("weights are in the column weight: use --weight weight")
    if record["isolated"]:
        told.append(f"vertices without edges: {record['isolated']:,}")
    return "; ".join([f"read as {record['format']}", *told])
