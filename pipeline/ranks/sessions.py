"""The worker's side of ranks on Dask workers: each worker keeps the sessions that it has a rank of.

A rank ends when its client no longer waits for it: the client has given up, was interrupted, or is
gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, NamedTuple, NoReturn

from ...kernels.base.team import Team
from ...kernels.gpu.device import DeviceError, DeviceMemoryError, open_device
from ...partition.disk.memory import held_bytes, return_freed_memory
from ...partition.errors import DelegraphError
from ..run import ending
from ..run.cluster import unseen
from ..run.devices import device_errors
from .communicator import Failure, SingleCommunicator, telling_others
from .jobs import RankJob, Way
from .nccl import StuckError

COMPILE_SECONDS = 120.0
_LOOK_SECONDS = 0.1


class Seen(NamedTuple):
    """A worker's view of the job's files and device. missing: a path that the worker does not see;
    None if it sees all. device: the worker's GPU; None if it has no usable one. no_device: the
    reason for that.
    """

    missing: str | None
    device: str | None
    no_device: str


class Ready(NamedTuple):
    """A rank that other ranks can reach. baseline: bytes that its worker holds before any work.
    ways: the ways in which the rank can do the job. no_room: the reason why the rank cannot work on
    its device; empty if it can.
    """

    address: str
    baseline: int
    ways: list[Way]
    no_room: str = ""


@dataclass
class _Session:
    """A job that this worker has a rank of. patience: a timer that drops the session if the other
    ranks do not come in time; None on a single rank.
    """

    communicator: Any
    patience: threading.Timer | None = None


_sessions: dict[str, _Session] = {}


def look(job: RankJob) -> Seen:
    missing = unseen(job.paths)
    if job.device == "cpu":
        return Seen(missing, None, "")
    try:
        return Seen(missing, open_device(0, job.device_limit).name, "")
    except DeviceError as error:
        return Seen(missing, None, str(error))


def get_ready(session: str, rank: int, size: int, worker: str, job: RankJob) -> Ready:
    """Compile, and listen for the other ranks. The session is dropped unless the job begins in
    time.
    """
    from .tcp import TcpCommunicator

    with telling_others(rank), device_errors():
        at = _worker()
        if at.address != worker:
            raise DelegraphError(f"a rank that belongs to {worker} was started on {at.address}")
        try:
            ways = job.get_ready(rank, size, at.state.nthreads)
        except DeviceMemoryError as error:
            return Ready("", 0, [], str(error))
        return_freed_memory()
        if size == 1:
            _sessions[session] = _Session(SingleCommunicator())
            return Ready("", held_bytes(), ways)
        host, arguments = _reached(at)
        communicator = TcpCommunicator(session, rank, size, host, job.timeout, arguments)
        patience = threading.Timer(job.timeout + COMPILE_SECONDS, _forget, [session])
        patience.daemon = True
        patience.start()
        _sessions[session] = _Session(communicator, patience)
        return Ready(communicator.address, held_bytes(), ways)


def _reached(worker: Any) -> tuple[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the address at which ranks of a worker listen, and the arguments of their connections.
    These are the worker's own, with or without TLS.

    On loopback, connections have no TLS. Only the system's owner can listen in there, and the door
    lets in only those that know the session, which was sent by TLS. So supersteps need not pay for
    encryption.
    """
    scheme, _, place = worker.address.partition("://")
    host = place.rpartition(":")[0]
    with contextlib.suppress(ValueError):  # the host is a name
        if ip_address(host.strip("[]")).is_loopback:
            return f"tcp://{host}", ({}, {})
    security = worker.security
    arguments = security.get_listen_args("worker"), security.get_connection_args("worker")
    return f"{scheme}://{host}", arguments


def _forget(session: str) -> None:
    ours = _sessions.pop(session, None)
    if ours is not None:
        ours.communicator.close()


def stop_ranks() -> None:
    """End all ranks on the worker. The worker's own loop runs this function, so nothing waits."""
    for session, ours in list(_sessions.items()):
        if ours.communicator.size > 1:
            ours.communicator.fail(Failure(ours.communicator.rank, "was stopped"))
            if ours.patience is not None:  # the job had not begun
                threading.Thread(target=_forget, args=[session], daemon=True).start()


def end_rank(session: str) -> None:
    """Ask the rank of a session to save its state and end. The worker's own loop runs this
    function.
    """
    if session in _sessions:
        ending.ask()


def run_rank(session: str, addresses: Sequence[str], job: RankJob) -> Any:
    """Run a rank's part of the job."""
    ours = _sessions[session]
    communicator = ours.communicator
    if ours.patience is not None:
        ours.patience.cancel()
        ours.patience = None
    try:
        with (
            telling_others(communicator.rank, communicator),
            device_errors(),
            _while_wanted(communicator),
        ):
            if communicator.size > 1:
                communicator.join(addresses)
            return job.run(communicator, Team(_worker().state.nthreads))
    except StuckError as error:
        _forget(session)
        _end_process(error)
    finally:
        _forget(session)
        ending.forget()
        return_freed_memory()


@contextlib.contextmanager
def _while_wanted(communicator: Any) -> Iterator[None]:
    """End this rank when the scheduler has taken its task back, which alone does not stop a running
    task.

    A single rank asks no other rank whether to continue. Its process is ended instead, if a nanny
    starts another one.
    """
    from dask.context import thread_state

    worker, key, ended = _worker(), thread_state.key, threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is not None and task.state in ("executing", "long-running"):
                continue
            if communicator.size > 1:
                communicator.fail(Failure(communicator.rank, "was stopped: nobody waits for it"))
            elif worker.nanny is not None:
                os._exit(1)
            return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _end_process(error: StuckError) -> NoReturn:
    """End the process; its nanny starts another one. A thread or a kernel that cannot be stopped
    would disturb the next job, above all on this device. The other ranks know the failure already;
    the client sees that this worker has ended, and does not use it again for this job.
    """
    print(f"delegraph: {error}; NCCL is stuck, so this worker ends", file=sys.stderr, flush=True)
    os._exit(1)


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
