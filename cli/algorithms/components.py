"""``delegraph components``."""

from __future__ import annotations

from typing import Any

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
def components(graph: str, output: str, **values: Any) -> None:
    """Find the connected components of GRAPH, a store or a Parquet edge list, here or at
    s3://...

    Writes the folder OUTPUT with vertex and component of every vertex, and the run's record beside
    it, OUTPUT.run.json. A component is called by its least vertex (of strings, the first in order).
    Edges are taken both ways: components of a directed graph are weakly connected.

    \b
    delegraph components graph.dg -o components/
    delegraph components edges/ -o components/ --memory-limit 2GB

    An edge list is scanned as it comes, where it fits the memory limit; a GPU makes rows of it.
    """
    from ...pipeline.api import components

    def told(record: Any) -> str:
        found = record["components"]
        return f"{found['components']:,} components, the largest of {found['largest']:,} vertices"

    run_and_tell(components, told, graph, output, **values)
