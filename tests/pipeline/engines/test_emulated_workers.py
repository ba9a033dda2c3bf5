"""Commands whose workers have emulated devices: builds, searches, lost workers, and runs without
devices.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels.gpu.device import Device
from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines.workers.on_devices import RankProgram
from delegraph.pipeline.questions import FORMS, load
from support import emulator
from support.graphs import random_edges
from support.marks import slow
from support.outputs import digest, distances_of
from support.processes import Background, cluster, command, pids, wait_for_supersteps

pytestmark = pytest.mark.skipif(not emulator.able(), reason="g++ compiles the kernels")


def there(*args, **more) -> subprocess.CompletedProcess:
    """Run the command line with emulated devices in every process."""
    environment = {**os.environ, "PYTHONPATH": str(emulator.SITE), **more}
    return subprocess.run(command(*args), capture_output=True, text=True, env=environment)


FEW = ("--device-memory-limit", "1MB")


@pytest.mark.parametrize(
    ("built", "searched", "options", "more"),
    [
        slow("on 2 x emulated", "found on 2 x emulated", (), {}),
        slow(
            "on the CPU: only 1 MB of memory may be used",
            "searched on CPUs: only 1 MB of memory may be used",
            FEW,
            {},
        ),
        slow("on the CPU: rank", "searched on CPUs: rank", (), {emulator.FULL: "yes"}),
    ],
    ids=["devices", "little memory", "full"],
)
def test_workers(edge_list, tmp_path, built, searched, options, more):
    """Two workers build and search on their devices, or on CPUs where the devices have no room."""
    path = edge_list(*random_edges(3, 2000, 20_000), row_group_size=5000)
    delegraph.build(path, tmp_path / "cpu.dg", partitions=3)
    delegraph.bfs(tmp_path / "cpu.dg", 5, output=tmp_path / "cpu")
    on = ("--workers", 2, "--device", "cuda", *options)
    run = there("build", path, "-o", tmp_path / "gpu.dg", "--partitions", 3, *on, **more)
    assert run.returncode == 0, run.stderr
    assert f"built {built}" in run.stderr
    assert digest(tmp_path / "gpu.dg") == digest(tmp_path / "cpu.dg")
    run = there("bfs", tmp_path / "gpu.dg", "--source", 5, "-o", tmp_path / "gpu", *on, **more)
    assert run.returncode == 0, run.stderr
    assert searched in run.stderr
    assert distances_of(tmp_path / "gpu") == distances_of(tmp_path / "cpu")


ASKED = {
    "components": (),
    "pagerank": ("--iterations", 5),
    "sssp": ("--source", 5),
    "closeness": ("--sources", 70),
    "harmonic": ("--sources", 70),
    "hits": (),
    "degree": (),
}


def most_on_a_device(store: Path, command: str, device: Device) -> int:
    """Return the most bytes that one of two ranks holds on its device."""
    opened = open_store(store)
    reference = FORMS[command].program
    assert reference is not None
    program = load(reference)(opened.info)
    ranks = (RankProgram.of(program, opened, rank, 2) for rank in range(2))
    return max(rank.room(device).device for rank in ranks)


@pytest.mark.nightly
@pytest.mark.parametrize("command", ASKED)
def test_programs_by_workers(emulated, edge_list, tmp_path, ok, command):
    """Programs by workers with a device each give a CPU's results, and ``validate`` accepts
    them.
    """
    src, dst = random_edges(3, 1000, 10_000)
    weight = np.random.default_rng(1).integers(1, 9, len(src))
    store, out = tmp_path / "g.dg", tmp_path / "out"
    weighted = "--weight", "w", "--device", "cpu"
    ok("build", edge_list(src, dst, w=weight), "-o", store, "--partitions", 3, *weighted)
    on = ("--workers", 2, "--device", "cuda", "--json")
    args = (store, *ASKED[command], "--memory-limit", "4GB")
    run = there(command, *args, "-o", out, *on)
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    assert (record["device"], record["ranks"]) == ("2 x emulated", 2)
    assert record[command]["method"] == "on devices"
    ok("validate", store, out)
    ok(command, *args, "-o", tmp_path / "cpu", "--device", "cpu")
    one, other = (pq.read_table(folder) for folder in (out, tmp_path / "cpu"))
    for column in one.column_names:
        if column != "parent":
            values = one[column].to_numpy(), other[column].to_numpy()
            np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12)
    run = there("plan", store, "--algorithm", command, *on)
    assert run.returncode == 0, run.stderr
    (step, *_) = json.loads(run.stdout)["steps"]
    assert step["device_bytes"] == most_on_a_device(store, command, emulated[0])
    limited = (*args, "-o", tmp_path / "limited", "--workers", 2)
    run = there(command, *limited, "--device-memory-limit", "1MB")
    assert run.returncode == 0, run.stderr
    assert "searched on CPUs: " in run.stderr
    assert "only 1 MB of memory may be used" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("together", [(), ("--together",)], ids=["each", "together"])
def test_searches_by_workers(edge_list, tmp_path, ok, together):
    """Searches by workers go in two batches; the graph stays on the devices from one to the
    other.
    """
    store, out = tmp_path / "g.dg", tmp_path / "out"
    ok("build", edge_list(*random_edges(3, 300, 900)), "-o", store, "--partitions", 3)
    args = store, "--sources", ",".join(map(str, range(70))), *together
    run = there("bfs", *args, "-o", out, "--workers", 2, "--device", "cuda", "--json")
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    assert (record["device"], record["ranks"]) == ("2 x emulated", 2)
    assert record["searches"]["method"] == "on devices"
    ok("validate", store, out)
    ok("bfs", *args, "-o", tmp_path / "cpu", "--device", "cpu")
    assert digest(out) == digest(tmp_path / "cpu")


@pytest.mark.slow
def test_a_bench_of_a_generated_graph():
    """Two workers generate a graph on their devices and search it; every result is checked."""
    run = there("bench", "kronecker:6", "--workers", 2, "--sources", 2, "--json")
    assert run.returncode == 0, run.stderr
    (row,) = json.loads(run.stdout)
    assert (row["ranks"], row["report"]["graph"]["partitions"]) == (2, 2)


def one_of_three_killed(monkeypatch: pytest.MonkeyPatch, ask: Callable[..., Any]) -> None:
    """Call ``ask`` on a cluster that loses one of three workers meanwhile, and check that two
    finish the run.
    """
    monkeypatch.syspath_prepend(emulator.SITE)  # workers look where this process does
    with cluster(3) as (local, client):
        where = {"scheduler": local.scheduler_address, "device": "cuda", "timeout": 5}
        running = Background(lambda: ask(**where, threads=1))
        wait_for_supersteps(client)
        workers = pids(client)
        os.kill(workers[sorted(workers)[1]], signal.SIGKILL)
        running.join(120)
    assert running.error is None
    record, _, notes = running.result
    assert record["device"] == "2 x emulated"
    assert any(
        "rank 1 is gone" in note and "started again on 2 remaining workers" in note
        for note in notes
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", ["pagerank", "betweenness"])
def test_a_worker_of_a_program_that_is_killed(edge_list, tmp_path, monkeypatch, command):
    """A program whose worker is killed runs again on the devices that are left."""
    src, dst = random_edges(3, 3000, 60_000)
    store, out = tmp_path / "graph.dg", tmp_path / "out"
    delegraph.build(edge_list(src, dst), store, partitions=4)
    options = {"pagerank": {"iterations": 400}, "betweenness": {"sources": 60}}[command]
    one_of_three_killed(
        monkeypatch, partial(getattr(delegraph, command), store, output=out, **options)
    )
    assert delegraph.validate(store, out)["valid"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_is_killed(edge_list, tmp_path, monkeypatch):
    """A search whose worker is killed runs again on the devices that are left."""
    vertices = 600  # some seconds
    store, out = tmp_path / "graph.dg", tmp_path / "out"
    path = edge_list(range(vertices - 1), range(1, vertices))
    delegraph.build(path, store, partitions=4, threshold=6)
    one_of_three_killed(monkeypatch, partial(delegraph.bfs, store, 0, output=out))
    assert distances_of(out) == {i: i for i in range(vertices)}
