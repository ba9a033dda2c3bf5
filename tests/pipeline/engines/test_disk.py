"""Searches out of core against the definition, and the bytes that they read of a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.partition.disk import files
from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.store import edge_stream
from delegraph.partition.store.manifest import targets_file
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.build import build_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.ranks.edges import RowsOnDisk
from delegraph.pipeline.engines.ranks.search import load_rank
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.run.resources import Resources
from support.graphs import random_edges, store_options
from support.marks import mostly_slow, slow
from support.ranks import stream_search, streamed
from support.searches import DIRECTIONS, violations_of

TEAM = Team(2)
BLOCK = 256  # bytes: the header's 128, then 32 edges; pages of 4


@pytest.fixture(scope="module")
def small_blocks():
    """Set blocks so small that they cut rows, and pages of a few edges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", BLOCK)
        yield


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("stream")


def build(folder: Path, src, dst, options: BuildOptions) -> Store:
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    return build_store(
        open_edges(folder / "edges.parquet"),
        folder / "graph.dg",
        options,
        Executor(2),
        Resources(),
    )


def global_ids(store: Store):
    """Return (ids, global id of each), by rising id."""
    table = store.vertices(TEAM, ["vertex", "global_id"])
    return np.array(table["vertex"].to_pylist()), np.array(table["global_id"].to_pylist())


def check(store: Store, src, dst, start: int, result, max_depth=None):
    """Compare a search from the ``start``-th vertex with the definition, in global ids."""
    ids, place = global_ids(store)
    directed = store.info.directed
    u, v = place[np.searchsorted(ids, src)], place[np.searchsorted(ids, dst)]
    source = int(place[start])
    expected = reference.distances(u, v, len(ids), source, directed)
    if max_depth is not None:
        expected[expected > max_depth] = -1
    assert result.distance.tolist() == expected.tolist()
    assert not violations_of(u, v, directed, result.distance, result.parent, source, max_depth)
    assert result.supersteps.reached == np.count_nonzero(expected >= 0)
    assert result.supersteps.depth == expected.max()


@st.composite
def inputs(draw):
    """Draw (src, dst, BuildOptions) of graphs of any shape."""
    edges = draw(st.integers(1, 400))
    vertices = draw(st.integers(1, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    skew = draw(st.sampled_from([1, 3]))
    src, dst = (rng.random((2, edges)) ** skew * vertices).astype(np.int64)
    return src, dst, draw(store_options())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("threads", [slow(1), 3])
@pytest.mark.parametrize("on_disk", [True, slow(False)])
@given(inputs(), st.data())
def test_against_definition(name, threads, on_disk, folders, given_input, data):
    src, dst, options = given_input
    store = build(folders(), src, dst, options)
    start = data.draw(st.integers(0, store.info.vertices - 1))
    source = int(global_ids(store)[1][start])
    max_depth = data.draw(st.sampled_from([None, 0, 1, 2, 3]))
    graph = load_rank(store, 0, 1, TEAM, on_disk=on_disk)
    for _ in range(2):  # all blocks are read and verified the first time, single pages after
        result = stream_search(graph, source, Team(threads), max_depth, DIRECTIONS[name])
        check(store, src, dst, start, result, max_depth)


@pytest.mark.usefixtures("small_blocks")
@given(inputs(), st.data())
def test_flows_may_differ_in_direction(folders, given_input, data):
    src, dst, options = given_input
    store = build(folders(), src, dst, options)
    start = data.draw(st.integers(0, store.info.vertices - 1))
    source = int(global_ids(store)[1][start])
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    result = stream_search(
        streamed(store),
        source,
        TEAM,
        direction=lambda *_: ("push", "pull")[rng.integers(2)],
    )
    check(store, src, dst, start, result)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [slow(1), 3])
@pytest.mark.parametrize("name", mostly_slow(DIRECTIONS, "alternating"))
def test_shared_work_is_right_every_time(directed, partitions, name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 14)
    src, dst = random_edges(7, 60_000, 600_000)
    store = build(tmp_path, src, dst, BuildOptions(directed=directed, partitions=partitions))
    start = 5
    source = int(global_ids(store)[1][start])
    graph = streamed(store)
    expected = stream_search(graph, source, Team(1), direction=DIRECTIONS[name])
    check(store, src, dst, start, expected)
    for _ in range(4):
        result = stream_search(graph, source, Team(5), direction=DIRECTIONS[name])
        assert np.array_equal(result.distance, expected.distance)
        assert result.supersteps.reached == expected.supersteps.reached


def test_directions_are_recorded_by_flow(tmp_path):
    src, dst = random_edges(7, 2000, 20_000)
    names = {}
    for partitions in (1, 2):
        folder = tmp_path / str(partitions)
        folder.mkdir()
        options = BuildOptions(directed=True, partitions=partitions, threshold=20)
        store = build(folder, src, dst, options)
        graph = streamed(store)
        result = stream_search(graph, 0, TEAM, direction=DIRECTIONS["pull"])
        steps = result.supersteps
        names[partitions] = {
            name: {step["direction"][name] for step in steps} for name in steps[0]["direction"]
        }
    assert names[1] == {"all": {"pull"}}
    assert names[2].pop("nn") == {"push"}
    assert list(names[2]) == ["nd", "dn", "dd"]
    assert all("pull" in ways for ways in names[2].values())  # where any edge leaves the frontier


def test_a_path_is_read_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", BLOCK)
    vertices = np.arange(1000)
    store = build(tmp_path, vertices[:-1], vertices[1:], BuildOptions(order="none"))
    graph = streamed(store)
    rows = graph.adjacencies[0].rows
    assert isinstance(rows, RowsOnDisk)
    assert isinstance(rows.stream, edge_stream.EdgeStream)
    result = stream_search(graph, 0, TEAM, direction=DIRECTIONS["push"])
    assert result.supersteps.depth == 999
    assert rows.stream.blocks > 30
    for step in result.supersteps:
        assert step["blocks_skipped"] >= rows.stream.blocks - 2
        assert step["bytes_read"] <= 2 * BLOCK
    rerun = stream_search(graph, 0, TEAM, direction=DIRECTIONS["push"])
    pages = 2 * BLOCK // edge_stream.PAGES_A_BLOCK
    assert all(step["bytes_read"] <= pages for step in rerun.supersteps)


def test_late_pulls_skip_what_is_visited(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 12)
    src, dst = random_edges(7, 20_000, 200_000)
    store = build(tmp_path, src, dst, BuildOptions())
    result = stream_search(streamed(store), 0, TEAM, direction=DIRECTIONS["pull"])
    skipped = [step["blocks_skipped"] for step in result.supersteps]
    assert skipped == sorted(skipped)
    assert skipped[-1] > skipped[0]


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("at", [3, 128, 5000])
def test_damage_is_named_where_it_is_read(at, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 12)
    src, dst = random_edges(7, 20_000, 200_000)
    store = build(tmp_path, src, dst, BuildOptions())
    path = store.path / targets_file(0, "nn", 0)
    flip(path, at)
    graph = streamed(store)
    with pytest.raises(InputError, match=rf"{path.name}: damaged: block {at // 4096} "):
        stream_search(graph, 0, TEAM)


def test_damage_that_is_not_read_is_not_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", BLOCK)
    vertices = np.arange(1000)
    store = build(tmp_path, vertices[:-1], vertices[1:], BuildOptions(order="none"))
    flip(store.path / targets_file(0, "nn", 0), 4000)
    result = stream_search(streamed(store), 0, TEAM, 10, DIRECTIONS["push"])
    assert result.supersteps.reached == 11


def test_a_shard_that_vanishes_is_named(tmp_path):
    store = build(tmp_path, np.arange(9), np.arange(1, 10), BuildOptions())
    graph = streamed(store)
    path = store.path / targets_file(0, "nn", 0)
    path.unlink()
    with pytest.raises(InputError, match=rf"{path.name}: cannot be read"):
        stream_search(graph, 0, TEAM)


def test_wide_offsets(tmp_path):
    """Subgraphs past 2^32 edges have 64-bit offsets: the same kernels, another variant."""
    src, dst = random_edges(3, 300, 2000)
    store = build(tmp_path, src, dst, BuildOptions())
    source = int(global_ids(store)[1][1])
    for on_disk in (True, False):
        graph = load_rank(store, 0, 1, TEAM, on_disk=on_disk)
        for adjacency in graph.adjacencies:
            wide = adjacency.rows.offsets.astype(np.uint64)
            adjacency.rows = adjacency.rows._replace(offsets=wide)
        for direction in DIRECTIONS.values():
            result = stream_search(graph, source, TEAM, direction=direction)
            check(store, src, dst, 1, result)
