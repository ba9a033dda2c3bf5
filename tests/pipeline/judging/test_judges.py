"""Judges: the rules of each, judging within limits, and the part that is left unjudged."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.pipeline.judging import distances
from delegraph.pipeline.judging.graph import JudgedEdges
from support.graphs import random_edges
from support.many_paths import diamonds, layers_beside_a_path


def change(folder, name, values, keep=True):
    """Set values of a result's column by vertex, in the first file. keep: whether metadata stay."""
    path = min(folder.glob("*.parquet"))
    table = pq.read_table(path)
    vertex = table["vertex"].to_pylist()
    column = table[name].to_pylist()
    for key, value in values.items():
        column[vertex.index(key)] = value
    at = table.schema.get_field_index(name)
    field = pa.field(name, table.schema.field(name).type)
    table = table.set_column(at, field, pa.array(column, field.type))
    if not keep:
        table = table.replace_schema_metadata(None)
    pq.write_table(table, path)


def rules_of(graph, result, **options):
    verdict = delegraph.validate(graph, result, threads=1, **options)
    assert verdict["valid"] == (not verdict["rules"] and verdict["judged"] != "none")
    return {rule["rule"] for rule in verdict["rules"]}


@pytest.mark.parametrize("parents", [{1: 999}, {5: 999}, {1: 999, 5: 999}, {6: 2}])
def test_paths_to_whom_no_parent_leads(edge_list, tmp_path, parents):
    """A parent that is no vertex is found also at the source and at unreached vertices."""
    edges = edge_list([1, 2, 5], [2, 3, 6], w=[1, 2, 1])
    delegraph.sssp(edges, 1, output=tmp_path / "out", weight="w", threads=1)
    assert rules_of(edges, tmp_path / "out", weight="w") == set()
    change(tmp_path / "out", "parent", parents)
    assert rules_of(edges, tmp_path / "out", weight="w") == {1}


def test_a_nearest_source_that_is_no_vertex(edge_list, tmp_path):
    edges = edge_list([1, 2, 5], [2, 3, 6])
    delegraph.bfs(edges, output=tmp_path / "out", sources=[1], together=True, threads=1)
    change(tmp_path / "out", "nearest", {5: 999})
    assert rules_of(edges, tmp_path / "out") == {4}


@pytest.mark.parametrize("name", ["closeness", "harmonic", "eccentricity"])
@pytest.mark.parametrize("sources", [[1, 2], 2, None])
def test_rows_of_vertices_that_were_not_asked_for(edge_list, tmp_path, name, sources):
    """A result with rows of other vertices than its sources is found wrong, though rows are as many
    and each has its vertex's right value.
    """
    edges = edge_list([1, 2, 3, 4], [2, 3, 4, 1])  # all vertices are alike
    getattr(delegraph, name)(edges, output=tmp_path / "out", sources=sources, threads=1)
    assert rules_of(edges, tmp_path / "out") == set()
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    assert rules_of(edges, tmp_path / "out") == {3}
    if sources is not None:
        others = sorted({1, 2, 3, 4} - set(table["vertex"].to_pylist()))
        vertex = table.schema.field("vertex")
        pq.write_table(table.set_column(0, vertex, pa.array(others, vertex.type)), path)
        assert rules_of(edges, tmp_path / "out") == {3}


def test_a_share_less_than_jumps_make(edge_list, tmp_path):
    """A missing value of one vertex is found among very many vertices, although it changes the sum
    very little.
    """
    n = 300_000
    edges = edge_list(np.arange(n), (np.arange(n) + 1) % n)
    delegraph.pagerank(edges, output=tmp_path / "out", tolerance=1e-4, dangling="none", threads=1)
    change(tmp_path / "out", "pagerank", {7: 0.0})
    assert rules_of(edges, tmp_path / "out") == {4}


class TestBetweenness:
    """Betweenness of the path 1-2-3-4-5."""

    @pytest.fixture
    def edges(self, edge_list):
        return edge_list([1, 2, 3, 4], [2, 3, 4, 5])

    @pytest.mark.parametrize("sources", [[1, 3], [1], 2, None])
    @pytest.mark.parametrize("normalized", [False, True])
    def test_every_value_is_judged(self, edges, tmp_path, sources, normalized):
        options = {"sources": sources, "normalized": normalized}
        delegraph.betweenness(edges, output=tmp_path / "out", threads=1, **options)
        assert rules_of(edges, tmp_path / "out") == set()
        change(tmp_path / "out", "betweenness", {3: 1e6})
        assert rules_of(edges, tmp_path / "out") == {3, 4}

    def test_values_that_add_up(self, edges, tmp_path):
        delegraph.betweenness(edges, output=tmp_path / "out", threads=1)
        change(tmp_path / "out", "betweenness", {2: 4.0, 3: 3.0})
        assert rules_of(edges, tmp_path / "out") == {4}

    def test_an_only_source_has_no_value(self, edges, tmp_path):
        delegraph.betweenness(edges, output=tmp_path / "out", sources=[2], threads=1)
        assert rules_of(edges, tmp_path / "out") == set()
        change(tmp_path / "out", "betweenness", {2: 0.0})
        assert rules_of(edges, tmp_path / "out") == {1}
        change(tmp_path / "out", "betweenness", {2: None, 3: None})
        assert 1 in rules_of(edges, tmp_path / "out")

    def test_sources_that_it_does_not_say(self, ok, delegraph, edges, tmp_path, monkeypatch):
        from delegraph.pipeline.algorithms import many_sources

        monkeypatch.setattr(many_sources, "_MOST_IDS", 1)
        ok("betweenness", edges, "-o", tmp_path / "out", "--sources", "1,3")
        run = delegraph("validate", edges, tmp_path / "out", "--json")
        assert run.code == 1
        assert (run.json["valid"], run.json["judged"], run.json["unjudged"]) == (False, "none", 5)
        assert run.json["rules"] == []
        run = delegraph("validate", edges, tmp_path / "out")
        assert (run.code, run.out) == (
            1,
            "not judged: the result does not name its sources: give them with --sources FILE\n",
        )
        pq.write_table(pa.table({"vertex": [3, 1]}), tmp_path / "some.parquet")
        for sources in ("1,3", tmp_path / "some.parquet"):
            run = ok("validate", edges, tmp_path / "out", "--sources", sources)
            assert run.out == "valid: 5 of 5 vertices, with paths from 2 sources computed again\n"
        run = delegraph("validate", edges, tmp_path / "out", "--sources", "1,2")
        assert run.code == 2
        assert "--sources: these are not the sources of the result" in run.err
        ok("components", edges, "-o", tmp_path / "c")
        run = delegraph("validate", edges, tmp_path / "c", "--sources", "1,2")
        assert (run.code, "is a result of components" in run.err) == (2, True)

    def test_nothing_is_known_without_metadata(self, delegraph, ok, edges, tmp_path):
        ok("betweenness", edges, "-o", tmp_path / "out")
        change(tmp_path / "out", "betweenness", {}, keep=False)
        run = delegraph("validate", edges, tmp_path / "out")
        assert (run.code, run.out[:11]) == (1, "not judged:")
        change(tmp_path / "out", "betweenness", {3: -1.0})
        run = delegraph("validate", edges, tmp_path / "out")
        assert (run.code, run.out[:13]) == (1, "wrong: rule 1")

    def test_the_result_says_its_sources(self, edges, tmp_path):
        delegraph.betweenness(edges, output=tmp_path / "out", sources=[3, 1], threads=1)
        (path,) = (tmp_path / "out").glob("*.parquet")
        (facts,) = (
            json.loads(value)
            for value in pq.read_schema(path).metadata.values()
            if b"source_ids" in value
        )
        assert json.loads(facts["options"]["source_ids"]) == [3, 1]


@pytest.fixture
def results(edge_list, tmp_path):
    """Build a graph and results of it by four questions, and return their folder."""
    src, dst = random_edges(5, 300, 900)
    edges = edge_list(src, dst)
    delegraph.build(edges, tmp_path / "graph.dg", directed=True, partitions=2, threads=1)
    for name in ("closeness", "harmonic", "eccentricity", "betweenness"):
        getattr(delegraph, name)(tmp_path / "graph.dg", output=tmp_path / name, threads=1)
    return tmp_path


def test_without_room_for_rows(results, monkeypatch):
    """Distances are judged from streamed edges where rows have no room; paths are then not
    counted.
    """
    monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)
    for name in ("closeness", "harmonic", "eccentricity"):
        verdict: Any = delegraph.validate(results / "graph.dg", results / name, threads=1)
        assert (verdict["valid"], verdict["judged"], verdict["unjudged"]) == (True, "all", 0)
        assert verdict["found_anew"] == verdict["vertices"]
    verdict = delegraph.validate(results / "graph.dg", results / "betweenness", threads=1)
    assert (verdict["valid"], verdict["judged"]) == (True, "some")
    assert verdict["unjudged"] == verdict["vertices"]


class TestCores:
    """Core numbers of a clique of four, joined to a triangle whose third vertex has a tail."""

    @pytest.fixture
    def graph(self, edge_list, tmp_path):
        edges = edge_list([1, 1, 1, 2, 2, 3, 4, 5, 5, 6, 7], [2, 3, 4, 3, 4, 4, 5, 6, 7, 7, 8])
        delegraph.cores(edges, output=tmp_path / "out", threads=1)
        delegraph.cores(edges, output=tmp_path / "dense", min=2, threads=1)
        return edges

    @pytest.mark.parametrize(("value", "rules"), [(-1, {1}), (None, {1}), (2, {2}), (4, {2})])
    def test_every_value_is_judged(self, graph, tmp_path, value, rules):
        assert rules_of(graph, tmp_path / "out") == set()
        change(tmp_path / "out", "core", {3: value})
        assert rules_of(graph, tmp_path / "out") == rules

    def test_the_vertices_of_a_core(self, graph, tmp_path):
        assert rules_of(graph, tmp_path / "dense") == set()
        (path,) = (tmp_path / "dense").glob("*.parquet")
        table = pq.read_table(path)
        assert table["vertex"].to_pylist() == [1, 2, 3, 4, 5, 6, 7]
        pq.write_table(table.slice(1), path)
        assert rules_of(graph, tmp_path / "dense") == {4}
        vertex = pa.array([8, 2, 3, 4, 5, 6, 7], table["vertex"].type)
        pq.write_table(table.set_column(0, table.schema.field(0), vertex), path)
        assert rules_of(graph, tmp_path / "dense") == {2, 4}

    def test_without_room_for_rows(self, ok, graph, tmp_path, monkeypatch):
        monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)
        for name, vertices in (("out", 8), ("dense", 7)):
            verdict: Any = delegraph.validate(graph, tmp_path / name, threads=1)
            assert (verdict["valid"], verdict["judged"]) == (True, "some")
            assert verdict["unjudged"] == vertices
            told = f"; {vertices} values are judged by their neighbours only\n"
            assert ok("validate", graph, tmp_path / name).out.endswith(told)
            change(tmp_path / name, "core", {6: 3})
            assert rules_of(graph, tmp_path / name) == {3}

    @pytest.mark.parametrize("room", [True, False])
    def test_directed_edges_count_at_both_ends(self, edge_list, tmp_path, monkeypatch, room):
        if not room:
            monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)
        edges = edge_list([1, 2, 2], [2, 1, 3])
        delegraph.cores(edges, output=tmp_path / "out", directed=True, threads=1)
        assert rules_of(edges, tmp_path / "out") == set()
        change(tmp_path / "out", "core", {1: 3})
        assert rules_of(edges, tmp_path / "out") == {2 if room else 3}


class TestStrong:
    """Strong components of two rings, an edge from the first to the second, and a path behind."""

    @pytest.fixture(params=[True, False])
    def graph(self, request, edge_list, tmp_path, monkeypatch):
        """A graph with and without room for its rows."""
        if not request.param:
            monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)
        edges = edge_list([1, 2, 3, 3, 4, 5, 5, 6], [2, 3, 1, 4, 5, 4, 6, 7])
        delegraph.strong(edges, output=tmp_path / "out", directed=True, threads=1)
        return edges

    @pytest.mark.parametrize(
        ("changed", "rules"),
        [
            ({}, set()),
            ({2: None}, {1, 2, 4}),
            ({2: 3}, {1, 2, 4}),
            ({2: 2}, {2, 4}),
            ({3: 3}, {2, 4}),
            ({7: 6}, {2}),
            ({4: 1, 5: 1}, {2}),
            ({1: 2, 2: 2, 3: 2}, {3}),
            ({4: 4, 5: 5}, {4}),
            ({1: 1, 2: 2, 3: 3}, {4}),
        ],
    )
    def test_every_rule(self, graph, tmp_path, changed, rules):
        change(tmp_path / "out", "component", changed)
        assert rules_of(graph, tmp_path / "out") == rules

    def test_every_cell(self, graph, tmp_path):
        for vertex, was in {3: 1, 5: 4, 7: 7}.items():
            for value in (1, 3, 4, 6, 7):
                change(tmp_path / "out", "component", {vertex: value})
                assert bool(rules_of(graph, tmp_path / "out")) == (value != was)
            change(tmp_path / "out", "component", {vertex: was})

    def test_undirected_edges_lead_both_ways(self, graph, tmp_path):
        delegraph.strong(graph, output=tmp_path / "both", threads=1)
        assert rules_of(graph, tmp_path / "both") == set()
        change(tmp_path / "both", "component", {7: 7})
        assert rules_of(graph, tmp_path / "both") == {4}


@pytest.mark.parametrize("room", [True, False])
def test_what_takes_too_long_is_not_judged(ok, delegraph, results, monkeypatch, room):
    if not room:
        monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)
    monkeypatch.setattr(distances, "MOST_LOOKED", 1 if room else 30_000)
    run = ok("validate", results / "graph.dg", results / "closeness", "--threads", 1, "--json")
    assert run.json["judged"] == "some"
    assert 0 < run.json["found_anew"] < run.json["vertices"]
    assert run.json["unjudged"] == run.json["rows"] - run.json["found_anew"]
    run = ok("validate", results / "graph.dg", results / "closeness", "--threads", 1)
    assert run.out.startswith("valid as far as judged: ")
    assert run.out.endswith(" values are judged by their range only\n")
    monkeypatch.setattr(distances, "MOST_LOOKED", 0)
    for name in ("closeness", "betweenness"):
        run = delegraph("validate", results / "graph.dg", results / name)
        assert run.code == 1
        assert run.out.startswith("not judged: ")
        assert run.out.endswith(" values again takes too long\n")


def test_sums_alone_find_what_is_changed(ok, delegraph, results, monkeypatch):
    monkeypatch.setattr(
        "delegraph.pipeline.judging.centralities.dependencies_anew", lambda *args: None
    )
    run = ok("validate", results / "graph.dg", results / "betweenness")
    assert run.out.endswith(" values are judged by their sum only\n")
    (path,) = (results / "betweenness").glob("*.parquet")
    table = pq.read_table(path)
    vertex = table["vertex"][int(np.argmax(table["betweenness"]))].as_py()
    change(results / "betweenness", "betweenness", {vertex: 0.0})
    run = delegraph("validate", results / "graph.dg", results / "betweenness", "--json")
    assert [rule["rule"] for rule in run.json["rules"]] == [3]


@pytest.mark.parametrize("together", [True, False])
def test_rows_of_each_source_in_any_order(edge_list, tmp_path, together, monkeypatch):
    """Rows of a source need not be adjacent: another program may have written them."""
    monkeypatch.setattr(JudgedEdges, "take", lambda self, wanted: False)  # few at a time
    edges = edge_list(*random_edges(5, 300, 900))
    vertices = pq.read_table(edges)["src"].unique().to_pylist()[:11]
    delegraph.bfs(edges, output=tmp_path / "out", sources=vertices, threads=1)
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(table))
    if together:
        sources = table["source"].to_numpy()
        rank = dict(zip(vertices, rng.permutation(len(vertices)), strict=True))
        order = order[np.argsort([rank[source] for source in sources[order]], kind="stable")]
    pq.write_table(table.take(order), path)
    assert rules_of(edges, tmp_path / "out") == set()
    distance = table["distance"].to_numpy().copy()
    distance[np.argmax(distance)] += 1
    table = table.set_column(2, "distance", pa.array(distance, table.schema.field(2).type))
    pq.write_table(table.take(order), path)
    assert rules_of(edges, tmp_path / "out") == {3}
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    assert rules_of(edges, tmp_path / "out") == {0, 3}


@pytest.mark.parametrize(
    "edges_of", [lambda: diamonds(1030), lambda: layers_beside_a_path(10, 330)]
)
def test_more_paths_than_a_double_can_say(edge_list, tmp_path, edges_of):
    edges = edge_list(*edges_of())
    for sources in ([0, 5], [0]):
        out = tmp_path / "out"
        delegraph.betweenness(edges, output=out, sources=sources, overwrite=True, threads=1)
        assert rules_of(edges, out) == set()
        change(out, "betweenness", {1500: 7.5})
        assert rules_of(edges, out) == {3, 4}


def test_uuids(edge_list, tmp_path):
    """Sources and vertices of 16 bytes are recognized in the record of a result."""
    ids = [UUID(int=number) for number in (7, 1, 5, 3)]
    values = pa.array([value.bytes for value in ids], pa.uuid())
    edges = edge_list(values.slice(0, 3), values.slice(1, 3))
    sources = [str(ids[0]), str(ids[2])]
    questions = {"betweenness": {}, "closeness": {}, "bfs": {}, "bfs_together": {"together": True}}
    for name, options in questions.items():
        command = getattr(delegraph, name.partition("_")[0])
        command(edges, output=tmp_path / name, sources=sources, threads=1, **options)
        verdict = delegraph.validate(edges, tmp_path / name, threads=1)
        assert (verdict["valid"], verdict["judged"]) == (True, "all"), name
