"""Answers by the definitions (kernels/reference.py), by global id, for tests of several engines."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.truss import TrussProgram
from delegraph.pipeline.questions.labels import weight_scale

from .graphs import edges_of
from .paths import entries_of
from .programs import run_program

_FEW_EDGES = 1000

LABEL_WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "ties": lambda rng, m: rng.integers(0, 3, m),
    "great": lambda rng, m: rng.integers(1 << 31, 1 << 32, m),
    "far apart": lambda rng, m: np.float32(2) ** rng.integers(-100, 100, m),
    "nothing": lambda rng, m: np.zeros(m, np.int64),
}


def wanted_cores(store: Store) -> tuple[np.ndarray, int]:
    """Return the core numbers and the number of rounds by the definition, by global id."""
    u, v = edges_of(store)
    once = np.ones(len(u), np.bool_) if store.info.directed else u < v
    return reference.cores(u[once], v[once], store.info.vertices)


def wanted_labels(store: Store, iterations: int = 5) -> np.ndarray:
    """Return the labels by the definition, by global id, as global ids."""
    order, amounts = store.id_order(Team(1)), None
    number = np.argsort(order)
    if store.info.weights is None:
        u, v = edges_of(store)
    else:
        u, v, weight = entries_of(store)
        floats = store.info.weights.kind == "float32"
        scale = weight_scale(float(weight.max(initial=0)), len(order), floats)
        amounts = np.rint(weight.astype(np.float64) * scale).astype(np.int64)
    label = reference.label_propagation(number[u], number[v], len(order), iterations, amounts)
    return order[label[number]]


def least_of(component: np.ndarray) -> np.ndarray:
    """Return the least vertex of each vertex's component."""
    least = np.full(len(component), len(component))
    np.minimum.at(least, component, np.arange(len(component)))
    return least[component]


def truss_of(columns: Mapping[str, np.ndarray]) -> dict[tuple[int, int], int]:
    """Return the truss numbers of a result, by the ends of each edge, the lesser first."""
    src, dst, numbers = (columns[name] for name in TrussProgram.columns)
    ends = list(zip(np.minimum(src, dst).tolist(), np.maximum(src, dst).tolist(), strict=True))
    assert len(set(ends)) == len(ends)
    return dict(zip(ends, numbers.tolist(), strict=True))


def wanted_truss(store: Store) -> tuple[dict[tuple[int, int], int], int]:
    """Return the truss numbers, of few edges by the definition, otherwise by a CPU, and the number
    of rounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        columns, results = run_program(store, TrussProgram(store.info.edges), Path(folder) / "out")
    numbers = truss_of(columns)
    if len(numbers) <= _FEW_EDGES:
        assert numbers == reference.truss_numbers(*edges_of(store))
    return numbers, results[0].record["rounds"]


def check_forest(
    store: Store, found: Mapping[str, np.ndarray], weighted: bool | None = None
) -> None:
    """Check the columns of a forest by the definition. weighted: whether weights count; None: if
    there are any.
    """
    n = store.info.vertices
    weighted = store.info.weights is not None if weighted is None else weighted
    order = store.id_order(Team(1))
    number = np.argsort(order)
    u, v, *weight = entries_of(store) if weighted else edges_of(store)
    bits = np.ascontiguousarray(weight[0]).view(np.uint32) if weighted else None
    src, dst, wanted = reference.spanning_forest(number[u], number[v], n, bits)
    assert np.array_equal(found["src"], order[src])
    assert np.array_equal(found["dst"], order[dst])
    if weighted:
        weights = found["weight"]
        bits = weights.view(np.uint32) if weights.dtype.kind == "f" else weights
        assert np.array_equal(bits, wanted)
