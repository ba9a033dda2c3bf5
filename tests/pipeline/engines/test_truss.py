"""Truss numbers against their definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.partition.errors import LimitError
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.truss import TrussProgram
from delegraph.pipeline.build.prepare import BuildOptions
from support.graphs import SHAPES, edges_of, graphs, random_edges, store_options
from support.marks import mostly_nightly, mostly_slow, nightly, slow
from support.programs import run_program, stored


def check(store: Store, folder: Path, **how: Any) -> None:
    """Check the truss numbers of a store by the definition."""
    columns, results = run_program(store, TrussProgram(store.info.edges), folder, **how)
    wanted = reference.truss_numbers(*edges_of(store))
    ends = np.sort([columns["src"], columns["dst"]], axis=0).T.tolist()
    found = dict(zip(map(tuple, ends), columns["truss"].tolist(), strict=True))
    assert len(ends) == len(found)
    assert found == wanted
    for result in results[1:]:
        for values in result.values.values():
            assert isinstance(values, np.ndarray)
            assert not len(values)


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    threads=st.integers(1, 3),
)
def test_against_the_definition(graph, options, ranks, on_disk, threads):
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", ranks=ranks, on_disk=on_disk, threads=threads)


CLIQUES = np.concatenate([np.triu_indices(size, 1) for size in range(3, 12)], axis=1)
GRAPHS: dict[str, tuple[Any, Any]] = {
    **{name: SHAPES[name] for name in ("two vertices", "self-loop", "clique", "star", "cliques")},
    "a dense graph": random_edges(5, 60, 1200),
    "cliques in a clique": (CLIQUES[0], CLIQUES[1]),
    "a ring of triangles": (
        np.r_[0:99, 0:99, 1:99, 0],
        np.r_[100:199, np.r_[1:99, 0], 100:198, 198],
    ),
}


@pytest.mark.parametrize("threads", [2, slow(5)])
@pytest.mark.parametrize("directed", [False, nightly(True)])
@pytest.mark.parametrize("name", mostly_nightly(GRAPHS, "a dense graph", "star"))
def test_shapes(tmp_path, name, directed, threads):
    store = stored(tmp_path, *GRAPHS[name], BuildOptions(directed=directed, order="random"))
    check(store, tmp_path / "out", threads=threads)


EXTREMES = {
    "a vertex alone": ([7], [7], [], (0, 0)),
    "an edge twice": ([1, 2], [2, 1], [2], (2, 0)),
    "a path": ([1, 2, 3], [2, 3, 4], [2] * 3, (2, 0)),
    "a triangle": ([1, 2, 3, 3], [2, 3, 1, 3], [3] * 3, (3, 1)),
    "two triangles": ([1, 2, 3, 1, 2], [2, 3, 1, 4, 4], [3] * 5, (3, 2)),
    "a clique": (*np.triu_indices(6, 1), [6] * 15, (6, 20)),
}


@pytest.mark.parametrize("shape", EXTREMES)
def test_extremes(edge_list, tmp_path, shape):
    src, dst, numbers, facts = EXTREMES[shape]
    edges = edge_list(list(src), list(dst))
    for directed in (False, True):
        result = delegraph.truss(edges, directed=directed)
        assert result["truss"].to_pylist() == numbers
        record = result.record["truss"]
        assert (record["largest"], record["triangles"]) == facts
        ends = list(zip(result["src"].to_pylist(), result["dst"].to_pylist(), strict=True))
        assert ends == sorted(ends)
        assert all(u < v for u, v in ends)
        result.write(tmp_path / f"{directed}")
        verdict = delegraph.validate(edges, tmp_path / f"{directed}")
        assert (verdict["valid"], verdict["judged"]) == (True, "all")


def test_names_of_edges(edge_list):
    """The lesser end of an edge comes first, in the order of strings, whatever its direction."""
    edges = edge_list(["b", "c", "a10", "d"], ["a10", "b", "c", "c"])
    rows = delegraph.truss(edges, directed=True).table.to_pylist()
    assert rows == [
        {"src": "a10", "dst": "b", "truss": 3},
        {"src": "a10", "dst": "c", "truss": 3},
        {"src": "b", "dst": "c", "truss": 3},
        {"src": "c", "dst": "d", "truss": 2},
    ]


REAL = ["email-Eu-core", "luxembourg-osm", "cnr-2000"]


@pytest.mark.parametrize("name", mostly_slow(REAL[:2], "email-Eu-core"))
def test_real_graphs_beside_networkx(real_graph, name):
    """The edges with numbers k or more are NetworkX's k-truss."""
    path = real_graph(name)
    table = pq.read_table(path, columns=["src", "dst"])
    graph = nx.Graph()
    graph.add_edges_from(zip(*(table[end].to_pylist() for end in ("src", "dst")), strict=True))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    result = delegraph.truss(path)
    number = result["truss"].to_numpy()
    for k in (2, 3, 7, int(number.max())):
        left = nx.k_truss(graph, k).edges if k > 2 else graph.edges
        ends = [result[end].to_numpy()[number >= k].tolist() for end in ("src", "dst")]
        assert set(map(frozenset, left)) == set(map(frozenset, zip(*ends, strict=True)))


@pytest.mark.nightly
def test_a_large_graph_is_judged(real_graph, tmp_path):
    path = real_graph("cnr-2000")
    delegraph.truss(path, output=tmp_path / "out")
    assert delegraph.validate(path, tmp_path / "out")["valid"]


def test_what_does_not_fit_is_refused(edge_list, tmp_path):
    """A store, and an edge list, say so before the run; so does the plan."""
    edges = edge_list(*random_edges(1, 10_000, 3_000_000))
    delegraph.build(edges, tmp_path / "graph.dg")
    for graph in (tmp_path / "graph.dg", edges):
        with pytest.raises(LimitError, match="memory"):
            delegraph.truss(graph, output=tmp_path / "out", memory_limit="400MB")
    plan = delegraph.plan(tmp_path / "graph.dg", algorithm="truss")
    assert plan.steps[0].task_bytes > 64 * 2_900_000


def test_missing_and_repeated_rows_are_found(edge_list, tmp_path):
    edges = edge_list(*random_edges(5, 40, 300))
    delegraph.truss(edges, output=tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    turned = table.select(["dst", "src", "truss"]).rename_columns(["src", "dst", "truss"])
    cases = [
        (table, set()),
        (table[3:], {2}),
        (pa.concat_tables([table, table[:1]]), {1}),
        (turned, {1, 2}),
    ]
    for changed, rules in cases:
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
        verdict = delegraph.validate(edges, tmp_path / "out")
        assert {broken["rule"] for broken in verdict["rules"]} == rules
        assert verdict["valid"] == (not rules)
