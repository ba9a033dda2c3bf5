"""``bench --algorithm``: runs over a store, the last of which is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from delegraph.pipeline.bench.algorithms import BENCHED, AlgorithmReport
from delegraph.pipeline.questions import FORMS, QUESTIONS
from support.graphs import random_edges
from support.marks import slow


@pytest.fixture
def store(ok, edge_list, tmp_path):
    src, dst = random_edges(1, 300, 4000)
    edges = edge_list(src, dst, w=np.random.default_rng(1).integers(1, 9, len(src)))
    ok("build", edges, "-o", tmp_path / "graph.dg", "--weight", "w")
    return tmp_path / "graph.dg"


@pytest.mark.parametrize("algorithm", BENCHED)
def test_a_report(ok, store, algorithm):
    options = ("--algorithm", algorithm, "--sources", 3, "--threads", 2, "--device", "cpu")
    report = ok("bench", store, *options, "--json").json
    graph, seconds = report["graph"], report["seconds"]
    assert (report["algorithm"], report["runs"], report["device"]) == (algorithm, 3, "cpu")
    assert 0 < seconds["min"] <= seconds["median"] <= seconds["max"]
    size = graph["vertices"] + graph["edges"]
    assert size / seconds["max"] <= report["evps"] <= size / seconds["min"]
    assert ("iteration_seconds" in report) == ("iterations" in FORMS[algorithm].facts)
    if QUESTIONS[algorithm].converges:
        assert report["iteration_seconds"]["max"] < seconds["max"]


@pytest.mark.parametrize("what", [[], slow(["--ablation"]), ["--algorithm", "pagerank"]])
def test_events_of_each_bench(ok, store, tmp_path, what):
    """Steps of a bench are told as events, and in a heartbeat file."""
    file = tmp_path / "heartbeat.json"
    args = ("--sources", 2, "--threads", 1, *(() if "--ablation" in what else ("--device", "cpu")))
    run = ok("bench", store, *what, *args, "--log-format", "json", "--heartbeat", file)
    events = [json.loads(line) for line in run.err.splitlines()]
    assert "progress" in {event["event"] for event in events}
    assert json.loads(file.read_text())["event"] == "end"


@pytest.mark.parametrize("algorithm", ["components", "sssp"])
def test_a_generated_graph(ok, monkeypatch, tmp_path, algorithm):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options = ("--algorithm", algorithm, "--sources", 2, "--threads", 2, "--device", "cpu")
    report = ok("bench", "kronecker:8", *options, "--json").json
    ok("generate", "kronecker", "--scale", 8, "-o", tmp_path / "edges")
    facts = ok("info", tmp_path / "edges", "--json").json
    graph = report["graph"]
    assert (graph["kind"], graph["scale"], graph["rows"]) == ("kronecker", 8, facts["rows"])
    assert report["runs"] == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"edges", "edges.run.json"}


def test_a_table(ok, store):
    options = ("--algorithm", "pagerank", "--sources", 2, "--threads", 2, "--device", "cpu")
    first, head, *rows = ok("bench", store, *options).out.splitlines()
    assert first.startswith("2 runs of pagerank, the last one valid; ")
    assert first.endswith("vertices and edges a second (harmonic mean), on 2 threads of the CPU")
    assert head.split() == ["min", "q1", "median", "q3", "max"]
    assert [row.rsplit(maxsplit=5)[0] for row in rows] == ["a run, ms", "iteration, ms"]


def test_a_wrong_result_fails(delegraph, store, monkeypatch):
    right = "delegraph.pipeline.algorithms.closeness._closeness"
    monkeypatch.setattr(right, lambda sums: (sums.total + 1.0, {}))
    run = delegraph("bench", store, "--algorithm", "closeness", "--sources", 1, "--device", "cpu")
    assert run.code == 1
    assert "closeness breaks a rule" in run.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            ("--algorithm", "bfs"),
            "--algorithm bfs is unknown: choose one of components, pagerank, sssp",
        ),
        (("--algorithm", "pagerank", "--ablation"), "leave out --ablation"),
        (("--algorithm", "pagerank", "--scaling", "strong"), "give --workers too"),
        (("--algorithm", "pagerank", "--workers", 2), "build it again with --partitions 2"),
        (("--algorithm", "pagerank", "--workers", 2, "--layout", "1d"), "leave out --layout"),
        (
            ("--algorithm", "pagerank", "--workers", 1, "--scaling", "weak"),
            "--scaling weak needs a generated graph",
        ),
        (("--algorithm", "pagerank", "--strategy", "rows"), "leave out --strategy"),
    ],
)
def test_refused(delegraph, store, more, says):
    run = delegraph("bench", store, *more, "--device", "cpu")
    assert (run.code, run.out) == (2, "")
    assert says in run.err


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["a store", "kronecker:9"])
@pytest.mark.parametrize("algorithm", ["pagerank", "sssp", "closeness"])
def test_by_workers(ok, edge_list, tmp_path, algorithm, graph):
    """A bench by one worker and by two has a page about both."""
    scaling = "weak" if graph == "kronecker:9" else "strong"
    if scaling == "strong":
        graph = tmp_path / "graph.dg"
        src, dst = random_edges(1, 300, 4000)
        edges = edge_list(src, dst, w=np.random.default_rng(1).integers(1, 9, len(src)))
        ok("build", edges, "-o", graph, "--weight", "w", "--partitions", 2)
    options = ("--algorithm", algorithm, "--sources", 2, "--device", "cpu")
    more = ("--workers", 2, "--scaling", scaling)
    printed = ok("bench", graph, *options, *more, "--json")
    one, two = printed.json
    assert (one["ranks"], two["ranks"], one["efficiency"]) == (1, 2, 1.0)
    for row in (one, two):
        report = row["report"]
        assert (report["algorithm"], report["runs"], report["device"]) == (algorithm, 2, "cpu")
        assert 0 < report["seconds"]["min"] <= report["seconds"]["max"]
        assert ("iteration_seconds" in report) == ("iterations" in FORMS[algorithm].facts)
    sizes = [row["report"]["graph"]["vertices"] for row in (one, two)]
    assert (sizes[0] < sizes[1]) == (scaling == "weak")
    (tmp_path / "bench.json").write_text(printed.out)
    ok("report", tmp_path / "bench.json", "-o", tmp_path / "bench.html")
    assert "EVPS by ranks" in (tmp_path / "bench.html").read_text()
    first, head, *rows = ok("bench", graph, *options, *more).out.splitlines()
    assert first.startswith(f"2 runs of {algorithm} each, last results valid, in memory, on ")
    assert [row.split()[1] for row in rows] == ["1", "2"]
    assert ("iteration" in head) == QUESTIONS[algorithm].converges


def test_weights_have_to_be_there(delegraph, ok, edge_list, tmp_path):
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    for more in ((), ("--workers", 1)):
        options = ("--algorithm", "sssp", "--device", "cpu", *more)
        run = delegraph("bench", tmp_path / "graph.dg", *options)
        assert run.code == 2
        assert "--weight" in run.err


def test_the_report_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "reference" / "run-record.md").read_text()
    for name in get_type_hints(AlgorithmReport):
        assert f"`{name}`" in text, name
