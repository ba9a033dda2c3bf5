"""``validate`` accepts right results and finds every kind of damage."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.marks import slow
from support.outputs import read_result

# A path 0-1-2-3 with a leaf 4 under 1 and another, 5, under both 1 and 2; 8-9 lie apart.
EDGES = [(0, 1), (1, 2), (2, 3), (1, 4), (1, 5), (2, 5), (8, 9)]
RIGHT = {
    0: (0, None),
    1: (1, 0),
    2: (2, 1),
    3: (3, 2),
    4: (2, 1),
    5: (2, 1),
    8: (None, None),
    9: (None, None),
}

DAMAGE = {
    "a wrong distance": ({3: (7, 2)}, {2, 3}),
    "a negative distance": ({3: (-2, None)}, {2}),
    "a cycle": ({2: (2, 3), 3: (3, 2)}, {1, 2}),
    "a vertex that is its own parent": ({3: (3, 3)}, {1, 2, 5}),
    "a parent at the right level that is no neighbour": ({3: (3, 4)}, {5}),
    "a vertex missed": ({3: (None, None)}, {4}),
    "one reached too early": ({3: (2, 1)}, {5}),
    "a leaf one level deeper under a true neighbour": ({5: (3, 2)}, {3}),
    "a component that cannot be reached": ({8: (4, 3), 9: (5, 8)}, {5}),
    "a second vertex at distance 0": ({8: (0, None)}, {1, 2}),
    "a source away from 0": ({0: (1, 1)}, {1, 2}),
    "a parent without a distance": ({8: (None, 1)}, {2, 5}),
    "a distance without a parent": ({3: (3, None)}, {1}),
    "a parent that is not in the graph": ({3: (3, 77)}, {1, 5}),
    "a row deleted": ({3: None}, {0, 4}),
    "a row for a vertex that is not in the graph": ({77: (None, None)}, {0}),
}


@pytest.fixture(params=[slow("one partition"), "two partitions", "the edge list"])
def graph(request, ok, edge_list, tmp_path):
    src, dst = zip(*EDGES, strict=True)
    edges = edge_list(src, dst)
    if request.param == "the edge list":
        ok("bfs", edges, "--source", 0, "-o", tmp_path / "out")
        return edges
    choices = ("--partitions", 2, "--threshold", 2) if "two" in request.param else ()
    ok("build", edges, "-o", tmp_path / "graph.dg", *choices)
    ok("bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "out")
    return tmp_path / "graph.dg"


def rewrite(path, rows, keep_metadata=True):
    """Replace the result's rows: (vertex, distance, parent)."""
    file = next(path.glob("*.parquet"))
    schema = pq.read_schema(file)
    columns = [list(column) for column in zip(*rows, strict=True)]
    if not keep_metadata:
        schema = schema.remove_metadata()
    pq.write_table(pa.table(columns, schema=schema), file)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_caught(delegraph, graph, tmp_path, kind):
    changes, rules = DAMAGE[kind]
    rows = {v: row for v, row in (read_result(tmp_path / "out") | changes).items() if row}
    rewrite(tmp_path / "out", [(v, *row) for v, row in rows.items()])
    run = delegraph("validate", graph, tmp_path / "out", "--json")
    assert run.code == 1
    assert not run.json["valid"]
    assert rules <= {rule["rule"] for rule in run.json["rules"]}
    for rule in run.json["rules"]:
        assert rule["violations"] > 0
        assert set(rule["example"]) <= {*RIGHT, 77}
        assert rule["example"] or rule["rule"] == 1
    verdict = delegraph("validate", graph, tmp_path / "out")
    assert verdict.code == 1
    assert all(f"rule {rule}" in verdict.out for rule in rules)


def test_right_result_passes(ok, graph, tmp_path):
    rows = read_result(tmp_path / "out")
    assert rows == RIGHT
    run = ok("validate", graph, tmp_path / "out")
    assert run.out == "valid: 6 of 8 vertices reached from 0, depth 3\n"
    # Any parent one level up will do, and rows may stand in any order.
    rows = dict(reversed(rows.items()))
    rewrite(tmp_path / "out", [(v, *row) for v, row in rows.items()])
    ok("validate", graph, tmp_path / "out")


def test_a_row_twice(delegraph, graph, tmp_path):
    rows = [(v, *row) for v, row in read_result(tmp_path / "out").items()]
    rewrite(tmp_path / "out", [*rows, rows[3]])
    run = delegraph("validate", graph, tmp_path / "out", "--json")
    assert run.code == 1
    assert run.json["rules"] == [
        {
            "rule": 0,
            "meaning": "every vertex of the graph has exactly one row, and nothing else has a row",
            "violations": 1,
            "example": [3],
        }
    ]


def test_a_result_whose_metadata_is_lost(ok, graph, tmp_path):
    rewrite(tmp_path / "out", [(v, *row) for v, row in RIGHT.items()], keep_metadata=False)
    run = ok("validate", graph, tmp_path / "out")
    assert "does not say which question it answers" in run.err


def test_depth_limit_is_known(ok, delegraph, graph, tmp_path):
    ok("bfs", graph, "--source", 0, "-o", tmp_path / "cut", "--max-depth", 1)
    assert ok("validate", graph, tmp_path / "cut", "--json").json["max_depth"] == 1
    rows = read_result(tmp_path / "cut")
    for damage in ({1: (None, None)}, {2: (2, 1)}):
        rewrite(tmp_path / "cut", [(v, *row) for v, row in (rows | damage).items()])
        assert delegraph("validate", graph, tmp_path / "cut").code == 1


@pytest.mark.parametrize("by", ["the store", "the edge list"])
def test_directed_rules(ok, delegraph, edge_list, tmp_path, by):
    """Edges of a directed graph lead one way: vertices against an edge need not be reached, and
    such an edge makes no parent.

    The result says whether an edge list is directed.
    """
    edges = edge_list([0, 1, 2, 5], [1, 2, 0, 1])
    ok("build", edges, "-o", tmp_path / "graph.dg", "--directed")
    ok("bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "out")
    graph = edges if by == "the edge list" else tmp_path / "graph.dg"
    right = {0: (0, None), 1: (1, 0), 2: (2, 1), 5: (None, None)}
    assert read_result(tmp_path / "out") == right
    ok("validate", graph, tmp_path / "out")
    for damage, rule in (({2: (1, 0)}, 5), ({5: (2, 1)}, 5), ({2: (None, None)}, 4)):
        rewrite(tmp_path / "out", [(v, *row) for v, row in (right | damage).items()])
        run = delegraph("validate", graph, tmp_path / "out", "--json")
        assert run.code == 1
        assert rule in [broken["rule"] for broken in run.json["rules"]]


def test_a_result_of_the_other_kind_of_edges(ok, delegraph, edge_list, tmp_path):
    edges = edge_list([0], [1])
    ok("build", edges, "-o", tmp_path / "graph.dg")
    ok("bfs", edges, "--source", 0, "-o", tmp_path / "out", "--directed")
    run = delegraph("validate", tmp_path / "graph.dg", tmp_path / "out")
    assert run.code == 2
    assert "directed" in run.err
    ok("bfs", edges, "--source", 0, "-o", tmp_path / "undirected")
    for graph, reason in (
        (edges, "is for undirected edges"),
        (tmp_path / "graph.dg", "is a store"),
    ):
        run = delegraph("validate", graph, tmp_path / "undirected", "--directed")
        assert (run.code, reason in run.err) == (2, True), run.err


def test_a_result_of_another_input_is_judged_and_noted(ok, edge_list, tmp_path):
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    other = edge_list([1, 0, 1], [2, 1, 0], name="other.parquet")
    ok("bfs", other, "--source", 0, "-o", tmp_path / "out")
    run = ok("validate", tmp_path / "graph.dg", tmp_path / "out")
    assert "another graph" in run.err


@pytest.mark.parametrize("by", ["the store", "the edge list"])
def test_strings(ok, delegraph, edge_list, tmp_path, by):
    edges = edge_list(["a", "b"], ["b", "c"])
    ok("build", edges, "-o", tmp_path / "graph.dg")
    ok("bfs", edges, "--source", "a", "-o", tmp_path / "out")
    graph = edges if by == "the edge list" else tmp_path / "graph.dg"
    ok("validate", graph, tmp_path / "out")
    rewrite(tmp_path / "out", [("a", 0, None), ("b", 1, "a"), ("c", 1, "a"), ("x", None, None)])
    run = delegraph("validate", graph, tmp_path / "out", "--json")
    assert [(rule["rule"], rule["example"]) for rule in run.json["rules"]] == [
        (0, ["x"]),
        (5, ["c", "a"]),
    ]


def test_depth_limit_past_32_bits(ok, graph, tmp_path):
    ok("bfs", graph, "--source", 0, "-o", tmp_path / "deep", "--max-depth", 3_000_000_000)
    ok("validate", graph, tmp_path / "deep")


def test_ids_of_another_kind(ok, delegraph, graph, edge_list, tmp_path):
    strings = edge_list(["a"], ["b"], name="s.parquet")
    ok("bfs", strings, "--source", "a", "-o", tmp_path / "s")
    run = delegraph("validate", graph, tmp_path / "s")
    assert run.code == 2
    assert "ids are string" in run.err
    table = pa.table({"vertex": [b"x"], "distance": [0], "parent": pa.array([None], pa.binary())})
    pq.write_table(table, tmp_path / "binary.parquet")
    assert delegraph("validate", graph, tmp_path / "binary.parquet", "--json").code == 2


@pytest.mark.parametrize("name", ["bfs", "components", "pagerank"])
def test_by_an_edge_list_that_is_read_with_weights(ok, edge_list, tmp_path, name):
    src, dst = zip(*EDGES, strict=True)
    edges = edge_list(src, dst, weight=range(len(src)))
    options = ("--source", 0) if name == "bfs" else ()
    ok(name, edges, *options, "-o", tmp_path / "out")
    ok("validate", edges, tmp_path / "out", *(() if name == "pagerank" else ("--weight", "weight")))


def test_shortest_paths_by_an_edge_list_whose_weights_are_not_named(
    ok, delegraph, edge_list, tmp_path
):
    src, dst = zip(*EDGES, strict=True)
    edges = edge_list(src, dst, weight=range(len(src)))
    ok("sssp", edges, "--weight", "weight", "--source", 0, "-o", tmp_path / "out")
    run = delegraph("validate", edges, tmp_path / "out")
    assert (run.code, run.err) == (
        2,
        f"delegraph: {edges}: name the column of weights with --weight COL\n",
    )
    ok("validate", edges, tmp_path / "out", "--weight", "weight")
