"""Dask workers that are child processes of this one.

The workers' ports are on loopback, which other users of the machine can reach. So workers talk over
TLS, with temporary keys that only this user can read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from multiprocessing import active_children, util
from multiprocessing.synchronize import SemLock
from pathlib import Path
from typing import Any

import dask.config

from ...partition.errors import BusyError, DelegraphError
from .contact import CLOSE_SECONDS, begin
from .fork_server import server_folder

_WITH_PAGES = ("scheduler", "worker")

START_SECONDS = 20
"""Seconds that a worker may take to start, in addition to the timeout."""


@contextlib.contextmanager
def local_cluster(workers: int, threads: int, devices: bool, timeout: float) -> Iterator[Any]:
    """Start Dask's cluster of worker processes, which share ``threads`` and end with the block.

    devices: whether each worker gets a GPU. Raises BusyError if the workers do not start in time,
    or end while they start; DelegraphError if a library is missing.
    """
    seconds = timeout + START_SECONDS
    options: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": max(1, threads // workers),
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "silence_logs": logging.CRITICAL,
        "death_timeout": seconds,
        "local_directory": server_folder(),
    }
    before, started = _workers(), time.monotonic()
    begun = begin(lambda: _start(options, devices))
    try:
        try:
            cluster = begun.result(seconds + CLOSE_SECONDS)
        except ImportError as error:
            raise DelegraphError(
                f"local workers cannot start: {str(error).splitlines()[0]}"
            ) from error
        except Exception as error:  # Dask raises many kinds of errors here
            if time.monotonic() < started + seconds:
                raise BusyError(
                    f"{workers} local workers ended while they started: run the same command again "
                    "(a Python script must start them under if __name__ == '__main__')"
                ) from error
            raise BusyError(
                f"{workers} local workers have not started within {seconds:g} s: run the same "
                "command again, or with fewer"
            ) from error
        yield cluster
    finally:
        with contextlib.suppress(Exception):
            begun.result(CLOSE_SECONDS).close(CLOSE_SECONDS)
        end_workers(before)


def _start(options: dict[str, Any], devices: bool) -> Any:
    before = set(_finalizers())
    try:
        return _started(options, devices)
    finally:
        _unname(before)


def _unname(before: Collection[Any]) -> None:
    """Remove the names of semaphores made since ``before``, the finalizers of that time.

    Every process that shares these semaphores has opened them by now. The names would remain if all
    processes were killed.
    """
    for key, finalizer in list(_finalizers().items()):
        if key not in before and finalizer._callback is SemLock._cleanup:  # pyright: ignore
            finalizer()


def _finalizers() -> dict[Any, Any]:
    return util._finalizer_registry  # pyright: ignore


def _started(options: dict[str, Any], devices: bool) -> Any:
    # Turn off Dask's web pages, which anyone could read, and put the scheduler's folder where it
    # is removed.
    settings: dict[str, Any] = {f"distributed.{who}.http.routes": [] for who in _WITH_PAGES}
    options["security"] = local_keys(server_folder())
    with dask.config.set({**settings, "temporary-directory": server_folder()}):
        if devices:
            from dask_cuda import LocalCUDACluster  # pyright: ignore[reportMissingImports]

            # Dask needs no memory limit: no data passes through it, and the plan keeps the limit.
            return LocalCUDACluster(memory_limit=None, data=dict, **options)
        from distributed import LocalCluster

        return LocalCluster(processes=True, memory_limit=0, **options)


def local_keys(folder: str | None) -> Any:
    """Return new keys for the processes of a cluster, as files in ``folder``; in memory if it is
    None.

    Dask writes keys in memory to a temporary folder whenever a process opens them. That folder
    would remain if the process was killed meanwhile.
    """
    from distributed.security import Security

    keys = Security.temporary()
    if folder is None:
        return keys
    place = Path(tempfile.mkdtemp(prefix="tls-", dir=folder))  # which only this user can read
    certificate, key = str(place / "tls.crt"), str(place / "tls.key")
    for path, text in ((certificate, keys.tls_ca_file), (key, keys.tls_client_key)):
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
    roles = "client", "scheduler", "worker"
    paths = {f"tls_{role}_cert": certificate for role in roles}
    paths.update({f"tls_{role}_key": key for role in roles})
    return Security(require_encryption=True, tls_ca_file=certificate, **paths)


def _workers() -> set[Any]:
    """Return the worker processes of this process."""
    return {child for child in active_children() if child.name.startswith("Dask Worker")}


def end_workers(besides: Iterable[Any] = ()) -> None:
    """Kill the remaining worker processes, stopped ones too, except those in ``besides``."""
    for child in _workers().difference(besides):
        child.kill()
        child.join(CLOSE_SECONDS)
