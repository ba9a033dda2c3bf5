"""``delegraph eccentricity``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.sources("Compute the values of some vertices only:")
@options.running
@options.device_if_named
@options.device_memory_limit
def eccentricity(graph: str, output: str, **values: Any) -> None:
    """Compute eccentricity: each vertex's distance to the farthest vertex that it reaches.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph eccentricity graph.dg -o eccentricity/ --sources 64
    delegraph eccentricity edges/ -o eccentricity/

    OUTPUT has the columns vertex and eccentricity. Distances are in hops; the value is 0 if the
    vertex reaches no other one. The run record stands beside OUTPUT: OUTPUT.run.json.

    The command also prints bounds of the diameter. It is at least the greatest eccentricity found.
    In an undirected graph it is at most twice the least eccentricity of a vertex that reaches all
    others. The values of all vertices give the diameter itself.
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
