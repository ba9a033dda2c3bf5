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
@options.as_json
@options.quiet
@options.debug
def validate(graph: str, result: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Check RESULT, a folder that a command wrote, against its graph, the store or edge list GRAPH.
    Results and edge lists may stand in an object store, at s3://, gs:// or abfs://.

    The result says what it is of. Distances are judged by Graph500's rules, those from several
    sources by a few that are found anew, components by the edges between and inside them, shortest
    paths by Graph500's rules for these, PageRank by one more iteration, closeness and eccentricity
    by a few vertices found anew, betweenness by the sum of all, where its sources can be found anew
    in seconds. Exits with 0 if the result is right and 1 if it is not, naming
    each rule that fails, how often, and an example.

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
        click.echo(f"valid: {_found(verdict)}")
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
        of = f"{verdict['sources']:,} sources, {verdict['found_anew']} of them found anew"
        return f"{verdict['rows']:,} rows of {of}"
    if verdict["algorithm"] == "bfs-together":
        return f"{verdict['reached']:,} of {vertices} reached from {verdict['sources']:,} sources"
    if "found_anew" in verdict:
        told, anew = f"{verdict['rows']:,} of {vertices}", f"{verdict['found_anew']:,}"
        if verdict["algorithm"] != "betweenness":
            return f"{told}, {anew} of them found anew"
        unknown = "" if verdict["found_anew"] else ": what values add up to is not known"
        return f"{told}, {anew} sources found anew{unknown}"
    if verdict["algorithm"] == "pagerank":
        return f"{vertices}, one more iteration changes {verdict['change']:.1e}"
    if verdict["algorithm"] == "sssp":
        reached = f"{verdict['reached']:,} of {vertices} reached from {verdict['source']}"
        return f"{reached}, the farthest at {verdict['farthest']:g}"
    source, depth = verdict["source"], verdict["depth"]
    return f"{verdict['reached']:,} of {vertices} reached from {source}, depth {depth}"
