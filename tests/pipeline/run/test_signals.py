"""Signals that schedulers send: a run saves what it can, and the exit code tells the signal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.cli import main
from delegraph.pipeline.algorithms import cores, sssp
from delegraph.pipeline.run import ending
from support.graphs import random_edges
from support.marks import slow
from support.outputs import digest
from support.processes import command, wait_until

SAVED = "; the work so far is saved: run the same command again to continue"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Keep requests to end within a test: its commands are asked to end, and the process is not."""
    monkeypatch.setattr(ending, "_end_requested", ending._end_requested.__class__())
    monkeypatch.setattr(ending, "_saved", False)


@pytest.fixture
def graph(ok, tmp_path) -> Path:
    """Build a store with weights and a path of 1,500 levels."""
    src, dst = (
        np.r_[ends, np.arange(i, 1500 + i)] for i, ends in enumerate(random_edges(3, 300, 500))
    )
    columns = {"src": src, "dst": dst, "weight": (src + dst) % 7}
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    ok("build", tmp_path / "edges.parquet", "-o", tmp_path / "graph.dg", "--weight", "weight")
    return tmp_path / "graph.dg"


def saved_in(folder: Path) -> int:
    """Return the steps that a checkpoint holds; 0: there is none."""
    for path in folder.glob(".out.work/**/search.json"):
        return json.loads(path.read_text())["done"]
    return 0


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), slow(signal.SIGUSR1, 143), slow(signal.SIGINT, 130)],
)
def test_a_run_saves_and_ends(graph, tmp_path, number, code):
    args = ("pagerank", graph, "-o", tmp_path / "out", "--iterations", 10**9)
    line = command(*args, "--checkpoint", 1)
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: saved_in(tmp_path) > 0)
        done = saved_in(tmp_path)
        running.send_signal(number)
        _, stderr = running.communicate(timeout=60)
    by = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    last = stderr.splitlines()[-1]  # after progress, on a busy machine
    assert (running.returncode, last) == (code, f"delegraph: {by}{SAVED}")
    assert saved_in(tmp_path) >= done
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ranks_save_and_end(ok, graph, tmp_path, number):
    """Ranks that are signalled save and end, and one process then resumes."""
    ok("build", tmp_path / "edges.parquet", "-o", tmp_path / "two.dg", "--partitions", 2)
    args = ("pagerank", tmp_path / "two.dg", "--iterations", 4000, "-o")
    line = command(*args, tmp_path / "out", "--checkpoint", 1, "--workers", 2)
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: saved_in(tmp_path) > 0)
        done = saved_in(tmp_path)
        running.send_signal(number)
        _, stderr = running.communicate(timeout=60)
    by = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert stderr.endswith(f"delegraph: {by}{SAVED}\n")
    assert running.returncode == 128 + number
    assert saved_in(tmp_path) > done
    assert "resumed an earlier run" in ok(*args, tmp_path / "out").err
    ok(*args, tmp_path / "wanted")
    ranks = (ranks_of(tmp_path / name) for name in ("out", "wanted"))
    np.testing.assert_allclose(*ranks, rtol=1e-10)
    assert not list(tmp_path.glob(".*"))


def ranks_of(folder: Path) -> np.ndarray:
    return pq.read_table(folder).sort_by("vertex")["pagerank"].to_numpy()


@pytest.mark.parametrize(
    "args",
    [
        ("bfs", "--source", 0),
        slow(("bfs", "--sources", ",".join(map(str, range(200))))),
        slow(("bfs", "--sources", "0,1", "--together")),
        ("pagerank",),
        slow(("sssp", "--source", 0)),
        slow(("betweenness", "--sources", 9)),
        ("closeness",),
        slow(("cores",)),
    ],
    ids=lambda args: " ".join(map(str, args))[:24],
)
@pytest.mark.parametrize("looks", [1, slow(2), slow(3)])
def test_the_same_run_goes_on(ok, delegraph, graph, tmp_path, monkeypatch, args, looks):
    """A run that is signalled when it asks for the n-th time whether to save, as all resumable runs
    do, resumes to the same result.
    """
    name, *rest = args
    args = (name, graph, *rest, "-o")
    ok(*args, tmp_path / "wanted")
    for kernel, limit in ((sssp, "_WORK_AT_ONCE"), (cores, "_EDGES_AT_ONCE")):
        monkeypatch.setattr(kernel, limit, 1)  # else it is done in one call
    look, left = ending.asked, iter(range(looks - 1))

    def ask_nth() -> bool:
        look()
        return next(left, None) is None and ending.ask()

    monkeypatch.setattr(ending, "asked", ask_nth)
    run = delegraph(*args, tmp_path / "out", "--json")
    assert (run.code, run.json["error"]) == (130, f"interrupted{SAVED}")
    monkeypatch.undo()
    assert "resumed an earlier run" in ok(*args, tmp_path / "out").err
    assert digest(tmp_path / "out") == digest(tmp_path / "wanted")


def test_what_has_nothing_to_save_ends_at_once(graph, monkeypatch):
    """A run without anything to save ends at once at a signal: a scan, a build, a second
    request.
    """
    monkeypatch.setattr(main, "_heard", None)
    alarms: list[int] = []
    monkeypatch.setattr(signal, "setitimer", lambda which, first, then: alarms.append(first))
    with pytest.raises(KeyboardInterrupt), ending.watching():
        main._end(signal.SIGTERM, None)
    monkeypatch.setattr(main, "_heard", None)
    with ending.watching():
        ending.asked()
        main._end(signal.SIGTERM, None)
        main._end(signal.SIGTERM, None)  # to the group, too: the same one
        assert alarms == [main._AGAIN, ending.SAVE_SECONDS]
        monkeypatch.setattr(main, "_heard_at", main._heard_at - 2)
        with pytest.raises(KeyboardInterrupt):
            main._end(signal.SIGINT, None)
    assert main._ended() == ("ended by SIGTERM", 143)


@pytest.mark.slow
def test_as_process_1(graph, tmp_path):
    """A run as process 1 of a namespace of its own, as in a container, ends at SIGTERM and
    saves.
    """
    alone = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], check=False).returncode:
        pytest.skip("no namespaces here")
    args = ("pagerank", graph, "-o", tmp_path / "out", "--iterations", 10**9, "--checkpoint", 1)
    line = [*alone, *command(*args)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as running:
        wait_until(lambda: saved_in(tmp_path) > 0)
        (first,) = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        _, stderr = running.communicate(timeout=60)
    assert (running.returncode, stderr) == (143, f"delegraph: ended by SIGTERM{SAVED}\n")
