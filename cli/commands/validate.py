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
    help="Folder for the temporary store of an edge list that does not fit memory.  [default: the "
    "system's folder for temporary files]",
)
@options.reading_options
@options.weight_options
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="File that was given to pagerank as --personalize.",
)
@click.option(
    "--sources",
    metavar="ID,ID|FILE",
    help="Vertices that were given to betweenness as --sources. Needed if there were more than "
    "1,024, because the result does not name them.",
)
@options.as_json
@options.quiet
@options.debug
def validate(graph: str, result: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Check RESULT, a folder that a question has written, against its graph GRAPH.

    GRAPH is a store or a Parquet edge list. RESULT and an edge list may be s3://, gs:// or abfs://
    URLs. The result itself names the question and its options.

    \b
    bfs           Graph500's rules for searches; with --sources, by comparing neighbours
    components    the edges inside and between components
    sssp          Graph500's rules for shortest paths
    pagerank      one more iteration
    closeness     computing the values again
    eccentricity  computing the values again
    betweenness   computing the values again

    Values are computed again for all vertices if this takes at most about two minutes. Otherwise
    they are computed for some vertices only, or betweenness is checked by the sum of all values;
    the output says so.

    The exit code is 0 if no check fails. It is 1 if a check fails or if nothing could be checked.
    The output names each rule that fails, with the number of violations and an example.

    \b
    delegraph validate graph.dg distances/
    delegraph validate edges/ components/

    --src, --dst, --weight and --directed describe an edge list. The edges are also directed if the
    result was computed on a directed graph.
    """
    from ...pipeline.api import validate

    with shown(quiet) as progress:
        verdict = validate(graph, result, progress=progress, **options.given(values))
    if verdict["same_graph"] is False:
        options.talk(
            quiet,
            "note: the result comes from another graph, or the edge list was read with other "
            "options (--directed, --weight, --duplicates); checking it against this graph",
        )
    elif verdict["same_graph"] is None:
        told = "note: the result does not name its question; checking it as "
        by_default = {
            "bfs": "a search from the vertex at distance 0",
            "pagerank": "PageRank with default options",
        }
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
