"""Batches of edges from a graph of NetworkX.

An isolated node is marked by a self-loop, as in all edge lists; a build drops the loop and keeps
the vertex. Where self-loops are kept, the loop has the weight 0, which makes it none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from ...partition.errors import InputError
from .pairs import batches_of_pairs


def batches_of_networkx(
    graph: Any, weight: str | None, directed: bool, ones: bool = False
) -> Iterator[list[pa.Array]]:
    """Yield the edges of a graph, and a self-loop for each isolated node.

    weight: an edge attribute; an edge without it weighs 1, as in NetworkX. directed: whether edges
    are read as directed ones; an undirected graph then has each edge in both directions, as
    NetworkX's ``to_directed`` makes them. ones: without an attribute, edges have the weight 1, and
    isolated nodes' self-loops 0.

    Raises InputError for nodes that are neither integers nor strings, for weights that are no
    numbers, and if no edge has the attribute.
    """
    weighted = ones or weight is not None
    if weight is not None:
        _check_attribute(graph, weight)
        edges = graph.edges(data=weight, default=1)
    else:
        edges = ((u, v, 1) for u, v in graph.edges()) if ones else graph.edges()
    mark = (0,) if weighted else ()
    loops = ((node, node, *mark) for node, degree in graph.degree() if not degree)
    if directed and not graph.is_directed():
        edges = chain.from_iterable(
            ((u, v, *weights), (v, u, *weights)) if u != v else ((u, v, *weights),)
            for u, v, *weights in edges
        )
    yield from batches_of_pairs(chain(edges, loops), weighted)


def _check_attribute(graph: Any, weight: str) -> None:
    """Raise InputError if there are edges, and none has the attribute."""
    missing = object()
    found = (value for *_, value in graph.edges(data=weight, default=missing))
    if graph.number_of_edges() and all(value is missing for value in found):
        raise InputError(f"no edge of the graph has the attribute {weight!r}, to be its weight")
