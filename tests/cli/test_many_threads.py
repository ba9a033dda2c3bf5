"""More threads than are of use: one rule bounds their number, and a message says so."""

from __future__ import annotations

import json

import pytest

import delegraph as package
from delegraph.kernels.base.threads import useful_threads
from support.graphs import random_edges

MANY = 100_000
COMMANDS = {
    "bfs": ["--source", 1],
    "components": [],
    "pagerank": [],
    "betweenness": ["--sources", 5],
    "closeness": ["--sources", 5],
    "eccentricity": ["--sources", 5],
    "build": [],
}


@pytest.fixture
def graph(edge_list):
    return edge_list(*random_edges(1, 100, 600))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(ok, graph, tmp_path, name):
    run = ok(name, graph, *COMMANDS[name], "-o", tmp_path / "out", "--threads", MANY)
    assert json.loads((tmp_path / "out.run.json").read_text())["threads"] == useful_threads(MANY)
    assert f"--threads 100,000: {useful_threads(MANY)} threads are used" in run.err
    if name == "bfs":
        ok("validate", graph, tmp_path / "out", "--threads", MANY)


def test_python(graph, tmp_path):
    with package.open(graph, threads=MANY) as opened:
        assert len(opened.pagerank())
    record = package.components(graph, output=tmp_path / "out", threads=MANY).record
    assert record["threads"] == useful_threads(MANY)


def test_a_batch(ok, graph, tmp_path):
    jobs = tmp_path / "jobs.toml"
    job = f'command = "components"\ngraph = "{graph}"\noutput = "{tmp_path}/out"\n'
    jobs.write_text(f'[defaults]\nthreads = {MANY}\n[[job]]\nname = "parts"\n{job}')
    ok("batch", "run", jobs)
    assert json.loads((tmp_path / "out.run.json").read_text())["threads"] == useful_threads(MANY)
