"""Checks of searches: one source by Graph500's rules, several sources by the definition; and costs
that choose directions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from delegraph.kernels import reference
from delegraph.kernels.bfs.check import Violations, check_edges, check_joined, check_tree
from delegraph.kernels.gpu.search import GpuSearch, widened
from delegraph.pipeline.algorithms.many_sources import SUMS
from delegraph.pipeline.engines.direction import choose

Ends = tuple[np.ndarray, np.ndarray]

DIRECTIONS = {
    "chosen": choose,
    "push": lambda *_: "push",
    "pull": lambda *_: "pull",
    "alternating": lambda forward, *_: ("push", "pull")[forward % 2],
}

PUSH, PULL = 1e-9, 1e9
"""Costs of a push at which every level of a device's search is a push, or a pull."""


def result_of(search: GpuSearch) -> Ends:
    """Return distance (int32, -1 where unreached) and parent of a device's last search."""
    return widened(search.distance.get()), search.parent.get()


def violations_of(src, dst, directed, distance, parent, source, max_depth=None) -> Violations:
    violations = Violations()
    check_tree(distance, parent, source, max_depth, violations)
    joined = np.zeros(len(distance), np.uint8)
    blocks = [(src, dst)] if directed else [(src, dst), (dst, src)]
    for u, v in blocks:
        args = np.asarray(u, np.uint32), np.asarray(v, np.uint32)
        check_edges(*args, distance, parent, max_depth, joined, violations)
    check_joined(parent, joined, violations)
    return violations


def check_sums(ends: Ends, vertices: int, columns: Mapping[str, np.ndarray]) -> None:
    """Check sums of distances, which are the same to the last bit on every engine. ends: sources
    and targets of directed edges, in the direction of a search.
    """
    for i, source in enumerate(columns["source"].tolist()):
        distance = reference.distances(*ends, vertices, source, directed=True)
        reached = distance[distance >= 0]
        counts, harmonic = np.bincount(reached).tolist(), 0.0
        for level, count in enumerate(counts[1:], 1):  # Python 3.12's sum adds up in another way
            harmonic += count / level
        assert harmonic == pytest.approx((1 / reached[reached > 0]).sum(), rel=1e-12)
        sums = [columns[name][i] for name in SUMS]
        assert sums == [len(reached), reached.sum(), reached.max(), harmonic]


def check_distances(
    ends: Ends, vertices: int, sources: np.ndarray, most: int, columns: Mapping[str, np.ndarray]
) -> None:
    """Check distances by ``DistanceBits``, from searches together or apart. most: greatest
    level.
    """
    for i, source in enumerate(sources.tolist()):
        distance = reference.distances(*ends, vertices, source, directed=True)
        distance[distance > most] = -1
        if "reached" in columns:
            bits = [words for name, words in columns.items() if name.startswith("bit")]
            hops = sum(((words >> i & 1).astype(int) << k for k, words in enumerate(bits)), 0)
            hops = np.where(columns["reached"] >> i & 1, hops, -1)
        else:
            values = columns[f"distance{i}"]
            hops = np.where(values == np.iinfo(values.dtype).max, -1, values.astype(int))
        assert (hops == distance).all()


def check_nearest(
    ends: Ends, vertices: int, sources: np.ndarray, most: int, columns: Mapping[str, np.ndarray]
) -> None:
    """Check distances and nearest sources by ``NearestSourceProgram``."""
    distance, nearest = reference.nearest(*ends, vertices, sources)
    nearest[distance > most] = distance[distance > most] = -1
    assert (columns["distance"] == distance).all()
    assert (columns["nearest"] == nearest.astype(np.uint32)).all()
