"""``delegraph betweenness``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.sources("Count only paths from some vertices, and scale the sums up:")
@click.option("--normalized", is_flag=True, help="Divide by the number of pairs of other vertices.")
@options.running
@options.device_if_named
@options.device_memory_limit
def betweenness(graph: str, output: str, **values: Any) -> None:
    """Compute betweenness: how many shortest paths lead through each vertex.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph betweenness graph.dg -o between/ --sources 64
    delegraph betweenness edges/ -o between/ --directed --normalized

    OUTPUT has the columns vertex and betweenness. Paths are counted in hops, between all pairs of
    other vertices; in an undirected graph each pair counts once. If a pair has several shortest
    paths, each path counts as a fraction. The run record stands beside OUTPUT: OUTPUT.run.json.

    Each source takes two passes over the edges that it reaches. If a graph has more than about ten
    thousand vertices, give --sources.
    """
    from ...pipeline.api import betweenness

    def told(record: Any) -> str:
        vertices, found = record["graph"]["vertices"], record["betweenness"]
        return f"betweenness of {vertices:,} vertices, by paths from {found['sources']:,} vertices"

    run_and_tell(betweenness, told, graph, output, **values)
