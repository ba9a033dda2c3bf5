"""``bench --ablation`` prints data on stdout and refuses options that do not go with it."""

from __future__ import annotations

import pytest

from delegraph.pipeline.bench.ablation import OPTIMIZATIONS
from support.graphs import random_edges


@pytest.fixture
def store(ok, edge_list, tmp_path):
    ok("build", edge_list(*random_edges(1, 300, 4000)), "-o", tmp_path / "graph.dg")
    return tmp_path / "graph.dg"


def test_a_table(ok, store):
    lines = ok("bench", store, "--ablation", "--sources", 3, "--threads", 2).out.splitlines()
    assert lines[0] == "3 searches in each way, all valid, on 2 threads of the CPU; medians"
    assert lines[1].split() == ["optimization", "GTEPS", "speed-up", "median", "ms", "edges", "M"]
    assert lines[2].startswith("baseline")
    assert lines[2].split()[2] == "-"
    for name in OPTIMIZATIONS:
        assert sum(line.startswith(name.replace("_", " ")) for line in lines) == 2
    assert sum(line.startswith("kernels by hand") for line in lines) == 1


def test_json(ok, store):
    options = ("--sources", 3, "--seed", 3, "--json")
    report = ok("bench", store, "--ablation", "--device", "cpu", *options).json
    assert report["sources"] == ok("bench", store, "--device", "cpu", *options).json["sources"]
    assert list(report["without"]) == list(OPTIMIZATIONS)
    assert report["by_hand"]["speed_up"] > 0


@pytest.mark.parametrize(
    "option",
    [
        ("--device", "cuda"),
        ("--device-memory-limit", "1GB"),
        ("--strategy", "slices"),
        ("--memory-limit", "1GB"),
        ("--workers", 2),
        ("--scheduler", "tcp://127.0.0.1:1"),
        ("--scheduler-file", "none.json"),
        ("--timeout", 5),
        ("--scaling", "strong"),
        ("--layout", "1d"),
        ("--grid", "2x2"),
        ("--threshold", 3),
    ],
    ids=str,
)
def test_refused(delegraph, store, option):
    run = delegraph("bench", store, "--ablation", *option)
    assert run.code == 2
    assert run.out == ""
    line = f"--ablation searches in memory on the CPU: leave out {option[0]}"
    assert run.err.splitlines() == [f"delegraph: {line}"]


def test_of_a_graph_to_generate(delegraph):
    run = delegraph("bench", "kronecker:10", "--ablation")
    assert run.code == 2
    assert run.out == ""
    assert len(run.err.splitlines()) == 1
    assert "make one of kronecker:10" in run.err
