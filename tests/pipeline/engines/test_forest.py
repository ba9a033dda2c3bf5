"""Minimum spanning forests against their definition, on every engine on CPUs, and on one GPU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import minimum_spanning_tree

import delegraph
from delegraph.kernels.gpu.device import Device
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.forest import ForestProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.graphs import (
    SHAPES,
    SMALL_SHAPES,
    graphs,
    grid,
    random_edges,
    store_options,
)
from support.marks import nightly, slow
from support.programs import run_program, stored
from support.wanted import check_forest


def program_of(store: Store) -> ForestProgram:
    return ForestProgram(store.info.weights and store.info.weights.kind)


def check(store: Store, folder: Path, ranks: int = 1, on_disk: bool = False, **options: Any) -> Any:
    """Check the forest, and return the run's record."""
    found, results = run_program(store, program_of(store), folder, ranks, on_disk, **options)
    check_forest(store, found)
    return results[0].record


CASES: dict[str, Any] = {
    "graph": graphs(),
    "options": store_options(),
    "ranks": st.integers(1, 4),
    "on_disk": st.booleans(),
    "weights": st.sampled_from([None, np.uint32, np.float32]),
}


def check_case(graph, options, ranks, on_disk, weights) -> None:
    """Zeros and the greatest weights count as others do; edges may have different weights in each
    direction.
    """
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None
    if weights is not None:
        most = (1 << 32) - 1 if weights is np.uint32 else np.finfo(np.float32).max
        rng = np.random.default_rng(1)
        weight = rng.choice(np.array([0, 1, 7, most], weights), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        check(store, Path(place) / "out", ranks, on_disk)


@given(**CASES)
@settings(max_examples=8)
def test_against_the_definition(**case):
    check_case(**case)


@pytest.mark.nightly
@given(**CASES)
@settings(max_examples=300)
def test_many_against_the_definition(**case):
    check_case(**case)


@pytest.mark.parametrize(("ranks", "then"), [(1, 2), (3, 1)])
def test_goes_on_from_a_checkpoint_on_other_ranks(tmp_path, ranks, then):
    src, dst = grid(20)
    weight = np.random.default_rng(1).integers(0, 9, len(src)).astype(np.uint32)
    store = stored(tmp_path, src, dst, BuildOptions(partitions=3), weight)
    went_on = []
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=went_on.append)
    save = saved.save_state

    def save_and_stop(*state: Any) -> None:
        save(*state)
        raise KeyError("killed")

    saved.save_state = save_and_stop  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises((KeyError, RankError), match="killed"):
        run_program(store, program_of(store), tmp_path / "some", ranks, checkpoint=saved)
    saved.save_state = save
    record = check(store, tmp_path / "rest", then, checkpoint=saved)
    whole = check(store, tmp_path / "whole")
    assert went_on == [1]
    assert record["rounds"] == whole["rounds"] > 2
    assert record["edges"] < whole["edges"]


# From the command


EXTREMES = {
    "a vertex alone": ([7], [7], [3], [], (1, 0)),
    "loops alone": ([7, 8, 8], [7, 8, 8], [1, 2, 3], [], (2, 0)),
    "an edge in both directions": ([1, 2], [2, 1], [9, 4], [(1, 2, 4)], (1, 4)),
    "zeros": ([1, 2, 3], [2, 3, 1], [0, 0, 0], [(1, 2, 0), (1, 3, 0)], (1, 0)),
    "all alike": ([3, 1, 2, 4], [1, 2, 3, 3], [5] * 4, [(1, 2, 5), (1, 3, 5), (3, 4, 5)], (1, 15)),
    "two trees": ([1, 5, 6], [2, 6, 7], [2**32 - 1] * 3, None, (2, 3 * (2**32 - 1))),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", EXTREMES)
def test_extremes(edge_list, tmp_path, shape, directed):
    src, dst, weights, wanted, (trees, total) = EXTREMES[shape]
    edges = edge_list(src, dst, w=weights)
    options: Any = {"weight": "w", "directed": directed}
    result = delegraph.forest(edges, **options)
    rows = list(zip(*(result[name].to_pylist() for name in ("src", "dst", "weight")), strict=True))
    if wanted is not None:
        assert rows == wanted
    facts = result.record["forest"]
    assert (facts["trees"], facts["weight"], facts["edges"]) == (trees, total, len(rows))
    result.write(tmp_path / "out")
    verdict = delegraph.validate(edges, tmp_path / "out", **options)
    assert (verdict["valid"], verdict["judged"]) == (True, "all")


def test_without_weights(edge_list, tmp_path):
    """Weights that are not to count have no column, and the least ends decide."""
    edges = edge_list([2, 1, 2], [1, 3, 3], w=[3, 2, 1])
    for options in ({"weight": "w", "unweighted": True}, {}):
        out = tmp_path / f"{len(options)}"
        result = delegraph.forest(edges, output=out, **options)
        assert str(result).startswith("forest: 2 edges in 1 tree; written")
        assert pq.read_table(out).to_pydict() == {"src": [1, 1], "dst": [2, 3]}
        assert delegraph.validate(edges, out)["valid"]


def test_what_is_wrong_is_found(edge_list, tmp_path):
    rng = np.random.default_rng(1)
    edges = edge_list(*rng.integers(0, 40, (2, 300)), w=rng.integers(0, 99, 300))
    delegraph.forest(edges, output=tmp_path / "out", weight="w")
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    weights = table["weight"].to_pylist()
    turned = table.select(["dst", "src", "weight"]).rename_columns(table.column_names)
    heavier = table.set_column(2, "weight", pa.array([weights[0] + 1, *weights[1:]]))
    unknown = table.set_column(2, "weight", pa.array([None, *weights[1:]], pa.int64()))
    cases = [
        (table, set()),
        (table[1:], {2}),
        (turned, {1, 2}),
        (pa.concat_tables([table, table[:1]]), {3}),
        (heavier, {4}),
        (unknown, {4}),
    ]
    for changed, rules in cases:
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
        verdict = delegraph.validate(edges, tmp_path / "out", weight="w")
        assert {broken["rule"] for broken in verdict["rules"]} == rules
        assert verdict["valid"] == (not rules)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_beside_scipy(edge_list, kind):
    """The sum of weights is that of SciPy's tree."""
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 2000, (2, 9000))
    weights = (rng.random(9000) * 1000 + 1).astype(kind)
    result = delegraph.forest(edge_list(src, dst, w=weights), weight="w")
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    order = np.lexsort([weights, high, low])
    low, high, weights = low[order], high[order], weights[order]
    first = (np.diff(low * 2000 + high, prepend=-1) != 0) & (low != high)
    matrix = coo_matrix((weights[first].astype(float), (low[first], high[first])), (2000, 2000))
    tree = minimum_spanning_tree(matrix.tocsr())
    facts = result.record["forest"]
    assert facts["edges"] == tree.nnz
    assert facts["weight"] == pytest.approx(tree.sum(), rel=1e-12)


# On a GPU


def run_on_device(store: Store, device: Device, checkpoint: Checkpoint | None = None) -> Any:
    engine = DeviceProgramEngine(
        StoreRowsOnDevice(store, None, device, 2), program_of(store), device
    )
    engine.load()
    engine.compile()
    result = engine.run(checkpoint, lambda *_: None)
    engine.close()
    return result


@pytest.mark.parametrize("weights", [None, np.uint32, np.float32])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_a_device(device, tmp_path, shape, directed, partitions, weights):
    src, dst = SHAPES[shape]
    weight = None
    if weights is not None:  # many are alike
        most = (1 << 32) - 1 if weights is np.uint32 else np.finfo(np.float32).max
        choices = np.array([0, 1, 7, 7, most], weights)
        weight = np.random.default_rng(1).choice(choices, len(src))
    options = BuildOptions(directed=directed, partitions=partitions)
    store = stored(tmp_path, src, dst, options, weight)
    result = run_on_device(store, device)
    check_forest(store, {name: np.asarray(values) for name, values in result.values.items()})
    entries = sum(store.info.subgraph_edges.values())
    ways = 2 if directed else 1
    assert result.record["edges"] == result.record["rounds"] * ways * entries


def test_goes_on_between_a_cpu_and_a_device(device, tmp_path):
    """A forest that a CPU began is finished by a device, and the other way round."""
    src, dst = SHAPES["grid"]
    weight = np.random.default_rng(1).integers(0, 9, len(src)).astype(np.uint32)
    store = stored(tmp_path, src, dst, BuildOptions(), weight)
    saved: tuple[Any, ...] = 0, "this"
    with pytest.raises((KeyboardInterrupt, RankError)):
        run_program(
            store, program_of(store), tmp_path / "cpu", checkpoint=CutOff(tmp_path / "a", *saved)
        )
    result = run_on_device(store, device, Checkpoint(tmp_path / "a", *saved))
    check_forest(store, result.values)
    with pytest.raises(KeyboardInterrupt):
        run_on_device(store, device, CutOff(tmp_path / "b", *saved))
    check(store, tmp_path / "out", checkpoint=Checkpoint(tmp_path / "b", *saved))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_commands_on_a_device(device, edge_list, tmp_path, directed, weighted):
    """A store, an edge list and an open graph give on a device what they give on a CPU."""
    src, dst = SHAPES["hubs"]
    edges = edge_list(src, dst, w=np.arange(len(src)) % 9)
    reading: dict[str, Any] = {"directed": directed, **({"weight": "w"} if weighted else {})}
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu", **reading)
    wanted = delegraph.forest(edges, device="cpu", **reading)
    stored_graph: tuple[Any, dict[str, Any]] = tmp_path / "graph.dg", {}
    for graph, more in ((edges, reading), stored_graph):
        with delegraph.open(graph, device="cuda", **more) as opened:
            for result in (opened.forest(), delegraph.forest(graph, device="cuda", **more)):
                assert str(result.record["device"]).startswith("cuda")
                assert result.table.equals(wanted.table)
                assert result.record["forest"]["rounds"] == wanted.record["forest"]["rounds"]
        out = tmp_path / f"forest-of-{Path(graph).name}"
        delegraph.forest(graph, output=out, device="cuda", **more)
        assert delegraph.validate(graph, out, **more)["valid"]


# On an emulated device


@pytest.mark.parametrize("weights", [slow(None), nightly(np.uint32), slow(np.float32)])
@pytest.mark.parametrize("directed", [False, slow(True)])
def test_emulated(emulated, tmp_path, directed, weights):
    test_on_a_device(emulated[0], tmp_path, "two components", directed, 1, weights)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SMALL_SHAPES)
def test_emulated_shapes(emulated, tmp_path, shape):
    test_on_a_device(emulated[0], tmp_path, shape, True, 3, np.uint32)


@pytest.mark.slow
def test_emulated_going_on(emulated, tmp_path, monkeypatch):
    monkeypatch.setitem(SHAPES, "grid", grid(9))
    test_goes_on_between_a_cpu_and_a_device(emulated[0], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("weighted", [False, True])
def test_emulated_commands(emulated, edge_list, tmp_path, monkeypatch, weighted):
    monkeypatch.setitem(SHAPES, "hubs", random_edges(4, 60, 900))
    test_commands_on_a_device(emulated[0], edge_list, tmp_path, True, weighted)
