"""Paths between pairs of vertices against their definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.path import PathsProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import edges_of, graphs, grid, store_options
from support.paths import WEIGHTS, entries_of
from support.programs import run_program, stored


def program_of(store: Store, nodes: bool, pairs: int = 12) -> PathsProgram:
    """Return the program for random pairs, several of which have one source."""
    rng, n = np.random.default_rng(1), store.info.vertices
    source, target = rng.integers(0, n, (2, pairs)).astype(np.uint32)
    source[: pairs // 3] = source[0]
    return PathsProgram(source, target, store.info.weights, 3.0, nodes)


def check(
    store: Store,
    folder: Path,
    program: PathsProgram,
    ranks: int = 1,
    on_disk: bool = False,
    **options: Any,
) -> Any:
    """Check distances and paths, and return the run's record."""
    found, results = run_program(store, program, folder, ranks, on_disk, **options)
    n = store.info.vertices
    u, v, w = entries_of(store) if program.weighted else (*edges_of(store), None)
    w = np.ones(len(u)) if w is None else w.astype(np.float64)
    paths = _paths_of(found) if program.nodes else [None] * len(program.source)
    number = np.argsort(store.id_order(Team(1)))
    weights = dict(zip(zip(u.tolist(), v.tolist(), strict=True), w.tolist(), strict=True))
    pairs = zip(program.source, program.target, found["distance"], paths, strict=True)
    for source, target, distance, path in pairs:
        wanted = reference.shortest_paths(u, v, w, n, int(source))[target]
        if program.floats:
            np.testing.assert_allclose(distance, wanted, rtol=1e-12)
        else:
            assert distance == wanted
        if path is None:
            continue
        vertices, along = path
        if not np.isfinite(wanted):
            assert not len(vertices)
            continue
        assert (vertices[0], vertices[-1], along[0]) == (source, target, 0)
        sums = np.cumsum([0, *(weights[pair] for pair in pairwise(vertices.tolist()))])
        assert along.tolist() == sums.tolist()
        assert along[-1] == distance
        if not program.floats:
            ends = number[u], number[v], w, n, number[source], number[target]
            assert number[vertices].tolist() == reference.least_shortest_path(*ends)
    return results[0].record


def _paths_of(found: dict[str, np.ndarray]) -> list[Any]:
    cuts = np.cumsum(found["steps"])[:-1]
    parts = (np.split(found[name], cuts) for name in ("vertex", "along"))
    return list(zip(*parts, strict=True))


CASES: dict[str, Any] = {
    "graph": graphs(),
    "options": store_options(),
    "ranks": st.integers(1, 4),
    "on_disk": st.booleans(),
    "weights": st.sampled_from([None, "ties", "nothing", "floats"]),
    "nodes": st.booleans(),
}


def check_case(graph, options, ranks, on_disk, weights, nodes) -> None:
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = weights and WEIGHTS[weights](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", program_of(store, nodes), ranks, on_disk)


@given(**CASES)
@settings(max_examples=10)
def test_against_the_definition(**case):
    check_case(**case)


@pytest.mark.nightly
@given(**CASES)
@settings(max_examples=400)
def test_many_against_the_definition(**case):
    check_case(**case)
