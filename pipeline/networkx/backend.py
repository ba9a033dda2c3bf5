"""NetworkX's functions, computed by delegraph. Each has NetworkX's arguments, and returns its
answer: the same numbers, but for the rounding of sums; dicts and sets of Python's own numbers, in
its order.

Nodes at the same distance, and strong components, are an exception: NetworkX orders them as it
meets them, delegraph by the order of the graph. Communities are another: those of any two seeds or
programs differ. ``can_run`` refuses all other questions whose answers would differ, and says why.
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
from ..algorithms.katz import GrowingScoresError
from ..algorithms.many_sources import Distances, DistancesQuestion, Sources
from ..parameter_checks import AnyVertex
from ..result import Result
from ..results.weights import TypedVertices
from .converted import ConvertedGraph, Node, convert_from_nx, convert_to_nx

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

OLDEST = 3, 6
"""The oldest version of NetworkX: sampled betweenness was another number before."""


THRESHOLD = 1e-7
"""The least gain of a level of NetworkX's Louvain, unless another one is given."""


# Components.


def connected_components(G: ConvertedGraph) -> Iterator[set[Node]]:
    yield from _groups(G, _labels(G)) if G else ()


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


def strongly_connected_components(G: ConvertedGraph) -> Iterator[set[Node]]:
    yield from _groups(G, _strong_labels(G)) if G else ()


def number_strongly_connected_components(G: ConvertedGraph) -> int:
    return len(np.unique(_strong_labels(G))) if G else 0


def is_strongly_connected(G: ConvertedGraph) -> bool:
    if not G:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_strongly_connected_components(G) == 1


def _labels(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return for each node the first node of its component."""
    return as_numpy(G.graph.components()["component"]).astype(np.int64)


def _strong_labels(G: ConvertedGraph) -> NDArray[np.int64]:
    """Return for each node the first node of its strong component."""
    return as_numpy(G.graph.strong()["component"]).astype(np.int64)


def _groups(G: ConvertedGraph, label: NDArray[np.int64]) -> Iterator[set[Node]]:
    """Yield the nodes of each component, in the order of the components' first nodes."""
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    for numbers in np.split(order, first[1:]):
        yield _nodes(G, numbers)


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
    """Return the distance of each node; -1: not reached, or farther than ``cutoff``."""
    most = None if cutoff in (None, math.inf) else max(0, math.ceil(cutoff))
    found = G.graph.bfs(G.number[source], max_depth=most)
    return _filled(found.distance)


def _filled(distance: pa.ChunkedArray) -> NDArray:
    """Return the distances as an array, with -1 for null."""
    return as_numpy(pc.call_function("coalesce", [distance, pa.scalar(-1, distance.type)]))


def _by_distance(G: ConvertedGraph, distance: NDArray) -> dict[Node, Any]:
    """Return the distances of reached nodes, the nearest first."""
    order = np.flatnonzero(distance >= 0)
    order = order[np.argsort(distance[order], kind="stable")]
    reached = map(G.nodes.__getitem__, order.tolist())
    return dict(zip(reached, distance[order].tolist(), strict=True))


# Cores.


def core_number(G: ConvertedGraph) -> dict[Node, int]:
    if G.has_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return dict(zip(G.nodes, G.graph.cores()["core"].to_pylist(), strict=True)) if G else {}


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
        shares = personalization.items()
        personalize = {G.number[node]: share for node, share in shares if node in G}
        if not any(personalize.values()):
            raise ZeroDivisionError
    found = G.graph.pagerank(
        damping=alpha,
        tolerance=len(G) * tol,
        max_iterations=max_iter,
        personalize=personalize,
        unweighted=weight is None or weight != G.weight,
    )
    return _converged(G, found, "pagerank", max_iter)


def eigenvector_centrality(
    G: ConvertedGraph,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: None = None,
    weight: str | None = None,
) -> dict[Node, float]:
    if not G:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    found = G.graph.eigenvector(
        tolerance=len(G) * tol,
        max_iterations=max_iter,
        unweighted=weight is None or weight != G.weight,
    )
    return _converged(G, found, "eigenvector", max_iter)


def katz_centrality(
    G: ConvertedGraph,
    alpha: float = 0.1,
    beta: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-6,
    nstart: None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> dict[Node, float]:
    if not G:
        return {}
    try:
        found = G.graph.katz(
            alpha=alpha,
            tolerance=tol / beta,  # of scores that begin with 1
            max_iterations=max_iter,
            unweighted=weight is None or weight != G.weight,
        )
    except GrowingScoresError as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    return _converged(G, found, "katz", max_iter)


def _converged(G: ConvertedGraph, found: Result, name: str, max_iter: int) -> dict[Node, float]:
    if not found.record[name]["converged"]:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found[name].to_pylist(), strict=True))


def degree_centrality(G: ConvertedGraph) -> dict[Node, float]:
    columns = ("in_degree", "out_degree") if G.is_directed() else ("degree",)
    return _degree_centrality(G, *columns)


def in_degree_centrality(G: ConvertedGraph) -> dict[Node, float]:
    return _degree_centrality(G, "in_degree")


def out_degree_centrality(G: ConvertedGraph) -> dict[Node, float]:
    return _degree_centrality(G, "out_degree")


def _degree_centrality(G: ConvertedGraph, *columns: str) -> dict[Node, float]:
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    found = G.graph.degree(unweighted=True)
    degrees = np.sum([as_numpy(found[column]) for column in columns], axis=0)
    return dict(zip(G.nodes, (degrees * (1.0 / (len(G) - 1.0))).tolist(), strict=True))


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
    values = as_numpy(found.fill_null(math.nan))  # null: not known of an only source
    return dict(zip(G.nodes, values.tolist(), strict=True))


def closeness_centrality(
    G: ConvertedGraph, u: Node | None = None, distance: None = None, wf_improved: bool = True
) -> Any:
    if u is not None and u not in G:
        raise nx.NodeNotFound(f"Source {u} is not in G")

    def value(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
        others_reached, reaches = found.reached - 1.0, found.total > 0
        near = np.divide(
            others_reached, found.total, out=np.zeros(len(others_reached)), where=reaches
        )
        return near * (others_reached / max(1, found.vertices - 1) if wf_improved else 1.0), {}

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


def harmonic_centrality(
    G: ConvertedGraph, nbunch: None = None, distance: None = None, sources: None = None
) -> dict[Node, float]:
    return _by_distances(G, None, "harmonic", False, lambda found: (found.harmonic, {}))


def _by_distances(
    G: ConvertedGraph,
    nodes: list[Node] | None,
    name: str,
    along: bool,
    value: Callable[[Distances], tuple[NDArray, Mapping[str, Any]]],
) -> dict[Node, Any]:
    """Return a number for each of some nodes, or of all. along, value: as in DistancesQuestion."""
    if not (G if nodes is None else nodes):
        return {}
    numbers = None if nodes is None else [G.number[node] for node in nodes]
    named = None if numbers is None else TypedVertices(numbers, "nodes")
    result = G.graph.ask(DistancesQuestion(name, Sources(None, 0, named), along, value))
    found = dict(zip(result["vertex"].to_pylist(), result[name].to_pylist(), strict=True))
    return {G.nodes[number]: found[number] for number in numbers or range(len(G))}


# Triangles.


def triangles(G: ConvertedGraph, nodes: None = None) -> dict[Node, int]:
    if not G:
        return {}
    return dict(zip(G.nodes, G.graph.clustering()["triangles"].to_pylist(), strict=True))


def clustering(G: ConvertedGraph, nodes: None = None, weight: None = None) -> dict[Node, float]:
    if not G:
        return {}
    shares = G.graph.clustering()["clustering"].to_pylist()
    return {node: share or 0 for node, share in zip(G.nodes, shares, strict=True)}


def average_clustering(
    G: ConvertedGraph, nodes: None = None, weight: None = None, count_zeros: bool = True
) -> float:
    shares = [share for share in clustering(G).values() if share or count_zeros]
    return sum(shares) / len(shares)


def transitivity(G: ConvertedGraph) -> float:
    return (G.graph.clustering().record["clustering"]["transitivity"] if G else 0) or 0


# Communities.


def leiden_communities(
    G: ConvertedGraph,
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Random | None = None,
) -> list[set[Node]]:
    return _communities(G, "leiden", weight, resolution, max_level, seed)


def louvain_communities(
    G: ConvertedGraph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = THRESHOLD,
    max_level: int | None = None,
    seed: Random | None = None,
) -> list[set[Node]]:
    return _communities(G, "louvain", weight, resolution, max_level, seed)


def _communities(
    G: ConvertedGraph,
    method: str,
    weight: str | None,
    resolution: float,
    max_level: int | None,
    seed: Random | None,
) -> list[set[Node]]:
    """Return the communities, in the order of their first nodes."""
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    if not G:
        return []
    assert seed is not None  # NetworkX gives one
    levels = {} if max_level is None else {"max_levels": max_level}
    found = getattr(G.graph, method)(
        resolution=resolution,
        seed=seed.randrange(1 << 32),
        unweighted=weight is None or weight != G.weight,
        **levels,
    )
    return list(_groups(G, as_numpy(found["community"]).astype(np.int64)))


# Checks before NetworkX calls a function.

Arguments = Mapping[str, Any]
"""Arguments by name, the defaults among them; ``G`` may be NetworkX's own."""


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if the answer would be NetworkX's; otherwise the reason why not."""
    if tuple(map(int, nx.__version__.split(".")[:2])) < OLDEST:
        return f"NetworkX {OLDEST[0]}.{OLDEST[1]} or later is needed"
    try:
        bound = signature(globals()[name]).bind(*args, **kwargs)
    except TypeError:
        return True  # the call itself names the wrong argument
    bound.apply_defaults()
    check = _CHECKS.get(name)
    return (check and check(bound.arguments)) or True


def _check_source(arguments: Arguments) -> str | None:
    cutoff = arguments["cutoff"]
    if cutoff is not None and (not _is_number(cutoff) or math.isnan(cutoff)):
        return "the cutoff must be a number"
    return None


def _check_target(arguments: Arguments) -> str | None:
    if arguments["G"].is_directed():
        return "directed graphs can be searched only along their edges"
    return _check_source(arguments)


def _check_distance(arguments: Arguments) -> str | None:
    return None if isinstance(arguments["distance"], int) else "the distance must be an integer"


def _check_dijkstra(arguments: Arguments) -> str | None:
    return (
        "weights must not be functions"
        if callable(arguments["weight"])
        else _check_source(arguments)
    )


def _check_pagerank(arguments: Arguments) -> str | None:
    shares = arguments["personalization"]
    if arguments["dangling"] is not None:
        return "dangling is not supported"
    if arguments["G"].is_multigraph():
        return "parallel edges would count as one"
    if not (_is_number(arguments["alpha"]) and 0 <= arguments["alpha"] < 1):
        return "alpha must be at least 0 and less than 1"
    if shares is not None and not _are_shares(shares):
        return "a personalization must map nodes to numbers that are not negative"
    return _check_scores(arguments)


def _check_scores(arguments: Arguments) -> str | None:
    tolerance, most = arguments["tol"], arguments["max_iter"]
    if arguments["nstart"] is not None:
        return "nstart is not supported"
    if callable(arguments["weight"]):
        return "weights must not be functions"
    if not (_is_number(tolerance) and 0 < tolerance * max(1, len(arguments["G"])) < math.inf):
        return "tol must be positive"
    if not (isinstance(most, int) and most >= 1):
        return "max_iter must be at least 1"
    return _check_loops(arguments)


def _check_katz(arguments: Arguments) -> str | None:
    for name in ("alpha", "beta"):
        if not (_is_number(arguments[name]) and 0 < arguments[name] < math.inf):
            return f"{name} must be a positive number"
    if _is_number(arguments["tol"]) and not 0 < arguments["tol"] / arguments["beta"] < math.inf:
        return "tol must be positive"
    return _check_scores(arguments) if arguments["normalized"] else "scores are always normalized"


def _check_degree(arguments: Arguments) -> str | None:
    if arguments["G"].is_multigraph():
        return "parallel edges would count as one"
    return _check_loops(arguments)


def _check_betweenness(arguments: Arguments) -> str | None:
    k = arguments["k"]
    if arguments["weight"] is not None:
        return "weights are not supported"
    if arguments["endpoints"]:
        return "endpoints is not supported"
    return None if k is None or (isinstance(k, int) and k >= 1) else "k must be at least 1"


def _check_closeness(arguments: Arguments) -> str | None:
    return None if arguments["distance"] is None else "distances are counted in edges"


def _check_harmonic(arguments: Arguments) -> str | None:
    for name in ("nbunch", "sources"):
        if arguments[name] is not None:
            return f"{name} is not supported"
    return _check_closeness(arguments)


def _check_eccentricity(arguments: Arguments) -> str | None:
    v = arguments["v"]
    if arguments["weight"] is not None:
        return "distances are counted in edges"
    if arguments["sp"] is not None:
        return "sp is not supported"
    fits = v is None or v in arguments["G"] or isinstance(v, (list, tuple, set, frozenset))
    return None if fits else "v must be a node, or a list, a tuple or a set of nodes"


def _check_extreme(arguments: Arguments) -> str | None:
    if arguments["weight"] is not None:
        return "distances are counted in edges"
    if arguments["e"] is not None:
        return "e is not supported"
    return (
        "usebounds needs few searches, but delegraph searches from every node"
        if arguments["usebounds"]
        else None
    )


def _check_triangles(arguments: Arguments) -> str | None:
    return None if arguments["nodes"] is None else "triangles are counted at all nodes"


def _check_clustering(arguments: Arguments) -> str | None:
    if arguments["G"].is_directed():
        return "triangles of directed graphs are counted in another way"
    if arguments["G"].is_multigraph():
        return "NetworkX refuses multigraphs"
    if arguments.get("weight") is not None:
        return "weights are not supported"
    return _check_triangles({"nodes": None, **arguments})


def _check_communities(arguments: Arguments) -> str | None:
    resolution, most = arguments["resolution"], arguments["max_level"]
    if arguments["G"].is_directed():
        return "directed graphs have another modularity"
    if arguments["G"].is_multigraph():
        return "parallel edges would count as one"
    if callable(arguments["weight"]):
        return "weights must not be functions"
    if not (_is_number(resolution) and 0 <= resolution < math.inf):
        return "the resolution must be a number that is not negative"
    if not (most is None or isinstance(most, int)):
        return "max_level must be an integer"
    if arguments.get("threshold", THRESHOLD) != THRESHOLD:
        return "threshold is not supported"
    return _check_loops(arguments)


_CHECKS: dict[str, Callable[[Arguments], str | None]] = {
    "single_source_shortest_path_length": _check_source,
    "single_target_shortest_path_length": _check_target,
    "descendants_at_distance": _check_distance,
    "single_source_dijkstra_path_length": _check_dijkstra,
    "pagerank": _check_pagerank,
    "eigenvector_centrality": _check_scores,
    "katz_centrality": _check_katz,
    "degree_centrality": _check_degree,
    "in_degree_centrality": _check_degree,
    "out_degree_centrality": _check_degree,
    "betweenness_centrality": _check_betweenness,
    "closeness_centrality": _check_closeness,
    "harmonic_centrality": _check_harmonic,
    "eccentricity": _check_eccentricity,
    "diameter": _check_extreme,
    "radius": _check_extreme,
    "periphery": _check_extreme,
    "triangles": _check_triangles,
    "clustering": _check_clustering,
    "average_clustering": _check_clustering,
    "transitivity": _check_clustering,
    "leiden_communities": _check_communities,
    "louvain_communities": _check_communities,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _are_shares(values: Any) -> bool:
    return isinstance(values, Mapping) and all(
        _is_number(share) and 0 <= share < math.inf for share in values.values()
    )


def _check_loops(arguments: Arguments) -> str | None:
    """Refuse a graph that was converted with weights and lost self-loops: NetworkX counts these
    where it does not look at weights.
    """
    G = arguments["G"]
    if not isinstance(G, ConvertedGraph) or arguments.get("weight") == G.weight:
        return None
    return "self-loops of weight 0 would not count" if G.has_lost_loops else None


LEAST_WORK = 100_000
"""Nodes and edges that searches pass, all told. Converting a graph takes some 35 ms at least, in
which NetworkX passes about so many (2 cores).
"""

_FROM_ALL = {
    *("betweenness_centrality", "closeness_centrality", "harmonic_centrality"),
    *("eccentricity", "diameter", "radius", "periphery"),
}


_COUNTED = {"degree_centrality", "in_degree_centrality", "out_degree_centrality"}
"""Functions that read one number of each node."""


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if delegraph answers faster, its conversion included; otherwise the reason.
    NetworkX calls this for a graph that it would convert, as its ``backend_priority`` says.
    """
    if name in _COUNTED:
        return "converting the graph takes longer than answering"
    G = args[0] if args else kwargs["G"]
    work = (len(G) + G.number_of_edges()) * (len(G) if name in _FROM_ALL else 1)
    return (
        work >= LEAST_WORK or "the graph is so small that converting it takes longer than answering"
    )
