"""Choices of a device, and runs without one: tests that need no GPU."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

from delegraph.kernels.gpu import device as device_module
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu.device import Device, DeviceError, open_device
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.build import device as device_build
from delegraph.pipeline.build.prepare import BuildOptions, plan_ahead
from delegraph.pipeline.engines.one_device import search as device_engine
from delegraph.pipeline.engines.one_device.search import Room
from delegraph.pipeline.run import devices, resources
from delegraph.pipeline.run.plan import Budget
from delegraph.pipeline.run.resources import Resources
from support.graphs import random_edges
from support.outputs import digest


@pytest.fixture
def no_device(monkeypatch):
    def refuse(number, limit):
        raise DeviceError(f"no device {number} within {limit}")

    monkeypatch.setattr(devices, "open_device", refuse)


def test_without_a_device(no_device):
    assert devices.choose_device("cpu") is None
    assert devices.choose_device("auto", 5) is None
    with pytest.raises(InputError, match="--device cuda: no device 0 within None"):
        devices.choose_device("cuda")
    with pytest.raises(InputError, match="no device 12 within 77"):
        devices.choose_device("cuda:12", 77)
    with pytest.raises(InputError, match="'gpu' is not a device"):
        Resources(device="gpu")
    with pytest.raises(InputError, match="must be positive"):
        Resources(device_memory_limit=0)


def test_a_limit_of_a_device_that_is_missing(no_device, ok, edge_list, tmp_path):
    """A missing device is noted when a limit of its memory is given, as the user then expects a
    device, and not otherwise.
    """
    edges = edge_list([0, 1], [1, 2])
    limited = "--device-memory-limit", 77
    ok("components", edges, "-o", tmp_path / "limited", *limited)
    ok("components", edges, "-o", tmp_path / "out", "--device", "auto")
    for name, notes in (("limited", ["on the CPU: no device 0 within 77"]), ("out", [])):
        assert json.loads((tmp_path / f"{name}.run.json").read_text())["notes"] == notes


class StandInError(Exception):
    """A stand-in for cupy.cuda.runtime.CUDARuntimeError."""


def stand_in(architecture: int, count: int = 1, failing: bool = False) -> Any:
    """Return a stand-in for the parts of CuPy that are used before a kernel runs."""

    def get_count():
        if failing:
            raise StandInError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return count

    properties = {
        "major": architecture // 10,
        "minor": architecture % 10,
        "name": b"Stand-in",
        "multiProcessorCount": 80,
        "sharedMemPerBlockOptin": 1000,
        "l2CacheSize": 1 << 20,
    }
    pool = SimpleNamespace(
        free_all_blocks=lambda: None, total_bytes=lambda: 10, set_limit=lambda size: None
    )
    runtime = SimpleNamespace(
        CUDARuntimeError=StandInError,
        getDeviceCount=get_count,
        getDeviceProperties=lambda number: properties,
        memGetInfo=lambda: (90, 1000),
    )
    cuda = SimpleNamespace(runtime=runtime, Device=lambda number: contextlib.nullcontext())
    return SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool)


def test_opening_a_device(monkeypatch):
    monkeypatch.setattr(device_module, "import_cupy", lambda: stand_in(90))
    assert open_device().memory_bytes == 100
    assert open_device(0, 60).memory_bytes == 60
    with pytest.raises(DeviceError, match=r"there is no device cuda:1; the last one is cuda:0"):
        open_device(1)
    monkeypatch.setattr(device_module, "import_cupy", lambda: stand_in(70))
    with pytest.raises(
        DeviceError, match=r"cuda:0 \(Stand-in\) is too old: .* 7.0, but delegraph needs 7.5"
    ):
        open_device()
    monkeypatch.setattr(device_module, "import_cupy", lambda: stand_in(90, failing=True))
    with pytest.raises(DeviceError, match="cuda:0 is not usable: cudaErrorInsufficientDriver"):
        open_device()


def test_blocks_of_a_cluster():
    """Clusters of blocks are as large as each architecture allows; architectures before 90 have
    none.
    """
    facts = {80: 1, 90: 16, 100: 16, 120: 8}
    for architecture, blocks in facts.items():
        device = Device(0, "", architecture, 132, 0, 0, 0, cupy=None)
        assert device.cluster_blocks == blocks
    assert Device(0, "a slice", 90, 16, 0, 0, 0, cupy=None).cluster_blocks == 8


def test_errors_of_a_device_are_for_the_user():
    with pytest.raises(DelegraphError, match="it broke") as raised, devices.device_errors():
        raise DeviceError("it broke")
    assert raised.value.exit_code == 1


def test_build_says_where_it_ran(no_device, delegraph, edge_list, tmp_path):
    path = edge_list(*random_edges(1, 100, 500))
    assert delegraph("build", path, "-o", tmp_path / "cpu.dg").code == 0
    run = delegraph("build", path, "-o", tmp_path / "auto.dg", "--device", "auto")
    assert run.code == 0
    lines = [line for line in run.err.splitlines() if " rows " not in line]
    assert lines == [f"{tmp_path}/auto.dg: written"]  # what is not there needs no word
    assert json.loads((tmp_path / "auto.dg.run.json").read_text())["device"] == "cpu"
    assert digest(tmp_path / "auto.dg") == digest(tmp_path / "cpu.dg")
    for wrong in ("cuda", "cuda:1", "gpu"):
        run = delegraph("build", path, "-o", tmp_path / "no.dg", "--device", wrong)
        assert run.code == 2
        assert wrong in run.err.splitlines()[-1]
    run = delegraph("build", path, "-o", tmp_path / "no.dg", "--device", "cuda", "--workers", 99)
    assert run.code == 2
    assert "--device cuda: " in run.err
    run = delegraph("plan", path, "--device", "cuda", "--workers", 2)
    assert run.code == 2
    assert "leave out --workers" in run.err
    assert not list(tmp_path.glob("*no.dg*"))


def test_a_search_says_where_it_ran(no_device, delegraph, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2])
    args = ("bfs", path, "--source", 0, "-o")
    run = delegraph(*args, tmp_path / "out")
    assert run.code == 0
    assert "found on cpu, written" in run.err
    assert json.loads((tmp_path / "out.run.json").read_bytes())["device"] == "cpu"
    for wrong in ("cuda", "cuda:1"):
        run = delegraph(*args, tmp_path / "no", "--device", wrong)
        assert run.code == 2
        assert run.err.splitlines()[-1].startswith(f"delegraph: --device {wrong}: no device")
    assert not list(tmp_path.glob("*no*"))


def test_bench_without_a_device(no_device, delegraph, edge_list, tmp_path):
    assert delegraph("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg").code == 0
    run = delegraph("bench", tmp_path / "graph.dg", "--sources", 2, "--json")
    assert run.json["device"] == "cpu"
    for graph, device, reason in (
        (tmp_path / "graph.dg", "cuda", "no device 0"),
        ("kronecker:10", "auto", "no device 0"),
        ("grid:10x10", "cpu", "a generated graph needs a GPU"),
        ("kronecker:99", "auto", "the scale must be"),
        ("kronecker", "auto", "not a store"),
    ):
        run = delegraph("bench", graph, "--device", device)
        assert run.code == 2
        assert reason in run.err.splitlines()[-1]


def test_profile_shows_every_superstep(no_device, ok, edge_list, tmp_path):
    run = ok("bfs", edge_list([0, 1], [1, 2]), "--source", 0, "-o", tmp_path / "out", "--profile")
    assert [line.split()[0] for line in run.err.splitlines()[:3]] == ["level", "1", "2"]


@pytest.mark.parametrize("options", [(), ("--partitions", 3)], ids=["one", "three"])
def test_a_device_without_room(monkeypatch, delegraph, edge_list, tmp_path, options):
    """A build that has no room on the device runs on the CPU and says why; the device stays
    unused.
    """
    small = Device(0, "Small", 90, 1, 2000, 0, 0, cupy=None)
    monkeypatch.setattr(resources, "choose_device", lambda *_: small)
    path = edge_list(*random_edges(1, 100, 500))
    for name, device in (("cpu", ()), ("small", ("--device", "cuda"))):
        run = delegraph("build", path, "-o", tmp_path / f"{name}.dg", *options, *device)
        assert run.code == 0, run.err
    assert "built on the CPU: only 2 kB of memory may be used on cuda:0 (Small)" in run.err
    assert digest(tmp_path / "small.dg") == digest(tmp_path / "cpu.dg")
    assert json.loads((tmp_path / "small.dg.run.json").read_text())["device"] == "cpu"


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_plan_tells_what_a_device_holds(edge_list, partitions):
    edges = open_edges(edge_list(*random_edges(1, 1000, 5000)))
    options = BuildOptions(partitions=partitions)
    on_cpu = plan_ahead(edges, options, Budget(10**9, 10**8, 2), through_files=True)
    plan = device_build.plan_on_device(on_cpu, 1000)
    threshold = ["threshold"] if partitions > 1 else []
    held = {step.name: step.device_bytes for step in plan.steps}
    assert list(held) == ["degrees", "order", *threshold, "sort", "build", "vertices"]
    assert held.pop("vertices") == 0
    assert min(held.values()) >= gpu_prepare.bytes_needed(5000, 1000, False) > 32 * 5000
    assert all(step.device_bytes == 0 for step in on_cpu.steps)
    assert plan.peak_bytes <= on_cpu.peak_bytes


@pytest.mark.parametrize("graph", ["edges", "store"])
@pytest.mark.parametrize(("memory", "device"), [(10**9, "cuda:0 (Fake)"), (10**5, None)])
def test_a_plan_on_a_device(monkeypatch, delegraph, edge_list, tmp_path, graph, memory, device):
    """A plan for a device gives the bytes on the device, or the CPU's bytes where the device has no
    room.
    """
    fake = Device(0, "Fake", 90, 132, memory, 0, 0, cupy=None)
    path = edge_list(*random_edges(1, 1000, 50_000))
    if graph == "store":
        assert delegraph("build", path, "-o", tmp_path / "graph.dg").code == 0
        path = tmp_path / "graph.dg"
    monkeypatch.setattr(resources, "choose_device", lambda *_: fake)
    run = delegraph("plan", path, "--device", "cuda", "--json")
    assert run.code == 0, run.err
    plan = json.loads(run.out)
    assert plan["device"] == device
    held = max(step["device_bytes"] for step in plan["steps"])
    assert (2 * 4 * 50_000 * 0.9 < held <= memory) if device else held == 0
    assert (device or "cpu") in delegraph("plan", path, "--device", "cuda").out


def test_a_search_that_the_host_has_no_room_for(monkeypatch, delegraph, edge_list, tmp_path):
    """A search on a device that needs too much host memory runs on the CPU, where streaming may
    need less.
    """
    path = tmp_path / "graph.dg"
    assert delegraph("build", edge_list(*random_edges(1, 1000, 5000)), "-o", path).code == 0
    fake = Device(0, "Fake", 90, 132, 10**9, 0, 0, cupy=None)
    monkeypatch.setattr(resources, "choose_device", lambda *_: fake)
    monkeypatch.setattr(device_engine, "room_for", lambda *_: Room(0, 10**15, 10**6, 0))
    run = delegraph("bfs", path, "--source", 0, "-o", tmp_path / "result", "--device", "cuda")
    assert run.code == 0, run.err
    assert "searched on the CPU: a search on cuda:0 (Fake) also needs " in run.err
    assert "of host memory, more than the memory limit leaves" in run.err
    assert json.loads((tmp_path / "result.run.json").read_text())["device"] == "cpu"
