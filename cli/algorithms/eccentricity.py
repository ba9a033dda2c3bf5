"""``delegraph eccentricity``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.sources("Tell of some vertices alone:")
def eccentricity(graph: str, output: str, **values: Any) -> None:
    """Eccentricity of vertices of GRAPH, a store or a Parquet edge list, here or at s3://...;
    bounds of its diameter.

    Writes the folder OUTPUT with vertex and eccentricity, the distance in hops to the farthest
    vertex that it reaches (0 if it reaches none), and the run's record beside it, OUTPUT.run.json.

    \b
    delegraph eccentricity graph.dg -o eccentricity/ --sources 64
    delegraph eccentricity edges/ -o eccentricity/

    The diameter is at least the greatest eccentricity found. Of an undirected graph it is at most
    twice the least one of vertices that reach all others. Of all vertices it is the greatest one.
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
            diameter = f"the greatest distance is {least:,}, and some vertices do not reach others"
        else:
            diameter = f"the diameter is at least {least:,}"
        return f"{found['sources']:,} vertices; {diameter}"

    run_and_tell(eccentricity, told, graph, output, **values)
