"""Betweenness with more paths than floats can count, and with a sample of sources."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels import reference
from delegraph.pipeline.algorithms import betweenness
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.build.prepare import BuildOptions
from support.graphs import SHAPES, edges_of
from support.many_paths import diamonds, grid, layers, layers_beside_a_path
from support.marks import nightly, slow
from support.programs import run_program, stored

definition = import_module("networkx.algorithms.centrality.betweenness")


def values_of(folder) -> np.ndarray:
    return np.array(pq.read_table(folder)["betweenness"])


def test_a_chain_of_diamonds(ok, edge_list, tmp_path):
    """Betweenness of a chain of diamonds with 2^1030 paths from end to end."""
    count = 1030
    ok("betweenness", edge_list(*diamonds(count)), "-o", tmp_path / "out")
    i = np.arange(count + 1)
    wanted = np.empty(3 * count + 1)
    wanted[::3] = 9 * i * (count - i) + 0.5 * (i > 0) + 0.5 * (i < count)
    wanted[1::3] = wanted[2::3] = (3 * i[:-1] + 1) * (3 * (count - 1 - i[:-1]) + 1) / 2
    np.testing.assert_allclose(values_of(tmp_path / "out"), wanted, rtol=1e-12)


def test_layers_of_ten(ok, edge_list, tmp_path):
    """Betweenness of layers with 10^329 paths from the first one to the last."""
    ok("betweenness", edge_list(*layers(10, 330)), "-o", tmp_path / "out", "--directed")
    layer = np.arange(3300) // 10
    values = values_of(tmp_path / "out")
    np.testing.assert_allclose(values, 10 * layer * (329 - layer), rtol=1e-12)
    assert values[1650] == pytest.approx(270_600, rel=1e-12)


@pytest.mark.slow
def test_a_grid_from_a_corner(ok, edge_list, tmp_path):
    src, dst = grid(520)
    ok("betweenness", edge_list(src, dst), "-o", tmp_path / "out", "--sources", "0,")
    u, v = np.concatenate([src, dst]), np.concatenate([dst, src])
    wanted = reference.betweenness(u, v, 520**2, np.array([0]))
    others, _ = betweenness.scale_factors(520**2, 1, directed=False, normalized=False)
    values = values_of(tmp_path / "out")
    assert np.isnan(values[0])
    np.testing.assert_allclose(values[1:], wanted[1:] * others, rtol=1e-11, atol=1e-6)


@pytest.mark.parametrize("graph", [slow(layers), layers_beside_a_path])
@pytest.mark.parametrize("directed", [False, nightly(True)])
@pytest.mark.parametrize(
    ("layout", "ranks", "on_disk"),
    [
        ("one", 1, False),
        slow("one", 1, True),
        nightly("delegate", 2, False),
        slow("delegate", 3, True),
        slow("2d", 3, False),
        slow("1d", 2, True),
    ],
)
def test_each_engine(tmp_path, monkeypatch, graph, directed, layout, ranks, on_disk):
    """Every engine is right where path counts of a level differ by more than a window of
    exponents.
    """
    starts = Mock(wraps=betweenness.WidePaths)
    monkeypatch.setattr(betweenness, "WidePaths", starts)
    options = BuildOptions(directed=directed, order="none")
    if layout != "one":
        options = replace(options, layout=layout, partitions=4)
    src, dst = graph(10, 330)
    store = stored(tmp_path, src, dst, options)
    sources = np.array([0, 1600], np.uint32)
    program = BetweennessProgram(store.info.vertices, sources)
    columns, _ = run_program(store, program, tmp_path / "out", ranks, on_disk)
    assert starts.call_count == ranks  # made once, by each
    wanted = reference.betweenness(*edges_of(store), store.info.vertices, sources)
    np.testing.assert_allclose(columns["betweenness"], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", ["grid", slow("hubs"), slow("cliques")])
@pytest.mark.parametrize("extra_bytes", [0, 1 << 30])
def test_exponents_change_no_bit(tmp_path, monkeypatch, shape, extra_bytes):
    """Betweenness has the same bits with exponents as with plain counts. extra_bytes: bytes for
    sources that one thread each handles.
    """
    monkeypatch.setattr(
        betweenness, "_FEW_EDGES", -1 if not extra_bytes else betweenness._FEW_EDGES
    )
    store = stored(tmp_path, SHAPES[shape][0], SHAPES[shape][1], BuildOptions())
    program = BetweennessProgram(store.info.vertices, np.arange(9, dtype=np.uint32))
    results = []
    for most in (betweenness.MOST_PATHS, 0.0):
        monkeypatch.setattr(betweenness, "MOST_PATHS", most)
        columns, _ = run_program(store, program, tmp_path / f"{most}", extra_bytes=extra_bytes)
        results.append(columns["betweenness"])
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("directed", [False, slow(True)])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    "sources", [[1], slow([0]), slow([1, 2]), [0, 3, 4], slow([0, 1, 2, 3, 4]), slow(None)]
)
def test_sampled_as_networkx_scales_it(
    ok, edge_list, tmp_path, monkeypatch, sources, normalized, directed
):
    """Sampled values agree between the command, Python and NetworkX; the value of an only source is
    unknown.
    """
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_edges_from([(1, 0), (0, 2), (0, 3), (3, 4), (2, 4)])
    edges = edge_list(*zip(*graph.edges, strict=True))
    scaled = dict.fromkeys(graph, 0.0)
    for source in sources or graph:
        parts = definition._single_source_shortest_path_basic(graph, source)[:3]
        scaled, _ = definition._accumulate_basic(scaled, *parts, source)
    how = {"normalized": normalized, "directed": directed}
    definition._rescale(scaled, 5, endpoints=False, sampled_nodes=sources, **how)
    wanted = [None if math.isnan(scaled[v]) else pytest.approx(scaled[v]) for v in range(5)]

    result = delegraph.betweenness(edges, output=tmp_path / "out", sources=sources, **how)
    assert pq.read_table(tmp_path / "out")["betweenness"].to_pylist() == wanted
    has_note = "the value of the source itself is null" in " ".join(result.notes)
    assert has_note == (sources is not None and len(sources) == 1)
    with delegraph.open(edges, directed=directed) as opened:
        parts = opened.betweenness(sources=sources, normalized=normalized)
        assert parts["betweenness"].to_pylist() == wanted
    if sources is not None and len(sources) < 5:
        monkeypatch.setattr("random.Random.sample", lambda self, nodes, k: sources)
        options = {"k": len(sources), "seed": 1, "normalized": normalized, "backend": "delegraph"}
        parts = nx.betweenness_centrality(graph, **options)
        assert [None if math.isnan(parts[v]) else parts[v] for v in range(5)] == wanted


def test_the_star_of_the_definition(ok, edge_list, tmp_path):
    """A leaf as only source gives the hub of a star 1.0: every other path from the leaf leads
    through the hub.
    """
    edges = edge_list([0, 0, 0, 0], [1, 2, 3, 4])
    run = ok("betweenness", edges, "-o", tmp_path / "out", "--sources", "1,", "--normalized")
    assert values_of(tmp_path / "out").tolist()[0] == 1.0
    assert "the value of the source itself is null" in run.err
