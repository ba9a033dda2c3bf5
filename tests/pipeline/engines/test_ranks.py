"""Searches by several ranks against the definition: threads of one process stand for workers."""

from __future__ import annotations

import numpy as np
import pytest

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.partition.errors import InputError
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines.ranks.edges import Rows
from delegraph.pipeline.engines.ranks.search import load_rank, rank_bytes
from delegraph.pipeline.engines.ranks.superstep import Supersteps
from delegraph.pipeline.ranks import on_workers as rank_tasks
from delegraph.pipeline.ranks.communicator import Failure, RankError, failure_of
from support.graphs import edges_of, grid, random_edges
from support.marks import mostly_slow
from support.ranks import search_by_threads
from support.searches import violations_of

SHAPES = {
    "one edge": ([3], [9]),
    "star": (np.zeros(2000, int), np.arange(1, 2001)),
    "path": (np.arange(70), np.arange(1, 71)),
    "two components": (np.r_[0:50, 100:150], np.r_[1:51, 101:151]),
    "grid": grid(20),
    "random": random_edges(1, 5000, 40_000),
    "hubs": random_edges(2, 300, 20_000),
}


LAYOUTS = {
    "auto": [{"partitions": p} for p in (2, 5)],
    **{f"over {t}": [{"partitions": p, "threshold": t} for p in (2, 5)] for t in (1, 4, 10**6)},
    "2d": [{"layout": "2d", "grid": grid} for grid in (Grid(2, 2), Grid(3, 2), Grid(3, 1))],
    "1d": [{"layout": "1d", "partitions": p} for p in (2, 5)],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", mostly_slow(SHAPES, "hubs"))
def test_against_the_definition(edge_list, tmp_path, shape, directed, layout):
    path = edge_list(*SHAPES[shape])
    for i, options in enumerate(LAYOUTS[layout]):
        place = tmp_path / f"{i}.dg"
        delegraph.build(path, place, **options, directed=directed, threads=1)
        store = open_store(place)
        src, dst = edges_of(store)
        n, partitions = store.info.vertices, store.info.partitions
        # Of delegates, ranks of one partition, of several, and of some more than others.
        for ranks in (1, 2, 3, 5) if store.info.grid is None else (1, 2, partitions):
            if ranks > partitions:
                continue
            for source in {0, n // 2, n - 1}:
                wanted = reference.distances(src, dst, n, source, True)
                distance, parent, facts = search_by_threads(store, source, ranks, tmp_path / "out")
                assert np.array_equal(distance, wanted)
                assert not violations_of(src, dst, True, distance, parent, source)
                levels = np.bincount(wanted[wanted > 0], minlength=1)[1:].tolist()
                steps = facts[0].supersteps
                assert [step["found"] for step in steps if step["found"]] == levels
                assert [step["frontier"] for step in steps] == [1, *levels][: len(steps)]


@pytest.mark.parametrize("max_depth", [0, 1, 3])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_depth_limit(edge_list, tmp_path, layout, max_depth, threads):
    path = edge_list(*SHAPES["random"])
    delegraph.build(path, tmp_path / "graph.dg", partitions=4, layout=layout)
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    n = store.info.vertices
    wanted = reference.distances(src, dst, n, 17, True)
    wanted[wanted > max_depth] = -1
    distance, parent, _ = search_by_threads(store, 17, 3, tmp_path / "out", max_depth, threads)
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 17, max_depth)


@pytest.mark.parametrize("kind", ["tcp", "tcp in pieces"])
@pytest.mark.parametrize(
    ("shape", "layout"), [("path", "delegate"), ("random", "delegate"), ("random", "2d")]
)
def test_over_tcp(edge_list, tmp_path, shape, layout, kind):
    path = edge_list(*SHAPES[shape])
    delegraph.build(path, tmp_path / "graph.dg", partitions=4, layout=layout)
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 3, True)
    distance, parent, _ = search_by_threads(store, 3, 3, tmp_path / "out", kind=kind)
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 3)


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_every_direction(edge_list, tmp_path, layout, way, directed):
    path = edge_list(*SHAPES["random"])
    threshold, partitions = (10, 3) if layout == "delegate" else (None, 4)
    delegraph.build(
        *(path, tmp_path / "graph.dg"),
        layout=layout,
        partitions=partitions,
        threshold=threshold,
        directed=directed,
    )
    store = open_store(tmp_path / "graph.dg")
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 5, True)
    distance, parent, facts = search_by_threads(
        store, 5, 3, tmp_path / "out", choose=lambda *work: way
    )
    assert np.array_equal(distance, wanted)
    assert not violations_of(src, dst, True, distance, parent, 5)
    for name in ("nd", "dn", "dd") if layout == "delegate" else ("all",):
        assert way in {step["direction"][name] for step in facts[0].supersteps}


def test_messages_are_counted(edge_list, tmp_path):
    """Bytes sent are at most a bitmap of delegates to each other rank in a superstep, and four for
    each edge between normal vertices in a search.
    """
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")
    _, _, facts = search_by_threads(store, 1, 4, tmp_path / "out")
    steps = facts[0].supersteps
    words = -(-store.info.delegates // 64)
    assert 0 < max(step["bytes_sent"]["delegates"] for step in steps) <= 4 * 3 * 8 * words
    nn = store.info.subgraph_edges["nn"]
    assert 0 < sum(step["bytes_sent"]["normals"] for step in steps) <= 4 * nn
    assert all(step["bytes_sent"]["control"] > 0 for step in steps)
    _, _, alone = search_by_threads(store, 1, 1, tmp_path / "alone")
    assert all(sum(step["bytes_sent"].values()) == 0 for step in alone[0].supersteps)


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("layout", ["2d", "1d"])
def test_messages_of_a_grid_are_counted(edge_list, tmp_path, layout, way):
    """A grid's bytes: a push expands along columns and folds along rows, and a pull does both the
    other way round.
    """
    path = edge_list(*SHAPES["random"])
    delegraph.build(path, tmp_path / "graph.dg", partitions=6, layout=layout)
    store = open_store(tmp_path / "graph.dg")
    grid, n = store.info.grid or Grid(0, 0), store.info.vertices
    assert grid == (Grid(2, 3) if layout == "2d" else Grid(1, 6))
    distance, _, facts = search_by_threads(store, 1, 6, tmp_path / "out", choose=lambda *_: way)
    steps = facts[0].supersteps
    expanded, folded, _ = (
        sum(step["bytes_sent"][kind] for step in steps) for kind in ("expand", "fold", "control")
    )
    across = grid.rows - 1 + (grid.columns - 1 if way == "pull" else 0)
    reached = np.count_nonzero(distance >= 0)
    assert expanded <= 4 * across * reached
    assert (expanded > 0) == (across > 0)
    others = (grid.columns if way == "push" else grid.rows) - 1
    assert folded <= 4 * others * n
    assert (folded > 0) == (others > 0)
    words = 8 * (n // 64 + grid.partitions)  # bitmaps of all
    assert max(step["bytes_sent"]["expand"] for step in steps) <= across * words
    assert max(step["bytes_sent"]["fold"] for step in steps) <= others * words
    assert all(step["bytes_sent"]["control"] > 0 for step in steps)


def test_the_first_failure_is_everyones(edge_list, tmp_path, monkeypatch):
    delegraph.build(edge_list(*SHAPES["random"]), tmp_path / "graph.dg", partitions=4)
    store = open_store(tmp_path / "graph.dg")

    def break_down(self, level):
        if self._graph.rank == 2 and level == 1:
            raise ValueError("a broken disk")
        return original(self, level)

    original = Supersteps.run
    monkeypatch.setattr(Supersteps, "run", break_down)
    line = "rank 2 failed: ValueError: a broken disk in superstep 1"
    with pytest.raises(RankError, match=line):
        search_by_threads(store, 1, 4, tmp_path / "out")


@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_projected_bytes_hold_what_is_loaded(edge_list, tmp_path, layout):
    path = edge_list(*SHAPES["random"])
    delegraph.build(path, tmp_path / "graph.dg", partitions=4, layout=layout)
    store = open_store(tmp_path / "graph.dg")
    for ranks in (1, 3):
        for rank in range(ranks):
            graph = load_rank(store, rank, ranks, Team(1))
            graph.begin(0)
            state = [graph.delegates]
            for adjacency in graph.adjacencies:
                assert isinstance(adjacency.rows, Rows)
                state += adjacency.rows
            for ghosts in graph.every_ghost:
                state += [ghosts.visited, *ghosts.told]
            for part in graph.vertex_states:
                state += [part.visited, part.frontier, part.found, part.distance, part.parent]
            size = sum(array.nbytes for array in state)
            assert size <= rank_bytes(store, rank, ranks) < 4 * size


def test_what_is_told_of_several_failures():
    """The message of several failures tells a cause before a loss, in one line that is never
    empty.
    """
    lost = Failure(1, "is gone", lost=True, superstep=3)
    fault = Failure(1, "failed: it is damaged")
    later = Failure(0, "failed: no space", superstep=2)
    assert rank_tasks._first([RankError(lost), RankError(fault)]) == fault
    assert rank_tasks._first([RankError(lost), RankError(fault), RankError(later)]) == later
    assert failure_of(2, MemoryError()).reason == "failed: MemoryError"
    fault = failure_of(2, ValueError("one\ntwo"), 4)
    assert fault == Failure(2, "failed: ValueError: one", superstep=4)
    assert failure_of(2, InputError("a.npy: damaged")).reason == "failed: a.npy: damaged"
