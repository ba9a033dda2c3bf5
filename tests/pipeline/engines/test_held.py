"""Programs over an edge list in memory give the results of a store of the edge list, to the last
bit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.build import held, prepare
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.run.execute import Executor
from support.graphs import SHAPES, random_edges
from support.marks import mostly_slow
from support.processes import command, peak_of

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("pagerank", {}),
    ("betweenness", {"sources": 5}),
    ("closeness", {"sources": 5}),
    ("eccentricity", {}),
    ("components", {}),
]


def rows(folder: Path) -> dict[str, list]:
    return ds.dataset(folder).to_table().to_pydict()


def method(folder: Path, name: str) -> str:
    return json.loads(Path(f"{folder}.run.json").read_text())[name]["method"]


def both_ways(
    name: str, edges: Path, folder: Path, reading: dict[str, Any], args: dict[str, Any]
) -> None:
    """Compare a question about an edge list in memory with one about a store."""
    ask, ways = getattr(delegraph, name), (folder / "held", folder / "stored")
    delegraph.build(edges, folder / "graph.dg", threads=2, **reading)
    ask(edges, output=ways[0], threads=2, **reading, **args)
    ask(folder / "graph.dg", output=ways[1], threads=2, **args)
    steps = json.loads((folder / "held.run.json").read_text())["plan"]["steps"]
    assert "vertices" not in {step["name"] for step in steps}  # no store was written
    assert rows(ways[0]) == rows(ways[1])
    assert delegraph.validate(edges, ways[0], **reading)["valid"]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("name", "args"), ASKED)
def test_as_of_a_store(edge_list, tmp_path, name, args, directed):
    edges = edge_list(*random_edges(3, 500, 3000))
    both_ways(name, edges, tmp_path, {"directed": directed}, args)
    expected = "scan" if name == "components" else "in memory"
    assert method(tmp_path / "held", name) == expected


@pytest.mark.parametrize("directed", [False, True])
def test_the_nearest_source_as_of_a_store(edge_list, tmp_path, directed):
    edges = edge_list(*random_edges(4, 500, 900))
    args = {"sources": [int(v) for v in np.unique(random_edges(4, 500, 900)[0])[:3]]}
    both_ways("bfs", edges, tmp_path, {"directed": directed}, {**args, "together": True})


@pytest.mark.parametrize("directed", [False, True])
def test_searches_apart_as_of_a_store(edge_list, tmp_path, directed):
    """Searches from many sources in several batches give the result of a store."""
    src, dst = random_edges(4, 500, 900)
    args = {"sources": [int(v) for v in np.unique(src)[:70]]}
    both_ways("bfs", edge_list(src, dst), tmp_path, {"directed": directed}, args)


@pytest.mark.parametrize("duplicates", mostly_slow(["min", "max", "sum"], "sum"))
@pytest.mark.parametrize("kind", [pa.uint32(), pa.float32()])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_as_of_a_store(edge_list, tmp_path, kind, duplicates, directed):
    src, dst = random_edges(5, 60, 900)  # most edges stand there several times
    weight = pa.array(np.random.default_rng(5).integers(0, 9, len(src)).astype(np.float32))
    edges = edge_list(src, dst, weight=weight.cast(kind))
    reading = {"directed": directed, "weight": "weight", "duplicates": duplicates}
    for name, args in (("sssp", {"source": int(src[0])}), ("pagerank", {})):
        (tmp_path / name).mkdir()
        both_ways(name, edges, tmp_path / name, reading, args)


@pytest.mark.parametrize("kind", mostly_slow(["uint64", "int32", "string"], "string"))
def test_ids_that_are_not_dense(edge_list, tmp_path, kind):
    id_type = pa.type_for_alias(kind)

    def named(vertex: int) -> int | str:
        return f"v{vertex}" if kind == "string" else vertex * (2**40 if kind == "uint64" else 5000)

    ends = ([named(int(v)) for v in end] for end in random_edges(6, 200, 500))
    edges = edge_list(*ends, id_type=id_type)
    both_ways("pagerank", edges, tmp_path, {}, {"tolerance": 1e-9})


def test_self_loops_alone(edge_list, tmp_path):
    edges = edge_list([7, 9], [7, 9])
    both_ways("pagerank", edges, tmp_path, {}, {})
    assert rows(tmp_path / "held") == {"vertex": [7, 9], "pagerank": [0.5, 0.5]}


def test_more_rows_than_are_held(ok, edge_list, tmp_path, monkeypatch):
    """An edge list with more rows than memory may hold goes through a store, unless edges are
    scanned.
    """
    monkeypatch.setattr(prepare, "MOST_IN_MEMORY", 100)
    edges = edge_list(*random_edges(3, 100, 101))
    for name, stored in (("components", False), ("pagerank", True)):
        ok(name, edges, "-o", tmp_path / name)
        steps = json.loads((tmp_path / f"{name}.run.json").read_text())["plan"]["steps"]
        assert ("vertices" in {step["name"] for step in steps}) == stored


def test_a_source_that_is_not_there(delegraph, edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2], weight=[1.0, 2.0])
    run = delegraph("sssp", edges, "--weight", "weight", "--source", 9, "-o", tmp_path / "out")
    assert run.code == 2
    assert "source 9 is not a vertex of the graph" in run.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", mostly_slow(sorted(SHAPES), "star"))
def test_rows_are_those_of_a_store(edge_list, tmp_path, monkeypatch, shape, directed):
    """Rows in memory are those of a store, even with many shards that each drop duplicates."""
    monkeypatch.setattr("delegraph.partition.store.layout.SHARD_EDGES", 200)
    monkeypatch.setattr("delegraph.partition.store.layout.RANGE_EDGES", 64)
    edges = edge_list(*SHAPES[shape])
    graph = held.rows_in_memory(
        open_edges(edges, "src", "dst"), BuildOptions(directed=directed), Executor(2)
    )
    delegraph.build(edges, tmp_path / "graph.dg", directed=directed, threads=2)
    store, team = delegraph.open_store(tmp_path / "graph.dg"), Team(1)
    assert graph.info == store.info
    for name in graph.rows:
        made = graph.rows[name]
        assert len(made.weights) == 0
        for ours, theirs in zip(made[:2], store.subgraph(0, name, team), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.nightly
def test_a_limit_is_kept(delegraph, tmp_path):
    """A memory limit is kept from the least limit at which rows fit in memory; right below it, a
    store is built.
    """
    delegraph("generate", "kronecker", "--scale", 17, "-o", tmp_path / "edges")

    def run(megabytes: int) -> tuple[int, str]:
        """Return the peak of bytes, and what the run did: "rows", "store" or "refused"."""
        out = tmp_path / f"{megabytes}"
        line = command("pagerank", tmp_path / "edges", "-o", out, "--memory-limit")
        code, peak, stderr = peak_of([*line, f"{megabytes}MB"])
        if code == 2:  # also too little for a store, by how much Python and libraries hold here
            assert "is too small" in stderr
            return peak, "refused"
        assert code == 0, stderr
        steps = json.loads(Path(f"{out}.run.json").read_text())["plan"]["steps"]
        return peak, "store" if "vertices" in {step["name"] for step in steps} else "rows"

    run(2000)  # compiles
    low, high = 310, 700
    done = {high: run(high)}
    assert done[high][1] == "rows"
    while high - low > 8:
        middle = (low + high) // 2
        done[middle] = run(middle)
        low, high = (low, middle) if done[middle][1] == "rows" else (middle, high)
    assert done[high][0] <= high * 1_000_000
    assert done[low][1] == "store"
