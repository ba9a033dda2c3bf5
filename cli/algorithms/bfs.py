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
@click.option("--source", metavar="ID", help="Id of the vertex where the search starts.")
@click.option(
    "--sources",
    metavar="FILE|ID,ID,...",
    help="Vertices where searches start: ids, or the path or URL of a .parquet file with a column "
    "vertex.",
)
@click.option(
    "--together",
    is_flag=True,
    help="Find the distance of each vertex to the nearest of the --sources.",
)
@options.max_depth
@options.device
@options.device_memory_limit
@options.strategy
@click.option(
    "--profile",
    is_flag=False,
    flag_value=_TABLE,
    metavar="[FILE.parquet]",
    help="Print what each superstep did and its time; of a long search, only the first and the "
    "last supersteps. With FILE.parquet: write all supersteps to this file.",
)
def bfs(graph: str, output: str, profile: str | None, quiet: bool, **values: Any) -> None:
    """Search GRAPH from one vertex (--source) or from several vertices (--sources).

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.
    Edges are undirected unless --directed is given.

    The result OUTPUT has the columns vertex, distance and parent, with a row for every vertex.
    Distances are counted in hops. distance and parent are null if the search does not reach the
    vertex; the parent of the source is null too. If a vertex has several correct parents, the
    result names any one of them. OUTPUT.run.json records the run.

    \b
    delegraph bfs graph.dg --source 17 -o distances/
    delegraph bfs friends/ --source alice -o distances/ --directed --max-depth 3
    delegraph bfs graph.dg --sources 17,25,3 -o distances/
    delegraph bfs graph.dg --sources seeds.parquet --together -o distances/
    delegraph bfs s3://bucket/edges --source 17 -o s3://bucket/distances

    Several sources: --sources searches from each source separately. The result has the columns
    source, vertex and distance, with a row for each vertex that a source reaches, sorted by source.
    Up to 64 searches share each pass over the edges. With --together the result has the columns
    vertex, distance and nearest, with a row for every vertex: the nearest source and the distance
    from it. If several sources are equally near, nearest is the first of them by id.

    Memory: a store that does not fit the memory limit is streamed from disk. If a search is
    interrupted, the same command continues it from the last checkpoint.

    Worker processes: --workers 4 searches a store of at least 4 partitions with 4 local worker
    processes. Each holds its share of the edges, or streams the share from disk if it does not fit.
    Each has a GPU of its own if there are enough GPUs. --scheduler and --scheduler-file use an
    existing Dask cluster. If a worker process is lost, the search starts again on the remaining
    ones.

    GPU: --source uses a GPU if CuPy finds one; --device cpu prevents this. --sources uses a GPU
    only with --device cuda or --device-memory-limit. Edges that do not fit GPU memory are read from
    host memory. A graph that fits neither is searched on the CPU.

    Edge lists: an edge list that fits memory is searched without a store. --partitions, --layout,
    --grid, --threshold, --order and --scratch build a temporary store first. These options, except
    --scratch, are refused if GRAPH is a store, and so are --directed, --src and --dst: 'delegraph
    build' has decided them.
    """
    from ...pipeline.api import bfs
    from ...pipeline.reports.report import supersteps_table

    if values["sources"] is not None and profile is not None:
        raise click.UsageError(
            "--profile needs a single --source: leave out --sources or --profile"
        )

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
