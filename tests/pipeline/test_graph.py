"""Graphs that are opened once and searched many times, from Python."""

from __future__ import annotations

import json
import os
import pickle
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.gpu.device import DeviceError
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.pipeline import graph as graph_module
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.run import devices
from support.graphs import random_edges
from support.outputs import distances_of
from support.processes import printed_alone

PACKAGE: Any = delegraph


@pytest.fixture(scope="module")
def edges() -> tuple[np.ndarray, np.ndarray]:
    return random_edges(1, 3000, 20_000)


@pytest.fixture
def store(edge_list, edges, tmp_path):
    delegraph.build(edge_list(*edges), tmp_path / "graph.dg", threads=1)
    return tmp_path / "graph.dg"


def wanted(edges, source: int, directed: bool = False) -> dict[int, int | None]:
    src, dst = edges
    hops = reference.distances(src, dst, 3000, source, directed)
    return {int(v): int(hops[v]) if hops[v] >= 0 else None for v in np.union1d(src, dst)}


def by_vertex(result) -> dict[int, int | None]:
    columns = result.vertex.to_pylist(), result.distance.to_pylist()
    return dict(zip(*columns, strict=True))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", ["store", "partitions", "edges"])
def test_again_and_again(edge_list, edges, tmp_path, kind, directed):
    path = edge_list(*edges)
    how = {"directed": directed} if kind == "edges" else {}
    if kind != "edges":
        shape: dict[str, Any] = {"partitions": 3, "threshold": 20} if kind == "partitions" else {}
        delegraph.build(path, tmp_path / "graph.dg", directed=directed, **shape)
        path = tmp_path / "graph.dg"
    with delegraph.open(path, threads=2, **how) as graph:
        results = {source: graph.bfs(source) for source in edges[0][:5].tolist()}
        for source, result in results.items():
            assert by_vertex(result) == wanted(edges, source, directed)
            assert result.reached == sum(hops is not None for hops in by_vertex(result).values())
            assert result.depth == max(hops for hops in by_vertex(result).values() if hops)
            assert len(result.supersteps) >= result.depth
            assert result.seconds > 0
        near = graph.bfs(int(edges[0][0]), max_depth=1)
        assert {hops for hops in by_vertex(near).values() if hops is not None} == {0, 1}


def test_what_it_shows(store, edges):
    source = int(edges[0][0])
    with delegraph.open(store) as graph:
        assert graph.info["kind"] == "store"
        assert graph.info["vertices"] == len(wanted(edges, source))
        assert graph.device == "cpu"
        assert graph.plan().steps[0].task_bytes > 0
        result = graph.bfs(source)
        assert f"{graph.info['vertices']:,} vertices" in repr(graph)
        assert f"bfs: source {source}, method push-pull, reached {result.reached:,}" in repr(result)
        frame = result.to_pandas()
        assert frame.columns.tolist() == ["vertex", "distance", "parent"]
        assert frame["parent"].isna().sum() == 1 + len(frame) - result.reached
    assert "closed" in repr(graph)
    assert result.table.num_rows == len(frame)  # results stay
    with pytest.raises(DelegraphError, match="is closed: open it again"):
        graph.bfs(source)


def test_it_says_why_no_device_is_used(store, monkeypatch):
    """A graph's notes say why no device is used when a limit of its memory is given, as the user
    then expects a device.
    """

    def none(number: int, limit: int | None) -> None:
        raise DeviceError("there is no GPU")

    monkeypatch.setattr(devices, "open_device", none)
    with delegraph.open(store, device_memory_limit="1GB") as graph:
        assert graph.notes[0] == "on the CPU: there is no GPU"
    with delegraph.open(store) as graph:
        assert not any("GPU" in note for note in graph.notes)


def test_written_as_by_the_command(store, edges, tmp_path):
    source = int(edges[0][0])
    with delegraph.open(store, memory_limit="4GB") as graph:
        result = graph.bfs(source, max_depth=2)
        result.write(tmp_path / "found")
        with pytest.raises(InputError, match="exists; name another output"):
            result.write(tmp_path / "found")
        result.write(tmp_path / "found", overwrite=True)
    delegraph.bfs(store, source, output=tmp_path / "wanted", max_depth=2)
    assert distances_of(tmp_path / "found") == distances_of(tmp_path / "wanted")
    assert delegraph.validate(store, tmp_path / "found")["valid"]
    records = [json.loads((tmp_path / f"{n}.run.json").read_text()) for n in ("found", "wanted")]
    assert records[0].keys() == records[1].keys()
    assert records[0]["search"] == records[1]["search"]
    assert records[0]["seconds"]["search"] > 0


def test_bad_input(store, edge_list, edges, tmp_path):
    with delegraph.open(store) as graph, pytest.raises(InputError, match="not a vertex"):
        graph.bfs(10**9)
    with delegraph.open(store) as graph, pytest.raises(InputError, match="'x'"):
        graph.bfs("x")
    with (
        delegraph.open(store) as graph,
        pytest.raises(InputError, match="a whole number"),
    ):
        graph.bfs(int(edges[0][0]), max_depth=-1)
    with pytest.raises(InputError, match="is a store"):
        delegraph.open(store, directed=True)
    with pytest.raises(InputError, match="'4GX' is not a size"):
        delegraph.open(store, memory_limit="4GX")
    with pytest.raises(InputError, match="memory limit of 1 MB is too small"):
        delegraph.open(store, memory_limit="1MB")
    with pytest.raises(InputError):
        delegraph.open(tmp_path / "nothing")


def test_several_at_once(store, edge_list, edges):
    """Several threads search several graphs at once."""
    sources = edges[0][:8].tolist()
    with delegraph.open(store) as one, delegraph.open(edge_list(*edges)) as two:
        results: dict[tuple[int, int], dict] = {}

        def search(source: int) -> None:
            for number, graph in enumerate((one, two)):
                results[number, source] = by_vertex(graph.bfs(source))

        threads = [threading.Thread(target=search, args=[source]) for source in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for source in sources:
        assert results[0, source] == results[1, source] == wanted(edges, source)


HELD = """
import sys
import delegraph
from delegraph.partition.disk.memory import resident_bytes

path, source, limit = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def search():
    with delegraph.open(path, threads=1, memory_limit=limit) as graph:
        held = resident_bytes()
        graph.bfs(source)
        return held

search()  # what is compiled, and loaded of libraries, stays
before = resident_bytes()
opened = [search() for _ in range(3)]
print(before, max(opened), resident_bytes())
"""


@pytest.mark.parametrize("limit", ["10GB"])
def test_closed_memory_is_given_back(edge_list, tmp_path, limit):
    """A closed graph gives back its 20 MB of targets, which an open graph holds."""
    src, dst = random_edges(2, 300_000, 2_500_000)
    delegraph.build(edge_list(src, dst), tmp_path / "graph.dg")
    printed = printed_alone(HELD, tmp_path / "graph.dg", src[0], limit)
    before, opened, after = map(int, printed.split())
    assert opened - before > 15 << 20
    assert after - before < 5 << 20


STREAMED = """
import sys
import delegraph
from delegraph.pipeline.engines.engine import CODE_BYTES
from delegraph.pipeline.run.plan import held_now

path, source = sys.argv[1], int(sys.argv[2])
with delegraph.open(path, threads=1) as graph:
    wanted = graph.bfs(source)
limit = held_now() + CODE_BYTES  # enough to read from disk; in memory needs half as much again
with delegraph.open(path, threads=1, memory_limit=limit) as graph:
    assert not graph.plan().shape.in_memory
    result = graph.bfs(source)
    assert result.distance.equals(wanted.distance)
    assert sum(step["bytes_read"] for step in result.supersteps) > 0
    assert graph.bfs(source).distance.equals(wanted.distance)
    print("streamed")
"""


def test_streamed_where_it_does_not_fit(edge_list, tmp_path):
    src, dst = random_edges(2, 200_000, 6_000_000)
    delegraph.build(edge_list(src, dst), tmp_path / "graph.dg")
    assert printed_alone(STREAMED, tmp_path / "graph.dg", src[0]) == "streamed\n"


def test_numbers_of_numpy(store, edges, tmp_path):
    """Numbers of NumPy's types are accepted like Python's, and written to records."""
    source = edges[0][0]
    with delegraph.open(store) as opened:
        graph: Any = opened
        for result in (
            graph.bfs(source, max_depth=np.int64(1)),
            graph.pagerank(damping=np.float32(0.5), iterations=np.int8(2)),
            graph.closeness(sources=np.int64(2), seed=np.uint8(3)),
            graph.bfs(sources=[source], max_depth=np.int32(1)),
        ):
            result.write(tmp_path / "out", overwrite=True)
            assert delegraph.validate(store, tmp_path / "out")["valid"]
    shape: Any = {"directed": np.bool_(True), "partitions": np.int64(2), "threads": np.int8(1)}
    shape |= {"layout": "2d", "grid": [np.int64(2), np.int64(1)], "memory_limit": np.int64(10**10)}
    delegraph.build(pa.table({"src": [1], "dst": [2]}), tmp_path / "two.dg", **shape)
    facts = delegraph.info(tmp_path / "two.dg")
    assert (facts["directed"], facts["partitions"]) == (True, 2)


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda graph: graph.pagerank(iterations=1.5), "iterations must be a whole number"),
        (lambda graph: graph.closeness(sources=2, seed=-1), "seed must be a whole number"),
        (lambda graph: graph.closeness(sources=2, seed=None), "seed must be a whole number"),
        (lambda graph: graph.bfs(sources=5), "sources must be a list of ids"),
        (lambda graph: graph.bfs("0_1"), "'0_1' is not an integer"),
        (lambda graph: graph.bfs("9" * 5000), "is outside int64"),
        (lambda graph: graph.closeness(sources=2.5), "sources must be a list of ids"),
        (lambda graph: graph.pagerank(damping="x"), "damping must be a number"),
        (lambda graph: graph.pagerank(tolerance=None), "tolerance must be a number"),
        (lambda graph: PACKAGE.plan("x", threads="2"), "threads must be a whole number"),
        (lambda graph: PACKAGE.build("x", "y", directed="yes"), "directed is True or False"),
        (
            lambda graph: PACKAGE.build("x", "y", partitions=1.5),
            "partitions must be a whole number of at least 1",
        ),
        (lambda graph: PACKAGE.bench("x", sources=0), "0 searches: at least one"),
    ],
)
def test_options_of_a_wrong_type(store, ask, reason):
    with delegraph.open(store) as graph, pytest.raises(InputError, match=reason):
        ask(graph)


def test_sources_in_text(store, edges):
    first, second = edges[0][:2].tolist()
    with delegraph.open(store) as graph:
        results = (
            graph.closeness(sources=f"{first},{second}"),
            graph.closeness(sources=[first, second]),
        )
        assert results[0].table.equals(results[1].table)


def test_from_another_folder(store, edge_list, edges, tmp_path, monkeypatch):
    monkeypatch.chdir(store.parent)
    (tmp_path / "elsewhere").mkdir()
    listed = edge_list(*edges)
    with delegraph.open(store.name) as graph, delegraph.open(os.path.relpath(listed)) as other:
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert graph.components().table.equals(other.components().table)


def test_a_glob_below_a_folder_with_brackets(edge_list, edges, tmp_path, monkeypatch):
    (tmp_path / "[old]").mkdir()
    edge_list(*edges).rename(tmp_path / "[old]" / "one.parquet")
    monkeypatch.chdir(tmp_path / "[old]")
    for name in ("*.parquet", "one.parquet", "../[[]old]/*.parquet"):
        with delegraph.open(name) as graph:
            assert graph.info["rows"] == len(edges[0])


def test_it_stays_in_its_process(store):
    with delegraph.open(store) as graph:
        with pytest.raises(TypeError, match="open it in that process"):
            pickle.dumps(graph)
        with pytest.raises(TypeError, match=r"result\.table"):
            pickle.dumps(graph.components())


def test_names(store):
    assert {"open", "info", "Graph", "BusyError"} <= set(dir(delegraph))
    assert delegraph.info(store)["kind"] == "store"


@pytest.mark.parametrize("has_room", [True, False])
def test_ids_stay_in_memory_from_one_question_to_the_next(store, edges, monkeypatch, has_room):
    """Unless an engine needs their room."""
    sources = np.unique(edges[0][:5]).tolist()
    read: list[int] = []
    read_piece = StoreNames._read

    def noted(names, number):
        read.append(number)
        return read_piece(names, number)

    monkeypatch.setattr(StoreNames, "_read", noted)
    monkeypatch.setattr(graph_module, "fits_beside", lambda engine, limit: has_room)
    with delegraph.open(store, device="cpu") as graph:
        graph.closeness(sources=sources)
        read.clear()
        one, other = graph.closeness(sources=sources), graph.bfs(sources=sources)
        assert bool(read) != has_room
    assert one.table["vertex"].to_pylist() == sources
    assert len(other.table)
