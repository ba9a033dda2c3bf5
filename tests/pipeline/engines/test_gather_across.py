"""Gathering by both ends of edges, against its definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.pieces.operators import LeastLeaving
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations.operations import Calls, Operations
from delegraph.pipeline.engines.operations.program import ProgramResult
from delegraph.pipeline.engines.operations.vectors import Counts, VectorType
from support.graphs import edges_of, graphs, random_edges, store_options
from support.paths import entries_of
from support.programs import run_program, stored

NONE = np.uint64((1 << 64) - 1)
WORDS = VectorType(np.uint64, ghosts=True)


@dataclass(frozen=True)
class Leaving:
    """A program that finds the least edge of each vertex that leaves its group. x: by global id.
    before: what entries hold at first.
    """

    x: np.ndarray
    along: bool
    weighted: bool
    before: int = int(NONE)
    columns = ("least",)
    scans_once = False
    calls = Calls((LeastLeaving,))

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: Operations, tell: Any) -> ProgramResult:
        x, y = operations.vector(WORDS), operations.vector(WORDS, np.uint64(self.before))
        operations.put(x, np.arange(len(self.x), dtype=np.uint32), self.x)
        operations.gather_across(LeastLeaving(), x, y, self.along)
        return ProgramResult({"least": y}, operations.edge_counts()._asdict())


def words(vertices: int, groups: int) -> np.ndarray:
    """Return the words of vertices in random groups, numbered in a random order; every fifth takes
    no part.
    """
    rng = np.random.default_rng(vertices)
    group = rng.integers(0, groups, vertices).astype(np.uint64)
    x = group << np.uint64(32) | rng.permutation(vertices).astype(np.uint64)
    x[::5] = NONE
    return x


def check(
    store: Store, folder: Path, along: bool, before: int, ranks: int = 1, on_disk: bool = False
) -> None:
    weighted = store.info.weights is not None
    u, v, *weight = entries_of(store) if weighted else edges_of(store)
    x = words(store.info.vertices, 3)
    bits = np.ascontiguousarray(weight[0]).view(np.uint32) if weighted else None
    src, dst = (u, v) if along else (v, u)
    wanted = np.minimum(reference.least_leaving(src, dst, x, bits), np.uint64(before))
    program = Leaving(x, along, weighted, before)
    found, results = run_program(store, program, folder, ranks, on_disk)
    assert np.array_equal(found["least"], wanted)
    assert results[0].record["edges"] == len(u)


CASES: dict[str, Any] = {
    "graph": graphs(),
    "options": store_options(),
    "ranks": st.integers(1, 4),
    "on_disk": st.booleans(),
    "along": st.booleans(),
    "weights": st.sampled_from([None, np.uint32, np.float32]),
    "before": st.sampled_from([int(NONE), 1 << 33]),
}


def check_case(graph, options, ranks, on_disk, along, weights, before) -> None:
    """Zeros and the greatest weights count as others do."""
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None
    if weights is not None:
        most = (1 << 32) - 1 if weights is np.uint32 else np.finfo(np.float32).max
        rng = np.random.default_rng(1)
        weight = rng.choice(np.array([0, 1, 7, most], weights), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", along, before, ranks, on_disk)


@given(**CASES)
@settings(max_examples=12)
def test_against_the_definition(**case):
    check_case(**case)


@pytest.mark.nightly
@given(**CASES)
@settings(max_examples=300)
def test_many_against_the_definition(**case):
    check_case(**case)


@pytest.mark.parametrize("on_disk", [False, True])
def test_rows_that_pieces_cut(tmp_path, on_disk):
    """Threads share the rows of a star's centre and of many edges."""
    src, dst = random_edges(1, 3000, 150_000)
    src[:50_000] = 0
    weight = np.random.default_rng(2).integers(1, 1 << 32, len(src)).astype(np.uint32)
    store = stored(tmp_path, src, dst, BuildOptions(partitions=1), weight)
    check(store, tmp_path / "out", True, int(NONE), 1, on_disk)
