"""Some of the GPU's tests on the CPU (emulator/): so kernels are checked where there is no GPU.

All of them: pytest --emulate -m gpu, which takes hours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import emulator
import pytest
import test_gpu_ranks
import test_gpu_search
import test_rank_bench
import test_rank_build
from test_faults import digest
from test_rank_faults import Background, cluster, pids, wait_for_supersteps

import delegraph
from conftest import distances_of, random_edges
from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu import device as devices
from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.search import PUSH_COST
from delegraph.kernels.gpu_ranks import grid_layout
from delegraph.partition.store.store import open_store
from delegraph.pipeline.bench.device import parse_recipe
from delegraph.pipeline.bench.protocol import BenchOptions
from delegraph.pipeline.bench.ranks import BenchJob, Placing
from delegraph.pipeline.ranks.communicator import ThreadGroup

# Its fibers are x86-64's, and compiling needs g++; NVRTC compiles every kernel anywhere.
pytestmark = pytest.mark.skipif(not emulator.able(), reason="g++ compiles the kernels")

SMALL = ["two vertices", "self-loop", "star", "two components", "empty rows", "hubs"]


@pytest.fixture
def two_devices(monkeypatch) -> Iterator[list[Device]]:
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    devices._compile.cache_clear()
    yield [open_device(number) for number in range(emulator.DEVICES)]
    devices._compile.cache_clear()


@pytest.fixture
def device(two_devices) -> Device:
    return two_devices[0]


@pytest.mark.parametrize(("way", "directed"), [("chosen", True), ("pull", False)])
@pytest.mark.parametrize("shape", SMALL)
def test_a_search(device, shape, directed, way):
    test_gpu_search.test_against_the_definition(device, shape, directed, way)


@pytest.mark.parametrize(("threshold", "directed"), [(1, True), (6, False)])
@pytest.mark.parametrize("shape", SMALL)
def test_ranks_and_the_host(device, edge_list, tmp_path, shape, threshold, directed):
    test = test_gpu_ranks.test_mail_by_the_host
    test(edge_list, tmp_path, device, shape, threshold, directed)


@pytest.mark.parametrize(
    ("push_cost", "directed"), [(PUSH_COST, True), (test_gpu_search.PULL, False)]
)
@pytest.mark.parametrize("shape", SMALL)
def test_ranks_and_their_memory(two_devices, edge_list, tmp_path, shape, push_cost, directed):
    test = test_gpu_ranks.test_two_rounds
    test(edge_list, tmp_path, two_devices, shape, 6, push_cost, directed)


def test_ranks_and_an_order_of_its_own(two_devices, edge_list, tmp_path):
    test = test_gpu_ranks.test_an_order_of_its_own_in_each_others_memory
    test(edge_list, tmp_path, two_devices, 0, True)


def test_a_grid_and_the_host(device, edge_list, tmp_path):
    test = test_gpu_ranks.test_a_grid
    test(edge_list, tmp_path, device, "two components", test_gpu_ranks.GRIDS[1], True)


@pytest.mark.parametrize("push_cost", [0.0, PUSH_COST, test_gpu_search.PULL])
@pytest.mark.parametrize(
    ("grid", "directed"), [(0, True), (1, False), (2, True), (3, True)], ids=str
)
def test_a_grid_and_its_memory(
    two_devices, edge_list, tmp_path, monkeypatch, grid, push_cost, directed
):
    monkeypatch.setattr(grid_layout, "MOST_QUEUED", 1024)
    test, grid = test_gpu_ranks.test_a_grid_in_each_others_memory, test_gpu_ranks.GRIDS[grid]
    test(edge_list, tmp_path, two_devices, "hubs", grid, push_cost, directed)


@pytest.mark.parametrize(("shape", "directed"), [("two components", True), ("hubs", False)])
def test_ranks_and_nccl(two_devices, edge_list, tmp_path, shape, directed):
    test = test_gpu_ranks.test_mail_by_nccl
    test(edge_list, tmp_path, two_devices, shape, 6, directed)


@pytest.mark.parametrize("layout", ["delegate", "2d"])
def test_four_devices(two_devices, edge_list, tmp_path, layout):
    test = test_gpu_ranks.test_four_devices
    test(edge_list, tmp_path, two_devices, "hubs", layout, layout == "2d")


@pytest.mark.parametrize("direct", [False, True])
def test_more_ranks_than_threads(two_devices, edge_list, tmp_path, monkeypatch, direct):
    """Each is heard: on a path, only one rank at a time finds anything, from the last one on."""
    ranks, length = 34, 36
    monkeypatch.setattr(emulator, "_THREADS", 32)
    monkeypatch.setattr(emulator, "DEVICES", ranks)
    delegraph.build(
        edge_list(range(length), range(1, length + 1)),
        tmp_path / "graph.dg",
        partitions=ranks,
        threshold=None,
    )
    devices = [open_device(number) for number in range(ranks)] if direct else two_devices[:1]
    store, folder = open_store(tmp_path / "graph.dg"), tmp_path / "out"
    test_gpu_ranks.check(store, ranks, [length], folder, devices, direct=direct, max_depth=5)


@pytest.mark.parametrize("layout", ["delegate", "2d"])
def test_records_that_fill_their_buffer(device, edge_list, tmp_path, monkeypatch, layout):
    test = test_gpu_ranks.test_records_that_fill_their_buffer
    test(edge_list, tmp_path, device, monkeypatch, layout)


@pytest.mark.parametrize("layout", ["delegate", "2d"])
def test_what_is_wrong_is_found(device, edge_list, tmp_path, layout):
    test_gpu_ranks.test_what_is_wrong_is_found(edge_list, tmp_path, device, layout)


def test_what_others_say_has_room(device, edge_list, tmp_path):
    for i, grid in enumerate(test_gpu_ranks.GRIDS):
        folder = tmp_path / str(i)
        folder.mkdir()
        test_gpu_ranks.test_what_others_say_has_room(edge_list, folder, device, grid)


@pytest.mark.parametrize("layout", test_rank_build.LAYOUTS)
@pytest.mark.parametrize("shape", ["self-loop", "random"])
def test_a_build(device, edge_list, tmp_path, monkeypatch, shape, layout):
    test_rank_build.test_the_same_bytes(device, edge_list, tmp_path, monkeypatch, shape, layout)


def there(*args, **more) -> subprocess.CompletedProcess:
    """The command line, where every process has emulated devices."""
    environment = {**os.environ, "PYTHONPATH": str(emulator.SITE), **more}
    line = [sys.executable, "-m", "delegraph", *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, env=environment)


def test_workers(edge_list, tmp_path):
    """Two workers build on their devices, search on them, and go on without them."""
    path = edge_list(*random_edges(3, 2000, 20_000), row_group_size=5000)
    delegraph.build(path, tmp_path / "cpu.dg", partitions=3)
    on = ("--workers", 2, "--device", "cuda")
    build = ("build", path, "-o", tmp_path / "gpu.dg", "--partitions", 3, *on)
    search = ("bfs", tmp_path / "gpu.dg", "--source", 5, *on, "-o")
    few = ("--device-memory-limit", "1MB")
    for told, more, full in (
        ("built on 2 x emulated", (), {}),
        ("built on the CPU: 1 MB may be held", few, {}),
        ("built on the CPU: rank", (), {emulator.FULL: "yes"}),
    ):
        ran = there(*build, "--overwrite", *more, **full)
        assert ran.returncode == 0, ran.stderr
        assert told in ran.stderr
        assert digest(tmp_path / "gpu.dg") == digest(tmp_path / "cpu.dg")
    delegraph.bfs(tmp_path / "cpu.dg", 5, tmp_path / "wanted")
    for name, told, more, full in (
        ("gpu", "searched on 2 x emulated", (), {}),
        ("few", "searched on CPUs: 1 MB may be held", few, {}),
        ("full", "searched on CPUs: rank", (), {emulator.FULL: "yes"}),
    ):
        ran = there(*search, tmp_path / name, *more, **full)
        assert ran.returncode == 0, ran.stderr
        assert told in ran.stderr
        assert distances_of(tmp_path / name) == distances_of(tmp_path / "wanted")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_is_killed(edge_list, tmp_path, monkeypatch):
    """The search is done again on the devices that are left."""
    vertices = 600  # some seconds
    store, out = tmp_path / "graph.dg", tmp_path / "out"
    path = edge_list(range(vertices - 1), range(1, vertices))
    delegraph.build(path, store, partitions=4, threshold=6)
    monkeypatch.syspath_prepend(emulator.SITE)  # workers look where this process does
    with cluster(3) as (local, client):
        there = {"scheduler": local.scheduler_address, "device": "cuda"}
        running = Background(lambda: delegraph.bfs(store, 0, out, timeout=5, threads=1, **there))
        wait_for_supersteps(client)
        workers = pids(client)
        os.kill(workers[sorted(workers)[1]], signal.SIGKILL)
        running.join(120)
    assert running.error is None
    record, _, notes = running.result
    assert record["device"] == "2 x emulated"
    assert any("rank 1 is gone" in note and "again on 2" in note for note in notes)
    assert distances_of(out) == {i: i for i in range(vertices)}


@pytest.mark.parametrize(
    ("ranks", "placing"),
    [
        (3, Placing()),
        (2, Placing("1d")),
        (4, Placing("2d", push_only=True)),
    ],
    ids=str,
)
def test_a_graph_made_across_ranks(device, ranks, placing):
    """Every result is checked there."""
    recipe = parse_recipe("kronecker:8")
    assert recipe is not None
    job = BenchJob(recipe, BenchOptions(sources=4), placing)
    with ThreadPoolExecutor(ranks) as pool:
        group = ThreadGroup(ranks).communicators
        results = list(pool.map(lambda communicator: job.run(communicator, Team(1)), group))
    assert results[0] is not None
    _, benched, exchanged = results[0]
    assert benched.graph["partitions"] == ranks
    assert exchanged is not None
    assert (exchanged.table_bytes is None) == (placing.layout != "delegate")


@pytest.mark.parametrize("order", ["degree", "random"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_store_searched_many_times(device, edge_list, tmp_path, directed, order):
    """By ranks of several partitions; checked on the devices, or on their hosts where directed."""
    path = edge_list(*random_edges(3, 300, 1500))
    options = {"directed": directed, "order": order, "partitions": 5, "threshold": 8}
    delegraph.build(path, tmp_path / "graph.dg", **options)
    test_rank_bench.check_job(open_store(tmp_path / "graph.dg"), 2, "cuda")
