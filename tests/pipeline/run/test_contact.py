"""A cluster that stops, in whole or in part: every waiting caller gets an error and goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from distributed import Client

from delegraph.partition.errors import BusyError, DelegraphError, InputError, LostError
from delegraph.pipeline.ranks.lease import lease
from delegraph.pipeline.run import cluster as clusters
from delegraph.pipeline.run import local
from delegraph.pipeline.run.cluster import Cluster, open_cluster, unlike
from delegraph.pipeline.run.contact import Contact, begin, cluster_errors
from delegraph.pipeline.run.resources import ClusterOptions
from support.processes import cluster, pids, scheduler_process, wait_until

# Sockets that the cluster itself leaves to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_takes_too_long_is_left_alone():
    go = threading.Event()
    with pytest.raises(TimeoutError):
        begin(go.wait).result(0.01)
    go.set()
    assert begin(lambda: 7).result(60) == 7
    with pytest.raises(ZeroDivisionError):
        begin(lambda: 1 // 0).result(60)


def test_ctrl_c_does_not_come_to_what_is_started():
    begun = begin(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []))
    assert signal.SIGINT in begun.result(60)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.slow
def test_a_scheduler_that_is_stopped(monkeypatch):
    """A stopped scheduler is found out while its answer or other work is waited for, and before a
    client opens.
    """
    with scheduler_process() as (process, address):
        with Client(address) as client:
            contact = Contact(client, 0.5)
            assert contact.workers() == {}
            scheduler = client.scheduler
            assert scheduler is not None
            with stopped(process.pid):
                for wait in (contact.workers, lambda: contact.wait(scheduler.ncores())):
                    with pytest.raises(DelegraphError, match=r"has not answered for 0\.5 s"):
                        wait()
                with (
                    pytest.raises(BusyError, match=f"no Dask scheduler answers at {address}"),
                    open_cluster(ClusterOptions(scheduler=address, timeout=0.5), 1),
                ):
                    pass
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_worker_that_is_stopped():
    with cluster(2) as (_, client):
        there, workers = Cluster(client, False, 3.0), pids(client)
        silent = max(workers)
        with stopped(workers[silent]):
            for wait in (
                lambda: there.run(len, ["one", "two", "three"], 3, lambda _: None),
                lambda: there.ask_all(os.getpid),
            ):
                with pytest.raises(
                    DelegraphError, match=f"worker {silent} has shown no sign of life"
                ):
                    wait()


def test_a_library_that_is_missing(monkeypatch):
    def start(*arguments: object) -> None:
        raise ImportError("TLS requires a library")

    monkeypatch.setattr(local, "_started", start)
    with (
        pytest.raises(DelegraphError, match="local workers cannot start: TLS requires a library"),
        local.local_cluster(2, 2, False, 0.1),
    ):
        pass


@pytest.mark.slow
def test_a_local_worker_that_does_not_begin(monkeypatch):
    monkeypatch.setattr(local, "START_SECONDS", 0)
    with (
        pytest.raises(DelegraphError, match=r"2 local workers have not started within 0\.1 s"),
        open_cluster(ClusterOptions(workers=2, timeout=0.1), 2),
    ):
        pass
    wait_until(lambda: not local._workers())


def die_if(pid: int) -> int:
    if os.getpid() == pid:
        os.kill(pid, signal.SIGKILL)
    return os.getpid()


@pytest.mark.slow
def test_a_worker_that_dies_when_it_is_asked():
    with cluster(2) as (_, client):
        there = Cluster(client, False, 20.0)
        before = pids(client)
        first, second = sorted(before)
        answers = there.ask_all(die_if, before[first])
        assert answers.pop(second) == before[second]
        assert not set(answers.values()) & set(before.values())  # one may have come in its place


@pytest.mark.slow
def test_the_lease_of_a_client_that_is_gone_is_free():
    with cluster(1) as (local, client):
        there, held = Cluster(client, False, 20.0), contextlib.ExitStack()
        with Client(local.scheduler_address, set_as_default=False) as another:
            held.enter_context(lease(Cluster(another, False, 20.0), 5))
            with pytest.raises(DelegraphError, match="busy with another command"), lease(there, 0):
                pass
        with lease(there, 20):  # the scheduler's own clean-up takes 30 s and more
            pass
        held.close()


@pytest.mark.parametrize(
    ("packages", "reason"),
    [
        ({}, ""),
        ({"pandas": None}, ""),
        ({"numba": None, "xxhash": None}, "lacks numba, xxhash"),
        ({"delegraph": None}, "lacks delegraph"),
        ({"delegraph": "0.0.1"}, f"has delegraph 0.0.1, but this is {clusters.__version__}"),
    ],
)
def test_what_a_worker_lacks(packages, reason):
    assert unlike({"delegraph": clusters.__version__, "numba": "1", **packages}) == reason


@pytest.mark.slow
def test_workers_that_are_not_like_this_process(monkeypatch):
    with cluster(1) as (local, _):
        options = ClusterOptions(scheduler=local.scheduler_address)
        monkeypatch.setattr(clusters, "__version__", "another")
        reason = r"worker tcp://\S+ has delegraph \S+, but this is another: install the same"
        with pytest.raises(InputError, match=reason), open_cluster(options, 1):
            pass
        monkeypatch.undo()
        monkeypatch.setattr(clusters, "_NEEDED", ["delegraph", "none_such"])
        with pytest.raises(InputError, match="lacks none_such"), open_cluster(options, 1):
            pass


@pytest.mark.slow
def test_a_client_that_is_closed_while_tasks_are_waited_for():
    """A client closed by another thread while tasks are waited for raises LostError: its loop ends,
    and a wait in that loop would never return.
    """
    with cluster(1) as (local, client):
        for i in range(10):
            gone = Client(local.scheduler_address, set_as_default=False)
            contact = Contact(gone, 60.0)
            futures = [contact.submit(time.sleep, 60.0)]

            def wait(contact: Contact = contact, futures: list = futures) -> None:
                try:
                    with cluster_errors():
                        while True:
                            contact.first_ended(futures, 0.5)
                finally:
                    contact.drop(futures)

            waiting = begin(wait)
            time.sleep(0.004 * i)
            gone.close()
            with pytest.raises(LostError, match="the cluster is gone"):
                waiting.result(10)
            with pytest.raises(LostError, match="the cluster is gone"):
                contact.submit(time.sleep, 0.0)
        wait_until(lambda: not any(client.processing().values()))
