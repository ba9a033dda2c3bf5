"""Strong components against their definition, on every engine on CPUs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

import delegraph
from delegraph.kernels import reference
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import strong
from delegraph.pipeline.algorithms.strong import CondensationProgram, StrongProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import operations as host
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.graphs import SHAPES, edges_of, graphs, store_options
from support.marks import mostly_nightly, mostly_slow, nightly
from support.programs import run_program, stored
from support.wanted import least_of


def check(store: Store, folder: Path, **how: Any) -> int:
    """Check the components of a store by the definition. Returns the number of rounds."""
    program = CondensationProgram(store.info.directed)
    columns, results = run_program(store, program, folder, extra_bytes=1 << 30, **how)
    u, v = edges_of(store)
    wanted = reference.strong_components(u, v, store.info.vertices)
    assert (least_of(columns["component"]) == wanted).all()
    if store.info.directed:
        ends = columns["component"][columns["src"]], columns["component"][columns["dst"]]
        assert np.array_equal(ends, (columns["src"], columns["dst"]))
        src, dst, edges = reference.contract(u, v, wanted, True, False)
        found = wanted[columns["src"]], wanted[columns["dst"]]
        order = np.lexsort(found[::-1])
        assert np.array_equal(src, found[0][order])
        assert np.array_equal(dst, found[1][order])
        assert np.array_equal(edges, columns["edges"][order])
    else:
        assert not len(columns["src"])
    return results[0].record["rounds"]


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    pulled=st.sampled_from([0, 8, 10**9]),
    listed=st.sampled_from([0, 8]),
    at_once=st.sampled_from([1, 1 << 24]),
)
def test_against_the_definition(graph, options, ranks, on_disk, pulled, listed, at_once):
    """pulled: pull never, by default, always. listed: list all that a spread has changed, or few.
    at_once: edges of a call of the kernel.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        patched.setattr(host, "PUSHED_FOR_PULLED", pulled)
        patched.setattr(host, "PUSHED_FOR_SUMMED", pulled)
        patched.setattr(host, "ALL_FOR_LISTED", listed)
        patched.setattr(strong, "_EDGES_AT_ONCE", at_once)
        store = stored(Path(place), src, dst, options)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", ranks=ranks, on_disk=on_disk)


def rings(count: int, size: int, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return rings in a row, each with an edge to the next."""
    vertex = np.arange(count * size)
    following = np.where(vertex % size == size - 1, vertex - size + 1, vertex + 1)
    last = size * np.arange(1, count)
    src, dst = np.r_[vertex, last - 1], np.r_[following, last]
    if not shuffled:
        return src, dst
    number = np.random.default_rng(2).permutation(len(vertex))
    return number[src], number[dst]


GRAPHS: dict[str, tuple[Any, Any]] = {
    **{name: SHAPES[name] for name in ("two vertices", "self-loop", "clique", "two components")},
    "star": (np.zeros(300, int), np.arange(1, 301)),
    "path": (np.arange(99), np.arange(1, 100)),
    "ring": (np.arange(300), np.r_[1:300, 0]),
    "rings in a row": rings(60, 2, False),
    "rings in any order": rings(100, 3, True),
    "ring with tails": (np.r_[0:50, 7, 90:120], np.r_[1:50, 0, 60, 91:120, 3]),
}

WAYS = {"one": {}, "disk": {"on_disk": True}, "ranks": {"ranks": 3}}


@pytest.mark.parametrize("way", mostly_nightly(WAYS, "one"))
@pytest.mark.parametrize("directed", [nightly(False), True])
@pytest.mark.parametrize("name", mostly_nightly(GRAPHS, "path", "star", "rings in a row"))
def test_shapes(tmp_path, name, directed, way):
    partitions = 3 if way == "ranks" else 1
    options = BuildOptions(directed=directed, partitions=partitions, layout="2d")
    store = stored(tmp_path, *GRAPHS[name], options)
    check(store, tmp_path / "out", **WAYS[way])


def test_rounds_of_a_chain_of_components(tmp_path):
    """Colours are random, so a chain of components does not take a search for each of them."""
    options = BuildOptions(directed=True, partitions=2, layout="1d")
    store = stored(tmp_path, *rings(100, 2, False), options)
    assert check(store, tmp_path / "out") < 10 * 200  # 100 searches would take some 100 * 100


KNOWN = {
    "one vertex": ([4], [4], [4]),
    "loops alone": ([1, 2], [1, 2], [1, 2]),
    "an edge": ([1], [2], [1, 2]),
    "an edge each way": ([2, 1, 2], [1, 2, 3], [1, 1, 3]),
    "repeated rows": ([1, 1, 2, 2], [2, 2, 3, 1], [1, 1, 3]),
    "two rings and a bridge": ([1, 2, 3, 3, 4, 5], [2, 3, 1, 4, 5, 4], [1, 1, 1, 4, 4]),
    "texts": (["b", "a", "b"], ["a", "b", "c"], ["a", "a", "c"]),
}


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("name", KNOWN)
def test_small_graphs(edge_list, tmp_path, name, partitions):
    src, dst, wanted = KNOWN[name]
    store = tmp_path / "graph.dg"
    delegraph.build(edge_list(src, dst), store, partitions=partitions, directed=True, device="cpu")
    sizes = [wanted.count(value) for value in set(wanted)]
    ways: list[tuple[Any, dict[str, Any]]] = [
        (edge_list(src, dst), {"directed": True}),
        (store, {}),
    ]
    for graph, how in ways:
        result = delegraph.strong(graph, **how)
        assert result.table.sort_by("vertex")["component"].to_pylist() == wanted
        facts = result.record["strong"]
        assert facts["components"] == len(sizes)
        assert facts["largest"] == max(sizes)
        assert facts["alone"] == sizes.count(1)


def test_components_of_an_undirected_graph(edge_list):
    edges = edge_list(*SHAPES["two components"])
    strong_table, table = (ask(edges).table for ask in (delegraph.strong, delegraph.components))
    assert strong_table.equals(table)


REAL = ["email-Eu-core", "cnr-2000", "real/usa_road_t_ny", "real/reddit_related"]


@pytest.mark.parametrize("name", mostly_slow(REAL, "email-Eu-core"))
def test_real_graphs_beside_scipy(real_graph, tmp_path, name):
    table = pq.read_table(real_graph(name), columns=["src", "dst"])
    ids, ends = np.unique(np.concatenate([table["src"], table["dst"]]), return_inverse=True)
    src, dst = ends.reshape(2, -1)
    matrix = coo_matrix((np.ones(len(src), np.int8), (src, dst)), shape=(len(ids),) * 2)
    count, labels = connected_components(matrix, connection="strong")
    first = np.full(count, len(ids))
    np.minimum.at(first, labels, np.arange(len(ids)))
    store = tmp_path / "graph.dg"
    delegraph.build(real_graph(name), store, directed=True, partitions=2, layout="1d", device="cpu")
    ways: list[tuple[Any, dict[str, Any]]] = [(real_graph(name), {"directed": True}), (store, {})]
    for graph, how in ways:
        found = delegraph.strong(graph, **how).table.sort_by("vertex")
        assert (np.asarray(found["vertex"]) == ids).all()
        assert (np.asarray(found["component"]) == ids[first[labels]]).all()


def test_condensations_are_judged(edge_list, tmp_path):
    """A row that is missing, or is there twice, or counts otherwise is found."""
    edges = edge_list(*rings(5, 3, True))
    found = delegraph.strong(edges, output=tmp_path / "out", directed=True, condense=True)
    assert str(found).startswith("condensation: 4 edges between 5 strong components")
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    more = table.set_column(2, "edges", pc.call_function("add", [table["edges"], 1]))
    cases = [(table, 0), (table[1:], 4), (more, 3), (pa.concat_tables([table] * 2), 2)]
    for changed, rule in cases:
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
        verdict = delegraph.validate(edges, tmp_path / "out")
        assert [broken["rule"] for broken in verdict["rules"]] == [rule] * bool(rule)
        assert (verdict["valid"], verdict["judged"]) == (not rule, "all")


def test_a_condensation_of_an_undirected_graph(edge_list, tmp_path):
    """A result without rows has the columns, and files."""
    edges = edge_list([1, 2, 5], [2, 3, 6])
    found = delegraph.strong(edges, condense=True)
    assert (len(found), found.table.column_names) == (0, ["src", "dst", "edges"])
    found.write(tmp_path / "out")
    assert pq.read_table(tmp_path / "out").num_rows == 0
    assert delegraph.validate(edges, tmp_path / "out")["valid"]
    assert delegraph.info(tmp_path / "out")["rows"] == 0


# Checkpoints


PLACES = {"kernel": {}, "disk": {"on_disk": True}, "ranks": {"ranks": 3}}


@pytest.mark.parametrize("saves", [nightly(2), nightly(20), 40])
@pytest.mark.parametrize("then", mostly_nightly(PLACES, "kernel", "disk"))
@pytest.mark.parametrize("first", mostly_nightly(PLACES, "ranks"))
def test_engines_go_on_from_each_other(tmp_path, monkeypatch, first, then, saves):
    """A search is cut off while it trims, spreads colours, or goes back."""
    monkeypatch.setattr(strong, "_EDGES_AT_ONCE", 1)
    src, dst = GRAPHS["rings in a row"]
    options = BuildOptions(directed=True, partitions=3)
    store = stored(tmp_path, src, dst, options)
    cut = CutOff(tmp_path / "saved", 0, "this")
    cut.left = saves
    with pytest.raises(RankError, match="KeyboardInterrupt"):
        run_program(
            store,
            StrongProgram(store.info.directed),
            tmp_path / "some",
            **PLACES[first],
            checkpoint=cut,
        )
    done: list[int] = []
    saved = Checkpoint(tmp_path / "saved", 1000, "this", loaded=done.append)
    check(store, tmp_path / "rest", **PLACES[then], checkpoint=saved)
    assert done == [saves]


@pytest.mark.slow
def test_every_round_can_be_gone_on_from(tmp_path):
    """Whatever the round after which a search is cut off, both ways give the right answer."""
    src, dst = rings(4, 3, True)
    src, dst = np.r_[src, 5, 12, 13], np.r_[dst, 12, 13, 14]
    store = stored(tmp_path, src, dst, BuildOptions(directed=True))
    rounds = check(store, tmp_path / "whole", on_disk=True)
    for after in range(1, rounds + 1):
        folder = tmp_path / f"{after}"
        cut = CutOff(folder, 0, "this")
        cut.left = after
        how = {"on_disk": True, "checkpoint": cut}
        with pytest.raises(RankError, match="KeyboardInterrupt"):
            run_program(store, StrongProgram(store.info.directed), tmp_path / "some", **how)
        for on_disk in (False, True):
            saved = Checkpoint(folder, 1000, "this")
            check(store, tmp_path / "rest", on_disk=on_disk, checkpoint=saved)
