"""Programs for shortest paths, and checks of the paths that they find."""

from __future__ import annotations

import numpy as np

from delegraph.kernels import reference
from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.sssp import DeltaStepping

from .graphs import loops_of

WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "ties": lambda rng, m: rng.integers(0, 3, m),
    "nothing": lambda rng, m: np.zeros(m, np.int64),
    "far apart": lambda rng, m: (10.0 ** rng.integers(-30, 20, m)).astype(np.float32),
    "integers": lambda rng, m: rng.integers(0, 1 << 32, m),
}


def entries_of(store: Store, loops: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all edges as ``edges_of`` does, with their weights."""
    looped, weights = loops_of(store)
    batches = [*store.weighted_batches(Team(1)), *[(looped, looped, weights)] * loops]
    return tuple(np.concatenate(column) for column in zip(*batches, strict=True))  # pyright: ignore


def program_of(store: Store, source: int, most: float = np.inf) -> DeltaStepping:
    assert store.info.weights is not None
    return DeltaStepping(source, store.info.weights, 3.0, most)


def check_paths(
    store: Store, columns: dict[str, np.ndarray], source: int, most: float = np.inf
) -> None:
    """Check distances by the definition, and that parents lead along edges of the right weight up
    to the source.
    """
    n = store.info.vertices
    u, v, w = entries_of(store)
    wanted = reference.shortest_paths(u, v, w, n, source)
    wanted[wanted > most] = np.inf
    distance, parent = columns["distance"], columns["parent"]
    assert (distance == wanted).all()
    reached = np.isfinite(distance)
    assert parent[source] == UNREACHED
    assert (parent[~reached] == UNREACHED).all()
    children = np.flatnonzero(reached & (np.arange(n) != source))
    above = parent[children].astype(np.int64)
    keys = u.astype(np.int64) * n + v
    order = np.argsort(keys)
    at = order[np.searchsorted(keys, above * n + children, sorter=order).clip(max=len(keys) - 1)]
    assert (keys[at] == above * n + children).all()
    assert (distance[above] + w[at].astype(np.float64) == distance[children]).all()
    ancestor = np.full(n, source)
    ancestor[children] = above
    for _ in range(n.bit_length()):  # twice as far each time
        ancestor = ancestor[ancestor]
    assert (ancestor == source).all()
