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
    """Find the connected components of GRAPH.

    GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

    \b
    delegraph components graph.dg -o components/
    delegraph components edges/ -o components/ --memory-limit 2GB

    OUTPUT has the columns vertex and component. A component is named by its least vertex; if ids
    are strings, this is the first in sorted order. Edges count both ways, so the components of a
    directed graph are the weakly connected ones. The run record stands beside OUTPUT:
    OUTPUT.run.json.

    An edge list that fits in memory is read once, and needs no store.
    """
    from ...pipeline.api import components

    def told(record: Any) -> str:
        found = record["components"]
        return f"{found['components']:,} components; the largest has {found['largest']:,} vertices"

    run_and_tell(components, told, graph, output, **values)
