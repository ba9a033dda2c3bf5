"""Runs with local workers leave nothing behind, and a run whose processes are all killed leaves
nothing after the next run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from delegraph.pipeline.run.local import local_keys
from delegraph.pipeline.run.semaphores import remove_dead_semaphores, semaphore_mark
from support.processes import command, wait_until

SHARED_MEMORY = Path("/dev/shm")


def semaphores(mark: str = "delegraph-") -> set[str]:
    return {path.name for path in SHARED_MEMORY.glob(f"sem.{mark}*")}


def dead_semaphores() -> set[str]:
    """Return semaphores of processes that have ended; other tests run at the same time."""
    return {name for name in semaphores() if not psutil.pid_exists(int(name.split("-")[2]))}


@pytest.fixture
def temporary(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def line(ok, edge_list, tmp_path):
    options = "--workers", 2, "--partitions", 2, "--overwrite"
    edges = edge_list(range(50), range(1, 51))
    return command("build", edges, "-o", tmp_path / "graph.dg", *options)


@pytest.mark.slow
def test_nothing_after_a_run(line, temporary):
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert process.wait() == 0
    assert not list(temporary.iterdir())
    assert not [name for name in semaphores() if f"-{process.pid}-" in name]


def begun(temporary: Path, process: int, what: str) -> bool:
    if what == "folder":
        return any(temporary.glob("delegraph-workers-*"))
    if what == "semaphores":
        return any(f"-{process}-" in name for name in semaphores())
    return any(temporary.glob("delegraph-workers-*/dask-scratch-space/*"))


def runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("what", ["folder", "semaphores", "workers"])
def test_nothing_after_the_run_that_follows_a_killed_one(line, temporary, what):
    """A run after one whose processes were all killed leaves neither folders nor semaphores of the
    killed run.
    """
    with subprocess.Popen(
        line, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: begun(temporary, process.pid, what))
        others = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(runs, others)))  # workers end when they miss their scheduler
    names = {path.name for path in temporary.iterdir()}
    if what != "workers":
        assert names or dead_semaphores()
    subprocess.run(line, check=True, capture_output=True)
    assert not list(temporary.iterdir())
    assert not dead_semaphores()


@pytest.mark.parametrize("role", ["client", "scheduler", "worker"])
def test_keys_need_no_temporary_folder(tmp_path, monkeypatch, role):
    """A process that is killed while it opens its keys leaves no folder of its own behind."""
    keys = local_keys(str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert keys.get_connection_args(role)["ssl_context"].cert_store_stats()["x509"] == 1
    assert keys.require_encryption
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    with pytest.raises(FileNotFoundError):
        local_keys(None).get_connection_args(role)


MAKING = """
import sys, time
from multiprocessing import current_process, get_context
from delegraph.pipeline.run.semaphores import semaphore_mark
current_process()._config["semprefix"] = semaphore_mark()
lock = get_context("spawn").Lock()
print(semaphore_mark(), flush=True)
time.sleep(600)
"""


def test_semaphores_of_a_killed_process():
    """Semaphores of a killed process are removed, and those of a living process stay."""
    line = [sys.executable, "-c", MAKING]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True) as one:
        assert one.stdout
        mark = one.stdout.readline().strip().removeprefix("/")
        remove_dead_semaphores()
        assert len(semaphores(mark)) == 1
        os.killpg(one.pid, signal.SIGKILL)  # and multiprocessing's own process that looks after it
    assert len(semaphores(mark)) == 1
    remove_dead_semaphores()
    assert not semaphores(mark)


def test_semaphores_that_are_not_ours(tmp_path):
    mark = semaphore_mark().removeprefix("/")
    delegraph, here, process, began = mark.split("-")
    names = [
        f"sem.{mark}-lives",
        f"sem.{delegraph}-{int(here) + 1}-{process}-{int(began) + 1}-of-a-container",
        "sem.mp-of-somebody",
        f"sem.{delegraph}-{here}-{process}-{int(began) + 1}-dead",
    ]
    for name in names:
        (tmp_path / name).touch()
    remove_dead_semaphores(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(names[:3])
