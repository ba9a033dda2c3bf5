"""The process that local workers are forked off: it imports what they need once, for all of them.

It may begin before this process knows more than that there will be workers, and imports while this
one does. It is multiprocessing's own, of which a process has one at most; Dask forks workers off it
where ``FORKED`` is set.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from multiprocessing import active_children, current_process, forkserver, resource_tracker
from typing import Any

FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}
"""Of Dask's configuration."""

WORKER = "Dask Worker"
"""How names of its workers' processes begin."""

_PACKAGE = __name__.partition(".")[0]
_PRELOADED = f"{_PACKAGE}.pipeline.run.preloaded"
_NAMES = "DELEGRAPH_PRELOADED"  # that it imports, in the environment
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
_LONGEST_FOLDER = 80  # bytes, of a socket's path, which has 107

_lock = threading.Lock()
_holders = 0
_folder = ""
"""Of the server's socket; empty where the server is not of our making."""
_preload_before: list[str] = []


@contextlib.contextmanager
def fork_server(devices: bool) -> Iterator[None]:
    """It is there, or on its way, until the last of those who ask for it is through.

    devices: whether workers get GPUs. One that the process had before is left as it is.
    """
    global _holders
    held = False
    try:
        with _lock:
            _holders, held = _holders + 1, True
            if _holders == 1 and not _server()._forkserver_pid:
                _begin(devices)
        yield
    finally:
        with _lock:
            _holders -= held
            if _folder and not _holders:
                _end()


def server_bytes() -> int:
    """That the server holds; pages that it shares with workers in parts."""
    from ...partition.disk.memory import held_bytes  # not while there is more to begin

    process = _server()._forkserver_pid
    return held_bytes(process) if process else 0


def _begin(devices: bool) -> None:
    global _folder, _preload_before
    imported = _IMPORTED + _IMPORTED_FOR_DEVICES * devices
    _preload_before = _server()._preload_modules
    _folder = tempfile.mkdtemp(prefix="delegraph-workers-")
    if len(os.fsencode(_folder)) > _LONGEST_FOLDER:
        os.rmdir(_folder)
        _folder = tempfile.mkdtemp(prefix="delegraph-workers-", dir="/tmp")
    forkserver.set_forkserver_preload([_PRELOADED])
    resource_tracker.ensure_running()  # it unblocks SIGINT, which is blocked after that
    environment = {**_ENVIRONMENT, _NAMES: " ".join(imported)}
    with _socket_in(_folder), _environment(environment), _deaf_to_ctrl_c():
        forkserver.ensure_running()


def _end() -> None:
    """At once, and without waiting for processes that it has forked; unless others than workers
    are among these.
    """
    global _folder
    server, folder = _server(), _folder
    _folder = ""
    forkserver.set_forkserver_preload(_preload_before)
    if any(not child.name.startswith(WORKER) for child in active_children()):
        return
    if server._forkserver_pid:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(server._forkserver_pid, signal.SIGKILL)
            server._stop()
        if server._forkserver_pid:  # somebody else has waited for it
            server._forkserver_pid = server._forkserver_address = None
    shutil.rmtree(folder, ignore_errors=True)


def _server() -> Any:
    return forkserver._forkserver  # pyright: ignore[reportAttributeAccessIssue]


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
