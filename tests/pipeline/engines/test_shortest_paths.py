"""Shortest paths against their definition: every engine on CPUs, layout, number of ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.pipeline.algorithms import sssp
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import SHAPES, graphs, store_options
from support.marks import mostly_slow
from support.paths import WEIGHTS, check_paths, entries_of, program_of
from support.programs import run_program, stored


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    kind=st.sampled_from(sorted(WEIGHTS)),
    seed=st.integers(0, 1000),
    limited=st.booleans(),
    alone=st.sampled_from([(0, 0), (3, 2), (1 << 16, 1 << 16)]),
)
def test_against_the_definition(graph, options, ranks, on_disk, kind, seed, limited, alone):
    """Shortest paths match the definition; alone: vertices and edges of rounds that one thread
    follows: none, the least, most.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(sssp, "_FEW_VERTICES", alone[0])
        patched.setattr(sssp, "EDGES_A_TURN", alone[1])
        patched.setattr(sssp, "_WORK_AT_ONCE", max(1, alone[1] // 2))
        folder = Path(name)
        store = stored(folder, src, dst, options, WEIGHTS[kind](rng, len(src)))
        ranks, source = min(ranks, store.info.partitions), int(rng.integers(store.info.vertices))
        most = np.inf
        if limited:
            far = reference.shortest_paths(*entries_of(store), store.info.vertices, source)
            most = float(np.median(far[np.isfinite(far)]))
        program = program_of(store, source, most)
        columns, _ = run_program(store, program, folder / "p", ranks, on_disk)
        check_paths(store, columns, source, most)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    kind=st.sampled_from(["floats", "ties", "nothing"]),
)
def test_weighted_pagerank(graph, options, ranks, on_disk, kind):
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weight = WEIGHTS[kind](np.random.default_rng(len(src)), len(src))
        store = stored(folder, src, dst, options, weight)
        assert store.info.weights is not None
        n, ranks = store.info.vertices, min(ranks, store.info.partitions)
        walk = PageRankProgram(n, 0.85, None, 15, "even", None, store.info.weights.kind)
        columns, _ = run_program(store, walk, folder / "p", ranks, on_disk)
        u, v, w = entries_of(store, loops=1)
        wanted = reference.pagerank(u, v, n, 0.85, 15, weight=w)
        np.testing.assert_allclose(columns["pagerank"], wanted, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("shape", mostly_slow(["path", "grid", "hubs", "two components"], "hubs"))
@pytest.mark.parametrize(("little", "again"), [(0, 0.0), (1 << 60, 2.0), (sssp.LITTLE, 0.25)])
def test_buckets_of_any_width(tmp_path, monkeypatch, shape, on_disk, little, again):
    """Buckets of any width give right paths, as narrow or as wide as the rules for widths make
    them.
    """
    monkeypatch.setattr(sssp, "LITTLE", little)
    monkeypatch.setattr(sssp, "AGAIN", again)
    src, dst = SHAPES[shape][:2]
    weight = np.random.default_rng(5).integers(0, 9, len(src))
    store = stored(tmp_path, src, dst, BuildOptions(), weight)
    columns, _ = run_program(store, program_of(store, 1), tmp_path / "p", on_disk=on_disk)
    check_paths(store, columns, 1)


@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_a_long_path_of_no_weight_by_ranks(tmp_path, layout):
    """Parents on a long path of weight 0 lead from vertex to vertex through all ranks, and never in
    a circle.
    """
    n = 400
    ids = np.arange(n)
    src, dst = np.append(ids, ids[:-7]), np.append((ids + 1) % n, ids[7:])
    store = stored(
        tmp_path, src, dst, BuildOptions(partitions=4, layout=layout), np.zeros(len(src), int)
    )
    columns, _ = run_program(store, program_of(store, 3), tmp_path / "p", ranks=4)
    check_paths(store, columns, 3)


def test_goes_on_from_a_checkpoint(tmp_path):
    src, dst = SHAPES["grid"][:2]
    weight = np.random.default_rng(6).random(len(src)).astype(np.float32)
    store = stored(tmp_path, src, dst, BuildOptions(), weight)
    loaded: list[int] = []
    program = program_of(store, 0)
    saved = Checkpoint(tmp_path / "c", 0, "this", lambda: None, loaded.append)
    _, (whole,) = run_program(store, program, tmp_path / "one", checkpoint=saved)
    columns, (rest,) = run_program(store, program, tmp_path / "two", checkpoint=saved)
    assert loaded
    assert rest.record["edges"] < whole.record["edges"] / 2
    check_paths(store, columns, 0)
