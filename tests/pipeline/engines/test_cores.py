"""Sums that are spread from few vertices, and core numbers, against their definitions: every engine
on CPUs, every layout, any number of ranks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.pieces.operators import CountSum, IntegerSum, WholeSum
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms import cores
from delegraph.pipeline.algorithms.cores import CoresProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import operations as host
from delegraph.pipeline.engines.operations.marks import VertexPlaces, union
from delegraph.pipeline.engines.operations.operations import Calls, Operations
from delegraph.pipeline.engines.operations.program import ProgramResult, Tell
from delegraph.pipeline.engines.operations.vectors import Counts, Vector, VectorType
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.graphs import SHAPES, edges_of, graphs, store_options
from support.marks import mostly_nightly, mostly_slow, nightly, slow
from support.programs import run_program, stored
from support.wanted import wanted_cores


@dataclass(frozen=True)
class SpreadSums:
    """A program that adds up integers along edges, by ``operator``. start: what vertices have
    before. steps: for each spread, the vertices that have a value, by rising global id, and the
    values.
    """

    start: np.ndarray
    steps: Sequence[tuple[np.ndarray, np.ndarray]]
    along: bool
    operator: WholeSum
    columns = ("sum",)
    weighted = scans_once = False

    @property
    def calls(self) -> Calls:
        return Calls((type(self.operator),))

    def held_bytes(self, counts: Counts) -> int:
        return 0

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        words = VectorType(self.operator.unit.dtype, ghosts=True)
        x, y = operations.vector(words), operations.vector(words)
        operations.put(y, np.arange(len(self.start), dtype=np.uint32), self.start)
        listed = 0
        for vertices, values in self.steps:
            operations.put(x, vertices, values)
            places, before = operations.where(x), Vector(y.own.copy(), y.shared.copy())
            changed = operations.spread(self.operator, x, y, self.along, places)
            if changed is not None:
                listed += 1
                assert (np.flatnonzero(y.own != before.own) == changed.own).all()
                assert (np.flatnonzero(y.shared != before.shared) == changed.shared).all()
            assert not any(part.any() for part in (*x.ghosts.values(), *y.ghosts.values()))
            x.fill(0, places)
        return ProgramResult({"sum": y}, {"listed": listed})


def check_sums(
    store: Store, folder: Path, seed: int, along: bool, operator: WholeSum, **how: Any
) -> None:
    """Check two spreads of numbers whose sums need all bits, of few and of more vertices."""
    n, rng, kind = store.info.vertices, np.random.default_rng(seed), operator.unit.dtype
    bits = 8 * kind.itemsize
    start = rng.integers(0, 1 << bits - 2, n, kind)
    u, v = edges_of(store)
    wanted, steps = start.copy(), []
    for share in (0.1, 0.6):
        vertices = np.flatnonzero(rng.random(n) < share).astype(np.uint32)
        values = rng.integers(1, 1 << bits - 14, len(vertices), kind)
        x = np.zeros(n, kind)
        x[vertices] = values
        wanted += reference.sums(*((u, v) if along else (v, u)), x).astype(kind)
        steps.append((vertices, values))
    columns, _ = run_program(store, SpreadSums(start, steps, along, operator), folder, **how)
    assert (columns["sum"] == wanted).all()


@pytest.mark.parametrize(
    ("ranks", "layout"), [(3, "delegate"), nightly(1, "1d"), nightly(3, "1d"), nightly(4, "2d")]
)
def test_threads_count_at_a_hub(tmp_path, monkeypatch, ranks, layout):
    """Threads of all ranks, and of one, add to the same vertex at once, and lose nothing."""
    monkeypatch.setattr(host, "PUSHED_FOR_SUMMED", 0)
    n = 150_000
    options = BuildOptions(partitions=ranks, layout=layout)
    store = stored(tmp_path, np.zeros(n, int), np.arange(1, n + 1), options)
    for operator in (IntegerSum(), CountSum()):
        folder = tmp_path / type(operator).__name__
        check_sums(store, folder, 1, True, operator, ranks=ranks, threads=4)


def test_few_changes_are_listed(tmp_path):
    store = stored(tmp_path, np.arange(600), np.arange(1, 601), BuildOptions(partitions=3))
    one = [(np.array([7], np.uint32), np.array([1], np.uint64))] * 5
    start = np.zeros(store.info.vertices, np.uint64)
    program = SpreadSums(start, one, True, IntegerSum())
    for ranks in (1, 3):
        columns, results = run_program(store, program, tmp_path / f"{ranks}", ranks)
        assert columns["sum"].sum() == 5 * 2
        assert results[0].record["listed"] == 5


def test_the_union_of_places():
    def places(*own: int) -> VertexPlaces:
        return VertexPlaces(np.array(own, np.uint32), np.array([own[0]], np.uint32))

    both = union([places(1, 5, 9), places(1, 3, 9, 10)])
    assert both is not None
    assert both.own.tolist() == [1, 3, 5, 9, 10]
    assert both.shared.tolist() == [1]
    assert both.own.dtype == both.shared.dtype == np.uint32
    assert union([places(1), None]) is None


# Core numbers


def check_cores(store: Store, folder: Path, wide: bool = False, **how: Any) -> None:
    wanted, rounds = wanted_cores(store)
    columns, results = run_program(store, CoresProgram(wide), folder, **how)
    assert (columns["core"] == wanted).all()
    assert results[0].record["rounds"] == rounds


@pytest.mark.slow
@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    along=st.booleans(),
    pulled=st.sampled_from([0, 2, 10**9]),
    listed=st.sampled_from([0, 8]),
    at_once=st.sampled_from([1, 1 << 24]),
    wide=st.booleans(),
)
def test_against_the_definitions(
    graph, options, ranks, on_disk, along, pulled, listed, at_once, wide
):
    """pulled: pull never, by default, always. listed: list all that a spread has changed, and all
    that are left, or few. at_once: edges of a call of the kernel. wide: count by 64 bits.
    """
    src, dst, seed, _ = graph
    if not len(src):
        return
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        patched.setattr(host, "PUSHED_FOR_SUMMED", pulled)
        patched.setattr(host, "ALL_FOR_LISTED", listed)
        patched.setattr(cores, "ALL_FOR_LISTED", listed)
        patched.setattr(cores, "_EDGES_AT_ONCE", at_once)
        store = stored(Path(place), src, dst, options)
        how = {"ranks": min(ranks, store.info.partitions), "on_disk": on_disk}
        operator = IntegerSum() if wide else CountSum()
        check_sums(store, Path(place) / "sums", seed, along, operator, **how)
        check_cores(store, Path(place) / "cores", wide, **how)


LARGE = ["star", "lollipop", "random", "hubs"]


@pytest.mark.parametrize("way", mostly_nightly(["kernel", "ranks", "disk"], "kernel"))
@pytest.mark.parametrize("directed", [nightly(False), True])
@pytest.mark.parametrize("shape", mostly_nightly(SHAPES, *(SHAPES.keys() - LARGE)))
def test_shapes(tmp_path, shape, directed, way):
    partitions = 3 if way == "ranks" else 1
    options = BuildOptions(directed=directed, partitions=partitions, layout="2d")
    src, dst = SHAPES[shape]
    store = stored(tmp_path, src, dst, options)
    check_cores(store, tmp_path / "out", ranks=partitions, on_disk=way == "disk")


KNOWN = {
    "one vertex": ([4], [4], {4: 0}),
    "loops alone": ([1, 2], [1, 2], {1: 0, 2: 0}),
    "loops and an edge": ([1, 1, 3], [1, 2, 3], {1: 1, 2: 1, 3: 0}),
    "repeated rows": ([1, 1, 2], [2, 2, 3], {1: 1, 2: 1, 3: 1}),
    "a clique and a tail": ([1, 1, 1, 2, 2, 3, 4], [2, 3, 4, 3, 4, 4, 5], {4: 3, 5: 1}),
    "a star": (np.zeros(9, int), np.arange(1, 10), {0: 1, 9: 1}),
}


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("name", KNOWN)
def test_small_graphs(edge_list, tmp_path, name, partitions):
    src, dst, known = KNOWN[name]
    delegraph.build(edge_list(src, dst), tmp_path / "graph.dg", partitions=partitions)
    for graph in (edge_list(src, dst), tmp_path / "graph.dg"):
        result = delegraph.cores(graph)
        found = dict(zip(result["vertex"].to_pylist(), result["core"].to_pylist(), strict=True))
        assert found | known == found
        record = result.record["cores"]
        assert record["largest"] == max(found.values())
        assert record["innermost"] == sum(value == record["largest"] for value in found.values())


def test_an_edge_in_both_directions_counts_twice(edge_list):
    """As in NetworkX, if the graph is directed."""
    edges = edge_list([1, 2, 2], [2, 1, 3])
    assert delegraph.cores(edges, directed=True)["core"].to_pylist() == [2, 2, 1]
    assert delegraph.cores(edges)["core"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["karate", slow("email-Eu-core")])
def test_real_graphs_beside_networkx(real_graph, name, directed):
    table = pq.read_table(real_graph(name))
    graph = (nx.DiGraph if directed else nx.Graph)(
        zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True)
    )
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    result = delegraph.cores(real_graph(name), directed=directed)
    found = dict(zip(result["vertex"].to_pylist(), result["core"].to_pylist(), strict=True))
    assert found == nx.core_number(graph)
    if name == "karate":
        assert (result.record["cores"]["largest"], result.record["cores"]["innermost"]) == (4, 10)


@pytest.mark.parametrize("least", mostly_slow([1, 60, 1000], 60))
def test_the_vertices_of_a_core(edge_list, tmp_path, least):
    """A result has rows of the vertices with the least core number alone, which may be none."""
    edges = edge_list(*SHAPES["hubs"])
    every = delegraph.cores(edges).table
    wanted = every.filter(np.asarray(every["core"]) >= least)
    assert (least < 1000) == (len(wanted) > 0)
    assert delegraph.cores(edges, min=least).table.equals(wanted)
    delegraph.cores(edges, output=tmp_path / "out", min=least)
    assert pq.read_table(tmp_path / "out").equals(wanted)
    assert delegraph.validate(edges, tmp_path / "out")["valid"]


# Checkpoints


@pytest.mark.parametrize("directed", [slow(False), True])
@pytest.mark.parametrize("then_on_disk", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_the_kernel_and_operations_go_on_from_each_other(
    tmp_path, monkeypatch, on_disk, then_on_disk, directed
):
    monkeypatch.setattr(cores, "_EDGES_AT_ONCE", 1)
    store = stored(tmp_path, np.arange(50), np.arange(1, 51), BuildOptions(directed=directed))
    cut = CutOff(tmp_path / "saved", 0, "this")
    cut.left = 3
    with pytest.raises(RankError, match="KeyboardInterrupt"):
        run_program(store, CoresProgram(), tmp_path / "some", on_disk=on_disk, checkpoint=cut)
    done: list[int] = []
    saved = Checkpoint(tmp_path / "saved", 1000, "this", loaded=done.append)
    check_cores(store, tmp_path / "rest", on_disk=then_on_disk, checkpoint=saved)
    assert 0 < done[0] < 25
