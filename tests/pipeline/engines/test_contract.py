"""The edges between labels, against their definition, on every engine on CPUs."""

from __future__ import annotations

import os
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.kernels.pieces.operators import Amounts, ScaledWeights, UnitAmounts
from delegraph.partition.errors import LimitError, LostScratchError
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import contract, spill
from delegraph.pipeline.engines.operations.contract import Contracted, PairSums
from delegraph.pipeline.engines.operations.operations import Calls, Operations
from delegraph.pipeline.engines.operations.program import ProgramResult
from delegraph.pipeline.engines.operations.spill import Pairs, Spill, StoredSums, write_rows
from delegraph.pipeline.engines.operations.vectors import Counts, Vector, VectorType
from delegraph.pipeline.ranks.communicator import RankError
from support.graphs import edges_of, graphs, random_edges, store_options
from support.paths import entries_of
from support.programs import run_program, stored

COLUMNS = "first", "other", "sums"
EMPTY = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint64)


@dataclass(frozen=True)
class Contraction:
    """A program that contracts its graph by labels. labels: by global id. both_ways: whether pairs
    go through files, in both directions if they are those of an undirected graph.
    """

    labels: np.ndarray
    amounts: Amounts
    loops: bool
    both_ways: bool = False
    columns = COLUMNS
    scans_once = False
    calls = Calls()

    @property
    def weighted(self) -> bool:
        return isinstance(self.amounts, ScaledWeights)

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: Operations, tell: Any) -> ProgramResult:
        labels = operations.vector(VectorType(np.uint32, ghosts=True))
        every = np.arange(len(self.labels), dtype=np.uint32)
        operations.put(labels, every, self.labels.astype(np.uint32))
        if self.loops or self.both_ways:
            found = self.add(operations, labels)
        else:
            found = operations.contract(labels, self.amounts)
        return ProgramResult(found._asdict(), operations.edge_counts()._asdict())

    def add(self, operations: Operations, labels: Vector) -> Contracted:
        with Spill(None, lambda read: operations.note(0, read)) as files:
            most = len(self.labels), operations.extra_bytes, 0
            is_first = operations.communicator.rank == 0
            found = PairSums(*most, files if self.both_ways else None, self.both_ways and is_first)
            operations.add_pairs(found, labels, self.amounts, self.loops)
            if self.both_ways:
                found.put_away()
            parts = [Contracted.of(pairs) for pairs in found.take()]
            return Contracted(*map(np.concatenate, zip(EMPTY, *parts, strict=True)))


def check(
    store: Store,
    folder: Path,
    loops: bool,
    ranks: int = 1,
    on_disk: bool = False,
    both_ways: bool = False,
) -> None:
    n = store.info.vertices
    labels = np.random.default_rng(n).integers(0, max(1, n // 2), n)
    amounts: np.ndarray | None = None
    if store.info.weights is None:
        ends, given = [*edges_of(store)], UnitAmounts()
    else:
        *ends, weight = entries_of(store)
        amounts, given = weight.astype(np.uint64), ScaledWeights(1.0, False)
    if not store.info.directed:  # edges stand in both directions
        once = ends[0] < ends[1]
        ends = [end[once] for end in ends]
        amounts = None if amounts is None else amounts[once]
    src, dst = ends
    wanted = reference.contract(src, dst, labels, store.info.directed, loops, amounts)
    first, other, sums = wanted
    if not store.info.directed:  # edges inside labels are found from both of their ends
        sums = np.where(first == other, 2 * sums, sums)
    if both_ways:
        turned = first != other
        first, other = (np.append(a, b[turned]) for a, b in ((first, other), (other, first)))
        sums = np.append(sums, sums[turned])
        order = np.lexsort((other, first))
        first, other, sums = first[order], other[order], sums[order]
    wanted = first, other, sums
    program = Contraction(labels, given, loops, both_ways)
    extra_bytes = 0 if both_ways else 1 << 30
    found, results = run_program(store, program, folder, ranks, on_disk, extra_bytes=extra_bytes)
    for name, values in zip(COLUMNS, wanted, strict=True):
        assert np.array_equal(found[name], values), name
    for result in results[1:]:
        for values in result.values.values():
            assert isinstance(values, np.ndarray)
            assert not len(values)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    weighted=st.booleans(),
    loops=st.booleans(),
    at_once=st.sampled_from([3, 1 << 18]),
    both_ways=st.booleans(),
)
def test_against_the_definition(
    graph, options, ranks, on_disk, weighted, loops, at_once, both_ways
):
    """Weights up to the greatest one are added up exactly, in parts of any size, in memory and
    through files.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    rng = np.random.default_rng(1)
    weight = rng.choice([0, 1, 7, (1 << 32) - 1], len(src)) if weighted else None
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(contract, "_PAIRS_AT_ONCE", at_once)
        monkeypatch.setattr(contract, "LEAST_PAIRS", at_once)
        monkeypatch.setattr(spill, "_RUNS_AT_ONCE", 3)
        both_ways = both_ways and not options.directed
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", loops, ranks, on_disk, both_ways)


@pytest.mark.parametrize("ranks", [1, 2])
def test_more_pairs_than_fit(tmp_path, monkeypatch, ranks):
    """Memory is bounded by distinct pairs, and not by the edges."""
    store = stored(tmp_path, *random_edges(1, 500, 20_000), BuildOptions(partitions=2))
    few, every = np.arange(500) % 10, np.arange(500)
    monkeypatch.setattr(contract, "LEAST_PAIRS", 200)
    found, _ = run_program(store, Contraction(few, UnitAmounts(), False), tmp_path / "few", ranks)
    assert len(found["sums"]) == 45
    assert found["sums"].sum() == np.count_nonzero(np.less(*(few[end] for end in edges_of(store))))
    with pytest.raises((LimitError, RankError), match="do not fit the memory limit"):
        run_program(store, Contraction(every, UnitAmounts(), False), tmp_path / "every", ranks)


def test_memory_of_distinct_pairs():
    """Distinct pairs are held within the bytes that are planned for them."""
    rng = np.random.default_rng(1)
    pairs = PairSums(1 << 20, 64 << 20)
    tracemalloc.start()
    for _ in range(40):
        keys = rng.integers(0, 1 << 19, 20_000, np.uint64) << np.uint64(32)
        pairs.add(keys, np.ones(len(keys), np.uint64))
    found = pairs.held()
    assert found is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.sums.sum() == 40 * 20_000
    assert len(found.keys) > contract.LEAST_PAIRS
    assert peak < contract.contraction_bytes(len(found.keys))


@pytest.mark.parametrize("threads", [1, 4])
def test_memory_of_pairs_in_files(tmp_path, monkeypatch, threads):
    """Pairs that go to files take no more memory than is planned, though threads add others
    meanwhile.
    """
    monkeypatch.setattr(contract, "LEAST_PAIRS", 1 << 16)
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 1 << 20, (500, 2, 1 << 11), np.uint64)
    batches = [first << np.uint64(32) | other for first, other in ends]
    ones = np.ones(1 << 11, np.uint64)
    with Spill(tmp_path, lambda read: None) as spilled:
        pairs = PairSums(1 << 20, 0, spill=spilled, both_ways=True)
        tracemalloc.start()
        Team(threads).map(lambda keys: pairs.add(keys, ones), batches)
        runs = pairs.put_away()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        total = sum(int(part.sums.sum()) for part in runs.merged())
    assert total == 2 * 500 * (1 << 11) - np.count_nonzero(ends[:, 0] == ends[:, 1])
    assert peak < contract.contraction_bytes()


def test_rows_that_are_lost(tmp_path):
    """Rows in files are read as they were written; a file that is shorter or gone is told."""
    keys = np.array([0 << 32 | 1, 0 << 32 | 2, 1 << 32 | 0, 1 << 32 | 1, 2 << 32 | 0], np.uint64)
    pairs = Pairs(keys, np.array([5, 1 << 60, 5, 7, 1 << 60], np.uint64))
    inside = np.zeros(3, np.uint64)
    rows = write_rows(tmp_path, [pairs], inside, np.uint32, lambda: None)
    assert inside.tolist() == [0, 7, 0]
    assert rows.offsets.tolist() == [0, 2, 3, 4]
    (piece,) = rows.every(Team(1), lambda piece, *_: (*piece.targets, *piece.weights)).results
    assert piece == (1, 2, 0, 0, 5, 1 << 60, 5, 1 << 60)
    os.truncate(tmp_path / "amounts", 24)
    with pytest.raises(LostScratchError, match="amounts"):
        rows.every(Team(1), lambda *_: None)
    rows = write_rows(tmp_path, [pairs], inside, np.uint32, lambda: None)  # none is read yet
    (tmp_path / "targets").unlink()
    with pytest.raises(LostScratchError, match="targets"):
        rows.every(Team(1), lambda *_: None)


@pytest.mark.parametrize("greatest", [255, 256, 65535, 65536, (1 << 32) - 1, 1 << 32])
def test_amounts_are_narrowed(tmp_path, greatest):
    """Amounts are read as they were, however few bytes they take on disk."""
    keys = np.arange(1, 200_001, dtype=np.uint64)  # edges of vertex 0
    sums = keys % np.uint64(200) + np.uint64(1)
    sums[123_456] = greatest
    pairs = [Pairs(keys[:7], sums[:7]), Pairs(keys[7:], sums[7:])]
    inside = np.zeros(200_001, np.uint64)
    rows = write_rows(tmp_path, pairs, inside, np.uint32, lambda: None)
    assert os.path.getsize(tmp_path / "amounts") == 200_000 * np.min_scalar_type(greatest).itemsize
    assert sorted(path.name for path in tmp_path.iterdir()) == ["amounts", "targets"]
    visited = rows.every(Team(2), lambda piece, *_: (piece.targets.copy(), piece.weights.copy()))
    targets, amounts = (np.concatenate(parts) for parts in zip(*visited.results, strict=True))
    assert np.array_equal(targets, keys)
    assert np.array_equal(amounts, sums)


def test_sums_that_are_lost(tmp_path):
    sums = StoredSums(tmp_path / "inside", np.arange(5, dtype=np.uint64), lambda read: None)
    assert (sums.count, sums.total) == (5, 10)
    assert sums.read(slice(1, 3)).tolist() == [1, 2]
    os.truncate(tmp_path / "inside", 24)
    with pytest.raises(LostScratchError, match="inside"):
        sums.read(slice(2, 4))
    (tmp_path / "inside").unlink()
    with pytest.raises(LostScratchError, match="inside"):
        sums.read(slice(0, 1))
