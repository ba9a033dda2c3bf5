"""NetworkX's functions by delegraph against NetworkX's own."""

from __future__ import annotations

import ast
import copy
import functools
import gc
import logging
import math
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import networkx as nx
import pytest
from hypothesis import given, settings

from delegraph.partition.errors import InputError
from delegraph.pipeline import api
from delegraph.pipeline.networkx import backend
from delegraph.pipeline.networkx.info import FUNCTIONS, get_info

KINDS = {
    "graph": nx.Graph,
    "digraph": nx.DiGraph,
    "multigraph": nx.MultiGraph,
    "multidigraph": nx.MultiDiGraph,
}


@pytest.fixture(autouse=True)
def _quiet_cache():
    with nx.config(warnings_to_ignore={"cache"}):
        yield


COMMUNITIES = ("leiden_communities", "louvain_communities")
CLUSTERING = ("clustering", "average_clustering", "transitivity")

INTEGERS = st.integers(0, 9)


@st.composite
def graphs(draw, kinds=tuple(KINDS), weights: Any = INTEGERS) -> Any:
    """Draw a small graph, with nodes without edges, parallel edges, edges without a weight."""
    graph = KINDS[draw(st.sampled_from(kinds))]()
    nodes = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=len(NODES), unique=True))
    graph.add_nodes_from(nodes)
    ends = st.sampled_from(nodes)
    for u, v, weight in draw(st.lists(st.tuples(ends, ends, weights | st.none()), max_size=30)):
        graph.add_edge(u, v, **({} if weight is None else {"weight": weight}))
    return graph


NODES = [*range(7), "a", "b", ("c", 1), 2.5, b"e", frozenset({3})]


def of_networkx(name: str) -> Any:
    """Return NetworkX's function of that name."""
    return getattr(nx.community if name in COMMUNITIES else nx, name)


def same(function: str, graph: Any, *args: Any, ordered: bool = True, **options: Any) -> None:
    """Check that delegraph and NetworkX give the same answer or error, with dicts and lists in the
    same order.
    """
    wanted, answer = (
        _outcome(of_networkx(function), graph, *args, backend=name, **options)
        for name in ("networkx", "delegraph")
    )
    assert type(answer) is type(wanted)
    if isinstance(wanted, dict):
        assert not ordered or list(answer) == list(wanted)
        assert answer.keys() == wanted.keys()
        for node, value in wanted.items():
            assert answer[node] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
            assert type(answer[node]) in (int, float)
    else:
        assert answer == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


def _outcome(function: Any, *args: Any, **options: Any) -> Any:
    try:
        answer = function(*args, **options)
        return list(answer) if isinstance(answer, Iterator) else answer
    except (nx.NetworkXException, ValueError, ZeroDivisionError, KeyError) as error:
        return f"{type(error).__name__}: {error}"


@given(graphs())
def test_components(graph):
    weakly = "weakly_" if graph.is_directed() else ""
    same(f"{weakly}connected_components", graph)
    same(f"number_{weakly}connected_components", graph)
    same(f"is_{weakly}connected", graph)
    if not weakly:
        same("node_connected_component", graph, next(iter(graph)))


@given(graphs())
def test_strong_components(graph):
    """NetworkX refuses undirected graphs, and yields components in the order of its search."""
    for function in ("number_strongly_connected_components", "is_strongly_connected"):
        same(function, graph)
    if graph.is_directed():
        wanted = nx.strongly_connected_components(graph, backend="networkx")
        found = list(nx.strongly_connected_components(graph, backend="delegraph"))
        number = {node: i for i, node in enumerate(graph)}
        assert found == sorted(wanted, key=lambda nodes: min(map(number.__getitem__, nodes)))
    else:
        same("strongly_connected_components", graph)


@given(graphs(), st.none() | st.integers(-1, 5) | st.sampled_from([1.5, math.inf]), st.data())
def test_searches(graph, cutoff, data):
    node = data.draw(st.sampled_from(list(graph)))
    same("single_source_shortest_path_length", graph, node, cutoff=cutoff, ordered=False)
    same("descendants", graph, node)
    same("descendants_at_distance", graph, node, data.draw(st.integers(-1, 4)))
    if not graph.is_directed():
        same("single_target_shortest_path_length", graph, node, cutoff=cutoff, ordered=False)
    hops = nx.single_source_shortest_path_length(graph, node, backend="delegraph")
    assert list(hops.values()) == sorted(hops.values())


@given(
    graphs() | graphs(weights=st.floats(0, 100, width=32)),
    st.none() | st.integers(-1, 20) | st.sampled_from([1.5, math.inf]),
    st.sampled_from(["weight", "other", None]),
    st.data(),
)
def test_shortest_paths(graph, cutoff, weight, data):
    node = data.draw(st.sampled_from(list(graph)))
    how = {"cutoff": cutoff, "weight": weight}
    same("single_source_dijkstra_path_length", graph, node, **how, ordered=False)
    wanted = nx.single_source_dijkstra_path_length(graph, node, **how)
    assert nx.single_source_dijkstra_path_length(graph, node, **how, backend="delegraph") == wanted


@pytest.mark.parametrize("cutoff", [0, 1, 1.5, 2, -1, math.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_cutoffs(kind, cutoff):
    """NetworkX stops after a level, or before a distance, that is beyond; of parallel edges the
    lightest counts.
    """
    graph = KINDS[kind]()
    graph.add_weighted_edges_from(
        [(0, 1, 0), (1, 2, 1), (2, 3, 1), (1, 2, 9), (3, 4, 2), (3, 3, 1)]
    )
    for function in ("single_source_shortest_path_length", "single_source_dijkstra_path_length"):
        same(function, graph, 0, cutoff)
    same("single_source_dijkstra_path_length", graph, 0, cutoff, weight=None)


@given(
    graphs(("graph", "digraph"), INTEGERS | st.floats(0, 9, width=16)),
    st.none() | st.dictionaries(st.sampled_from(NODES), st.integers(0, 3)),
    st.sampled_from([0.0, 0.5, 0.85]),
    st.sampled_from([1, 20, 1000]),
    st.sampled_from(["weight", None]),
)
def test_pagerank(graph, personalization, alpha, max_iter, weight):
    how = {"alpha": alpha, "max_iter": max_iter, "tol": 3e-5, "weight": weight}
    same("pagerank", graph, personalization=personalization, **how)


SIMPLE = ("graph", "digraph")


@given(
    graphs(SIMPLE),
    st.sampled_from([0.001, 0.02, 0.1, 0.6]),
    st.sampled_from([0.25, 1.0, 3]),
    st.integers(1, 400),
    st.sampled_from([None, "weight", "none"]),
)
def test_eigenvector_and_katz(graph, alpha, beta, max_iter, weight):
    how = {"max_iter": max_iter, "tol": 3e-5, "weight": weight}
    same("eigenvector_centrality", graph, **how)
    same("katz_centrality", graph, alpha=alpha, beta=beta, **how)


@given(graphs())
def test_cores(graph):
    same("core_number", graph)


@given(graphs(SIMPLE))
def test_degrees(graph):
    same("degree_centrality", graph)
    for function in ("in_degree_centrality", "out_degree_centrality"):
        same(function, graph)


@given(graphs(), st.booleans(), st.none() | st.integers(1, 14), INTEGERS)
def test_betweenness(graph, normalized, k, seed):
    same("betweenness_centrality", graph, k=k, normalized=normalized, seed=seed)


@given(graphs(), st.booleans(), st.data())
def test_closeness(graph, improved, data):
    same("closeness_centrality", graph, wf_improved=improved)
    node = data.draw(st.sampled_from(list(graph)))
    same("closeness_centrality", graph, u=node, wf_improved=improved)


@given(graphs())
def test_harmonic(graph):
    same("harmonic_centrality", graph, ordered=False)


@given(graphs(), st.data())
def test_eccentricity(graph, data):
    for function in ("eccentricity", "diameter", "radius", "periphery"):
        same(function, graph)
    same("eccentricity", graph, data.draw(st.sampled_from(list(graph))))
    nodes = data.draw(st.lists(st.sampled_from([*NODES, "nowhere"]), max_size=4))
    same("eccentricity", graph, nodes)


@given(graphs(("graph",)), graphs(("multigraph",)))
def test_triangles(graph, multigraph):
    for function in ("triangles", *CLUSTERING):
        same(function, graph, ordered=function != "triangles")
    same("average_clustering", graph, count_zeros=False)
    same("triangles", multigraph, ordered=False)


@settings(max_examples=12)
@given(
    graphs(("graph",), INTEGERS | st.floats(0, 9, width=16)),
    st.sampled_from(["leiden", "louvain"]),
    st.sampled_from(["weight", None]),
    st.sampled_from([0.0, 0.5, 1, 3.7]),
    st.sampled_from([None, 1, 9]),
)
def test_communities(graph, method, weight, resolution, max_level):
    """All nodes are in one community, and Leiden's are connected. The record of a run has the
    modularity that NetworkX counts.
    """
    how = {"weight": weight, "resolution": resolution}
    converted: Any = backend.convert_from_nx(graph, edge_attrs=weight and {weight: 1})
    find = of_networkx(f"{method}_communities")
    found = find(converted, **how, max_level=max_level, seed=1)
    assert nx.community.is_partition(graph, found)
    if method == "leiden":
        assert all(nx.is_connected(graph.subgraph(community)) for community in found)
    result = getattr(converted.graph, method)(resolution=resolution)
    groups: dict[int, set[Any]] = {}
    for node, community in zip(graph, result["community"].to_pylist(), strict=True):
        groups.setdefault(community, set()).add(node)
    quality = result.record[method]["quality"]
    if any(value for _, _, value in graph.edges(data=weight, default=1)):
        counted = nx.community.modularity(graph, groups.values(), **how)
        assert quality == pytest.approx(counted, rel=1e-12, abs=1e-12)
    else:
        assert quality is None


def test_known_communities():
    """Communities of the karate club are about as good as the best known, and planted ones are
    found.
    """
    karate = nx.karate_club_graph()
    groups = nx.planted_partition_graph(8, 16, 0.8, 0.02, seed=1)
    for function in COMMUNITIES:
        find = of_networkx(function)
        found = find(karate, weight=None, seed=1, backend="delegraph")
        assert nx.community.modularity(karate, found, weight=None) > 0.41
        assert found == find(karate, weight="other", seed=1, backend="delegraph")
        planted = find(groups, seed=random.Random(2), backend="delegraph")
        assert planted == [set(range(first, first + 16)) for first in range(0, 128, 16)]
        with pytest.raises(ValueError, match="must be a positive integer"):
            find(karate, max_level=0, backend="delegraph")


@pytest.mark.parametrize("kind", KINDS)
def test_no_nodes(kind):
    graph = KINDS[kind]()
    for function in FUNCTIONS:
        if "source" in function or "target" in function or function.startswith("descendants"):
            more = (1, 1) if function == "descendants_at_distance" else (1,)
            if function != "single_target_shortest_path_length" or not graph.is_directed():
                same(function, graph, *more)
        elif function == "node_connected_component":
            same(function, graph, 1)
        elif function in CLUSTERING:
            if kind == "graph":
                same(function, graph)
        elif function in COMMUNITIES:
            if kind == "graph":
                assert of_networkx(function)(graph, backend="delegraph") == []
        elif not graph.is_multigraph() or not ("rank" in function or "degree" in function):
            same(function, graph)


LIGHT_LOOP = backend.convert_from_nx(
    nx.Graph([(0, 1), (1, 1, {"weight": 0})]), edge_attrs={"weight": 1}
)
TWICE = nx.MultiGraph([(0, 1), (0, 1)])
PATH = nx.path_graph(4)
SEEDED = ("betweenness_centrality", *COMMUNITIES)


@pytest.mark.parametrize(
    ("function", "graph", "args", "options", "why"),
    [
        ("pagerank", PATH, (), {"nstart": {0: 1}}, "nstart is not supported"),
        ("pagerank", PATH, (), {"dangling": {0: 1}}, "dangling is not supported"),
        ("pagerank", TWICE, (), {}, "parallel edges would count as one"),
        ("pagerank", PATH, (), {"alpha": 1}, "alpha must be at least 0 and less than 1"),
        ("pagerank", PATH, (), {"tol": 0}, "tol must be positive"),
        ("pagerank", PATH, (), {"max_iter": 0}, "max_iter must be at least 1"),
        ("pagerank", PATH, (), {"personalization": {0: -1}}, "not negative"),
        ("eigenvector_centrality", PATH, (), {"nstart": {0: 1}}, "nstart is not supported"),
        ("eigenvector_centrality", PATH, (), {"tol": 0}, "tol must be positive"),
        ("katz_centrality", PATH, (), {"normalized": False}, "scores are always normalized"),
        ("katz_centrality", PATH, (), {"alpha": 0}, "alpha must be a positive number"),
        ("katz_centrality", PATH, (), {"beta": {0: 1}}, "beta must be a positive number"),
        ("katz_centrality", PATH, (), {"max_iter": 0}, "max_iter must be at least 1"),
        ("pagerank", LIGHT_LOOP, (), {"weight": None}, "self-loops of weight 0 would not count"),
        ("degree_centrality", LIGHT_LOOP, (), {}, "self-loops of weight 0 would not count"),
        ("degree_centrality", TWICE, (), {}, "parallel edges would count as one"),
        ("betweenness_centrality", PATH, (), {"weight": "weight"}, "weights are not supported"),
        ("betweenness_centrality", PATH, (), {"endpoints": True}, "endpoints is not supported"),
        ("betweenness_centrality", PATH, (), {"k": 0}, "k must be at least 1"),
        ("closeness_centrality", PATH, (), {"distance": "weight"}, "counted in edges"),
        ("harmonic_centrality", PATH, (), {"distance": "weight"}, "counted in edges"),
        ("harmonic_centrality", PATH, (), {"nbunch": [0]}, "nbunch is not supported"),
        ("harmonic_centrality", PATH, (), {"sources": [0]}, "sources is not supported"),
        ("eccentricity", PATH, (), {"weight": "weight"}, "counted in edges"),
        ("eccentricity", PATH, (), {"sp": {}}, "sp is not supported"),
        ("eccentricity", PATH, (iter([1, 2]),), {}, "v must be a node, or a list"),
        ("diameter", PATH, (), {"e": {}}, "e is not supported"),
        ("triangles", PATH, ([0],), {}, "at all nodes"),
        ("clustering", PATH, (0,), {}, "at all nodes"),
        ("clustering", PATH, (), {"weight": "weight"}, "weights are not supported"),
        ("average_clustering", TWICE, (), {}, "NetworkX refuses multigraphs"),
        ("transitivity", nx.DiGraph([(0, 1)]), (), {}, "in another way"),
        *(
            (function, *case)
            for function in COMMUNITIES
            for case in (
                (TWICE, (), {}, "parallel edges would count as one"),
                (LIGHT_LOOP, (), {"weight": None}, "self-loops of weight 0 would not count"),
                (PATH, (max,), {}, "weights must not be functions"),
                (PATH, (), {"resolution": -1}, "must be a number that is not negative"),
                (PATH, (), {"max_level": 1.5}, "max_level must be an integer"),
            )
        ),
        ("louvain_communities", nx.DiGraph(PATH), (), {}, "have another modularity"),
        ("louvain_communities", PATH, (), {"threshold": 0.1}, "threshold is not supported"),
        ("radius", PATH, (), {"usebounds": True}, "usebounds needs few searches"),
        ("periphery", PATH, (), {"weight": "weight"}, "counted in edges"),
        (
            "single_source_shortest_path_length",
            PATH,
            (0, math.nan),
            {},
            "the cutoff must be a number",
        ),
        ("single_target_shortest_path_length", nx.DiGraph(PATH), (0,), {}, "along their edges"),
        ("descendants_at_distance", PATH, (0, 1.5), {}, "the distance must be an integer"),
        (
            "single_source_dijkstra_path_length",
            PATH,
            (0,),
            {"weight": max},
            "must not be functions",
        ),
    ],
)
def test_left_to_networkx(function, graph, args, options, why, caplog):
    """NetworkX answers where delegraph's answer would differ, and NetworkX's log says why."""
    caplog.set_level(logging.DEBUG, "networkx")
    seed = {"seed": random.Random(1)} if function in SEEDED else {}
    answer = backend.can_run(function, (graph, *args), {**options, **seed})
    assert why in str(answer)
    with pytest.raises(NotImplementedError):
        of_networkx(function)(graph, *args, **options, backend="delegraph")
    assert why in caplog.text


@pytest.mark.parametrize("weight", [-1, 1 << 32, 0.1, -0.5, math.inf, math.nan, 1e300, None, "1"])
def test_weights_that_a_store_cannot_hold(weight):
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=weight)
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(graph, 0, backend="delegraph")
    assert nx.is_connected(graph, backend="delegraph")  # which needs none


def test_wrong_arguments_are_told_as_by_networkx():
    with pytest.raises(TypeError, match="max_depth"):
        nx.pagerank(PATH, max_depth=1, backend="delegraph")


def test_an_older_networkx(monkeypatch):
    monkeypatch.setattr(nx, "__version__", "3.5.1")
    assert backend.can_run("is_connected", (PATH,), {}) == "NetworkX 3.6 or later is needed"


@pytest.fixture(scope="module")
def large() -> nx.Graph:
    return nx.gnm_random_graph(5000, 100_000, seed=1)


def calls(monkeypatch, function: str) -> list[tuple[Any, ...]]:
    """Record the calls of a backend's function from now on."""
    made, inner = [], getattr(backend, function)

    @functools.wraps(inner)
    def call(*args: Any, **options: Any) -> Any:
        made.append(args)
        return inner(*args, **options)

    monkeypatch.setattr(backend, function, call)
    return made


def test_by_priority(monkeypatch, large):
    """Large graphs are converted once for all calls, and NetworkX answers for small graphs."""
    converted, ranked = calls(monkeypatch, "convert_from_nx"), calls(monkeypatch, "pagerank")
    opened, inner = [], api.open
    monkeypatch.setattr(api, "open", lambda *a, **k: opened.append(a) or inner(*a, **k))
    wanted = nx.pagerank(large)
    with nx.config(backend_priority=["delegraph"], warnings_to_ignore={"cache"}):
        assert len(nx.degree_centrality(large)) == 5000
        assert not converted  # which takes longer than to count
        ranks = nx.pagerank(large)
        assert ranks == pytest.approx(wanted, rel=1e-9)
        assert nx.is_connected(large) == nx.is_connected(large, backend="networkx")
        assert len(nx.single_source_shortest_path_length(large, 0)) == 5000
        assert nx.pagerank(PATH) == pytest.approx(nx.pagerank(PATH, backend="networkx"))
        assert nx.pagerank(large, nstart={0: 1.0}) == pytest.approx(wanted, abs=5e-3)
        assert (len(converted), len(opened), len(ranked)) == (1, 1, 1)
        large.add_edge(0, "new")
        assert nx.pagerank(large).keys() == {*range(5000), "new"}
        assert (len(converted), len(opened), len(ranked)) == (2, 2, 2)
    large.remove_node("new")


def test_what_it_may_use(tmp_path, monkeypatch):
    """Limits in NetworkX's configuration hold; a graph beyond a limit is refused as usual, and
    leaves nothing.
    """
    options, inner = [], api.build
    monkeypatch.setattr(api, "build", lambda *a, **k: options.append(k) or inner(*a, **k))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with nx.config.backends["delegraph"](memory_limit=1, threads=1):
        with pytest.raises(InputError, match="is too small"):
            nx.pagerank(nx.path_graph(9), backend="delegraph")
        assert (options[0]["memory_limit"], options[0]["threads"]) == (1, 1)
    assert not any(tmp_path.iterdir())


def test_a_graph_that_is_kept():
    """NetworkX accepts a converted graph, too, and converts it back for functions that delegraph
    lacks.
    """
    for kind in KINDS.values():
        graph = kind([(0, "a", {"km": 2}), ("a", ("b",), {"km": 3})], name="roads")
        graph.add_node("alone")
        converted: Any = backend.convert_from_nx(
            graph, edge_attrs={"km": 1}, preserve_graph_attrs=True
        )
        for one in (converted, pickle.loads(pickle.dumps(converted)), copy.deepcopy(converted)):
            back = backend.convert_to_nx(one)
            assert type(back) is kind
            assert nx.utils.graphs_equal(back, graph)
            assert list(back) == list(graph)
            lengths = nx.single_source_dijkstra_path_length(one, 0, weight="km")
            assert lengths == {0: 0, "a": 2, ("b",): 5}
            hops = nx.single_source_dijkstra_path_length(one, 0, weight="other")
            assert hops == {0: 0, "a": 1, ("b",): 2}
        with nx.config(fallback_to_nx=True):
            assert list(nx.bfs_edges(converted, 0)) == list(nx.bfs_edges(graph, 0))
    with pytest.raises(NotImplementedError, match="keeps one edge attribute"):
        backend.convert_from_nx(PATH, edge_attrs={"km": 1, "miles": 1})


def test_nothing_stays():
    """The store is removed with the graph, or when the graph is changed."""
    graph = nx.path_graph(5)
    nx.is_connected(graph, backend="delegraph")
    ((converted,),) = (cache.values() for cache in graph.__networkx_cache__["backends"].values())
    folder = Path(converted.graph.location)
    assert folder.is_dir()
    del converted
    graph.add_edge(0, 2)
    gc.collect()
    assert not folder.exists()


def test_what_networkx_is_told():
    info = get_info()
    assert info["functions"].keys() == FUNCTIONS.keys()
    for name in FUNCTIONS:
        assert callable(getattr(backend, name))
        assert "delegraph" in of_networkx(name).backends
    assert "delegraph : Runs on all cores, within a memory limit." in nx.pagerank.__doc__


def test_networkx_loads_nothing_of_it():
    code = (
        "import sys, networkx; assert 'delegraph' in networkx.config.backends\n"
        "print({'numba', 'numpy', 'pyarrow', 'dask', 'delegraph.pipeline.networkx.backend'}"
        " & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


OF_NETWORKX = [
    "tests.test_core",
    *("components.tests.test_connected", "components.tests.test_weakly_connected"),
    "components.tests.test_strongly_connected",
    *("centrality.tests.test_betweenness_centrality", "centrality.tests.test_closeness_centrality"),
    *("centrality.tests.test_eigenvector_centrality", "centrality.tests.test_katz_centrality"),
    *("centrality.tests.test_degree_centrality", "centrality.tests.test_harmonic_centrality"),
    *("link_analysis.tests.test_pagerank", "shortest_paths.tests", "traversal.tests.test_bfs"),
    *("community.tests.test_louvain", "community.tests.test_leiden"),
    *("tests.test_dag", "tests.test_distance_measures", "tests.test_cluster"),
]
"""Modules of NetworkX's tests of functions that the backend has; of a test of 540 graphs, which
takes minutes, one case runs.
"""

RUN_THEM = """
import sys, pytest
from delegraph.pipeline.networkx import backend
made, inner = [], backend.convert_from_nx
backend.convert_from_nx = lambda *a, **k: made.append(k["name"]) or inner(*a, **k)
code = pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", *sys.argv[1:]])
print(sorted(set(made)))
sys.exit(code)
"""


@pytest.mark.nightly
def test_by_tests_of_networkx(tmp_path):
    """NetworkX's own tests pass with the backend's functions, wherever these functions can run."""
    modules = [f"networkx.algorithms.{name}" for name in OF_NETWORKX]
    # One test takes the order of NetworkX's strong components as given; some take its communities.
    own = "karate_club or selfloops or none_weight or multigraph"
    left_out = f"not test_condensation_mapping_and_members and not (community and ({own}))"
    few = ["-k", f"{left_out} and (not test_use_bounds_on_off_consistency or 0.4-10-0)"]
    env = {**os.environ, "NETWORKX_TEST_BACKEND": "delegraph", "NETWORKX_FALLBACK_TO_NX": "True"}
    command = [sys.executable, "-c", RUN_THEM, *few, *modules]
    run = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:]
    assert set(ast.literal_eval(run.stdout.splitlines()[-1])) == set(FUNCTIONS)
