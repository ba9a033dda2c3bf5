"""Ranks on Dask workers: one long task a worker, pinned there, which runs all supersteps.

Nothing here waits for ever. Workers answer before anything begins; ranks tell each other that they
are alive (tcp.py), and the first failure ends them all; the client watches the cluster meanwhile.
Graph state is in the store alone, so a search that lost a rank is simply done again, once, on the
workers that are left. One search at a time has the workers of a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..kernels.backend import get_backend
from ..kernels.team import Team
from ..partition.errors import DelegraphError
from ..partition.memory import held_bytes, return_freed_memory
from ..partition.store import Store, open_store
from .cluster import unseen, unseen_by
from .communicator import (
    Failure,
    RankError,
    SingleCommunicator,
    telling_others,
)
from .metrics import SuperstepRecord
from .rank_result import save, save_whole
from .rank_search import load_rank, search_rank, warm_up
from .streamed_graph import subgraphs_of
from .superstep import search as search_graph

_LOOK_SECONDS = 0.5
_COMPILE_SECONDS = 120.0
_LEASE = "delegraph-search"


class RankSearch(NamedTuple):
    """What ranks are to do. folder: where they leave what they find (rank_result.py)."""

    store: Path
    source: int
    max_depth: int | None
    folder: Path
    timeout: float


class RanksFound(NamedTuple):
    """supersteps: of all ranks together. folder: where they left what they found. lost: a rank that
    was, before it was done again.
    """

    ranks: int
    supersteps: list[SuperstepRecord]
    folder: Path
    lost: str | None


class _Ready(NamedTuple):
    """A rank that can be met. baseline: bytes that its worker holds before any work."""

    address: str
    baseline: int


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
                f"the workers have been busy with another search for {timeout:g} s; run the same "
                "command again, or wait longer with --timeout"
            )
    try:
        yield
    finally:
        if client.status == "running":  # else the lease has gone with the cluster
            semaphore.release()


def search_on_workers(
    client: Any, workers: Sequence[str], search: RankSearch, check_room: Any
) -> RanksFound:
    """Search on the workers at these addresses, a rank each; again, once, if one of them is lost.

    check_room: called with the number of ranks and the most that a worker holds before any work;
    raises what a user should see if there is too little memory. Raises DelegraphError naming rank
    and host where a rank fails.
    """
    lost = None
    with _cluster_errors():
        while True:
            folder = search.folder / uuid.uuid4().hex  # one that was given up may still write
            folder.mkdir()
            try:
                task = search._replace(folder=folder)
                supersteps = _attempt(client, workers, task, check_room)
                return RanksFound(len(workers), supersteps, folder, lost)
            except RankError as error:
                there, failure = workers_of(client), error.failure
                told = f"{error} ({workers[failure.rank]})"
                left = [worker for worker in workers if worker in there]
                left = [worker for worker in left if worker != workers[failure.rank]]
                if not failure.lost or lost or not left:
                    raise DelegraphError(told) from error
                lost, workers = told, left


def _attempt(
    client: Any, workers: Sequence[str], search: RankSearch, check_room: Any
) -> list[SuperstepRecord]:
    session = uuid.uuid4().hex
    size = len(workers)
    looking = [(unseen, ([str(search.store), str(search.folder)],))] * size
    missing = _gather(client, workers, looking, search.timeout, search.timeout)
    for worker, path in zip(workers, missing, strict=True):
        if path is not None:
            raise unseen_by(worker, path)
    preparing = [
        (_get_ready, (session, rank, size, worker, search)) for rank, worker in enumerate(workers)
    ]
    try:
        ready: list[_Ready] = _gather(
            *(client, workers, preparing, search.timeout, search.timeout + _COMPILE_SECONDS)
        )
        check_room(size, max(rank.baseline for rank in ready))
        running = [(_run, (session, [rank.address for rank in ready], search))] * size
        return _gather(client, workers, running, search.timeout)[0]
    except BaseException:
        stop(client, workers)
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
    """A search that this worker has a rank of. patience: until the others come."""

    communicator: Any
    patience: threading.Timer | None = None


_sessions: dict[str, _Session] = {}


def _get_ready(session: str, rank: int, size: int, worker: str, search: RankSearch) -> _Ready:
    """Compile, and listen for the others. Unless the search begins in time, it is forgotten."""
    from .tcp import TcpCommunicator

    with telling_others(rank):
        at = _worker()
        if at.address != worker:
            raise DelegraphError(f"a rank that belongs to {worker} was started on {at.address}")
        store = open_store(search.store)
        warm_up({store.offsets_type(*place) for place in subgraphs_of(store)})
        return_freed_memory()
        if size == 1:
            _sessions[session] = _Session(SingleCommunicator())
            return _Ready("", held_bytes())
        security = at.security
        arguments = security.get_listen_args("worker"), security.get_connection_args("worker")
        host = at.address.rpartition(":")[0]
        communicator = TcpCommunicator(session, rank, size, host, search.timeout, arguments)
        patience = threading.Timer(search.timeout + _COMPILE_SECONDS, _forget, [session])
        patience.daemon = True
        patience.start()
        _sessions[session] = _Session(communicator, patience)
        return _Ready(communicator.address, held_bytes())


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


def _run(session: str, addresses: Sequence[str], search: RankSearch) -> list[SuperstepRecord]:
    """The supersteps of a rank; what they did, on rank 0."""
    ours = _sessions[session]
    communicator = ours.communicator
    if ours.patience is not None:
        ours.patience.cancel()
        ours.patience = None
    try:
        with telling_others(communicator.rank, communicator):
            store, team = open_store(search.store), Team(_worker().state.nthreads)
            if communicator.size == 1:
                return _run_alone(store, team, search)
            communicator.join(addresses)
            graph = load_rank(
                *(store, communicator.rank, communicator.size, team, communicator.check)
            )
            found = search_rank(graph, search.source, communicator, team, search.max_depth)
            save(graph, search.folder)
            return found.supersteps
    finally:
        _forget(session)
        return_freed_memory()


def _run_alone(store: Store, team: Team, search: RankSearch) -> list[SuperstepRecord]:
    """One rank has all partitions, merged into one graph."""
    backend = get_backend("cpu", team.threads)
    found = search_graph(store.graph(team), search.source, backend, search.max_depth)
    save_whole(search.folder, found.distance, found.parent)
    return found.supersteps


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()
