"""``delegraph sssp``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.weight_options
@click.option("--source", metavar="ID", required=True, help="Id of the vertex where paths begin.")
@click.option(
    "--max-distance",
    type=options.Number(),
    help="Greatest distance to search, as a sum of weights. Vertices that are farther count as "
    "unreached.  [default: no limit]",
)
def sssp(graph: str, output: str, **values: Any) -> None:
    """Find the shortest paths from one vertex of GRAPH along weighted edges.

    GRAPH is a store with weights, or a Parquet edge list with --weight; the edge list may be an
    s3://, gs:// or abfs:// URL. Edges are undirected unless --directed is given.

    The result OUTPUT has the columns vertex, distance and parent, with a row for every vertex.
    distance is the least sum of weights of a path from the source, and parent is the previous
    vertex on such a path. Both are null if no path exists; the parent of the source is null too.
    Distances are integers if the weights are integers, otherwise 64-bit floats. If a vertex has
    several correct parents, the result names any one of them. OUTPUT.run.json records the run.

    \b
    delegraph build roads/ -o roads.dg --weight metres
    delegraph sssp roads.dg -o paths/ --source 17
    delegraph sssp edges/ -o paths/ --source 17 --weight w --directed

    A weight is an integer from 0 to 4,294,967,295, or a non-negative float, rounded to 32 bits.
    """
    from ...pipeline.api import sssp

    def told(record: Any) -> str:
        found, vertices = record["sssp"], record["graph"]["vertices"]
        return (
            f"{found['reached']:,} of {vertices:,} vertices reached from {found['source']}, "
            f"the farthest at {found['farthest']:g}"
        )

    run_and_tell(sssp, told, graph, output, **values)
