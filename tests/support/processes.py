"""Processes: the command line, workers on this machine, and waits for their progress."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

from delegraph.partition.disk import memory


def command(*args) -> list[str]:
    return [sys.executable, "-m", "delegraph", *map(str, args)]


def printed_alone(code: str, *arguments: object) -> str:
    """Run Python code in a process of its own, and return what it prints.

    What a process holds counts against its memory limit, and that of a test's process grows with
    the tests that ran before.
    """
    line = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(line, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


KILLED_BEFORE_THE_RECORD = (
    "import os, signal; from delegraph.partition.disk import outputs, work; "
    "work.publish = lambda *args: (outputs.publish(*args), os.kill(os.getpid(), 9)); "
    "from delegraph.cli.main import run; run()"
)
"""Code for ``python -c``: a command that is killed once its output has appeared."""


@contextmanager
def cluster(workers: int) -> Iterator[tuple[Any, Any]]:
    """Start a cluster on loopback, as one that exists before a command; a worker that dies is not
    replaced.
    """
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        yield local, client


@contextmanager
def scheduler_process() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Start a scheduler without workers as a process, and yield the process and its address."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        line = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0"]
        line += ["--no-dashboard", "--scheduler-file", str(file)]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: file.exists() and file.stat().st_size > 0)  # made, then written
            yield process, json.loads(file.read_text())["address"]
        finally:
            process.kill()
            process.wait()


class Background:
    """Work that runs in a thread while a test disturbs it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = 0.0
        self._thread = threading.Thread(target=self._run, args=[work])
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            self.result = work()
        except BaseException as error:
            self.error = error
        self.ended = time.monotonic()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the search goes on and on"


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def wait_for_supersteps(client: Any) -> None:
    """Wait until every worker has run its rank for a while."""

    def all_run() -> bool:
        running = client.processing()
        return bool(running) and all(
            any("run_rank" in key for key in keys) for keys in running.values()
        )

    wait_until(all_run)
    time.sleep(0.5)


def pids(client: Any) -> dict[str, int]:
    return client.run(os.getpid)


def peak_of(line: list[str]) -> tuple[int, int, str]:
    """Run a command; return its exit code, the peak bytes of its process tree, and its stderr."""
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory.tree_bytes(process.pid))
            time.sleep(0.02)
        assert process.stderr
        return process.returncode, peak, process.stderr.read()


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the process ids of a command's workers, once there are two."""
    workers: list[int] = []
    while len(workers) < 2 and process.poll() is None:
        of_command = memory.process_tree(process.pid)[1:]
        servers = [pid for pid in of_command if is_forked(pid)][:1]  # then those it has forked
        workers = [pid for server in servers for pid in memory.process_tree(server)[1:]]
        time.sleep(0.02)
    return workers


def is_forked(pid: int) -> bool:
    """Return whether a process is a local worker, or the server from which workers are forked."""
    try:
        return b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
