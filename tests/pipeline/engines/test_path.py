"""Paths between pairs of vertices against their definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.partition.errors import DelegraphError
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import path as path_algorithm
from delegraph.pipeline.algorithms.path import PathsProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import edges_of, graphs, grid, store_options
from support.marks import mostly_nightly, mostly_slow, slow
from support.paths import WEIGHTS, entries_of
from support.programs import run_program, stored


def program_of(store: Store, nodes: bool, pairs: int = 12) -> PathsProgram:
    """Return the program for random pairs, several of which have one source."""
    rng, n = np.random.default_rng(1), store.info.vertices
    source, target = rng.integers(0, n, (2, pairs)).astype(np.uint32)
    source[: pairs // 3] = source[0]
    return PathsProgram(source, target, store.info.weights, 3.0, nodes)


def check(
    store: Store,
    folder: Path,
    program: PathsProgram,
    ranks: int = 1,
    on_disk: bool = False,
    **options: Any,
) -> Any:
    """Check distances and paths, and return the run's record."""
    found, results = run_program(store, program, folder, ranks, on_disk, **options)
    n = store.info.vertices
    u, v, w = entries_of(store) if program.weighted else (*edges_of(store), None)
    w = np.ones(len(u)) if w is None else w.astype(np.float64)
    paths: list[Any] = _paths_of(found) if program.nodes else [None] * len(program.source)
    number = np.argsort(store.id_order(Team(1)))
    weights = dict(zip(zip(u.tolist(), v.tolist(), strict=True), w.tolist(), strict=True))
    pairs = zip(program.source, program.target, found["distance"], paths, strict=True)
    for source, target, distance, path in pairs:
        wanted = reference.shortest_paths(u, v, w, n, int(source))[target]
        if program.floats:
            np.testing.assert_allclose(distance, wanted, rtol=1e-12)
        else:
            assert distance == wanted
        if path is None:
            continue
        vertices, along = path
        if not np.isfinite(wanted):
            assert not len(vertices)
            continue
        assert (vertices[0], vertices[-1], along[0]) == (source, target, 0)
        sums = np.cumsum([0, *(weights[pair] for pair in pairwise(vertices.tolist()))])
        assert along.tolist() == sums.tolist()
        assert along[-1] == distance
        if not program.floats:
            ends: Any = number[u], number[v], w, n, number[source], number[target]
            assert number[vertices].tolist() == reference.least_shortest_path(*ends)
    return results[0].record


def _paths_of(found: dict[str, np.ndarray]) -> list[Any]:
    cuts = np.cumsum(found["steps"])[:-1]
    parts = (np.split(found[name], cuts) for name in ("vertex", "along"))
    return list(zip(*parts, strict=True))


CASES: dict[str, Any] = {
    "graph": graphs(),
    "options": store_options(),
    "ranks": st.integers(1, 4),
    "on_disk": st.booleans(),
    "weights": st.sampled_from([None, "ties", "nothing", "floats"]),
    "nodes": st.booleans(),
}


def check_case(graph, options, ranks, on_disk, weights, nodes) -> None:
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = weights and WEIGHTS[weights](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", program_of(store, nodes), ranks, on_disk)


@given(**CASES)
@settings(max_examples=6)
def test_against_the_definition(**case):
    check_case(**case)


@pytest.mark.nightly
@given(**CASES)
@settings(max_examples=400)
def test_many_against_the_definition(**case):
    check_case(**case)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize(("partitions", "ranks", "then"), [(1, 1, 1), (3, 1, 2), (3, 3, 1)])
def test_goes_on_from_a_checkpoint_on_other_ranks(tmp_path, partitions, ranks, then, nodes):
    """In memory, a batch of pairs is saved, otherwise the pairs of a source."""
    src, dst = grid(9)
    weight = np.random.default_rng(1).integers(0, 9, len(src))
    store = stored(tmp_path, src, dst, BuildOptions(partitions=partitions), weight)
    went_on = []
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=went_on.append)
    save = saved.save_state

    def save_and_stop(*state: Any) -> None:
        save(*state)
        raise KeyError("killed")

    saved.save_state = save_and_stop  # pyright: ignore[reportAttributeAccessIssue]
    program = program_of(store, nodes, 70)
    with pytest.raises((KeyError, RankError), match="killed"):
        run_program(store, program, tmp_path / "some", ranks, checkpoint=saved)
    saved.save_state = save
    record = check(store, tmp_path / "rest", program, then, checkpoint=saved)
    whole = check(store, tmp_path / "whole", program, then)
    least = np.count_nonzero(program.source == program.source.min())
    assert went_on[0] == (64 if partitions == 1 else least)
    assert record["edges"] < whole["edges"]


def test_searches_end_at_the_targets(tmp_path):
    """A search from disk does not look at what is farther than its targets."""
    src, dst = np.arange(2000), np.arange(1, 2001)
    weight = np.ones(2000, np.int64)
    store = stored(tmp_path, src, dst, BuildOptions(), weight)
    order = store.id_order(Team(1))
    program = PathsProgram(order[[1000]], order[[1010]], store.info.weights, 2.0)
    for nodes in (False, True):
        for weights in (store.info.weights, None):
            asked = replace(program, nodes=nodes, weights=weights)
            record = check(store, tmp_path / "out", asked, on_disk=True)
            assert record["edges"] < 400


def test_paths_that_do_not_fit_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(path_algorithm, "_LEAST_STEPS", 10)
    store = stored(tmp_path, *grid(9), BuildOptions())
    monkeypatch.setattr(path_algorithm, "_STEPS_A_PAIR", 1)
    program = program_of(store, True, 200)
    with pytest.raises(RankError, match=r"those of 64 of 200 pairs have [\d,]+ vertices; give"):
        run_program(store, program, tmp_path / "out")
    check(store, tmp_path / "out", program, extra_bytes=1 << 20)


# From the command

EXTREMES = {
    "a vertex alone": ([7], [7], [3], [(7, 7, [7])]),
    "loops alone": ([7, 8, 8], [7, 8, 8], [1, 2, 3], [(7, 8, None), (8, 8, [8])]),
    "a path": ([1, 2, 3], [2, 3, 4], [9, 4, 1], [(1, 4, [1, 2, 3, 4]), (2, 2, [2])]),
    "a star": ([9, 9, 9], [1, 2, 3], [1, 1, 1], [(9, 3, [9, 3])]),
    "a clique": ([1, 1, 1, 2, 2, 3], [2, 3, 4, 3, 4, 4], [1] * 6, [(1, 4, [1, 4])]),
    "zeros": ([1, 2, 3, 1], [2, 3, 4, 4], [0] * 4, [(1, 4, [1, 4]), (1, 3, [1, 2, 3])]),
    "ties": ([1, 1, 3, 2, 1], [3, 2, 4, 4, 4], [1, 1, 1, 1, 2], [(1, 4, [1, 4])]),
    "the least ids": ([1, 1, 5, 2], [5, 2, 9, 9], [1, 2, 2, 1], [(1, 9, [1, 2, 9])]),
    "great weights": ([1, 2], [2, 3], [2**32 - 1] * 2, [(1, 3, [1, 2, 3])]),
}


@pytest.mark.parametrize("directed", [False, slow(True)])
@pytest.mark.parametrize("shape", mostly_nightly(EXTREMES, "the least ids", "loops alone", "zeros"))
def test_extremes(edge_list, tmp_path, shape, directed):
    src, dst, weights, wanted = EXTREMES[shape]
    edges = edge_list(src, dst, w=weights)
    weight_of = dict(zip(zip(src, dst, strict=True), weights, strict=True))
    options: Any = {"weight": "w", "directed": directed}
    pairs = [(source, target) for source, target, _ in wanted]
    far = [
        None if path is None else sum(weight_of[pair] for pair in pairwise(path))
        for _, _, path in wanted
    ]
    delegraph.path(edges, pairs=pairs, output=tmp_path / "out", **options)
    table = pq.read_table(tmp_path / "out").to_pydict()
    assert list(zip(*list(table.values())[:2], strict=True)) == pairs
    assert table["distance"] == far
    delegraph.path(edges, pairs=pairs, output=tmp_path / "nodes", nodes=True, **options)
    rows = pq.read_table(tmp_path / "nodes").to_pydict()
    steps = [(*pair, i, v) for *pair, path in wanted for i, v in enumerate(path or [])]
    names = ("source", "target", "step", "vertex")
    assert list(zip(*(rows[name] for name in names), strict=True)) == steps
    for out in ("out", "nodes"):
        verdict = delegraph.validate(edges, tmp_path / out, **options)
        assert (verdict["valid"], verdict["judged"]) == (True, "all")


def test_pairs_of_a_file(edge_list, tmp_path):
    """Rows have the order of the file; repeated pairs are there once, and are told of."""
    edges = edge_list(["b", "a", "x"], ["c", "b", "y"])
    pairs = pa.table({"source": ["c", "a", "c", "a"], "target": ["a", "x", "a", "c"], "n": [1] * 4})
    pq.write_table(pairs, tmp_path / "p.parquet")
    result = delegraph.path(edges, pairs=tmp_path / "p.parquet")
    assert result.table.to_pydict() == {
        "source": ["c", "a", "a"],
        "target": ["a", "x", "c"],
        "distance": [2, None, 2],
    }
    facts = result.record["path"]
    assert (facts["pairs"], facts["repeated"], facts["unreached"]) == (3, 1, 1)
    nodes = delegraph.path(edges, pairs=tmp_path / "p.parquet", nodes=True)
    assert nodes["vertex"].to_pylist() == ["c", "b", "a", "a", "b", "c"]
    assert nodes["distance"].to_pylist() == [0, 1, 2] * 2
    facts = nodes.record["path"]
    assert (facts["pairs"], facts["unreached"], facts["steps"]) == (3, 1, 6)
    with delegraph.open(edges) as graph:
        assert graph.path("a", "c").table.to_pydict()["distance"] == [2]


WRONG = {
    "an unknown source": ({"source": [1, 7], "target": [2, 2]}, "row 2: source 7 is not a vertex"),
    "an unknown target": ({"source": [1, 1], "target": [-3, 2]}, "row 1: target -3 is not a ver"),
    "no target": ({"source": [1]}, "column 'target' is missing"),
    "nulls": ({"source": [1, None], "target": [1, 1]}, "column 'source': holds nulls"),
    "no pairs": (
        {"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())},
        "the file",
    ),
    "strings": ({"source": ["1"], "target": ["1"]}, "column 'source': ids are string"),
}


@pytest.mark.parametrize("kind", mostly_slow(WRONG, "an unknown target"))
def test_pairs_that_are_wrong(delegraph, edge_list, tmp_path, kind):
    columns, message = WRONG[kind]
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    asked = "path", edge_list([1, 2], [2, 3]), "-o", tmp_path / "out"
    outcome = delegraph(*asked, "--pairs", tmp_path / "p.parquet")
    assert outcome.code == 2
    assert f"{tmp_path / 'p.parquet'}: {message}" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_ends_that_are_typed(delegraph, edge_list, tmp_path):
    edges, out = edge_list([1, 2], [2, 3]), tmp_path / "out"
    outcome = delegraph("path", edges, "-o", out, "--from", 1, "--to", 3)
    assert outcome.code == 0
    assert "1 of 1 pair have a path; the greatest distance is 2" in outcome.out
    for ends in (["--source", 1], ["--pairs", "p.parquet", "--target", 1], []):
        outcome = delegraph("path", edges, "-o", out, *ends)
        assert outcome.code == 2
        assert "give either --source ID and --target ID, or --pairs FILE" in outcome.err
    outcome = delegraph("path", edges, "-o", tmp_path / "new", "--source", 1, "--target", 9)
    assert outcome.code == 2
    assert "target 9 is not a vertex of the graph" in outcome.err


def test_too_far_to_be_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(path_algorithm, "EXACT", 100.0)
    store = stored(tmp_path, [0, 1], [1, 2], BuildOptions(), np.array([50, 50]))
    for on_disk in (False, True):
        with pytest.raises(DelegraphError, match="distances of 100 are too large to be exact"):
            run_program(store, program_of(store, False), tmp_path / "out", on_disk=on_disk)


@pytest.mark.parametrize("nodes", [False, True])
def test_what_is_wrong_is_found(edge_list, tmp_path, nodes):
    rng = np.random.default_rng(1)
    edges = edge_list(*rng.integers(0, 40, (2, 100)), w=rng.integers(0, 9, 100))
    pairs = rng.integers(0, 40, (30, 2)).tolist()
    known = {*pq.read_table(edges)["src"].to_pylist()}
    pairs = [pair for pair in pairs if {*pair} <= known]
    delegraph.path(edges, pairs=pairs, nodes=nodes, output=tmp_path / "out", weight="w")
    (file,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(file)
    swapped = table.select(["target", "source", *table.column_names[2:]])
    cases = {
        "right": (table, set()),
        "swapped": (swapped.rename_columns(table.column_names), {1}),
        "repeated": (pa.concat_tables([table, table]), {1}),
        "cut": (table[:-1], {1}),
    }
    for changed, rules in cases.values():
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), file)
        verdict = delegraph.validate(edges, tmp_path / "out", weight="w")
        assert {broken["rule"] for broken in verdict["rules"]} == rules
        assert verdict["valid"] == (not rules)


def test_beside_networkx(edge_list):
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 300, (2, 500))
    weights = rng.integers(1, 50, 500)
    theirs = nx.DiGraph()
    for u, v, w in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
        if u != v:
            known = theirs.get_edge_data(u, v, {"weight": w})["weight"]
            theirs.add_edge(u, v, weight=min(w, known))
    vertices = sorted(theirs)
    pairs = [tuple(rng.choice(vertices, 2).tolist()) for _ in range(60)]
    edges = edge_list(src, dst, w=weights)
    asked: list[tuple[dict[str, Any], str | None]] = [({"weight": "w"}, "weight"), ({}, None)]
    for options, name in asked:
        ours: Any = delegraph.path(edges, pairs=pairs, directed=True, **options)
        columns = (ours[name].to_pylist() for name in ("source", "target", "distance"))
        found = zip(*columns, strict=True)
        for source, target, distance in found:
            if nx.has_path(theirs, source, target):
                assert distance == nx.shortest_path_length(theirs, source, target, weight=name)
            else:
                assert distance is None
