"""``delegraph bfs``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from .. import options
from ..running import run_and_tell

_TABLE = "-"  # for people, in place of a file


@options.command()
@options.running
@click.option("--source", metavar="ID", help="The vertex to start from.")
@click.option(
    "--sources",
    metavar="FILE|ID,ID,...",
    help="Several of them: ids, or a file that ends in .parquet (column vertex), or its URL.",
)
@click.option("--together", is_flag=True, help="Of --sources the distance to the nearest one.")
@options.max_depth
@options.device
@options.device_memory_limit
@options.strategy
@click.option(
    "--profile",
    is_flag=False,
    flag_value=_TABLE,
    metavar="[FILE.parquet]",
    help="Show what every superstep did, and its time; of a long search, the first and last. With "
    "a FILE: write all of them there.",
)
def bfs(graph: str, output: str, profile: str | None, quiet: bool, **values: Any) -> None:
    """Search GRAPH, a store or a Parquet edge list, here or at s3://..., from one vertex, or from
    several.

    Writes the folder OUTPUT with vertex, distance and parent of every vertex (null where
    unreached; the source has no parent, either), and the run's record beside it, OUTPUT.run.json.
    Of several right parents any one may be named.

    \b
    delegraph bfs graph.dg --source 17 -o distances/
    delegraph bfs friends/ --source alice -o distances/ --directed --max-depth 3
    delegraph bfs graph.dg --sources 17,25,3 -o distances/
    delegraph bfs graph.dg --sources seeds.parquet --together -o distances/
    delegraph bfs s3://bucket/edges --source 17 -o s3://bucket/distances

    --sources writes source, vertex and distance: for each source, by rising id, all that it
    reaches; 64 searches share a pass over the edges. With --together it writes vertex, distance and
    nearest of every vertex: how far the nearest source is, and which one, of several the first by
    id. Both run on CPUs unless --device names a GPU, or its memory is limited.

    Keeps within the memory limit: a store that does not fit is streamed from disk. A search that
    was cut off goes on from its last checkpoint when the same command runs again.

    --workers 4 searches a store of at least 4 partitions on as many local processes, each
    holding its share (or streaming it, where it does not fit), and each with a GPU where there are
    as many; --scheduler or --scheduler-file on a cluster that is there. If a worker is lost, the
    search is done again on those left.

    A GPU is used where CuPy finds one (--device cpu does without). Edges that its memory has no
    room for are read from host memory; a graph that fits neither is searched on the CPU.

    An edge list is searched without preparing it where it fits; --partitions, --layout, --grid,
    --threshold, --order and --scratch make it build a (temporary) store. On a store all but
    --scratch are refused, and --directed, --src and --dst: they are the store's own.
    """
    from ...pipeline.api import bfs
    from ...pipeline.reports.report import supersteps_table

    if values["sources"] is not None and profile is not None:
        raise click.UsageError("--profile is of a search from one --source")

    def told(record: Any) -> str:
        vertices = record["graph"]["vertices"]
        if "searches" in record:
            found = record["searches"]
            reached = f"reached {found['reached']:,}"
            of = f"of {vertices:,} vertices" if values["together"] else "vertices in all"
            return f"{reached} {of} from {found['sources']:,} sources, depth {found['depth']}"
        if profile == _TABLE:
            table = supersteps_table(record["supersteps"], record["supersteps_between"])
            options.talk(False, table)
        search = record["search"]
        return f"reached {search['reached']:,} of {vertices:,} vertices, depth {search['depth']}"

    file = None if profile == _TABLE else profile
    search = partial(bfs, profile=file)
    run_and_tell(search, told, graph, output, quiet=quiet, verb="searched", **values)
