"""Dask clusters: local worker processes, or an existing cluster.

Workers read the input and the scratch folder by the same paths as this process, so they must share
its file systems. That is checked before any work.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..._version import __version__
from ...partition.disk.files import read_small
from ...partition.disk.memory import held_bytes, return_freed_memory
from ...partition.disk.urls import is_remote
from ...partition.errors import BusyError, DelegraphError, InputError
from ...partition.numbers import shown
from .contact import CLOSE_SECONDS, Contact, begin, cluster_errors
from .fork_server import FORKED, fork_server
from .local import local_cluster
from .resources import ClusterOptions

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar("Result")

CONNECT_SECONDS = 30
WORKERLESS_SECONDS = 60
_LOOK_SECONDS = 1
_MOST_FILE_BYTES = 1 << 20
"""Most bytes of the file that a scheduler writes."""
_RETURN_SECONDS = 5  # for a worker to start again after its rank was dropped (ranks/sessions.py)
_NEEDED = ["delegraph", "numba", "numpy", "pyarrow", "xxhash"]


class Cluster:
    """The workers of a Dask cluster.

    workers: the number of workers. threads: of each worker. baseline: measured bytes that each
    worker holds after ``warm_up``. timeout: seconds without a sign of life.
    """

    def __init__(self, client: Any, local: bool, timeout: float) -> None:
        self.client = client
        self.local = local
        self.contact = Contact(client, timeout)
        until = time.monotonic() + min(timeout, _RETURN_SECONDS)
        while not (found := self.contact.workers()):
            if time.monotonic() > until:
                raise _no_workers()
            time.sleep(0.1)
        self.workers = len(found)
        self.threads = min(worker["nthreads"] for worker in found.values())
        self.baseline = 0

    def check_alike(self) -> None:
        """Raise InputError, which names a worker, unless all workers have the packages and the
        version of this process.
        """
        asking = {"op": "versions", "packages": _NEEDED}
        called = self.client.scheduler.broadcast(msg=asking, on_error="ignore")
        with cluster_errors():
            answers = self.contact.wait(called)
        for worker, answer in answers.items():
            lacks = unlike(answer["packages"])
            if lacks:
                raise InputError(f"worker {worker} {lacks}: install the same version there")

    def check_sees(self, folder: Path, inputs: Sequence[str]) -> None:
        """Raise DelegraphError, which names a worker, unless all workers see this process's
        files.
        """
        token = folder / f".seen-{uuid.uuid4().hex}"
        token.write_bytes(b"")
        try:
            for address, missing in self.ask_all(unseen, [str(token), *inputs]).items():
                if missing:
                    raise unseen_by(address, missing)
        finally:
            token.unlink()

    def warm_up(self, task: Callable[[], None]) -> None:
        """Compile on every worker the kernels that tasks will call, then measure what a worker
        holds.
        """
        self.baseline = max(self.ask_all(_warm_up, task).values())

    def ask_all(self, function: Callable[..., Result], *args: Any) -> dict[str, Result]:
        """Return each worker's answer by address. Workers that leave meanwhile are left out."""
        answers: dict[str, Result] = {}
        while True:
            left = [worker for worker in self.contact.look() if worker not in answers]
            if not left:
                break
            called = self.client._run(function, *args, workers=left, on_error="return")
            with cluster_errors():
                answered = self.contact.wait(called, left)
            for worker, answer in answered.items():
                if isinstance(answer, OSError) and answer.errno is None:
                    continue  # the worker is gone, or will be asked again
                if isinstance(answer, Exception):
                    raise answer
                answers[worker] = answer
        if not answers:
            raise _no_workers()
        return answers

    def run(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        at_once: int,
        done: Callable[[int], None],
    ) -> list[Result]:
        """Run a task on each item as execute.Pool.run does. A task whose worker dies runs again on
        another worker.
        """
        from distributed.scheduler import KilledWorker

        left = iter(enumerate(items))
        results: list[Any] = [None] * len(items)
        running: dict[Any, int] = {}
        no_worker_since = None
        try:
            with cluster_errors():
                while True:
                    for i, item in islice(left, max(0, at_once - len(running))):
                        running[self.contact.submit(task, item)] = i
                    if not running:
                        return results
                    self.contact.first_ended(list(running), _LOOK_SECONDS)
                    ended = [future for future in running if future.done()]
                    no_worker_since = None if ended else self._no_worker_since(no_worker_since)
                    for future in ended:
                        i = running.pop(future)
                        results[i] = self._result(future)
                        done(i)
        except KilledWorker as error:
            raise DelegraphError(
                f"one task killed several workers ({error.last_worker.address} last): "
                "out of memory? Run the same command again, with fewer threads a worker"
            ) from error
        finally:
            self.contact.drop(list(running))

    def _result(self, future: Any) -> Any:
        """Return the result of a task that has ended. Its worker may have fallen silent since."""
        if future.status == "error":
            raise self.contact.error_of(future)
        return self.contact.wait(self.client._gather([future]))[0]

    def _no_worker_since(self, since: float | None) -> float | None:
        """Return the time since which the cluster has no worker. Raises BusyError if that is too
        long ago, DelegraphError if a worker is silent.
        """
        if self.contact.check():
            return None
        now = time.monotonic()
        if since is not None and now - since > WORKERLESS_SECONDS:
            raise BusyError(
                f"the cluster has had no workers for {WORKERLESS_SECONDS} s: start some, and run "
                "the same command again"
            )
        return since or now


@contextlib.contextmanager
def open_cluster(
    options: ClusterOptions,
    threads: int,
    devices: bool = False,
) -> Iterator[Cluster]:
    """Open the cluster that the options name. Local workers share ``threads`` and end with the
    block.

    devices: whether local workers get a GPU each.
    """
    with contextlib.ExitStack() as stack:
        if options.workers:
            stack.enter_context(fork_server(devices))  # imports in parallel
        import dask.config
        import distributed  # noqa: F401  # sets levels of its loggers

        # This package reports errors in one line; Dask would log each connection that ends.
        for name in ["asyncio", *logging.root.manager.loggerDict]:
            if name.partition(".")[0] in ("asyncio", "distributed", "tornado"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        timeout = options.timeout
        there: Any
        if options.workers:
            stack.enter_context(dask.config.set(FORKED))  # also for restarted workers
            there = stack.enter_context(local_cluster(options.workers, threads, devices, timeout))
        else:
            there = options.scheduler or _address_in(str(options.scheduler_file))
        if hasattr(there, "submit"):
            client = _usable_client(there)
        else:
            client = stack.enter_context(_connected(there, timeout))
        cluster = Cluster(client, bool(options.workers), timeout)
        if not cluster.local:
            cluster.check_alike()
        yield cluster


def _usable_client(client: Client) -> Client:
    """Return the client. Raises InputError unless it is connected and this thread may wait for
    it.
    """
    if client.asynchronous:
        raise InputError(
            "the client is asynchronous: give a synchronous client, or the scheduler's address"
        )
    if client.status != "running":
        raise InputError(f"the client is {client.status}: give a client that is connected")
    return client


def _check_address(address: str) -> None:
    """Raise ValueError unless ``address`` is a scheduler's address. Dask's client reports a bad
    address, but sometimes only when the time is up.
    """
    from distributed.comm.addressing import get_address_host_port, parse_address
    from distributed.comm.registry import get_backend

    scheme, _ = parse_address(address)
    get_backend(scheme)
    if scheme in ("tcp", "tls"):
        get_address_host_port(address)


@contextlib.contextmanager
def _connected(there: Any, timeout: float) -> Iterator[Any]:
    """Yield a client of the cluster at an address, or of a Dask cluster object.

    Raises BusyError if no scheduler answers at the address, InputError if the text is no address.
    """
    from distributed import Client

    seconds = min(timeout, CONNECT_SECONDS)
    try:
        if isinstance(there, str):
            _check_address(there)
        client = begin(lambda: Client(there, timeout=seconds)).result(seconds + 1)
    except (ValueError, TypeError) as error:
        raise InputError(f"{there} is not the address of a Dask scheduler: {error}") from error
    except (OSError, AssertionError) as error:  # AssertionError: an answer was cut off
        why = str(error) or f"not within {seconds:g} s"
        raise BusyError(f"no Dask scheduler answers at {there}: {why}") from error
    try:
        yield client
    finally:
        with contextlib.suppress(OSError):
            client.close(CLOSE_SECONDS)


def unlike(packages: dict[str, str | None]) -> str:
    """Return how a worker's packages, by name, fall short of this process's needs; empty if they do
    not.

    >>> unlike({"delegraph": "0.0", "numba": None})
    'lacks numba'
    """
    missing = [name for name, version in packages.items() if name in _NEEDED and version is None]
    if missing:
        return f"lacks {', '.join(missing)}"
    there = packages["delegraph"]
    return "" if there == __version__ else f"has delegraph {there}, but this is {__version__}"


def _no_workers() -> DelegraphError:
    return BusyError("the cluster has no workers: start some, then run again")


def unseen_by(worker: str, path: str) -> DelegraphError:
    return DelegraphError(
        f"worker {worker} does not see {path}: workers must share the file system with this "
        "machine, under the same paths"
    )


def _address_in(file: str) -> str:
    """Read a scheduler's address from the file that the scheduler wrote. Raises BusyError for an
    empty file, which a scheduler that starts is about to write.
    """
    data = read_small(file, _MOST_FILE_BYTES)
    if not data:
        raise BusyError(f"{file}: the Dask scheduler has not written it yet")
    try:
        address = json.loads(data)["address"]
        if not isinstance(address, str):
            raise TypeError(f"its address is {shown(address)}")
        return address
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: not the file of a Dask scheduler: {error}") from error


def unseen(paths: Sequence[str]) -> str | None:
    """Return the first path that is missing on the worker that runs this function."""
    return next((path for path in paths if not (is_remote(path) or os.path.exists(path))), None)


def _warm_up(task: Callable[[], None]) -> int:
    task()
    return_freed_memory()
    return held_bytes()
