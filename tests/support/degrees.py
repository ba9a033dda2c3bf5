"""Programs for degrees, and checks of what they give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from delegraph.kernels import reference
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.degree import Degree, DegreeProgram

from .graphs import edges_of
from .paths import entries_of


def degree_program(store: Store, unweighted: bool = False) -> DegreeProgram:
    return Degree(unweighted).planned(store.info)


def wanted_degrees(store: Store, unweighted: bool = False) -> dict[str, np.ndarray]:
    """Return degrees by the definition, by global id."""
    n, ends = store.info.vertices, 1 if store.info.directed else 2
    u, v = edges_of(store, loops=ends)
    kinds = {"": reference.degrees(u, v, n)}
    if store.info.weights is not None and not unweighted:
        u, v, weight = entries_of(store, loops=ends)
        kinds["weighted_"] = reference.degrees(u, v, n, weight.astype(np.float64))
    ways = ("in_", "out_") if store.info.directed else ("",)
    return {
        f"{kind}{way}degree": values
        for kind, found in kinds.items()
        for way, values in zip(ways, found, strict=False)
    }


def check_degrees(
    store: Store, columns: Mapping[str, np.ndarray], unweighted: bool = False
) -> None:
    """Check degrees by the definition: numbers exactly, and sums of floats up to rounding."""
    wanted = wanted_degrees(store, unweighted)
    assert list(columns) == list(wanted)
    for name, values in wanted.items():
        if name.startswith("weighted"):
            np.testing.assert_allclose(columns[name], values, rtol=1e-11, atol=1e-300)
        else:
            assert columns[name].dtype == np.uint32
            assert np.array_equal(columns[name], values)
