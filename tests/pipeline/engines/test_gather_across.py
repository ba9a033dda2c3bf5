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

from delegraph.kernels.pieces.operators import AmountsWithin, ScaledWeights, UnitAmounts
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import operations as host
from delegraph.pipeline.engines.operations.operations import Calls, Operations
from delegraph.pipeline.engines.operations.program import ProgramResult
from delegraph.pipeline.engines.operations.vectors import Counts, VectorType
from support.graphs import edges_of, graphs, random_edges, store_options
from support.paths import entries_of
from support.programs import run_program, stored

WORDS = VectorType(np.uint64, ghosts=True)


@dataclass(frozen=True)
class Within:
    """A program that adds up what the edges of each vertex to others of its group amount to. x: the
    groups by global id; 0 for vertices that take no part. before: what sums are at first.
    """

    x: np.ndarray
    along: bool
    amounts: UnitAmounts | ScaledWeights
    before: int
    columns = ("amount",)
    scans_once = False

    @property
    def calls(self) -> Calls:
        return Calls((AmountsWithin, type(self.amounts)))

    @property
    def weighted(self) -> bool:
        return isinstance(self.amounts, ScaledWeights)

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: Operations, tell: Any) -> ProgramResult:
        x, y = operations.vector(WORDS), operations.vector(WORDS)
        every = np.arange(len(self.x), dtype=np.uint32)
        operations.put(x, every, self.x)
        if operations.communicator.rank == 0:  # sums of delegates are added up over all ranks
            operations.put(y, every, np.full(len(self.x), self.before, np.uint64))
        else:
            y.own[:] = self.before
        operations.gather_across(AmountsWithin(self.amounts), x, y, self.along)
        return ProgramResult({"amount": y}, operations.edge_counts()._asdict())


def check(
    store: Store, folder: Path, along: bool, before: int, ranks: int = 1, on_disk: bool = False
) -> None:
    weights, n = store.info.weights, store.info.vertices
    u, v, *weight = entries_of(store) if weights else edges_of(store)
    x = np.random.default_rng(n).integers(0, 4, n, np.uint64)
    amounts: UnitAmounts | ScaledWeights = UnitAmounts()
    amount = np.ones(len(u), np.uint64)
    if weights:
        amounts = ScaledWeights(0.5, weights.kind == "float32")
        amount = np.rint(weight[0].astype(np.float64) * 0.5).astype(np.uint64)
    src, dst = (u, v) if along else (v, u)
    inside = (x[src] == x[dst]) & (x[src] != 0)
    wanted = np.full(n, before, np.uint64)
    np.add.at(wanted, dst[inside], amount[inside])
    program = Within(x, along, amounts, before)
    found, results = run_program(store, program, folder, ranks, on_disk)
    assert np.array_equal(found["amount"], wanted)
    assert results[0].record["edges"] == len(u)


CASES: dict[str, Any] = {
    "graph": graphs(),
    "options": store_options(),
    "ranks": st.integers(1, 4),
    "on_disk": st.booleans(),
    "along": st.booleans(),
    "weights": st.sampled_from([None, np.uint32, np.float32]),
    "before": st.sampled_from([0, 1 << 33]),
}


def check_case(graph, options, ranks, on_disk, along, weights, before) -> None:
    """Zeros and the greatest weights count as others do."""
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None
    if weights is not None:
        most = (1 << 32) - 1
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
    check(store, tmp_path / "out", True, 0, 1, on_disk)


def test_its_kernels_are_compiled_beforehand(monkeypatch):
    """A run does not compile them, which would take memory and time that no plan knows of."""
    compiled: list[Any] = []
    monkeypatch.setattr(host, "compile_kernels", lambda *kernels, **_: compiled.extend(kernels))
    host.warm_up([np.dtype(np.uint32)], Calls((AmountsWithin, UnitAmounts)))
    assert host.gather_across in compiled
    assert host.scatter_across in compiled
