"""``delegraph betweenness``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.sources("Vertices to count paths from (the counts are scaled up to all vertices):")
@click.option(
    "--normalized",
    is_flag=True,
    help="Divide each value by the number of pairs of other vertices.",
)
def betweenness(graph: str, output: str, **values: Any) -> None:
    """Compute the betweenness of every vertex of GRAPH.

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.
    Edges are undirected unless --directed is given.

    The result OUTPUT has the columns vertex and betweenness: the number of shortest paths between
    two other vertices that lead through the vertex. If several shortest paths join the same two
    vertices, each path counts as an equal share of 1. Path lengths are counted in hops. In an
    undirected graph each pair of vertices counts once. OUTPUT.run.json records the run.

    \b
    delegraph betweenness graph.dg -o between/ --sources 64
    delegraph betweenness edges/ -o between/ --directed --normalized

    Each source takes two passes over the edges. Give --sources on a large graph.
    """
    from ...pipeline.api import betweenness

    def told(record: Any) -> str:
        vertices, found = record["graph"]["vertices"], record["betweenness"]
        return f"betweenness of {vertices:,} vertices, by paths from {found['sources']:,} vertices"

    run_and_tell(betweenness, told, graph, output, **values)
