"""Components, PageRank and core numbers as commands: real graphs, other tools' answers, ids of
every kind, limits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product, starmap
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.graphs import SHAPES, random_edges
from support.marks import mostly_slow, slow
from support.schema import conforms, run_record


def column(folder: Path, name: str) -> dict[Any, Any]:
    table = pq.read_table(folder)
    return dict(zip(table["vertex"].to_pylist(), table[name].to_pylist(), strict=True))


WAYS = {
    "edges": [],
    "store": [],
    "streamed": ["--memory-limit", "least"],
    "workers": ["--workers", 2],
}


def least_limit(delegraph, *args) -> str:
    """Return the smallest limit that a refusal names."""
    refused = delegraph(*args, "--memory-limit", "1MB")
    assert refused.code == 2
    return refused.err.split("--memory-limit ")[1].split()[0]


@pytest.mark.parametrize("kind", mostly_slow(["int32", "int64", "uint64", "string"], "string"))
def test_ids_of_every_kind(ok, edge_list, tmp_path, kind):
    """A component's name is its least vertex; of strings, the first in order."""

    def named(vertex: int) -> int | str:
        return f"v{vertex}" if kind == "string" else vertex + (2**63 if kind == "uint64" else 0)

    id_type = pa.type_for_alias(kind)
    ends = [30, 9, 100, 7, 8], [9, 200, 9, 7, 1]
    edges = edge_list(*(list(map(named, end)) for end in ends), id_type=id_type)
    ok("components", edges, "-o", tmp_path / "of edges")
    ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 3)
    ok("components", tmp_path / "graph.dg", "-o", tmp_path / "of store")
    names = column(tmp_path / "of edges", "component")
    assert names == column(tmp_path / "of store", "component")
    assert names[named(200)] == named(100 if kind == "string" else 9)
    assert len(set(names.values())) == 3  # a self-loop makes a vertex
    schema = pq.read_schema(next((tmp_path / "of edges").glob("*.parquet")))
    assert schema.field("component").type == id_type
    for result in ("of edges", "of store"):
        for graph in (edges, tmp_path / "graph.dg"):
            ok("validate", graph, tmp_path / result)


@pytest.mark.parametrize(
    ("way", "directed"),
    [
        *product(["edges", "store"], [False, True]),
        *starmap(slow, product(["streamed", "workers"], [False, True])),
    ],
)
def test_every_way_is_right_and_recorded(ok, delegraph, edge_list, tmp_path, way, directed):
    edges = edge_list(*random_edges(5, 3000, 20_000))
    flags = ["--directed"] if directed else []
    graph = edges
    if way != "edges":
        ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 2, *flags)
        graph, flags = tmp_path / "graph.dg", []
    for name in ("cores", "components", "pagerank"):
        out = tmp_path / name
        args = (name, graph, "-o", out, *flags)
        extra = WAYS[way]
        if way == "streamed":
            extra = ["--memory-limit", least_limit(delegraph, *args)]
        printed = ok(*args, *extra, "--json").json
        record = json.loads((tmp_path / f"{name}.run.json").read_text())
        assert {**record, "already": False} == printed
        assert conforms(record, run_record(name))
        scanned = {"edges": "scan"} if name == "components" else {}
        method = {**scanned, "streamed": "streamed"}.get(way, "in memory")
        if (name, way) != ("pagerank", "edges"):
            assert record[name]["method"] == method
        assert record["ranks"] == (2 if way == "workers" else 1)
        ok("validate", graph, out, *flags)
        rerun = ok(*args, *extra)
        assert "already" in rerun.err
    assert printed["pagerank"]["converged"] is True
    assert sum(column(tmp_path / "pagerank", "pagerank").values()) == pytest.approx(1, abs=1e-12)


def damaged(folder: Path, change: Callable[[dict[str, list]], None]) -> None:
    """Rewrite a result after ``change`` has changed its columns."""
    (path,) = folder.glob("*.parquet")
    table = pq.read_table(path)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.table(columns, schema=table.schema), path)


def no_name(columns):
    columns["component"][3] = columns["vertex"][-1]


def one_component(columns):
    columns["component"] = [columns["component"][0]] * len(columns["vertex"])


def another_name(columns):
    greatest: dict[int, int] = {}
    for vertex, component in zip(columns["vertex"], columns["component"], strict=True):
        greatest[component] = vertex
    columns["component"] = [greatest[component] for component in columns["component"]]


def a_row_twice(columns):
    columns["vertex"][1] = columns["vertex"][0]


@pytest.mark.parametrize(
    ("change", "rules"),
    [(no_name, {2}), (one_component, {4}), (another_name, {3}), (a_row_twice, {0})],
)
def test_wrong_components_are_found(ok, delegraph, edge_list, tmp_path, change, rules):
    edges = edge_list(*SHAPES["two components"])
    ok("components", edges, "-o", tmp_path / "out")
    damaged(tmp_path / "out", change)
    run = delegraph("validate", edges, tmp_path / "out", "--json")
    assert run.code == 1
    assert rules <= {rule["rule"] for rule in run.json["rules"]}
    assert delegraph("validate", edges, tmp_path / "out").code == 1


def negative(columns):
    columns["pagerank"][5] = -0.1


def too_much(columns):
    columns["pagerank"] = [2 * value for value in columns["pagerank"]]


def another_order(columns):
    columns["pagerank"] = columns["pagerank"][::-1]


@pytest.mark.parametrize(
    ("change", "rules"), [(negative, {1}), (too_much, {2}), (another_order, {3})]
)
def test_wrong_pagerank_is_found(ok, delegraph, edge_list, tmp_path, change, rules):
    edges = edge_list(*random_edges(5, 300, 2000))
    ok("pagerank", edges, "-o", tmp_path / "out")
    damaged(tmp_path / "out", change)
    run = delegraph("validate", edges, tmp_path / "out", "--json")
    assert run.code == 1
    assert rules <= {rule["rule"] for rule in run.json["rules"]}


def test_not_converged_is_said(ok, delegraph, edge_list, tmp_path):
    args = ("pagerank", edge_list(*random_edges(5, 300, 2000)), "-o", tmp_path / "out")
    run = ok(*args, "--max-iterations", 3)
    assert "not converged" in run.out
    assert delegraph(*args, "--max-iterations", 3, "--strict").code == 1
    assert ok(*args, "--iterations", 3, "--strict", "--overwrite").out.startswith("3 iterations")


def test_by_nobody_in_particular(ok, delegraph, edge_list, tmp_path):
    """A PageRank without a record, as another program may write it, is judged by the default
    options.
    """
    edges = edge_list(*random_edges(5, 300, 2000))
    ok("pagerank", edges, "-o", tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path).replace_schema_metadata(None)
    pq.write_table(table, path)
    assert "PageRank with default options" in ok("validate", edges, tmp_path / "out").err
    ranks = np.zeros(table.num_rows)
    ranks[0] = 1
    pq.write_table(table.set_column(1, "pagerank", pa.array(ranks)), path)
    assert delegraph("validate", edges, tmp_path / "out").code == 1


def test_a_walk_that_only_teleports(ok, edge_list, tmp_path):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    weights = pa.table({"vertex": [0, 3], "weight": [1e308, 1e308]})  # their sum is infinite
    pq.write_table(weights, tmp_path / "to.parquet")
    option = ["--personalize", tmp_path / "to.parquet"]
    ok("pagerank", edges, "-o", tmp_path / "out", "--damping", 0, *option)
    assert column(tmp_path / "out", "pagerank") == {0: 0.5, 1: 0, 2: 0, 3: 0.5}
    ok("validate", edges, tmp_path / "out", *option)


@pytest.mark.parametrize("how", ["of rows without weights", "asked for"])
def test_ranks_without_weights_are_judged_without(ok, delegraph, tmp_path, how):
    """A PageRank without weights is judged without, also against a store that has weights: the
    result says so.
    """
    src, dst = random_edges(9, 60, 300)
    table = pa.table({"src": src, "dst": dst, "w": np.arange(1.0, len(src) + 1)})
    pq.write_table(table, tmp_path / "edges.parquet")
    ok("build", tmp_path / "edges.parquet", "-o", tmp_path / "graph.dg", "--weight", "w")
    args = [tmp_path / "graph.dg", "--unweighted"]
    if how == "of rows without weights":
        args = [tmp_path / "edges.parquet"]
    ok("pagerank", *args, "-o", tmp_path / "ranks")
    ok("validate", tmp_path / "graph.dg", tmp_path / "ranks")
    ok("pagerank", tmp_path / "graph.dg", "-o", tmp_path / "weighted")
    ok("validate", tmp_path / "graph.dg", tmp_path / "weighted")

    def by_weights(columns):
        columns["pagerank"] = pq.read_table(tmp_path / "weighted")["pagerank"].to_pylist()

    damaged(tmp_path / "ranks", by_weights)
    assert delegraph("validate", tmp_path / "graph.dg", tmp_path / "ranks").code == 1


@pytest.mark.parametrize("where", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_single_precision(ok, edge_list, tmp_path, where):
    edges = edge_list(*random_edges(5, 300, 2_000))
    args = ("pagerank", edges, "--iterations", 40, "--device", where)
    for precision, kind in (("double", "double"), ("single", "float")):
        out = tmp_path / precision
        ok(*args, "-o", out, "--precision", precision)
        assert pq.read_schema(next(out.glob("*.parquet"))).field("pagerank").type == kind
        ok("validate", edges, out)
    double, single = (column(tmp_path / name, "pagerank") for name in ("double", "single"))
    assert single == pytest.approx(double, rel=1e-6)


def test_as_networkx_does_it(ok, edge_list, tmp_path):
    src, dst = random_edges(8, 200, 900)
    dst = dst + 7  # some have no edges out of them
    edges = edge_list(src, dst)
    graph = networkx.DiGraph(zip(src.tolist(), dst.tolist(), strict=True))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    weights = {3: 2.0, 11: 1.0}
    file = edge_list([0], [0], name="p.parquet").with_name("to.parquet")
    pq.write_table(pa.table({"vertex": [*weights], "weight": [*weights.values()]}), file)
    for option, personal in (([], None), (["--personalize", file], weights)):
        args = ("pagerank", edges, "--directed", "-o", tmp_path / "out", "--overwrite", *option)
        ok(*args, "--tolerance", 1e-12, "--max-iterations", 500)
        values = column(tmp_path / "out", "pagerank")
        matrix = networkx.google_matrix(graph, personalization=personal)
        system = np.vstack([matrix.T - np.eye(len(graph)), np.ones(len(graph))])
        ranks = np.linalg.lstsq(system, np.r_[np.zeros(len(graph)), 1.0], rcond=None)[0]
        wanted = dict(zip(graph, ranks.tolist(), strict=True))
        assert values == pytest.approx(wanted, abs=1e-11)
        ok("validate", edges, tmp_path / "out", *option)


@pytest.mark.parametrize("directed", [False, True])
def test_distances_as_networkx_has_them(ok, edge_list, tmp_path, directed):
    src, dst = random_edges(8, 150, 300)  # of several components
    edges = edge_list(src, dst)
    kind, flags = (networkx.DiGraph, ["--directed"]) if directed else (networkx.Graph, [])
    graph = kind(zip(src.tolist(), dst.tolist(), strict=True))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    run = ok("closeness", edges, "-o", tmp_path / "c", *flags, "--json").json
    assert conforms(without(run, "already"), run_record("closeness"))
    assert column(tmp_path / "c", "closeness") == pytest.approx(
        networkx.closeness_centrality(graph)
    )
    run = ok("harmonic", edges, "-o", tmp_path / "h", *flags, "--json").json
    assert conforms(without(run, "already"), run_record("harmonic"))
    wanted = networkx.harmonic_centrality(graph)
    assert column(tmp_path / "h", "harmonic") == pytest.approx(wanted)
    ok("harmonic", edges, "-o", tmp_path / "m", *flags, "--normalized")
    share = {vertex: value / (len(graph) - 1) for vertex, value in wanted.items()}
    assert column(tmp_path / "m", "harmonic") == pytest.approx(share)
    run = ok("eccentricity", edges, "-o", tmp_path / "e", *flags, "--json").json
    assert conforms(without(run, "already"), run_record("eccentricity"))
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    wanted = {vertex: max(hops.values()) for vertex, hops in lengths.items()}
    assert column(tmp_path / "e", "eccentricity") == wanted
    assert run["eccentricity"]["diameter_at_least"] == max(wanted.values())
    run = ok("betweenness", edges, "-o", tmp_path / "b", *flags, "--json").json
    assert conforms(without(run, "already"), run_record("betweenness"))
    wanted = networkx.betweenness_centrality(graph, normalized=False)
    assert column(tmp_path / "b", "betweenness") == pytest.approx(wanted, abs=1e-9)
    ok("betweenness", edges, "-o", tmp_path / "n", *flags, "--normalized")
    wanted = networkx.betweenness_centrality(graph)
    assert column(tmp_path / "n", "betweenness") == pytest.approx(wanted, abs=1e-12)
    ok("betweenness", edges, "-o", tmp_path / "s", *flags, "--sources", 7)
    for result in "cebnshm":
        ok("validate", edges, tmp_path / result, *flags)


@pytest.mark.parametrize(
    ("name", "directed"), [("karate", False), ("karate", True), slow("email-Eu-core", True)]
)
def test_harmonic_centrality_of_real_graphs(ok, real_graph, tmp_path, name, directed):
    table = pq.read_table(real_graph(name))
    kind, flags = (networkx.DiGraph, ["--directed"]) if directed else (networkx.Graph, [])
    graph = kind(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    ok("harmonic", real_graph(name), "-o", tmp_path / "out", *flags)
    wanted = networkx.harmonic_centrality(graph)
    assert column(tmp_path / "out", "harmonic") == pytest.approx(wanted, rel=1e-12)


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *product(["store", "streamed"], ["closeness"]),
        *(slow(way, "eccentricity") for way in ("store", "streamed")),
        ("workers", "closeness"),
        slow("workers", "eccentricity"),
        *(slow(way, "harmonic") for way in ("store", "streamed", "workers")),
    ],
)
def test_some_sources_by_every_way(ok, delegraph, edge_list, tmp_path, way, name):
    src, dst = random_edges(5, 3000, 20_000)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg", "--partitions", 2)
    vertices = sorted({*src.tolist(), *dst.tolist()})[::40]
    pq.write_table(pa.table({"vertex": vertices}), tmp_path / "some.parquet")
    args = (name, tmp_path / "graph.dg", "-o", tmp_path / "out", "--sources")
    extra = WAYS[way]
    if way == "streamed":
        extra = ["--memory-limit", least_limit(delegraph, *args, 70)]
    ok(*args, tmp_path / "some.parquet", *extra)
    values = column(tmp_path / "out", name)
    assert [*values] == vertices
    ok("validate", tmp_path / "graph.dg", tmp_path / "out")
    if way == "store":
        ok(*args, 70, "--seed", 3, "--overwrite")
        drawn = column(tmp_path / "out", name)
        ok(*args, 70, "--seed", 4, "--overwrite")
        assert drawn.keys() != column(tmp_path / "out", name).keys()
        assert len(drawn) == 70
        assert all(values.get(vertex, value) == value for vertex, value in drawn.items())


@pytest.mark.parametrize(
    ("change", "rules"), [(lambda v: v - 1, {1}), (lambda v: v + 1, {2, 3}), (lambda v: 2 * v, {3})]
)
@pytest.mark.parametrize("sources", [("--sources", 3), ()], ids=["three", "all"])
def test_wrong_betweenness_is_found(ok, delegraph, edge_list, tmp_path, change, rules, sources):
    edges = edge_list(*random_edges(5, 300, 2000))
    ok("betweenness", edges, "-o", tmp_path / "out", *sources)

    def changed(columns):
        columns["betweenness"] = [change(value) for value in columns["betweenness"]]

    damaged(tmp_path / "out", changed)
    run = delegraph("validate", edges, tmp_path / "out", "--json")
    assert run.code == 1
    assert rules <= {rule["rule"] for rule in run.json["rules"]}


@pytest.mark.parametrize(
    ("ends", "options", "bounds", "says"),
    [
        (SHAPES["path"], [], (600, 600), "the diameter is 600"),
        (SHAPES["path"], ["--sources", "0,"], (600, 1200), "at least 600 and at most 1,200"),
        (SHAPES["path"], ["--sources", "300,"], (300, 600), "at least 300 and at most 600"),
        (SHAPES["path"], ["--directed", "--sources", "0,"], (600, None), "at least 600"),
        (SHAPES["path"], ["--directed"], (600, None), "some vertices do not reach all others"),
        (([0, 0, 0], [1, 2, 3]), [], (2, 2), "the diameter is 2"),
        (([0, 0, 4], [1, 2, 5]), [], (2, None), "some vertices do not reach all others"),
        (([0, 1, 2, 3], [1, 2, 3, 0]), ["--directed"], (3, 3), "the diameter is 3"),
    ],
)
def test_bounds_of_a_diameter(ok, edge_list, tmp_path, ends, options, bounds, says):
    """A diameter is exact when all vertices are asked for, and is not told as a bound."""
    args = "eccentricity", edge_list(*map(np.array, ends)), "-o", tmp_path / "out", *options
    line = ok(*args).out.splitlines()[0]
    assert line.endswith(says)
    facts = ok(*args, "--json").json["eccentricity"]
    assert (facts["diameter_at_least"], facts["diameter_at_most"]) == bounds


@pytest.mark.parametrize("name", ["closeness", "harmonic", "eccentricity"])
def test_wrong_values_are_found(ok, delegraph, edge_list, tmp_path, name):
    edges = edge_list(*random_edges(5, 300, 2000))
    ok(name, edges, "-o", tmp_path / "out", "--sources", 4)

    def more(columns):
        columns[name][2] += 1 if name == "eccentricity" else 0.01

    damaged(tmp_path / "out", more)
    run = delegraph("validate", edges, tmp_path / "out", "--json")
    assert (run.code, [rule["rule"] for rule in run.json["rules"]]) == (1, [2])


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        (0, "a whole number of at least 1"),
        (5, "the graph has only 4"),
        ("none.parquet", "none.parquet"),
    ],
)
def test_bad_sources_are_told(delegraph, edge_list, tmp_path, sources, says):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    run = delegraph("closeness", edges, "-o", tmp_path / "out", "--sources", sources)
    assert (run.code, says in run.err) == (2, True)
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--damping", 1], "damping"),
        (["--damping", -0.1], "damping"),
        (["--tolerance", 0], "tolerance"),
        (["--precision", "single", "--tolerance", 1e-8], "--precision double"),
        (["--precision", "single", "--damping", 0.95], "--precision double"),
        (["--iterations", 3, "--tolerance", 0.1], "--iterations"),
        (["--iterations", 0], "--iterations"),
        (["--personalize", "none.parquet"], "none.parquet"),
        (["--personalize", {"vertex": [1, 99]}], "99 is not a vertex"),
        (["--personalize", {"vertex": [1, 1]}], "twice"),
        (
            ["--personalize", {"vertex": [1], "weight": [-1.0]}],
            "not negative, and at least one must be positive",
        ),
        (["--personalize", {"vertex": [1], "weight": [float("nan")]}], "finite"),
        (["--personalize", {"vertex": ["1"]}], "ids are string"),
        (["--personalize", {"vertex": [True]}], "column 'vertex' is bool"),
        (["--personalize", {"node": [1]}], "'vertex' is missing"),
    ],
)
def test_bad_options_are_told(delegraph, edge_list, tmp_path, options, says):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    if isinstance(options[1], dict):
        pq.write_table(pa.table(options[1]), tmp_path / "to.parquet")
        options = [options[0], tmp_path / "to.parquet"]
    run = delegraph("pagerank", edges, "-o", tmp_path / "out", *options)
    assert run.code == 2
    assert says in run.err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_personalised_result_needs_its_file(ok, delegraph, edge_list, tmp_path):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    for name, vertices in (("to", [1, 2]), ("other", [1])):
        pq.write_table(pa.table({"vertex": vertices}), tmp_path / f"{name}.parquet")
    ok("pagerank", edges, "-o", tmp_path / "out", "--personalize", tmp_path / "to.parquet")
    validate = ("validate", edges, tmp_path / "out")
    assert "--personalize FILE" in delegraph(*validate).err
    wrong = delegraph(*validate, "--personalize", tmp_path / "other.parquet")
    assert (wrong.code, "not the vertices that the result" in wrong.err) == (2, True)
    ok(*validate, "--personalize", tmp_path / "to.parquet")


def test_answers_of_others(ok, real_graph, tmp_path):
    edges = real_graph("real/p2p_gnutella31_w")
    wanted = pq.read_table(edges.parents[1] / "validation" / "p2p-31-answers.parquet")
    ok("components", edges, "-o", tmp_path / "c")
    ok("pagerank", edges, "-o", tmp_path / "p", "--iterations", 10)
    names, labels = column(tmp_path / "c", "component"), wanted["component"].to_pylist()
    pairs = {
        (names[v], label) for v, label in zip(wanted["vertex"].to_pylist(), labels, strict=True)
    }
    assert len(pairs) == len(set(names.values())) == len(set(labels)) == 12
    ranks = column(tmp_path / "p", "pagerank")
    theirs = dict(zip(wanted["vertex"].to_pylist(), wanted["pagerank_10"].to_pylist(), strict=True))
    assert ranks == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "components", "largest"),
    [
        ("real/fb_schools", 30, 18_621),
        slow("real/reddit_related", 3357, 467_219),
        slow("real/world_highways", 1198, 328_167),
        slow("real/debian_file_package", 1494, 3_786_951),
    ],
)
def test_components_of_real_graphs(ok, real_graph, tmp_path, name, components, largest):
    facts = ok("components", real_graph(name), "-o", tmp_path / "out", "--json").json["components"]
    assert (facts["components"], facts["largest"]) == (components, largest)
