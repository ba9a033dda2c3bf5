"""Outcomes of searches on a GPU stay there until they are read, whatever is searched after them."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.gpu import device as gpu_device
from delegraph.kernels.gpu.device import Device, DeviceMemoryError
from delegraph.kernels.gpu.search import GpuSearch
from delegraph.kernels.gpu.slices import cut
from delegraph.pipeline.engines.one_device import found as outcomes_on_device
from delegraph.pipeline.engines.one_device.found import FoundOnDevice, Outcomes
from delegraph.pipeline.engines.one_device.search import to_device
from support.graphs import SHAPES, make_graph, random_edges
from support.marks import slow


class Searches:
    """Searches of one graph whose outcomes are checked against the definition."""

    def __init__(self, device: Device, edges, way: str) -> None:
        self.src, self.dst = (np.asarray(end, np.uint32) for end in edges)
        self.vertices = int(max(self.src.max(), self.dst.max())) + 1
        graph = make_graph(self.src, self.dst, self.vertices, False)
        self.degrees = np.diff(graph.offsets.astype(np.int64))
        on_device = to_device(graph, device, near=graph.edges)
        self.search = GpuSearch(device, on_device, narrow=way != "wide")
        if way == "narrow":
            self.search._search["narrow_levels"] = 1
        elif way == "slices":
            self.search.search_over(cut(device, on_device))
        self.outcomes = Outcomes(self.search)

    def run(self, source: int, max_depth: int | None = None) -> FoundOnDevice:
        return self.outcomes.search(source, max_depth)

    def check(self, found: FoundOnDevice, source: int, max_depth: int | None = None) -> None:
        wanted = reference.distances(self.src, self.dst, self.vertices, source, False)
        if max_depth is not None:
            wanted[wanted > max_depth] = -1
        distance, parent = found.distance[:], found.parent[:]
        assert distance.dtype == found.distance.dtype == np.int32
        assert np.array_equal(distance, wanted)
        has_parent = wanted > 0
        assert np.array_equal(wanted[parent[has_parent]] + 1, wanted[has_parent])
        steps = found.supersteps
        assert steps.reached == np.count_nonzero(wanted >= 0)
        counts = np.bincount(wanted[wanted > 0], minlength=1)[1:]
        assert [count for count in steps.found.tolist() if count] == counts[counts > 0].tolist()
        pushed = [step for step in steps if step["direction"] == {"all": "push"}]
        for step in pushed:
            leaving = self.degrees[wanted == step["level"] - 1].sum()
            assert step["edges_examined"] == leaving


WAYS = ["wide", "narrow", "slices"]


def bytes_of(found: FoundOnDevice) -> int:
    """Return the bytes that an outcome holds on its device."""
    return found._tree.device_bytes


def check_that_outcomes_stay(device: Device, shape: str, way: str) -> None:
    searches = Searches(device, SHAPES[shape], way)
    sources = [0, searches.vertices - 1, searches.vertices // 2, 1]
    kept = [searches.run(source) for source in sources]
    read_early = kept[2].distance[:]
    for found, source in zip(kept, sources, strict=True):
        assert bytes_of(found) > 0
        searches.check(found, source)
        assert bytes_of(found) == 0
    assert np.array_equal(read_early, kept[2].distance[:])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_outcomes_stay(device, shape, way):
    check_that_outcomes_stay(device, shape, way)


@pytest.mark.parametrize(
    ("shape", "way"), [("random", "wide"), slow("path", "narrow"), slow("lollipop", "slices")]
)
def test_emulated_outcomes_stay(emulated, shape, way):
    check_that_outcomes_stay(emulated[0], shape, way)


def check_that_arrays_are_used_again(device: Device) -> None:
    """Nobody reads an outcome that is let go: the next search writes to the same arrays."""
    searches = Searches(device, random_edges(5, 300, 900), "wide")
    searches.run(0)
    gc.collect()
    first = searches.search.distance.data.ptr
    found = searches.run(1)
    assert searches.search.distance.data.ptr == first
    other = searches.run(2)
    assert searches.search.distance.data.ptr != first
    searches.check(other, 2)
    searches.check(found, 1)


def test_arrays_are_used_again(device):
    check_that_arrays_are_used_again(device)


def test_emulated_arrays_are_used_again(emulated):
    check_that_arrays_are_used_again(emulated[0])


@pytest.mark.parametrize("refused", [False, True])
def test_outcomes_give_way(emulated, monkeypatch, refused):
    """Outcomes are copied to host memory when they take more than their part of the device, or
    when it has no room for another one.
    """
    device = emulated[0] if refused else replace(emulated[0], memory_bytes=1000)
    searches = Searches(device, random_edges(5, 300, 900), "wide")

    def refuse(search):
        raise DeviceMemoryError("full")

    if refused:
        monkeypatch.setattr(GpuSearch, "renew", refuse)
    kept = [searches.run(source) for source in (0, 1, 2)]
    assert [bytes_of(found) > 0 for found in kept] == [False, False, True]
    for source, found in enumerate(kept):
        searches.check(found, source)


def check_limits_and_lonely_sources(device: Device, way: str) -> None:
    """Outcomes of limited searches, and from vertices without edges, stay as they are, too."""
    src, dst = random_edges(5, 300, 900)
    searches = Searches(device, (np.r_[src, 350, 390], np.r_[dst, 350, 390]), way)
    asked = [(350, None), (0, 2), (390, None), (1, 0), (350, 3), (2, None), (340, None)]
    kept = [searches.run(*one) for one in asked]
    for found, (source, max_depth) in zip(kept, asked, strict=True):
        searches.check(found, source, max_depth)


@pytest.mark.parametrize("way", WAYS)
def test_limits_and_lonely_sources(device, way):
    check_limits_and_lonely_sources(device, way)


@pytest.mark.parametrize("way", ["wide", slow("narrow"), slow("slices")])
def test_emulated_limits_and_lonely_sources(emulated, way):
    check_limits_and_lonely_sources(emulated[0], way)


@pytest.mark.parametrize("vertices", [1, 3])
def test_emulated_outcomes_without_edges(emulated, vertices):
    """A graph whose rows are self-loops alone has outcomes like any other."""
    searches = Searches(emulated[0], (np.arange(vertices), np.arange(vertices)), "wide")
    kept = [searches.run(source) for source in range(vertices)]
    for source, found in enumerate(kept):
        searches.check(found, source)


@pytest.mark.parametrize("held", [True, False])
def test_a_search_that_needs_the_room(emulated, monkeypatch, held):
    """A search for which the device has too little memory runs again when outcomes have moved to
    host memory, and fails if there are none.
    """
    searches = Searches(emulated[0], random_edges(5, 300, 900), "wide")
    found = searches.run(0)
    if not held:
        searches.check(found, 0)
    run, refused = GpuSearch.run, []

    def refuse_once(search, source, max_level=None):
        if not refused:
            refused.append(source)
            raise DeviceMemoryError("full")
        run(search, source, max_level)

    monkeypatch.setattr(GpuSearch, "run", refuse_once)
    if held:
        searches.check(searches.run(1), 1)
        assert bytes_of(found) == 0
    else:
        with pytest.raises(DeviceMemoryError):
            searches.run(1)
    searches.check(found, 0)


def check_reading_beside_searches(device: Device, way: str) -> None:
    """Threads read outcomes while later searches run."""
    searches = Searches(device, random_edges(5, 3000, 9000), way)
    with ThreadPoolExecutor(4) as readers:
        checks = [
            readers.submit(searches.check, searches.run(source), source) for source in range(40)
        ]
    for checked in checks:
        checked.result()


@pytest.mark.parametrize("way", WAYS)
def test_reading_beside_searches(device, way):
    check_reading_beside_searches(device, way)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_emulated_reading_beside_searches(emulated, way):
    check_reading_beside_searches(emulated[0], way)


@pytest.fixture
def edges(tmp_path):
    src, dst = random_edges(7, 400, 1200)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


def tree_of(result: delegraph.Result) -> Any:
    """Return the distances and parents that a result holds."""
    values: Any = result._answer.columns[0].values
    return values._tree


def check_that_results_outlive_the_graph(edges, program: bool) -> None:
    with delegraph.open(edges, device="cpu") as graph:
        wanted = [graph.bfs(source).table for source in (1, 2)]
    with delegraph.open(edges, device="cuda") as graph:
        assert graph.device.startswith("cuda:0")
        results = [graph.bfs(source) for source in (1, 2)]
        trees = [tree_of(result) for result in results]
        assert all(tree.device_bytes for tree in trees)
        if program:
            graph.pagerank()  # results leave the device before a program takes its room
            assert not any(tree.device_bytes for tree in trees)
        engine: Any = graph._engine
        search = weakref.ref(engine.gpu)
        del engine
    assert not any(tree.device_bytes for tree in trees)
    assert search() is None  # results keep no graph
    for result, table in zip(results, wanted, strict=True):
        assert result["distance"].equals(table["distance"])
        assert result.depth == max(table["distance"].drop_null().to_pylist())
        assert len(result.supersteps) >= result.depth


@pytest.mark.parametrize("program", [False, True])
def test_results_outlive_the_graph(device, edges, program):
    check_that_results_outlive_the_graph(edges, program)


@pytest.mark.parametrize("program", [slow(False), slow(True)])
def test_emulated_results_outlive_the_graph(emulated, edges, program):
    check_that_results_outlive_the_graph(edges, program)


@pytest.mark.slow
def test_a_graph_is_closed_although_results_cannot_be_copied(emulated, edges, monkeypatch):
    def fail(tree):
        raise DeviceMemoryError("full")

    graph = delegraph.open(edges, device="cuda")
    result = graph.bfs(1)
    monkeypatch.setattr(outcomes_on_device.Tree, "fetch_all", fail)
    with pytest.raises(delegraph.DelegraphError):
        graph.close()
    assert repr(graph).endswith("closed>")
    assert result.name == "bfs"


def check_columns_on_the_device(edges, sources) -> None:
    """Columns on the device have a result's order, whether or not they were read before."""
    with delegraph.open(edges, device="cuda") as graph:
        ids = np.array(graph.vertices.to_pylist())
        for source in sources:
            for read_before in (False, True):
                result = graph.bfs(source)
                table = result.table if read_before else None
                distance, row = (result.on_device(name).get() for name in ("distance", "parent"))
                table = table or result.table
                assert (distance.dtype, row.dtype) == (np.int32, np.int64)
                assert [None if one < 0 else one for one in distance.tolist()] == table[
                    "distance"
                ].to_pylist()
                parents = [None if one < 0 else ids[one].item() for one in row.tolist()]
                assert parents == table["parent"].to_pylist()
                for name in ("parent", "distance", "vertex"):  # each alone, of a new result
                    alone = graph.bfs(source)
                    column = alone[name]
                    assert column.equals(alone.table[name])


ISLANDS = [2, 300, 30]  # a path of more levels than a byte holds among them


@pytest.mark.parametrize("deep", [False, True])
def test_columns_on_the_device(device, edges, tmp_path, deep):
    check_columns_on_the_device(islands(tmp_path, ISLANDS) if deep else edges, [2, 3, 5])


@pytest.mark.slow
@pytest.mark.parametrize("deep", [False, True])
def test_emulated_columns_on_the_device(emulated, edges, tmp_path, deep):
    check_columns_on_the_device(islands(tmp_path, ISLANDS) if deep else edges, [2, 3, 5])


@pytest.mark.slow
def test_columns_that_are_not_on_a_device(emulated, edges):
    with delegraph.open(edges, device="cpu") as graph:
        found = graph.bfs(1)
    with pytest.raises(delegraph.InputError, match="of bfs is in host memory: take it from"):
        found.on_device("distance")
    with delegraph.open(edges, device="cuda") as graph:
        with pytest.raises(delegraph.InputError, match="bfs has no column 'vertex'"):
            graph.bfs(1).on_device("vertex")
        with pytest.raises(delegraph.InputError, match="in host memory"):
            graph.components().on_device("component")


def check_distances_of_many_sources_stay(edges) -> None:
    """Distances from many sources stay on the device until they are read, or something else needs
    the room.
    """
    sources = list(range(0, 60, 2))
    with delegraph.open(edges, device="cpu") as graph:
        wanted = graph.bfs(sources=sources).table
    with delegraph.open(edges, device="cuda") as graph:
        first = graph.bfs(sources=sources)
        there = {values for values in outcomes_on_device._values if values.is_on_device}
        assert there
        second = graph.bfs(sources=sources)
        assert not any(values.is_on_device for values in there)
        assert any(values.is_on_device for values in outcomes_on_device._values)
        assert len(first) == len(wanted)
        assert first.record["searches"]["reached"] == len(wanted)
    assert first.table.equals(wanted)
    assert second.table.equals(wanted)
    assert second.table is second.table
    assert not any(values.is_on_device for values in outcomes_on_device._values)


@pytest.mark.parametrize("apart", [False, True])
def test_distances_of_many_sources_stay(device, edges, tmp_path, apart):
    check_distances_of_many_sources_stay(islands(tmp_path, [200] * 9) if apart else edges)


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_emulated_distances_of_many_sources_stay(emulated, edges, tmp_path, apart):
    check_distances_of_many_sources_stay(islands(tmp_path, [200] * 9) if apart else edges)


def compiled_since_open(edges, count) -> int:
    """Search from every vertex of an open graph, read all, and count what was compiled."""
    with delegraph.open(edges, device="cuda") as graph:
        opened = count()
        for source in graph.vertices.to_pylist():
            result = graph.bfs(source)
            assert result.record["search"]["reached"] == result.reached
            assert len(result.table) == len(graph)
            for column in ("distance", "parent"):
                assert len(result.on_device(column)) == len(graph)
    return count() - opened


def islands(folder, sizes):
    """Write a graph that has a path of each size."""
    first = np.cumsum([0, *sizes[:-1]])
    src = np.concatenate(
        [begin + np.arange(size - 1) for begin, size in zip(first, sizes, strict=True)]
    )
    pq.write_table(pa.table({"src": src, "dst": src + 1}), folder / "islands.parquet")
    return folder / "islands.parquet"


@pytest.mark.slow
def test_no_kernel_is_compiled_after_open_emulated(emulated, tmp_path):
    compiled = gpu_device._compile.cache_info
    edges = islands(tmp_path, [2, 3, 5, 40])
    assert compiled_since_open(edges, lambda: compiled().misses) == 0


@pytest.mark.parametrize("sizes", [[2, 3, 5, 9, 33], [2, 300, 30]])
def test_no_kernel_is_compiled_after_open(device, tmp_path, monkeypatch, sizes):
    """Searches from components of all sizes, and reading them, neither compile a kernel nor load
    one: kernels of CuPy's functions included.
    """
    from cupy.cuda import compiler  # pyright: ignore[reportMissingImports]

    load, loaded = compiler._compile_module_with_cache, []

    def counted(source, *arguments, **options):
        loaded.append(source[-200:])
        return load(source, *arguments, **options)

    monkeypatch.setattr(compiler, "_compile_module_with_cache", counted)
    assert compiled_since_open(islands(tmp_path, sizes), lambda: len(loaded)) == 0, loaded
