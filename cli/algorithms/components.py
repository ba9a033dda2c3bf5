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

    GRAPH is a store or a Parquet edge list; the edge list may be an s3://, gs:// or abfs:// URL.

    The result OUTPUT has the columns vertex and component, with a row for every vertex. component
    is the smallest id in the component; for string ids, the first id in sorted order. Edges count
    both ways, so the components of a directed graph are its weakly connected components.
    OUTPUT.run.json records the run.

    \b
    delegraph components graph.dg -o components/
    delegraph components edges/ -o components/ --memory-limit 2GB

    An edge list that fits the memory limit is scanned without sorting its rows. A GPU sorts the
    rows first.
    """
    from ...pipeline.api import components

    def told(record: Any) -> str:
        found = record["components"]
        return f"{found['components']:,} components; the largest has {found['largest']:,} vertices"

    run_and_tell(components, told, graph, output, **values)
