"""The process that local workers are forked off: it imports what they need once, for all of them.

It may begin before this process knows more than that there will be workers, and imports while this
one does. It is multiprocessing's own, of which there is one in a process; Dask forks its workers
off it where ``FORKED`` is set.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from multiprocessing import current_process, forkserver, resource_tracker
from typing import Any

FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}
"""Of Dask's configuration."""

_PACKAGE = __name__.partition(".")[0]
_IMPORTED = (
    "distributed.nanny",
    *(f"{_PACKAGE}.pipeline.{name}" for name in ("build.build", "engines.workers.job")),
    f"{_PACKAGE}.pipeline.ranks.sessions",
)
_IMPORTED_FOR_DEVICES = ("dask_cuda", "cupy")
_ENVIRONMENT = {
    # What Dask has in the environment of workers before they begin (distributed.yaml).
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # The folder of the user is no place of modules.
    "PYTHONSAFEPATH": "1",
}

_lock = threading.Lock()
_holders = 0
_folder = ""
"""Of the server's socket; empty where the server is not of our making."""


@contextlib.contextmanager
def fork_server(devices: bool) -> Iterator[None]:
    """It is there, or on its way, until the last of those who ask for it is through.

    devices: whether workers get GPUs. One that the process had before is left as it is.
    """
    global _holders, _folder
    with _lock:
        if not _holders and not _running():
            imported = _IMPORTED + _IMPORTED_FOR_DEVICES * devices
            forkserver.set_forkserver_preload(list(imported))
            _folder = tempfile.mkdtemp(prefix="delegraph-workers-")
            resource_tracker.ensure_running()  # which lets signals through again
            with _socket_in(_folder), _environment(_ENVIRONMENT), _deaf_to_ctrl_c():
                forkserver.ensure_running()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _folder and not _holders:
                _end()


def _end() -> None:
    """At once, and without waiting for processes that it has forked."""
    global _folder
    forkserver.set_forkserver_preload(["__main__"])  # as it is by default
    with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended by itself
        os.kill(_server()._forkserver_pid, signal.SIGKILL)
        _server()._stop()
    shutil.rmtree(_folder, ignore_errors=True)
    _folder = ""


@contextlib.contextmanager
def _socket_in(folder: str) -> Iterator[None]:
    """Multiprocessing's own folder would be left where a process ends without much ado."""
    settings = current_process()._config  # pyright: ignore[reportAttributeAccessIssue]
    before = settings.get("tempdir")
    settings["tempdir"] = folder
    try:
        yield
    finally:
        settings["tempdir"] = before


def _server() -> Any:
    return forkserver._forkserver  # pyright: ignore[reportAttributeAccessIssue]


def _running() -> bool:
    return _server()._forkserver_pid is not None


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """What begins meanwhile, and all that it forks: this process ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """What the user has set stays as it is."""
    new = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]
