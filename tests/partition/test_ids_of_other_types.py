"""Ids that are UUIDs, or whole numbers in floats and decimals: every way in, and out again."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph as dg
from delegraph.kernels import reference
from delegraph.partition.dictionary import on_disk as dictionary
from delegraph.partition.input.id_types import shown_id
from delegraph.partition.store.store import open_store
from support.graphs import random_edges
from support.marks import mostly_slow

KINDS = {
    "uuid": pa.uuid(),
    "bytes": pa.binary(16),
    "binary": pa.binary(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal": pa.decimal128(38, 0),
    "decimal of cents": pa.decimal128(20, 2),
}
BACK = {"uuid": pa.uuid(), "bytes": pa.binary(16), "binary": pa.binary(16)}
"""Types of ids in results, for kinds whose ids do not come back as int64."""


def column_of(kind: str, ids) -> pa.Array:
    """Return vertices as ids of a kind, in the same order; ids are sparse, and some are
    negative.
    """
    id_type = KINDS[kind]
    if kind in BACK:
        every = [(int(v) ** 3 * 7919).to_bytes(16, "big") for v in ids]
        return pa.array(every, pa.binary(16)).cast(id_type)
    numbers = [int(v) * 7919 - 100_000 for v in ids]
    if pa.types.is_decimal(id_type):
        return pa.array([Decimal(number) for number in numbers], id_type)
    return pa.array(np.array(numbers, id_type.to_pandas_dtype()))


def values_of(kind: str, ids) -> list:
    """Return vertices as ids of a kind, as values of the type that results have."""
    column = column_of(kind, ids)
    return column.cast(BACK.get(kind, pa.int64())).to_pylist()


def typed(value) -> str:
    return str(shown_id(value))


@pytest.fixture(scope="module")
def graph():
    src, dst = random_edges(8, 500, 900)
    distance = reference.distances(src, dst, 500, src[0])
    return src, dst, distance


@pytest.fixture(scope="module", params=mostly_slow(KINDS, "uuid", "double"))
def edges(request, graph, tmp_path_factory):
    """Write an edge list of a kind of ids in two files of several row groups; give the kind and the
    folder.
    """
    kind, (src, dst, _) = request.param, graph
    folder = tmp_path_factory.mktemp("in")
    for number, part in enumerate((slice(0, 500), slice(500, None))):
        table = pa.table({"src": column_of(kind, src[part]), "dst": column_of(kind, dst[part])})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=150)
    return kind, folder


def check_search(table: pa.Table, kind: str, graph) -> None:
    """Check distances against the definition, and that each reached vertex has a parent one nearer
    to the source.
    """
    src, dst, distance = graph
    present = np.unique(np.concatenate([src, dst]))
    back = BACK.get(kind, pa.int64())
    assert table.schema.field("vertex").type == table.schema.field("parent").type == back
    names = values_of(kind, present)
    assert table["vertex"].to_pylist() == names, "by rising id"
    wanted = [None if d < 0 else d for d in distance[present].tolist()]
    assert table["distance"].to_pylist() == wanted
    number = dict(zip(names, present.tolist(), strict=True))
    joined = {*zip(src.tolist(), dst.tolist(), strict=True)}
    for vertex, parent in zip(present.tolist(), table["parent"].to_pylist(), strict=True):
        if parent is None:
            assert distance[vertex] <= 0
        else:
            assert distance[number[parent]] == distance[vertex] - 1
            assert {(vertex, number[parent]), (number[parent], vertex)} & joined


def test_searches_of_edge_lists_and_stores(edges, graph, tmp_path, monkeypatch):
    """Searches scan an edge list, read a store built in memory, and read a store whose ids went
    through files.
    """
    kind, folder = edges
    source = typed(values_of(kind, graph[0][:1])[0])
    monkeypatch.setattr(dictionary, "RANGE_BYTES", 1 << 10)  # several of them
    dg.build(folder, tmp_path / "memory.dg")
    (tmp_path / "scratch").mkdir()
    dg.build(folder, tmp_path / "files.dg", scratch=str(tmp_path / "scratch"), partitions=3)
    names = ["memory.dg", "files.dg"]
    ids = [pq.read_table(tmp_path / name / "vertices.parquet")["vertex"] for name in names]
    assert ids[0].equals(ids[1])
    out = tmp_path
    for read in (folder, *(tmp_path / name for name in names)):
        out = tmp_path / f"{read.name} found"
        record = dg.bfs(read, source, output=out).record
        check_search(pq.read_table(out), kind, graph)
        assert typed(record["search"]["source"]) == source
        kinds = {"uuid": "uuid", "bytes": "fixed_size_binary[16]"}
        kinds["binary"] = kinds["bytes"]
        assert record["graph"]["id_type"] == kinds.get(kind, "int64")
        assert json.loads((tmp_path / f"{out.name}.run.json").read_text()) == record
        for judged in (folder, tmp_path / "files.dg"):
            assert dg.validate(judged, out)["valid"]
    damaged = pq.read_table(out)
    parents = damaged["parent"].combine_chunks().take(pa.array(range(len(damaged))[::-1]))
    pq.write_table(damaged.set_column(2, "parent", parents), next(out.glob("*.parquet")))
    verdict = dg.validate(folder, out)
    assert not verdict["valid"]
    assert json.loads(json.dumps(verdict)) == verdict


def test_on_disk(edges, graph, tmp_path):
    """A search with little memory reads a store's edges from disk as they are needed."""
    kind, folder = edges
    dg.build(folder, tmp_path / "graph.dg", partitions=2)
    source = typed(values_of(kind, graph[0][:1])[0])
    with pytest.raises(dg.InputError) as refused:
        dg.bfs(tmp_path / "graph.dg", source, output=tmp_path / "out", memory_limit="1MB")
    least = str(refused.value).split('memory_limit="')[1].split('"')[0]
    record = dg.bfs(
        tmp_path / "graph.dg", source, output=tmp_path / "out", memory_limit=least
    ).record
    assert record["search"]["method"] != "in memory"
    check_search(pq.read_table(tmp_path / "out"), kind, graph)


def test_from_python(edges, graph):
    """Python opens files and a table of every kind of ids, with sources as Python values."""
    kind, folder = edges
    src, dst, _ = graph
    first = values_of(kind, src[:1])[0]
    ids = [first, float(first), str(float(first))] if kind not in BACK else [first, typed(first)]
    table = pa.table({"src": column_of(kind, src), "dst": column_of(kind, dst)})
    for opened in (folder, table):
        with dg.open(opened) as graph_opened:
            for source in ids:
                check_search(graph_opened.bfs(source).table, kind, graph)
            components = graph_opened.components()
            assert components["component"].type == BACK.get(kind, pa.int64())
            result = graph_opened.bfs(sources=[first]).table
            assert set(result["source"].to_pylist()) == {first}
            nearest = graph_opened.bfs(sources=[first], together=True)["nearest"].to_pylist()
            assert set(nearest) <= {first, None}
            if kind not in BACK:
                assert any("results name ids as int64" in note for note in graph_opened.notes)
            assert typed(first) in repr(graph_opened.bfs(first))


def test_sources_in_a_file(edges, graph, tmp_path, ok):
    """Sources in a file have the graph's type of ids, or another type that has the same values."""
    kind, folder = edges
    first = values_of(kind, graph[0][:2])
    same = ["uuid", "bytes", "binary"] if kind in BACK else ["double", "decimal"]
    out = tmp_path
    for number, other in enumerate(same):
        seeds = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"vertex": column_of(other, np.unique(graph[0][:2]))}), seeds)
        out = tmp_path / f"of {number}"
        dg.bfs(folder, output=out, sources=seeds)
        assert set(pq.read_table(out)["source"].to_pylist()) == set(first)
        assert dg.validate(folder, out)["valid"]
    assert dg.info(out)["searches"] == len(set(first))
    listed = ",".join(sorted({typed(value) for value in first}))
    ok("bfs", folder, f"--sources={listed}", "--together", "-o", tmp_path / "together")
    ok("validate", folder, tmp_path / "together")
    nearest = pq.read_table(tmp_path / "together")["nearest"]
    assert set(nearest.to_pylist()) - {None} == set(first)


def test_other_commands(edges, ok, tmp_path):
    """Commands that name vertices show ids of every kind."""
    _, folder = edges
    dg.build(folder, tmp_path / "graph.dg")
    ok("info", tmp_path / "graph.dg")
    for words in (("components",), ("pagerank", "--iterations", 5), ("closeness", "--sources", 3)):
        out = tmp_path / words[0]
        ok(words[0], tmp_path / "graph.dg", *words[1:], "-o", out)
        ok("validate", tmp_path / "graph.dg", out)
        facts = ok("info", out, "--json").json
        if words[0] == "pagerank":
            vertex = pq.read_table(out)["vertex"].to_pylist()
            assert facts["top"][0][0] in [shown_id(value) for value in vertex]
            ok("report", out, "-o", tmp_path / "page.html")
            assert str(facts["top"][0][0]) in (tmp_path / "page.html").read_text()
            ok("convert", out, "-o", tmp_path / "ranks.txt")
            first = (tmp_path / "ranks.txt").read_text().split()[0]
            assert first == typed(vertex[0])
    ok("convert", tmp_path / "graph.dg", "-o", tmp_path / "graph.npz")
    named = np.load(tmp_path / "graph.npz")["vertex"].tolist()
    vertex = pq.read_table(tmp_path / "components")["vertex"].to_pylist()
    assert named == [shown_id(value) for value in vertex]
    assert open_store(tmp_path / "graph.dg").info.vertices == len(vertex)


def test_a_uuid_that_is_no_vertex(edges, delegraph, tmp_path):
    kind, folder = edges
    wrong = str(UUID(int=1)) if kind in BACK else "1"
    run = delegraph("bfs", folder, "--source", wrong, "-o", tmp_path / "out")
    assert run.code == 2
    name = repr(wrong) if kind in BACK else wrong
    assert f"source {name} is not a vertex of the graph" in run.err


@pytest.mark.slow
@given(st.data())
def test_components_against_the_definition(data):
    """Components of random graphs with a random kind of ids name each vertex's least id."""
    kind = data.draw(st.sampled_from(list(KINDS)))
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 30)] * 2), min_size=1, max_size=25))
    src, dst = np.array(rows).T
    label = np.arange(31)
    for _ in range(31):
        np.minimum.at(label, dst, label[src])
        np.minimum.at(label, src, label[dst])
    present = np.unique(np.concatenate([src, dst]))
    table = pa.table({"src": column_of(kind, src), "dst": column_of(kind, dst)})
    with dg.open(table, device="cpu", threads=1) as opened:
        result = opened.components().table
    assert result["vertex"].to_pylist() == values_of(kind, present)
    assert result["component"].to_pylist() == values_of(kind, label[present])
