"""Triangles and clustering coefficients against their definition, on every engine on CPUs, and
their operation: intersect.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.clustering import ClusteringProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import intersect
from delegraph.pipeline.judging import clustering as judging
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.graphs import edges_of, graphs, random_edges, store_options
from support.marks import mostly_nightly, nightly, slow
from support.programs import run_program, stored

PROGRAM = ClusteringProgram()

HUBS = random_edges(4, 300, 9000)


def check(store: Store, folder: Path, ranks: int = 1, on_disk: bool = False, **options) -> None:
    columns, _ = run_program(store, PROGRAM, folder, ranks, on_disk, **options)
    clustering, triangles = reference.clustering(*edges_of(store), store.info.vertices)
    assert columns["clustering"].tobytes() == clustering.tobytes()
    assert columns["triangles"].tolist() == triangles.tolist()


def narrow(monkeypatch, room: int) -> None:
    """Make ranges whose rows hold few bytes."""
    monkeypatch.setattr(intersect, "RANGE_BYTES", room)
    monkeypatch.setattr(intersect, "_WINDOW", max(1, room // 100))


@pytest.mark.slow
@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    room=st.sampled_from([None, 900, 5000]),
)
def test_against_the_definition(graph, options, ranks, on_disk, room):
    src, dst, _, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as monkeypatch:
        if room is not None:
            narrow(monkeypatch, room)
        store = stored(Path(place), src, dst, options)
        check(store, Path(place) / "out", min(ranks, store.info.partitions), on_disk)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", [1, slow(2), slow(5)])
def test_a_dense_graph(tmp_path, monkeypatch, directed, threads):
    """Threads share long rows, in several ranges; rows are passed, and searched."""
    monkeypatch.setattr(intersect, "ENTRIES_A_TURN", 50)
    store = stored(tmp_path, *HUBS, BuildOptions(directed=directed, order="random"))
    check(store, tmp_path / "one", threads=threads)
    narrow(monkeypatch, 9000)
    check(store, tmp_path / "several", threads=threads)


@pytest.mark.parametrize("directed", [False, True])
def test_ranges_of_one_vertex(tmp_path, monkeypatch, directed):
    """A row that exceeds the room of a range is a range of its own."""
    narrow(monkeypatch, 1)
    src, dst = np.triu_indices(12, 1)
    options = BuildOptions(directed=directed, partitions=2)
    store = stored(tmp_path, [*src, 2, 3, 20], [*dst, 0, 1, 20], options)
    for ranks in (1, 2):
        check(store, tmp_path / f"{ranks}", ranks)


def test_targets_that_share_a_slot(edge_list):
    """Entries of a row whose positions have the same last bits are told apart."""
    first = np.arange(1 << 16)
    src, dst = np.r_[first, first, first + (1 << 16)], np.r_[first, first, first] + (1 << 16)
    dst = dst + np.r_[np.zeros(1 << 16, int), np.full(1 << 17, 1 << 16)]
    result = delegraph.clustering(edge_list(src, dst))
    assert set(result["triangles"].to_pylist()) == {1}
    assert set(result["clustering"].to_pylist()) == {1.0}
    assert result.record["clustering"]["triangles"] == 1 << 16


@pytest.mark.parametrize("layout", mostly_nightly(["delegate", "2d", "1d"], "delegate"))
@pytest.mark.parametrize(
    ("first_ranks", "ranks"), [(3, 1), nightly(1, 3), nightly(2, 3), nightly(3, 3)]
)
@pytest.mark.parametrize("directed", [nightly(False), True])
def test_going_on_by_other_ranks(tmp_path, monkeypatch, directed, first_ranks, ranks, layout):
    """A run goes on from finished groups, whatever ranges it makes itself."""
    options = BuildOptions(directed=directed, partitions=3, layout=layout, order="none")
    store = stored(tmp_path, *HUBS, options)
    narrow(monkeypatch, 3000)
    cut = CutOff(tmp_path / "saved", 0.0, "this")
    with pytest.raises((KeyboardInterrupt, RankError)):
        run_program(store, PROGRAM, tmp_path / "first", first_ranks, checkpoint=cut)
    narrow(monkeypatch, 7000)
    loaded: list[int] = []
    saved = Checkpoint(tmp_path / "saved", 0.0, "this", loaded=loaded.append)
    check(store, tmp_path / "out", ranks, checkpoint=saved)
    (done,) = loaded
    assert 0 < done < store.info.vertices


def test_memory_does_not_grow_with_edges(tmp_path, monkeypatch):
    """A run of several ranges holds no row beyond the room of a range."""
    store = stored(tmp_path, *HUBS, BuildOptions(partitions=2))
    narrow(monkeypatch, 9000)
    held: list[int] = []
    made = intersect._room_for

    def room_for(first, lengths):
        rows = made(first, lengths)
        held.append(sum(array.nbytes for array in rows[1:]))
        return rows

    monkeypatch.setattr(intersect, "_room_for", room_for)
    for ranks in (1, 2):
        check(store, tmp_path / f"{ranks}", ranks)
    room = intersect._COPIES * intersect.RANGE_BYTES // 2  # of one rank
    assert len(held) > 10
    assert max(held) <= room


EXTREMES = {
    "a vertex alone": ([7], [7], [0.0], [0], 0, 0.0),
    "loops alone": ([7, 8, 8], [7, 8, 8], [0.0] * 2, [0] * 2, 0, 0.0),
    "an edge": ([1, 1], [2, 2], [0.0] * 2, [0] * 2, 0, 0.0),
    "a star": ([0] * 5, range(1, 6), [0.0] * 6, [0] * 6, 0, 0.0),
    "a path": (range(5), range(1, 6), [0.0] * 6, [0] * 6, 0, 0.0),
    "a triangle": ([1, 2, 3, 3, 1], [2, 3, 1, 1, 1], [1.0] * 3, [1] * 3, 1, 1.0),
    "a clique": (*np.triu_indices(6, 1), [1.0] * 6, [10] * 6, 20, 1.0),
}


@pytest.mark.parametrize("shape", EXTREMES)
def test_extremes(edge_list, shape):
    src, dst, clustering, triangles, total, transitivity = EXTREMES[shape]
    result = delegraph.clustering(edge_list(list(src), list(dst)))
    assert result["clustering"].to_pylist() == clustering
    assert result["triangles"].to_pylist() == triangles
    facts = result.record["clustering"]
    assert (facts["triangles"], facts["transitivity"]) == (total, transitivity)
    assert facts["average"] == clustering[0]


def test_directed_edges_between_neighbours(edge_list):
    """An edge in both directions counts twice, and its ends are neighbours once."""
    edges = edge_list([0, 1, 2, 1, 3], [1, 2, 0, 0, 0])
    result = delegraph.clustering(edges, directed=True).table.sort_by("vertex")
    assert result["clustering"].to_pylist() == [1 / 6, 1 / 2, 1.0, 0.0]
    assert result["triangles"].to_pylist() == [1, 1, 1, 0]


def test_the_average_is_the_same_in_every_order(edge_list):
    edges = edge_list(*HUBS)
    averages = set()
    for order in ("degree", "none", "random"):
        store = edges.parent / f"{order}.dg"
        delegraph.build(edges, store, order=order, device="cpu")
        averages.add(delegraph.clustering(store).record["clustering"]["average"])
    assert len(averages) == 1


@pytest.mark.parametrize("name", ["email-Eu-core", slow("luxembourg-osm")])
def test_a_real_graph(real_graph, name):
    """NetworkX's numbers."""
    path = real_graph(name)
    table = pq.read_table(path)
    graph = nx.Graph(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    result = delegraph.clustering(path)
    found = {row["vertex"]: row for row in result.table.to_pylist()}
    assert {v: row["triangles"] for v, row in found.items()} == nx.triangles(graph)
    assert {v: row["clustering"] for v, row in found.items()} == nx.clustering(graph)
    facts = result.record["clustering"]
    assert facts["average"] == pytest.approx(nx.average_clustering(graph), rel=1e-12)
    assert facts["transitivity"] == pytest.approx(nx.transitivity(graph), rel=1e-12)


def test_the_answer_of_others(real_graph):
    """libgrape-lite's coefficients, of the graph without directions."""
    wanted = pq.read_table(real_graph("validation/p2p-31-answers")).sort_by("vertex")
    result = delegraph.clustering(real_graph("real/p2p_gnutella31_w"))
    found = result.table.sort_by("vertex")
    assert found["vertex"].to_pylist() == wanted["vertex"].to_pylist()
    assert found["clustering"].to_pylist() == pytest.approx(wanted["clustering"].to_pylist())


@pytest.mark.parametrize("directed", [False, True])
def test_a_judge_of_little_memory(tmp_path, monkeypatch, directed):
    """A judge whose keys do not fit in memory goes through ranges of vertices."""
    edges = stored(tmp_path, *HUBS, BuildOptions(directed=directed)).path
    delegraph.clustering(edges, output=tmp_path / "out")
    whole = delegraph.validate(edges, tmp_path / "out")
    monkeypatch.setattr(judging, "_LEAST_ENTRIES", 500)
    monkeypatch.setattr(judging, "_ENTRY_BYTES", 1 << 60)
    assert delegraph.validate(edges, tmp_path / "out") == whole
    assert whole["valid"]
