"""The fork server of local workers: one process, which lives as long as any run needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import forkserver

import psutil
import pytest

from delegraph.pipeline.run import fork_server as module
from delegraph.pipeline.run.cluster import open_cluster
from delegraph.pipeline.run.fork_server import fork_server
from delegraph.pipeline.run.resources import ClusterOptions
from support.processes import command, is_forked, wait_until, workers_of


def server() -> int | None:
    return module._server and module._server.process


def folders() -> set[str]:
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("delegraph-work")}


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path, monkeypatch):  # pytest's own are elsewhere by then
    with tempfile.TemporaryDirectory() as here:  # of a short name, for the user's own server
        monkeypatch.setattr("tempfile.tempdir", here)
        monkeypatch.setenv("TMPDIR", here)
        yield


def test_it_ends_with_the_last_who_needs_it():
    before = dict(os.environ)
    with fork_server(devices=False):
        there = server()
        with fork_server(devices=True):
            assert server() == there
        assert there is not None
        assert psutil.pid_exists(there)
        assert len(folders()) == 1
    assert server() is None
    assert not psutil.pid_exists(there)
    assert not folders()
    assert dict(os.environ) == before
    with fork_server(devices=False):
        assert server() not in (None, there)


@pytest.mark.parametrize("reaped", [False, True])
def test_one_that_is_killed_is_no_error(reaped):
    with fork_server(devices=False):
        there = server()
        assert there is not None
        os.kill(there, signal.SIGKILL)
        if reaped:
            os.waitpid(there, 0)
    assert server() is None
    assert not folders()


OF_THE_USER = """
import os, time
from multiprocessing import get_context
from delegraph.pipeline.run.cluster import open_cluster
from delegraph.pipeline.run.resources import ClusterOptions

def tell(queue):
    import scipy.sparse
    queue.put((os.getppid(), "PYTHONSAFEPATH" in os.environ))

if __name__ == "__main__":
    users = get_context("forkserver")
    queue = users.Queue()
    with open_cluster(ClusterOptions(workers=1), 1) as there:
        users.Process(target=tell, args=[queue]).start()
        (ours,) = there.ask_all(os.getppid).values()
        parent, changed = queue.get(timeout=60)
        assert parent != ours and not changed
    users.Process(target=tell, args=[queue]).start()
    assert queue.get(timeout=60) == (parent, False)
"""


def test_that_of_the_user_is_another_one(tmp_path):
    (script := tmp_path / "script.py").write_text(OF_THE_USER)
    subprocess.run([sys.executable, script], check=True)
    assert not folders()


def test_nothing_is_left_of_a_command_that_is_killed(edge_list, tmp_path):
    line = command("build", edge_list([0], [1]), "-o", tmp_path / "out", "--workers", 2)
    running = subprocess.Popen(line, stderr=subprocess.DEVNULL, text=True)
    workers_of(running)
    assert len(folders()) == 1
    running.kill()
    running.wait()
    wait_until(lambda: not folders())


def test_nothing_is_left_of_a_script_that_closes_nothing():
    script = (
        "from delegraph.pipeline.run.fork_server import fork_server\n"
        "there = fork_server(devices=False)\n"
        "there.__enter__()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert not folders()


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from delegraph.pipeline.run.cluster import open_cluster\n"
        "from delegraph.pipeline.run.resources import ClusterOptions\n"
        "open_cluster(ClusterOptions(workers=1), 1).__enter__()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "under if __name__ == '__main__'" in done.stderr.splitlines()[-1]
    assert not folders()


def test_where_temporary_files_have_long_paths(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with open_cluster(ClusterOptions(workers=1), 1) as there:
        assert there.ask_all(os.getpid)
        assert len(folders()) == 1
    assert not folders()


def test_what_cannot_be_imported_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "cupy.py").write_text("raise RuntimeError('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with fork_server(devices=True), open_cluster(ClusterOptions(workers=1), 1) as there:
        assert set(there.ask_all(os.getppid).values()) == {server()}


def test_one_that_does_not_begin(monkeypatch):
    def fail(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forkserver.ForkServer, "ensure_running", fail)
    with pytest.raises(KeyboardInterrupt), fork_server(devices=False):
        pass
    assert (module._holders, module._server) == (0, None)
    assert not folders()


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
    _, stderr = running.communicate(timeout=60)
    assert (running.returncode, stderr) == (130, "delegraph: interrupted\n")
    wait_until(lambda: not forked.is_running())
