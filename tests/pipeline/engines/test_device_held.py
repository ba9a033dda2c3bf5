"""Edge lists in rows that a device makes: searches and all programs give the results of a store, on
a GPU and emulated.
"""

from __future__ import annotations

import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu.device import Device, DeviceMemoryError
from delegraph.kernels.gpu_programs.rows import ProgramGraph
from delegraph.kernels.prepare import weights
from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.store.weighing import Weighing
from delegraph.pipeline.build.device_held import rows_on_device
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device import edge_list as device_edges
from delegraph.pipeline.engines.one_device.edge_list import EdgeRowsOnDevice
from delegraph.pipeline.engines.one_device.rows import HeldRows, RowsOnDevice
from delegraph.pipeline.engines.operations.program import DeviceProgram
from delegraph.pipeline.graph import Graph
from delegraph.pipeline.run.execute import Executor
from support.graphs import SHAPES, random_edges
from support.marks import mostly_slow, slow

ASKED: dict[str, dict[str, Any]] = {
    "bfs": {"source": 3},
    "bfs each": {"sources": list(range(0, 98, 7))},
    "bfs together": {"sources": [1, 7], "together": True},
    "components": {},
    "pagerank": {},
    "betweenness": {"sources": 5},
    "closeness": {"sources": 5},
    "eccentricity": {"sources": 5},
}
FOUND = {"bfs": "distance", "components": "component", "sssp": "distance"}
DUPLICATES = ["min", "max", "sum"]


def record(out: Path) -> dict[str, Any]:
    return json.loads(Path(f"{out}.run.json").read_text())


def check(
    name: str, edges: Path, folder: Path, reading: dict[str, Any], args: dict[str, Any]
) -> None:
    """Compare a question about an edge list on a device with one about a store on the CPU."""
    ways = folder / f"{name}-held", folder / f"{name}-stored"
    name = name.split()[0]
    ask = getattr(delegraph, name)
    store = folder / "graph.dg"
    if not store.exists():
        delegraph.build(edges, store, threads=2, device="cpu", **reading)
    ask(edges, output=ways[0], threads=2, device="cuda", **reading, **args)
    ask(store, output=ways[1], threads=2, device="cpu", **args)
    run = record(ways[0])
    assert run["device"].startswith("cuda:0")
    steps = {step["name"] for step in run["plan"]["steps"]}
    assert {"read", "prepare"} <= steps
    assert "vertices" not in steps  # no store was written
    ours, theirs = (ds.dataset(way).to_table() for way in ways)
    value = FOUND.get(name, name)
    assert ours["vertex"].equals(theirs["vertex"])
    assert ours.column_names == theirs.column_names
    if name in FOUND:
        assert ours[value].equals(theirs[value])
    else:
        values, wanted = ours[value].to_numpy(), theirs[value].to_numpy()
        close = 1e-5 if name == "pagerank" else 1e-9  # of that as of where it ends
        np.testing.assert_allclose(values, wanted, rtol=close, atol=1e-12)
    assert delegraph.validate(edges, ways[0], **reading)["valid"]


def check_all(edges: Path, folder: Path, directed: bool) -> None:
    for name, args in ASKED.items():
        check(name, edges, folder, {"directed": directed}, args)


def weighted(edge_list: Any, kind: pa.DataType, seed: int = 5) -> tuple[Path, int]:
    """Write an edge list with weights in which most edges are repeated; return its path and a
    source.
    """
    src, dst = random_edges(seed, 60, 900)
    weight = np.random.default_rng(seed).integers(0, 9, len(src)) / (
        1 if kind == pa.uint32() else 7
    )
    return edge_list(src, dst, weight=pa.array(weight).cast(kind)), int(src[0])


def check_weights(
    edge_list: Any, folder: Path, kind: pa.DataType, duplicates: str, directed: bool
) -> None:
    edges, source = weighted(edge_list, kind)
    reading = {"directed": directed, "weight": "weight", "duplicates": duplicates}
    check("sssp", edges, folder, reading, {"source": source})
    check("pagerank", edges, folder, reading, {})


def check_rows(edges: Path, folder: Path, device: Device, options: BuildOptions) -> None:
    """Check that a device's rows are a store's; weights, to the last bit."""
    opened = open_edges(edges, "src", "dst", options.weight)
    loaded = rows_on_device(opened, options, Executor(2), device)
    weight = {"weight": options.weight} if options.weight else {}
    more = {**weight, "duplicates": options.duplicates, "directed": options.directed}
    delegraph.build(edges, folder / "graph.dg", threads=2, device="cpu", **more)
    store, team = delegraph.open_store(folder / "graph.dg"), Team(1)
    for fact in ("vertices", "edges", "rows", "self_loops", "duplicates", "degree_histogram"):
        assert getattr(loaded.info, fact) == getattr(store.info, fact)
    ours, theirs = loaded.info.weights, store.info.weights
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert ours == replace(theirs, mean=ours.mean)
        assert ours.mean == pytest.approx(theirs.mean)
    rows = loaded.rows
    ways = {"nn": (rows.offsets, rows.targets, rows.weights)}
    if options.directed:
        ways["reverse-nn"] = rows.reverse_offsets, rows.reverse_targets, rows.reverse_weights
    for name, (offsets, targets, bits) in ways.items():
        wanted = store.subgraph(0, name, team)
        np.testing.assert_array_equal(offsets.get(), wanted[0])
        np.testing.assert_array_equal(targets.get(), wanted[1])
        if bits is not None:
            np.testing.assert_array_equal(bits.get(), store.weights(0, name, team))
    table = store.vertices(team, ["vertex", "global_id"])
    places = [loaded.names.find(vertex) for vertex in table["vertex"].to_pylist()]
    assert places == table["global_id"].to_pylist()


def check_float_sums(device: Device, seed: int) -> None:
    """Check that sums of floats of all sizes, subnormal ones too, are the same in any order of very
    often repeated edges.
    """
    random = np.random.default_rng(seed)
    bits = random.integers(0, 0x70000000, 3000).astype(np.uint32)
    bits[:500] >>= 9
    dst = random.integers(1, 4, len(bits)).astype(np.uint32)
    for order in (np.arange(len(bits)), random.permutation(len(bits))):
        with device.use() as cupy:
            columns = np.zeros(len(bits), np.uint32), dst[order], bits[order]
            batch = tuple(cupy.asarray(column) for column in columns)
        combining = Weighing("float32", "sum").combining
        rows = gpu_prepare.prepare(device, [batch], 4, True, combining)
        for target, weight in zip(rows.targets.get(), rows.weights.get(), strict=True):
            vertex = rows.id_of_position.get()[target]
            state = np.zeros(weights.EXPONENTS, np.int64)
            weights.add_weights(combining, bits[dst == vertex], True, state)
            assert weight == weights.combined(combining, state)


def check_too_large_a_sum(edge_list: Any, folder: Path) -> None:
    edges = edge_list([0, 0, 1], [1, 1, 2], weight=pa.array([2**32 - 1, 1, 1], pa.int64()))
    args = {"source": 0, "weight": "weight", "duplicates": "sum", "device": "cuda"}
    with pytest.raises(InputError, match="add up to more than 32 bits can hold"):
        delegraph.sssp(edges, output=folder / "out", **args)
    assert not (folder / "out").exists()


def check_too_little_memory(edge_list: Any, folder: Path) -> None:
    """Check that an edge list too large for the device goes through a store, of which a part or
    nothing is on the device.
    """
    edges = edge_list(*random_edges(3, 3000, 400_000))
    limited = {"device": "cuda", "device_memory_limit": "40MB", "threads": 2}
    delegraph.components(edges, output=folder / "out", **limited)
    assert "vertices" in {step["name"] for step in record(folder / "out")["plan"]["steps"]}
    delegraph.components(edges, output=folder / "cpu", device="cpu", threads=2)
    ours, theirs = (ds.dataset(folder / way).to_table() for way in ("out", "cpu"))
    assert ours.equals(theirs)


def named(kind: str, ends: np.ndarray) -> list[int | str]:
    if kind == "string":
        return [f"v{vertex}" for vertex in ends.tolist()]
    return [vertex * 2**40 for vertex in ends.tolist()]


# On a GPU


@pytest.mark.parametrize("directed", [False, True])
def test_all(device, edge_list, tmp_path, directed):
    check_all(edge_list(*random_edges(3, 5000, 60_000)), tmp_path, directed)


@pytest.mark.parametrize("duplicates", DUPLICATES)
@pytest.mark.parametrize("kind", [pa.uint32(), pa.float32()])
@pytest.mark.parametrize("directed", [False, True])
def test_weights(device, edge_list, tmp_path, kind, duplicates, directed):
    check_weights(edge_list, tmp_path, kind, duplicates, directed)
    (tmp_path / "rows").mkdir()
    options = BuildOptions(directed=directed, weight="weight", duplicates=duplicates)
    check_rows(weighted(edge_list, kind, 6)[0], tmp_path / "rows", device, options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_rows(device, edge_list, tmp_path, shape, directed):
    check_rows(edge_list(*SHAPES[shape]), tmp_path, device, BuildOptions(directed=directed))


@pytest.mark.parametrize("kind", ["uint64", "string"])
def test_ids_that_are_not_dense(device, edge_list, tmp_path, kind):
    ends = (named(kind, end) for end in random_edges(6, 200, 500))
    edges = edge_list(*ends, id_type=pa.type_for_alias(kind))
    check("pagerank", edges, tmp_path, {}, {"tolerance": 1e-9})


@pytest.mark.parametrize("seed", range(5))
def test_float_sums(device, seed):
    check_float_sums(device, seed)


def test_what_does_not_go(device, edge_list, tmp_path):
    check_too_large_a_sum(edge_list, tmp_path)
    check_too_little_memory(edge_list, tmp_path)


# Emulated


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
def test_all_emulated(emulated, edge_list, tmp_path, directed):
    check_all(edge_list(*random_edges(3, 100, 400)), tmp_path, directed)


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["dense", "string"])
def test_rounded_weights_are_counted_emulated(emulated, edge_list, tmp_path, ids):
    """Rounded weights, self-loops and duplicates are counted like on a CPU."""
    src, dst = random_edges(7, 50, 300)
    ends = (src, dst) if ids == "dense" else (named("string", end) for end in (src, dst))
    edges = edge_list(*ends, weight=np.random.default_rng(7).integers(1, 20, 300) / 7)
    args = {"weight": "weight", "iterations": 3}
    results = [
        delegraph.pagerank(edges, output=tmp_path / device, device=device, **args)
        for device in ("cpu", "cuda")
    ]
    ours, theirs = (run.record["graph"] for run in results)
    assert ours == theirs
    assert 0 < theirs["weights"]["rounded"] < 300
    assert results[1].record["device"].startswith("cuda:0")
    assert len(results[1].notes) == 3
    assert results[0].notes == results[1].notes


@pytest.mark.nightly
@pytest.mark.parametrize("duplicates", mostly_slow(DUPLICATES, "sum"))
@pytest.mark.parametrize("kind", [slow(pa.uint32()), pa.float32()])
def test_weights_emulated(emulated, edge_list, tmp_path, kind, duplicates):
    check_weights(edge_list, tmp_path, kind, duplicates, True)
    (tmp_path / "rows").mkdir()
    options = BuildOptions(weight="weight", duplicates=duplicates)
    check_rows(weighted(edge_list, kind, 6)[0], tmp_path / "rows", emulated[0], options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", mostly_slow(sorted(SHAPES), "star"))
def test_rows_emulated(emulated, edge_list, tmp_path, shape, directed):
    check_rows(edge_list(*SHAPES[shape]), tmp_path, emulated[0], BuildOptions(directed=directed))


@pytest.mark.nightly
@pytest.mark.parametrize("ends", [[7], [7, 9, 7]])
def test_loops_alone_emulated(emulated, edge_list, tmp_path, ends):
    edges = edge_list(ends, ends)
    for name in ("components", "pagerank"):
        check(name, edges, tmp_path, {}, {})
    check("bfs", edges, tmp_path, {}, {"source": 7})


def test_a_program_that_does_not_fit(emulated, edge_list, tmp_path, monkeypatch):
    """A program that does not fit beside the rows goes through a store, after the rows are freed;
    how much a program holds is known only when its graph is loaded.
    """
    rows, remains = [], []
    rows_in_memory, give_back = device_edges.rows_on_device, device_edges.give_back

    def held(*args: Any) -> Any:
        made = rows_in_memory(*args)
        rows.append(weakref.ref(made.rows))
        return made

    def given_back(device: Device) -> None:
        remains.append(rows[0]())
        give_back(device)

    monkeypatch.setattr(device_edges, "rows_on_device", held)
    monkeypatch.setattr(device_edges, "give_back", given_back)
    monkeypatch.setattr(EdgeRowsOnDevice, "device_bytes", lambda *args: 1 << 60)
    edges = edge_list(*random_edges(3, 100, 400))
    delegraph.components(edges, output=tmp_path / "out", device="cuda", threads=2)
    assert remains[0] is None
    run = record(tmp_path / "out")
    assert run["device"].startswith("cuda:0")
    assert "vertices" in {step["name"] for step in run["plan"]["steps"]}
    note, *_ = run["notes"]  # others are about rows
    assert note.startswith("used a temporary store: ")


@pytest.mark.nightly
@pytest.mark.slow
def test_an_open_graph_without_room_for_a_program(emulated, edge_list, monkeypatch):
    """An open graph without room for a program answers from a temporary store from then on."""

    def room(rows: RowsOnDevice, program: DeviceProgram, extra: int = 0) -> int:
        raise DeviceMemoryError(f"no room for {type(program).__name__}")

    monkeypatch.setattr(RowsOnDevice, "device_bytes", room)
    edges = edge_list(*random_edges(3, 100, 400))
    with delegraph.open(edges, device="cuda") as graph, delegraph.open(edges, device="cpu") as own:
        for ask in (Graph.components, Graph.eccentricity):
            result, wanted = ask(graph), ask(own)
            assert result.table.equals(wanted.table)
            assert result.record["device"].startswith("cuda")
        assert graph.notes == (*own.notes, "used a temporary store: no room for ComponentsProgram")


@pytest.mark.slow
def test_an_open_graph_without_room_to_load_more(emulated, edge_list, monkeypatch):
    """An open graph that has no room to load more lets go of what an earlier program has loaded,
    and answers from a temporary store.
    """
    loads = []
    load = HeldRows.program_graph

    def first_alone(rows: HeldRows, device: Device, program: DeviceProgram) -> ProgramGraph:
        loads.append(program)
        if len(loads) > 1:
            raise DeviceMemoryError("no room for degrees")
        return load(rows, device, program)

    monkeypatch.setattr(HeldRows, "program_graph", first_alone)
    edges = edge_list(*random_edges(3, 100, 400))
    with delegraph.open(edges, device="cuda") as graph, delegraph.open(edges, device="cpu") as own:
        assert graph.components().table.equals(own.components().table)
        ranks, wanted = (side.pagerank()["pagerank"].to_numpy() for side in (graph, own))
        np.testing.assert_allclose(ranks, wanted, rtol=1e-9)
        assert graph.notes == (*own.notes, "used a temporary store: no room for degrees")


def test_an_open_graph_interrupted_while_it_loads_more(emulated, edge_list, monkeypatch):
    """An open graph that was interrupted while it loaded more loads the same again for the next
    question.
    """
    load, interrupted = HeldRows.program_graph, []

    def interrupt(rows: HeldRows, device: Device, program: DeviceProgram) -> ProgramGraph:
        if program.wants_degrees and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return load(rows, device, program)

    monkeypatch.setattr(HeldRows, "program_graph", interrupt)
    edges = edge_list(*random_edges(3, 100, 400))
    with delegraph.open(edges, device="cuda") as graph, delegraph.open(edges, device="cpu") as own:
        assert graph.components().table.equals(own.components().table)
        with pytest.raises(KeyboardInterrupt):
            graph.pagerank()
        ranks, wanted = (side.pagerank()["pagerank"].to_numpy() for side in (graph, own))
        np.testing.assert_allclose(ranks, wanted, rtol=1e-9)
        assert graph.notes == own.notes


@pytest.mark.parametrize("kind", ["uint64", "string"])
def test_ids_that_are_not_dense_emulated(emulated, edge_list, tmp_path, kind):
    test_ids_that_are_not_dense(emulated[0], edge_list, tmp_path, kind)


def test_sums_emulated(emulated, edge_list, tmp_path):
    check_float_sums(emulated[0], 1)
    check_too_large_a_sum(edge_list, tmp_path)
