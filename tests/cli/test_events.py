"""Events and heartbeats, by which programs follow a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime

import pytest

from delegraph.cli import events
from delegraph.cli.progress import shown
from delegraph.pipeline.engines.engine import Footprint
from delegraph.pipeline.engines.host.rows import StoreGraph
from support.graphs import random_edges


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_command_by_its_events(ok, edge_list, tmp_path):
    edges = edge_list(*random_edges(3, 200, 900))
    args = ("pagerank", edges, "-o", tmp_path / "ranks", "--log-format", "json")
    first, *between, ended = lines(ok(*args).err)
    assert first["event"] == "begin"
    assert first["command"] == ["delegraph", *map(str, args)]
    assert {event["event"] for event in between} == {"progress", "note"}
    steps = [event for event in between if event["event"] == "progress"]
    assert "search" in [step["phase"] for step in steps]
    assert all(step["peak_bytes"] > 0 for step in steps)
    times = [datetime.fromisoformat(event["time"]) for event in (first, *between, ended)]
    assert times == sorted(times)
    assert (ended["event"], ended["exit_code"]) == ("end", 0)
    assert "error" not in ended


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("bfs", "nothing.parquet", "--source", 1, "-o", "out"), "nothing.parquet: no such file"),
        (("bfs", "nothing.parquet", "--sauce", 1), "No such option"),
        (("build", "nothing.parquet"), "Missing option"),
    ],
)
@pytest.mark.parametrize("quiet", [False, True])
def test_a_failure_is_an_event(delegraph, tmp_path, monkeypatch, args, message, quiet):
    monkeypatch.chdir(tmp_path)
    run = delegraph(*args, "--log-format=json", *["--quiet"] * quiet)
    ended = lines(run.err)[-1]
    assert (run.code, ended["exit_code"]) == (2, 2)
    assert message in ended["error"]
    assert len(lines(run.err)) == (1 if quiet else 2)


def test_a_reader_that_has_left(edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    words = "bfs", edges, "--source", "0", "-o", tmp_path / "out", "--log-format", "json"
    gone, stdout = os.pipe()
    os.close(gone)
    command = [sys.executable, "-m", "delegraph", *words]
    run = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    os.close(stdout)
    ended = lines(run.stderr)[-1]
    assert (run.returncode, ended["exit_code"]) == (1, 1)
    assert ended["error"] == "the reader of stdout has closed it"


@pytest.mark.parametrize("way", ["memory", "disk", "scan"])
def test_levels_of_a_search(ok, edge_list, tmp_path, monkeypatch, way):
    """Levels are told also for a graph on disk, and for an edge list that is scanned."""
    monkeypatch.setattr(events, "_OFTEN_SECONDS", 0.0)
    if way == "disk":
        monkeypatch.setattr(StoreGraph, "footprint", lambda *_: Footprint(1 << 60, 0, 1))
    graph = edge_list(range(5), range(1, 6))
    if way != "scan":
        ok("build", graph, "-o", tmp_path / "graph.dg")
        graph = tmp_path / "graph.dg"
    run = ok("bfs", graph, "--source", 0, "-o", tmp_path / "out", "--log-format", "json")
    records = lines(run.err)
    levels = [(event["level"], event["frontier"]) for event in records if "frontier" in event]
    assert levels[-1] == ((5, 1) if way == "disk" else (6, 0))
    assert all(event["remaining_seconds"] is None for event in records if "frontier" in event)


def test_quiet_success_has_none(ok, edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    args = ("bfs", edges, "--source", 0, "-o", tmp_path / "out", "--log-format", "json")
    assert ok(*args, "--quiet").err == ""


def test_a_heartbeat(ok, delegraph, edge_list, tmp_path):
    edges, file = edge_list([0, 1], [1, 2]), tmp_path / "beat.json"
    args = ("bfs", edges, "--source", 0, "-o", tmp_path / "out", "--heartbeat")
    assert "reached 3" in ok(*args, file).out
    beat = json.loads(file.read_text())
    assert (beat["event"], beat["exit_code"]) == ("end", 0)
    (tmp_path / "mine.txt").write_text("precious")
    run = delegraph(*args, tmp_path / "mine.txt", "--overwrite")
    assert (run.code, (tmp_path / "mine.txt").read_text()) == (2, "precious")
    assert "no heartbeat: name another file" in run.err
    run = delegraph(*args, tmp_path / "nowhere" / "beat.json", "--overwrite")
    assert run.code == 2
    assert "cannot be written: No such file or directory" in run.err
    assert sorted(p.name for p in tmp_path.glob("*beat*")) == ["beat.json"]


def test_work_that_says_nothing_is_told_of(capsys, monkeypatch, tmp_path):
    """Silent work is told by the clock: at least a beat every ten seconds, an event every
    thirty.
    """
    monkeypatch.setattr(events, "_BEAT_SECONDS", 0.01)
    monkeypatch.setattr(events, "_SELDOM_SECONDS", 0.05)
    monkeypatch.setattr("sys.argv", ["delegraph", "bfs", "--log-format", "json"])
    events.begin()
    with shown(quiet=False) as progress:
        progress("search: iteration 3, change 1.5e-05", 3, 12)
        time.sleep(0.5)
    records = lines(capsys.readouterr().err)
    last = records[-1]
    assert [event["event"] for event in records[:3]] == ["begin", "progress", "progress"]
    assert (last["phase"], last["done"], last["total"]) == ("search", 3, 12)
    assert (last["iteration"], last["change"]) == (3, 1.5e-05)
    assert last["remaining_seconds"] is not None
