"""``delegraph bfs``."""

from __future__ import annotations

from typing import Any

import click

from . import options


@click.command()
@click.argument("graph", type=click.Path())
@click.option("--source", required=True, metavar="ID", help="The vertex to start from.")
@options.output
@options.max_depth
@options.threads
@options.overwrite
@options.build_options
@options.as_json
@options.quiet
@options.debug
def bfs(
    graph: str,
    source: str,
    output: str,
    max_depth: int | None,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **build_values: Any,
) -> None:
    """Search GRAPH, a store or a Parquet edge list, from one vertex.

    Writes the folder OUTPUT with vertex, distance and parent of every vertex (null where
    unreached), and the run's record beside it, OUTPUT.run.json.

    \b
    delegraph bfs graph.dg --source 17 -o distances/
    delegraph bfs edges/ --source alice -o distances/ --directed --max-depth 3

    An edge list is searched without preparing it while that is faster; --partitions,
    --threshold and --order make it build a (temporary) store. On a store these and --directed,
    --src and --dst are refused: they are the store's own.
    """
    from ..pipeline.api import bfs

    with options.ProgressLine(quiet) as progress:
        record = bfs(
            graph,
            source,
            output,
            max_depth=max_depth,
            threads=threads,
            overwrite=overwrite,
            progress=progress,
            **options.given(build_values),
        )
    if as_json:
        options.print_json(record)
        return
    search, vertices = record["search"], record["graph"]["vertices"]
    seconds = record["seconds"]
    click.echo(f"reached {search['reached']:,} of {vertices:,} vertices, depth {search['depth']}")
    spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in seconds.items())
    options.talk(quiet, f"{output}: written ({spent})")
