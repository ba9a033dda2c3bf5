"""``delegraph eccentricity``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.sources("Vertices to compute eccentricity for:")
def eccentricity(graph: str, output: str, **values: Any) -> None:
    """Compute the eccentricity of all vertices of GRAPH, or of some vertices (--sources).

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.
    Edges are undirected unless --directed is given.

    The result OUTPUT has the columns vertex and eccentricity: the distance in hops to the farthest
    vertex that the vertex reaches, or 0 if it reaches no other vertex. OUTPUT.run.json records the
    run.

    \b
    delegraph eccentricity graph.dg -o eccentricity/ --sources 64
    delegraph eccentricity edges/ -o eccentricity/

    The command also prints bounds on the diameter. The lower bound is the greatest eccentricity
    found. In an undirected graph the upper bound is twice the least eccentricity of a vertex that
    reaches all others. Without --sources the greatest eccentricity is the diameter, if every
    vertex reaches all others.
    """
    from ...pipeline.api import eccentricity

    def told(record: Any) -> str:
        found = record["eccentricity"]
        least, most = found["diameter_at_least"], found["diameter_at_most"]
        if least == most:
            diameter = f"the diameter is {least:,}"
        elif most is not None:
            diameter = f"the diameter is at least {least:,} and at most {most:,}"
        elif found["sources"] == record["graph"]["vertices"]:
            diameter = f"the greatest distance is {least:,}; some vertices do not reach all others"
        else:
            diameter = f"the diameter is at least {least:,}"
        return f"{found['sources']:,} vertices; {diameter}"

    run_and_tell(eccentricity, told, graph, output, **values)
