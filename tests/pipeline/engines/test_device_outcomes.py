"""Outcomes of searches on a GPU stay there until they are read, whatever is searched after them."""

from __future__ import annotations

import gc
from dataclasses import replace

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

    def run(self, source: int) -> FoundOnDevice:
        self.outcomes.make_way()
        self.search.run(source)
        return self.outcomes.add()

    def check(self, found: FoundOnDevice, source: int) -> None:
        wanted = reference.distances(self.src, self.dst, self.vertices, source, False)
        distance, parent = found.distance[:], found.parent[:]
        assert distance.dtype == found.distance.dtype == np.int32
        assert np.array_equal(distance, wanted)
        has_parent = wanted > 0
        assert np.array_equal(wanted[parent[has_parent]] + 1, wanted[has_parent])
        steps = found.supersteps
        assert steps.reached == np.count_nonzero(wanted >= 0)
        assert steps.depth == wanted.max()
        pushed = [step for step in steps if step["direction"] == {"all": "push"}]
        for step in pushed:
            leaving = self.degrees[wanted == step["level"] - 1].sum()
            assert step["edges_examined"] == leaving


WAYS = ["wide", "narrow", "slices"]


def check_that_outcomes_stay(device: Device, shape: str, way: str) -> None:
    searches = Searches(device, SHAPES[shape], way)
    sources = [0, searches.vertices - 1, searches.vertices // 2, 1]
    kept = [searches.run(source) for source in sources]
    read_early = kept[2].distance[:]
    for found, source in zip(kept, sources, strict=True):
        assert found.device_bytes > 0
        searches.check(found, source)
        assert found.device_bytes == 0
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
    assert [found.device_bytes > 0 for found in kept] == [False, False, True]
    for source, found in enumerate(kept):
        searches.check(found, source)


@pytest.fixture
def edges(tmp_path):
    src, dst = random_edges(7, 400, 1200)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    return tmp_path / "edges.parquet"


def check_that_results_outlive_the_graph(edges) -> None:
    with delegraph.open(edges, device="cpu") as graph:
        wanted = [graph.bfs(source).table for source in (1, 2)]
    with delegraph.open(edges, device="cuda") as graph:
        assert graph.device.startswith("cuda:0")
        results = [graph.bfs(source) for source in (1, 2)]
        ranks = graph.pagerank()  # results leave the device before a program takes its room
    for result, table in zip(results, wanted, strict=True):
        assert result["distance"].equals(table["distance"])
        assert result.depth == max(table["distance"].drop_null().to_pylist())
        assert len(result.supersteps) >= result.depth
    assert abs(sum(ranks["pagerank"].to_pylist()) - 1) < 1e-9


def test_results_outlive_the_graph(device, edges):
    check_that_results_outlive_the_graph(edges)


@pytest.mark.slow
def test_emulated_results_outlive_the_graph(emulated, edges):
    check_that_results_outlive_the_graph(edges)


def compiled_since_open(edges, count) -> int:
    """Search from every vertex of an open graph, read all, and count what was compiled."""
    with delegraph.open(edges, device="cuda") as graph:
        opened = count()
        for source in graph.vertices.to_pylist():
            result = graph.bfs(source)
            assert result.record["search"]["reached"] == result.reached
            assert len(result.table) == len(graph)
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
