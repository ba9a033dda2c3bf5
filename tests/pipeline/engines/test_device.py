"""Searches on a GPU against the NumPy definition: every shape, path and tier, more than once.

Races need not show at once, so everything runs several times.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.arrays import total_bytes
from delegraph.kernels.base.graph import Graph
from delegraph.kernels.gpu.device import MOST_BLOCKS
from delegraph.kernels.gpu.graph import NEXT
from delegraph.kernels.gpu.search import (
    ROOM_FOR_ALL,
    GpuSearch,
    bytes_needed,
    state,
    wide_distance,
)
from delegraph.kernels.gpu.slices import VIRTUAL, cut
from delegraph.kernels.gpu.slices import bytes_needed as slice_bytes
from delegraph.partition.disk.outputs import is_store
from delegraph.pipeline.engines.one_device.found import superstep_log
from delegraph.pipeline.engines.one_device.search import search_of, to_device
from support.graphs import (
    SHAPES,
    SMALL,
    crossings,
    graphs,
    grid,
    grid_with_diagonals,
    make_graph,
    random_edges,
)
from support.marks import slow
from support.outputs import distances_of
from support.searches import PULL, PUSH, result_of, violations_of

TIMES = 3


def check(search: GpuSearch, edges, directed: bool, source: int, max_level=None) -> None:
    src, dst = (np.asarray(end, np.uint32) for end in edges)
    n = search.graph.vertices
    wanted = reference.distances(src, dst, n, source, directed)
    if max_level is not None:
        wanted[wanted > max_level] = -1
    for _ in range(TIMES):
        search.run(source, max_level)
        distance, parent = result_of(search)
        assert np.array_equal(distance, wanted)
        assert not violations_of(src, dst, directed, distance, parent, source, max_level)
        levels = search.levels()
        assert 1 + sum(level.found for level in levels) == np.count_nonzero(wanted >= 0)
        by_level = np.bincount(wanted[wanted > 0], minlength=1)[1:]
        assert [level.found for level in levels if level.found] == by_level.tolist()


def graph_of(edges, directed: bool) -> Graph:
    src, dst = (np.asarray(end, np.uint32) for end in edges)
    return make_graph(src, dst, int(max(src.max(), dst.max())) + 1, directed)


def sources_of(graph: Graph) -> list[int]:
    n = graph.vertices
    return [0, n - 1, *np.random.default_rng(1).integers(0, n, 2).tolist()]


@pytest.mark.parametrize("way", ["chosen", "push", "pull", "narrow", "not narrow", "not resident"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_the_definition(device, shape, directed, way):
    graph = graph_of(SHAPES[shape], directed)
    on_device = to_device(graph, device, near=graph.edges)
    search = GpuSearch(device, on_device, narrow=way != "not narrow")
    if way in ("push", "pull"):
        search = GpuSearch(device, on_device, PUSH if way == "push" else PULL)
    elif way == "narrow":
        search._search["narrow_levels"] = 1
    elif way == "not resident":
        search._search["resident"] = 0
    for source in sources_of(graph):
        check(search, SHAPES[shape], directed, source)


@pytest.mark.parametrize("sweep_from", [0, 1, 1 << 31])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_over_slices(device, shape, directed, sweep_from):
    """Searches over slices are right when swept after all levels, after levels of more than one
    block, after none.
    """
    graph = graph_of(SHAPES[shape], directed)
    on_device = to_device(graph, device, near=graph.edges)
    slices = cut(device, on_device)
    for source in sources_of(graph):
        search = GpuSearch(device, on_device)
        search.search_over(slices)
        assert search._over_slices is not None
        search._over_slices._search["sweep_from"] = sweep_from
        check(search, SHAPES[shape], directed, source)


def test_depth_limits_and_lonely_vertices_over_slices(device):
    src, dst = random_edges(5, 500, 3000)
    for edges in (SHAPES["path"], (np.r_[src, 700, 900], np.r_[dst, 700, 900])):
        graph = graph_of(edges, False)
        on_device = to_device(graph, device, near=graph.edges)
        search, slices = GpuSearch(device, on_device), cut(device, on_device)
        for depth in (0, 1, 3, 254, 300, None):
            for source in (3, graph.vertices - 1, 0):
                search.search_over(slices)
                check(search, edges, False, source, depth)


@pytest.mark.parametrize("vertices", [2000, 100_000])
def test_memory_of_slices_is_planned(device, vertices):
    """Cutting slices takes no more than the planned bytes: the limit of the memory pool allows no
    more.
    """
    src, dst = random_edges(6, vertices, 1_000_000)
    graph = graph_of((src, dst), False)
    on_device = to_device(graph, device, near=graph.edges)
    search = GpuSearch(device, on_device)
    needed = slice_bytes(graph.vertices, graph.edges)
    assert needed
    with device.use() as cupy:
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        limit = pool.get_limit()
        pool.set_limit(size=pool.total_bytes() + needed)
        try:
            search.search_over(cut(device, on_device))
        finally:
            pool.set_limit(size=limit)
    check(search, (src, dst), False, 0)


def test_slices_hold_the_rows(device):
    """Slices hold the graph's rows: a virtual set has slices of one set only, and none is empty or
    repeated.
    """
    graph = graph_of(SHAPES["hubs"], True)
    slices = cut(device, to_device(graph, device, near=graph.edges))
    rows, masks = slices.rows.get(), slices.masks.get()
    first, vertex = slices.first.get().astype(np.int64), slices.vertex.get()
    set_of = np.repeat(np.arange(slices.sets), np.diff(first)).repeat(VIRTUAL)
    pairs = [
        np.stack([vertex[8 * set_of[mask] + bit], vertex[rows[mask]]])
        for bit in range(8)
        for mask in [masks >> bit & 1 == 1]
    ]
    offsets = graph.offsets.astype(np.int64)
    sources = np.repeat(np.arange(graph.vertices), np.diff(offsets))
    assert sorted(np.hstack(pairs).T.tolist()) == np.stack([sources, graph.targets]).T.tolist()
    assert np.count_nonzero(masks) == slices.number
    assert len(set(zip(set_of[masks > 0], rows[masks > 0], strict=True))) == slices.number


@pytest.mark.parametrize("capacity", [1, 40])
def test_more_is_left_of_rows_than_the_list_takes(device, capacity):
    graph = graph_of(SHAPES["cliques"], False)
    search = GpuSearch(device, to_device(graph, device, near=graph.edges), PULL)
    search._search["rest_capacity"] = capacity
    for source in sources_of(graph):
        check(search, SHAPES["cliques"], False, source)


@pytest.mark.parametrize("kind", ["rows", "one block", "bits in memory", "few records"])
@pytest.mark.parametrize("shape", ["path", "grid", "lollipop", "random", "star"])
def test_the_narrow_search(device, shape, kind):
    """The narrow search is right in each form: rows by offsets, a cluster of one block, bits in
    global memory, full records.
    """
    graph = graph_of(SHAPES[shape], False)
    if kind == "one block":
        device = replace(device, architecture=80)
    elif kind == "bits in memory":
        device = replace(device, shared_bytes=0)
    on_device = to_device(graph, device, near=graph.edges)
    if kind == "rows":
        on_device = replace(on_device, padded=None)
    search = GpuSearch(device, on_device)
    search._search["narrow_levels"] = 1
    if kind == "few records":
        search._search["level_capacity"] = 5
    for source in sources_of(graph):
        check(search, SHAPES[shape], False, source)


@pytest.mark.parametrize("side", [60, 100, 300])
def test_rows_longer_than_padded_ones(device, side):
    """Rows longer than padded ones are followed by their offsets; the longest are left to the whole
    device.
    """
    edges = crossings(side)
    graph = graph_of(edges, False)
    search = GpuSearch(device, to_device(graph, device, near=graph.edges))
    assert search.graph.padded is not None
    for source in sources_of(graph):
        check(search, edges, False, source)


@pytest.mark.parametrize("side", [300, 700, 1400])
def test_any_number_of_entries_a_lane(device, side):
    """Any number of entries a lane is right: on a grid with diagonals, the distance from a corner
    is the larger coordinate.
    """
    graph = graph_of(grid_with_diagonals(side), False)
    on_device = to_device(graph, device, near=graph.edges)
    assert on_device.padded is not None
    assert on_device.padded.shape[1] == 8
    search = GpuSearch(device, on_device)
    along = np.arange(side, dtype=np.int32)
    for _ in range(TIMES):
        search.run(0)
        assert np.array_equal(result_of(search)[0], np.maximum.outer(along, along).ravel())


@pytest.mark.parametrize("side", [300, 600, 900, 1200, 1500, 2000, 3600])
def test_bits_of_any_size_in_shared_memory(device, side):
    """Bits of any size in shared memory are right: on a grid, the distance from a corner is the sum
    of the coordinates.
    """
    graph = graph_of(grid(side), False)
    search = GpuSearch(device, to_device(graph, device, near=graph.edges))
    along = np.arange(side, dtype=np.int32)
    for _ in range(TIMES):
        search.run(0)
        assert np.array_equal(result_of(search)[0], np.add.outer(along, along).ravel())


def test_vertices_without_edges(device):
    """Searches from vertices without edges leave nothing behind that changes the next search."""
    src, dst = random_edges(5, 500, 3000)
    edges = np.r_[src, 700, 900], np.r_[dst, 700, 900]
    graph = graph_of(edges, False)
    search = GpuSearch(device, to_device(graph, device, near=graph.edges))
    for source in (900, 3, 700, 650, 3):
        check(search, edges, False, source)
        assert search.seconds() >= 0


@pytest.mark.parametrize("near", [0, 1000])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", ["lollipop", "grid", "random", "hubs"])
def test_targets_in_host_memory(device, shape, directed, near):
    graph = graph_of(SHAPES[shape], directed)
    search = GpuSearch(device, to_device(graph, device, near))
    assert search.graph.tiered
    for source in sources_of(graph):
        check(search, SHAPES[shape], directed, source)


@pytest.mark.parametrize("shape", ["path", "random"])
def test_offsets_of_64_bits(device, shape):
    """Offsets of 64 bits, which graphs of 2^32 entries and more have, give right searches."""
    graph = graph_of(SHAPES[shape], False)
    wide = Graph.undirected(graph.offsets.astype(np.uint64), graph.targets)
    search = GpuSearch(device, to_device(wide, device, near=graph.edges))
    for source in sources_of(graph):
        check(search, SHAPES[shape], False, source)


@pytest.mark.parametrize("depth", [0, 1, 3, 300])
@pytest.mark.parametrize("shape", ["path", "lollipop", "random"])
def test_a_depth_limit(device, shape, depth):
    graph = graph_of(SHAPES[shape], False)
    search = GpuSearch(device, to_device(graph, device, near=graph.edges))
    for source in sources_of(graph):
        check(search, SHAPES[shape], False, source, depth)


@given(graphs(), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_graph(device, graph, data):
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    wide_graph = make_graph(*graph)
    near = data.draw(st.sampled_from([wide_graph.edges, wide_graph.edges // 2]))
    search = GpuSearch(device, to_device(wide_graph, device, near))
    search._search["push_cost"] = data.draw(st.sampled_from([2.0, PUSH, PULL]))
    search._search["narrow_levels"] = data.draw(st.sampled_from([0, 1, 4]))
    search._search["resident"] = data.draw(st.booleans())
    search._search["wait"] = data.draw(st.sampled_from([0, 100, 1e6]))
    search._search["rest_capacity"] = min(32, search._search["rest_capacity"][0])
    check(search, (src, dst), directed, source)


def test_examined_edges_and_times(device):
    """A push examines the edges that leave its frontier, and the times of levels add up to the
    search's.
    """
    graph = graph_of(SHAPES["grid"], False)
    for narrow in (False, True):
        search = GpuSearch(device, to_device(graph, device, graph.edges), PUSH, narrow)
        search.run(0)
        distance, _ = result_of(search)
        wanted = np.bincount(distance, weights=np.diff(graph.offsets.astype(np.int64)))
        steps = superstep_log(search.levels())
        assert [step["edges_examined"] for step in steps] == wanted[: len(steps)].tolist()
        assert sum(step["seconds"] for step in steps) == pytest.approx(search.seconds())


@pytest.mark.parametrize("shape", ["path", "random"])
@pytest.mark.parametrize("slices", [False, True])
def test_a_search_timed_alone(device, shape, slices):
    """A search that is timed alone, in one launch or in several, is a search like any other."""
    graph = graph_of(SHAPES[shape], False)
    on_device = to_device(graph, device, near=graph.edges)
    search = GpuSearch(device, on_device)
    search.search_over(cut(device, on_device) if slices else None)
    src, dst = (np.asarray(end, np.uint32) for end in SHAPES[shape])
    wanted = reference.distances(src, dst, graph.vertices, 1, False)
    assert search.seconds_alone(1) > 0
    assert np.array_equal(result_of(search)[0], wanted)
    check(search, SHAPES[shape], False, 0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["random", "path"])
def test_an_emulated_search_timed_alone(emulated, shape):
    test_a_search_timed_alone(emulated[0], shape, False)


@pytest.mark.parametrize("sweep_from", [0, slow(1 << 31)])
@pytest.mark.parametrize("shape", SMALL)
def test_an_emulated_search_over_slices(emulated, shape, sweep_from):
    test_over_slices(emulated[0], shape, True, sweep_from)


@pytest.mark.parametrize("side", [slow(60), slow(100)])
def test_emulated_rows_longer_than_padded_ones(emulated, side):
    test_rows_longer_than_padded_ones(emulated[0], side)


@pytest.mark.slow
def test_emulated_slices(emulated):
    test_slices_hold_the_rows(emulated[0])
    test_depth_limits_and_lonely_vertices_over_slices(emulated[0])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", "slices"])
def test_nothing_to_try_slices_on_emulated(emulated, strategy):
    """A graph in which no vertex has an edge is searched although there is nothing to try slices
    on.
    """
    graph = graph_of((np.arange(3), np.arange(3)), False)
    on_device = to_device(graph, emulated[0], near=graph.edges)
    check(search_of(emulated[0], on_device, strategy), (np.arange(3), np.arange(3)), False, 1)


@pytest.mark.slow
def test_an_emulated_choice(emulated):
    graph = graph_of(SHAPES["two components"], False)
    for strategy in ("auto", "slices"):
        on_device = to_device(graph, emulated[0], near=graph.edges)
        search = search_of(emulated[0], on_device, strategy)
        check(search, SHAPES["two components"], False, 0)


@pytest.mark.parametrize(
    ("way", "directed"), [("chosen", True), slow("pull", False), slow("not resident", False)]
)
@pytest.mark.parametrize("shape", SMALL)
def test_an_emulated_search(emulated, shape, directed, way):
    test_against_the_definition(emulated[0], shape, directed, way)


@pytest.mark.parametrize("vertices", [ROOM_FOR_ALL, ROOM_FOR_ALL + 1, 5_000_000, 50_000_000])
def test_a_plan_holds_for_every_graph_of_its_size(vertices):
    edges = 4 * vertices
    for used in (1, vertices // 2, ROOM_FOR_ALL, vertices):
        searching = [*state(vertices, used, "u4", used, MOST_BLOCKS), wide_distance(vertices)]
        rows = 4 * (vertices + 1) + 4 * (1 + NEXT) * used
        assert total_bytes(searching) + rows <= bytes_needed(vertices, edges, False)


@pytest.mark.nightly
def test_blocks_that_wait_for_a_processor(emulated):
    """Searches are right when blocks get far ahead of each other because there are more than
    processors.
    """
    src, dst = (np.asarray(end, np.uint32) for end in SHAPES["hubs"])
    graph = graph_of((src, dst), True)
    wanted = {source: reference.distances(src, dst, 3000, source, True) for source in (700, 2999)}

    def search_often(_: int) -> int:
        search = GpuSearch(emulated[0], to_device(graph, emulated[0], near=graph.edges))
        wrong = 0
        for _ in range(250):
            for source, distances in wanted.items():
                search.run(source)
                wrong += not np.array_equal(result_of(search)[0], distances)
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(search_often, range(6))) == 0


@pytest.mark.slow
def test_more_is_left_of_rows_than_the_list_takes_emulated(emulated):
    test_more_is_left_of_rows_than_the_list_takes(emulated[0], 40)


# By the command line


STORES = [
    (),
    ("--directed",),
    ("--partitions", 3),
    ("--partitions", 2, "--directed"),
    ("--layout", "2d", "--grid", "2x2"),
]


@pytest.fixture
def same_search(ok, tmp_path):
    """Return a function that compares searches on the CPU and on the GPU and gives the GPU's
    record.
    """

    def run(graph, source, *options) -> dict:
        for name, device in (("cpu", ("cpu",)), ("gpu", ("cuda", *options))):
            args = ("--source", source, "-o", tmp_path / name, "--overwrite", "--device", *device)
            run = ok("bfs", graph, *args)
            assert ("on cpu," if name == "cpu" else "on cuda:0 (") in run.err
        assert distances_of(tmp_path / "gpu") == distances_of(tmp_path / "cpu")
        store = graph
        if not is_store(graph):
            store = tmp_path / "store.dg"
            ok("build", graph, "-o", store, "--overwrite")
        ok("validate", store, tmp_path / "gpu")
        return json.loads((tmp_path / "gpu.run.json").read_bytes())

    return run


@pytest.mark.parametrize(
    "options", STORES, ids=lambda options: " ".join(map(str, options)) or "plain"
)
def test_a_store(device, ok, same_search, edge_list, tmp_path, options):
    src, dst = random_edges(11, 4000, 30_000)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg", *map(str, options))
    record = same_search(tmp_path / "graph.dg", int(src[0]))
    assert record["device"] == str(device)
    assert {"cupy", "cuda", "driver"} <= set(record["versions"])
    assert record["search"]["method"] == "push-pull"


def test_an_edge_list(device, same_search, edge_list):
    src, dst = random_edges(12, 4000, 30_000)
    assert same_search(edge_list(src * 1_000_003 - 5, dst * 1_000_003 - 5), -5)["device"] != "cpu"


def test_real_graphs(device, same_search, real_graph):
    assert same_search(real_graph("cnr-2000"), 129317)["search"]["depth"] == 28
    assert same_search(real_graph("luxembourg-osm"), 89828)["search"]["depth"] == 1077


def test_a_limit_moves_targets_to_host_memory(device, ok, same_search, edge_list, tmp_path):
    src, dst = random_edges(13, 20_000, 2_000_000)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg")
    limit = bytes_needed(20_000, 4_000_000, False) + 2_000_000
    record = same_search(tmp_path / "graph.dg", 0, "--device-memory-limit", f"{limit}B")
    assert record["search"]["method"] == "push-pull, tiered"


def test_a_limit_too_small_is_the_cpus_turn(device, ok, edge_list, tmp_path):
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    limit = ("--device", "cuda", "--device-memory-limit", "1MB")
    run = ok("bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "out", *limit)
    assert "searched on the CPU: only 1 MB of memory may be used on cuda:0" in run.err
    assert "on cpu," in run.err


def test_profile(device, ok, edge_list, tmp_path):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    run = ok("bfs", edges, "--source", 0, "-o", tmp_path / "out", "--device", "cuda", "--profile")
    assert [line.split()[0] for line in run.err.splitlines()[:4]] == ["level", "1", "2", "3"]


@pytest.mark.parametrize("strategy", ["auto", "rows", "slices"])
def test_strategies(device, ok, edge_list, tmp_path, strategy):
    src, dst = random_edges(14, 300, 2000)
    edges, store, by = edge_list(src, dst), tmp_path / "graph.dg", ("--strategy", strategy)
    ok("build", edges, "-o", store)
    ok("bfs", edges, "--source", src[0], "-o", tmp_path / "cpu", "--device", "cpu")
    for i, graph in enumerate((edges, store)):
        out = tmp_path / f"out-{i}"
        searched = ("bfs", graph, "--source", src[0], "-o", out, "--device", "cuda", "--json")
        record = ok(*searched, *by).json
        assert record["search"]["method"] == ("slices" if strategy == "slices" else "push-pull")
        assert distances_of(out) == distances_of(tmp_path / "cpu")
        ok("validate", graph, out)
    for graph in (store, "kronecker:10"):
        report = ok("bench", graph, "--device", "cuda", "--sources", 5, "--json", *by).json
        expected = {"auto": ("slices", "push-pull"), "rows": ("push-pull",)}
        assert report["method"] in expected.get(strategy, ("slices",))


def test_a_limit_too_small_for_slices(device, ok, edge_list, tmp_path):
    """A memory limit too small for slices moves the search to the CPU."""
    src, dst = random_edges(13, 2000, 2_000_000)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg")
    limit = bytes_needed(2000, 4_000_000, False) + 4 * 4_000_000
    options = ("--device", "cuda", "--device-memory-limit", f"{limit + (32 << 20)}B")
    searched = ("bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "out")
    run = ok(*searched, *options, "--strategy", "slices")
    assert "too small for the slices" in run.err


def test_slices_are_for_one_gpu(delegraph, edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    by = ("--device", "cpu", "--strategy", "slices")
    run = delegraph("bfs", edges, "--source", 0, "-o", tmp_path / "out", *by)
    assert run.code
    assert "--strategy slices needs one GPU" in run.err
    run = delegraph("bench", "kronecker:10", "--workers", 2, "--strategy", "slices")
    assert run.code
    assert "--strategy is only for searches on one GPU" in run.err


@pytest.mark.parametrize("graph", ["kronecker:14", "uniform:12", "grid:60x70"])
def test_bench_of_a_generated_graph(device, ok, tmp_path, graph):
    report = ok("bench", graph, "--device", "cuda", "--sources", 5, "--json").json
    assert report["device"] == str(device)
    kind, _, size = graph.partition(":")
    sizes = ("--height", 60, "--width", 70) if kind == "grid" else ("--scale", size)
    ok("generate", kind, *sizes, "-o", tmp_path / "edges")
    assert report["graph"]["rows"] == pq.read_table(tmp_path / "edges").num_rows
    ok("build", tmp_path / "edges", "-o", tmp_path / "graph.dg")
    for on in ("cuda", "cpu"):
        other = ok(
            "bench", tmp_path / "graph.dg", "--device", on, "--sources", 5, "--json", "--quiet"
        ).json
        for key in ("vertices", "rows", "edges"):
            assert other["graph"][key] == report["graph"][key]
        assert other["sources"] == report["sources"]
        assert other["depth"] == report["depth"]
