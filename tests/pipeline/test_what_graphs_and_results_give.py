"""An open graph's vertices and edges; a result's paths and rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.partition.errors import DelegraphError, InputError
from support.graphs import random_edges


@pytest.fixture(params=["edges", "store", "partitions"])
def path(request, edge_list, tmp_path):
    src, dst = random_edges(5, 200, 500)
    weight = pa.array((src * 7 + dst) % 11 + 1, pa.int32())
    edges = edge_list(src, dst, weight=weight)
    if request.param == "edges":
        return edges
    options: dict[str, Any] = {"partitions": 3} if request.param == "partitions" else {}
    delegraph.build(edges, tmp_path / "graph.dg", weight="weight", **options)
    return tmp_path / "graph.dg"


def opened(path, **options):
    if path.suffix == ".parquet":
        options["weight"] = "weight"
    return delegraph.open(path, **options)


def least_weights(edges: Any) -> dict[frozenset, int]:
    """Return the least weight of each undirected edge, without loops."""
    least: dict[frozenset, int] = {}
    for row in edges.to_pylist():
        pair = frozenset((row["src"], row["dst"]))
        if len(pair) == 2:
            least[pair] = min(least.get(pair, row["weight"]), row["weight"])
    return least


def test_vertices_and_edges(path, edge_list):
    src, dst = random_edges(5, 200, 500)
    weight = (src * 7 + dst) % 11 + 1
    rows = pa.table({"src": src, "dst": dst, "weight": weight})
    with opened(path) as graph:
        vertices = graph.vertices
        assert vertices.to_pylist() == sorted({*src.tolist(), *dst.tolist()})
        assert len(graph) == len(vertices)
        reader, edges = graph.edges, graph.edges.read_all()
        assert edges.column_names == ["src", "dst", "weight"]
        assert least_weights(edges) == least_weights(rows)
        if path.suffix == ".parquet":
            assert edges.to_pylist() == rows.to_pylist()
        else:
            assert len(edges) == len(least_weights(rows))  # each once
        assert graph.edges.read_all().equals(edges)  # anew
        assert f"vertices <b>{len(graph):,}</b>" in graph._repr_html_()
        assert "<svg" in graph._repr_html_()
        assert f"edges <b>{len(least_weights(rows)):,}</b>" in graph._repr_html_()
    for read in (reader.read_all, lambda: graph.vertices, lambda: len(graph)):
        with pytest.raises(DelegraphError, match="is closed"):
            read()
    assert graph
    assert "closed" in graph._repr_html_()


def test_directed_edges_keep_their_direction(edge_list, tmp_path):
    edges = edge_list(["b", "a", "c"], ["a", "c", "b"])
    delegraph.build(edges, tmp_path / "graph.dg", directed=True)
    with delegraph.open(tmp_path / "graph.dg") as graph:
        pairs = {(row["src"], row["dst"]) for row in graph.edges.read_all().to_pylist()}
    assert pairs == {("b", "a"), ("a", "c"), ("c", "b")}


def test_paths(path):
    """A path leads along edges and is as long as the distance."""
    with opened(path) as graph:
        weights = least_weights(graph.edges.read_all())
        source = graph.vertices[0].as_py()
        for result, weighted in ((graph.bfs(source), False), (graph.sssp(source), True)):
            rows = result.table.to_pylist()
            assert any(row["distance"] for row in rows)
            for row in rows:
                found = result.path(row["vertex"])
                if row["distance"] is None:
                    assert found is None
                    continue
                assert found is not None
                assert (found[0], found[-1]) == (source, row["vertex"])
                steps = [frozenset(pair) for pair in pairwise(found)]
                length = sum(weights[step] if weighted else 1 for step in steps)
                assert all(step in weights for step in steps)
                assert length == row["distance"]
        with pytest.raises(InputError, match="5000 is not a vertex of the graph"):
            graph.bfs(source).path(5000)
        with pytest.raises(InputError, match="a result of pagerank has no paths"):
            graph.pagerank().path(source)
        with pytest.raises(InputError, match="has no top"):
            graph.bfs(sources=[source]).top()
        with pytest.raises(InputError, match="count must be a whole number of at least 0"):
            graph.pagerank().top(-1)
        with pytest.raises(InputError, match="'nobody' is not a vertex of the graph"):
            graph.bfs(source).path("nobody")
        assert graph.pagerank().top(0) == []


@pytest.mark.parametrize("id_type", [pa.string(), pa.uuid()], ids=str)
def test_paths_of_other_ids(tmp_path, id_type):
    uuids = [UUID(int=number) for number in (3, 5, 2**127)]
    texts = ["a", "b", "c"]
    names = texts if id_type == pa.string() else uuids
    stored = texts if id_type == pa.string() else [one.bytes for one in uuids]
    table = pa.table({"src": pa.array(stored[:2], id_type), "dst": pa.array(stored[1:], id_type)})
    pq.write_table(table, tmp_path / "edges.parquet")
    with delegraph.open(tmp_path / "edges.parquet") as graph:
        assert graph.bfs(names[0]).path(names[2]) == names
        assert graph.edges.read_all().equals(table.cast(graph.edges.schema))
        assert graph.bfs(names[0]).top(1) == [(names[2], 2)]


def test_pandas_takes_a_result(edge_list):
    """Ids above 2^53 beside null are not rounded."""
    large = 2**60
    with delegraph.open(edge_list([large + 1, large + 2, 7], [large + 2, large + 3, 8])) as graph:
        result = graph.bfs(large + 1)
    frame = pandas.DataFrame(result)
    assert frame.columns.tolist() == ["vertex", "distance", "parent"]
    wanted = result.table.to_pylist()
    for column in frame.columns:
        values = [None if value is pandas.NA else value for value in frame[column]]
        assert values == [row[column] for row in wanted]
    rows = list(result)
    assert [row._asdict() for row in rows] == wanted  # None, where pandas does not ask
