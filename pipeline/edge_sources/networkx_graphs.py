"""Batches of edges from a graph of NetworkX.

An isolated node is marked by a self-loop, as in all edge lists; a build drops the loop and keeps
the vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from ...partition.errors import InputError
from .pairs import batches_of_pairs


def batches_of_networkx(graph: Any, weight: str | None, directed: bool) -> Iterator[list[pa.Array]]:
    """Yield the edges of a graph, and a self-loop for each isolated node.

    weight: an edge attribute; an edge without it weighs 1, as in NetworkX. directed: whether edges
    are read as directed ones; an undirected graph then has each edge in both directions, as
    NetworkX's ``to_directed`` makes them.

    Raises InputError for nodes that are neither integers nor strings, for weights that are no
    numbers, and if no edge has the attribute.
    """
    if weight is None:
        edges = graph.edges()
        loops = ((node, node) for node, degree in graph.degree() if not degree)
    else:
        _check_attribute(graph, weight)
        edges = graph.edges(data=weight, default=1)
        loops = ((node, node, 0) for node, degree in graph.degree() if not degree)
    if directed and not graph.is_directed():
        edges = chain.from_iterable(
            ((u, v, *weights), (v, u, *weights)) if u != v else ((u, v, *weights),)
            for u, v, *weights in edges
        )
    yield from batches_of_pairs(chain(edges, loops), weight is not None)


def _check_attribute(graph: Any, weight: str) -> None:
    """Raise InputError if there are edges, and none has the attribute."""
    missing = object()
    found = (value for *_, value in graph.edges(data=weight, default=missing))
    if graph.number_of_edges() and all(value is missing for value in found):
        raise InputError(f"no edge of the graph has the attribute {weight!r}, to be its weight")
