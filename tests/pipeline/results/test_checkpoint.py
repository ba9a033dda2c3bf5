"""Checkpoints: a search resumes from any level, and damage does no harm."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs.cpu import CpuBackend
from delegraph.kernels.bfs.edges import EdgeSearch
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.build.build import build_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.host import scan as search_edges
from delegraph.pipeline.engines.host.search import resume, search
from delegraph.pipeline.results import checkpoint
from delegraph.pipeline.results.checkpoint import Checkpoint
from delegraph.pipeline.results.found import Found
from delegraph.pipeline.results.superstep_log import SuperstepLog
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.run.resources import Resources
from support.graphs import graphs, make_graph, random_edges
from support.marks import slow
from support.ranks import stream_search, streamed
from support.searches import violations_of

VERTICES = 400


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("checkpoint")


def in_memory(graph, source, max_depth, saved):
    backend = CpuBackend(2)
    made = make_graph(*graph)
    return search(made, source, backend, max_depth, checkpoint=saved)


def by_scans(graph, source, max_depth, saved):
    """Search like bfs._search_edges: scan, then search by rows when the budget is spent."""
    src, dst, vertices, directed = graph
    state = EdgeSearch([(src.copy(), dst.copy())], vertices, source, directed)
    steps = SuperstepLog()
    done = search_edges.scan(state, Team(2), max_depth, saved, steps)
    if done:
        return Found(state.distance, state.parent, steps)
    begun = state.by_rows(Team(2))
    backend = CpuBackend(2)
    return resume(begun, backend, max_depth, checkpoint=saved, supersteps=steps)


@pytest.mark.slow
@pytest.mark.parametrize("way", [slow(in_memory), by_scans])
@given(graphs(), st.data())
def test_goes_on_from_every_level(way, folders, graph, data):
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    for level in range(expected.max() + 2):
        folder = folders()
        begun = way(graph, source, level, Checkpoint(folder, 0))
        result = way(graph, source, None, Checkpoint(folder, 0))
        assert result.distance.tolist() == expected.tolist()
        assert not violations_of(src, dst, directed, result.distance, result.parent, source)
        assert result.supersteps[: len(begun.supersteps)] == begun.supersteps
        assert result.supersteps.reached == np.count_nonzero(expected >= 0)


@pytest.mark.parametrize("budget", [0, 3])
def test_goes_on_in_rows(folders, budget, monkeypatch):
    """A search resumes in rows if it had left off scanning when it was saved."""
    monkeypatch.setattr(search_edges, "SCAN_BUDGET", budget)
    path = np.arange(50, dtype=np.uint32)
    graph = path[:-1].copy(), path[1:].copy(), 50, False
    folder = folders()
    by_scans(graph, 0, 20, Checkpoint(folder, 0))
    result = by_scans(graph, 0, None, Checkpoint(folder, 0))
    assert result.distance.tolist() == list(range(50))
    directions = [step["direction"]["all"] for step in result.supersteps]
    assert "scan" not in directions[20:]
    assert [step["level"] for step in result.supersteps] == list(range(1, 51))[: len(directions)]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_streamed_search_goes_on_from_every_level(directed, partitions, tmp_path):
    path = np.arange(VERTICES)
    src, dst = random_edges(3, VERTICES, 700)
    src, dst = np.concatenate([src, path[:30]]), np.concatenate([dst, path[1:31]])
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    options = BuildOptions(directed=directed, partitions=partitions, threshold=8)
    edges = open_edges(tmp_path / "edges.parquet")
    store = build_store(edges, tmp_path / "graph.dg", options, Executor(2), Resources())
    graph = streamed(store)
    whole = stream_search(graph, 0, Team(2))
    assert whole.supersteps.depth > 3
    for level in range(whole.supersteps.depth + 2):
        folder = tmp_path / f"level-{level}"
        begun = stream_search(graph, 0, Team(2), level, checkpoint=Checkpoint(folder, 0))
        result = stream_search(graph, 0, Team(2), checkpoint=Checkpoint(folder, 0))
        assert np.array_equal(result.distance, whole.distance)
        assert result.supersteps[: len(begun.supersteps)] == begun.supersteps
        ways = [
            [(step["level"], step["direction"], step["found"]) for step in one.supersteps]
            for one in (result, whole)
        ]
        assert ways[0] == ways[1]


@pytest.mark.parametrize("partitions", [1, 3])
def test_goes_on_where_the_edges_are(partitions, tmp_path):
    """A search that was cut off on disk resumes in memory, and the other way round."""
    src, dst = random_edges(3, VERTICES, 700)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    edges = open_edges(tmp_path / "edges.parquet")
    options = BuildOptions(partitions=partitions, threshold=8)
    store = build_store(edges, tmp_path / "graph.dg", options, Executor(2), Resources())

    def on_disk(saved: Checkpoint, max_depth: int | None) -> Found:
        return stream_search(streamed(store), 0, Team(2), max_depth, checkpoint=saved)

    def held(saved: Checkpoint, max_depth: int | None) -> Found:
        return search(store.graph(Team(1)), 0, CpuBackend(2), max_depth, checkpoint=saved)

    whole = held(Checkpoint(tmp_path / "whole", 0), None)
    assert whole.supersteps.depth > 3
    for level in range(1, whole.supersteps.depth + 1):
        for first, then in ((on_disk, held), (held, on_disk)):
            folder = tmp_path / f"{level}-{first.__name__}"
            begun = first(Checkpoint(folder, 0), level)
            result = then(Checkpoint(folder, 0), None)
            assert np.array_equal(result.distance, whole.distance)
            assert result.supersteps[:level] == begun.supersteps
            assert result.supersteps.reached == whole.supersteps.reached


def saved(folder, level=3, search="this"):
    one = Checkpoint(folder, 0, search)
    distance = np.arange(10, dtype=np.int32)
    steps = SuperstepLog()
    for _ in range(level):
        steps.add(1, "push", 1, 1, 4, 0.5)
    one.save(distance, distance.astype(np.uint32) + 7, level, steps)
    return one


def test_gives_back_what_was_saved(tmp_path):
    state = saved(tmp_path).load(10)
    assert state is not None
    assert state.distance.tolist() == list(range(10))
    assert state.parent.tolist() == list(range(7, 17))
    assert (state.distance.dtype, state.parent.dtype) == (np.int32, np.uint32)
    assert state.level == len(state.supersteps) == 3
    state.distance[0] = 5  # a search writes to it


def test_holds_only_the_last(tmp_path):
    saved(tmp_path, 3)
    (tmp_path / ".search.json.partial-1").write_bytes(b"of a killed save")
    one = saved(tmp_path, 12)
    names = {
        *("search.json", "supersteps-00012.parquet"),
        *("distance-00012.npy", "parent-00012.npy"),
    }
    assert {path.name for path in tmp_path.iterdir()} == names
    one.clear()
    assert not list(tmp_path.iterdir())


def test_is_due_after_its_time(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now)
    one = Checkpoint(tmp_path, 60)
    now = 159.0
    assert not one.due()
    now = 160.0
    assert one.due()
    one.save(np.zeros(1, np.int32), np.zeros(1, np.uint32), 0, SuperstepLog())
    assert not one.due()


def test_nothing_saved(tmp_path):
    assert Checkpoint(tmp_path, 60).load(10) is None
    assert Checkpoint(tmp_path / "missing", 60).load(10) is None


def test_of_another_search_is_ignored(tmp_path):
    saved(tmp_path)
    assert Checkpoint(tmp_path, 0, "this").load(10) is not None
    assert Checkpoint(tmp_path, 0, "this").load(11) is None
    assert Checkpoint(tmp_path, 0, "that").load(10) is None


@pytest.mark.parametrize("name", ["search.json", "distance-00003.npy", "parent-00003.npy"])
def test_any_damage_is_ignored(name, tmp_path):
    one = saved(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert one.load(10) is None, at
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert one.load(10) is None, length
    path.unlink()
    assert one.load(10) is None
    path.mkdir()
    assert one.load(10) is None


@pytest.mark.parametrize("document", ["[]", "{}", "null", '{"xxh3": 3}', '"text"'])
def test_other_json_is_ignored(document, tmp_path):
    (tmp_path / "search.json").write_text(document)
    assert Checkpoint(tmp_path, 0).load(10) is None


@pytest.mark.parametrize("change", [{"done": "3"}, {"files": {}}, {"files": []}])
def test_documents_of_another_shape_are_ignored(change, tmp_path):
    one = saved(tmp_path)
    path = tmp_path / "search.json"
    document = {**json.loads(path.read_text()), **change}
    del document["xxh3"]
    document["xxh3"] = checkpoint._digest(document)
    path.write_text(json.dumps(document))
    assert one.load(10) is None


class Killed(BaseException):
    pass


@pytest.mark.parametrize("where", range(1, 12))
def test_a_kill_while_saving_leaves_a_whole_one(where, tmp_path, monkeypatch):
    """A save that is killed at its ``where``-th step that changes the disk leaves a whole
    checkpoint.
    """
    saved(tmp_path, 3)
    calls = 0

    def stopping(function):
        def stop(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == where:
                raise Killed
            return function(*args, **kwargs)

        return stop

    for name in ("replace", "fsync"):
        monkeypatch.setattr(checkpoint.os, name, stopping(getattr(checkpoint.os, name)))
    monkeypatch.setattr(checkpoint.Path, "unlink", stopping(checkpoint.Path.unlink))
    with pytest.raises(Killed):
        saved(tmp_path, 4)
    monkeypatch.undo()
    state = Checkpoint(tmp_path, 0, "this").load(10)
    assert state is not None
    assert state.level in (3, 4)
    saved(tmp_path, 5)
    assert len(list(tmp_path.glob("*.npy*"))) == 2
