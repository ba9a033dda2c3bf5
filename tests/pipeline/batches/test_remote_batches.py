"""Batches whose jobs read from an object store, and write there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.graphs import random_edges

JOBS = """
[[job]]
name = "store"
command = "build"
edges = "{url}/edges/*.parquet"
output = "graph.dg"

[[job]]
name = "parts"
command = "components"
graph = "graph.dg"
output = "{url}/out/parts"
needs = ["store"]

[[job]]
name = "check"
command = "validate"
graph = "graph.dg"
result = "{url}//out/parts/"
needs = ["parts"]
"""


def put_edges(bucket, tmp_path, seed: int) -> None:
    src, dst = random_edges(seed, 300, 900)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    bucket.put("edges/a.parquet", (tmp_path / "edges.parquet").read_bytes())


@pytest.fixture
def jobs(bucket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(JOBS.format(url=bucket.url))
    return tmp_path


def test_what_is_read_has_to_be_there(bucket, jobs, ok, delegraph):
    run = delegraph("batch", "plan", "jobs.toml")
    assert run.code == 2
    fault = f"jobs.toml, line 5: {bucket.url}/edges/*.parquet: no such file or folder"
    assert run.err.strip().endswith(fault)
    put_edges(bucket, jobs, 1)
    assert ok("batch", "plan", "jobs.toml").out.count("runs within") == 3


def test_a_name_that_is_none(bucket, jobs, delegraph):
    text = JOBS.format(url=bucket.url).replace(f"{bucket.url}//out/parts/", "http://host/out")
    (jobs / "jobs.toml").write_text(text)
    run = delegraph("batch", "plan", "jobs.toml")
    assert run.code == 2
    assert "line 19: 'result': http://host/out: unknown kind of URL" in run.err


@pytest.mark.slow
def test_what_is_done_is_not_done_again(bucket, jobs, ok, delegraph):
    put_edges(bucket, jobs, 1)
    assert ok("batch", "run", "jobs.toml").out == "3 of 3 jobs done\n"
    rerun = ok("batch", "run", "jobs.toml")
    assert rerun.err.count("done already") == 3
    put_edges(bucket, jobs, 2)
    plan = ok("batch", "plan", "jobs.toml").out
    assert "store  runs" in plan
    assert "its options or its inputs have changed" in plan


@pytest.mark.slow
def test_a_result_is_made_again_when_it_is_gone_or_of_something_else(bucket, jobs, ok):
    put_edges(bucket, jobs, 1)
    ok("batch", "run", "jobs.toml")
    before = bucket.names("out")
    put_edges(bucket, jobs, 2)
    assert "done already" not in ok("batch", "run", "jobs.toml").err
    changed = bucket.names("out")
    assert (len(changed), changed == before) == (len(before), False)
    for name in changed:
        bucket.remove(name)
    assert "parts: begun" in ok("batch", "run", "jobs.toml").err
    assert len(bucket.names("out")) == len(before)
