"""What NetworkX is told of the backend, when it is imported itself: so nothing is loaded here."""

from __future__ import annotations

from typing import Any

_DISTANCES = "Nodes as near stand in the order of the graph."
_COMPONENTS = "In the order of NetworkX."
_EVERY = "Searches from all nodes, 64 at once. Without weights, of all nodes or of some."

FUNCTIONS = {
    "connected_components": _COMPONENTS,
    "number_connected_components": "",
    "is_connected": "",
    "node_connected_component": "",
    "weakly_connected_components": _COMPONENTS,
    "number_weakly_connected_components": "",
    "is_weakly_connected": "",
    "single_source_shortest_path_length": _DISTANCES,
    "single_target_shortest_path_length": f"Of undirected graphs. {_DISTANCES}",
    "descendants": "",
    "descendants_at_distance": "",
    "single_source_dijkstra_path_length": (
        "Weights are integers below 2**32, or floats that 32 bits hold exactly; not negative, and "
        f"no functions. {_DISTANCES}"
    ),
    "pagerank": (
        "Weights as of single_source_dijkstra_path_length. Neither ``nstart`` nor ``dangling``; "
        "graphs without parallel edges and self-loops."
    ),
    "betweenness_centrality": "Without weights and endpoints.",
    "closeness_centrality": _EVERY,
    "eccentricity": f"{_EVERY} ``sp`` is not taken.",
    "diameter": "Neither weights nor ``e``; ``usebounds`` is left to NetworkX.",
    "radius": "Neither weights nor ``e``; ``usebounds`` is left to NetworkX.",
    "periphery": "Neither weights nor ``e``; ``usebounds`` is left to NetworkX.",
}
"""The functions, and what is added to the documentation of each."""


def get_info() -> dict[str, Any]:
    """For the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "delegraph",
        "project": "delegraph",
        "package": "delegraph",
        "short_summary": "On all cores, within a memory limit.",
        "default_config": {"memory_limit": None, "threads": None},
        "functions": {
            name: {"additional_docs": told} if told else {} for name, told in FUNCTIONS.items()
        },
    }
