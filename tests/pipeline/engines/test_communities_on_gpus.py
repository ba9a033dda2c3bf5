"""Communities on a GPU: they are those of CPUs, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import delegraph
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu_pieces import communities as pieces
from delegraph.partition.input.weights import LoopsChoice
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.communities import Communities
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.ranks.communicator import RankError
from support.checkpoints import CutOff
from support.device_runs import run
from support.graphs import random_edges
from support.marks import nightly, slow
from support.programs import run_program, stored

METHODS = ("leiden", "louvain")
WEIGHTS = {
    "none": lambda rng, m: None,
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "great": lambda rng, m: rng.integers(1 << 31, 1 << 32, m),
    "nothing": lambda rng, m: np.zeros(m, np.int64),
}
LAST = {"iterations": 2, "hierarchy": True}


def hub_edges(vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Random edges, and a vertex that is joined to all others, another to half of them."""
    src, dst = random_edges(1, vertices, edges)
    others = np.arange(vertices, dtype=src.dtype)
    few = others[::2]
    src = np.concatenate([src, np.zeros_like(others), np.ones_like(few)])
    return src, np.concatenate([dst, others, few])


GRAPHS = {
    "small": lambda: random_edges(2, 60, 150),
    "dense": lambda: random_edges(3, 300, 9_000),
    "hubs": lambda: hub_edges(3_000, 9_000),
}


EXTREMES = {
    "one vertex": ([0], [0]),
    "no edges": (np.arange(40), np.arange(40)),
    "one edge": ([0], [1]),
    "all alike": tuple(np.triu_indices(33, 1)),
    "edges apart": (np.arange(0, 80, 2), np.arange(1, 80, 2)),
}
"""Graphs that are nothing but one thing."""


def store_of(folder: Path, graph: str, weights: str, partitions: int = 1, **options: Any) -> Store:
    src, dst = GRAPHS[graph]()
    weight = WEIGHTS[weights](np.random.default_rng(1), len(src))
    return stored(folder, src, dst, BuildOptions(partitions=partitions, **options), weight)


def check(store: Store, question: Communities, device: Device, folder: Path, **saved: Any) -> None:
    """Compare a run on a device with one on a CPU."""
    program = question.planned(store.info)
    wanted, results = run_program(store, program, folder)
    found = run(store, program, device, **saved)
    assert list(found.columns) == list(wanted)
    for name, values in wanted.items():
        assert np.array_equal(found.columns[name], values), name
    record = results[0].record
    assert found.record["ties"] == record["ties"]
    assert found.record["disconnected"] == record["disconnected"]
    assert len(found.record["levels"]) == len(record["levels"])
    for level, of_cpu in zip(found.record["levels"], record["levels"], strict=True):
        for name in ("level", "vertices", "communities", "rounds", "moves"):
            assert level[name] == of_cpu[name], name
        quality = of_cpu["quality"]
        assert level["quality"] == (quality and pytest.approx(quality, rel=1e-12))


def check_options(device: Device, folder: Path, graph: str, weights: str, **options: Any) -> None:
    partitions = options.pop("partitions", 1)
    loops = options.pop("loops", "drop")
    store = store_of(folder, graph, weights, partitions, loops=loops)
    check(store, Communities(**options), device, folder / "out")


@pytest.mark.gpu
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", ["modularity", "cpm"])
def test_on_a_device(device, tmp_path, graph, weights, method, objective):
    resolution = 1.0 if objective == "modularity" else 0.01
    options = {"method": method, "objective": objective, "resolution": resolution, **LAST}
    check_options(device, tmp_path, graph, weights, **options)


def check_extreme(
    device: Device, folder: Path, graph: str, method: str, loops: LoopsChoice
) -> None:
    src, dst = (np.asarray(end, np.uint32) for end in EXTREMES[graph])
    store = stored(folder, src, dst, BuildOptions(loops=loops))
    check(store, Communities(method, **LAST), device, folder / "out")


@pytest.mark.gpu
@pytest.mark.parametrize("graph", EXTREMES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loops", ["drop", "keep"])
def test_extremes(device, tmp_path, graph, method, loops):
    check_extreme(device, tmp_path, graph, method, loops)


@pytest.mark.slow
@pytest.mark.parametrize("graph", EXTREMES)
@pytest.mark.parametrize(("method", "loops"), [("leiden", "keep"), ("louvain", "drop")])
def test_emulated_extremes(emulated, tmp_path, graph, method, loops):
    check_extreme(emulated[0], tmp_path, graph, method, loops)


@pytest.mark.gpu
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("max_levels", [1, 2])
@pytest.mark.parametrize("weights", ["none", "great"])
def test_layouts_loops_and_levels(device, tmp_path, partitions, max_levels, weights):
    options = {"partitions": partitions, "max_levels": max_levels, "loops": "keep"}
    check_options(device, tmp_path, "dense", weights, method="leiden", **options)


@pytest.mark.gpu
def test_contracted_piece_by_piece(device, tmp_path, monkeypatch):
    """Pairs of labels are listed a few at a time, and labels are cut."""
    monkeypatch.setattr(pieces, "_FEWEST_PAIRS", 64)
    monkeypatch.setattr(pieces, "_MOST_PAIRS", 64)
    check_options(device, tmp_path, "dense", "great", method="leiden", **LAST)


def go_on(device: Device, folder: Path, graph: str, method: str) -> None:
    """A run is cut off after each of its saves, and taken up by a CPU and a device in turn."""
    store = store_of(folder, graph, "none")
    program = Communities(method, iterations=2, hierarchy=True).planned(store.info)
    wanted, _ = run_program(store, program, folder / "whole")
    saved = CutOff(folder / "saved", 0, "this")
    for count in range(200):
        saved.left = 1
        try:
            if count % 2:
                found, _ = run_program(store, program, folder / f"{count}", checkpoint=saved)
            else:
                found = run(store, program, device, checkpoint=saved).columns
        except (KeyboardInterrupt, RankError):
            continue
        break
    else:
        raise AssertionError("the run does not end")
    assert count > 5
    for name, values in wanted.items():
        assert np.array_equal(found[name], values), name


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_goes_on_between_a_cpu_and_a_device(device, tmp_path, method):
    go_on(device, tmp_path, "dense", method)


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_commands(device, edge_list, tmp_path, method):
    """A store, an edge list and an open graph give on a device what they give on a CPU."""
    src, dst = GRAPHS["hubs"]()
    edges = edge_list(src, dst)
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu")
    ask = getattr(delegraph, method)
    wanted = ask(edges, device="cpu")
    for graph in (edges, tmp_path / "graph.dg"):
        with delegraph.open(graph, device="cuda") as opened:
            for result in (getattr(opened, method)(), ask(graph, device="cuda")):
                assert str(result.record["device"]).startswith("cuda")
                assert result.table.equals(wanted.table)
        out = tmp_path / f"{method}-of-{Path(graph).name}"
        ask(graph, output=out, device="cuda")
        assert delegraph.validate(graph, out)["valid"]


# On an emulated device


@pytest.mark.parametrize(
    ("graph", "weights", "method"),
    [
        slow("small", "none", "leiden"),
        nightly("dense", "floats", "louvain"),
        slow("hubs", "none", "leiden"),
    ],
)
def test_emulated(emulated, tmp_path, graph, weights, method):
    check_options(emulated[0], tmp_path, graph, weights, method=method, **LAST)


@pytest.mark.slow
def test_emulated_loops_and_pieces(emulated, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "_FEWEST_PAIRS", 64)
    monkeypatch.setattr(pieces, "_MOST_PAIRS", 64)
    options = {"method": "leiden", "partitions": 3, "loops": "keep"}
    check_options(emulated[0], tmp_path, "small", "great", **options)


@pytest.mark.slow
def test_emulated_going_on(emulated, tmp_path):
    go_on(emulated[0], tmp_path, "small", "leiden")


def test_a_device_that_is_too_small(emulated, tmp_path):
    """Where the device has no room, the CPU answers, and the user is told."""
    src, dst = GRAPHS["small"]()
    edges = list(zip(src.tolist(), dst.tolist(), strict=True))
    wanted = delegraph.leiden(edges, device="cpu")
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu")
    for graph in (edges, tmp_path / "graph.dg"):
        found = delegraph.leiden(graph, device="cuda", device_memory_limit="1MB")
        assert found.record["device"] == "cpu"
        assert any("may be used on cuda:0" in note for note in found.notes)
        assert found["community"].equals(wanted["community"])
