"""``delegraph sssp``."""

from __future__ import annotations

from typing import Any

import click

from .. import options
from ..running import run_and_tell


@options.command()
@options.running
@options.device_if_named
@options.device_memory_limit
@options.weight_options
@click.option("--source", metavar="ID", required=True, help="The vertex that paths begin at.")
@click.option("--max-distance", type=options.Number(), help="Leave out what is farther than that.")
def sssp(graph: str, output: str, **values: Any) -> None:
    """Shortest paths from one vertex of GRAPH, a store or a Parquet edge list, here or at
    s3://..., by its weights.

    Writes the folder OUTPUT with vertex, distance (the least sum of weights of a path; null where
    there is none) and parent (the vertex before it on such a path; null for the source, too), and
    the run's record beside it, OUTPUT.run.json. Distances are floats of 64 bits, or integers where
    the weights are. Of several right parents any one may be named.

    \b
    delegraph build roads/ -o roads.dg --weight metres
    delegraph sssp roads.dg -o paths/ --source 17
    delegraph sssp edges/ -o paths/ --source 17 --weight w --directed

    A weight is a float, rounded to 32 bits, or an integer from 0 to 4,294,967,295.
    """
    from ...pipeline.api import sssp

    def told(record: Any) -> str:
        found, vertices = record["sssp"], record["graph"]["vertices"]
        return (
            f"{found['reached']:,} of {vertices:,} vertices reached from {found['source']}, "
            f"the farthest at {found['farthest']:g}"
        )

    run_and_tell(sssp, told, graph, output, **values)
