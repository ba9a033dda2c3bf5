"""The process that local workers are forked off: one, for as long as anyone needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from multiprocessing import forkserver

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


def test_one_that_is_killed_is_no_error():
    with fork_server(devices=False):
        there, folder = server(), module._folder
        assert there is not None
        os.kill(there, signal.SIGKILL)
    assert server() is None
    assert not os.path.exists(folder)


def test_workers_are_forked_off_it():
    with open_cluster(ClusterOptions(workers=2), 2) as there:
        parents = there.ask_all(os.getppid)
        assert set(parents.values()) == {server()}
        variables = there.ask_all(os.getenv, "MALLOC_TRIM_THRESHOLD_")
        assert set(variables.values()) == {"65536"}
    assert server() is None


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
