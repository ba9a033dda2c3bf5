"""Results in memory of all algorithms of an open graph."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.pipeline.engines.engine import Footprint
from delegraph.pipeline.engines.host.programs import HostProgramEngine
from delegraph.pipeline.engines.host.rows import RowsInMemory, StoreRows
from delegraph.pipeline.result import Result
from support.graphs import random_edges
from support.outputs import digest
from support.processes import printed_alone


@pytest.fixture(scope="module")
def edges(tmp_path_factory) -> Path:
    src, dst = random_edges(4, 400, 1500)
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    weight = ((src * 7 + dst) % 11).astype(np.float32)
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), path)
    return path


@pytest.fixture(scope="module")
def store(edges) -> Path:
    delegraph.build(edges, edges.with_name("graph.dg"), weight="weight")
    return edges.with_name("graph.dg")


@pytest.fixture(scope="module")
def source(edges) -> int:
    return pq.read_table(edges)["src"][0].as_py()


def on_disk(folder: Path) -> pa.Table:
    table = pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))
    return table.replace_schema_metadata(None)


def options_of(name: str, source: int) -> dict[str, Any]:
    return {
        "components": {},
        "pagerank": {"iterations": 9, "unweighted": True},
        "hits": {"max_iterations": 9, "unweighted": True},
        "cores": {"min": 7},
        "degree": {"unweighted": True},
        "sssp": {"source": source, "max_distance": 30.0},
        "closeness": {"sources": 70, "seed": 3},
        "harmonic": {"sources": 70, "seed": 3, "normalized": True},
        "eccentricity": {"sources": 1},
        "betweenness": {"sources": 5, "normalized": True},
    }[name]


ALGORITHMS = [
    *("components", "pagerank", "hits", "cores", "degree", "sssp"),
    *("closeness", "harmonic", "eccentricity", "betweenness"),
]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_as_by_the_function(store, source, tmp_path, name):
    """A result in memory has the values and files of the function with an output, and a record with
    the same keys.
    """
    options = options_of(name, source)
    getattr(delegraph, name)(store, output=tmp_path / "wanted", threads=1, **options)
    with delegraph.open(store, threads=1) as graph:
        result = getattr(graph, name)(**options)
    assert result.name == name
    assert result.table.equals(on_disk(tmp_path / "wanted"))
    result.write(tmp_path / "found")
    assert digest(tmp_path / "found") == digest(tmp_path / "wanted")
    assert delegraph.validate(store, tmp_path / "found")["valid"]
    wanted = json.loads((tmp_path / "wanted.run.json").read_text())
    record = json.loads((tmp_path / "found.run.json").read_text())
    assert record.keys() == wanted.keys() == result.record.keys()
    assert record[name] == wanted[name] == result.record[name]
    with pytest.raises(InputError, match="exists; name another output"):
        result.write(tmp_path / "found")


@pytest.mark.parametrize("kind", ["edges", "edges with weights", "partitions", "from disk"])
def test_of_any_graph(edges, store, source, tmp_path, monkeypatch, kind):
    """Results of any open graph are right; a program that has no room beside the rows of an edge
    list gets a temporary store, made once and removed with the graph.
    """
    path, weight = edges, None if kind == "edges" else "weight"
    if kind == "partitions":
        delegraph.build(edges, tmp_path / "graph.dg", partitions=3, threshold=9, weight="weight")
        path, weight = tmp_path / "graph.dg", None
    if kind == "from disk":
        monkeypatch.setattr(RowsInMemory, "footprint", lambda *_: Footprint(1 << 60, 0, 1))
    with delegraph.open(store) as one, delegraph.open(path, weight=weight) as other:
        each: dict[str, Any] = {"sources": [source]}
        for name in (*ALGORITHMS, "bfs"):
            if name == "sssp" and kind == "edges":
                with pytest.raises(InputError, match=r"opened without weights: give .* weight="):
                    other.sssp(source)
                continue
            options = each if name == "bfs" else options_of(name, source)
            tables = [getattr(graph, name)(**options).table for graph in (one, other)]
            for column in tables[0].column_names:
                if column == "parent":
                    continue
                values = [table[column].to_pandas() for table in tables]
                if column in ("pagerank", "betweenness", "hub", "authority"):
                    np.testing.assert_allclose(*values, rtol=1e-12)
                else:
                    assert values[0].equals(values[1]), (name, column)
        if kind != "edges":
            ranks = [graph.pagerank()["pagerank"].to_numpy() for graph in (one, other)]
            np.testing.assert_allclose(*ranks, rtol=1e-12)
        made, late, vertices = other._made, other.components(), len(one.components())
    assert (made is not None) == (kind == "from disk")
    if made is not None:
        assert not made[0].path.exists()
    assert len(late.table) == vertices  # made when the graph is closed


def test_what_an_open_edge_list_gives_is_valid(edges, source, tmp_path):
    """Results of an open edge list with weights are valid for the graph as it was opened."""
    with delegraph.open(edges, weight="weight", duplicates="max") as graph:
        for name, result in (("bfs", graph.bfs(source)), ("sssp", graph.sssp(source))):
            result.write(tmp_path / name)
            reading: dict[str, Any] = {"weight": "weight", "duplicates": "max"}
            assert delegraph.validate(edges, tmp_path / name, **reading)["valid"]


def test_from_several_sources(store, source, tmp_path):
    vertices = pq.read_table(store / "vertices.parquet")["vertex"].to_pylist()
    sources = [source, *vertices[:70]]
    sources = list(dict.fromkeys(sources))
    with delegraph.open(store) as graph:
        each = graph.bfs(sources=sources)
        near = graph.bfs(sources=",".join(map(str, sources)), together=True, max_depth=1)
    for name, result in (("each", each), ("near", near)):
        depth = None if name == "each" else 1
        wanted = tmp_path / f"wanted {name}"
        together = name == "near"
        delegraph.bfs(store, output=wanted, sources=sources, together=together, max_depth=depth)
        assert result.table.equals(on_disk(wanted))
        result.write(tmp_path / name)
        assert digest(tmp_path / name) == digest(wanted)
    assert each.record["searches"]["sources"] == len(sources)
    with delegraph.open(store) as graph, pytest.raises(InputError, match="give either"):
        graph.bfs(source, sources=sources)  # pyright: ignore[reportCallIssue, reportArgumentType]


def targets_of(graph: delegraph.Graph, place: str) -> set[int]:
    """Return the ids of the arrays of targets that programs read in a place."""
    engine = graph._programs
    assert isinstance(engine, HostProgramEngine)
    assert isinstance(engine.rows, StoreRows)
    assert engine.rows.place == place
    assert engine.graph is not None
    return {id(adjacency.rows.targets) for adjacency in engine.graph.adjacencies}  # pyright: ignore


def test_merged_edges_are_held_once(edges, tmp_path):
    delegraph.build(edges, tmp_path / "parts.dg", partitions=3)
    with delegraph.open(tmp_path / "parts.dg") as graph:
        for ask in (graph.components, lambda: graph.closeness(sources=3), graph.pagerank):
            ask()
            (rows,) = targets_of(graph, "merged")
            assert rows == id(graph._engine.graph.targets)  # pyright: ignore


def test_edges_are_held_once(store, source):
    """Edges are held once for searches and programs, and loaded again with weights."""
    with delegraph.open(store) as graph:
        graph.components()
        (rows,) = targets_of(graph, "memory")
        assert rows == id(graph._engine.graph.targets)  # pyright: ignore
        unweighted = graph._programs.graph  # pyright: ignore
        graph.closeness(sources=3)
        assert graph._programs.graph is unweighted  # pyright: ignore
        graph.sssp(source)
        assert graph._programs.graph is not unweighted  # pyright: ignore


WITHIN_A_LIMIT = """
import sys
import delegraph
from delegraph.partition.disk.memory import return_compiler
from delegraph.partition.errors import InputError
from delegraph.pipeline.engines.engine import CODE_BYTES
from delegraph.pipeline.run.plan import held_now

with delegraph.open(sys.argv[1], threads=1) as graph:
    wanted = graph.components()
    assert wanted.record["components"]["method"] == "in memory"
return_compiler()  # as a run does near its limit
limit = held_now() + CODE_BYTES  # enough to read from disk; in memory needs half as much again
with delegraph.open(sys.argv[1], threads=1, memory_limit=limit) as graph:
    result = graph.components()
    assert result.record["components"]["method"] == "streamed"
    assert result.table.equals(wanted.table)
    try:
        graph.bfs(sources=range(5000))
    except InputError as error:
        print(error)
"""


def test_within_a_limit(tmp_path):
    """A graph that does not fit its limit is read from disk, and a program that needs more is
    refused.
    """
    src, dst = random_edges(2, 100_000, 6_000_000)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    delegraph.build(tmp_path / "edges.parquet", tmp_path / "graph.dg")
    assert "memory limit" in printed_alone(WITHIN_A_LIMIT, tmp_path / "graph.dg")


def test_personalised_by_a_mapping(store, source, tmp_path):
    weights = {source: 3.0, pq.read_table(store / "vertices.parquet")["vertex"][5].as_py(): 1.0}
    columns = {"vertex": list(weights), "weight": list(weights.values())}
    pq.write_table(pa.table(columns), tmp_path / "weights.parquet")
    with delegraph.open(store) as graph:
        one = graph.pagerank(personalize=weights)
        two = graph.pagerank(personalize=tmp_path / "weights.parquet")
        assert one.table.equals(two.table)
        for wrong in ({source: -1.0}, {source: float("nan")}, {source: 0.0}, {}):
            with pytest.raises(InputError, match="personalize"):
                graph.pagerank(personalize=wrong)
        with pytest.raises(InputError, match="is not a vertex"):
            graph.pagerank(personalize={10**9: 1.0})


def test_libraries_that_are_missing(store, monkeypatch):
    with delegraph.open(store) as graph:
        result = graph.pagerank(iterations=3)
    for name, convert in (("pandas", result.to_pandas), ("polars", result.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InputError, match=f"{name} is missing: pip install {name}"):
            convert()


def test_what_a_result_shows(store, monkeypatch):
    polars = pytest.importorskip("polars")
    with delegraph.open(store) as graph:
        result = graph.pagerank(iterations=3)
    assert isinstance(result, Result)
    assert repr(result).startswith("<Result of pagerank: iterations 3, change ")
    assert len(result) == result.table.num_rows == len(result["pagerank"])
    assert result.to_arrow() is result.table
    assert result.to_pandas()["pagerank"].sum() == pytest.approx(1)
    assert result.to_polars()["pagerank"].sum() == pytest.approx(1)
    assert polars.from_arrow(result.table).equals(polars.DataFrame(result))
    address = result["pagerank"].chunk(0).buffers()[1].address
    assert pa.table(result)["pagerank"].chunk(0).buffers()[1].address == address
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + 10
    assert "<b>PageRank</b>" in html
    assert f"rows <b>{len(result):,}</b>" in html
    assert html.count("<rect ") > 2


def test_ids_are_shown_as_they_are(edge_list):
    """Ids are shown without separators of thousands, which no command takes."""
    with delegraph.open(edge_list([25461, 25461], [1000, 2000])) as graph:
        result = graph.bfs(25461)
    assert repr(result).startswith("<Result of bfs: source 25461, ")
    assert "<td>1000</td><td>1</td>" in result._repr_html_()


def test_names_are_escaped(edge_list):
    with delegraph.open(edge_list(["<b>", "b"], ["b", "&"], id_type=pa.string())) as graph:
        html = graph.components()._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html or "<td>&amp;</td>" in html
    assert html.count("<b>") == html.count("</b>")


def test_a_store_that_is_built_anew_is_noticed(edge_list, tmp_path):
    """A store that is rebuilt while open is refused: names of the new graph would stand beside
    values of the old one.
    """
    delegraph.build(edge_list([0, 0, 0, 1], [1, 2, 3, 2]), tmp_path / "graph.dg")
    with delegraph.open(tmp_path / "graph.dg") as graph:
        assert graph.bfs(0).distance.to_pylist() == [0, 1, 1, 1]
        late = graph.pagerank()
        other = edge_list([3, 3, 3, 2], [1, 2, 0, 1])
        delegraph.build(other, tmp_path / "graph.dg", overwrite=True)
        for ask in (lambda: graph.bfs(0).table, lambda: graph.pagerank().table, lambda: late.table):
            with pytest.raises(DelegraphError, match="has changed since it was opened"):
                ask()


def test_a_column_alone(edge_list):
    """A column is the same whether it is made alone or with the others, and then the table's."""
    path = edge_list([f"v{i}" for i in range(9)], [f"v{i + 1}" for i in range(9)])
    with delegraph.open(path) as graph:
        alone, whole = graph.bfs("v3"), graph.bfs("v3")
    for name in whole.table.column_names:
        assert alone[name].equals(whole.table[name])
        assert alone[name] is alone[name]
    assert "table" not in vars(alone)
    assert alone.table.equals(whole.table)
    assert alone["parent"].equals(whole.parent)
    for result in (delegraph.bfs(path, "v3"), alone):
        with pytest.raises(KeyError, match="nothing"):
            result["nothing"]
