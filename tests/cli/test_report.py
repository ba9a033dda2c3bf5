"""``delegraph report``: inputs that it reads, inputs that it refuses, files that it may replace."""

from __future__ import annotations

import json
import os
import threading

import pytest

import delegraph as package
from delegraph.partition.errors import BusyError, InputError
from delegraph.pipeline.reports.page import write
from support.batches import every_state, write_batch
from support.graphs import random_edges
from support.pages import read_page
from support.processes import wait_until


@pytest.fixture
def store(ok, edge_list, tmp_path):
    ok("build", edge_list(*random_edges(1, 300, 2000)), "-o", tmp_path / "graph.dg")
    return tmp_path / "graph.dg"


def test_a_store_a_result_a_batch_and_a_bench(ok, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("bfs", "graph.dg", "--source", 1, "-o", "distances")
    printed = ok("bench", "graph.dg", "--sources", 2, "--json").out
    (tmp_path / "bench.json").write_text(printed)
    printed = ok("bench", "graph.dg", "--algorithm", "pagerank", "--sources", 2, "--json").out
    (tmp_path / "runs.json").write_text(printed)
    write_batch(tmp_path / "jobs.toml", *every_state())
    for path, kind in (
        ("graph.dg", "Store"),
        ("distances/", "Breadth-first search"),
        ("bench.json", "Bench"),
        ("runs.json", "Bench of pagerank"),
        ("jobs.toml", "Batch"),
        ("jobs.toml.batch/", "Batch"),
    ):
        run = ok("report", path, "-o", "page.html", "--overwrite")
        assert run.out == ""
        assert run.err == "page.html: written\n"
        html = read_page(tmp_path / "page.html")
        assert html.text.startswith(kind)
        assert html.root.findtext("head/title", "").endswith(kind)
    assert ok("report", "graph.dg", "-o", "quiet.html", "--quiet").err == ""


def test_what_it_is_not_about(delegraph, store, tmp_path, edge_list):
    (tmp_path / "empty").mkdir()
    (tmp_path / "some.json").write_text(json.dumps({"error": "no", "exit_code": 2}))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "text").write_text("{ no JSON")
    for path, message in (
        (tmp_path / "none", "not a result"),
        (tmp_path / "empty", "not a result"),
        (tmp_path / "edges.parquet", "column distance, parent, vertex is missing"),
        (tmp_path / "some.json", "bench did not print it"),
        (tmp_path / "list.json", "bench did not print it"),
        (tmp_path / "text", "not a Parquet file"),
        (tmp_path / "graph.dg.run.json", "the run record of an output"),
        (tmp_path / ("x" * 255), "not a result"),
    ):
        run = delegraph("report", path, "-o", tmp_path / "page.html")
        assert run.code == 2
        assert run.out == ""
        (line,) = run.err.splitlines()
        assert message in line
        assert "report takes a store, a result, a batch or bench's JSON" in line
        assert not (tmp_path / "page.html").exists()


def test_what_it_may_replace(delegraph, ok, store, tmp_path):
    out = tmp_path / "page.html"
    ok("report", store, "-o", out)
    before = out.read_bytes()
    run = delegraph("report", store, "-o", out)
    assert run.code == 2
    assert "--overwrite" in run.err
    assert out.read_bytes() == before
    out.write_text("<html>mine</html>")
    run = delegraph("report", store, "-o", out, "--overwrite")
    assert run.code == 2
    assert "is not a report that delegraph wrote" in run.err
    assert out.read_text() == "<html>mine</html>"


def test_where_it_may_not_write(delegraph, store, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for out, message in (
        (tmp_path / "pipe", "is not a report that delegraph wrote"),
        (store / "page.html", "lies in the input's folder"),
        (tmp_path, "is not a report that delegraph wrote"),
        ("/proc/page.html", "/proc/page.html cannot be written: "),
    ):
        run = delegraph("report", store, "-o", out)
        assert run.code == 2
        assert message in run.err
        assert len(run.err.splitlines()) == 1


@pytest.mark.parametrize("overwrite", [False, True])
def test_four_at_once_to_one_page(ok, store, tmp_path, monkeypatch, overwrite):
    """One of four reports at once writes the page, and the three others raise BusyError."""
    page, starts, ended = tmp_path / "page.html", [], []
    if overwrite:
        ok("report", store, "-o", page)
    render = write.render

    def slowly(document):
        starts.append(document)
        wait_until(lambda: len(starts) + len(ended) == 4)
        return render(document)

    def run():
        try:
            package.report(store, page, overwrite=overwrite)
            ended.append(None)
        except Exception as error:
            ended.append(error)

    monkeypatch.setattr(write, "render", slowly)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended.count(None) == 1, ended
    assert sum(isinstance(error, BusyError) for error in ended) == 3, ended
    assert read_page(page).text.startswith("Store")
    assert not list(tmp_path.glob(".*"))


def test_a_page_that_has_appeared_meanwhile(store, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    locked = write.writing_alone

    def late(place):
        with monkeypatch.context() as patched:
            patched.setattr(write, "writing_alone", locked)
            package.report(store, page)
        return locked(place)

    monkeypatch.setattr(write, "writing_alone", late)
    with pytest.raises(InputError, match="exists"):
        package.report(store, page)
    assert not list(tmp_path.glob(".*"))
