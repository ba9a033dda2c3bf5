"""Pages about stores, results and benches: their numbers, missing values, and readers of the
pages.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.partition.store.store import open_store
from delegraph.pipeline.bench.across import ScalingRow
from delegraph.pipeline.bench.protocol import BenchReport
from delegraph.pipeline.reports.numbers import duration, figure, share, size
from delegraph.pipeline.reports.page.charts import MOST_COLUMNS
from delegraph.pipeline.reports.page.page import render
from delegraph.pipeline.reports.page.write import page_of
from support.benches import bench_report, scaling_rows
from support.graphs import random_edges
from support.pages import PageText, read_page

MOST_BYTES = 10**6
ALGORITHMS = {
    "bfs": ("bfs", "--source", 1),
    "bfs-each": ("bfs", "--sources", "1,2,3"),
    "bfs-together": ("bfs", "--sources", "1,2,3", "--together"),
    "components": ("components",),
    "condensation": ("strong", "--condense"),
    "truss": ("truss",),
    "leiden": ("leiden",),
    "forest": ("forest",),
    "pagerank": ("pagerank", "--tolerance", 1e-8),
    "sssp": ("sssp", "--source", 1),
    "path": ("path", "--source", 1, "--target", 2),
    "path-nodes": ("path", "--source", 1, "--target", 2, "--nodes"),
    "betweenness": ("betweenness", "--sources", 3),
    "closeness": ("closeness", "--sources", 3),
    "eccentricity": ("eccentricity", "--sources", 3),
}
HOSTILE = "</title><script>alert('1')</script>\"&amp;\x07\u202e"


@pytest.fixture
def graph(ok, edge_list, tmp_path):
    """Build a store with weights."""
    src, dst = random_edges(1, 300, 2000)
    weights = pa.array(np.linspace(0.5, 2, 2000), pa.float32())
    edges = edge_list(src, dst, weight=weights)
    ok("build", edges, "-o", tmp_path / "graph.dg", "--weight", "weight")
    return tmp_path / "graph.dg"


@pytest.fixture
def search_result(ok, graph, tmp_path):
    """Return a search of the graph, with its record."""
    ok("bfs", graph, "--source", 1, "-o", tmp_path / "found")
    return tmp_path / "found"


def record_of(path):
    return path.with_name(f"{path.name}.run.json")


def page(path) -> PageText:
    return PageText(render(page_of(path)))


def with_record(path, record) -> PageText:
    record_of(path).write_text(json.dumps(record))
    return page(path)


@pytest.fixture
def bench_file(tmp_path):
    def write(document):
        path = tmp_path / "bench.json"
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(ok, graph, tmp_path, algorithm):
    command, *options = ALGORITHMS[algorithm]
    out = tmp_path / "out"
    record = ok(command, graph, "-o", out, *options, "--json").json
    html = page(out)
    assert "delegraph" in html.root.findtext("body/header/pre/code", "")
    assert html.tables["Seconds by phase"] == [
        [name, duration(spent), share(spent, sum(record["seconds"].values()))]
        for name, spent in record["seconds"].items()
    ]
    memory = {row[0]: row[1] for row in html.tables["Memory, projected and measured"]}
    assert memory["measured"] == size(record["plan"]["measured_peak_bytes"])
    assert memory["limit"] == size(record["plan"]["memory_limit_bytes"])
    for step in record["plan"]["steps"]:
        if step["projected_bytes"]:
            assert size(step["projected_bytes"]) in [
                amount
                for name, amount in html.tables["Memory, projected and measured"]
                if name == step["name"]
            ]
    for word in (*record["versions"].values(), record["graph"]["fingerprint"], "cpu"):
        assert word in html.text
    assert "Not known" not in html.text
    key = {"bfs": "search", "path-nodes": "path"}.get(algorithm, algorithm)
    did = record.get(key, record.get("searches"))
    group = {"leiden": " community", "components": " component", "condensation": " component"}
    called = {"largest": f"largest{group.get(algorithm, '')}"}
    if algorithm == "bfs-each":
        called["reached"] = "searches"  # whose note is of rows, one for each that was reached
    for name in (
        "components",
        "communities",
        "largest",
        "reached",
        "depth",
        "rounds",
        "buckets",
        "sources",
    ):
        if name in did:
            assert figure(did[name]) in html.facts[called.get(name, name)].split()


def test_levels_are_those_of_the_record(search_result):
    record = json.loads(record_of(search_result).read_text())
    html = page(search_result)
    assert html.tables["Supersteps"] == [
        [
            str(step["level"]),
            step["direction"]["all"],
            *(figure(step[key]) for key in ("frontier", "found", "edges_examined")),
            duration(step["seconds"]),
        ]
        for step in record["supersteps"]
    ]
    drawn = html.root.findall(".//svg[@class='chart']")
    assert [chart.findtext("title") for chart in drawn] == [
        "Vertices by distance",
        "Vertices in the frontier by level",
        "Edges examined by level",
        "Time by level",
    ]


def test_iterations_are_those_of_the_record(ok, graph, tmp_path):
    ok("pagerank", graph, "-o", tmp_path / "ranks")
    record = json.loads(record_of(tmp_path / "ranks").read_text())
    html = page(tmp_path / "ranks")
    assert html.tables["Iterations"] == [
        [
            str(step["iteration"]),
            figure(step["change"]),
            figure(step["edges_examined"]),
            duration(step["seconds"]),
        ]
        for step in record["iterations"]
    ]
    assert "converged" in html.text
    assert f"tolerance {figure(1e-6)}" in html.text
    assert len(html.tables["The greatest pagerank"]) == 10


@pytest.mark.parametrize("partitions", [1, 3, 30])
def test_store(ok, edge_list, tmp_path, partitions):
    edges = edge_list(*random_edges(1, 300, 2000))
    ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", partitions)
    store = open_store(tmp_path / "graph.dg")
    info, html = store.info, page(tmp_path / "graph.dg")
    degrees = {row[0]: row[1] for row in html.tables["Vertices by degree"]}
    counts = [f"{count:,}" for count in info.degree_histogram]
    assert list(degrees.values()) == counts[len(counts) - len(degrees) :]
    assert sum(info.degree_histogram[: len(counts) - len(degrees)]) == 0
    rows = {row[0]: row[1] for row in html.tables["Rows of the input"]}
    assert rows == {
        "edges": f"{info.edges:,}",
        "duplicates": f"{info.duplicates:,}",
        "self-loops": f"{info.self_loops:,}",
    }
    files = {row[0] for row in html.tables["Bytes by kind of file"]}
    assert files >= {"targets", "offsets", "vertices", "manifest"}
    record = json.loads(record_of(tmp_path / "graph.dg").read_text())
    assert [row[0] for row in html.tables["Seconds by step"]] == [
        step["name"] for step in record["plan"]["steps"]
    ]
    if partitions == 1:
        assert "one CSR" in html.text
        assert "threshold" not in html.text
        return
    assert {row[0]: row[1] for row in html.tables["Entries of each kind"]} == {
        kind: f"{count:,}" for kind, count in info.subgraph_edges.items()
    }
    held = [int(row[1].replace(",", "")) for row in html.tables["Entries by partition"]]
    assert len(held) == partitions
    assert sum(held) == sum(info.subgraph_edges.values())
    assert f"threshold {info.threshold}" in html.text


def test_bench(ok, graph, tmp_path, bench_file):
    report = ok("bench", graph, "--sources", 4, "--json").json
    html = page(bench_file(report))
    rows = {row[0]: row[1:] for row in html.tables["Quartiles over the searches"]}
    assert rows["rate, GTEPS"] == [figure(value) for value in report["gteps"].values()]
    assert rows["search"] == [duration(value) for value in report["search_seconds"].values()]
    assert figure(report["gteps_harmonic_mean"]) in html.text
    assert "Not known" not in html.text


def test_bench_by_ranks(bench_file):
    assert all(row.keys() == set(ScalingRow._fields) for row in scaling_rows())
    assert bench_report().keys() == get_type_hints(BenchReport).keys()
    html = page(bench_file(scaling_rows()))
    (rows,) = (rows for caption, rows in html.tables.items() if caption.startswith("By ranks"))
    assert [row[:4] for row in rows] == [
        ["1", "100%", "3", "3"],
        ["2", "75.0%", "4.5", "6"],
        ["4", "62.5%", "7.5", "12"],
    ]
    assert "The rate of 4 ranks is 2.5 times that of 1; ideal is 4 times." in html.text
    assert "a device would not do" in html.text
    assert html.tables["Bytes sent a search, by kind"][1] == ["normals", "3.00 kB", "75.0%"]
    alone = page(bench_file(scaling_rows()[2:]))
    assert not any(caption.startswith("By ranks") for caption in alone.tables)


@pytest.mark.slow
def test_bench_on_gpus(bench_file):
    """Benches on GPUs have levels in another form."""
    rows = scaling_rows()
    level = {"direction": "pull", "normals": 3, "delegates": 4, "examined": 5678, "seconds": 0.002}
    rows[-1]["exchanged"]["levels"] = [level]
    supersteps = page(bench_file(rows)).tables["Supersteps"]
    assert supersteps == [["1", "pull", "7", "5,678", "2.00 ms"]]
    rows[-1]["exchanged"]["supersteps"] = 1500.0
    assert "Supersteps" not in page(bench_file(rows)).tables


def test_bench_of_optimizations(ok, graph, bench_file):
    report = ok("bench", graph, "--sources", 2, "--ablation", "--json").json
    html = page(bench_file(report))
    rates = [row[1] for row in html.tables["Median rates"]]
    ways = [*report["added"], report["by_hand"]]
    assert rates == [figure(way["gteps"]["median"]) for way in ways]
    assert len(html.tables["Median rates, all but one"]) == len(report["without"])


def test_what_is_not_known_is_said(search_result, graph):
    record = json.loads(record_of(search_result).read_text())
    for change, reason in (
        ({"schema_version": 1}, "its schema is 1"),
        ({"graph": {"fingerprint": "other"}}, "of another run"),
    ):
        assert reason in with_record(search_result, record | change).text
    renamed = {key: value for key, value in record.items() if key != "search"}
    assert "of another run" in with_record(search_result, renamed | {"pagerank": {}}).text
    for broken in ("", "[", "[]", "[" * 100_000):
        record_of(search_result).write_text(broken)
        assert "Not known" in page(search_result).text
    record_of(search_result).unlink()
    html = page(search_result)
    assert "there is no record found.run.json" in html.text
    assert "Vertices by distance" in html.tables  # by the result itself
    record_of(graph).unlink()
    assert "there is no record graph.dg.run.json" in page(graph).text


def test_result_of_another_program(tmp_path):
    table = pa.table({"vertex": [1, 2, 3], "distance": [0, 1, None], "parent": [None, 1, None]})
    pq.write_table(table, tmp_path / "theirs.parquet")
    html = page(tmp_path / "theirs.parquet")
    assert "The graph and the options of the result: the files do not name them." in html.text
    assert html.tables["Vertices by distance"] == [["0", "1"], ["1", "1"]]


def changed(document):
    """Yield the document with one value after the other left out, or replaced by a wrong one."""
    places = []

    def walk(inner, place):
        items = inner.items() if isinstance(inner, dict) else enumerate(inner[:1])
        for key, value in items:
            places.append((*place, key))
            if isinstance(value, dict | list):
                walk(value, places[-1])

    walk(document, ())
    for *place, key in places:
        for value in ("text", -1, float("nan"), [], [None]):
            other = copy.deepcopy(document)
            inner = other
            for step in place:
                inner = inner[step]
            inner[key] = value
            yield other
        other = copy.deepcopy(document)
        inner = other
        for step in place:
            inner = inner[step]
        del inner[key]
        yield other


@pytest.mark.nightly
def test_records_may_lack_anything(ok, graph, search_result, tmp_path):
    ok("pagerank", graph, "-o", tmp_path / "ranks", "--iterations", 3)
    for path in (search_result, tmp_path / "ranks", graph):
        record = json.loads(record_of(path).read_text())
        record["supersteps_between"] = {
            "first_level": 2,
            "last_level": 9,
            "directions": {"all": {"push": 8}},
            "found": 9,
            "seconds": 0.5,
            "bytes_sent": {},
        }
        for number, other in enumerate(changed(record)):
            record_of(path).write_text(json.dumps(other))
            data = render(page_of(path))
            if number % 10 == 0:
                PageText(data)


def test_benches_may_lack_anything(bench_file):
    rows = scaling_rows()[:2]
    for document in (bench_report(), rows):
        for other in changed(document):
            with contextlib.suppress(package.InputError):  # no bench any more
                render(page_of(bench_file(other)))


def test_nothing_of_a_record_is_markup(search_result, tmp_path):
    record = json.loads(record_of(search_result).read_text())
    record["command"] = ["/bin/delegraph", "bfs", HOSTILE]
    record["notes"] = [HOSTILE]
    record["device"] = HOSTILE
    record["versions"] = {HOSTILE: HOSTILE}
    record["hardware"]["machine"] = HOSTILE
    record["search"]["method"] = HOSTILE
    record["supersteps"][0]["direction"] = {"all": HOSTILE}
    html = with_record(search_result, record)
    assert html.text.count("<script>") >= 6
    assert "\\x07\\u202e" in html.text

    named = tmp_path / "<b onload='x'>&\".json"
    named.write_text(json.dumps(bench_report(sources=[HOSTILE], graph={"path": HOSTILE})))
    assert named.name in page(named).text


def test_ids_may_be_anything(ok, edge_list, tmp_path):
    ids = ["<script>", '"', "", "a\nb", "z" * 5000]
    edges = edge_list(ids, ids[1:] + ids[:1])
    ok("pagerank", edges, "-o", tmp_path / "out")
    html = page(tmp_path / "out")
    names = {row[0] for row in html.tables["The greatest pagerank"]}
    assert names == {"<script>", '"', "", "a\\x0ab", f"{'z' * 19}\u2026{'z' * 20}"}


@pytest.mark.nightly
def test_very_many_levels(search_result, tmp_path):
    """A page of very many levels has few rows, from an older record that lists all levels or a
    result without a record.
    """
    count = 300_000
    record = json.loads(record_of(search_result).read_text())
    step = record["supersteps"][0]
    listed = [step | {"level": level, "frontier": level} for level in range(1, count + 1)]
    record_of(search_result).write_text(json.dumps(record | {"supersteps": listed}))
    data = render(page_of(search_result))
    assert len(data) < MOST_BYTES
    html = PageText(data)
    rows = html.tables["Supersteps; sums for several levels"]
    assert len(rows) <= MOST_COLUMNS
    assert sum(int(row[2].replace(",", "")) for row in rows) == count * (count + 1) // 2
    assert "Each column shows the mean of 1,500 levels." in html.text

    hops = np.arange(count, dtype=np.int32)
    table = pa.table({"vertex": hops, "distance": hops, "parent": hops})
    pq.write_table(table, tmp_path / "path.parquet")
    data = render(page_of(tmp_path / "path.parquet"))
    assert len(data) < MOST_BYTES
    rows = PageText(data).tables["Vertices by distance"]
    assert 100 < len(rows) <= MOST_COLUMNS
    assert sum(int(row[1].replace(",", "")) for row in rows) == count


def test_levels_that_a_record_leaves_out(ok, edge_list, tmp_path):
    ok("bfs", edge_list(np.arange(1200), np.arange(1, 1201)), "--source", 0, "-o", tmp_path / "out")
    html = page(tmp_path / "out")
    assert "Only the sums of levels 101 to 1,101 are recorded" in html.text
    rows = html.tables["Supersteps; sums for several levels"]
    assert len(rows) == 201
    assert rows[100][0] == "101 to 1,101"
    assert rows[100][3] == "1,001"


def test_the_same_page_each_time(graph, search_result):
    for path in (graph, search_result):
        assert render(page_of(path)) == render(page_of(path))


def test_from_python(search_result, tmp_path):
    out = tmp_path / "page.html"
    package.report(search_result, out)
    with pytest.raises(package.InputError, match="overwrite=True"):
        package.report(search_result, out)
    package.report(str(search_result), str(out), overwrite=True)
    assert read_page(out).text


def test_a_page_appears_whole_or_not_at_all(search_result, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    package.report(search_result, out)
    before, names = out.read_bytes(), sorted(os.listdir(tmp_path))

    def full(*args):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(package.DelegraphError, match="no space left"):
        package.report(search_result, out, overwrite=True)
    assert out.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == names
