"""NetworkX's functions by delegraph. Each has the arguments of NetworkX's, and its answer: the same
numbers, but for the rounding of sums; dicts and sets of Python's own numbers, in its order.

Of nodes that are as near as each other NetworkX's order says in which order it has met them; here
they stand in the order of the graph. Where else an answer would be another one, ``can_run`` says
why not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...partition.input.arrow import as_numpy
from ..algorithms.many_sources import Distances, DistancesQuestion, Sources
from ..parameter_checks import AnyVertex
from ..results.weights import TypedVertices
from .converted import ConvertedGraph, Node, convert_from_nx, convert_to_nx

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

OLDEST = 3, 6
"""Of NetworkX: sampled betweenness was another number before."""


# Components.


def connected_components(G: ConvertedGraph) -> Iterator[set[Node]]:
    if not G:
        return
    label = _labels(G)
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    for numbers in np.split(order, first[1:]):
        yield _nodes(G, numbers)


def number_connected_components(G: ConvertedGraph) -> int:
    return len(np.unique(_labels(G))) if G else 0


def is_connected(G: ConvertedGraph) -> bool:
    if not G:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G) == 1


def node_connected_component(G: ConvertedGraph, n: Node) -> set[Node]:
    number = G.number[n]
    label = _labels(G)
    return _nodes(G, np.flatnonzero(label == label[number]))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def _labels(G: ConvertedGraph) -> NDArray[np.int64]:
    """By node, the first one of its component."""
    return as_numpy(G.graph.components()["component"]).astype(np.int64)


def _nodes(G: ConvertedGraph, numbers: NDArray) -> set[Node]:
    return set(map(G.nodes.__getitem__, numbers.tolist()))


# Searches from one node.


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Node, cutoff: float | None = None
) -> dict[Node, int]:
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    return _by_distance(G, _hops(G, source, cutoff))


def single_target_shortest_path_length(
    G: ConvertedGraph, target: Node, cutoff: float | None = None
) -> dict[Node, int]:
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} is not in G")
    return _by_distance(G, _hops(G, target, cutoff))


def descendants(G: ConvertedGraph, source: Node) -> set[Node]:
    if source not in G:
        raise nx.NetworkXError(
            f"The node {source} is not in the {'digraph' if G.is_directed() else 'graph'}."
        )
    return _nodes(G, np.flatnonzero(_hops(G, source) > 0))


def descendants_at_distance(G: ConvertedGraph, source: Node, distance: int) -> set[Node]:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if distance < 0:
        return set()
    return _nodes(G, np.flatnonzero(_hops(G, source, distance) == distance))


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Node, cutoff: float | None = None, weight: Any = "weight"
) -> Mapping[Node, float]:
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if cutoff is not None and cutoff < 0:
        return {source: 0}
    if cutoff == math.inf:
        cutoff = None
    if weight is None or weight != G.weight:  # each edge is 1 long
        most = None if cutoff is None else math.floor(cutoff)
        return single_source_shortest_path_length(G, source, most)
    found = G.graph.sssp(G.number[source], max_distance=cutoff)
    return _by_distance(G, _filled(found["distance"]))


def _hops(G: ConvertedGraph, source: Node, cutoff: float | None = None) -> NDArray[np.int64]:
    """By node; -1: it is not reached, or not by so many."""
    most = None if cutoff in (None, math.inf) else max(0, math.ceil(cutoff))
    found = G.graph.bfs(G.number[source], max_depth=most)
    return _filled(found.distance)


def _filled(distance: pa.ChunkedArray) -> NDArray:
    """-1 where there is none."""
    return as_numpy(pc.call_function("coalesce", [distance, pa.scalar(-1, distance.type)]))


def _by_distance(G: ConvertedGraph, distance: NDArray) -> dict[Node, Any]:
    """Of nodes that are reached, the nearest first."""
    order = np.flatnonzero(distance >= 0)
    order = order[np.argsort(distance[order], kind="stable")]
    reached = map(G.nodes.__getitem__, order.tolist())
    return dict(zip(reached, distance[order].tolist(), strict=True))


# Ranks and centralities.


def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: Mapping[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: None = None,
    weight: str | None = "weight",
    dangling: None = None,
) -> dict[Node, float]:
    if not G:
        return {}
    personalize: dict[AnyVertex, float] | None = None
    if personalization is not None:
        given = personalization.items()
        personalize = {G.number[node]: share for node, share in given if node in G}
        if not any(personalize.values()):
            raise ZeroDivisionError
    found = G.graph.pagerank(
        damping=alpha,
        tolerance=len(G) * tol,
        max_iterations=max_iter,
        personalize=personalize,
        unweighted=weight is None or weight != G.weight,
    )
    if not found.record["pagerank"]["converged"]:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found["pagerank"].to_pylist(), strict=True))


def betweenness_centrality(
    G: ConvertedGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: Random | None = None,
) -> dict[Node, float]:
    if not G:
        return {}
    sources = None
    if k is not None and k != len(G):
        assert seed is not None  # NetworkX gives one
        sources = [G.number[node] for node in seed.sample(list(G), k)]
    found = G.graph.betweenness(sources=sources, normalized=normalized)["betweenness"]
    values = as_numpy(found.fill_null(math.nan))  # of an only source: not known
    return dict(zip(G.nodes, values.tolist(), strict=True))


def closeness_centrality(
    G: ConvertedGraph, u: Node | None = None, distance: None = None, wf_improved: bool = True
) -> Any:
    if u is not None and u not in G:
        raise nx.NodeNotFound(f"Source {u} is not in G")

    def value(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
        others, some = found.reached - 1.0, found.total > 0
        near = np.divide(others, found.total, out=np.zeros(len(others)), where=some)
        return near * (others / max(1, found.vertices - 1) if wf_improved else 1.0), {}

    found = _by_distances(G, None if u is None else [u], "closeness", False, value)
    return found if u is None else found[u]


def eccentricity(G: ConvertedGraph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    def value(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
        return np.where(found.reached < found.vertices, -1, found.farthest), {}

    nodes = None
    if v is not None:
        nodes = [v] if v in G else list(dict.fromkeys(node for node in v if node in G))
    found = _by_distances(G, nodes, "eccentricity", True, value)
    if -1 in found.values():
        why = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {why} connected")
    return found[v] if v in G else found


def diameter(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: None = None
) -> int:
    return max(eccentricity(G).values())


def radius(G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    return min(eccentricity(G).values())


def periphery(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: None = None
) -> list[Node]:
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, hops in found.items() if hops == most]


def _by_distances(
    G: ConvertedGraph,
    nodes: list[Node] | None,
    name: str,
    along: bool,
    value: Callable[[Distances], tuple[NDArray, Mapping[str, Any]]],
) -> dict[Node, Any]:
    """A number for each of some nodes, or of all. along, value: as in DistancesQuestion."""
    if not (G if nodes is None else nodes):
        return {}
    numbers = None if nodes is None else [G.number[node] for node in nodes]
    named = None if numbers is None else TypedVertices(numbers, "nodes")
    result = G.graph.ask(DistancesQuestion(name, Sources(None, 0, named), along, value))
    found = dict(zip(result["vertex"].to_pylist(), result[name].to_pylist(), strict=True))
    return {G.nodes[number]: found[number] for number in numbers or range(len(G))}


# What NetworkX asks beforehand.

Asked = Mapping[str, Any]
"""Arguments by name, the defaults among them; ``G`` may be NetworkX's own."""


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether the answer would be NetworkX's; else why not."""
    if tuple(map(int, nx.__version__.split(".")[:2])) < OLDEST:
        return f"NetworkX {OLDEST[0]}.{OLDEST[1]} or later is needed"
    try:
        asked = signature(globals()[name]).bind(*args, **kwargs)
    except TypeError:
        return True  # and the call says what is wrong with them
    asked.apply_defaults()
    check = _CHECKS.get(name)
    return (check and check(asked.arguments)) or True


def _of_one_source(asked: Asked) -> str | None:
    cutoff = asked["cutoff"]
    if cutoff is not None and (not _is_number(cutoff) or math.isnan(cutoff)):
        return "the cutoff must be a number"
    return None


def _of_one_target(asked: Asked) -> str | None:
    if asked["G"].is_directed():
        return "directed graphs can be searched only along their edges"
    return _of_one_source(asked)


def _at_distance(asked: Asked) -> str | None:
    return None if isinstance(asked["distance"], int) else "the distance must be an integer"


def _dijkstra(asked: Asked) -> str | None:
    return "weights must not be functions" if callable(asked["weight"]) else _of_one_source(asked)


def _pagerank(asked: Asked) -> str | None:
    G, shares, most = asked["G"], asked["personalization"], asked["max_iter"]
    if asked["nstart"] is not None:
        return "nstart is not supported"
    if asked["dangling"] is not None:
        return "dangling is not supported"
    if G.is_multigraph():
        return "parallel edges would count as one"
    if callable(asked["weight"]):
        return "weights must not be functions"
    if not (_is_number(asked["alpha"]) and 0 <= asked["alpha"] < 1):
        return "alpha must be at least 0 and less than 1"
    if not (_is_number(asked["tol"]) and 0 < asked["tol"] * max(1, len(G)) < math.inf):
        return "tol must be positive"
    if not (isinstance(most, int) and most >= 1):
        return "max_iter must be at least 1"
    if shares is not None and not _are_shares(shares):
        return "a personalization must map nodes to numbers that are not negative"
    return "self-loops would not count" if _has_loops(G) else None


def _betweenness(asked: Asked) -> str | None:
    k = asked["k"]
    if asked["weight"] is not None:
        return "weights are not supported"
    if asked["endpoints"]:
        return "endpoints is not supported"
    return None if k is None or (isinstance(k, int) and k >= 1) else "k must be at least 1"


def _closeness(asked: Asked) -> str | None:
    return None if asked["distance"] is None else "distances are counted in edges"


def _eccentricity(asked: Asked) -> str | None:
    v = asked["v"]
    if asked["weight"] is not None:
        return "distances are counted in edges"
    if asked["sp"] is not None:
        return "sp is not supported"
    some = v is None or v in asked["G"] or isinstance(v, (list, tuple, set, frozenset))
    return None if some else "v must be a node, or a list, a tuple or a set of nodes"


def _extreme(asked: Asked) -> str | None:
    if asked["weight"] is not None:
        return "distances are counted in edges"
    if asked["e"] is not None:
        return "e is not supported"
    return (
        "usebounds needs few searches, but delegraph searches from every node"
        if asked["usebounds"]
        else None
    )


_CHECKS: dict[str, Callable[[Asked], str | None]] = {
    "single_source_shortest_path_length": _of_one_source,
    "single_target_shortest_path_length": _of_one_target,
    "descendants_at_distance": _at_distance,
    "single_source_dijkstra_path_length": _dijkstra,
    "pagerank": _pagerank,
    "betweenness_centrality": _betweenness,
    "closeness_centrality": _closeness,
    "eccentricity": _eccentricity,
    "diameter": _extreme,
    "radius": _extreme,
    "periphery": _extreme,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _are_shares(given: Any) -> bool:
    return isinstance(given, Mapping) and all(
        _is_number(share) and 0 <= share < math.inf for share in given.values()
    )


def _has_loops(G: Any) -> bool:
    if isinstance(G, ConvertedGraph):
        return G.has_loops
    return any(node in neighbours for node, neighbours in G.adjacency())


LEAST_WORK = 100_000
"""Nodes and edges that searches pass, all told. Converting a graph takes some 35 ms at least, in
which NetworkX passes about so many (2 cores).
"""

_FROM_ALL = {
    *("betweenness_centrality", "closeness_centrality"),
    *("eccentricity", "diameter", "radius", "periphery"),
}


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Of a graph that NetworkX would convert, as its ``backend_priority`` says."""
    G = args[0] if args else kwargs["G"]
    work = (len(G) + G.number_of_edges()) * (len(G) if name in _FROM_ALL else 1)
    return (
        work >= LEAST_WORK or "the graph is so small that converting it takes longer than answering"
    )
