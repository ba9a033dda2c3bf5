"""HITS, eigenvector and Katz centrality against their definitions: every engine on CPUs, every
layout, any number of ranks; and one GPU.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu_programs import rows as cut_rows
from delegraph.kernels.gpu_programs.rows import Cuts
from delegraph.kernels.gpu_programs.tiles import Tiling
from delegraph.partition.errors import InputError
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.iterations import Stop
from delegraph.pipeline.algorithms.katz import Katz, KatzProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from delegraph.pipeline.engines.operations.program import ProgramResult
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.graphs import SHAPES, graphs, store_options
from support.marks import mostly_slow, partly_nightly, slow
from support.programs import run_program, stored
from support.scores import PROGRAMS, check_scores, chosen_alpha, scores_program
from support.standing import standing

WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "integers": lambda rng, m: rng.integers(0, 5, m),
    "great": lambda rng, m: rng.integers(1 << 31, 1 << 32, m),
    "nothing": lambda rng, m: np.zeros(m, np.int64),
}


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    name=st.sampled_from(sorted(PROGRAMS)),
    kind=st.sampled_from([None, *WEIGHTS]),
)
def test_against_the_definitions(graph, options, ranks, on_disk, name, kind):
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        program = scores_program(name, store)
        columns, _ = run_program(store, program, Path(place) / "out", ranks, on_disk)
        check_scores(name, store, columns)


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, "hits"))
def test_the_same_for_any_number_of_threads(tmp_path, name):
    src, dst = SHAPES["hubs"]
    store = stored(tmp_path, src, dst, BuildOptions(directed=True))
    program = scores_program(name, store)
    results = [
        run_program(store, program, tmp_path / f"{threads}-{on_disk}", 1, on_disk, threads)[0]
        for on_disk in (False, True)
        for threads in (1, 2, 5)
    ]
    for group in (results[:3], results[3:]):
        for column, scores in group[0].items():
            assert all((one[column] == scores).all() for one in group)


def _stopping(save: Any) -> Any:
    """Return a function that saves, and cuts the run off at its second call."""
    calls: list[int] = []

    def saved(*arguments: Any) -> None:
        save(*arguments)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    return saved


GREATEST = {
    "star": math.sqrt(30_000),
    "path": 2 * math.cos(math.pi / 602),
    "clique": 69.0,
    "grid": 4 * math.cos(math.pi / 121),
}
"""The greatest eigenvalue of undirected shapes."""


@pytest.mark.parametrize(
    ("shape", "ranks"), [("star", 1), ("grid", 3), *(slow(shape, 2) for shape in GREATEST)]
)
def test_alpha_is_chosen_below_the_bound(tmp_path, shape, ranks):
    """Alpha is less than 1 over the greatest eigenvalue, and not much less."""
    src, dst = SHAPES[shape]
    store = stored(tmp_path, src, dst, BuildOptions(partitions=ranks))
    facts = chosen(store, tmp_path / "out", ranks)
    assert facts["alpha"] == pytest.approx(chosen_alpha(store), rel=1e-12)
    assert 0.8 < facts["alpha"] * GREATEST[shape] < 0.9 + 1e-9
    assert facts["converged"]


@pytest.mark.parametrize("weight", [None, 2.0**-100, 2.0**100, 3e38])
def test_alpha_of_a_cycle(tmp_path, weight):
    """The greatest eigenvalue of a directed cycle is the weight of its edges; vertices that nothing
    leads to, and paths to them, change nothing.
    """
    ring = np.arange(50)
    src, dst = np.r_[ring, 60, 61], np.r_[np.roll(ring, 1), 7, 60]
    weights = None if weight is None else np.full(52, weight, np.float32)
    store = stored(tmp_path, src, dst, BuildOptions(directed=True), weights)
    facts = chosen(store, tmp_path / "out")
    assert 0.4 < facts["alpha"] * (weight or 1) < 0.9 + 1e-9
    assert facts["converged"]


def test_alpha_without_edges(tmp_path):
    store = stored(tmp_path, [3, 5], [3, 5], BuildOptions())
    program = KatzProgram(2, Stop(9, 1e-9), None)
    columns, results = run_program(store, program, tmp_path / "out")
    assert columns["katz"].tolist() == pytest.approx([0.5**0.5] * 2)
    assert results[0].record["facts"]["alpha"] == 0


def chosen(store: Store, folder: Path, ranks: int = 1) -> Any:
    """Return the facts of a run that chooses alpha."""
    n, weights = store.info.vertices, store.info.weights
    program = KatzProgram(n, Stop(2000, n * 1e-9), weights and weights.kind)
    _, results = run_program(store, program, folder, ranks)
    return results[0].record["facts"]


def test_scores_that_grow_without_end(tmp_path):
    """A run ends when its scores cannot settle, without a warning, long before the last
    iteration.
    """
    src, dst = SHAPES["hubs"]
    store = stored(tmp_path, src, dst, BuildOptions())
    for alpha in (0.9, 1e300):
        program = KatzProgram(store.info.vertices, Stop(1000, 1e-6), None, alpha)
        _, results = run_program(store, program, tmp_path / f"{alpha}")
        iterations = results[0].record["iterations"]
        assert iterations[-1]["change"] == math.inf
        assert len(iterations) < 300
        assert not results[0].record["facts"]["converged"]


def test_an_alpha_that_is_too_great(edge_list):
    """Scores that still grow after the last iteration are an error; those that do not are told not
    to have converged.
    """
    src, dst = SHAPES["clique"]  # whose greatest eigenvalue is 69
    edges = edge_list(src, dst)
    for alpha, most in ((1.1 / 69, 100), (1.1 / 69, 3), (0.9, 1000), (1e300, 1000)):
        with pytest.raises(InputError, match=r"alpha .* is too great .*: after .* alpha=.auto."):
            delegraph.katz(edges, alpha=alpha, max_iterations=most)
    for most in (1, 20):
        record = delegraph.katz(edges, alpha=0.95 / 69, max_iterations=most).record["katz"]
        assert not record["converged"]
    assert delegraph.katz(edges, alpha=0.95 / 69).record["katz"]["converged"]


def test_tolerances(edge_list):
    """A run stops at the first iteration that changes less than the tolerance, however little that
    is; the tolerance of Katz centrality is that of a vertex.
    """
    src, dst = SHAPES["two components"]
    edges = edge_list(src, dst)
    for name, by_vertex in (("hits", False), ("eigenvector", False), ("katz", True)):
        for tolerance in (1e-3, 1e-9, 1e-307):
            result = getattr(delegraph, name)(edges, tolerance=tolerance)
            changes = [step["change"] for step in result.record["iterations"]]
            limit = tolerance * (102 if by_vertex else 1)
            assert all(change >= limit for change in changes[:-1])
            assert result.record[name]["converged"] == (changes[-1] < limit)


@pytest.mark.parametrize(
    ("name", "directed"),
    [("karate", False), slow("email-Eu-core", False), slow("email-Eu-core", True)],
)
def test_real_graphs_beside_linear_algebra(real_graph, name, directed):
    """Scores are those that NumPy finds by singular vectors, by eigenvectors and by solving
    equations, of graphs whose greatest values are unique.
    """
    table = pq.read_table(real_graph(name))
    ends = np.stack([table["src"].to_numpy(), table["dst"].to_numpy()])
    ids, (u, v) = np.unique(ends, return_inverse=True)[0], np.searchsorted(np.unique(ends), ends)
    matrix = np.zeros((len(ids), len(ids)))
    matrix[u, v] = 1
    if not directed:
        matrix[v, u] = 1
    np.fill_diagonal(matrix, 0)
    with delegraph.open(real_graph(name), directed=directed, device="cpu") as graph:
        hits = graph.hits(tolerance=1e-14, max_iterations=10_000).table.sort_by("vertex")
        found = graph.eigenvector(tolerance=1e-13, max_iterations=10_000).table.sort_by("vertex")
        katz = graph.katz(tolerance=1e-15)
    assert hits["vertex"].to_pylist() == ids.tolist()
    left, _, right = np.linalg.svd(matrix)
    for column, vector in (("hub", left[:, 0]), ("authority", right[0])):
        np.testing.assert_allclose(hits[column], vector / vector.sum(), rtol=1e-7, atol=1e-12)
    values, vectors = np.linalg.eig(matrix.T)
    first = np.abs(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(found["eigenvector"], first, rtol=1e-7, atol=1e-12)
    alpha = katz.record["katz"]["alpha"]
    score = np.linalg.solve(np.eye(len(ids)) - alpha * matrix.T, np.ones(len(ids)))
    wanted = score / np.linalg.norm(score)
    np.testing.assert_allclose(katz.table.sort_by("vertex")["katz"], wanted, rtol=1e-9)


def test_settled_scores_do_not_grow():
    """Changes that are rounding may rise from one iteration to the next: no alpha is too great for
    that.
    """
    question = Katz(alpha=0.01, tolerance=1e-300)
    names: Any = None
    changes = [100.0, 1.0, 3e-15, 4e-15]
    iterations = [{"change": change} for change in changes]
    facts = {"alpha": 0.01, "converged": False}
    given = ProgramResult({"katz": np.ones(100)}, {"iterations": iterations, "facts": facts})
    record = question.answer(given, names, "in memory").record["katz"]
    assert (record["change"], record["converged"]) == (4e-15, False)
    iterations[-1]["change"] = 1.5
    iterations[-2]["change"] = 1.2
    with pytest.raises(InputError, match="too great"):
        question.answer(given, names, "in memory")


# On a GPU


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Return a function that builds the store of a shape, once for each choice of arguments."""

    @cache
    def store_of(shape: str, directed: bool, kind: str | None = None, partitions: int = 1) -> Store:
        src, dst = SHAPES[shape]
        weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
        options = BuildOptions(directed=directed, partitions=partitions)
        return stored(tmp_path_factory.mktemp("store"), src, dst, options, weight)

    return store_of


def engine_of(name: str, store: Store, device: Device, most: int = 7) -> DeviceProgramEngine:
    program = scores_program(name, store, most)
    return DeviceProgramEngine(StoreRowsOnDevice(store, None, device, 2), program, device)


def run_on_device(
    name: str, store: Store, device: Device, most: int = 7, checkpoint: Checkpoint | None = None
) -> tuple[dict[str, np.ndarray], str]:
    engine = engine_of(name, store, device, most)
    engine.load()
    engine.compile()
    result, method = engine.run(checkpoint, lambda *_: None), engine.method
    engine.close()
    assert len(result.record["iterations"]) == most
    return {column: np.asarray(scores) for column, scores in result.values.items()}, method


def check_on_device(name: str, store: Store, device: Device) -> None:
    columns, _ = run_on_device(name, store, device)
    check_scores(name, store, columns)
    again, _ = run_on_device(name, store, device)
    for column, scores in columns.items():
        assert np.array_equal(again[column], scores)  # to the last bit


@pytest.mark.parametrize("turn", [None, 4])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *itertools.product(["hits"], [None, "floats", "integers"]),
        ("eigenvector", None),
        ("katz", "floats"),
    ],
)
def test_on_a_device(device, stores, monkeypatch, name, shape, directed, kind, turn):
    _cut_by(monkeypatch, turn)
    check_on_device(name, stores(shape, directed, kind), device)


@pytest.mark.parametrize("shape", ["hubs"])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("kind", [None, "floats"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_self_loops_on_a_device(device, tmp_path, name, directed, kind, partitions, shape):
    src, dst = SHAPES[shape]
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    options = BuildOptions(directed=directed, partitions=partitions, loops="keep")
    store = stored(tmp_path, src, dst, options, weight)
    assert store.info.loops
    check_on_device(name, store, device)


def _cut_by(monkeypatch, turn: int | None) -> None:
    """Cut rows by turns of this length; None: as long as the package chooses."""
    if turn is not None:
        monkeypatch.setattr(cut_rows, "_turn", lambda device, cost: turn)


STANDS = {
    "columns": lambda rows, n: Cuts(n, -(-n // 8), 3),
    "tiles": lambda rows, n: Tiling(2, 2, max(1, -(-(n - 8) // 16)), 4),
}


@pytest.mark.parametrize("stands", STANDS)
@pytest.mark.parametrize("kind", [None, "floats"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_where_entries_stand(device, stores, monkeypatch, name, directed, kind, stands):
    layouts = standing(monkeypatch, STANDS[stands])
    check_on_device(name, stores("hubs", directed, kind), device)
    both = directed and name == "hits"
    assert layouts == [True] * (4 if both else 2)  # it runs twice


@pytest.mark.parametrize("share", [0, 0.4, 1])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_targets_in_host_memory(device, stores, name, partitions, directed, share):
    """Targets stand in host memory where the device lacks room. share: of those that have room."""
    store = stores("hubs", directed, None, partitions)
    whole = engine_of(name, store, device).need().device
    entries = sum(store.info.subgraph_edges.values())
    entries *= 2 if directed and name == "hits" else 1
    within = replace(device, memory_bytes=whole - int(4 * (1 - share) * entries))
    columns, method = run_on_device(name, store, within)
    check_scores(name, store, columns)
    assert method == ("on a device" if share == 1 else "on a device, tiered")


@pytest.mark.parametrize("name", PROGRAMS)
def test_going_on_on_a_device(device, stores, tmp_path, name):
    store, loaded = stores("hubs", True), []

    def checkpoint(stop: bool) -> Checkpoint:
        kept = Checkpoint(tmp_path / "saved", 0.0, "this", loaded=loaded.append)
        if stop:
            kept.save_state = _stopping(kept.save_state)  # pyright: ignore[reportAttributeAccessIssue]
        return kept

    whole, _ = run_on_device(name, store, device, 9)
    with pytest.raises(KeyboardInterrupt):
        run_on_device(name, store, device, 9, checkpoint(True))
    columns, _ = run_on_device(name, store, device, 9, checkpoint(False))
    assert loaded == [2]
    for column, scores in whole.items():
        assert np.array_equal(columns[column], scores)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_commands_on_a_device(device, edge_list, tmp_path, name, directed, weighted):
    """A store, an edge list and an open graph give on a device what they give on a CPU, and
    ``validate`` finds nothing wrong.
    """
    src, dst = SHAPES["hubs"]
    weight = np.random.default_rng(1).integers(1, 9, len(src)) if weighted else None
    edges = edge_list(src, dst, weight=weight) if weighted else edge_list(src, dst)
    reading: dict[str, Any] = {"directed": directed}
    if weighted:
        reading["weight"] = "weight"
    asked: dict[str, Any] = {"tolerance": 1e-10}
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu", **reading)
    ask, wanted = getattr(delegraph, name), {}
    for place, device_name in itertools.product(("edges", "store"), ("cpu", "cuda")):
        graph, more = (edges, reading) if place == "edges" else (tmp_path / "graph.dg", {})
        out = tmp_path / f"{place}-{device_name}"
        ask(graph, output=out, device=device_name, **asked, **more)
        assert delegraph.validate(graph, out, **more)["valid"]
        with delegraph.open(graph, device=device_name, **more) as opened:
            result = getattr(opened, name)(**asked)
            assert str(result.record["device"]).startswith(device_name)
        table = pq.read_table(out).sort_by("vertex")
        for column in table.column_names[1:]:
            scores = table[column].to_numpy()
            wanted.setdefault(column, scores)
            np.testing.assert_allclose(scores, wanted[column], rtol=1e-9)
            np.testing.assert_allclose(result.table.sort_by("vertex")[column], scores, rtol=1e-9)


# On an emulated device


@pytest.mark.parametrize(
    ("name", "directed", "kind"),
    [
        ("hits", True, "floats"),
        slow("hits", False, None),
        slow("eigenvector", True, None),
        slow("katz", False, "integers"),
    ],
)
def test_emulated(emulated, stores, monkeypatch, name, directed, kind):
    test_on_a_device(emulated[0], stores, monkeypatch, name, "two components", directed, kind, 4)


def test_emulated_self_loops(emulated, tmp_path):
    test_self_loops_on_a_device(emulated[0], tmp_path, "hits", True, "floats", 1, "self-loop")


@pytest.mark.parametrize("stands", partly_nightly(STANDS, "columns"))
def test_emulated_stands(emulated, stores, monkeypatch, stands):
    test_where_entries_stand(emulated[0], stores, monkeypatch, "hits", True, "floats", stands)


@pytest.mark.slow
def test_emulated_tiers(emulated, stores):
    test_targets_in_host_memory(emulated[0], stores, "hits", 1, True, 0.4)


def test_emulated_going_on(emulated, stores, tmp_path):
    test_going_on_on_a_device(emulated[0], stores, tmp_path, "hits")


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated_commands(emulated, edge_list, tmp_path, name):
    test_commands_on_a_device(emulated[0], edge_list, tmp_path, name, True, True)
