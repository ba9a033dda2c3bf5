"""The process that local workers are forked off: one, for as long as anyone needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from multiprocessing import forkserver, get_context

import psutil
import pytest

from delegraph.pipeline.run import fork_server as module
from delegraph.pipeline.run.cluster import open_cluster
from delegraph.pipeline.run.fork_server import fork_server
from delegraph.pipeline.run.resources import ClusterOptions
from support.processes import command, is_forked, wait_until


def server() -> int | None:
    return forkserver._forkserver._forkserver_pid  # pyright: ignore


def test_it_ends_with_the_last_who_needs_it():
    before = dict(os.environ)
    with fork_server(devices=False):
        there, folder = server(), module._folder
        with fork_server(devices=True):
            assert (server(), module._folder) == (there, folder)
        assert there is not None
        assert psutil.pid_exists(there)
    assert server() is None
    assert not psutil.pid_exists(there)
    assert not os.path.exists(folder)
    assert dict(os.environ) == before
    with fork_server(devices=False):
        assert server() not in (None, there)


def test_one_that_was_there_stays():
    forkserver.ensure_running()
    there = server()
    try:
        with fork_server(devices=False):
            assert server() == there
        assert server() == there
    finally:
        forkserver._forkserver._stop()  # pyright: ignore


@pytest.mark.parametrize("reaped", [False, True])
def test_one_that_is_killed_is_no_error(reaped):
    with fork_server(devices=False):
        there, folder = server(), module._folder
        assert there is not None
        os.kill(there, signal.SIGKILL)
        if reaped:
            os.waitpid(there, 0)
    assert server() is None
    assert not os.path.exists(folder)


def test_others_that_it_has_forked_live_on():
    forkserver.set_forkserver_preload(["json"])
    try:
        with fork_server(devices=False):
            other = get_context("forkserver").Process(target=time.sleep, args=(60,))
            other.start()
        assert other.exitcode is None
        other.kill()
        other.join()
        assert other.exitcode == -signal.SIGKILL
        assert forkserver._forkserver._preload_modules == ["json"]  # pyright: ignore
    finally:
        forkserver.set_forkserver_preload(["__main__"])
        forkserver._forkserver._stop()  # pyright: ignore


def test_where_temporary_files_have_long_paths(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with fork_server(devices=False):
        assert server() is not None
    assert list(long.iterdir()) == []


def test_what_cannot_be_imported_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "cupy.py").write_text("raise RuntimeError('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with fork_server(devices=True), open_cluster(ClusterOptions(workers=1), 1) as there:
        assert set(there.ask_all(os.getppid).values()) == {server()}


def test_one_that_does_not_begin(monkeypatch):
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forkserver, "ensure_running", fail)
    with pytest.raises(KeyboardInterrupt), fork_server(devices=False):
        pass
    assert (module._holders, module._folder) == (0, "")


def test_workers_are_forked_off_it():
    with open_cluster(ClusterOptions(workers=2), 2) as there:
        parents = there.ask_all(os.getppid)
        assert set(parents.values()) == {server()}
        variables = there.ask_all(os.getenv, "MALLOC_TRIM_THRESHOLD_")
        assert set(variables.values()) == {"65536"}
        worker = next(iter(there.ask_all(os.getpid).values()))
        os.kill(worker, signal.SIGKILL)  # and Dask begins another one

        def again() -> bool:
            return len(there.contact.workers()) == 2 and worker not in children(server())

        wait_until(again)
        assert set(there.ask_all(os.getppid).values()) == {server()}
    assert server() is None


def children(process: int | None) -> set[int]:
    return {child.pid for child in psutil.Process(process).children()}


@pytest.mark.parametrize("later", [0.0, 0.3])
def test_interrupted_before_there_are_workers(edge_list, tmp_path, later):
    line = command("build", edge_list([0], [1]), "-o", tmp_path / "out", "--workers", 2)
    running = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, start_new_session=True)
    tree = psutil.Process(running.pid)
    wait_until(lambda: any(is_forked(child.pid) for child in tree.children()))
    forked = next(child for child in tree.children() if is_forked(child.pid))
    time.sleep(later)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (130, "delegraph: interrupted\n")
    wait_until(lambda: not forked.is_running())
