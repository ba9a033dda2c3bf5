"""Description of the backend that NetworkX reads when it is imported, so this module loads nothing
else.
"""

from __future__ import annotations

from typing import Any

_DISTANCES = "Nodes at the same distance come in the order of the graph."
_COMPONENTS = "Components come in the order of NetworkX."
_EVERY = (
    "Searches from all nodes, 64 at once. Weights are not supported. Computes all nodes or some."
)
_SIMPLE = "Only for graphs that are converted already. Parallel edges are not supported."
_CLUSTERING = (
    "``nodes`` and ``weight`` are not supported. Only for undirected graphs without parallel edges."
)
_COMMUNITIES = (
    "Only for undirected graphs without parallel edges. Weights must be those that "
    "single_source_dijkstra_path_length takes. Communities come in the order of their first nodes."
)
_EXTREME = "``weight``, ``e`` and ``usebounds`` are not supported."

FUNCTIONS = {
    "connected_components": _COMPONENTS,
    "number_connected_components": "",
    "is_connected": "",
    "node_connected_component": "",
    "weakly_connected_components": _COMPONENTS,
    "number_weakly_connected_components": "",
    "is_weakly_connected": "",
    "core_number": "",
    "strongly_connected_components": "Components come in the order of their first nodes.",
    "number_strongly_connected_components": "",
    "is_strongly_connected": "",
    "single_source_shortest_path_length": _DISTANCES,
    "single_target_shortest_path_length": f"Only for undirected graphs. {_DISTANCES}",
    "descendants": "",
    "descendants_at_distance": "",
    "single_source_dijkstra_path_length": (
        "Weights must be non-negative: integers below 2**32, or floats that 32 bits hold exactly. "
        f"A function is not supported. {_DISTANCES}"
    ),
    "pagerank": (
        "Weights must be those that single_source_dijkstra_path_length takes. ``nstart``, "
        "``dangling`` and parallel edges are not supported."
    ),
    "eigenvector_centrality": (
        "Weights must be those that single_source_dijkstra_path_length takes. ``nstart`` is "
        "not supported."
    ),
    "katz_centrality": (
        "Weights must be those that single_source_dijkstra_path_length takes. ``nstart``, "
        "``normalized=False``, and an ``alpha`` or a ``beta`` that is not a positive number are "
        "not supported."
    ),
    "degree_centrality": _SIMPLE,
    "in_degree_centrality": _SIMPLE,
    "out_degree_centrality": _SIMPLE,
    "betweenness_centrality": "``weight`` and ``endpoints`` are not supported.",
    "closeness_centrality": _EVERY,
    "harmonic_centrality": (
        "Searches from all nodes, 64 at once. ``nbunch``, ``distance`` and ``sources`` are not "
        "supported."
    ),
    "eccentricity": f"{_EVERY} ``sp`` is not supported.",
    "diameter": _EXTREME,
    "radius": _EXTREME,
    "periphery": _EXTREME,
    "triangles": "``nodes`` is not supported.",
    "clustering": _CLUSTERING,
    "average_clustering": _CLUSTERING,
    "transitivity": "Only for undirected graphs without parallel edges.",
    "leiden_communities": _COMMUNITIES,
    "louvain_communities": f"{_COMMUNITIES} ``threshold`` is not supported.",
}
"""The functions, and what is added to the documentation of each."""


def get_info() -> dict[str, Any]:
    """Return the description for the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "delegraph",
        "project": "delegraph",
        "package": "delegraph",
        "short_summary": "Runs on all cores, within a memory limit.",
        "default_config": {"memory_limit": None, "threads": None},
        "functions": {
            name: {"additional_docs": told} if told else {} for name, told in FUNCTIONS.items()
        },
    }
