"""The fork server: the process from which local workers are forked. It imports the modules that
workers need once for all of them.

The server can start as soon as this process knows that there will be workers; both then import at
the same time. It is apart from multiprocessing's own fork server, which the user's program may use.
Dask starts its workers by this package's start method if ``FORKED`` is in its configuration.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from multiprocessing import (
    context,  # pyright: ignore[reportAttributeAccessIssue]
    current_process,
    forkserver,
    popen_forkserver,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from typing import Any

from ...partition.disk.temporary import TemporaryFolder
from .semaphores import remove_dead_semaphores, semaphore_mark

_METHOD = "delegraph"

FORKED = {"distributed.worker.multiprocessing-method": _METHOD}
"""Dask configuration that names the workers' start method."""

_PACKAGE = __name__.partition(".")[0]
_PRELOADED = f"{_PACKAGE}.pipeline.run.preloaded"
_IMPORTED = (
    "distributed.nanny",
    f"{_PACKAGE}.pipeline.build.build",
    f"{_PACKAGE}.pipeline.engines.workers.program_work",
    f"{_PACKAGE}.pipeline.engines.workers.search_work",
    f"{_PACKAGE}.pipeline.ranks.sessions",
)
_IMPORTED_FOR_DEVICES = ("dask_cuda", "cupy")
_ENVIRONMENT = {
    # Variables that Dask sets for workers before they start (distributed.yaml).
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Modules must not be imported from the user's folder.
    "PYTHONSAFEPATH": "1",
}

_USUAL_MARK = vars(current_process())["_config"].get("semprefix", "/mp")

_lock = threading.Lock()
_holders = 0
_server: _Server | None = None


@contextlib.contextmanager
def fork_server(devices: bool) -> Iterator[None]:
    """Keep the fork server running, or starting, until the last caller has left the block.

    devices: whether workers get GPUs. It counts only for the caller that starts the server.
    """
    global _holders, _server
    held = False
    try:
        with _lock:
            _holders, held = _holders + 1, True
            if _server is None:
                _server = _Server(devices)
                _server.ensure_running()
                _mark_semaphores(semaphore_mark())
        yield
    finally:
        with _lock:
            _holders -= held
            if _server is not None and not _holders:
                ended, _server = _server, None
                _mark_semaphores(_USUAL_MARK)
                ended.end()


def server_folder() -> str | None:
    """Return the folder for files of the server and its workers, which is removed with the server;
    None if there is no server.
    """
    return None if _server is None else _server.folder


def server_bytes() -> int:
    """Return the bytes that the server holds; 0 if there is no server. It shares some of these
    pages with workers.
    """
    from ...partition.disk.memory import held_bytes  # imported late, not at the start

    process = None if _server is None else _server.process
    return held_bytes(process) if process else 0


class _Server(forkserver.ForkServer):
    def __init__(self, devices: bool) -> None:
        super().__init__()
        remove_dead_semaphores()
        self._temporary = TemporaryFolder("delegraph-workers-")
        self.folder = self._temporary.name
        self._descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        self._imported = _IMPORTED + _IMPORTED_FOR_DEVICES * devices
        self.set_forkserver_preload([_PRELOADED])
        # For a process that ends without closing the server.
        self._finalizer = util.Finalize(self, self._temporary.cleanup, exitpriority=0)

    @property
    def process(self) -> int | None:
        return vars(self)["_forkserver_pid"]

    def ensure_running(self) -> None:
        """Start the server unless it is running; start it again if it was killed."""
        told = {
            "DELEGRAPH_PRELOADED": " ".join(self._imported),
            "DELEGRAPH_FOLDER": self.folder,
        }
        resource_tracker.ensure_running()  # first, since it unblocks SIGINT
        # A socket's path has at most 107 bytes; the folder's path may have more.
        folder = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        with _sockets_in_folder(folder), _environment({**_ENVIRONMENT, **told}), _ctrl_c_blocked():
            super().ensure_running()

    def end(self) -> None:
        """Kill the server at once, without waiting for processes that it has forked."""
        if self.process:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.process, signal.SIGKILL)
                self._stop()  # pyright: ignore[reportAttributeAccessIssue]
        os.close(self._descriptor)
        self._finalizer()


class _Popen(popen_forkserver.Popen):
    """A process starter like multiprocessing's own, which forks from this package's server."""

    method = _METHOD

    def _launch(self, process_obj: Any) -> None:
        server = _server
        if server is None:
            raise OSError("there is no process to fork workers off")
        data = io.BytesIO()
        context.set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process_obj._name), data)
            reduction.dump(process_obj, data)
        finally:
            context.set_spawning_popen(None)
        self.sentinel, to_child = server.connect_to_new_process(vars(self)["_fds"])
        kept = os.dup(to_child)  # tells the child by closing that this process has ended
        ends = kept, self.sentinel
        self.finalizer = util.Finalize(self, vars(util)["close_fds"], ends)
        with open(to_child, "wb", closefd=True) as file:
            file.write(data.getbuffer())
        self.pid = forkserver.read_signed(self.sentinel)


class _Process(context.ForkServerProcess):
    _start_method = _METHOD

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        return _Popen(process_obj)


class _Context(context.ForkServerContext):
    _name = _METHOD
    Process = _Process  # pyright: ignore[reportAssignmentType]


vars(context)["_concrete_contexts"].setdefault(_METHOD, _Context())


def _mark_semaphores(mark: str) -> None:
    """Set the prefix of the names of new semaphores. Dask makes several for each worker, and their
    names remain if all processes are killed before every worker has opened them.
    """
    vars(current_process())["_config"]["semprefix"] = mark


@contextlib.contextmanager
def _sockets_in_folder(folder: str) -> Iterator[None]:
    """Make multiprocessing put its sockets in ``folder``, within the block. Its own folder would
    remain if a process is killed.
    """
    settings = vars(current_process())["_config"]
    before = settings.get("tempdir")
    settings["tempdir"] = folder
    try:
        yield
    finally:
        settings["tempdir"] = before


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block Ctrl-C for processes that start in the block, and for all that they fork: this process
    ends them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, except those that the user has set."""
    new = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]
