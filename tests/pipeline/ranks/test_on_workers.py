"""Searches on worker processes find the same distances, and end whatever goes wrong.

Each fault has to end the command within its timeout and the time to start, leave no process behind,
and leave workers that can run another search.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import delegraph
from delegraph.partition.errors import BusyError, DelegraphError, InputError
from delegraph.pipeline.ranks.lease import lease
from delegraph.pipeline.run import cluster as connecting
from support.graphs import random_edges
from support.marks import slow
from support.outputs import distances_of
from support.processes import Background, cluster, pids, scheduler_process, wait_for_supersteps

# Sockets that the cluster itself leaves to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TIMEOUT = 3.0
SLACK = 60.0  # of starting, on a busy machine
LONG = 6000  # vertices of a path: a search of some seconds and more


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Build path.dg of a path, searched from one end, and random.dg of random edges; both have four
    partitions.
    """
    folder = tmp_path_factory.mktemp("ranks")
    path = np.arange(LONG - 1), np.arange(1, LONG)
    for name, (src, dst) in {"path": path, "random": random_edges(1, 3000, 20_000)}.items():
        pq.write_table(pa.table({"src": src, "dst": dst}), folder / f"{name}.parquet")
        delegraph.build(folder / f"{name}.parquet", folder / f"{name}.dg", partitions=4, threads=1)
    return folder


def search(folder: Path, name: str, out: Path, address: str, timeout: float = TIMEOUT):
    return delegraph.bfs(
        folder / f"{name}.dg",
        0,
        output=out,
        timeout=timeout,
        threads=1,
        scheduler=address,
    )


@pytest.mark.parametrize(
    ("workers", "layout"),
    [slow(1, "delegate"), (2, "delegate"), slow(3, "delegate"), slow(3, "2d")],
)
def test_local_workers(ok, folder, tmp_path, workers, layout):
    before = set(psutil.Process().children(recursive=True))
    store = folder / "random.dg"
    if layout != "delegate":
        store = tmp_path / "graph.dg"
        path = folder / "random.parquet"
        delegraph.build(path, store, partitions=4, layout=layout, threads=1)
    args = ("bfs", store, "--source", 0, "-o")
    run = ok(*args, tmp_path / "out", "--workers", workers)
    ok(*args, tmp_path / "alone")
    assert distances_of(tmp_path / "out") == distances_of(tmp_path / "alone")
    ok("validate", store, tmp_path / "out")
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert (record["ranks"], record["layout"]) == (workers, layout)
    assert record["search"]["reached"] == sum(step["found"] for step in record["supersteps"]) + 1
    assert "found on cpu" in run.err
    processes = set(psutil.Process().children(recursive=True)) - before
    assert not [one for one in processes if "resource_tracker" not in " ".join(one.cmdline())]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        slow("cnr-2000", ("--directed",)),
        slow("cnr-2000", ("--directed", "--layout", "2d")),
        slow("luxembourg-osm", ()),
    ],
)
def test_real_graphs(ok, real_graph, tmp_path, name, options):
    store = tmp_path / "graph.dg"
    ok("build", real_graph(name), "-o", store, "--partitions", 4, *options)
    args = ("bfs", store, "--source", 0, "-o")
    ok(*args, tmp_path / "out", "--workers", 2)
    ok(*args, tmp_path / "alone")
    assert distances_of(tmp_path / "out") == distances_of(tmp_path / "alone")
    ok("validate", store, tmp_path / "out")


def test_refusals(delegraph, folder, tmp_path):
    out = tmp_path / "out"
    run = delegraph("bfs", folder / "random.dg", "--source", 0, "-o", out, "--workers", 5)
    assert (run.code, "has 4 partitions for 5 workers" in run.err) == (2, True)
    assert "--partitions 5" in run.err
    run = delegraph("bfs", folder / "random.dg", "--source", 99999, "-o", out, "--workers", 2)
    assert (run.code, "source 99999 is not a vertex" in run.err) == (2, True)
    run = delegraph("bfs", folder / "random.parquet", "--source", 0, "-o", out, "--workers", 2)
    assert (run.code, "is not a store" in run.err) == (2, True)
    few = ("--memory-limit", "150MB")
    run = delegraph("bfs", folder / "random.dg", "--source", 0, "-o", out, "--workers", 2, *few)
    assert (run.code, "each of 2 ranks holds" in run.err) == (2, True)
    run = delegraph(
        "bfs", folder / "random.dg", "--source", 0, "-o", out, "--workers", 2, "--device", "cuda:1"
    )
    assert (run.code, "give --device cuda" in run.err) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_worker_that_is_killed(folder, tmp_path):
    """A search whose worker is killed runs again on the remaining workers."""
    with cluster(3) as (local, client):
        workers = pids(client)
        running = Background(
            lambda: search(folder, "path", tmp_path / "out", local.scheduler_address)
        )
        wait_for_supersteps(client)
        killed = time.monotonic()
        os.kill(workers[sorted(workers)[1]], signal.SIGKILL)
        # Once all have ended, done again from the start: so long a search is not waited for.
        running.join(240)
        assert running.error is None
        record, _, notes = running.result
        assert record["ranks"] == 2
        assert any(
            "rank 1 is gone" in note and "started again on 2 remaining workers" in note
            for note in notes
        )
        assert killed < running.ended
    assert record["search"]["reached"] == LONG
    assert distances_of(tmp_path / "out") == {i: i for i in range(LONG)}


@pytest.mark.slow
def test_a_worker_that_is_killed_when_its_rank_is_done(folder, tmp_path, monkeypatch):
    """A worker killed after its rank is done loses the rank's result, so the search runs again."""
    with cluster(2) as (_, client):
        workers = pids(client)
        victims = [workers[sorted(workers)[1]]]
        fetch = client._gather

        def after_a_kill(futures, *args, **options):
            if victims and any("run_rank" in future.key for future in futures):
                os.kill(victims.pop(), signal.SIGKILL)
            return fetch(futures, *args, **options)

        monkeypatch.setattr(client, "_gather", after_a_kill)
        record, _, notes = delegraph.bfs(
            folder / "random.dg",
            0,
            output=tmp_path / "out",
            timeout=20,
            threads=1,
            scheduler=client,
        )
        assert record["ranks"] == 1
        assert any("rank 1 is gone" in note for note in notes)
    assert not victims


@pytest.mark.slow
@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_second_loss_ends_the_search(folder, tmp_path, signal_sent):
    """A search that loses both of its two workers ends with an error."""
    with cluster(2) as (local, client):
        workers = pids(client)
        running = Background(
            lambda: search(folder, "path", tmp_path / "out", local.scheduler_address)
        )
        wait_for_supersteps(client)
        lost = time.monotonic()
        for pid in workers.values():
            os.kill(pid, signal_sent)
        try:
            running.join(4 * TIMEOUT + SLACK)
        finally:
            for pid in workers.values():
                os.kill(pid, signal.SIGCONT) if psutil.pid_exists(pid) else None
        assert isinstance(running.error, DelegraphError)
        assert running.ended - lost < 2 * TIMEOUT + SLACK
        assert "rank" in str(running.error)
        assert "tcp://127.0.0.1" in str(running.error)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.slow
def test_a_worker_that_stalls(folder, tmp_path):
    with cluster(2) as (local, client):
        workers = pids(client)
        stopped = workers[sorted(workers)[1]]
        running = Background(
            lambda: search(folder, "path", tmp_path / "out", local.scheduler_address)
        )
        wait_for_supersteps(client)
        os.kill(stopped, signal.SIGSTOP)
        try:
            running.join(240)
            assert running.error is None
            record, _, notes = running.result
            assert record["ranks"] == 1
            assert any("has shown no sign of life for 3 s" in note for note in notes)
        finally:
            os.kill(stopped, signal.SIGCONT)
        # It comes back, and is searched on again.
        deadline = time.monotonic() + 30
        while len(client.scheduler_info()["workers"]) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        record, _, notes = search(folder, "random", tmp_path / "again", local.scheduler_address, 20)
        assert (record["ranks"], [n for n in notes if " rows " not in n]) == (2, [])


def test_a_rank_that_raises(folder, tmp_path):
    """A damaged file of one partition is named, as by one process, and the workers are free."""
    store = tmp_path / "damaged.dg"
    delegraph.build(folder / "random.parquet", store, partitions=4, threads=1)
    file = next((store / "partition-0001").glob("nn.targets*"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"nn.targets-0000.npy: damaged") as alone:
        delegraph.bfs(store, 0, output=tmp_path / "out", threads=1)
    with cluster(2) as (local, _):
        # A busy machine may keep a rank for seconds; a rank that is waited for is another error.
        with pytest.raises(InputError) as raised:
            search(tmp_path, "damaged", tmp_path / "out", local.scheduler_address, 20)
        assert str(raised.value) == str(alone.value)
        record, _, _ = search(folder, "random", tmp_path / "out", local.scheduler_address, 20)
        assert record["ranks"] == 2


@pytest.mark.slow
def test_an_interrupted_search(folder, tmp_path):
    """Ctrl-C ends the ranks, too, and the workers are free for the next search."""
    with cluster(2) as (local, client):
        address = local.scheduler_address
        command = [sys.executable, "-m", "delegraph", "bfs", str(folder / "path.dg")]
        command += ["--source", "0", "-o", str(tmp_path / "out")]
        command += ["--scheduler", address, "--timeout", "30", "--quiet"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as running:
            wait_for_supersteps(client)
            running.send_signal(signal.SIGINT)
            _, stderr = running.communicate(timeout=SLACK)
        assert (running.returncode, stderr.decode().strip()) == (130, "delegraph: interrupted")
        start = time.monotonic()
        record, _, notes = search(folder, "random", tmp_path / "next", address, 10)
        assert (record["ranks"], [n for n in notes if " rows " not in n]) == (2, [])
        assert time.monotonic() - start < 10 + SLACK


@pytest.mark.slow
def test_two_searches_at_once(folder, tmp_path):
    """Two searches at once take turns, and a search that waits for too long says so."""
    with cluster(2) as (local, client):
        address = local.scheduler_address
        both = [
            Background(lambda i=i: search(folder, "random", tmp_path / f"out-{i}", address, 60))
            for i in range(2)
        ]
        for one in both:
            one.join(60)
            assert one.error is None
        assert distances_of(tmp_path / "out-0") == distances_of(tmp_path / "out-1")
        with lease(connecting.Cluster(client, False, 5), 5):
            start = time.monotonic()
            with pytest.raises(BusyError, match="busy with another command for 1 s"):
                search(folder, "random", tmp_path / "third", address, 1)
            assert time.monotonic() - start < 1 + SLACK


@pytest.mark.slow
def test_without_workers(monkeypatch, folder, tmp_path):
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 2)
    with cluster(0) as (local, _), pytest.raises(BusyError, match="has no workers"):
        search(folder, "random", tmp_path / "out", local.scheduler_address)
    with pytest.raises(BusyError, match="no Dask scheduler answers"):
        search(folder, "random", tmp_path / "out", "tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_scheduler_that_goes_away(folder, tmp_path):
    """A scheduler that is killed ends the search; scheduler and workers were started by hand."""

    def worker(address: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1"]
        command += ["--no-dashboard", "--nthreads", "1", "--death-timeout", "5"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with scheduler_process() as (scheduler, address), ExitStack() as ending:
        for process in (worker(address), worker(address)):
            ending.callback(_end, process)
        with Client(address) as client:
            client.wait_for_workers(2, timeout=60)
            running = Background(lambda: search(folder, "path", tmp_path / "out", address))
            wait_for_supersteps(client)
            scheduler.kill()
            gone = time.monotonic()
            running.join(60)
            assert isinstance(running.error, DelegraphError)
            assert "the cluster is gone" in str(running.error)
            assert running.ended - gone < TIMEOUT + SLACK


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
