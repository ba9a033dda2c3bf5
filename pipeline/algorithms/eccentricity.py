"""Eccentricity: the distance from a vertex to the farthest vertex that it reaches.

In a graph of several components it is the distance within the vertex's own component. If only some
vertices were asked for, the greatest eccentricity is a lower bound of the diameter. Twice the least
one is an upper bound, if these vertices reach all others and the graph is undirected. If all
vertices were asked for, and each reaches all others, the greatest eccentricity is the diameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results.weights import NamedVertices
from .many_sources import Distances, DistancesQuestion, sources_of


def eccentricity_of(sources: int | NamedVertices | None, seed: int) -> DistancesQuestion:
    chosen = sources_of(sources, seed)
    return DistancesQuestion("eccentricity", chosen, along=True, value=_eccentricity)


def _eccentricity(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
    farthest = found.farthest
    greatest = int(farthest.max(initial=0))
    reaches_all = found.reached == found.vertices
    most: int | None = None
    if len(farthest) == found.vertices and reaches_all.all():
        most = greatest
    elif reaches_all.any() and not found.directed:
        most = 2 * int(farthest[reaches_all].min())
    bounds = {"diameter_at_least": greatest, "diameter_at_most": most}
    return farthest.astype(np.int32), bounds
