"""Searches by several ranks with a device each, against the definition.

On one device the ranks take turns and the host carries their mail; on several they read each
other's memory, or NCCL carries it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_communicators import communicators
from test_gpu_search import PULL, PUSH, SHAPES
from test_rank_search import edges_of

import delegraph
from conftest import distances_of
from delegraph.kernels import reference
from delegraph.kernels.device import Device
from delegraph.kernels.gpu_rank import MANY_DELEGATES, GpuRankSearch
from delegraph.kernels.gpu_search import PUSH_COST
from delegraph.kernels.rank_structures import CONTROL
from delegraph.kernels.team import Team
from delegraph.partition.store import Store, open_store
from delegraph.pipeline import device_rank, rank_result
from delegraph.pipeline.cluster import ClusterOptions
from delegraph.pipeline.communicator import telling_others
from delegraph.pipeline.device_bench import parse_recipe
from delegraph.pipeline.nccl import device_arrays
from delegraph.pipeline.rank_bench import bench_on_workers
from test_search import violations_of

pytestmark = pytest.mark.gpu


def rounds_of(search: GpuRankSearch) -> int:
    return int(search._control.get().view(CONTROL)["round"][0])


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
    """Search from each of the sources, with the same ranks, and compare; the last one's records."""
    src, dst = edges_of(store)
    n = store.info.vertices

    def one(communicator) -> list:
        rank, device = communicator.rank, devices[communicator.rank % len(devices)]
        every = []
        with telling_others(rank, communicator), device_arrays(communicator, device) as ours:
            room = device_rank.room_for(store, rank, ranks, device)
            if near is not None:
                room = replace(room, near=near)
            rows = device_rank.load(store, device, rank, ranks, Team(1), room)
            search = GpuRankSearch(device, rows, ours.check, push_cost, many_delegates)
            search.connect(ours.exchange, direct)
            assert search.direct == direct
            for i, source in enumerate(sources):
                before = rounds_of(search)
                search.run(rows.number(source), max_depth)
                if direct and max_depth is None:
                    levels = search.levels()
                    pulls = sum(level.direction == "pull" for level in levels)
                    # One to begin, one a superstep, one in which nobody goes on from anything.
                    rounds = rounds_of(search) - before - (len(levels) + 2)
                    assert rounds >= pulls if many_delegates == 0 else rounds == 0
                place = folder / str(i)
                place.mkdir(exist_ok=True, parents=True)
                every.append(device_rank.finish(search, ours, place))
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
        found = np.bincount(wanted[wanted > 0], minlength=1)[1:].tolist()
        steps = records[i]
        assert [step["found"] for step in steps if step["found"]] == found
        assert [step["frontier"] for step in steps] == [1, *found][: len(steps)]
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


@pytest.mark.multi_gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threshold", [None, 1, 6, 10**6])
@pytest.mark.parametrize("shape", SHAPES)
def test_mail_in_each_others_memory(edge_list, tmp_path, two_devices, shape, threshold, directed):
    options = {"partitions": 5, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0, 0, n // 3]
    check(store, 2, sources, tmp_path / "out", two_devices, direct=True)


@pytest.mark.multi_gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threshold", [None, 1, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_mail_by_nccl(edge_list, tmp_path, two_devices, shape, threshold, directed):
    options = {"partitions": 5, "threshold": threshold, "directed": directed}
    store = build(edge_list, tmp_path, shape, **options)
    n = store.info.vertices
    sources = [0, n // 2, n - 1, 0]
    check(store, 2, sources, tmp_path / "out", two_devices, by_nccl=True, kind="tcp")


@pytest.mark.multi_gpu
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


@pytest.mark.multi_gpu
def test_workers(edge_list, tmp_path, two_devices, ok):
    path = edge_list(*SHAPES["random"])
    ok("build", path, "-o", tmp_path / "graph.dg", "--partitions", 4)
    ok("bfs", tmp_path / "graph.dg", "--source", 5, "-o", tmp_path / "cpu", "--device", "cpu")
    ran = ok(
        *("bfs", tmp_path / "graph.dg", "--source", 5, "-o", tmp_path / "gpu"),
        *("--workers", 2, "--device", "cuda", "--json"),
    )
    assert ran.json["ranks"] == 2
    assert ran.json["device"].startswith("2 x ")
    assert distances_of(tmp_path / "gpu") == distances_of(tmp_path / "cpu")
    ok("validate", tmp_path / "graph.dg", tmp_path / "gpu")


@pytest.mark.multi_gpu
@pytest.mark.parametrize("name", ["kronecker:12", "uniform:12", "grid:60x50"])
def test_a_graph_generated_across_workers(two_devices, name):
    """The same graph, sources and results as on one device; every result is checked there."""
    recipe = parse_recipe(name)
    assert recipe is not None
    rows = bench_on_workers([(1, recipe), (2, recipe)], 8, 3, 2, ClusterOptions(workers=2))
    (_, alone, _, _), (_, together, exchanged, _) = rows
    assert exchanged is not None
    assert exchanged.direct
    assert together["sources"] == alone["sources"]
    assert together["depth"] == alone["depth"]
    for fact in ("vertices", "rows", "edges"):
        assert together["graph"][fact] == alone["graph"][fact]
