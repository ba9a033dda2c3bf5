"""Whole commands over data in an object store give the results of files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.partition.disk import memory, remote
from delegraph.partition.errors import InputError
from support.graphs import random_edges
from support.marks import nightly, slow
from support.object_store import cut_off, refused, silent, wait_for_request
from support.outputs import digest
from support.processes import cluster, command, peak_of

MB = 10**6


def of_file(path: Path, ids: str = "dense", edges: int = 3000) -> Path:
    """Write a folder of two files, the second in several row groups."""
    path.mkdir()
    src, dst = random_edges(7, 500, edges)
    ends = [src, dst]
    if ids == "strings":
        ends = [np.char.add("vertex ", end.astype(str)) for end in ends]
    table = pa.table({"src": ends[0], "dst": ends[1], "w": src.astype(np.float32)})
    pq.write_table(table[:1000], path / "a.parquet")
    pq.write_table(table[1000:], path / "b.parquet", row_group_size=max(700, edges // 4))
    return path


@pytest.fixture
def edges(tmp_path) -> Path:
    return of_file(tmp_path / "edges")


def bytes_of(path: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(path.iterdir())]


def parts_of(bucket, key: str) -> list[bytes]:
    return [bucket.get(name) for name in bucket.names(key) if name.endswith(".parquet")]


@pytest.mark.parametrize("ids", [slow("dense"), "strings"])
def test_a_build_is_the_same(bucket, tmp_path, ok, ids):
    local = of_file(tmp_path / "edges", ids)
    remote_edges = bucket.copy(local, "edges")
    first_run = ok("build", remote_edges, "-o", tmp_path / "there.dg", "--weight", "w").err
    ok("build", local, "-o", tmp_path / "here.dg", "--weight", "w")
    assert digest(tmp_path / "there.dg") == digest(tmp_path / "here.dg")
    rerun = ok("build", remote_edges, "-o", tmp_path / "there.dg", "--weight", "w").err
    assert ("written" in first_run, "already built" in rerun) == (True, True)
    record = json.loads((tmp_path / "there.dg.run.json").read_text())
    assert list(record["inputs"]) == [f"{remote_edges}/{name}.parquet" for name in "ab"]


def test_a_search_from_there_to_there(bucket, edges, tmp_path, ok, delegraph):
    graph, out = bucket.copy(edges, "edges"), f"{bucket.url}/results/one"
    one = "--threads", 1  # of several right parents, threads write any
    ok("bfs", graph, "--source", "1", "-o", out, *one)
    ok("bfs", edges, "--source", "1", "-o", tmp_path / "here", *one)
    assert parts_of(bucket, "results/one") == bytes_of(tmp_path / "here")
    record = json.loads(bucket.get("results/one.run.json"))
    assert record["search"] == {**record["search"], "source": 1}
    assert "valid" in ok("validate", edges, out).out
    assert "valid" in ok("validate", graph, tmp_path / "here").out
    assert ok("info", out, "--json").json["reached"] == record["search"]["reached"]

    assert ok("bfs", graph, "--source", "1", "-o", out, "--json").json["already"]
    other = delegraph("bfs", graph, "--source", "2", "-o", out)
    assert other.code == 2
    assert "--source was 1, now 2" in other.err
    ok("bfs", graph, "--source", "2", "-o", out, "--overwrite", *one)
    ok("bfs", edges, "--source", "2", "-o", tmp_path / "here", "--overwrite", *one)
    assert parts_of(bucket, "results/one") == bytes_of(tmp_path / "here")
    names = [path.name for path in tmp_path.rglob("*") if ".work" in path.name]
    assert names == []  # of what was kept here meanwhile


def test_other_questions(bucket, edges, tmp_path, ok):
    graph = bucket.copy(edges, "edges")
    ok("components", f"{graph}/*.parquet", "-o", f"{bucket.url}/components")
    ok("components", edges, "-o", tmp_path / "components")
    assert parts_of(bucket, "components") == bytes_of(tmp_path / "components")
    assert "valid" in ok("validate", edges, f"{bucket.url}/components").out
    pq.write_table(pa.table({"vertex": [1, 2, 3]}), tmp_path / "seeds.parquet")
    seeds = bucket.copy(tmp_path / "seeds.parquet", "seeds.parquet")
    out = f"{bucket.url}/each"
    ok("bfs", graph, "--sources", seeds, "-o", out, "--scratch", tmp_path)
    ok("bfs", edges, "--sources", tmp_path / "seeds.parquet", "-o", tmp_path / "each")
    assert parts_of(bucket, "each") == bytes_of(tmp_path / "each")


def test_file_urls_are_paths(edges, tmp_path, ok):
    ok("components", edges.as_uri(), "-o", (tmp_path / "my out").as_uri())
    ok("components", edges, "-o", tmp_path / "out")
    assert digest(tmp_path / "my out") == digest(tmp_path / "out")
    assert (tmp_path / "my out.run.json").exists()


def test_from_python(bucket, edges):
    with package.open(bucket.copy(edges, "edges")) as graph:
        result = graph.bfs(1)
        result.write(f"{bucket.url}/out")
        with pytest.raises(InputError, match="overwrite=True"):
            result.write(f"{bucket.url}/out")
        result.write(f"{bucket.url}/out", overwrite=True)
    assert len(parts_of(bucket, "out")) == 1
    assert package.validate(str(edges), f"{bucket.url}/out")["valid"]


@pytest.mark.parametrize(
    "line",
    [
        ["build", "{edges}", "-o", "{bucket}/graph.dg"],
        ["generate", "kronecker", "--scale", "4", "-o", "{bucket}/edges"],
        ["convert", "{edges}", "-o", "{bucket}/edges"],
        ["convert", "{bucket}/graph.csv", "-o", "out"],
        ["report", "{bucket}/out", "-o", "out.html"],
        ["bench", "{bucket}/graph.dg"],
        ["bfs", "{edges}", "--source", "1", "-o", "out", "--profile", "{bucket}/p.parquet"],
    ],
    ids=lambda line: f"{line[0]} {line[1][:8]}",
)
def test_what_stays_here(bucket, edges, tmp_path, delegraph, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    run = delegraph(*(word.format(edges=edges, bucket=bucket.url) for word in line))
    assert (run.code, run.err.count("\n")) == (2, 1)
    assert re.match(f"delegraph: .*{bucket.url}/.*(path|disk) of this machine", run.err)
    assert bucket.names() == []


def test_inputs_and_outputs_that_would_meet(bucket, edges, delegraph):
    graph = bucket.copy(edges, "edges")
    for out in (graph, f"{graph}/out", f"{bucket.url}/edges/a.parquet"):
        run = delegraph("bfs", graph, "--source", "1", "-o", out)
        assert run.code == 2
    assert len(bucket.names()) == 2


@pytest.mark.parametrize("fault", [refused(500), slow(cut_off)], ids=["500", "cut"])
def test_a_store_that_fails_is_tried_again_later(
    failing, bucket, edges, delegraph, fault, monkeypatch
):
    graph = bucket.copy(edges, "edges")
    failing.fail(fault, "GET /", times=1)
    assert delegraph("bfs", graph, "--source", "1", "-o", f"{bucket.url}/out").code == 0
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    remote._system.cache_clear()
    failing.fail_where(fault, lambda request: request.startswith("GET") and "b.parq" in request)
    run = delegraph("bfs", graph, "--source", "1", "-o", f"{bucket.url}/out2")
    assert run.code == 75
    assert run.err.startswith(f"delegraph: {graph}/b.parquet: no usable answer after")
    assert run.err.count("\n") == 1
    assert not any("out2" in name for name in bucket.names())


def test_killed_in_the_middle(failing, bucket, edges, tmp_path, ok, delegraph):
    """A run killed while the parts of its result are sent leaves the result of an earlier search in
    place.
    """
    graph, out = bucket.copy(edges, "edges"), f"{bucket.url}/out"
    ok("bfs", graph, "--source", "1", "-o", out)
    before = bucket.names()
    failing.asked.clear()
    failing.fail_where(silent, lambda request: request.startswith("PUT") and "part-" in request)
    line = command("bfs", graph, "--source", "2", "-o", out, "--overwrite", "--scratch", tmp_path)
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as process:
        wait_for_request(failing, "out/part-")
        process.kill()
    failing.heal()
    names = set(bucket.names()) - set(before)
    assert [name.startswith("out/_begun-") for name in names] == [True]
    assert "valid" in ok("validate", edges, out).out
    assert ok("info", out, "--json").json["source"] == 1
    assert list(tmp_path.glob(".out-*.work"))
    ok("bfs", graph, "--source", "2", "-o", out, "--overwrite", "--scratch", tmp_path)
    assert not list(tmp_path.glob(".out-*"))
    assert ok("info", out, "--json").json["source"] == 2
    assert len(bucket.names("out")) == 2  # its part, and what names it


def test_two_runs_here_do_not_write_one_result(bucket, edges, delegraph, tmp_path):
    out = f"{bucket.url}/out"
    from delegraph.partition.disk.work import begin_work

    with begin_work(out, {}):
        run = delegraph("bfs", edges, "--source", "1", "-o", out)
    assert run.code == 75
    assert f"another run is writing {out} at this moment" in run.err


@pytest.mark.slow
def test_workers_read_there(bucket, edges, tmp_path, ok):
    graph = bucket.copy(edges, "edges")
    ok("build", edges, "-o", tmp_path / "here.dg")
    ok("build", graph, "-o", tmp_path / "local.dg", "--workers", 2, "--scratch", tmp_path)
    assert digest(tmp_path / "local.dg") == digest(tmp_path / "here.dg")
    with cluster(2) as (local, _):
        address = local.scheduler_address
        ok("build", graph, "-o", tmp_path / "other.dg", "--scheduler", address)
    assert digest(tmp_path / "other.dg") == digest(tmp_path / "here.dg")


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["dense", nightly("strings")])
@pytest.mark.parametrize("name", ["build", "components"])
def test_a_memory_limit_is_kept(bucket, tmp_path, ids, name):
    graph = bucket.copy(of_file(tmp_path / "edges", ids, 3_000_000), "edges")
    line = command(name, graph, "-o", tmp_path / "out")
    peak_of([*line, "--memory-limit", "900MB"])  # a process that compiles holds more
    code, _, stderr = peak_of([*line, "--overwrite", "--memory-limit", "1MB"])
    match = re.search(r"--memory-limit ([\d.]+[MG]B) or more", stderr)
    assert match, stderr
    least = memory.parse_bytes(match[1]) + 2 * MB
    code, peak, stderr = peak_of([*line, "--overwrite", "--memory-limit", str(least)])
    assert (code, peak <= least) == (0, True), (stderr, peak, least)


@pytest.mark.slow
def test_processes_end(bucket, edges):
    """A Python process that reads and writes in an object store ends without a warning, though
    nobody closes anything.
    """
    graph = bucket.copy(edges, "edges")
    code = (
        "import sys, delegraph\n"
        "graph = delegraph.open(sys.argv[1])\n"
        "found = graph.bfs(1)\n"
        "found.write(sys.argv[2])\n"
        "print(found.reached)"
    )
    line = [sys.executable, "-X", "dev", "-c", code, graph, f"{bucket.url}/out"]
    run = subprocess.run(line, capture_output=True, text=True, timeout=120, env=os.environ)
    assert (run.returncode, run.stderr) == (0, "")
    assert int(run.stdout) > 1
