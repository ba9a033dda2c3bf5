"""Ranks on Dask workers: one long task for each worker, pinned there, which runs all supersteps.

No call waits for ever. Workers must answer before anything begins. Ranks send each other signs of
life (tcp.py), and the first failure ends all ranks. The client watches the cluster meanwhile. All
graph state is in the store, so a job that lost a rank is simply run again, once, on the remaining
workers. One job at a time has the workers of a cluster. The work of ranks is a RankJob (jobs.py).
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any, NamedTuple

from ...partition.errors import DelegraphError, InputError, LostError
from ..run.cluster import Cluster, unseen_by
from ..run.contact import cluster_errors
from .communicator import Failure, RankError
from .jobs import CheckRoom, RankJob
from .sessions import COMPILE_SECONDS, Ready, Seen, end_rank, get_ready, look, run_rank, stop_ranks

_LOOK_SECONDS = 0.5
_LOG = logging.getLogger("delegraph")


class Done(NamedTuple):
    """A finished job. job: the attempt that finished. results: by rank. notes: lines about a lost
    rank, or about devices that could not be used. devices: the devices that the job ran on, as
    text; None for CPUs. workers: the addresses of the workers that did the job, by rank.
    """

    job: RankJob
    results: list[Any]
    notes: list[str]
    devices: str | None
    workers: list[str]


class _NoRoomError(DelegraphError):
    """The error that ranks' shares do not fit their devices."""


def workers_of(cluster: Cluster) -> list[str]:
    """Return the workers' addresses, sorted."""
    return sorted(cluster.contact.workers())


def run_on_workers(
    cluster: Cluster,
    workers: Sequence[str],
    job: RankJob,
    check_room: CheckRoom,
    asked: Callable[[], bool] = lambda: False,
) -> Done:
    """Run a job on the workers at these addresses, a rank on each; once more if a worker is lost.

    check_room: see CheckRoom. asked: called again and again while ranks run; returns whether ranks
    must save their state and end.

    Raises DelegraphError, which names rank and host, if a rank fails; InputError, as in one
    process, if the input is wrong.
    """
    lost = False
    notes: list[str] = []
    with cluster_errors():
        while True:
            try:
                done = _attempt(cluster, workers, job.fresh_attempt(), check_room, asked)
                return done._replace(notes=notes)
            except _NoRoomError as error:
                notes.append(f"searched on CPUs: {error}")
                job = job.for_device("cpu", str(error))
            except RankError as error:
                there, failure = workers_of(cluster), error.failure
                if failure.bad_input:
                    raise InputError(failure.told) from error
                told = f"{error} ({workers[failure.rank]})"
                left = [worker for worker in workers if worker in there]
                left = [worker for worker in left if worker != workers[failure.rank]]
                if not failure.lost or lost or not left:
                    raise (LostError if failure.lost else DelegraphError)(told) from error
                lost, workers = True, left
                survivors = f"{len(left)} remaining worker{'s'[: len(left) > 1]}"
                notes.append(f"{told}: started again on {survivors}")
                _LOG.warning(notes[-1])  # the second attempt may take long, so the user is told now


def _attempt(
    cluster: Cluster,
    workers: Sequence[str],
    job: RankJob,
    check_room: CheckRoom,
    asked: Callable[[], bool],
) -> Done:
    session = uuid.uuid4().hex

    def meanwhile() -> None:
        if asked():
            ending = cluster.client._run(end_rank, session, workers=workers, on_error="ignore")
            cluster.contact.call(ending)

    size = len(workers)
    seconds = job.timeout + COMPILE_SECONDS
    looking = [(look, (job,))] * size
    seen: list[Seen] = _gather(cluster, workers, looking, job.timeout, seconds)
    for worker, (missing, device, why) in zip(workers, seen, strict=True):
        if missing is not None:
            raise unseen_by(worker, missing)
        if device is None and job.device == "cuda":
            raise InputError(f"--device cuda: worker {worker} has no usable GPU: {why}")
    names = [worker_seen.device for worker_seen in seen if worker_seen.device is not None]
    job = job.for_device("cuda" if len(names) == size else "cpu", "not every worker has a GPU")
    preparing = [
        (get_ready, (session, rank, size, worker, job)) for rank, worker in enumerate(workers)
    ]
    try:
        ready: list[Ready] = _gather(cluster, workers, preparing, job.timeout, seconds)
        for rank in ready:
            if rank.no_room:
                raise _NoRoomError(rank.no_room)
        ways = zip(*(rank.ways for rank in ready), strict=True)
        needs = [max(way.need for way in of_all) for of_all in ways]
        room = check_room(size, max(rank.baseline for rank in ready), needs)
        job = ready[0].ways[room.way].job.with_extra(room.extra_bytes)
        running = [(run_rank, (session, [rank.address for rank in ready], job))] * size
        results = _gather(cluster, workers, running, job.timeout, meanwhile=meanwhile)
        counts = [f"{names.count(name)} x {name}" for name in sorted(set(names))]
        devices = ", ".join(counts) if job.device == "cuda" else None
        return Done(job, results, [], devices, list(workers))
    except BaseException as error:
        stop(cluster, workers)
        if isinstance(error, RankError) and error.failure.no_room:  # too little after all
            raise _NoRoomError(str(error)) from error
        raise


def stop(cluster: Cluster, workers: Sequence[str]) -> None:
    """End the ranks on these workers. Cancelling their tasks would not end them, since tasks run
    on.

    The call does not wait for a worker that does not answer.
    """
    client = cluster.client
    with suppress(LostError):  # the client is closed
        calls = [
            cluster.contact.call(client._run(stop_ranks, workers=[worker], on_error="ignore"))
            for worker in workers
        ]
        wait_for(calls, _LOOK_SECONDS)


def _gather(
    cluster: Cluster,
    workers: Sequence[str],
    tasks: Sequence[Any],
    timeout: float,
    seconds: float | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Run a task on each of the workers and return the results by rank. Raises RankError.

    timeout: seconds without a sign of life after which a worker is lost. seconds: time for all
    tasks; None: as long as the workers are alive and no rank fails. meanwhile: called about twice a
    second.
    """
    contact, began = cluster.contact, time.monotonic()
    futures = [
        contact.submit(task, *arguments, workers=[worker], allow_other_workers=False, retries=0)
        for worker, (task, arguments) in zip(workers, tasks, strict=True)
    ]
    failed_at: float | None = None
    fetching: Future[list[Any]] | None = None
    try:
        while True:
            open_futures = [future for future in futures if not future.done()]
            failures = [contact.error_of(future) for future in futures if future.status == "error"]
            if fetching is None and not open_futures and not failures:
                fetching = contact.call(cluster.client._gather(futures))
            if fetching is not None and wait_for([fetching], _LOOK_SECONDS).done:
                return fetching.result()
            now = time.monotonic()
            if failures:
                failed_at = failed_at or now
                told = [error for error in failures if isinstance(error, RankError)]
                if told:
                    raise RankError(_first(told))
                if not open_futures or now > failed_at + _LOOK_SECONDS:
                    raise failures[0]
            silent = contact.look()
            for rank, (future, worker) in enumerate(zip(futures, workers, strict=True)):
                if future.done() and fetching is None:
                    continue
                if worker not in silent:  # its result is gone, too
                    raise RankError(Failure(rank, "is gone: its worker has ended", True))
                if silent[worker] > timeout:
                    told = f"has shown no sign of life for {silent[worker]:.0f} s"
                    raise RankError(Failure(rank, told, True))
                if seconds is not None and now > began + seconds:
                    raise RankError(Failure(rank, f"has not answered for {seconds:g} s", True))
            meanwhile()
            if open_futures:
                contact.first_ended(open_futures, _LOOK_SECONDS)
    finally:
        if fetching is not None:
            fetching.cancel()
        contact.drop(futures)


def _first(errors: Sequence[RankError]) -> Failure:
    """Return the failure that is known most exactly, of those that several ranks report."""
    failures = [error.failure for error in errors]
    return min(failures, key=lambda failure: (failure.lost, failure.superstep is None))
