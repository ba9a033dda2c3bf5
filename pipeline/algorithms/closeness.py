"""Closeness centrality: how near a vertex is to those that reach it.

    closeness = (r - 1) / (sum of distances) * (r - 1) / (n - 1)

of a vertex that r vertices reach, itself among them, out of n: by distances along edges that lead
to it, scaled by Wasserman and Faust for graphs of several components (as NetworkX does by default).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results.weights import NamedVertices
from .many_sources import Distances, DistancesQuestion, sources_of


def closeness_of(sources: int | NamedVertices | None, seed: int) -> DistancesQuestion:
    return DistancesQuestion("closeness", sources_of(sources, seed), along=False, value=_closeness)


def _closeness(found: Distances) -> tuple[NDArray, Mapping[str, Any]]:
    others_reached, reaches = found.reached - 1.0, found.total > 0
    most = found.total * float(max(1, found.vertices - 1))
    return np.divide(others_reached**2, most, out=np.zeros(len(others_reached)), where=reaches), {}
