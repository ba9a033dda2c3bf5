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
    threads: int,
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
    from ..partition.errors import InputError
    from ..partition.store import is_store
    from ..pipeline.bfs import SearchOptions, search_to_result
    from ..pipeline.execute import Executor

    context = click.get_current_context()
    given = [
        f"--{name}"
        for name in build_values
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given and is_store(graph):
        raise InputError(f"{graph} is a store: {', '.join(given)} belong to its build")
    progress = options.ProgressLine(quiet)
    try:
        record = search_to_result(
            graph,
            source,
            output,
            SearchOptions(max_depth, threads),
            options.take_build_options(build_values),
            Executor(threads, progress),
            overwrite,
        )
    finally:
        progress.close()
    if as_json:
        options.print_json(record)
        return
    search, vertices = record["search"], record["graph"]["vertices"]
    seconds = record["seconds"]
    click.echo(f"reached {search['reached']:,} of {vertices:,} vertices, depth {search['depth']}")
    spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in seconds.items())
    options.talk(quiet, f"{output}: written ({spent})")
