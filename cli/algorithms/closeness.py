"""``delegraph closeness``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.sources("Tell of some vertices alone:")
def closeness(graph: str, output: str, **values: Any) -> None:
    """Closeness of vertices of GRAPH, a store or a Parquet edge list, here or at s3://...

    Writes the folder OUTPUT with vertex and closeness, and the run's record beside it,
    OUTPUT.run.json. Distances are hops along edges that lead to the vertex; of a vertex that only a
    part of the graph reaches, closeness is scaled down by that part (Wasserman and Faust). It is 0
    for a vertex that no other one reaches.

    \b
    delegraph closeness graph.dg -o closeness/ --sources 1000
    delegraph closeness edges/ -o closeness/ --directed --sources some.parquet

    64 searches share each pass over the edges. All vertices take as many passes as there are
    vertices, by 64: say --sources on a large graph.
    """
    from ...pipeline.api import closeness

    def told(record: Any) -> str:
        return f"closeness of {record['closeness']['sources']:,} vertices"

    run_and_tell(closeness, told, graph, output, **values)
