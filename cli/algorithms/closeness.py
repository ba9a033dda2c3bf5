"""``delegraph closeness``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.sources("Compute the values of some vertices only:")
@options.running
@options.device_if_named
@options.device_memory_limit
def closeness(graph: str, output: str, **values: Any) -> None:
    """Compute closeness: how near each vertex is to the vertices that reach it.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph closeness graph.dg -o closeness/ --sources 1000
    delegraph closeness edges/ -o closeness/ --directed --sources some.parquet

    OUTPUT has the columns vertex and closeness. Distances are in hops, along edges that lead to the
    vertex. Values are scaled as Wasserman and Faust do: by the share of the graph that reaches the
    vertex. If no other vertex reaches it, the value is 0. The run record stands beside OUTPUT:
    OUTPUT.run.json.

    Every vertex takes a search, and 64 searches share their passes over the edges. If a graph is
    large, give --sources.
    """
    from ...pipeline.api import closeness

    def told(record: Any) -> str:
        return f"closeness of {record['closeness']['sources']:,} vertices"

    run_and_tell(closeness, told, graph, output, **values)
