"""Pipes in the place of files: no command waits for a pipe that nobody writes to."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

import delegraph as dg

NO_FILE = "is not a regular file (it is a pipe, a socket or a device)"
COMMANDS = {
    "info PIPE": NO_FILE,
    "plan PIPE": NO_FILE,
    "build PIPE -o out": NO_FILE,
    "bfs PIPE --source 0 -o out": NO_FILE,
    "bfs e.parquet --sources PIPE -o out": NO_FILE,
    "closeness e.parquet --sources PIPE -o out": NO_FILE,
    "pagerank e.parquet --personalize PIPE -o out": NO_FILE,
    "validate e.parquet PIPE": "not a result",
    "report PIPE -o page.html": "not a result",
    "convert PIPE --from csv -o out": "no such file, or not a regular file",
    "bfs e.parquet --source 0 -o PIPE": "exists and is not a result",
    "report e.dg -o PIPE": "exists and is not a report",
    "bfs e.parquet --source 0 -o out --profile PIPE": "exists, but delegraph did not write it",
    "bfs e.parquet --source 0 -o folder": "exists and is not a result",
    "bfs e.parquet --source 0 -o recorded": "recorded.run.json exists",
    "bfs e.dg --source 0 -o out --scheduler-file PIPE": "cannot be read: it is not a regular file",
}


@pytest.fixture
def pipes(edge_list, tmp_path, monkeypatch):
    """Make three pipes: ``pipe.parquet``, one in ``folder`` and one in the place of a record."""
    monkeypatch.chdir(tmp_path)
    edges = edge_list([0, 1], [1, 2], "e.parquet")
    dg.build(edges, "e.dg")
    (tmp_path / "folder").mkdir()
    places = [Path(name) for name in ("pipe.parquet", "folder/pipe", "recorded.run.json")]
    for place in places:
        os.mkfifo(place)
    waking = threading.Timer(30, wake, [places])  # whoever waits, so that the test fails and ends
    waking.start()
    yield
    waking.cancel()


def wake(pipes: list[Path]) -> None:
    for pipe in pipes:
        with contextlib.suppress(OSError):  # nobody waits there
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_is_refused_at_once(delegraph, pipes, command):
    run = delegraph(*(word.replace("PIPE", "pipe.parquet") for word in command.split()))
    assert run.code == 2
    assert COMMANDS[command] in run.err
    assert len(run.err.splitlines()) == 1
    assert not Path("out").exists()
