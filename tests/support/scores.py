"""Programs for HITS, eigenvector and Katz centrality, and checks of what they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from delegraph.kernels import reference
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.eigenvector import EigenvectorProgram
from delegraph.pipeline.algorithms.hits import HitsProgram
from delegraph.pipeline.algorithms.iterations import ScoresProgram, Stop
from delegraph.pipeline.algorithms.katz import KatzProgram
from delegraph.pipeline.questions.katz import BOUNDING_STEPS, OF_BOUND

from .graphs import edges_of
from .paths import entries_of

ALPHA = 0.01

Columns = Mapping[str, np.ndarray]


def _hits(store: Store, stop: Stop) -> ScoresProgram:
    return HitsProgram(store.info.vertices, stop, _weights(store))


def _eigenvector(store: Store, stop: Stop) -> ScoresProgram:
    return EigenvectorProgram(store.info.vertices, stop, _weights(store))


def _katz(store: Store, stop: Stop) -> ScoresProgram:
    return KatzProgram(store.info.vertices, stop, _weights(store), ALPHA)


def _weights(store: Store):
    return None if store.info.weights is None else store.info.weights.kind


PROGRAMS: dict[str, Callable[[Store, Stop], ScoresProgram]] = {
    "hits": _hits,
    "eigenvector": _eigenvector,
    "katz": _katz,
}


def scores_program(name: str, store: Store, most: int = 7, tolerance: float | None = None):
    return PROGRAMS[name](store, Stop(most, tolerance))


def wanted_scores(name: str, store: Store, iterations: int = 7) -> Columns:
    """Return the scores by the definition, by global id."""
    n, weight = store.info.vertices, None
    if store.info.weights is None:
        u, v = edges_of(store, loops=1)
    else:
        u, v, weight = entries_of(store, loops=1)
    if name == "hits":
        hub, authority = reference.hits(u, v, n, iterations, weight)
        return {"hub": hub, "authority": authority}
    if name == "eigenvector":
        return {name: reference.eigenvector(u, v, n, iterations, weight)}
    return {name: reference.katz(u, v, n, ALPHA, iterations, weight)}


def check_scores(name: str, store: Store, columns: Columns, iterations: int = 7) -> None:
    """Check scores by the definition after as many iterations. (Its own sums, of one edge after the
    other, are off by some 1e-12 at a hub.)
    """
    wanted = wanted_scores(name, store, iterations)
    assert list(columns) == list(wanted)
    for column, scores in wanted.items():
        np.testing.assert_allclose(columns[column], scores, rtol=1e-11, atol=1e-300)


def chosen_alpha(store: Store) -> float:
    """Return the alpha that a Katz centrality chooses, by its definition; 0 without edges."""
    n, weight = store.info.vertices, np.ones(1)
    if store.info.weights is None:
        u, v = edges_of(store, loops=1)
    else:
        u, v, weight = entries_of(store, loops=1)

    def sums(x: np.ndarray) -> np.ndarray:
        came = np.zeros(n)
        np.add.at(came, v, x[u] * weight)
        return came

    degree = sums(np.ones(n))
    if not degree.any():
        return 0.0
    x = np.sqrt(np.maximum(degree, degree[degree > 0].min()))
    ratios = []
    for _ in range(BOUNDING_STEPS):
        ratios.append((sums(x) / x).max())
        x = (sums(x) + x) / (ratios[-1] + 1)
    return OF_BOUND / min(ratios)
