"""Searches by several ranks with a device each, against the definition.

On one device the ranks take turns and the host carries messages; on several devices the ranks read
each other's memory, or NCCL carries messages.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.search import PUSH_COST
from delegraph.kernels.gpu_ranks import grid_layout
from delegraph.kernels.gpu_ranks import search as rank_search
from delegraph.kernels.gpu_ranks.check import Checker
from delegraph.kernels.gpu_ranks.delegate_layout import MANY_DELEGATES, DelegateLayout
from delegraph.kernels.gpu_ranks.grid_layout import GridLayout
from delegraph.kernels.gpu_ranks.grid_mail import HostedGridMail, Letters, inboxes_of
from delegraph.kernels.gpu_ranks.search import Search
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.bench.across import bench_generated
from delegraph.pipeline.bench.device import parse_recipe
from delegraph.pipeline.bench.protocol import BenchOptions
from delegraph.pipeline.bench.ranks import Placing
from delegraph.pipeline.engines.device_ranks.layouts import RankOnDevice
from delegraph.pipeline.engines.ranks import result as rank_result
from delegraph.pipeline.ranks.communicator import telling_others
from delegraph.pipeline.ranks.nccl import device_arrays
from delegraph.pipeline.run.resources import resources_of
from support import emulator
from support.graphs import SHAPES, SMALL, SMALL_SHAPES, edges_of
from support.marks import drawn, slow
from support.outputs import distances_of
from support.ranks import communicators
from support.searches import PULL, PUSH, violations_of


def rounds_of(search: Search) -> int:
    return int(search.control()["round"])


def check(
    store: Store,
    ranks: int,
    sources: list[int],
    folder: Path,
    devices: list[Device],
    direct: bool = False,
    by_nccl: bool = False,
    max_depth: int | None = None,
    push_cost: float = PUSH_COST,
    kind: str = "threads",
    near: int | None = None,
    many_delegates: int = MANY_DELEGATES,
) -> list:
    """Compare searches from each source, all with the same ranks, with the definition; return the
    records of the last search.
    """
    src, dst = edges_of(store)
    n = store.info.vertices

    def one(communicator) -> list:
        rank, device = communicator.rank, devices[communicator.rank % len(devices)]
        every = []
        with telling_others(rank, communicator), device_arrays(communicator, device) as ours:
            here = RankOnDevice(store, rank, ranks)
            room = here.room_for(device).near if near is None else near
            rows = here.load_rows(device, room, Team(1))
            if store.info.grid is None:
                layout = DelegateLayout(device, rows, many_delegates)
            else:
                layout = GridLayout(device, rows)
            search = Search(layout, ours.check, push_cost)
            search.connect(ours.exchange, direct)
            assert search.direct == direct
            for i, source in enumerate(sources):
                before = rounds_of(search)
                search.run(rows.number(source), max_depth)
                if direct and max_depth is None and isinstance(layout, DelegateLayout):
                    levels = search.levels()
                    pulls = sum(level.direction == "pull" for level in levels)
                    # One to begin, and one a superstep.
                    rounds = rounds_of(search) - before - (len(levels) + 1)
                    assert rounds >= pulls if many_delegates == 0 else rounds == 0
                place = folder / str(i)
                place.mkdir(exist_ok=True, parents=True)
                every.append(here.finish(search, ours, place))
            search.close()
            assert ours.by_nccl == by_nccl
        return every

    with ExitStack() as stack:
        group = stack.enter_context(communicators(kind, ranks))
        pool = stack.enter_context(ThreadPoolExecutor(ranks))
        records = next(iter(list(pool.map(one, group))))
    for i, source in enumerate(sources):
        wanted = reference.distances(src, dst, n, source, True)
        if max_depth is not None:
            wanted[wanted > max_depth] = -1
        distance, parent = rank_result.gather(store, folder / str(i))
        assert np.array_equal(distance, wanted)
        assert not violations_of(src, dst, True, distance, parent, source, max_depth)
        by_level = np.bincount(wanted[wanted > 0], minlength=1)[1:].tolist()
        steps = records[i]
        assert [step["found"] for step in steps if step["found"]] == by_level
        assert [step["frontier"] for step in steps] == [1, *by_level][: len(steps)]
    return records[-1]


def build(edge_list, tmp_path, shape: str, **options) -> Store:
    src, dst = SHAPES[shape]
    delegraph.build(edge_list(src, dst), tmp_path / "graph.dg", **options)
    return open_store(tmp_path / "graph.dg")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threshold", [None, 1, 6, 10**6])
@pytest.mark.parametrize("shape", SHAPES)
def test_mail_by_the_host(edge_list, tmp_path, device, shape, threshold, directed):
    options = {"partitions": 5, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    for ranks in (2, 3, 5):
        check(store, ranks, [0, n // 2, n - 1, 0], tmp_path / str(ranks), [device])


@pytest.mark.parametrize("push_cost", [PUSH, PULL])
@pytest.mark.parametrize("shape", ["random", "hubs", "lollipop", "clique"])
def test_every_direction(edge_list, tmp_path, device, shape, push_cost):
    store = build(edge_list, tmp_path, shape, partitions=3, threshold=8)
    steps = check(store, 3, [1, 5], tmp_path / "out", [device], push_cost=push_cost)
    assert ("push" if push_cost == PUSH else "pull") in {step["direction"]["dd"] for step in steps}


@pytest.mark.parametrize("max_depth", [0, 1, 3, 300])
def test_depth_limit(edge_list, tmp_path, device, max_depth):
    store = build(edge_list, tmp_path, "lollipop", partitions=4)
    sources = [0, store.info.vertices - 1]
    check(store, 2, sources, tmp_path / "out", [device], max_depth=max_depth)


def test_an_order_of_its_own(edge_list, tmp_path, device):
    store = build(edge_list, tmp_path, "random", partitions=4, threshold=20, order="random")
    check(store, 3, [0, 9, 4000], tmp_path / "out", [device])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("near", [0, 5000])
def test_targets_in_host_memory(edge_list, tmp_path, device, near, directed):
    store = build(edge_list, tmp_path, "hubs", partitions=3, directed=directed)
    check(store, 2, [0, 9, 700], tmp_path / "out", [device], near=near)


def test_over_tcp(edge_list, tmp_path, device):
    store = build(edge_list, tmp_path, "random", partitions=3)
    check(store, 3, [0, 9], tmp_path / "out", [device], kind="tcp")


GRIDS = [
    {"partitions": 3, "layout": "1d"},
    {"partitions": 4, "layout": "2d"},
    {"partitions": 6, "layout": "2d"},
    {"partitions": 6, "layout": "2d", "grid": Grid(3, 2)},
    {"partitions": 5, "layout": "2d", "grid": Grid(5, 1)},
]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "-".join(map(str, grid.values())))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid(edge_list, tmp_path, device, shape, grid, directed):
    """A grid of partitions is searched by as many ranks, and by fewer, which have partitions all
    over the grid.
    """
    store = build(edge_list, tmp_path, shape, **grid, directed=directed)
    n = store.info.vertices
    for ranks in (2, 3, grid["partitions"]):
        check(store, ranks, [0, n // 2, n - 1, 0], tmp_path / str(ranks), [device])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("push_cost", [0.0, PUSH, PULL])
@pytest.mark.parametrize("grid", GRIDS[:3], ids=lambda grid: "-".join(map(str, grid.values())))
@pytest.mark.parametrize("shape", ["random", "hubs", "lollipop", "clique"])
def test_every_direction_in_a_grid(
    edge_list, tmp_path, device, monkeypatch, shape, grid, push_cost, directed
):
    """Every direction in a grid is right, also with a short queue through which the frontier goes
    in slices.
    """
    monkeypatch.setattr(grid_layout, "MOST_QUEUED", 1024)
    store = build(edge_list, tmp_path, shape, **grid, directed=directed)
    ranks = grid["partitions"]
    sources = [1, 5]
    steps = check(store, ranks, sources, tmp_path / "out", [device], push_cost=push_cost)
    taken = {step["direction"]["all"] for step in steps}
    if push_cost == PULL:
        # A rank weighs rows of its own: edges that others hold seem to cost a push nothing.
        assert "pull" in taken
    else:
        assert taken == {"push"}


@pytest.mark.parametrize("max_depth", [0, 1, 3, 300])
def test_depth_limit_in_a_grid(edge_list, tmp_path, device, max_depth):
    store = build(edge_list, tmp_path, "lollipop", partitions=4, layout="2d")
    sources = [0, store.info.vertices - 1]
    check(store, 2, sources, tmp_path / "out", [device], max_depth=max_depth)


@pytest.mark.parametrize("directed", [False, True])
def test_a_grid_in_host_memory(edge_list, tmp_path, device, directed):
    store = build(edge_list, tmp_path, "hubs", partitions=4, layout="2d", directed=directed)
    check(store, 4, [0, 9, 700], tmp_path / "out", [device], near=5000)


@pytest.mark.parametrize("layout", ["delegate", "1d", "2d"])
def test_records_that_fill_their_buffer(edge_list, tmp_path, device, monkeypatch, layout):
    monkeypatch.setattr(rank_search, "LEVELS", 3)
    path = edge_list(range(20), range(1, 21))
    delegraph.build(path, tmp_path / "graph.dg", partitions=4, layout=layout, threshold=None)
    steps = check(open_store(tmp_path / "graph.dg"), 2, [0, 3], tmp_path / "out", [device])
    assert len(steps) == 17


@pytest.mark.parametrize("layout", ["delegate", "2d"])
def test_what_is_wrong_is_found(edge_list, tmp_path, device, layout):
    """Planted errors are found, each by its rule: a wrong distance, a parent without an edge, a
    missing parent.
    """
    store = build(edge_list, tmp_path, "hubs", partitions=4, layout=layout)
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 5, True)
    vertex = int(np.flatnonzero(wanted == 2)[-1])  # of low degree: normal, with a tree edge

    def one(communicator) -> list:
        rank = communicator.rank
        with device_arrays(communicator, device) as ours:
            search = RankOnDevice(store, rank, 2).load(device, Team(1))
            search.connect(ours.exchange, direct=False)
            checker = Checker(search, ours.exchange)
            number, broken = search.rows.number(vertex), []
            for wrong in (None, "distance", "parent", "no parent"):
                search.run(search.rows.number(5))
                with device.use():
                    if number is not None and wrong == "distance":
                        search.distance[number] += 2
                    if number is not None and wrong == "parent":
                        search.parent[number] = vertex
                    if number is not None and wrong == "no parent":
                        search.parent[number] = UNREACHED
                counts = checker.check(5).count
                broken.append({rule for rule, count in counts.items() if count})
            search.close()
        return broken

    with communicators("threads", 2) as group, ThreadPoolExecutor(2) as pool:
        rules = [set.union(*both) for both in zip(*pool.map(one, group), strict=True)]
    assert rules[0] == set()
    assert 3 in rules[1]
    assert rules[2] == {5}
    assert 1 in rules[3]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "-".join(map(str, grid.values())))
def test_what_others_say_has_room(edge_list, tmp_path, device, grid):
    """Inboxes of ranks have the sizes that ``GridOfRank.needs`` counts."""
    store = build(edge_list, tmp_path, "hubs", **grid)

    def one(communicator) -> tuple[set, set]:
        rank = communicator.rank
        with device_arrays(communicator, device) as ours:
            search = RankOnDevice(store, rank, 3).load(device, Team(1))
            layout = search.layout
            assert isinstance(layout, GridLayout)
            search.connect(ours.exchange, direct=False)
            counted = inboxes_of(Letters(layout.rows.numbering), rank)
            search.close()
            assert isinstance(search._mail, HostedGridMail)
            return counted, set(search._mail._inboxes)

    with communicators("threads", 3) as group, ThreadPoolExecutor(3) as pool:
        for counted, made in pool.map(one, group):
            assert counted == made


def test_a_grid_with_an_order_of_its_own(edge_list, tmp_path, device):
    store = build(edge_list, tmp_path, "random", partitions=4, layout="2d", order="random")
    check(store, 4, [0, 9, 4000], tmp_path / "out", [device])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("push_cost", [0.0, PUSH_COST, PULL])
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "-".join(map(str, grid.values())))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_grid_in_each_others_memory(
    edge_list, tmp_path, two_devices, shape, grid, push_cost, directed
):
    store = build(edge_list, tmp_path, shape, **grid, directed=directed)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0, 0, n // 3]
    folder = tmp_path / "out"
    check(store, 2, sources, folder, two_devices, direct=True, push_cost=push_cost)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
@pytest.mark.parametrize("shape", ["random", "hubs", "lollipop", "clique", "self-loop"])
def test_four_devices(edge_list, tmp_path, four_devices, shape, layout, directed):
    store = build(edge_list, tmp_path, shape, partitions=4, layout=layout, directed=directed)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0, 0, n // 3]
    check(store, 4, sources, tmp_path / "out", four_devices, direct=True)


OF_EIGHT = [
    {"layout": "delegate", "threshold": 6},
    {"layout": "1d"},
    {"layout": "2d", "grid": Grid(2, 4)},
    {"layout": "2d", "grid": Grid(4, 2)},
]


@pytest.mark.parametrize("way", ["in memory", "by NCCL"])
@pytest.mark.parametrize("layout", OF_EIGHT, ids=lambda layout: "-".join(map(str, layout.values())))
@pytest.mark.parametrize("shape", ["random", "hubs", "two components"])
def test_eight_devices(edge_list, tmp_path, eight_devices, shape, layout, way):
    store = build(edge_list, tmp_path, shape, partitions=8, directed=True, **layout)
    n, direct = store.info.vertices, way == "in memory"
    kind = "threads" if direct else "tcp"
    args = store, 8, [0, n // 2, n - 1], tmp_path / "out", eight_devices
    check(*args, direct=direct, by_nccl=not direct, kind=kind)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threshold", [None, 1, 6, 10**6])
@pytest.mark.parametrize("shape", SHAPES)
def test_mail_in_each_others_memory(edge_list, tmp_path, two_devices, shape, threshold, directed):
    options = {"partitions": 5, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0, 0, n // 3]
    check(store, 2, sources, tmp_path / "out", two_devices, direct=True)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threshold", [None, 1, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_mail_by_nccl(edge_list, tmp_path, two_devices, shape, threshold, directed):
    options = {"partitions": 5, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0]
    check(store, 2, sources, tmp_path / "out", two_devices, by_nccl=True, kind="tcp")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("push_cost", [PUSH_COST, PULL])
@pytest.mark.parametrize("threshold", [None, 1, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_two_rounds(edge_list, tmp_path, two_devices, shape, threshold, push_cost, directed):
    options = {"partitions": 3, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    check(
        *(store, 2, [0, n // 2, n - 1, n // 3], tmp_path / "out", two_devices),
        direct=True,
        push_cost=push_cost,
        many_delegates=0,
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("many_delegates", [0, MANY_DELEGATES])
def test_an_order_of_its_own_in_each_others_memory(
    edge_list, tmp_path, two_devices, many_delegates, directed
):
    options = {"partitions": 5, "threshold": 20, "order": "random", "directed": directed}
    store = build(edge_list, tmp_path, "random", **options)
    check(
        *(store, 2, [0, 9, 4000], tmp_path / "out", two_devices),
        direct=True,
        many_delegates=many_delegates,
    )


def test_workers(edge_list, tmp_path, two_devices, ok):
    path = edge_list(*SHAPES["random"])
    ok("build", path, "-o", tmp_path / "graph.dg", "--partitions", 4)
    ok("bfs", tmp_path / "graph.dg", "--source", 5, "-o", tmp_path / "cpu", "--device", "cpu")
    run = ok(
        *("bfs", tmp_path / "graph.dg", "--source", 5, "-o", tmp_path / "gpu"),
        *("--workers", 2, "--device", "cuda", "--json"),
    )
    assert run.json["ranks"] == 2
    assert run.json["device"].startswith("2 x ")
    assert distances_of(tmp_path / "gpu") == distances_of(tmp_path / "cpu")
    ok("validate", tmp_path / "graph.dg", tmp_path / "gpu")


@pytest.mark.parametrize("layout", ["delegate", "1d"])
@pytest.mark.parametrize("name", ["kronecker:12", "uniform:12", "grid:60x50"])
def test_a_graph_generated_across_workers(two_devices, name, layout):
    """A graph generated across workers gives the graph, sources and results of one device; every
    result is checked in place.
    """
    placing = Placing(layout)
    recipe = parse_recipe(name)
    assert recipe is not None
    workers = resources_of(workers=2)
    runs = [(1, recipe), (2, recipe)]
    rows = bench_generated(runs, placing, workers, BenchOptions(8, 3, threads=2))
    alone, together = (row.report for row in rows)
    exchanged = rows[1].exchanged
    assert exchanged is not None
    assert exchanged.direct
    assert together["sources"] == alone["sources"]
    assert together["depth"] == alone["depth"]
    for fact in ("vertices", "rows", "edges"):
        assert together["graph"][fact] == alone["graph"][fact]


# On emulated devices


@pytest.mark.parametrize(("shape", "way"), drawn(8, SMALL_SHAPES, [(1, True), (6, False)]))
def test_the_host_emulated(emulated, edge_list, tmp_path, shape, way):
    threshold, directed = way
    test_mail_by_the_host(edge_list, tmp_path, emulated[0], shape, threshold, directed)


@pytest.mark.nightly
@pytest.mark.parametrize(("push_cost", "directed"), [(PUSH_COST, True), slow(PULL, False)])
@pytest.mark.parametrize("shape", SMALL)
def test_two_rounds_emulated(emulated, edge_list, tmp_path, shape, push_cost, directed):
    test_two_rounds(edge_list, tmp_path, emulated, shape, 6, push_cost, directed)


@pytest.mark.slow
def test_an_order_of_its_own_emulated(emulated, edge_list, tmp_path):
    test_an_order_of_its_own_in_each_others_memory(edge_list, tmp_path, emulated, 0, True)


@pytest.mark.slow
def test_a_grid_emulated(emulated, edge_list, tmp_path):
    test_a_grid(edge_list, tmp_path, emulated[0], "two components", GRIDS[1], True)


@pytest.mark.parametrize("push_cost", [slow(0.0), PUSH_COST, slow(PULL)])
@pytest.mark.parametrize(
    ("grid", "directed"), [slow(0, True), slow(1, False), slow(2, True), slow(3, True)], ids=str
)
def test_the_memory_of_a_grid_emulated(
    emulated, edge_list, tmp_path, monkeypatch, grid, push_cost, directed
):
    monkeypatch.setattr(grid_layout, "MOST_QUEUED", 1024)
    place = edge_list, tmp_path, emulated
    test_a_grid_in_each_others_memory(*place, "hubs", GRIDS[grid], push_cost, directed)


@pytest.mark.parametrize(("shape", "directed"), [slow("two components", True), ("hubs", False)])
def test_nccl_emulated(emulated, edge_list, tmp_path, shape, directed):
    test_mail_by_nccl(edge_list, tmp_path, emulated, shape, 6, directed)


@pytest.mark.nightly
@pytest.mark.parametrize("layout", ["delegate", slow("2d")])
def test_four_devices_emulated(emulated, edge_list, tmp_path, layout):
    test_four_devices(edge_list, tmp_path, emulated, "hubs", layout, layout == "2d")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in memory", "by NCCL"])
@pytest.mark.parametrize("layout", OF_EIGHT, ids=lambda layout: "-".join(map(str, layout.values())))
def test_eight_devices_emulated(eight_emulated, edge_list, tmp_path, layout, way):
    test_eight_devices(edge_list, tmp_path, eight_emulated, "hubs", layout, way)


@pytest.mark.slow
@pytest.mark.parametrize("direct", [False, True])
def test_more_ranks_than_threads_emulated(emulated, edge_list, tmp_path, monkeypatch, direct):
    """Messages of each of more ranks than threads arrive: on a path, only one rank at a time finds
    anything, from the last one on.
    """
    ranks, length = 34, 36
    monkeypatch.setattr(emulator, "_THREADS", 32)
    monkeypatch.setattr(emulator, "DEVICES", ranks)
    path = edge_list(range(length), range(1, length + 1))
    delegraph.build(path, tmp_path / "graph.dg", partitions=ranks, threshold=None)
    devices = [open_device(number) for number in range(ranks)] if direct else emulated[:1]
    store, folder = open_store(tmp_path / "graph.dg"), tmp_path / "out"
    check(store, ranks, [length], folder, devices, direct=direct, max_depth=5)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["delegate", "2d"])
def test_records_that_fill_their_buffer_emulated(
    emulated, edge_list, tmp_path, monkeypatch, layout
):
    test_records_that_fill_their_buffer(edge_list, tmp_path, emulated[0], monkeypatch, layout)


@pytest.mark.parametrize("layout", ["delegate", slow("2d")])
def test_what_is_wrong_is_found_emulated(emulated, edge_list, tmp_path, layout):
    test_what_is_wrong_is_found(edge_list, tmp_path, emulated[0], layout)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "-".join(map(str, grid.values())))
def test_what_others_say_has_room_emulated(emulated, edge_list, tmp_path, grid):
    test_what_others_say_has_room(edge_list, tmp_path, emulated[0], grid)
