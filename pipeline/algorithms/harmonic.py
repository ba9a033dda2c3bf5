"""Harmonic centrality: the sum of 1 over the distance to a vertex from each other one.

    harmonic(v) = sum over u != v of 1 / d(u, v)

Distances are along edges that lead to v. A vertex that does not reach v adds 0, so the sum also
suits graphs of several components (Boldi, Vigna: Axioms for Centrality, Internet Mathematics 10,
2014, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from ..results.weights import NamedVertices
from .many_sources import Distances, DistancesQuestion, sources_of


def harmonic_of(
    sources: int | NamedVertices | None, seed: int, normalized: bool
) -> DistancesQuestion:
    """Return the question. normalized: whether to divide by the number of other vertices."""
    value, options = partial(_harmonic, normalized), {"normalized": normalized}
    return DistancesQuestion("harmonic", sources_of(sources, seed), False, value, options)


def _harmonic(normalized: bool, found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
    return found.harmonic / (max(1, found.vertices - 1) if normalized else 1), {}
