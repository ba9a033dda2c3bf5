"""``delegraph bfs``."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .progress import ProgressLine

_TABLE = "-"  # for people, in place of a file


@options.command()
@click.argument("graph", type=click.Path())
@click.option("--source", required=True, metavar="ID", help="The vertex to start from.")
@options.output
@options.max_depth
@options.device
@options.device_memory_limit
@options.memory_limit
@options.threads
@click.option(
    "--checkpoint",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How often a long search saves its state, to go on from after a kill.",
)
@options.cluster_options
@options.scratch
@options.restart
@options.overwrite
@options.build_options
@click.option(
    "--profile",
    is_flag=False,
    flag_value=_TABLE,
    metavar="[FILE.parquet]",
    help="Show what every superstep did, and its time; of a long search, the first and last. With "
    "a FILE: write all of them there.",
)
@options.as_json
@options.quiet
@options.debug
def bfs(
    graph: str,
    source: str,
    output: str,
    max_depth: int | None,
    checkpoint: float,
    overwrite: bool,
    profile: str | None,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Search GRAPH, a store or a Parquet edge list, from one vertex.

    Writes the folder OUTPUT with vertex, distance and parent of every vertex (null where
    unreached), and the run's record beside it, OUTPUT.run.json.

    \b
    delegraph bfs graph.dg --source 17 -o distances/
    delegraph bfs edges/ --source alice -o distances/ --directed --max-depth 3

    Keeps within the memory limit: a store that does not fit is streamed from disk. A search that
    was cut off goes on from its last checkpoint when the same command runs again.

    --workers 4 searches a store of at least 4 partitions on as many local processes, each
    holding its share (or streaming it, where it does not fit), and each with a GPU where there are
    as many; --scheduler or --scheduler-file on a cluster that is there. If a worker is lost, the
    search is done again on those left.

    A GPU is used where CuPy finds one (--device cpu does without). Edges that its memory has no
    room for are read from host memory; a graph that fits neither is searched on the CPU.

    An edge list is searched without preparing it where it fits; --partitions, --layout, --grid,
    --threshold, --order and --scratch make it build a (temporary) store. On a store these and
    --directed, --src and --dst are refused: they are the store's own.
    """
    from ..pipeline.api import bfs
    from ..pipeline.reports.report import supersteps_table

    with ProgressLine(quiet) as progress:
        record, searched_already, notes = bfs(
            graph,
            source,
            output,
            max_depth=max_depth,
            checkpoint=checkpoint,
            profile=None if profile == _TABLE else profile,
            overwrite=overwrite,
            progress=progress,
            **options.given(values),
        )
    reused = [step["name"] for step in record["plan"]["steps"] if step["reused"]]
    options.tell_reused(quiet or searched_already, reused)
    for note in notes:
        options.talk(quiet, note)
    if profile == _TABLE:
        told = supersteps_table(record["supersteps"], record["supersteps_between"])
        click.echo(told, err=True)
    if as_json:
        options.print_json({**record, "already": searched_already})
        return
    search, vertices = record["search"], record["graph"]["vertices"]
    seconds = record["seconds"]
    click.echo(f"reached {search['reached']:,} of {vertices:,} vertices, depth {search['depth']}")
    spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in seconds.items())
    done = "searched already" if searched_already else f"searched on {record['device']}, written"
    options.talk(quiet, f"{output}: {done} ({spent})")
