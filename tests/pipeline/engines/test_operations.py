"""Programs against their definitions: every engine on CPUs, every layout, any number of ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.programs import forest
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import betweenness, searches
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.algorithms.bfs_each import DistanceBits, width
from delegraph.pipeline.algorithms.bfs_together import NearestSourceProgram
from delegraph.pipeline.algorithms.components import ComponentsProgram
from delegraph.pipeline.algorithms.many_sources import DistanceSumsProgram
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import operations, wide_paths
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import SHAPES, edges_of, graphs, store_options
from support.marks import mostly_nightly, nightly, slow
from support.programs import run_program, stored
from support.searches import check_distances, check_nearest, check_sums


def walk(
    store: Store, iterations: int = 15, dangling: Any = "even", teleport: Any = None, tolerance=None
) -> PageRankProgram:
    return PageRankProgram(store.info.vertices, 0.85, tolerance, iterations, dangling, teleport)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    dangling=st.sampled_from(["even", "none"]),
    personal=st.booleans(),
)
def test_against_the_definitions(graph, options, ranks, on_disk, dangling, personal):
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = stored(folder, src, dst, options)
        n, ranks = store.info.vertices, min(ranks, store.info.partitions)
        u, v = edges_of(store)
        columns, _ = run_program(store, ComponentsProgram(), folder / "c", ranks, on_disk)
        assert (columns["component"] == reference.components(u, v, n)).all()
        teleport, to = None, None
        if personal:
            places = np.arange(0, n, 3, dtype=np.uint32)
            teleport = places, np.full(len(places), 1 / len(places))
            to = np.zeros(n)
            to[places] = 1 / len(places)
        program = walk(store, dangling=dangling, teleport=teleport)
        columns, _ = run_program(store, program, folder / "p", ranks, on_disk)
        wanted = reference.pagerank(*edges_of(store, loops=1), n, 0.85, 15, to, dangling == "even")
        np.testing.assert_allclose(columns["pagerank"], wanted, rtol=1e-12, atol=1e-300)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    along=st.booleans(),
    pulled=st.sampled_from([0, 8, 10**9]),
    rare=st.sampled_from([1, 4, 4096]),
    small=st.sampled_from([(-1, 1), (5, 1), (1 << 16, 2), (1 << 16, 1 << 12)]),
    apart=st.sampled_from([None, 5, 1 << 22]),
    wide=st.sampled_from([None, 1, 2, 900]),
)
def test_searches_from_many_vertices(
    graph, options, ranks, on_disk, along, pulled, rare, small, apart, wide
):
    """Programs that search from many vertices give their definitions' values.

    pulled: pull never, by default, always. rare: values of searches.RARE. small: edges of levels
    that one thread counts, and the number of levels at once. apart: edges of a level up to which
    threads may have sources of their own. wide: exponents of a window, for path counts with
    exponents.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(operations, "PUSHED_FOR_PULLED", pulled)
        patched.setattr(searches, "RARE", rare)
        patched.setattr(betweenness, "_FEW_EDGES", small[0])
        patched.setattr(betweenness, "_AT_ONCE", small[1])
        patched.setattr(betweenness, "_MOST_APART", apart)
        if wide is not None:
            patched.setattr(betweenness, "MOST_PATHS", 0.0)
            patched.setattr(wide_paths, "WINDOW", wide)
        extra_bytes = 0 if apart is None else 1 << 30
        folder = Path(name)
        store = stored(folder, src, dst, options)
        n, ranks = store.info.vertices, min(ranks, store.info.partitions)
        u, v = edges_of(store)
        ends = (u, v) if along else (v, u)
        sources = np.arange(0, n, max(1, n // 70), dtype=np.uint32)  # more than a word has bits
        columns, _ = run_program(
            store, DistanceSumsProgram(sources, along), folder / "s", ranks, on_disk
        )
        check_sums(ends, n, columns)
        few = sources[::10]
        program = BetweennessProgram(n, few)
        columns, _ = run_program(
            store, program, folder / "b", ranks, on_disk, extra_bytes=extra_bytes
        )
        wanted = reference.betweenness(u, v, n, few)
        np.testing.assert_allclose(columns["betweenness"], wanted, rtol=1e-10, atol=1e-10)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    max_depth=st.sampled_from([None, 0, 1, 2]),
    bits=st.sampled_from([8, 16, 32]),
    pulled=st.sampled_from([0, 8, 10**9]),
    rare=st.sampled_from([1, 4, 4096]),
)
def test_distances_from_several_vertices(
    graph, options, ranks, on_disk, max_depth, bits, pulled, rare
):
    """Distances from several vertices are right; pulled, rare: see
    test_searches_from_many_vertices.
    """
    src, dst, vertices, seed = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patched:
        patched.setattr(operations, "PUSHED_FOR_PULLED", pulled)
        patched.setattr(searches, "RARE", rare)
        folder = Path(name)
        store = stored(folder, src, dst, options)
        n, ranks = store.info.vertices, min(ranks, store.info.partitions)
        ends = edges_of(store)
        most = n if max_depth is None else max_depth
        rng = np.random.default_rng([vertices, seed])
        sources = rng.permutation(n)[: width(bits)].astype(np.uint32)
        program = DistanceBits(sources, bits, max_depth)
        columns, results = run_program(store, program, folder / "e", ranks, on_disk)
        assert not results[0].record["deeper"]
        assert results[0].record["apart"] != ("reached" in columns)
        check_distances(ends, n, sources, most, columns)
        columns, _ = run_program(
            store, NearestSourceProgram(sources, max_depth), folder / "t", ranks, on_disk
        )
        check_nearest(ends, n, sources, most, columns)


@pytest.mark.parametrize("shape", ["star", "path", "grid", "two components", "hubs"])
def test_the_same_for_any_number_of_threads(tmp_path, shape):
    """PageRank has the same bits for any number of threads; engines in memory and on disk, which
    cut edges in other places, differ in the last bits.
    """
    store = stored(tmp_path, SHAPES[shape][0], SHAPES[shape][1], BuildOptions())
    results = [
        run_program(store, walk(store), tmp_path / f"{threads}-{on_disk}", 1, on_disk, threads)[0]
        for on_disk in (False, True)
        for threads in (1, 2, 5)
    ]
    for group in (results[:3], results[3:]):
        assert all((one["pagerank"] == group[0]["pagerank"]).all() for one in group)
    np.testing.assert_allclose(results[0]["pagerank"], results[3]["pagerank"], rtol=1e-12)


@pytest.mark.parametrize(
    ("few", "extra_bytes"), [(-1, 0), (betweenness._FEW_EDGES, 0), (-1, 1 << 30)]
)
@pytest.mark.parametrize("shape", [slow("grid"), "hubs"])
def test_the_same_sums_of_paths_for_any_number_of_threads(
    tmp_path, monkeypatch, shape, few, extra_bytes
):
    """Betweenness has the same bits for any number of threads, which share levels, do not, or have
    sources of their own.
    """
    monkeypatch.setattr(betweenness, "_FEW_EDGES", few)
    store = stored(tmp_path, SHAPES[shape][0], SHAPES[shape][1], BuildOptions())
    program = BetweennessProgram(store.info.vertices, np.arange(9, dtype=np.uint32))
    results = [
        run_program(
            store, program, tmp_path / f"{threads}", 1, threads=threads, extra_bytes=extra_bytes
        )[0]
        for threads in (1, 2, 5)
    ]
    assert all((one["betweenness"] == results[0]["betweenness"]).all() for one in results)


def test_a_first_source_that_reaches_little_says_nothing(tmp_path, monkeypatch):
    """The source with the most edges decides whether sources go apart, although the first source
    reaches little.
    """
    src, dst = SHAPES["hubs"]
    store = stored(tmp_path, np.r_[9000, src], np.r_[9001, dst], BuildOptions())
    n = store.info.vertices
    u, v = edges_of(store)
    sources = np.array([n - 1, 0, 1, 2], np.uint32)  # the last one in the order has one neighbour
    starts = Mock(wraps=betweenness._Alone)
    monkeypatch.setattr(betweenness, "_Alone", starts)
    for most, threads in [(1 << 22, 2), (1 << 10, 1)]:
        monkeypatch.setattr(betweenness, "_MOST_APART", most)
        starts.reset_mock()
        program = BetweennessProgram(n, sources)
        values = run_program(store, program, tmp_path / f"{most}", extra_bytes=1 << 30)[0][
            "betweenness"
        ]
        assert starts.call_count == threads
        wanted = reference.betweenness(u, v, n, sources)
        np.testing.assert_allclose(values, wanted, rtol=1e-10, atol=1e-10)


def test_sources_apart_take_no_more_than_there_is(tmp_path, monkeypatch):
    """Sources go apart only as far as memory allows: a thread needs 36 bytes for each vertex, and
    no level may be large.
    """
    store = stored(tmp_path, SHAPES["grid"][0], SHAPES["grid"][1], BuildOptions())
    n = store.info.vertices
    starts = Mock(wraps=betweenness._Alone)
    monkeypatch.setattr(betweenness, "_Alone", starts)
    program = BetweennessProgram(n, np.arange(4, dtype=np.uint32))
    for most, room, threads in [(1 << 22, 3, 3), (1 << 22, 2, 0), (100, 3, 1)]:  # 4 sources
        monkeypatch.setattr(betweenness, "_MOST_APART", most)
        starts.reset_mock()
        run_program(store, program, tmp_path / "out", threads=3, extra_bytes=36 * n * room)
        assert starts.call_count == threads


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, nightly(True)])
@pytest.mark.parametrize("layout", mostly_nightly(["one", "delegate", "2d"], "one"))
def test_searches_of_many_windows(tmp_path, monkeypatch, layout, directed):
    """Searches are right with more vertices than a window has and more edges than a turn: threads
    write the same words.
    """
    monkeypatch.setattr(betweenness, "_FEW_EDGES", 1 << 15)
    rng = np.random.default_rng(7)
    src, dst = rng.integers(0, 150_000, (2, 400_000))
    src = np.where(rng.random(len(src)) < 0.1, src % 50, src)
    options = BuildOptions(directed=directed)
    if layout != "one":
        options = BuildOptions(directed=directed, layout=layout, partitions=4)
    store = stored(tmp_path, src, dst, options)
    n, ranks = store.info.vertices, 1 if layout == "one" else 3
    u, v = edges_of(store)
    sources = rng.choice(n, 70, replace=False).astype(np.uint32)
    columns, _ = run_program(
        store, DistanceSumsProgram(sources, True), tmp_path / "s", ranks, threads=3
    )
    check_sums((u, v), n, columns)
    program = BetweennessProgram(n, sources[:2])
    columns, _ = run_program(store, program, tmp_path / "b", ranks, threads=3)
    wanted = reference.betweenness(u, v, n, sources[:2])
    np.testing.assert_allclose(columns["betweenness"], wanted, rtol=1e-10, atol=1e-6)


@pytest.mark.parametrize("order", ["none", "degree"])
@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_a_tree_on_each_rank_and_one_edge_between(tmp_path, layout, order):
    """An edge between the trees of two ranks joins them, although each rank's largest tree has all
    of its vertices.
    """
    one, other = np.triu_indices(20, 1)
    late = (other < 19) | (one < 5)  # the joint's ends stand last in each other's rows
    even = np.array([one[late], other[late]]) * 2
    src, dst = np.r_[even[0], even[0] + 1, 38], np.r_[even[1], even[1] + 1, 39]
    threshold = 1000 if layout == "delegate" else None
    options = BuildOptions(partitions=2, layout=layout, order=order, threshold=threshold)
    store = stored(tmp_path, src, dst, options)
    for ranks in (1, 2):
        columns, _ = run_program(store, ComponentsProgram(), tmp_path / f"{ranks}", ranks)
        assert not columns["component"].any()


@pytest.mark.parametrize("directed", [slow(False), True])
@pytest.mark.parametrize("layout", ["delegate", "2d", slow("1d")])
def test_real_sizes_by_ranks(tmp_path, layout, directed):
    """Programs by ranks are right on graphs of real size, whose rows are cut and whose delegates
    are everywhere.
    """
    src, dst = SHAPES["hubs"]
    options = BuildOptions(directed=directed, partitions=4, layout=layout)
    store = stored(tmp_path, src, dst, options)
    u, v = edges_of(store)
    n = store.info.vertices
    wanted = reference.pagerank(u, v, n, iterations=15)
    for ranks in (1, 2, 3, 4):
        columns, results = run_program(store, walk(store), tmp_path / f"p{ranks}", ranks)
        np.testing.assert_allclose(columns["pagerank"], wanted, rtol=1e-12)
        edge_counts = sum(i["edges_examined"] for i in results[0].record["iterations"])
        assert edge_counts == 15 * len(u)
        columns, _ = run_program(store, ComponentsProgram(), tmp_path / f"c{ranks}", ranks)
        assert (columns["component"] == reference.components(u, v, n)).all()


@pytest.mark.parametrize("directed", [False, True])
def test_rows_that_turns_cut(tmp_path, directed):
    """Rows longer than several turns, beside rows without edges, give the same bits for any number
    of threads.
    """
    n, rng = 150_000, np.random.default_rng(3)
    src = np.r_[np.zeros(n, np.int64), rng.integers(0, n, 100_000), n + 5]
    dst = np.r_[np.arange(n), rng.integers(0, n, 100_000), n + 5]
    src, dst = (dst, src) if directed else (src, dst)  # the hub's row is of those that enter it
    store = stored(tmp_path, src, dst, BuildOptions(directed=directed))
    u, v = edges_of(store)
    wanted = reference.pagerank(u, v, store.info.vertices, iterations=15)
    ranks = []
    for threads in (1, 3):
        columns, _ = run_program(store, walk(store), tmp_path / f"{threads}", threads=threads)
        # The definition adds up the hub's row number by number, which costs digits.
        np.testing.assert_allclose(columns["pagerank"], wanted, rtol=1e-10)
        assert abs(columns["pagerank"].sum() - 1) < 1e-12
        ranks.append(columns["pagerank"].tobytes())
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_edges_once_or_some_first(tmp_path, monkeypatch, shape, few):
    """Components are right when all edges are joined at once, and when a few of each vertex are
    joined first.
    """
    monkeypatch.setattr(forest, "FEW", few)
    src, dst = SHAPES[shape]
    store = stored(tmp_path, src, dst, BuildOptions())
    u, v = edges_of(store)
    columns, _ = run_program(store, ComponentsProgram(), tmp_path / "c", threads=3)
    assert (columns["component"] == reference.components(u, v, store.info.vertices)).all()


def test_goes_on_from_a_checkpoint(tmp_path):
    store = stored(tmp_path, SHAPES["grid"][0], SHAPES["grid"][1], BuildOptions())
    whole, _ = run_program(store, walk(store, 20), tmp_path / "whole")
    went_on = []
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=went_on.append)
    run_program(store, walk(store, 8), tmp_path / "some", checkpoint=saved)
    columns, results = run_program(store, walk(store, 20), tmp_path / "rest", checkpoint=saved)
    assert (columns["pagerank"] == whole["pagerank"]).all()
    assert [step["iteration"] for step in results[0].record["iterations"]] == list(range(1, 21))
    assert went_on == [8]


def test_many_searches_go_on_from_a_checkpoint(tmp_path):
    store = stored(tmp_path, SHAPES["grid"][0], SHAPES["grid"][1], BuildOptions())
    every = np.arange(200, dtype=np.uint32)
    whole, _ = run_program(store, DistanceSumsProgram(every, along=True), tmp_path / "whole")
    went_on = []
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=went_on.append)

    save = saved.save_state

    def save_and_stop(*state: Any) -> None:
        save(*state)
        raise KeyError("killed")

    program = DistanceSumsProgram(every, along=True)
    saved.save_state = save_and_stop  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(RankError, match="killed"):
        run_program(store, program, tmp_path / "some", checkpoint=saved)
    saved.save_state = save
    columns, _ = run_program(store, program, tmp_path / "rest", checkpoint=saved)
    assert all((columns[name] == whole[name]).all() for name in columns)
    assert went_on == [64]


def test_searches_together_go_on_from_a_checkpoint(tmp_path):
    store = stored(tmp_path, SHAPES["grid"][0], SHAPES["grid"][1], BuildOptions())
    sources = np.array([3, 500, 7000], np.uint32)
    whole, _ = run_program(store, NearestSourceProgram(sources), tmp_path / "whole")
    went_on = []
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=went_on.append)
    run_program(store, NearestSourceProgram(sources, 9), tmp_path / "some", checkpoint=saved)
    columns, _ = run_program(
        store, NearestSourceProgram(sources), tmp_path / "rest", checkpoint=saved
    )
    assert all((columns[name] == whole[name]).all() for name in whole)
    assert went_on == [9]


def test_one_that_has_converged_stops(tmp_path):
    store = stored(tmp_path, SHAPES["hubs"][0], SHAPES["hubs"][1], BuildOptions())
    _, results = run_program(store, walk(store, 100, tolerance=1e-6), tmp_path / "p")
    changes = [step["change"] for step in results[0].record["iterations"]]
    assert changes[-1] < 1e-6 <= changes[-2]
    assert len(changes) < 100
