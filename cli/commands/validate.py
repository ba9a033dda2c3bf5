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
    help="Where an edge list that does not fit memory becomes a store for the while.  [default: "
    "the system's folder for temporary files]",
)
@options.reading_options
@options.weight_options
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="What a PageRank was personalised by.",
)
@click.option(
    "--sources",
    metavar="ID,ID|FILE",
    help="Whose paths a betweenness has counted, where it does not say them: of more than 1,024.",
)
@options.as_json
@options.quiet
@options.debug
def validate(graph: str, result: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Check RESULT, a folder that a command wrote, against its graph, the store or edge list GRAPH.
    Results and edge lists may stand in an object store, at s3://, gs:// or abfs://.

    The result says what it is of. Distances are judged by Graph500's rules, those from several
    sources by what they are next to each other, components by the edges between and inside them,
    shortest paths by Graph500's rules for these, PageRank by one more iteration, closeness,
    eccentricity and betweenness by values found anew: of all vertices, as long as that takes a
    minute or two, else of some, or by what all add up to, which is said. Exits with 0 if the result
    is right as far as it was judged, and with 1 if it is not, naming each rule that fails, how
    often, and an example, or if nothing could be judged.

    \b
    delegraph validate graph.dg distances/
    delegraph validate edges/ components/

    --src, --dst, --weight and --directed say how an edge list is read; its edges are directed, too,
    where the result says so.
    """
    from ...pipeline.api import validate

    with shown(quiet) as progress:
        verdict = validate(graph, result, progress=progress, **options.given(values))
    if verdict["same_graph"] is False:
        options.talk(
            quiet,
            "note: the result was made from another input than this, or from one that was read "
            "in another way (--directed, --weight, --duplicates); judging it all the same",
        )
    elif verdict["same_graph"] is None:
        told = "note: the result does not say what was asked; taking it for "
        by_default = {"bfs": "a search from the vertex at 0", "pagerank": "one by default options"}
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
        return f"{verdict['components']:,} components of {vertices}"
    if verdict["algorithm"] == "bfs-each":
        return f"{verdict['rows']:,} rows of {verdict['sources']:,} sources"
    if verdict["algorithm"] == "bfs-together":
        return f"{verdict['reached']:,} of {vertices} reached from {verdict['sources']:,} sources"
    if "found_anew" in verdict:
        of = f"{verdict['rows']:,} of {vertices}"
        if verdict["algorithm"] == "betweenness":
            return f"{of}, by paths from {verdict['found_anew']:,}"
        return f"{of}, {verdict['found_anew']:,} of them found anew"
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
    by = "what they add up to" if verdict["algorithm"] == "betweenness" else "their range"
    return f"; {verdict['unjudged']:,} values are judged by {by} alone"


def _unknown(verdict: Any) -> str:
    """Why nothing of a result was judged but its rows and the range of its values."""
    if verdict["algorithm"] == "betweenness" and verdict["sources"] is None:
        return "the result does not say whose paths were counted: give them, as --sources FILE"
    return f"finding the {verdict['unjudged']:,} values anew takes too long"
