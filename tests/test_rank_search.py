"""Searches by several ranks against the definition: threads of one process stand for workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from test_communicators import communicators

import delegraph
from conftest import grid, random_edges
from delegraph.kernels import reference
from delegraph.kernels.team import Team
from delegraph.partition.errors import InputError
from delegraph.partition.store import Store, open_store
from delegraph.pipeline import rank_result, rank_search
from delegraph.pipeline import ranks as rank_tasks
from delegraph.pipeline.communicator import (
    Failure,
    RankError,
    failure_of,
    telling_others,
)
from delegraph.pipeline.rank_graph import RankGraph, rank_bytes
from delegraph.pipeline.rank_search import RankFound, search_rank
from test_search import violations_of


def search_by_threads(
    store: Store,
    source: int,
    ranks: int,
    folder: Path,
    max_depth: int | None = None,
    threads: int = 1,
    kind: str = "threads",
) -> tuple[np.ndarray, np.ndarray, list[RankFound]]:
    def one(communicator) -> RankFound:
        graph = RankGraph.load(store, communicator.rank, ranks, Team(1))
        with telling_others(communicator.rank, communicator):
            found = search_rank(graph, source, communicator, Team(threads), max_depth)
        rank_result.save(graph, folder)
        return found

    folder.mkdir(exist_ok=True)
    with communicators(kind, ranks) as group, ThreadPoolExecutor(ranks) as pool:
        found = list(pool.map(one, group))
    return *rank_result.gather(store, folder), found


def edges_of(store: Store) -> tuple[np.ndarray, np.ndarray]:
    """In global ids; undirected edges both ways."""
    blocks = list(store.edge_blocks(Team(1)))
    return np.concatenate([u for u, _ in blocks]), np.concatenate([v for _, v in blocks])


SHAPES = {
    "one edge": ([3], [9]),
    "star": (np.zeros(2000, int), np.arange(1, 2001)),
    "path": (np.arange(300), np.arange(1, 301)),
    "two components": (np.r_[0:50, 100:150], np.r_[1:51, 101:151]),
    "grid": grid(40),
    "random": random_edges(1, 5000, 40_000),
    "hubs": random_edges(2, 300, 20_000),
}


@pytest.mark.parametrize("threshold", [None, 1, 4, 10**6])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_the_definition(edge_list, tmp_path, shape, directed, threshold):
    path = edge_list(*SHAPES[shape])
    for partitions in (2, 5):
        place = tmp_path / f"{partitions}.dg"
        delegraph.build(
            path, place, partitions=partitions, threshold=threshold, directed=directed, threads=1
        )
        store = open_store(place)
        src, dst = edges_of(store)
        n = store.info.vertices
        for ranks in (1, 2, 3, 5):
            if ranks > partitions:
                continue
            for source in {0, n // 2, n - 1}:
                wanted = reference.distances(src, dst, n, source, True)
                distance, parent, found = search_by_threads(store, source, ranks, tmp_path / "out")
                assert np.array_equal(distance, wanted)
                assert not violations_of(src, dst, True, distance, parent, source)
                levels = np.bincount(wanted[wanted > 0], minlength=1)[1:].tolist()
                steps = found[0].supersteps
                assert [step["found"] for step in steps if step["found"]] == levels
                assert [step["frontier"] for step in steps] == [1, *levels][: len(steps)]


@pytest.mark.parametrize("max_depth", [0, 1, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_depth_limit(edge_list, tmp_path, max_depth, threads):
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    n = store.info.vertices
    wanted = reference.distances(src, dst, n, 17, True)
    wanted[wanted > max_depth] = -1
    distance, parent, _ = search_by_threads(store, 17, 3, tmp_path / "out", max_depth, threads)
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 17, max_depth)


@pytest.mark.parametrize("kind", ["tcp", "tcp in pieces"])
@pytest.mark.parametrize("shape", ["path", "random"])
def test_over_tcp(edge_list, tmp_path, shape, kind):
    delegraph.build(edge_list(*SHAPES[shape]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 3, True)
    distance, parent, _ = search_by_threads(store, 3, 3, tmp_path / "out", kind=kind)
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 3)


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("directed", [False, True])
def test_every_direction(monkeypatch, edge_list, tmp_path, way, directed):
    monkeypatch.setattr(rank_search, "choose", lambda *work: way)
    path = edge_list(*SHAPES["random"])
    delegraph.build(path, tmp_path / "graph.dg", partitions=3, threshold=10, directed=directed)
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 5, True)
    distance, parent, found = search_by_threads(store, 5, 3, tmp_path / "out")
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 5)
    for name in ("nd", "dn", "dd"):
        assert way in {step["direction"][name] for step in found[0].supersteps}


def test_messages_are_counted(edge_list, tmp_path):
    """At most a bitmap of all delegates, and of all rows, for each of the others in a superstep."""
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")
    _, _, found = search_by_threads(store, 1, 4, tmp_path / "out")
    steps = found[0].supersteps
    words = -(-store.info.delegates // 64)
    assert 0 < max(step["bytes_sent"]["delegates"] for step in steps) <= 4 * 3 * 8 * words
    nn = store.info.subgraph_edges["nn"]
    assert 0 < sum(step["bytes_sent"]["normals"] for step in steps) <= 4 * nn
    assert all(step["bytes_sent"]["control"] > 0 for step in steps)
    _, _, alone = search_by_threads(store, 1, 1, tmp_path / "alone")
    assert all(sum(step["bytes_sent"].values()) == 0 for step in alone[0].supersteps)


def test_the_first_failure_is_everyones(edge_list, tmp_path, monkeypatch):
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")

    def break_down(self):
        if self._graph.rank == 2 and self.level == 1:
            raise ValueError("a broken disk")
        return original(self)

    original = rank_search._RankSearch._superstep
    monkeypatch.setattr(rank_search._RankSearch, "_superstep", break_down)
    told = "rank 2 failed: ValueError: a broken disk in superstep 1"
    with pytest.raises(RankError, match=told):
        search_by_threads(store, 1, 4, tmp_path / "out")


def test_projected_bytes_hold_what_is_loaded(edge_list, tmp_path):
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")
    for ranks in (1, 3):
        for rank in range(ranks):
            graph = RankGraph.load(store, rank, ranks, Team(1))
            both = [rows for flow in graph.flows for rows in (flow.forward, flow.backward) if rows]
            arrays = {id(array): array for rows in both for array in rows}
            held = sum(array.nbytes for array in arrays.values())
            held += sum(
                array.nbytes
                for kind in graph.kinds
                for array in (kind.visited, kind.found, kind.distance, kind.parent, kind._queue)
            )
            assert held <= rank_bytes(store, rank, ranks) < 4 * held


def test_what_is_told_of_several_failures():
    """A cause before a loss; one line, never empty."""
    lost = Failure(1, "is gone", lost=True, superstep=3)
    told = Failure(1, "failed: it is damaged")
    later = Failure(0, "failed: no space", superstep=2)
    assert rank_tasks._first([RankError(lost), RankError(told)]) == told
    assert rank_tasks._first([RankError(lost), RankError(told), RankError(later)]) == later
    assert failure_of(2, MemoryError()).reason == "failed: MemoryError"
    told = failure_of(2, ValueError("one\ntwo"), 4)
    assert told == Failure(2, "failed: ValueError: one", superstep=4)
    assert failure_of(2, InputError("a.npy: damaged")).reason == "failed: a.npy: damaged"
