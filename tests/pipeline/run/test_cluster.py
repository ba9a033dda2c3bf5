"""Builds on worker processes have the same bytes, and a cluster that is of no use is refused in
clear words.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from http.client import HTTPException
from itertools import product
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from distributed import Client, LocalCluster, Security

import delegraph as package
from delegraph.partition.errors import InputError
from delegraph.pipeline.run import cluster
from delegraph.pipeline.run.cluster import open_cluster
from delegraph.pipeline.run.resources import ClusterOptions
from support.marks import slow
from support.outputs import digest

# Sockets that the cluster itself leaves to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def local():
    """Start a cluster of two processes on loopback, as one that exists before a command."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as started:
        yield started


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture
def edges(ok, graph):
    path = graph / "edges"
    if not path.exists():
        ok("generate", "kronecker", "--scale", 14, "-o", path)
        ok("build", path, "-o", graph / "wanted.dg")
        ok("build", path, "-o", graph / "random.dg", "--order", "random", "--partitions", 3)
    return path


def test_strangers_on_loopback_run_nothing():
    """Strangers on loopback run nothing on a command's own cluster, nor read Dask's pages about the
    cluster.
    """
    with open_cluster(ClusterOptions(workers=1), 1) as ours:
        address = ours.client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert ours.ask_all(os.getpid)
        for where, keys in (
            (address, Security.temporary()),
            (address.replace("tls", "tcp"), Security()),
        ):
            with pytest.raises(OSError, match=r"connect|certificate|closed"):
                Client(where, security=keys, timeout=1)
        here = psutil.Process()
        ports = {
            socket.laddr.port
            for process in (here, *here.children(recursive=True))
            for socket in process.net_connections()
            if socket.status == psutil.CONN_LISTEN
        }
        assert len(ports) >= 5  # of the scheduler, the nanny, the worker, and two for pages
        for port, path in product(ports, ("status", "info/main/workers.html", "health", "metrics")):
            with pytest.raises((OSError, HTTPException)):  # 404, or no HTTP at all
                urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5)


def test_semaphores_have_no_names_that_would_stay():
    def semaphores() -> set[str]:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return {line.partition("/sem.")[2] for line in lines if "/sem." in line}

    before = semaphores()
    with open_cluster(ClusterOptions(workers=2), 2) as ours:
        assert len(ours.ask_all(os.getpid)) == 2
        of_workers = semaphores() - before
        assert of_workers
        assert all(name.endswith(" (deleted)") for name in of_workers)


@pytest.mark.parametrize("workers", [slow(1), 2, slow(4)])
def test_same_bytes_for_any_workers(ok, edges, graph, tmp_path, workers):
    out = tmp_path / "graph.dg"
    run = ok("build", edges, "-o", out, "--workers", workers)
    lines = [line for line in run.err.splitlines() if not re.fullmatch(r"\w+: [\d.]+ s", line)]
    *rows, last = lines
    assert last == f"{out}: written"
    assert all(" rows " in line for line in rows)  # and nothing that a cluster has to say
    assert digest(out) == digest(graph / "wanted.dg")
    plan = json.loads((tmp_path / "graph.dg.run.json").read_text())["plan"]
    assert "read" not in [step["name"] for step in plan["steps"]]
    assert not list(tmp_path.glob(".*"))


def test_a_cluster_that_is_there(ok, edges, graph, tmp_path, local):
    """An existing cluster, named by address or by file, builds the same bytes, from dense ids in
    another order.
    """
    (tmp_path / "scheduler.json").write_text(json.dumps(local.scheduler.identity()))
    for where in (
        ("--scheduler", local.scheduler_address),
        ("--scheduler-file", tmp_path / "scheduler.json"),
    ):
        args = ("--order", "random", "--partitions", 3, "--overwrite")
        run = ok("build", edges, "-o", tmp_path / "graph.dg", *where, *args)
        assert "built on the CPU: not every worker has a GPU" in run.err
        assert digest(tmp_path / "graph.dg") == digest(graph / "random.dg")
    run = ok("plan", edges, "--scheduler", local.scheduler_address, "--json")
    assert run.json["workers"] == 2


def test_a_client_that_is_there(edges, graph, tmp_path, local):
    """A client of an existing cluster builds and searches, stays open, and has no task of ours
    left.
    """
    out = tmp_path / "graph.dg"
    with Client(local) as client:
        package.build(edges, out, scheduler=client, order="random", partitions=3)
        assert digest(out) == digest(graph / "random.dg")
        assert package.plan(edges, scheduler=client).budget.workers == 2
        record = package.components(out, output=tmp_path / "components", scheduler=client).record
        assert record["components"]["components"] > 0
        record = package.bfs(out, "1", output=tmp_path / "distances", scheduler=client).record
        assert record["ranks"] == 2
        assert not client.futures
        assert client.submit(sum, [1, 2]).result(30) == 3


def test_a_client_that_is_closed(edges, tmp_path, local):
    with Client(local) as client:
        pass
    with pytest.raises(InputError) as failed:
        package.build(edges, tmp_path / "graph.dg", scheduler=client)
    assert str(failed.value) == "the client is closed: give a client that is connected"
    assert not list(tmp_path.iterdir())


def test_a_client_of_the_same_loop(edges, tmp_path, local):
    """An asynchronous client is refused: the command would wait in the loop that has to answer."""

    async def ask() -> str:
        async with Client(local.scheduler_address, asynchronous=True) as client:
            with pytest.raises(InputError) as failed:
                package.build(edges, tmp_path / "graph.dg", scheduler=client)
        return str(failed.value)

    reason = "the client is asynchronous: give a synchronous client, or the scheduler's address"
    assert asyncio.run(ask()) == reason
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_limit_for_all_workers(delegraph, edges, tmp_path):
    run = delegraph(
        "build", edges, "-o", tmp_path / "graph.dg", "--workers", 2, "--memory-limit", 1
    )
    assert run.code == 2
    assert "is too small" in run.err
    assert not list(tmp_path.iterdir())


def test_workers_that_do_not_see_our_files(delegraph, edges, tmp_path, local, monkeypatch):
    monkeypatch.setattr(cluster.Cluster, "check_sees", elsewhere(cluster.Cluster.check_sees))
    run = delegraph("build", edges, "-o", tmp_path / "g.dg", "--scheduler", local.scheduler_address)
    assert run.code == 1
    assert "does not see /nowhere/edges.parquet: workers must share the file system" in run.err
    assert not list(tmp_path.iterdir())


def elsewhere(check):
    return lambda self, folder, inputs: check(self, folder, ["/nowhere/edges.parquet"])


@pytest.mark.parametrize("address", ["nowhere", "tcp://nowhere", "http://there:8786"])
def test_what_is_no_address_is_not_asked(monkeypatch, address):
    """A string that is no address is refused before Dask's client, which may wait for all of its
    timeout, is asked.
    """
    monkeypatch.setattr("distributed.Client", lambda *_, **__: pytest.fail("it was asked"))
    with (
        pytest.raises(InputError, match="is not the address of a Dask scheduler: "),
        open_cluster(ClusterOptions(scheduler=address), 1),
    ):
        pass


def test_no_scheduler_there(delegraph, edges, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    out = tmp_path / "graph.dg"
    for where, reason, code in (
        (("--scheduler", "tcp://127.0.0.1:9"), "no Dask scheduler answers at tcp://127.0.0.1", 75),
        (("--scheduler-file", tmp_path / "none.json"), "none.json", 2),
        (("--scheduler", "no address"), "is not the address of a Dask scheduler", 2),
        (("--scheduler", "tcp://127.0.0.1:9", "--workers", 2), "give only one of", 2),
    ):
        run = delegraph("build", edges, "-o", out, *where)
        assert run.code == code, run.err
        assert reason in run.err
        assert len(run.err.splitlines()) == 1
        assert not list(tmp_path.iterdir())


def test_a_scheduler_that_has_not_written_its_file(delegraph, edges, tmp_path):
    file = tmp_path / "scheduler.json"
    file.touch()
    run = delegraph("build", edges, "-o", tmp_path / "graph.dg", "--scheduler-file", file)
    assert run.code == 75
    assert f"{file}: the Dask scheduler has not written it yet" in run.err


def test_relative_paths(ok, edges, graph, tmp_path, local, monkeypatch):
    """Relative paths are in the folder of this process; workers of a cluster began in another
    folder.
    """
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path)
    where = ("--scheduler", local.scheduler_address, "--scratch", "scratch")
    ok("build", os.path.relpath(edges), "-o", "graph.dg", *where)
    assert digest(tmp_path / "graph.dg") == digest(graph / "wanted.dg")
