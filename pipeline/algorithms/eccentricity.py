"""Eccentricity: the distance to the farthest vertex that one reaches.

In a graph of several components it is that within the vertex's own. The greatest one of some
vertices is a lower bound of the diameter; twice the least one, of vertices that reach all others of
an undirected graph, an upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .many_sources import ByDistances, Distances, Sources


def eccentricity_of(sources: Sources) -> ByDistances:
    return ByDistances("eccentricity", sources, along=True, value=_eccentricity)


def _eccentricity(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
    farthest = found.farthest
    to_all = farthest[(found.reached == found.vertices) & (not found.directed)]
    bounds = {
        "diameter_at_least": int(farthest.max(initial=0)),
        "diameter_at_most": 2 * int(to_all.min()) if len(to_all) else None,
    }
    return farthest.astype(np.int32), bounds
