"""Commands that describe and measure, records, help, and the README's examples."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints, is_typeddict

import click
import numpy as np
import pytest

from delegraph.cli.main import _COMMANDS, cli
from delegraph.pipeline.questions import FORMS
from delegraph.pipeline.run.progress_line import ProgressLine
from delegraph.pipeline.run.records import BuildRecord, ConvertRecord, GenerateRecord
from support.graphs import random_edges
from support.schema import conforms, run_record

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("through", ["edges", "store", "partitions"])
def test_records_follow_their_schema(ok, edge_list, tmp_path, through):
    edges = edge_list(*random_edges(1, 300, 2000))
    graph = edges
    if through != "edges":
        choices = ("--partitions", 3) if through == "partitions" else ()
        graph = tmp_path / "graph.dg"
        ok("build", edges, "-o", graph, *choices)
        built = json.loads((tmp_path / "graph.dg.run.json").read_text())
        assert conforms(built, BuildRecord)
        steps = [step["name"] for step in built["plan"]["steps"]]
        assert steps[0] == "compile"
        assert steps[1:] == [
            *("read", "degrees", "order"),
            *(("threshold",) if choices else ()),
            *("scatter", "build", "vertices"),
        ]
    printed = ok("bfs", graph, "--source", 1, "-o", tmp_path / "out", "--json").json
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert {**record, "already": False} == printed
    assert conforms(record, run_record("bfs"))
    supersteps = record["supersteps"]
    assert [step["level"] for step in supersteps] == list(range(1, len(supersteps) + 1))
    assert 1 + sum(step["found"] for step in supersteps) == record["search"]["reached"]
    assert all(
        step["frontier"] == before["found"] for before, step in itertools.pairwise(supersteps)
    )
    assert record["layout"] == {"edges": "edges", "store": "csr", "partitions": "delegate"}[through]


def test_generate_leaves_a_record(ok, tmp_path):
    ok(*f"generate uniform --scale 8 --edge-factor 2 -o {tmp_path}/e".split())
    record = json.loads((tmp_path / "e.run.json").read_text())
    assert conforms(record, GenerateRecord)
    assert record["rows"] == 512


def test_record_schema_is_documented():
    text = (ROOT / "docs" / "reference" / "run-record.md").read_text()

    def names(kind):
        if is_typeddict(kind):
            for name, hint in get_type_hints(kind).items():
                yield name
                yield from names(hint)
        for arg in get_args(kind):
            yield from names(arg)

    answers = map(run_record, FORMS)
    for record in (*answers, BuildRecord, GenerateRecord, ConvertRecord):
        for name in names(record):
            assert f"`{name}`" in text, f"docs/reference/run-record.md does not explain {name}"


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_what_ranks_would_hold_and_send(ok, delegraph, edge_list, tmp_path, layout):
    """A search by workers sends no more bytes in a superstep than ``info --ranks`` projects."""
    store = tmp_path / "graph.dg"
    src, dst = random_edges(1, 3000, 20_000)
    ok("build", edge_list(src, dst), "-o", store, "--partitions", 4, "--layout", layout)
    document = ok("info", store, "--ranks", 3, "--json").json
    ranks, sent_bytes = document["projection"]["ranks"], document["projection"]["bytes_sent"]
    assert [rank["partitions"] for rank in ranks] == [[0, 3], [1], [2]]
    assert sum(rank["vertices"] for rank in ranks) == document["vertices"]
    for name, count in document["subgraph_edges"].items():
        assert sum(rank["edges"].get(name, 0) for rank in ranks) == count
    assert set(sent_bytes) == {"delegate", "2d", "1d"} - (
        {"delegate"} if layout != "delegate" else set()
    )
    assert layout in ok("info", store, "--ranks", 3).out

    run = ok("bfs", store, "--source", src[0], "-o", tmp_path / "out", "--workers", 3, "--json")
    most = max(sent_bytes[layout]["push_superstep"], sent_bytes[layout]["pull_superstep"])
    for step in run.json["supersteps"]:
        sizes = {kind: count for kind, count in step["bytes_sent"].items() if kind != "control"}
        assert sum(sizes.values()) <= most + 8 * 4 * 4 * len(sizes)  # bitmaps are of whole words

    assert delegraph("info", store, "--ranks", 5).code == 2
    assert delegraph("info", edge_list(src, dst), "--ranks", 2).code == 2


def test_info_of_everything(ok, edge_list, tmp_path):
    src, dst = random_edges(1, 300, 4000)
    edges = edge_list(src, dst, km=src)
    document = ok("info", edges, "--json").json
    assert document["rows"] == 4000
    assert document["other_columns"] == ["km"]
    assert document["id_bounds"] == [min(src.min(), dst.min()), max(src.max(), dst.max())]
    assert "1 by default" in ok("info", edges).out

    ok("build", edges, "-o", tmp_path / "one.dg")
    assert "one CSR" in ok("info", tmp_path / "one.dg").out
    ok("build", edges, "-o", tmp_path / "four.dg", "--partitions", 4, "--threshold", 60)
    document = ok("info", tmp_path / "four.dg", "--json").json
    assert document["threshold"] == 60
    assert document["threshold_chosen_by"] == "user"
    assert 0 < document["delegates"] < document["vertices"]
    assert sum(document["subgraph_shares"].values()) == pytest.approx(1)
    assert sum(document["subgraph_edges"].values()) == 2 * document["edges"]
    assert document["bytes"] == sum(
        path.stat().st_size for path in (tmp_path / "four.dg").rglob("*") if path.is_file()
    )
    output = ok("info", tmp_path / "four.dg").out
    for word in ("delegates", "threshold", "nn", "nd", "dn", "dd", "degrees", "16-byte"):
        assert word in output

    ok("build", edges, "-o", tmp_path / "grid.dg", "--layout", "2d", "--partitions", 6)
    document = ok("info", tmp_path / "grid.dg", "--json").json
    assert (document["layout"], document["grid"], document["delegates"]) == ("2d", [2, 3], 0)
    assert document["subgraph_edges"]["nn"] == 2 * document["edges"]
    output = ok("info", tmp_path / "grid.dg").out
    assert "2d, a grid of 2x3 partitions" in output
    assert "threshold" not in output

    ok("bfs", edges, "--source", src[0], "-o", tmp_path / "out")
    document = ok("info", tmp_path / "out", "--json").json
    assert document["source"] == src[0]
    assert sum(document["vertices_by_distance"]) == document["reached"]
    assert f"{document['reached']:,}" in ok("info", tmp_path / "out").out

    ok("pagerank", edges, "-o", tmp_path / "ranks", "--damping", 0.7)
    output = ok("info", tmp_path / "ranks").out
    assert re.search(r"^damping +0.7$", output, re.MULTILINE)
    assert "pagerank, the greatest" in output


@pytest.mark.parametrize("flags", [(), ("--directed",), ("--partitions", 2)], ids=str)
def test_bench(ok, edge_list, tmp_path, flags):
    ok("build", edge_list(*random_edges(1, 300, 4000)), "-o", tmp_path / "graph.dg", *flags)
    report = ok("bench", tmp_path / "graph.dg", "--sources", 5, "--seed", 3, "--json").json
    repeated = ok("bench", tmp_path / "graph.dg", "--sources", 5, "--seed", 3, "--json").json
    assert report["sources"] == repeated["sources"]
    assert len(set(report["sources"])) == 5
    for figure in ("search_seconds", "gteps", "depth"):
        quartiles = list(report[figure].values())
        assert quartiles == sorted(quartiles)
    assert report["gteps"]["min"] <= report["gteps_harmonic_mean"] <= report["gteps"]["max"]
    assert report["preparation_seconds"] > 0
    assert "GTEPS" in ok("bench", tmp_path / "graph.dg", "--sources", 5).out


def test_bench_draws_by_id_whatever_the_order(ok, edge_list, tmp_path):
    drawn = []
    edges = edge_list(*random_edges(1, 300, 4000))
    for choices in (("--order", "degree"), ("--order", "random"), ("--partitions", 2)):
        ok("build", edges, "-o", tmp_path / "graph.dg", "--overwrite", *choices)
        drawn.append(ok("bench", tmp_path / "graph.dg", "--sources", 5, "--json").json["sources"])
    assert drawn[0] == drawn[1] == drawn[2]


def test_kernels_find_a_place_to_be_kept(edge_list, tmp_path):
    """Kernels are cached even if installed read-only and without a home, as in a container."""
    code = (
        "import os, delegraph.cli.main as m\n"
        "os.access = lambda *a: False\n"
        "m._find_cache(); print(os.environ['NUMBA_CACHE_DIR'])"
    )
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "delegraph-" in process.stdout


def test_bench_counts_rows_of_the_component(ok, edge_list, tmp_path):
    """Graph500 counts input rows, duplicates included, inside the component of the source."""
    from delegraph.kernels.base.team import Team
    from delegraph.partition.store.store import open_store
    from delegraph.pipeline.bench.protocol import rows_from_vertex

    edges = edge_list([0, 0, 1, 1, 5], [1, 1, 2, 1, 6])
    for flags, expected in (((), [2, 3, 1, 1, 1]), (("--directed",), [2, 1, 0, 1, 0])):
        ok("build", edges, "-o", tmp_path / "g.dg", "--order", "none", "--overwrite", *flags)
        rows = rows_from_vertex(open_store(tmp_path / "g.dg"), Team(1))
        assert rows.tolist() == expected


def test_a_wrong_search_fails_the_bench(delegraph, ok, edge_list, tmp_path, monkeypatch):
    from delegraph.pipeline.engines.host.search import HostSearchEngine

    search = HostSearchEngine.search

    def search_wrongly(*args):
        result = search(*args)
        result.distance[np.argmax(result.distance)] += 1
        return result

    ok("build", edge_list(*random_edges(1, 300, 4000)), "-o", tmp_path / "graph.dg")
    monkeypatch.setattr(HostSearchEngine, "search", search_wrongly)
    run = delegraph("bench", tmp_path / "graph.dg", "--sources", 2)
    assert run.code == 1
    assert "breaks rules" in run.err


@pytest.mark.parametrize("command", sorted(_COMMANDS))
def test_help_of_every_command(delegraph, command):
    run = delegraph(command, "--help")
    assert run.code == 0
    assert f"delegraph {command}" in run.out
    loaded = cli.get_command(click.Context(cli), command)
    assert loaded is not None
    for parameter in loaded.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_no_traceback_without_debug(delegraph, edge_list, tmp_path, monkeypatch):
    from delegraph.pipeline.algorithms import run

    def fail(*args, **kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr(run, "run_to_result", fail)
    command = ("bfs", edge_list([0], [1]), "--source", 0, "-o", tmp_path / "out")
    outcome = delegraph(*command)
    assert outcome.code == 1
    assert outcome.err == "delegraph: RuntimeError: a bug (--debug shows the traceback)\n"
    assert "Traceback" in delegraph(*command, "--debug").err


def test_ended_politely_leaves_nothing(edge_list, tmp_path):
    """SIGTERM in the middle of a build leaves nothing."""
    edges = edge_list(np.arange(1000), np.arange(1000))
    code = (
        "import os, signal, sys\n"
        "from delegraph.pipeline.build import count\n"
        "def end(*a): os.kill(os.getpid(), signal.SIGTERM); return 1, 0, [], {}\n"
        "count._order = end\n"
        "from delegraph.cli.main import run\n"
        "run()"
    )
    command = [sys.executable, "-c", code, "build", edges, "-o", tmp_path / "graph.dg"]
    process = subprocess.run(command, capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (143, "delegraph: ended by SIGTERM\n")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def show_progress(monkeypatch, terminal: bool, quiet: bool) -> None:
    """Show the progress of a step of ten seconds, then of a short step."""
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with ProgressLine(quiet) as progress:
        for rows in (0, 10_000_000, 30_000_000):
            progress("scatter", rows, 40_000_000)
        progress("build", 1, 1)


def test_progress_of_who_knows_how_much(capsys, monkeypatch):
    """A search's progress line shows no total: a search does not know how many levels there are."""
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ProgressLine(quiet=False) as progress:
        progress("search: level 3, frontier 20", 3, 0)
        progress("search: level 40, frontier 7", 40, 0)
    assert capsys.readouterr().err.split("\r")[2].endswith("search  8.0/s, level 40, frontier 7")


def test_progress_fits_the_terminal(capsys, monkeypatch):
    """A progress line is shorter than the terminal is wide: redrawing would leave parts of a longer
    line.
    """
    monkeypatch.setenv("COLUMNS", "40")
    show_progress(monkeypatch, terminal=True, quiet=False)
    lines = [line.removeprefix("\x1b[K") for line in capsys.readouterr().err.split("\r")]
    assert max(map(len, lines)) == 39


def test_progress(capsys, monkeypatch):
    show_progress(monkeypatch, terminal=True, quiet=False)
    shown = capsys.readouterr().err.split("\r")
    assert any("scatter [###############-----]  75%  3.0 M/s, 3 s left" in line for line in shown)
    assert "\n" not in "".join(shown)
    show_progress(monkeypatch, terminal=False, quiet=False)
    assert capsys.readouterr().err.splitlines() == ["scatter: 15.0 s, 2.0 M/s", "build: 5.0 s"]
    for terminal in (True, False):
        show_progress(monkeypatch, terminal, quiet=True)
        assert capsys.readouterr().err == ""
