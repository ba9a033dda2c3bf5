"""Ctrl-C, which reaches a command and its workers alike, prints one line and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import numpy as np
import psutil
import pytest

from support.processes import command, wait_until, workers_of


@pytest.mark.slow
@pytest.mark.parametrize("later", [0.0, 0.3, 0.8, 2.0])
@pytest.mark.parametrize("name", ["bfs", "build"])
def test_ctrl_c(edge_list, ok, tmp_path, name, later):
    """Ctrl-C ends a command as soon as there are workers, and also some time after their start."""
    ends = np.arange(8000)
    edges = edge_list(ends[:-1], ends[1:])
    what = ["build", edges, "-o", tmp_path / "out", "--scratch", tmp_path]
    if name == "bfs":
        ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 2)
        what = ["bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "out"]
    line = command(*what, "--workers", 2, "--quiet")
    running = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, start_new_session=True)
    workers = [psutil.Process(pid) for pid in workers_of(running)]
    time.sleep(later)
    os.killpg(running.pid, signal.SIGINT)
    _, stderr = running.communicate(timeout=60)
    if running.returncode == 0:  # it was faster
        assert (name, stderr) == ("build", "")
    else:
        assert (running.returncode, stderr.strip()) == (130, "delegraph: interrupted")
    wait_until(lambda: not any(worker.is_running() for worker in workers))
