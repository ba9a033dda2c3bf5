"""``delegraph closeness``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.sources("Vertices to compute closeness for:")
def closeness(graph: str, output: str, **values: Any) -> None:
    """Compute the closeness of all vertices of GRAPH, or of some vertices (--sources).

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.
    Edges are undirected unless --directed is given.

    The result OUTPUT has the columns vertex and closeness: the inverse of the mean distance from
    the vertices that reach the vertex. Distances are counted in hops along edges that lead to the
    vertex. If only some vertices reach it, closeness is multiplied by their share of the graph
    (Wasserman and Faust). Closeness is 0 if no other vertex reaches the vertex. OUTPUT.run.json
    records the run.

    \b
    delegraph closeness graph.dg -o closeness/ --sources 1000
    delegraph closeness edges/ -o closeness/ --directed --sources some.parquet

    64 searches share each pass over the edges, and each vertex takes a search. Give --sources on
    a large graph.
    """
    from ...pipeline.api import closeness

    def told(record: Any) -> str:
        return f"closeness of {record['closeness']['sources']:,} vertices"

    run_and_tell(closeness, told, graph, output, **values)
