"""Arrays sent from device to device, and faults meanwhile: no rank waits for ever.

NCCL is emulated, and waits as the real one does; the same tests run on two GPUs. Tests that apply
to every communicator are in test_communicators.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest

from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu import peer_memory
from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.peer_memory import PeerMemory, all_to_all
from delegraph.partition.errors import DelegraphError
from delegraph.pipeline.ranks import nccl
from delegraph.pipeline.ranks import on_workers as ranks
from delegraph.pipeline.ranks.communicator import Communicator, Failure, RankError, barrier
from delegraph.pipeline.ranks.jobs import Room, Way
from delegraph.pipeline.ranks.nccl import NcclCommunicator, StuckError, device_arrays
from delegraph.pipeline.ranks.tcp import TcpCommunicator
from delegraph.pipeline.run.cluster import Cluster
from support import emulator
from support.processes import cluster, pids, wait_until
from support.ranks import BY_NCCL, at_host, communicators, devices_for, placed, run

SOON = 30.0  # on a machine that is busy, with NCCL to be loaded


def send(communicator: NcclCommunicator, length: int = 1000) -> list[Any]:
    """Send an array of the device to all ranks, and return the arrays that come."""
    array = placed(communicator, [np.arange(0), np.full(length, communicator.rank)])[1]
    return [message[0] for message in communicator.exchange([[array]] * communicator.size)]


def faulty(
    kind: str, fault: Callable[[NcclCommunicator], Any], timeout: float = 10.0, patience: float = 60
) -> list[Any]:
    """Return how two ranks end when the second runs ``fault`` while the first waits for it in
    NCCL.
    """

    def work(communicator: NcclCommunicator) -> None:
        send(communicator)
        communicator._patience = patience
        if communicator.rank == 1:
            communicator._carry = lambda sent, received: fault(communicator)
        for _ in range(2):
            send(communicator)

    with communicators(kind, 2, timeout) as both:
        start = time.monotonic()
        ended = run(both, work)
        assert time.monotonic() - start < SOON
        assert not any(one._made for one in both if isinstance(one, NcclCommunicator))
    return ended


def cut(communicator: NcclCommunicator) -> None:
    """Cut the connections of a rank as if the rank's process were gone."""
    below = communicator._communicator
    assert isinstance(below, TcpCommunicator)
    for comm in below._outgoing.values():
        below._loop.call_soon_threadsafe(comm.abort)


@pytest.mark.parametrize("kind", BY_NCCL)
def test_a_rank_that_fails(kind):
    def fail(communicator: NcclCommunicator) -> None:
        time.sleep(0.3)
        raise ValueError("had enough")

    for error in faulty(kind, fail):
        assert type(error) is RankError
        assert error.failure == Failure(1, "failed: ValueError: had enough")


@pytest.mark.parametrize("kind", BY_NCCL)
def test_a_rank_that_is_gone(kind):
    first, _ = faulty(kind, cut)
    assert type(first) is RankError
    assert first.failure == Failure(1, "is gone", lost=True)


@pytest.mark.parametrize("kind", BY_NCCL)
def test_nothing_comes(kind):
    """A rank from which nothing comes in time fails the run, though all ranks are alive."""
    for error in faulty(kind, lambda _: None, patience=1.0):
        assert type(error) is RankError
        assert "rank 0 has waited for NCCL for 1 s" in str(error)


def test_nccl_knows_first(monkeypatch):
    """A failure names the rank that is gone, even when NCCL raises its own error first."""

    def work(communicator: NcclCommunicator) -> None:
        send(communicator)
        if communicator.rank == 1:
            communicator.exchange([[], []])
            time.sleep(0.3)
            cut(communicator)
            return

        def fail(*_) -> None:
            raise communicator._nccl.NcclError("remote error")

        communicator.exchange([[], []])
        communicator._watch(fail, 10.0)

    with communicators("nccl", 2) as both:
        first, _ = run(both, work)
    assert first.failure == Failure(1, "is gone", lost=True)


@pytest.mark.parametrize("returns", [False, True])
def test_a_rank_that_is_stuck(monkeypatch, returns):
    """A rank stuck in making a communicator cannot be aborted, but the making may return."""
    monkeypatch.setattr(nccl, "_GRACE_SECONDS", 10.0 if returns else 1.0)

    making = threading.Event()

    def work(communicator: NcclCommunicator) -> None:
        make = communicator._make

        def fail(cupy: Any, unique_id: bytes) -> None:
            if communicator.rank == 1:
                making.wait(SOON)  # until the other cannot hear of it
                raise ValueError("had enough")
            making.set()
            if not returns:
                make(cupy, unique_id)
            time.sleep(0.5)

        communicator._make = fail
        send(communicator)

    with communicators("nccl", 2) as both:
        start = time.monotonic()
        first, second = run(both, work)
        assert time.monotonic() - start < SOON
    assert first.failure == second.failure == Failure(1, "failed: ValueError: had enough")
    assert type(first) is (RankError if returns else StuckError)
    assert type(second) is RankError


def test_one_without_nccl(monkeypatch):
    """Ranks all go through the host if one of them has no NCCL."""
    library = property(lambda device: None if device.number == 1 else emulator.nccl)
    monkeypatch.setattr(Device, "nccl", library)

    def work(communicator: NcclCommunicator) -> list[int]:
        assert [array.get().tolist() for array in send(communicator, 3)] == [[0] * 3, [1] * 3]
        return [len(array) for array in send(communicator)]

    with communicators("nccl", 2) as both:
        assert run(both, work) == [[1000, 1000]] * 2
        assert not any(one.by_nccl for one in both if isinstance(one, NcclCommunicator))


@pytest.mark.parametrize("kind", BY_NCCL)
def test_arrays_of_some_ranks(kind):
    """Arrays of one rank's device and of another's host arrive; one array is empty, and one is
    strided in memory.
    """

    def work(communicator: NcclCommunicator) -> None:
        sent = [np.arange(5), np.arange(0), np.arange(100_000)]
        if communicator.rank == 0:
            sent = placed(communicator, sent)
            sent[2] = sent[2][::3]
        came = communicator.exchange([sent, sent])[0]
        host, empty, every_third = map(at_host, came)
        assert len(host) == 5
        assert len(empty) == 0
        assert np.array_equal(every_third, np.arange(0, 100_000, 3))

    with communicators(kind, 2) as both:
        assert run(both, work) == [None, None]


@pytest.mark.parametrize("kind", BY_NCCL)
def test_what_was_just_made_is_sent(kind):
    """An array is sent after the kernels that make it, for which NCCL's own stream has to wait."""

    def work(communicator: NcclCommunicator) -> None:
        peer = 1 - communicator.rank
        with communicator._device.use() as cupy:
            for step in range(20):
                array = cupy.zeros(1 << 20, np.int64)
                for _ in range(10):
                    array += communicator.rank + step
                came = communicator.exchange([[array], [array]])[peer][0]
                array[:] = -1  # what was sent may be changed
                assert bool((came == 10 * (peer + step)).all())

    with communicators(kind, 2) as both:
        assert run(both, work) == [None, None]


@pytest.mark.parametrize("kind", [*BY_NCCL, "nccl on one device"])
def test_all_to_all(kind, monkeypatch):
    """All-to-all works by messages where no rank can read another rank's memory."""
    monkeypatch.setattr(PeerMemory, "open", lambda *_: None)
    monkeypatch.setattr(peer_memory, "PIECE_BYTES", 1 << 16)
    size = 2 if kind == "nccl on GPUs" else 3
    starts = [0, 5, 30_000, 30_000][: size + 1]

    def work(communicator: NcclCommunicator) -> None:
        rank, device = communicator.rank, communicator._device
        with device_arrays(communicator._communicator, device) as ours, device.use() as cupy:
            memory = PeerMemory(device, 8 * starts[-1])
            values = np.arange(starts[-1], dtype=np.uint64) + (rank << 20)
            memory.array(0, starts[-1], np.uint64)[:] = cupy.asarray(values)
            came = all_to_all(device, memory, starts, np.uint64, ours.exchange, rank).get()
            assert ours.by_nccl == (kind != "nccl on one device")
        share = np.arange(starts[rank], starts[rank + 1], dtype=np.uint64)
        wanted = [share + np.uint64(peer << 20) for peer in range(size)]
        assert np.array_equal(came, np.concatenate(wanted))

    with communicators(kind, size) as every:
        assert run(every, work) == [None] * size


@dataclass(frozen=True)
class StuckJob:
    """A job whose second rank, if there is one, is stuck."""

    device: str = "cpu"
    device_limit: int | None = None
    timeout: float = 5.0
    paths: tuple = ()

    def for_device(self, device: str, why: str = "") -> StuckJob:
        return self

    def fresh_attempt(self) -> StuckJob:
        return self

    def with_extra(self, extra_bytes: int) -> StuckJob:
        return self

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        return [Way(0, self)]

    def run(self, communicator: Communicator, team: Team) -> str:
        if communicator.rank == 1:
            raise StuckError(Failure(1, "is gone", lost=True))
        barrier(communicator)
        return "done"


@dataclass(frozen=True)
class SendingJob(StuckJob):
    """A job of two ranks, of which the second may be killed while the first is in NCCL."""

    killed: str = ""

    def run(self, communicator: Communicator, team: Team) -> str:
        if communicator.size == 1:
            return "alone"
        with device_arrays(communicator, open_device(communicator.rank)) as ours:
            if self.killed == "setting up" and communicator.rank == 1:
                ours._make = lambda cupy, unique_id: os.kill(os.getpid(), signal.SIGKILL)
            assert [array.get().sum() for array in send(ours, 1 << 20)] == [0, 1 << 20]
            assert ours.by_nccl
            if self.killed == "sending" and communicator.rank == 1:
                ours._carry = lambda sent, received: os.kill(os.getpid(), signal.SIGKILL)
            send(ours)
        return "done"


@pytest.mark.multi_gpu
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("killed", ["", "setting up", "sending"])
def test_processes(killed):
    devices_for("nccl on GPUs", 2)
    with cluster(2) as (_, client):
        job: Any = SendingJob(killed=killed)
        start = time.monotonic()
        try:
            there = Cluster(client, False, 20)
            done = ranks.run_on_workers(there, ranks.workers_of(there), job, lambda *_: Room(0))
        except DelegraphError:
            # The rank that was left may have been stuck, so that nobody could begin again.
            assert killed == "setting up"
        else:
            assert done.results == (["alone"] if killed else ["done"] * 2)
            assert bool(done.notes) == bool(killed)
        assert time.monotonic() - start < 2 * SOON


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_with_a_rank_that_is_stuck(caplog):
    """A worker with a stuck rank ends its process, and the remaining worker begins again."""
    caplog.set_level("WARNING", "delegraph")
    with cluster(2) as (_, client):
        there = Cluster(client, False, 20)
        workers = ranks.workers_of(there)
        before = pids(client)
        job: Any = StuckJob()
        done = ranks.run_on_workers(there, workers, job, lambda *_: Room(0))
        assert done.results == ["done"]
        assert "rank 1 is gone" in done.notes[0]
        assert done.notes[0] in caplog.messages  # when it happens
        assert client.run(os.getpid, workers=workers[:1]) == {workers[0]: before[workers[0]]}
        wait_until(lambda: not psutil.pid_exists(before[workers[1]]))
