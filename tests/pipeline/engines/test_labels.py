"""Label propagation against its definition, on every engine on CPUs, and its operation: tally."""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.kernels.pieces import tally as kernels
from delegraph.partition.store.edge_stream import run_bytes
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.labels import Labels, LabelsProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import tally
from delegraph.pipeline.engines.operations.operations import Operations
from delegraph.pipeline.engines.operations.program import counts_of
from delegraph.pipeline.engines.ranks.search import load_rank
from delegraph.pipeline.ranks.communicator import SingleCommunicator
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import SHAPES, graphs, random_edges, store_options
from support.marks import mostly_slow, slow
from support.programs import run_program, stored
from support.wanted import LABEL_WEIGHTS as WEIGHTS
from support.wanted import wanted_labels


def program_of(store: Store, iterations: int = 5) -> LabelsProgram:
    return Labels(iterations).planned(store.info)


def check(store: Store, folder: Path, ranks: int = 1, on_disk: bool = False, **options) -> None:
    columns, _ = run_program(store, program_of(store), folder, ranks, on_disk, **options)
    assert np.array_equal(columns["label"], wanted_labels(store))


def narrow(monkeypatch, edges: int, labels: int) -> None:
    """Make windows of few edges, and tables of few labels."""
    monkeypatch.setattr(tally, "WINDOW_EDGES", edges)
    monkeypatch.setattr(tally, "_TABLES_BYTES", 0)
    monkeypatch.setattr(kernels, "_LEAST_SLOTS", 2 * labels)
    monkeypatch.setattr(tally, "_SHORT", edges)


@pytest.mark.slow
@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    kind=st.sampled_from([None, *WEIGHTS]),
    narrowed=st.sampled_from([None, (3, 4), (50, 8), (1 << 19, 4)]),
)
def test_against_the_definition(graph, options, ranks, on_disk, kind, narrowed):
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as monkeypatch:
        if narrowed is not None:
            narrow(monkeypatch, *narrowed)
        store = stored(Path(place), src, dst, options, weight)
        check(store, Path(place) / "out", min(ranks, store.info.partitions), on_disk)


@pytest.mark.parametrize("directed", [False, slow(True)])
@pytest.mark.parametrize("shape", mostly_slow(["hubs", "star", "lollipop", "self-loop"], "hubs"))
def test_rows_that_threads_tally_together(tmp_path, monkeypatch, shape, directed):
    """Long rows are tallied by all threads, each of them with another class of labels."""
    monkeypatch.setattr(tally, "_LONG", 500)
    src, dst = SHAPES[shape]
    store = stored(tmp_path, src, dst, BuildOptions(directed=directed))
    for threads in (1, 2, 5):
        check(store, tmp_path / f"{threads}", threads=threads)


@pytest.mark.parametrize("partitions", [1, slow(3)])
def test_rows_that_are_cut_on_disk(tmp_path, monkeypatch, partitions):
    """Windows and pieces of rows that are read from disk do not end at the same edges."""
    narrow(monkeypatch, 5000, 64)
    src, dst = SHAPES["hubs"]
    store = stored(tmp_path, src, dst, BuildOptions(partitions=partitions))
    check(store, tmp_path / "out", on_disk=True)


@pytest.mark.nightly
@pytest.mark.parametrize("on_disk", [False, True])
def test_many_partitions_hold_what_is_planned(tmp_path, on_disk):
    src, dst = random_edges(9, 1_000_000, 2_000_000)
    options = BuildOptions(directed=True, partitions=16, threshold=8)
    store = stored(tmp_path, src, dst, options)
    program, team = program_of(store, 1), Team(2)
    graph = load_rank(store, 0, 1, team, on_disk=on_disk)
    operations = Operations(graph, SingleCommunicator(), team, True)
    buffers = 4 * run_bytes() if on_disk else 0
    tracemalloc.start()
    try:
        program.run(operations, lambda *_: None)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held < program.held_bytes(counts_of(store)) + buffers


@pytest.mark.parametrize(("first_ranks", "ranks"), [(1, 3), (3, 1), (2, 3)])
def test_going_on_by_other_ranks(tmp_path, first_ranks, ranks):
    src, dst = SHAPES["grid"]
    store = stored(tmp_path, src, dst, BuildOptions(partitions=3))
    loaded: list[int] = []

    def checkpoint() -> Checkpoint:
        return Checkpoint(tmp_path / "saved", 0.0, "this", loaded=loaded.append)

    first = program_of(store, 2)
    run_program(store, first, tmp_path / "first", first_ranks, checkpoint=checkpoint())
    check(store, tmp_path / "out", ranks, checkpoint=checkpoint())
    assert loaded


def test_labels_that_alternate(edge_list):
    """The ends of a single edge swap their labels for ever."""
    result = delegraph.labels(edge_list([0], [1]), iterations=7)
    facts = result.record["labels"]
    assert result.table.sort_by("vertex")["label"].to_pylist() == [1, 0]
    assert (facts["iterations"], facts["changed"], facts["settled"]) == (7, 2, False)


def test_labels_that_settle(edge_list):
    """A run ends once no label changes."""
    triangle = delegraph.labels(edge_list([0, 1, 2], [1, 2, 0]), iterations=99)
    assert triangle.table["label"].to_pylist() == [0, 0, 0]
    assert triangle.record["labels"]["settled"]
    assert triangle.record["labels"]["iterations"] < 5


def test_vertices_without_neighbours(edge_list):
    """Vertices that have self-loops alone keep their labels."""
    result = delegraph.labels(edge_list([5, 7, 7], [5, 7, 9]), iterations=2)
    assert result.table.sort_by("vertex").to_pydict() == {"vertex": [5, 7, 9], "label": [5, 7, 9]}


def test_ids_are_compared_as_ids(edge_list):
    """Of equally common labels the least id is taken, whatever the order of vertices in a store."""
    src, dst = ["z", "z", "z"], ["b", "a", "c"]
    for order in ("degree", "none", "random"):
        store = edge_list(src, dst).parent / f"{order}.dg"
        delegraph.build(edge_list(src, dst), store, order=order, device="cpu")
        table = delegraph.labels(store, iterations=1).table.sort_by("vertex")
        assert table["label"].to_pylist() == ["z", "z", "z", "a"]


def test_the_answer_of_others(real_graph):
    """libgrape-lite's labels after ten iterations."""
    wanted = pq.read_table(real_graph("validation/p2p-31-answers"))
    graph = real_graph("real/p2p_gnutella31_w")
    found = delegraph.labels(graph, iterations=10).table.sort_by("vertex")
    wanted = wanted.sort_by("vertex")
    assert found["vertex"].to_pylist() == wanted["vertex"].to_pylist()
    assert found["label"].to_pylist() == wanted["label_propagation_10"].to_pylist()
