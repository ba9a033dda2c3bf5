"""The store against its definition: every edge once, where Algorithm 1 puts it, hub first."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.kernels.prepare import csr
from delegraph.partition.dictionary import on_disk as dictionary
from delegraph.partition.input import ids as encoding
from delegraph.partition.input.edges import open_edges
from delegraph.partition.store import layout
from delegraph.partition.store import shards as tasks
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.order import VertexOrder, choose_threshold
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.build import plan, prepare
from delegraph.pipeline.build.build import build_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.run.resources import Resources
from support.graphs import random_edges, store_options
from support.kernels import callable_from_python
from support.marks import slow
from support.outputs import digest

RANGE_OF = callable_from_python(csr.range_of)

TEAM = Team(2)


@st.composite
def inputs(draw):
    """Draw (src, dst, BuildOptions) for ids with gaps, loops and duplicates."""
    edges = draw(st.integers(1, 300))
    vertices = draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    src, dst = (rng.random((2, edges)) ** 3 * vertices).astype(np.int64) * draw(
        st.sampled_from([1, 3])
    )
    return src, dst, draw(store_options())


def build(folder: Path, src, dst, options: BuildOptions, threads=2, scratch=False) -> Store:
    path = folder / "edges.parquet"
    if not path.exists():
        pq.write_table(pa.table({"src": src, "dst": dst}), path)
    resources = Resources(scratch=str(folder) if scratch else None)
    return build_store(open_edges(path), folder / "graph.dg", options, Executor(threads), resources)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("build")


def definition(src, dst, options: BuildOptions):
    """Return (ids, degree by place, global id by place, wanted set of (global, global) pairs)."""
    ids = np.unique(np.concatenate([src, dst]))
    u, v = np.searchsorted(ids, src), np.searchsorted(ids, dst)
    no_loop = u != v
    degree = np.bincount(np.concatenate([u[no_loop], v[no_loop]]), minlength=len(ids))
    position = np.empty(len(ids), np.int64)
    position[reference.degree_order(degree)] = np.arange(len(ids))
    pairs = {(a, b) for a, b in zip(u[no_loop].tolist(), v[no_loop].tolist(), strict=True)}
    if not options.directed:
        pairs |= {(b, a) for a, b in pairs}
    return ids, degree, position, pairs


@given(inputs(), st.booleans())
def test_store_against_definition(folders, given_input, scratch):
    src, dst, options = given_input
    store = build(folders(), src, dst, options, scratch=scratch)
    ids, degree, position, pairs = definition(src, dst, options)
    info = store.info

    table = store.vertices(TEAM, ["vertex", "global_id", "degree"])
    assert table["vertex"].to_pylist() == ids.tolist()
    assert table["degree"].to_pylist() == degree.tolist()
    global_id = np.array(table["global_id"].to_pylist())
    assert sorted(global_id) == list(range(len(ids)))
    if options.order == "degree":
        assert global_id.tolist() == position.tolist()
    elif options.order == "none":
        assert global_id.tolist() == list(range(len(ids)))

    place = np.argsort(global_id)  # of each global id
    stored = [
        (int(u), int(v))
        for sources, targets in store.edge_batches(TEAM)
        for u, v in zip(sources, targets, strict=True)
    ]
    assert len(stored) == len(set(stored))
    assert {(int(place[u]), int(place[v])) for u, v in stored} == pairs
    assert info.edges == (len(pairs) if options.directed else len(pairs) // 2)
    assert info.self_loops == np.count_nonzero(src == dst)
    assert info.rows == len(src) == info.edges + info.self_loops + info.duplicates
    assert sum(info.degree_histogram) == info.vertices == len(ids)

    _check_places(store, degree[place], position[place], set(stored))
    _check_graph(store, pairs, place, position)


def _check_places(store: Store, degree, position, edges):
    """Check the places of edges by Algorithm 1, or by a grid's rule; degree and position by global
    id, edges as pairs of global ids.
    """
    parts = store.info.partitions
    if store.info.grid is not None:
        assert store.info.grid.partitions == parts
        assert store.info.delegates == 0
        _check_grid(store, store.info.grid, position, edges)
        return
    threshold = store.info.threshold
    delegates = store.delegates(TEAM)
    assert delegates.tolist() == np.argsort(position)[: len(delegates)].tolist()
    assert set(delegates.tolist()) == set(np.flatnonzero(degree > threshold).tolist())
    names = layout.kept_subgraphs(None, store.info.directed)
    for p in range(parts):
        forward = {}
        for name in names:
            offsets, targets = store.subgraph(p, name, TEAM)
            ends = name[-2:][::-1] if name.startswith("reverse-") else name
            rows = delegates if ends[0] == "d" else np.arange(p, len(degree), parts)
            assert len(offsets) == len(rows) + 1
            pairs = set()
            for row, u in enumerate(rows):
                row_targets = targets[offsets[row] : offsets[row + 1]]
                if ends[1] == "d":
                    vs = delegates[row_targets]
                else:
                    vs = row_targets if name == "nn" else row_targets.astype(int) * parts + p
                assert position[vs].tolist() == sorted(position[vs]), "hub first"
                pairs |= {(int(u), int(v)) for v in vs}
            if name.startswith("reverse-"):
                assert pairs == {(v, u) for u, v in forward[name[-2:]]}
                continue
            forward[name] = pairs
            for u, v in pairs:
                kinds = ["d" if degree[end] > threshold else "n" for end in (u, v)]
                assert name == "".join(kinds)
                if degree[u] <= threshold:
                    owner = u % parts
                elif degree[v] <= threshold:
                    owner = v % parts
                elif degree[u] != degree[v]:
                    owner = (u if degree[u] < degree[v] else v) % parts
                else:
                    owner = min(u, v) % parts
                assert owner == p


def _check_grid(store: Store, grid: Grid, position, edges):
    """Check that an edge is in the column of its source and the row of its target, both counted
    from 0.
    """
    n = store.info.vertices
    of_partition = np.arange(n) % grid.partitions
    row_of, column_of = of_partition // grid.columns, of_partition % grid.columns
    for name in layout.kept_subgraphs(grid, store.info.directed):
        pairs = []
        for p in range(grid.partitions):
            sources = np.flatnonzero(column_of == p % grid.columns)
            targets = np.flatnonzero(row_of == p // grid.columns)
            assert len(targets) == grid.row_vertices(n, p // grid.columns)
            offsets, places = store.subgraph(p, name, TEAM)
            for u, (first, last) in zip(sources, pairwise(offsets.tolist()), strict=True):
                ends = targets[places[first:last]]
                assert position[ends].tolist() == sorted(position[ends]), "hub first"
                pairs += [(int(u), int(v)) for v in ends]
        assert len(pairs) == len(edges)
        assert set(pairs) == (edges if name == "nn" else {(v, u) for u, v in edges})


def _check_graph(store: Store, pairs, place, position):
    """Check the merged graph: one CSR in global ids, hub first, with its transpose if directed."""
    graph = store.graph(TEAM)
    for offsets, targets, wanted in (
        (graph.offsets, graph.targets, pairs),
        (graph.reverse_offsets, graph.reverse_targets, {(v, u) for u, v in pairs}),
    ):
        rows = [targets[offsets[u] : offsets[u + 1]] for u in range(len(place))]
        assert {(int(place[u]), int(place[v])) for u, row in enumerate(rows) for v in row} == wanted
        assert len(targets) == len(wanted)
        for row in rows:
            positions = position[place[row]].tolist()
            assert positions == sorted(positions)


@pytest.mark.parametrize(
    "options",
    [
        slow(BuildOptions()),
        BuildOptions(partitions=3, threshold=20),
        slow(BuildOptions(partitions=4, directed=True, order="random")),
        BuildOptions(directed=True, layout="2d", grid=Grid(2, 3)),
        slow(BuildOptions(partitions=3, order="random", layout="1d")),
    ],
    ids=["one", "three", "four-directed", "2d-directed", "1d"],
)
@pytest.mark.parametrize("ids", [slow("dense"), "sparse", slow("strings")])
def test_same_bytes_however_it_is_cut(folders, monkeypatch, options, ids):
    """A build has the same bytes in memory and through files, for any threads, chunks, blocks,
    spans and fetches.
    """
    src, dst = random_edges(1, 3000, 40_000)
    if ids == "sparse":
        src, dst = src * -9_876_543_210 + 7, dst * -9_876_543_210 + 7
    elif ids == "strings":
        src, dst = (np.char.add("v", column.astype(str)) for column in (src, dst))
    digests = set()
    for threads, chunk, rows, spans, fetch, scratch in (
        (1, 1 << 20, 1 << 20, 1, 1 << 21, False),
        (3, 5000, 1 << 20, 1, 2000, False),
        (2, 1000, 777, 1, 1 << 21, True),
        (1, 1 << 20, 1 << 20, 5, 500, True),
        (2, 1 << 20, 10_000, 3, 20_000, True),
    ):
        shape = plan.Shape(spans, rows)
        monkeypatch.setattr(plan, "_shapes", lambda facts, shape=shape: iter([shape]))
        monkeypatch.setattr(tasks, "GATHER_EDGES", fetch)
        monkeypatch.setattr(encoding, "ENCODE_ROWS", rows)
        monkeypatch.setattr(dictionary, "RANGE_BYTES", 40 * fetch)
        monkeypatch.setattr(prepare, "TASK_ROWS", chunk)
        folder = folders()
        path = folder / "edges.parquet"
        # Row groups stay the same: they are part of the input. Chunks are made of them.
        pq.write_table(pa.table({"src": src, "dst": dst}), path, row_group_size=1000)
        edges = open_edges(path)
        chunks = edges.chunks(chunk)
        monkeypatch.setattr(type(edges), "chunks", lambda self, chunks=chunks: chunks)
        resources = Resources(scratch=str(folder) if scratch else None)
        build_store(edges, folder / "graph.dg", options, Executor(threads), resources)
        monkeypatch.undo()
        digests.add(digest(folder / "graph.dg"))
        assert {entry.name for entry in folder.iterdir()} == {"edges.parquet", "graph.dg"}
    assert len(digests) == 1


def test_default_partitions_grow_with_rows_alone():
    assert layout.default_partitions(layout.ROWS_IN_ONE_PARTITION) == 1
    assert layout.default_partitions(5 * layout.ROWS_IN_ONE_PARTITION) == 8


@given(st.lists(st.integers(0, 50), max_size=200), st.integers(1, 60), st.integers(1, 30))
def test_ranges_cover_rows(edges_by_row, most_edges, most_rows):
    edges = np.array(edges_by_row, np.uint32)
    values, firsts = [], []  # the same rows as runs of equal ones
    for i, value in enumerate(edges_by_row):
        if not values or values[-1] != value:
            values.append(value)
            firsts.append(i)
    repeats = np.diff([*firsts, len(edges)]).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "RANGE_EDGES", most_edges)
        patch.setattr(layout, "RANGE_ROWS", most_rows)
        ranges = layout.cut_ranges(edges)
        again = layout.cut_ranges(np.array(values, np.uint32), repeats)
    assert again.starts.tolist() == ranges.starts.tolist()
    assert again.edges.tolist() == ranges.edges.tolist()
    assert ranges.starts[0] == 0
    assert ranges.starts[-1] == len(edges)
    for i, (start, stop) in enumerate(pairwise(ranges.starts.tolist())):
        assert 0 < stop - start <= most_rows
        assert ranges.edges[i] == edges[start:stop].sum()
        assert ranges.edges[i] <= most_edges or stop - start == 1
    for row in range(len(edges)):
        within = RANGE_OF(row, ranges.table, ranges.shift, ranges.starts)
        assert ranges.starts[within] <= row < ranges.starts[within + 1]


@given(st.data())
def test_threshold_is_within_the_bounds_of_the_paper(data):
    src, dst = random_edges(data.draw(st.integers(0, 99)), 60, 400)
    _, counts = np.unique(np.concatenate([src, dst]), return_counts=True)
    by_vertex = dict(zip(np.unique(np.concatenate([src, dst])), counts, strict=True))
    degree = np.sort(counts)[::-1].astype(np.uint32)
    partitions = data.draw(st.sampled_from([2, 8, 40, 200]))
    higher = [max(by_vertex[u], by_vertex[v]) for u, v in zip(src, dst, strict=True)]
    values, times = np.unique(degree, return_counts=True)
    distinct = values[::-1]
    order = VertexOrder(distinct, times[::-1])
    rows_by_class = np.array([higher.count(value) for value in distinct])

    share = data.draw(st.sampled_from([0.001, 0.01, 0.1]))
    chosen = choose_threshold(order, rows_by_class, partitions, None, share)
    nn = {t: sum(h <= t for h in higher) / len(higher) for t in range(degree.max() + 1)}
    delegates = {t: int(np.count_nonzero(degree > t)) for t in nn}
    most = 4 * len(degree) / partitions
    within = [t for t in nn if nn[t] <= share and t in {0, *distinct.tolist()}]
    if chosen.chosen_by == "nn":
        assert chosen.value == max(within)
        assert chosen.delegates <= most
    else:
        assert chosen.chosen_by == "delegates"
        assert delegates[max(within)] > most
        assert chosen.value == min(t for t in delegates if delegates[t] <= most)
    assert chosen.delegates == delegates[chosen.value]
    assert chosen.nn_share == pytest.approx(nn[chosen.value])


def test_many_edges_of_one_vertex_spread_over_ranges(folders):
    """A hub's many edges are a range of their own, and a build with the other rows in shared ranges
    is right.
    """
    hub = np.zeros(50_000, np.int64)
    store = build(folders(), hub, np.arange(1, 50_001), BuildOptions(partitions=4, threshold=10))
    assert store.info.delegates == 1
    assert store.info.subgraph_edges == {"nn": 0, "nd": 50_000, "dn": 50_000, "dd": 0}
    assert open_store(store.path).graph(TEAM).edges == 100_000
