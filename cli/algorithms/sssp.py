"""``delegraph sssp``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.weight_options
@click.option("--source", metavar="ID", required=True, help="Find paths from this vertex.")
@click.option(
    "--max-distance", type=options.Number(), help="Ignore paths that are longer than this."
)
@options.running
@options.device_if_named
@options.device_memory_limit
def sssp(graph: str, output: str, **values: Any) -> None:
    """Find shortest paths from one vertex of GRAPH, by edge weights.

    GRAPH is a store with weights, or a Parquet edge list with --weight; an edge list may be a URL
    (s3://, gs://, abfs://).

    \b
    delegraph build roads/ -o roads.dg --weight metres
    delegraph sssp roads.dg -o paths/ --source 17
    delegraph sssp edges/ -o paths/ --source 17 --weight w --directed

    OUTPUT has the columns vertex, distance and parent. distance is the least sum of weights of a
    path from the source, and parent is the vertex before this vertex on such a path. Both are null
    if there is no path; the source has no parent. If a vertex has several correct parents, any one
    is named. The run record stands beside OUTPUT: OUTPUT.run.json.

    With integer weights, distances are integers, and exact below 2^53. With float weights, they are
    64-bit floats.
    """
    from ...pipeline.api import sssp

    def told(record: Any) -> str:
        found, vertices = record["sssp"], record["graph"]["vertices"]
        return (
            f"{found['reached']:,} of {vertices:,} vertices reached from {found['source']}, "
            f"the farthest at {found['farthest']:g}"
        )

    run_and_tell(sssp, told, graph, output, **values)
