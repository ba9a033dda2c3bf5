"""``delegraph bfs``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from .. import options
from ..running import run_and_tell

_TABLE = "-"  # for people, in place of a file


@options.command()
@click.option("--source", metavar="ID", help="Search from this vertex.")
@click.option(
    "--sources",
    metavar="FILE|ID,ID,...",
    help="Search from each of these vertices: ids, or a .parquet file or URL with a column vertex.",
)
@click.option(
    "--together",
    is_flag=True,
    help="With --sources: find each vertex's distance to the nearest source instead.",
)
@options.max_depth
@options.strategy
@click.option(
    "--profile",
    is_flag=False,
    flag_value=_TABLE,
    metavar="[FILE.parquet]",
    help="Show what each superstep did and how long it took (of a long search, the first and the "
    "last hundred supersteps). With FILE: write all supersteps to FILE instead.",
)
@options.running
@options.device
@options.device_memory_limit
def bfs(graph: str, output: str, profile: str | None, quiet: bool, **values: Any) -> None:
    """Search GRAPH breadth-first, from one vertex or from several.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph bfs graph.dg --source 17 -o distances/
    delegraph bfs friends/ --source alice -o distances/ --directed --max-depth 3
    delegraph bfs graph.dg --sources 17,25,3 -o distances/
    delegraph bfs graph.dg --sources seeds.parquet --together -o distances/
    delegraph bfs s3://bucket/edges --source 17 -o s3://bucket/distances

    \b
    with                   columns of OUTPUT
    --source               vertex, distance, parent; null if not reached
    --sources              source, vertex, distance; a row for each vertex reached
    --sources, --together  vertex, distance, nearest; null if not reached

    Distances are in hops. If a vertex has several correct parents, any one is named. If several
    sources are equally near, nearest is the first by id. The run record stands beside OUTPUT:
    OUTPUT.run.json.

    A search keeps within the memory limit: edges that do not fit are read from disk. The same
    command resumes an interrupted search from its last checkpoint. A search from one source has no
    checkpoints on a GPU or with --workers.

    An edge list is searched as it is if it fits in memory. --partitions, --layout, --grid,
    --threshold, --order and --scratch make the command build a temporary store. If GRAPH is a
    store, all of these but --scratch are refused, and also --directed, --src and --dst.

    --workers N needs a store with at least N partitions. Each worker holds a share of the edges. If
    a worker is lost, the search runs again on the others.

    A search from one source uses a GPU if one is usable. Searches from several sources use a GPU
    only with --device cuda or --device-memory-limit. Edges that do not fit on the GPU stay in host
    memory.
    """
    from ...pipeline.api import bfs
    from ...pipeline.reports.report import supersteps_table

    if values["sources"] is not None and profile is not None:
        raise click.UsageError("--profile needs a search from one --source")

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
