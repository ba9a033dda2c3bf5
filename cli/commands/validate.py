"""``delegraph validate``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .. import options
from ..progress import shown


@options.command()
@click.argument("graph", type=click.Path())
@click.argument("result", type=click.Path())
@options.memory_limit
@options.threads
@click.option(
    "--scratch",
    type=click.Path(),
    metavar="DIR",
    help="Folder for a temporary store, if an edge list does not fit in memory.  [default: the "
    "system's folder for temporary files]",
)
@options.reading_options
@options.weight_options
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="The --personalize file that the PageRank was computed with.",
)
@click.option(
    "--sources",
    metavar="ID,ID|FILE",
    help="Sources of a betweenness. Give them if there are more than 1,024: the result does not "
    "list so many.",
)
@options.as_json
@options.quiet
@options.debug
def validate(graph: str, result: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Check a result against its graph, by rules that only a right result keeps.

    GRAPH is a store or an edge list. RESULT is a folder that a command wrote. Edge lists and
    results may be URLs (s3://, gs://, abfs://).

    \b
    delegraph validate graph.dg distances/
    delegraph validate edges/ components/

    \b
    result                 is checked by
    bfs, sssp              Graph500's rules
    bfs --sources          the distances of neighbours
    components             the edges between and inside components
    pagerank               one more iteration
    closeness,             values computed anew: of all vertices, or of some if
    eccentricity,          all would take long; the output says how many
    betweenness

    Exit code 0: the result is right, as far as it was checked. 1: the result is wrong, or nothing
    could be checked. If it is wrong, the output names each rule that fails, how often, and an
    example.

    --src, --dst, --directed, --weight and --duplicates say how an edge list is read. An edge list
    is also read as directed if the result says so.
    """
    from ...pipeline.api import validate

    with shown(quiet) as progress:
        verdict = validate(graph, result, progress=progress, **options.given(values))
    if verdict["same_graph"] is False:
        options.talk(
            quiet,
            "note: the result is of another graph, or of a graph that was read in another way "
            "(--directed, --weight, --duplicates); it is checked against this one",
        )
    elif verdict["same_graph"] is None:
        told = "note: the result does not say which question it answers; it is checked as "
        by_default = {"bfs": "a search from the vertex at 0", "pagerank": "PageRank with default options"}
        of = verdict["algorithm"]
        options.talk(quiet, told + by_default.get(of, of))
    if as_json:
        options.print_json(verdict)
    elif verdict["valid"]:
        word = "valid" if verdict["judged"] == "all" else "valid as far as judged"
        click.echo(f"{word}: {_found(verdict)}{_unjudged(verdict)}")
    elif not verdict["rules"]:
        click.echo(f"not judged: {_unknown(verdict)}")
    else:
        for rule in verdict["rules"]:
            example = " -> ".join(str(vertex) for vertex in rule["example"])
            where = f", for example at {example}" if example else ""
            click.echo(
                f"wrong: rule {rule['rule']} ({rule['meaning']}): "
                f"{rule['violations']:,} violations{where}"
            )
    sys.exit(0 if verdict["valid"] else 1)


def _found(verdict: Any) -> str:
    vertices = f"{verdict['vertices']:,} vertices"
    if verdict["algorithm"] == "components":
        return f"{vertices} in {verdict['components']:,} components"
    if verdict["algorithm"] == "bfs-each":
        return f"{verdict['rows']:,} rows for {verdict['sources']:,} sources"
    if verdict["algorithm"] == "bfs-together":
        return f"{verdict['reached']:,} of {vertices} reached from {verdict['sources']:,} sources"
    if "found_anew" in verdict:
        of = f"{verdict['rows']:,} of {vertices}"
        if verdict["algorithm"] == "betweenness":
            return f"{of}, with paths from {verdict['found_anew']:,} sources computed again"
        return f"{of}, {verdict['found_anew']:,} of them computed again"
    if verdict["algorithm"] == "pagerank":
        return f"{vertices}, one more iteration changes {verdict['change']:.1e}"
    if verdict["algorithm"] == "sssp":
        reached = f"{verdict['reached']:,} of {vertices} reached from {verdict['source']}"
        return f"{reached}, the farthest at {verdict['farthest']:g}"
    source, depth = verdict["source"], verdict["depth"]
    return f"{verdict['reached']:,} of {vertices} reached from {source}, depth {depth}"


def _unjudged(verdict: Any) -> str:
    """What of a valid result was not judged."""
    if not verdict["unjudged"]:
        return ""
    by = "their sum" if verdict["algorithm"] == "betweenness" else "their range"
    return f"; {verdict['unjudged']:,} values are judged by {by} only"


def _unknown(verdict: Any) -> str:
    """Why nothing of a result was judged but its rows and the range of its values."""
    if verdict["algorithm"] == "betweenness" and verdict["sources"] is None:
        return "the result does not name its sources: give them with --sources FILE"
    return f"computing the {verdict['unjudged']:,} values again takes too long"
