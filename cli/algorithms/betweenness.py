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
@options.sources("Count paths from some vertices alone, and scale them up:")
@click.option("--normalized", is_flag=True, help="Divide by the number of pairs.")
def betweenness(graph: str, output: str, **values: Any) -> None:
    """Betweenness of every vertex of GRAPH, a store or a Parquet edge list, here or at s3://...

    Writes the folder OUTPUT with vertex and betweenness, how many shortest paths between two other
    vertices lead through it (of several between the same two, a share each), and the run's record
    beside it, OUTPUT.run.json. Paths are counted in hops; in an undirected graph each pair of ends
    counts once.

    \b
    delegraph betweenness graph.dg -o between/ --sources 64
    delegraph betweenness edges/ -o between/ --directed --normalized

    Each source takes two passes over the edges, level by level: say --sources on a large graph.
    """
    from ...pipeline.api import betweenness

    def told(record: Any) -> str:
        vertices, found = record["graph"]["vertices"], record["betweenness"]
        return f"betweenness of {vertices:,} vertices, by paths from {found['sources']:,}"

    run_and_tell(betweenness, told, graph, output, **values)
