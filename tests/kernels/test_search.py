"""Every backend and direction against the NumPy definition, on random graphs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.graph import Graph
from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs import cpu
from delegraph.kernels.bfs.cpu import CpuBackend
from delegraph.kernels.bfs.edges import EdgeSearch
from delegraph.kernels.reference import ReferenceBackend
from delegraph.pipeline.engines.host.search import resume, search
from support.graphs import graphs, make_graph, random_edges
from support.marks import mostly_slow
from support.searches import DIRECTIONS, violations_of


@pytest.fixture(autouse=True)
def shared_limits(monkeypatch):
    """Restore after each test the sizes from which threads share a step: tests may set them."""
    monkeypatch.setattr(cpu, "_SHARED_PUSH", cpu._SHARED_PUSH)
    monkeypatch.setattr(cpu, "_SHARED_WORDS", cpu._SHARED_WORDS)


BACKENDS = [ReferenceBackend(), CpuBackend(1), CpuBackend(3)]


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("backend", BACKENDS, ids=["reference", "cpu", "threads"])
@given(graphs(), st.data())
def test_search_against_definition(name, backend, graph, data):
    shared = backend is BACKENDS[-1]
    cpu._SHARED_PUSH = cpu._SHARED_WORDS = 0 if shared else 1 << 15  # share all, or nothing
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    result = search(
        make_graph(*graph),
        source,
        backend,
        direction=DIRECTIONS[name],
    )
    assert result.distance.tolist() == expected.tolist()
    assert not violations_of(src, dst, directed, result.distance, result.parent, source)
    assert result.supersteps.reached == np.count_nonzero(expected >= 0)
    assert result.supersteps.depth == expected.max()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", mostly_slow(DIRECTIONS, "alternating"))
def test_shared_work_is_right_every_time(name, directed):
    """Searches large enough that several threads share each step are right, repeated to catch
    races.
    """
    vertices = 60_000
    src, dst = random_edges(7, vertices, 600_000)
    graph = make_graph(src, dst, vertices, directed)
    expected = reference.distances(src, dst, vertices, 5, directed)
    backend = CpuBackend(4)
    for _ in range(10):
        result = search(graph, 5, backend, direction=DIRECTIONS[name])
        assert np.array_equal(result.distance, expected)
        assert not violations_of(src, dst, directed, result.distance, result.parent, 5)


@given(graphs(), st.data(), st.integers(1, 4), st.integers(1, 3))
def test_scan_against_definition(graph, data, blocks, threads):
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    pairs = [(src[i::blocks].copy(), dst[i::blocks].copy()) for i in range(blocks)]
    state = EdgeSearch(pairs, vertices, source, directed)
    while state.advance(Team(threads))[0]:
        pass
    assert state.distance.tolist() == expected.tolist()
    assert not violations_of(src, dst, directed, state.distance, state.parent, source)


@pytest.mark.parametrize("directed", [False, True])
def test_shared_scans_are_right_every_time(directed):
    vertices = 60_000
    src, dst = random_edges(7, vertices, 600_000)
    src, dst = src.astype(np.uint32), dst.astype(np.uint32)
    expected = reference.distances(src, dst, vertices, 5, directed)
    for _ in range(10):
        blocks = [(src[i::7].copy(), dst[i::7].copy()) for i in range(7)]
        state = EdgeSearch(blocks, vertices, 5, directed)
        while state.advance(Team(4))[0]:
            pass
        assert np.array_equal(state.distance, expected)
        assert not violations_of(src, dst, directed, state.distance, state.parent, 5)


@given(graphs(), st.data(), st.integers(0, 3), st.integers(1, 3))
def test_scans_then_rows_against_definition(graph, data, scans, threads):
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    pairs = [(src[i::2].copy(), dst[i::2].copy()) for i in range(2)]
    state = EdgeSearch(pairs, vertices, source, directed)
    for _ in range(scans):
        state.advance(Team(threads))
    backend = CpuBackend(threads)
    result = resume(state.by_rows(Team(threads)), backend)
    assert result.distance.tolist() == expected.tolist()
    assert not violations_of(src, dst, directed, result.distance, result.parent, source)


@given(graphs(), st.data(), st.integers(0, 4))
def test_depth_limit(graph, data, max_depth):
    src, dst, vertices, directed = graph
    source = data.draw(st.integers(0, vertices - 1))
    expected = reference.distances(src, dst, vertices, source, directed)
    expected[expected > max_depth] = -1
    backend = CpuBackend(1)
    result = search(make_graph(*graph), source, backend, max_depth)
    assert result.distance.tolist() == expected.tolist()
    assert not violations_of(src, dst, directed, result.distance, result.parent, source, max_depth)


@pytest.mark.parametrize("towards", ["push", "pull"])
def test_backends_count_the_same_work(towards):
    src, dst = random_edges(3, 300, 2000)
    graph = make_graph(src, dst, 300, directed=False)
    counted = {}
    for name, backend in zip(("reference", "cpu"), BACKENDS, strict=False):
        result = search(graph, 1, backend, direction=DIRECTIONS[towards])
        counted[name] = [
            (step["level"], step["frontier"], step["found"], step["edges_examined"])
            for step in result.supersteps
        ]
    assert counted["reference"] == counted["cpu"]


def test_large_frontiers_take_both_directions():
    src, dst = random_edges(7, 60_000, 600_000)
    graph = make_graph(src, dst, 60_000, directed=False)
    result = search(graph, 5, CpuBackend(1))
    assert {step["direction"]["all"] for step in result.supersteps} == {"push", "pull"}


def test_wide_offsets():
    """Graphs past 2^32 edges have 64-bit offsets: the same kernels, another compiled variant."""
    src, dst = random_edges(3, 300, 2000)
    graph = make_graph(src, dst, 300, directed=False)
    offsets = graph.offsets.astype(np.uint64)
    wide = Graph.undirected(offsets, graph.targets)
    expected = reference.distances(src, dst, 300, 1)
    for direction in DIRECTIONS.values():
        result = search(wide, 1, CpuBackend(2), direction=direction)
        assert np.array_equal(result.distance, expected)


def test_teams_have_threads():
    with pytest.raises(ValueError, match="threads"):
        Team(0)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_team_begins_nothing_after_a_failure(threads):
    starts = []

    def work(i: int) -> None:
        starts.append(i)
        if i == 2:
            raise ValueError("the third")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="the third"):
        Team(threads).map(work, range(1000))
    assert len(starts) < 10
