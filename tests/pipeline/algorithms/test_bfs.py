"""Breadth-first search as a user runs it: distances on known graphs, results that every tool
opens.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from delegraph.kernels import reference
from delegraph.pipeline.engines.host import scan as search_edges
from delegraph.pipeline.engines.host.scan import ScanEngine
from support.graphs import random_edges
from support.marks import mostly_slow
from support.outputs import distances_of, read_result


def test_small_graph_on_every_path(ok, edge_list, tmp_path):
    """A graph of two components, a loop and a duplicate in each direction is right; gaps in ids are
    no vertices.
    """
    edges = edge_list([0, 1, 2, 2, 7, 9], [1, 2, 2, 1, 8, 9])
    expected = {0: (0, None), 1: (1, 0), 2: (2, 1)} | dict.fromkeys([7, 8, 9], (None, None))
    ok("build", edges, "-o", tmp_path / "one.dg")
    ok("build", edges, "-o", tmp_path / "three.dg", "--partitions", 3, "--threshold", 1)
    for graph in (edges, tmp_path / "one.dg", tmp_path / "three.dg"):
        run = ok("bfs", graph, "--source", 0, "-o", tmp_path / "out", "--overwrite")
        assert read_result(tmp_path / "out") == expected
        first, _, *farthest = run.out.splitlines()
        assert first == "reached 3 of 6 vertices, depth 2"
        assert farthest == ["  2     2", "  1     1", "  0     0"]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "choices",
    [
        (),
        ("--order", "none"),
        ("--order", "random"),
        ("--partitions", 3),
        ("--partitions", 4, "--threshold", 5),
        ("--layout", "2d", "--grid", "2x3"),
        ("--layout", "1d", "--partitions", 2),
    ],
    ids=str,
)
def test_choices_of_a_build_do_not_change_distances(ok, edge_list, tmp_path, choices, directed):
    src, dst = random_edges(2, 500, 1500)
    expected = reference.distances(src, dst, 500, src[0], directed)
    edges = edge_list(src, dst)
    choices = (*choices, *(("--directed",) if directed else ()))
    ok("bfs", edges, "--source", src[0], "-o", tmp_path / "direct", *choices)
    ok("build", edges, "-o", tmp_path / "graph.dg", *choices)
    ok("bfs", tmp_path / "graph.dg", "--source", src[0], "-o", tmp_path / "stored")
    assert distances_of(tmp_path / "direct") == distances_of(tmp_path / "stored")
    for vertex, hops in distances_of(tmp_path / "stored").items():
        assert (-1 if hops is None else hops) == expected[vertex]
    for name in ("direct", "stored"):
        ok("validate", tmp_path / "graph.dg", tmp_path / name)


def test_many_levels_turn_to_rows(ok, edge_list, tmp_path):
    path = np.random.default_rng(3).permutation(100_000)
    edges = edge_list(path[:-1], path[1:])
    record = ok("bfs", edges, "--source", path[0], "-o", tmp_path / "out", "--json").json
    assert record["search"]["method"] == "scan, push-pull"
    directions = [step["direction"]["all"] for step in record["supersteps"]]
    assert directions[0] == "scan"
    assert "push" in directions
    assert record["search"]["depth"] == 99_999
    distance = pq.read_table(tmp_path / "out")["distance"].to_numpy()
    assert distance[path].tolist() == list(range(100_000))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.parquet", "out", "out.run.json"]


def test_few_levels_do_not(ok, edge_list, tmp_path):
    """A star with a million leaves, searched from a leaf, is scanned alone: its levels are few."""
    edges = edge_list(np.zeros(1_000_000, np.int32), np.arange(1, 1_000_001, dtype=np.int32))
    record = ok("bfs", edges, "--source", 77, "-o", tmp_path / "out", "--json").json
    assert record["search"] | {"source": 0} == {
        "source": 0,
        "max_depth": None,
        "method": "scan",
        "reached": 1_000_001,
        "depth": 2,
    }
    ok("build", edges, "-o", tmp_path / "star.dg")
    ok("validate", tmp_path / "star.dg", tmp_path / "out")
    record = ok("bfs", tmp_path / "star.dg", "--source", 77, "-o", tmp_path / "2", "--json").json
    assert record["search"]["reached"] == 1_000_001
    assert distances_of(tmp_path / "out") == distances_of(tmp_path / "2")


@pytest.mark.parametrize(
    ("src", "dst", "reached"),
    [([4], [5], 2), ([4], [4], 1), ([4] * 1000, [5] * 1000, 2)],
    ids=["one row", "one self-loop", "one edge in every row"],
)
def test_tiny_graphs(ok, edge_list, tmp_path, src, dst, reached):
    edges = edge_list(src, dst)
    for choices in ((), ("--partitions", 3)):
        ok("build", edges, "-o", tmp_path / "graph.dg", "--overwrite", *choices)
        for graph in (edges, tmp_path / "graph.dg"):
            args = choices if graph == edges else ()
            ok("bfs", graph, "--source", 4, "-o", tmp_path / "out", "--overwrite", *args)
            assert distances_of(tmp_path / "out") == {v: v - 4 for v in range(4, 4 + reached)}
            ok("validate", tmp_path / "graph.dg", tmp_path / "out")


@pytest.mark.parametrize("max_depth", [0, 1, 2, 9])
def test_depth_limit(ok, edge_list, tmp_path, max_depth):
    edges = edge_list([0, 1, 2, 3], [1, 2, 3, 4])
    ok("build", edges, "-o", tmp_path / "graph.dg")
    expected = {v: v if v <= max_depth else None for v in range(5)}
    for graph in (edges, tmp_path / "graph.dg"):
        out = tmp_path / "out"
        ok("bfs", graph, "--source", 0, "-o", out, "--overwrite", "--max-depth", max_depth)
        assert distances_of(tmp_path / "out") == expected
        ok("validate", tmp_path / "graph.dg", tmp_path / "out")


def test_every_tool_opens_the_outputs(ok, tmp_path):
    """Result folders hold only Parquet: Arrow, Polars, DuckDB and pandas read whole folders."""
    import duckdb
    import pandas
    import polars

    ok(*f"generate kronecker --scale 6 -o {tmp_path}/edges".split())
    source = pq.read_table(tmp_path / "edges")["src"][0].as_py()
    ok("bfs", tmp_path / "edges", "--source", source, "-o", tmp_path / "distances")
    for name, rows in (("edges", 16 << 6), ("distances", None)):
        folder = tmp_path / name
        table = ds.dataset(folder).to_table()
        assert rows in (None, table.num_rows)
        assert polars.read_parquet(folder).to_dict(as_series=False) == table.to_pydict()
        assert duckdb.read_parquet(f"{folder}/*").fetchall() == [
            tuple(row.values()) for row in table.to_pylist()
        ]
        assert pandas.read_parquet(folder).shape == table.shape


def test_overwrite_replaces_and_leaves_nothing_else(ok, delegraph, edge_list, tmp_path):
    edges = edge_list([0], [1])
    ok("bfs", edges, "--source", 0, "-o", tmp_path / "out")
    refused = delegraph("bfs", edges, "--source", 1, "-o", tmp_path / "out")
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert distances_of(tmp_path / "out") == {0: 0, 1: 1}
    ok("bfs", edges, "--source", 1, "-o", tmp_path / "out", "--overwrite")
    assert distances_of(tmp_path / "out") == {0: 1, 1: 0}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.parquet", "out", "out.run.json"]


def test_a_full_disk_leaves_the_old_result(ok, edge_list, tmp_path):
    """A full disk leaves the old result; a limit on the size of files, which the new result passes,
    stands for the disk.
    """
    edges = edge_list(np.arange(50_000), np.arange(1, 50_001))
    ok("bfs", edges, "--source", 0, "-o", tmp_path / "out", "--max-depth", 3)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run = subprocess.run(
        [
            *(sys.executable, "-m", "delegraph", "bfs", edges, "--source", "1"),
            *("-o", tmp_path / "out", "--max-depth", "3", "--overwrite"),
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "no space left" in run.stderr
    assert "bytes are needed" in run.stderr
    assert "the limit of 20,000 bytes (ulimit -f)" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_output_is_data_and_silence_in_a_pipe(edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    command = [sys.executable, "-m", "delegraph", "bfs", edges, "--source", "0", "--quiet"]
    run = subprocess.run(
        [*command, "-o", tmp_path / "out", "--json"], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    assert json.loads(run.stdout)["search"]["depth"] == 2


def test_scans_have_a_budget(ok, edge_list, tmp_path, monkeypatch):
    """Distances are the same for every budget of scans, and the record names the method."""
    src, dst = random_edges(2, 400, 1500)
    edges = edge_list(src, dst)
    methods = {}
    for budget in (-1, 100):
        monkeypatch.setattr(search_edges, "SCAN_BUDGET", budget)
        out = tmp_path / str(budget)
        record = ok("bfs", edges, "--source", src[0], "-o", out, "--json").json
        methods[budget] = record["search"]["method"]
    assert methods == {-1: "scan, push-pull", 100: "scan"}
    assert distances_of(tmp_path / "-1") == distances_of(tmp_path / "100")


FACTS = [
    ("karate", 0, 34, 3, None),
    ("cnr-2000", 129317, 325_557, 28, 4_472_572),
    ("cnr-2000", 132382, 325_557, None, 4_464_199),
    ("luxembourg-osm", 89828, 114_599, 1077, 60_019_666),
    ("luxembourg-osm", 19414, 114_599, 1249, 64_144_935),
]


@pytest.mark.parametrize(("name", "source", "reached", "depth", "total"), FACTS)
@pytest.mark.parametrize("through", mostly_slow(["edges", "store", "four partitions"], "edges"))
def test_real_graphs(ok, real_graph, tmp_path, name, source, reached, depth, total, through):
    graph = real_graph(name)
    if through != "edges":
        choices = ("--partitions", 4) if through == "four partitions" else ()
        document = ok("build", graph, "-o", tmp_path / "graph.dg", "--json", *choices).json
        assert name != "cnr-2000" or document["edges"] == 2_738_969
        graph = tmp_path / "graph.dg"
    record = ok("bfs", graph, "--source", source, "-o", tmp_path / "out", "--json").json
    assert record["search"]["reached"] == reached
    assert depth in (None, record["search"]["depth"])
    distance = pq.read_table(tmp_path / "out")["distance"]
    assert total in (None, pc.call_function("sum", [distance]).as_py())
    if through == "store":
        ok("validate", graph, tmp_path / "out")


@pytest.mark.parametrize("directed", [False, True])
def test_email_against_definition(ok, real_graph, tmp_path, directed):
    path = real_graph("email-Eu-core")
    table = pq.read_table(path)
    src, dst = table["src"].to_numpy(), table["dst"].to_numpy()
    hub = int(np.argmax(np.bincount(src)))
    flags = ("--directed",) if directed else ()
    ok("bfs", path, "--source", hub, "-o", tmp_path / "out", *flags)
    expected = reference.distances(src, dst, 1005, hub, directed)
    distances = distances_of(tmp_path / "out")
    assert len(distances) == 1005
    assert [-1 if distances[v] is None else distances[v] for v in range(1005)] == expected.tolist()


def test_overwrite_spares_what_is_not_an_output(delegraph, ok, edge_list, tmp_path):
    edges = edge_list([0], [1], name="in/edges.parquet")
    mine = edge_list([0], [1], name="mine/table.parquet")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").touch()
    ok("build", edges, "-o", tmp_path / "graph.dg")
    for path in (tmp_path / "precious", mine.parent, mine, tmp_path / "graph.dg"):
        run = delegraph("bfs", edges, "--source", 0, "-o", path, "--overwrite")
        assert run.code == 2
        assert "is not a result that delegraph wrote" in run.err
    assert delegraph("build", edges, "-o", mine.parent, "--overwrite").code == 2
    assert (tmp_path / "precious" / "thesis.tex").exists()
    assert mine.exists()


@pytest.mark.parametrize("folder", ["in", "in[1]", "in*"])
def test_overwrite_spares_the_input(delegraph, ok, edge_list, tmp_path, folder):
    ok(*f"generate uniform --scale 3 -o {tmp_path}/{folder}".split())
    input_folder = tmp_path / folder
    source = pq.read_table(input_folder)["src"][0]
    for out in (input_folder, input_folder / "out", input_folder / "part-00000.parquet"):
        run = delegraph("bfs", input_folder, "--source", source, "-o", out, "--overwrite")
        assert run.code == 2
    pattern = f"{tmp_path}/in*/*.parquet"
    if folder == "in":
        assert delegraph("build", pattern, "-o", input_folder, "--overwrite").code == 2
    assert pq.read_table(input_folder).num_rows == 16 << 3


def test_what_appears_meanwhile_is_spared(delegraph, edge_list, tmp_path, monkeypatch):
    """Files that appear at the output while the run works are neither replaced nor removed."""
    edges = edge_list([0], [1])
    search = ScanEngine.search

    def search_slowly(*args):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").touch()
        return search(*args)

    monkeypatch.setattr(ScanEngine, "search", search_slowly)
    run = delegraph("bfs", edges, "--source", 0, "-o", tmp_path / "out")
    assert run.code == 1
    assert "was written by something else meanwhile" in run.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["edges.parquet", "out"]
    assert (tmp_path / "out" / "thesis.tex").exists()


def test_the_old_output_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    from delegraph.partition.disk import outputs

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    (tmp_path / "out" / "manifest.json").write_text('{"format": "delegraph store"}')
    (tmp_path / "new").mkdir()
    rename = os.rename
    calls = []

    def fail_second(a, b):
        calls.append(a)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(a, b)

    monkeypatch.setattr(outputs, "_exchange", lambda one, other: False)
    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(KeyboardInterrupt):
        outputs.publish(tmp_path / "new", tmp_path / "out", "store", True, tmp_path / "replaced")
    names = sorted(p.name for p in tmp_path.rglob("*"))
    assert names == ["manifest.json", "new", "old", "out"]


def test_a_record_left_alone_is_replaced(delegraph, ok, edge_list, tmp_path):
    edges = edge_list([0], [1])
    (tmp_path / "out.run.json").write_text('{"mine": 1}')
    assert delegraph("bfs", edges, "--source", 0, "-o", tmp_path / "out").code == 2
    (tmp_path / "out.run.json").write_text('{"schema_version": 1}')
    ok("bfs", edges, "--source", 0, "-o", tmp_path / "out")


def test_a_row_group_of_any_size_is_cut_into_batches(edge_list, monkeypatch):
    from delegraph.partition.input.edges import open_edges
    from delegraph.pipeline.build import read
    from delegraph.pipeline.run.execute import Executor

    monkeypatch.setattr(read, "CHUNK_ROWS", 1000)
    for ids in (np.arange(4500), np.arange(4500) * 10**9):
        dense = read.read_edges(open_edges(edge_list(ids, ids + 1)), Executor(2))
        assert [len(src) for src, _ in dense.batches] == [1000] * 4 + [500]
        assert np.concatenate([src for src, _ in dense.batches]).tolist() == sorted(
            np.concatenate([src for src, _ in dense.batches]).tolist()
        )
