"""``sssp`` as a command: every way to run it, ids of every kind, NetworkX's answers, bad input."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as api
from support.graphs import random_edges
from support.marks import slow
from support.schema import conforms, run_record


def columns(folder: Path) -> dict[Any, tuple[Any, Any]]:
    table = pq.read_table(folder).to_pydict()
    rest = zip(table["distance"], table["parent"], strict=True)
    return dict(zip(table["vertex"], rest, strict=True))


def weighted(edge_list, seed: int = 5, named=int, **options):
    """Write edges with integer weights, and make NetworkX's graph of them."""
    src, dst = random_edges(seed, 300, 1200)
    weight = np.random.default_rng(seed).integers(0, 50, len(src))
    edges = edge_list([named(v) for v in src], [named(v) for v in dst], w=weight)
    graph = networkx.DiGraph() if options.get("directed") else networkx.Graph()
    for u, v, w in zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True):
        least = min(w, graph[u][v]["weight"]) if graph.has_edge(u, v) else w
        graph.add_edge(u, v, weight=least)
    return edges, graph


@pytest.mark.parametrize(
    ("way", "directed"),
    [*product(["edges", "store", "streamed"], [False, True]), slow("workers", False)],
)
def test_every_way_is_right_and_recorded(ok, delegraph, edge_list, tmp_path, way, directed):
    edges, wanted = weighted(edge_list, directed=directed)
    flags = ["--weight", "w", *(["--directed"] if directed else [])]
    graph, source = edges, int(next(iter(wanted)))
    if way != "edges":
        ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 2, *flags)
        graph, flags = tmp_path / "graph.dg", []
    args = ("sssp", graph, "-o", tmp_path / "out", "--source", source, *flags)
    extra = {"workers": ["--workers", 2]}.get(way, [])
    if way == "streamed":
        refused = delegraph(*args, "--memory-limit", "1MB")
        assert refused.code == 2
        extra = ["--memory-limit", refused.err.split("--memory-limit ")[1].split()[0]]
    printed = ok(*args, *extra, "--json").json
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert {**record, "already": False} == printed
    assert conforms(record, run_record("sssp"))
    assert record["sssp"]["method"] == ("streamed" if way == "streamed" else "in memory")
    distances = networkx.single_source_dijkstra_path_length(wanted, source)
    rows = columns(tmp_path / "out")
    assert {v: d for v, (d, _) in rows.items() if d is not None} == distances
    schema = pq.read_schema(next((tmp_path / "out").glob("*.parquet")))
    assert schema.field("distance").type == pa.int64()
    assert record["sssp"]["reached"] == len(distances)
    assert record["sssp"]["farthest"] == max(distances.values())
    verdict = ok("validate", graph, tmp_path / "out", *flags, "--json").json
    assert (verdict["valid"], verdict["same_graph"]) == (True, True)
    assert verdict["reached"] == len(distances)
    assert "already" in ok(*args, *extra).err
    assert str(len(distances)) in ok("info", tmp_path / "out").out


def test_strings_floats_and_a_greatest_distance(ok, edge_list, tmp_path):
    edges = edge_list(["a", "b", "c", "x"], ["b", "c", "d", "y"], w=[0.5, 0.25, 4.0, 1.0])
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    out = tmp_path / "out"
    ok("sssp", tmp_path / "g.dg", "-o", out, "--source", "a", "--max-distance", 0.75)
    nothing = (None, None)
    wanted = {"a": (0, None), "b": (0.5, "a"), "c": (0.75, "b"), "d": nothing}
    assert columns(out) == {**wanted, "x": nothing, "y": nothing}
    ok("validate", tmp_path / "g.dg", out)
    api.sssp(tmp_path / "g.dg", "a", output=tmp_path / "all")
    assert columns(tmp_path / "all")["d"] == (4.75, "c")


def test_pagerank_by_weights(ok, edge_list, tmp_path):
    """PageRank by weights is NetworkX's, and so is PageRank without weights."""
    edges, graph = weighted(edge_list)
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    tight = "--tolerance", 1e-12
    for flags, weight in ((["--weight", "w"], "weight"), ([], None)):
        ok("pagerank", edges, "-o", tmp_path / "of edges", "--overwrite", *tight, *flags)
        same = [] if weight else ["--unweighted"]
        out = tmp_path / f"of store {weight}"
        ok("pagerank", tmp_path / "g.dg", "-o", out, *tight, *same)
        ok("validate", tmp_path / "g.dg", out)
        graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
        walk = np.asarray(networkx.google_matrix(graph, weight=weight))
        rank = np.full(len(graph), 1 / len(graph))
        for _ in range(200):
            rank = rank @ walk
        wanted = dict(zip(graph, rank, strict=True))
        for folder in (tmp_path / "of edges", out):
            table = pq.read_table(folder).to_pydict()
            ranks = dict(zip(table["vertex"], table["pagerank"], strict=True))
            assert ranks == pytest.approx(wanted, abs=1e-9)


def change(folder: Path, name: str, values: dict[int, Any]) -> None:
    (path,) = folder.glob("*.parquet")
    table = pq.read_table(path)
    data = table.to_pydict()
    for row, value in values.items():
        data[name][row] = value
    pq.write_table(pa.table(data, schema=table.schema), path)


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("distance", {3: 7}, 3),  # farther than it is
        ("distance", {3: 2}, 5),  # nearer
        ("distance", {3: -2}, 2),
        ("distance", {0: 1}, 2),  # the source's
        ("distance", {3: None}, 4),
        ("parent", {1: 3, 2: 1}, 1),  # a circle
        ("parent", {3: None}, 1),
        ("parent", {3: 0}, 5),  # no neighbour
    ],
)
def test_what_is_wrong_is_found(ok, delegraph, edge_list, tmp_path, name, values, rule):
    edges = edge_list([0, 1, 2, 3], [1, 2, 3, 4], w=[1, 2, 3, 4])
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    ok("sssp", tmp_path / "g.dg", "-o", tmp_path / "out", "--source", 0)
    change(tmp_path / "out", name, values)
    judged = delegraph("validate", tmp_path / "g.dg", tmp_path / "out", "--json")
    assert judged.code == 1
    assert rule in {broken["rule"] for broken in judged.json["rules"]}


def test_what_is_not_reached_has_no_parent(ok, delegraph, edge_list, tmp_path):
    ok("build", edge_list([0, 2], [1, 3], w=[1, 2]), "-o", tmp_path / "g.dg", "--weight", "w")
    ok("sssp", tmp_path / "g.dg", "-o", tmp_path / "out", "--source", 0)
    ok("validate", tmp_path / "g.dg", tmp_path / "out")
    change(tmp_path / "out", "parent", {3: 0})
    judged = delegraph("validate", tmp_path / "g.dg", tmp_path / "out", "--json")
    assert [broken["rule"] for broken in judged.json["rules"]] == [1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--source", 9], "source 9 is not a vertex"),
        (["--source", "x"], "is not an integer"),
        (["--source", 0, "--max-distance", -1], "must be a number of at least 0"),
        (["--source", 0, "--max-distance", "nan"], "is not a finite number"),
        (["--source", 0, "--max-distance", "inf"], "is not a finite number"),
        (["--source", 0, "--device", "cuda"], "--device"),
    ],
)
def test_bad_input(ok, delegraph, edge_list, tmp_path, options, reason):
    edges = edge_list([0], [1], w=[1.5])
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    refused = delegraph("sssp", tmp_path / "g.dg", "-o", tmp_path / "out", *options)
    assert refused.code == 2
    assert reason in refused.err
    assert not (tmp_path / "out").exists()


def test_a_graph_without_weights(ok, delegraph, edge_list, tmp_path):
    edges = edge_list([0], [1])
    ok("build", edges, "-o", tmp_path / "g.dg")
    for graph in (edges, tmp_path / "g.dg"):
        refused = delegraph("sssp", graph, "-o", tmp_path / "out", "--source", 0)
        assert refused.code == 2
        assert "--weight COL" in refused.err


def test_plan_says_what_it_holds(ok, delegraph, edge_list, tmp_path):
    edges = edge_list([0], [1], w=[1.5])
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    ok("build", edges, "-o", tmp_path / "plain.dg")
    ok("plan", tmp_path / "g.dg", "--algorithm", "sssp")
    assert delegraph("plan", tmp_path / "plain.dg", "--algorithm", "sssp").code == 2
    assert "w: float32 from 1.5 to 1.5" in ok("info", tmp_path / "g.dg").out
