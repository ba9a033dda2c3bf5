"""Degrees against their definition: every engine on CPUs, every layout, any number of ranks; and
one GPU.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.kernels.gpu.device import Device
from delegraph.partition.errors import InputError
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from support.degrees import check_degrees, degree_program, wanted_degrees
from support.graphs import SHAPES, graphs, store_options
from support.marks import slow
from support.programs import run_program, stored
from support.schema import conforms, run_record

WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "great": lambda rng, m: rng.integers(1 << 31, 1 << 32, m),
}


@given(
    graph=graphs(),
    options=store_options(),
    ranks=st.integers(1, 4),
    on_disk=st.booleans(),
    kind=st.sampled_from([None, *WEIGHTS]),
    unweighted=st.booleans(),
)
def test_against_the_definition(graph, options, ranks, on_disk, kind, unweighted):
    src, dst, _, _ = graph
    if not len(src):
        return
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    with tempfile.TemporaryDirectory() as place:
        store = stored(Path(place), src, dst, options, weight)
        ranks = min(ranks, store.info.partitions)
        program = degree_program(store, unweighted)
        columns, results = run_program(store, program, Path(place) / "out", ranks, on_disk)
        check_degrees(store, columns, unweighted)
        if kind == "great":  # sums of whole numbers are exact
            for name, values in wanted_degrees(store, unweighted).items():
                assert np.array_equal(columns[name], values)
        scans = len(columns) // 2 if program.weighted else 0
        entries = sum(store.info.subgraph_edges.values())
        if ranks == store.info.partitions == 1:
            assert results[0].record["edges"] == scans * entries


EXTREMES: dict[str, tuple[Any, Any, list[int]]] = {
    "loops alone": ([3, 5], [3, 5], [0, 0]),
    "two vertices": ([0, 1, 0], [1, 0, 0], [1, 1]),
    "path": ([0, 1, 2], [1, 2, 3], [1, 2, 2, 1]),
    "star": (np.zeros(9, int), np.arange(1, 10), [9, *[1] * 9]),
    "clique": (*np.triu_indices(6, 1), [5] * 6),
}


@pytest.mark.parametrize("extreme", EXTREMES)
def test_extremes(edge_list, tmp_path, extreme):
    src, dst, degree = EXTREMES[extreme]
    edges = edge_list(src, dst)
    result = delegraph.degree(edges, device="cpu")
    assert result.table.sort_by("vertex")["degree"].to_pylist() == degree
    record = result.record["degree"]
    assert record["greatest"] == {"degree": max(degree)}
    assert record["mean"] == sum(degree) / len(degree)
    assert record["isolated"] == degree.count(0)
    delegraph.degree(edges, output=tmp_path / "out")
    assert delegraph.validate(edges, tmp_path / "out")["valid"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_columns_are_those_of_the_graph(ok, edge_list, tmp_path, directed, weighted):
    """The command, its record, the result on disk without its metadata, its description and its
    page name the columns that the graph asks for, and ``validate`` finds nothing wrong.
    """
    src, dst = SHAPES["two components"]
    weight = np.arange(len(src)) % 7
    edges, out = edge_list(src, dst, w=weight), tmp_path / "out"
    reading = ["--directed"] * directed + ["--weight", "w"] * weighted
    run = ok("degree", edges, "-o", out, *reading, "--json").json
    assert conforms({k: v for k, v in run.items() if k != "already"}, run_record("degree"))
    ways = ["in_degree", "out_degree"] if directed else ["degree"]
    names = [*ways, *(f"weighted_{way}" for way in ways if weighted)]
    assert list(run["degree"]["greatest"]) == names
    table = pq.read_table(out)
    assert table.column_names == ["vertex", *names]
    assert {table.schema.field(way).type for way in ways} == {pa.int64()}
    for name in names:
        assert run["degree"]["greatest"][name] == max(table[name].to_pylist())
    assert run["found"]["column"] == ways[0]
    assert f"vertex  {ways[0]}, the greatest" in ok("degree", edges, *reading, "--no-output").out
    assert ok("validate", edges, out, *reading).out.startswith("valid: ")
    ok("report", out, "-o", tmp_path / "page.html")
    assert f"The greatest {ways[0]}" in (tmp_path / "page.html").read_text()
    bare = tmp_path / "bare.parquet"
    pq.write_table(table.replace_schema_metadata(None), bare)
    assert delegraph.info(bare)["algorithm"] == "degree"
    assert delegraph.info(bare)["top"] == delegraph.info(out)["top"]
    assert delegraph.validate(edges, bare, **_reading(directed, weighted))["valid"]


def _reading(directed: bool, weighted: bool) -> dict[str, Any]:
    return {"directed": directed, **({"weight": "w"} if weighted else {})}


@pytest.mark.parametrize("place", ["edges", "store"])
def test_unweighted(edge_list, tmp_path, place):
    """Weights that are not asked for give no columns, and a result that lacks columns that its
    graph asks for is none.
    """
    src, dst = SHAPES["two components"]
    edges, out = edge_list(src, dst, w=np.arange(len(src))), tmp_path / "out"
    graph: Path = edges
    reading: dict[str, Any] = {"weight": "w"}
    if place == "store":
        delegraph.build(edges, tmp_path / "graph.dg", weight="w")
        graph, reading = tmp_path / "graph.dg", {}
    delegraph.degree(graph, output=out, unweighted=True, **reading)
    assert pq.read_table(out).column_names == ["vertex", "degree"]
    assert delegraph.validate(graph, out, **reading)["valid"]
    delegraph.degree(graph, output=out, overwrite=True, **reading)
    (path,) = out.glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["weighted_degree"]), path)
    with pytest.raises(InputError, match="not a result of this graph: it has the columns degree"):
        delegraph.validate(graph, out, **reading)
    pq.write_table(table.drop_columns(["degree"]), path)
    with pytest.raises(InputError, match="column degree is missing"):
        delegraph.validate(graph, out, **reading)


@pytest.mark.parametrize("name", ["karate", slow("email-Eu-core")])
def test_real_graphs(real_graph, name):
    table = pq.read_table(real_graph(name))
    pairs = list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    for kind in (networkx.Graph, networkx.DiGraph):
        graph = kind(pairs)
        graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
        directed = graph.is_directed()
        found = delegraph.degree(real_graph(name), directed=directed, device="cpu").table
        ways = ("in_degree", "out_degree") if directed else ("degree",)
        for way in ways:
            vertices, degrees = found["vertex"].to_pylist(), found[way].to_pylist()
            assert dict(zip(vertices, degrees, strict=True)) == dict(getattr(graph, way)())


# On a GPU


def run_on_device(store: Store, device: Device, unweighted: bool) -> dict[str, np.ndarray]:
    program = degree_program(store, unweighted)
    engine = DeviceProgramEngine(StoreRowsOnDevice(store, None, device, 2), program, device)
    engine.load()
    engine.compile()
    result = engine.run(None, lambda *_: None)
    engine.close()
    return {name: np.asarray(values) for name, values in result.values.items()}


@pytest.mark.parametrize("kind", [None, *WEIGHTS])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_a_device(device, tmp_path, shape, partitions, directed, kind):
    src, dst = SHAPES[shape]
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    options = BuildOptions(directed=directed, partitions=partitions)
    store = stored(tmp_path, src, dst, options, weight)
    for unweighted in (False, True):
        check_degrees(store, run_on_device(store, device, unweighted), unweighted)


@pytest.mark.parametrize("shape", ["hubs"])
@pytest.mark.parametrize("kind", [None, "great"])
@pytest.mark.parametrize("directed", [False, True])
def test_self_loops_on_a_device(device, tmp_path, directed, kind, shape):
    src, dst = SHAPES[shape]
    weight = None if kind is None else WEIGHTS[kind](np.random.default_rng(1), len(src))
    store = stored(tmp_path, src, dst, BuildOptions(directed=directed, loops="keep"), weight)
    assert store.info.loops
    check_degrees(store, run_on_device(store, device, unweighted=False))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_commands_on_a_device(device, edge_list, tmp_path, directed, weighted):
    """A store, an edge list and an open graph give on a device what they give on a CPU."""
    src, dst = SHAPES["hubs"]
    edges = edge_list(src, dst, w=np.arange(len(src)) % 9)
    reading = _reading(directed, weighted)
    delegraph.build(edges, tmp_path / "graph.dg", device="cpu", **reading)
    wanted = delegraph.degree(edges, device="cpu", **reading).table.sort_by("vertex")
    for graph, more in ((edges, reading), (tmp_path / "graph.dg", {})):
        with delegraph.open(graph, device="cuda", **more) as opened:
            results = opened.degree(), delegraph.degree(graph, device="cuda", **more)
            for result in results:
                assert str(result.record["device"]).startswith("cuda")
                assert result.table.sort_by("vertex").equals(wanted)


# On an emulated device


@pytest.mark.parametrize(
    ("directed", "partitions", "kind"),
    [(True, 1, None), slow(True, 3, "great"), slow(False, 1, None), slow(False, 3, "floats")],
)
def test_emulated(emulated, tmp_path, directed, partitions, kind):
    test_on_a_device(emulated[0], tmp_path, "two components", partitions, directed, kind)


def test_emulated_self_loops(emulated, tmp_path):
    test_self_loops_on_a_device(emulated[0], tmp_path, False, "great", "self-loop")


@pytest.mark.nightly
@pytest.mark.parametrize("weighted", [False, True])
def test_emulated_commands(emulated, edge_list, tmp_path, weighted):
    test_commands_on_a_device(emulated[0], edge_list, tmp_path, True, weighted)
