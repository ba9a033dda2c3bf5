"""Ranks on Dask workers: one long task a worker, pinned there, which runs all supersteps.

Nothing here waits for ever. Workers answer before anything begins; ranks tell each other that they
are alive (tcp.py), and the first failure ends them all; the client watches the cluster meanwhile.
Graph state is in the store alone, so a search that lost a rank is simply done again, once, on the
workers that are left. One search at a time has the workers of a cluster. What ranks do is a RankJob
(jobs.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ...kernels.base.team import Team
from ...kernels.gpu.device import DeviceError, DeviceMemoryError, open_device
from ...partition.disk.memory import held_bytes, return_freed_memory
from ...partition.errors import DelegraphError, InputError
from ..run.cluster import unseen, unseen_by
from ..run.devices import device_errors
from .communicator import Failure, RankError, SingleCommunicator, telling_others
from .jobs import RankJob, Way
from .nccl import StuckError

_LOOK_SECONDS = 0.5
_COMPILE_SECONDS = 120.0
_LEASE = "delegraph-search"


class Done(NamedTuple):
    """A job that is done. job: the attempt that was. results: by rank. notes: of a rank that was
    lost, or of devices that would not do. devices: where it ran; None for CPUs.
    """

    job: RankJob
    results: list[Any]
    notes: list[str]
    devices: str | None


class _Seen(NamedTuple):
    """What a worker sees. missing: a path that it does not. device: its GPU; None: no_device says
    why.
    """

    missing: str | None
    device: str | None
    no_device: str


class _Ready(NamedTuple):
    """A rank that can be met. baseline: bytes that its worker holds before any work. ways: that
    it can take. no_room: why it cannot work on the device.
    """

    address: str
    baseline: int
    ways: list[Way]
    no_room: str = ""


class _NoRoomError(DelegraphError):
    """The ranks' shares do not fit their devices."""


def workers_of(client: Any) -> list[str]:
    """Addresses, sorted."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


@contextlib.contextmanager
def lease(client: Any, timeout: float) -> Iterator[None]:
    """The workers, for one search. DelegraphError if another one keeps them for too long."""
    from distributed import Semaphore

    with _cluster_errors():
        semaphore = Semaphore(max_leases=1, name=_LEASE, scheduler_rpc=client.scheduler)
        if not semaphore.acquire(timeout):
            raise DelegraphError(
                f"the workers have been busy with another command for {timeout:g} s: run the same "
                "command again"
            )
    try:
        yield
    finally:
        if client.status == "running":  # else the lease has gone with the cluster
            semaphore.release()


def run_on_workers(client: Any, workers: Sequence[str], job: RankJob, check_room: Any) -> Done:
    """Do a job on the workers at these addresses, a rank each; again, once, if one of them is lost.

    check_room: called with the number of ranks, the most that a worker holds before any work, and
    the most that a rank takes, by way; gives the place of the way that all take, or raises what a
    user should see if there is too little memory.
    Raises DelegraphError naming rank and host where a rank fails.
    """
    lost = False
    notes: list[str] = []
    with _cluster_errors():
        while True:
            try:
                done = _attempt(client, workers, job.again(), check_room)
                return done._replace(notes=notes)
            except _NoRoomError as error:
                notes.append(f"searched on CPUs: {error}")
                job = job.on("cpu", str(error))
            except RankError as error:
                there, failure = workers_of(client), error.failure
                told = f"{error} ({workers[failure.rank]})"
                left = [worker for worker in workers if worker in there]
                left = [worker for worker in left if worker != workers[failure.rank]]
                if not failure.lost or lost or not left:
                    raise DelegraphError(told) from error
                lost, workers = True, left
                notes.append(f"{told}: begun again on {len(left)} of the workers")


def _attempt(client: Any, workers: Sequence[str], job: RankJob, check_room: Any) -> Done:
    session = uuid.uuid4().hex
    size = len(workers)
    seconds = job.timeout + _COMPILE_SECONDS
    looking = [(_look, (job,))] * size
    seen: list[_Seen] = _gather(client, workers, looking, job.timeout, seconds)
    for worker, (missing, device, why) in zip(workers, seen, strict=True):
        if missing is not None:
            raise unseen_by(worker, missing)
        if device is None and job.device == "cuda":
            raise InputError(f"--device cuda: worker {worker} has none: {why}")
    names = [some.device for some in seen if some.device is not None]
    job = job.on("cuda" if len(names) == size else "cpu", "not every worker has a GPU")
    preparing = [
        (_get_ready, (session, rank, size, worker, job)) for rank, worker in enumerate(workers)
    ]
    try:
        ready: list[_Ready] = _gather(client, workers, preparing, job.timeout, seconds)
        for rank in ready:
            if rank.no_room:
                raise _NoRoomError(rank.no_room)
        ways = zip(*(rank.ways for rank in ready), strict=True)
        needs = [max(way.need for way in of_all) for of_all in ways]
        job = ready[0].ways[check_room(size, max(rank.baseline for rank in ready), needs)].job
        running = [(_run, (session, [rank.address for rank in ready], job))] * size
        results = _gather(client, workers, running, job.timeout)
        counts = [f"{names.count(name)} x {name}" for name in sorted(set(names))]
        return Done(job, results, [], ", ".join(counts) if job.device == "cuda" else None)
    except BaseException as error:
        stop(client, workers)
        if isinstance(error, RankError) and error.failure.no_room:  # what had looked to be there
            raise _NoRoomError(str(error)) from error
        raise


def stop(client: Any, workers: Sequence[str]) -> None:
    """Have the ranks on these workers end: cancelling a task that runs does not.

    A worker that does not answer is not waited for.
    """
    if client.status == "running":
        calls = [
            asyncio.run_coroutine_threadsafe(
                client._run(_stop, workers=[worker], on_error="ignore"),
                client.loop.asyncio_loop,
            )
            for worker in workers
        ]
        wait_for(calls, _LOOK_SECONDS)


def _gather(
    client: Any,
    workers: Sequence[str],
    tasks: Sequence[Any],
    timeout: float,
    seconds: float | None = None,
) -> list[Any]:
    """A task on each of the workers; what they give, by rank. Raises RankError.

    timeout: how long a worker may show no sign of life. seconds: for all of them; None: as long as
    their workers are alive and no rank fails.
    """
    from distributed import wait

    began = time.monotonic()
    futures = [
        client.submit(
            task, *arguments, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )
        for worker, (task, arguments) in zip(workers, tasks, strict=True)
    ]
    watch = _Watch(client)
    failed_at: float | None = None
    try:
        while True:
            open_futures = [future for future in futures if not future.done()]
            failures = [future.exception() for future in futures if future.status == "error"]
            if not open_futures and not failures:
                return [future.result() for future in futures]
            now = time.monotonic()
            if failures:
                failed_at = failed_at or now
                told = [error for error in failures if isinstance(error, RankError)]
                if told:
                    raise RankError(_first(told))
                if not open_futures or now > failed_at + _LOOK_SECONDS:
                    raise failures[0]
            if client.status != "running":
                raise DelegraphError("the cluster is gone; run the same command again")
            silent = watch.look()
            for rank, (future, worker) in enumerate(zip(futures, workers, strict=True)):
                if not future.done() and worker not in silent:
                    raise RankError(Failure(rank, "is gone: its worker has ended", True))
                if not future.done() and silent[worker] > timeout:
                    told = f"has not been heard of for {silent[worker]:.0f} s"
                    raise RankError(Failure(rank, told, True))
                if not future.done() and seconds is not None and now > began + seconds:
                    raise RankError(Failure(rank, f"has not answered for {seconds:g} s", True))
            with contextlib.suppress(TimeoutError):
                wait(open_futures, _LOOK_SECONDS, "FIRST_COMPLETED")
    finally:
        for future in futures:
            future.cancel()


class _Watch:
    """For how long the scheduler has heard nothing of each worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._seen: dict[str, tuple[float, float]] = {}

    def look(self) -> dict[str, float]:
        """Seconds, by address, of the workers that are there."""
        now = time.monotonic()
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        for address, worker in found.items():
            if self._seen.get(address, (0.0, 0.0))[0] != worker["last_seen"]:
                self._seen[address] = worker["last_seen"], now
        return {address: now - self._seen[address][1] for address in found}


def _first(errors: Sequence[RankError]) -> Failure:
    """Of what several ranks tell, what was known of most exactly."""
    failures = [error.failure for error in errors]
    return min(failures, key=lambda failure: (failure.lost, failure.superstep is None))


@contextlib.contextmanager
def _cluster_errors() -> Iterator[None]:
    """What Dask raises where the scheduler goes away becomes a DelegraphError."""
    try:
        yield
    except DelegraphError:
        raise
    except (CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DelegraphError("the cluster is gone; run the same command again") from error


# What follows runs on the workers.


@dataclass
class _Session:
    """A job that this worker has a rank of. patience: until the others come."""

    communicator: Any
    patience: threading.Timer | None = None


_sessions: dict[str, _Session] = {}


def _look(job: RankJob) -> _Seen:
    missing = unseen(job.paths)
    if job.device == "cpu":
        return _Seen(missing, None, "")
    try:
        return _Seen(missing, open_device(0, job.device_limit).name, "")
    except DeviceError as error:
        return _Seen(missing, None, str(error))


def _get_ready(session: str, rank: int, size: int, worker: str, job: RankJob) -> _Ready:
    """Compile, and listen for the others. Unless the job begins in time, it is forgotten."""
    from .tcp import TcpCommunicator

    with telling_others(rank), device_errors():
        at = _worker()
        if at.address != worker:
            raise DelegraphError(f"a rank that belongs to {worker} was started on {at.address}")
        try:
            ways = job.get_ready(rank, size, at.state.nthreads)
        except DeviceMemoryError as error:
            return _Ready("", 0, [], str(error))
        return_freed_memory()
        if size == 1:
            _sessions[session] = _Session(SingleCommunicator())
            return _Ready("", held_bytes(), ways)
        security = at.security
        arguments = security.get_listen_args("worker"), security.get_connection_args("worker")
        host = at.address.rpartition(":")[0]
        communicator = TcpCommunicator(session, rank, size, host, job.timeout, arguments)
        patience = threading.Timer(job.timeout + _COMPILE_SECONDS, _forget, [session])
        patience.daemon = True
        patience.start()
        _sessions[session] = _Session(communicator, patience)
        return _Ready(communicator.address, held_bytes(), ways)


def _forget(session: str) -> None:
    ours = _sessions.pop(session, None)
    if ours is not None:
        ours.communicator.close()


def _stop() -> None:
    """End what ranks there are, wherever they are; run by the worker's own loop: nothing waits."""
    for session, ours in list(_sessions.items()):
        if ours.communicator.size > 1:
            ours.communicator.fail(Failure(ours.communicator.rank, "was stopped"))
            if ours.patience is not None:  # it had not begun
                threading.Thread(target=_forget, args=[session], daemon=True).start()


def _run(session: str, addresses: Sequence[str], job: RankJob) -> Any:
    """A rank's part of the job."""
    ours = _sessions[session]
    communicator = ours.communicator
    if ours.patience is not None:
        ours.patience.cancel()
        ours.patience = None
    try:
        with telling_others(communicator.rank, communicator), device_errors():
            if communicator.size > 1:
                communicator.join(addresses)
            return job.run(communicator, Team(_worker().state.nthreads))
    except StuckError as error:
        _forget(session)
        _end_process(error)
    finally:
        _forget(session)
        return_freed_memory()


def _end_process(error: StuckError) -> NoReturn:
    """Its nanny starts another one. A thread, or a kernel, that no one can stop would be in the way
    of what comes next, on this device above all. The other ranks know what has failed already; the
    client sees this worker end, and does not begin again on it.
    """
    print(f"delegraph: {error}; NCCL is stuck, so this worker ends", file=sys.stderr, flush=True)
    os._exit(1)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
