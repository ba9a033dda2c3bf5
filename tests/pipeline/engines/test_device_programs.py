"""Programs on a GPU against their definitions: every shape, type of weights and tier."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import delegraph
from delegraph.kernels import reference
from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.gpu.device import Device, DeviceMemoryError, pack
from delegraph.kernels.gpu.graph import Rows
from delegraph.kernels.gpu_programs import betweenness as on_device
from delegraph.kernels.gpu_programs import locality, shortest_paths, tiles
from delegraph.kernels.gpu_programs import rows as cut_rows
from delegraph.kernels.gpu_programs import searches as on_device_searches
from delegraph.kernels.gpu_programs.rows import Cuts, ProgramGraph
from delegraph.kernels.gpu_programs.tiles import Tiling
from delegraph.kernels.programs.paths import MOST_PATHS
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.algorithms.bfs_each import DistanceBits, width
from delegraph.pipeline.algorithms.bfs_together import NearestSourceProgram
from delegraph.pipeline.algorithms.components import ComponentsProgram
from delegraph.pipeline.algorithms.many_sources import DistanceSumsProgram
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations.program import DeviceProgram, ProgramResult
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.device_runs import ProgramRun, engine_of, run
from support.graphs import SHAPES, SMALL, edges_of, graphs
from support.many_paths import layers, layers_beside_a_path
from support.marks import drawn, mostly_slow, nightly, slow
from support.paths import WEIGHTS as PATH_WEIGHTS
from support.paths import check_paths, entries_of, program_of
from support.programs import stored
from support.searches import check_distances, check_nearest, check_sums
from support.standing import standing

Stores = Callable[..., Store]

WEIGHTS = {
    "floats": lambda rng, m: rng.random(m).astype(np.float32),
    "integers": lambda rng, m: rng.integers(0, 5, m),
    "none": lambda rng, m: None,
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Stores:
    """Return a function that builds the store of a shape, once for each choice of arguments."""

    @cache
    def store_of(shape: str, directed: bool, weights: str = "none", partitions: int = 1) -> Store:
        src, dst = SHAPES[shape]
        weight = WEIGHTS[weights](np.random.default_rng(1), len(src))
        options = BuildOptions(directed=directed, partitions=partitions)
        return stored(tmp_path_factory.mktemp("store"), src, dst, options, weight)

    return store_of


def run_cut_off(
    store: Store, program: DeviceProgram, device: Device, folder: Path, step: int = 1
) -> ProgramRun:
    """Run a program that is cut off after its second step; return the result of resuming from the
    first step.
    """
    loaded: list[int] = []

    def checkpoint() -> Checkpoint:
        return Checkpoint(folder / "saved", 0.0, "this", loaded=loaded.append)

    engine = engine_of(store, program, device)
    engine.load()

    def tell(done: int, *_: Any) -> None:
        if done > step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(checkpoint(), tell)
    result = run(store, program, device, checkpoint())
    assert loaded == [step]
    return result


def walk(store: Store, weights: Any = None, most: int = 12, **more: Any) -> PageRankProgram:
    options = {"tolerance": None, "dangling": "even", "teleport": None} | more
    return PageRankProgram(store.info.vertices, 0.85, most=most, weights=weights, **options)


def check_components(store: Store, device: Device) -> None:
    u, v = edges_of(store)
    result = run(store, ComponentsProgram(), device)
    wanted = reference.components(u, v, store.info.vertices)
    assert (result.values == wanted).all()
    assert result.record["edges"] == sum(store.info.subgraph_edges.values())


def check_walk(store: Store, device: Device, **options: Any) -> str:
    n, to, close = store.info.vertices, None, 1e-6 if options.get("single") else 1e-12
    if options.pop("personal", False):
        places = np.arange(0, n, 3, dtype=np.uint32)
        options["teleport"] = places, np.full(len(places), 1 / len(places))
        to = np.zeros(n)
        to[places] = 1 / len(places)
    kind, weight = None, None
    if store.info.weights is not None:
        kind = store.info.weights.kind
        u, v, weight = entries_of(store)
    else:
        u, v = edges_of(store)
    program = walk(store, kind, **options)
    result = run(store, program, device)
    wanted = reference.pagerank(u, v, n, 0.85, program.most, to, program.dangling == "even", weight)
    np.testing.assert_allclose(result.values, wanted, rtol=close, atol=1e-300)
    assert len(result.record["iterations"]) == program.most
    rerun = run(store, program, device)
    assert np.array_equal(rerun.values, result.values)  # to the last bit
    return result.method


@pytest.mark.parametrize("turn", [None, 4, 1024])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_components(device, stores, monkeypatch, shape, directed, turn):
    _cut_by(monkeypatch, turn)
    for _ in range(3):
        check_components(stores(shape, directed), device)


@pytest.mark.parametrize("turn", [None, 4, 1024])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_pagerank(device, stores, monkeypatch, shape, directed, turn):
    _cut_by(monkeypatch, turn)
    check_walk(stores(shape, directed), device)
    check_walk(stores(shape, directed), device, dangling="none", personal=True)
    check_walk(stores(shape, directed), device, single=True)


@pytest.mark.parametrize("weights", ["floats", "integers"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_weighted_pagerank(device, stores, shape, directed, weights):
    check_walk(stores(shape, directed, weights), device)
    check_walk(stores(shape, directed, weights), device, dangling="none", single=True)


STANDS = {
    "columns": lambda n: Cuts(n, -(-n // 8), 3),
    "some rows in columns": lambda n: Cuts(n // 2, -(-n // 4), 2),
    "tiles": lambda n: Tiling(-(-n // 64), 6, 1, 31),
    "tiles and columns": lambda n: Tiling(2, 2, max(1, -(-(n - 8) // 16)), 4),
    "a tile": lambda n: Tiling(1, 14, 1, 31),
}


@pytest.mark.parametrize("turn", [None, 4])
@pytest.mark.parametrize("stands", STANDS)
@pytest.mark.parametrize("weights", ["none", "floats"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", ["hubs", "star", "two components"])
def test_where_entries_stand(device, stores, monkeypatch, shape, directed, weights, stands, turn):
    _cut_by(monkeypatch, turn)
    layouts = standing(monkeypatch, lambda rows, n: STANDS[stands](n))
    store = stores(shape, directed, weights)
    check_walk(store, device)
    check_walk(store, device, single=True)
    check_walk(store, device, dangling="none", personal=True)
    assert layouts == [True] * 6  # each is run twice


def graph_of(store: Store, device: Device) -> ProgramGraph:
    engine = engine_of(store, walk(store), device)
    engine.load()
    assert engine.graph is not None
    return engine.graph


def test_columns_and_tiles_are_of_rows_that_rise(device, tmp_path):
    """Columns and tiles are made for rows in order of degree; rows of a graph in any other order
    stay as they are.
    """
    src, dst = SHAPES["hubs"]
    for order in ("degree", "random"):
        (tmp_path / order).mkdir()
        store = stored(tmp_path / order, src, dst, BuildOptions(order=order))
        cut, n = graph_of(store, device).cut, store.info.vertices
        rise = order == "degree"
        assert (cut_rows.in_columns(device, cut, STANDS["columns"](n)) is not None) == rise
        tiling = STANDS["tiles and columns"](n)
        assert (tiles.tile_rows(device, cut, n, tiling, None, 1 << 30) is not None) == rise


TILINGS = [Tiling(3, 10, 20, 8), Tiling(1, 13, 1, 31), Tiling(32, 8, 1, 31)]
LENGTHS = [range(1, 1025), [1024] * 3 + [1, 0, 700, 3] * 50, [5000, 1]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=["all", "mixed", "a long one"])
@pytest.mark.parametrize("tiling", TILINGS)
def test_tiles_have_every_entry_once(device, lengths, tiling):
    """Tiles hold each entry once, in the segment of its row, and nothing else, with fewer rows than
    vertices.
    """
    rng, n = np.random.default_rng(len(lengths)), 1 << 13
    rows = [np.sort(rng.choice(n, length, replace=False)) for length in lengths]
    offsets = np.cumsum([0, *map(len, rows), *[0] * 70], dtype=np.uint32)
    targets = np.concatenate(rows).astype(np.uint32)
    with device.use() as cupy:
        cut = cut_rows.cut(device, Rows(cupy.asarray(offsets), cupy.asarray(targets)))
        weights = cupy.arange(len(targets), dtype=np.uint32)
        tiled = tiles.tile_rows(device, cut, n, tiling, weights, 1 << 30)
    assert tiled is not None
    entries = _entries_of(tiled, n)
    owner = np.repeat(np.arange(cut.count), np.diff(offsets.astype(np.int64)))
    expected = np.stack([owner, targets, np.arange(len(targets))], axis=1)
    np.testing.assert_array_equal(entries[np.argsort(entries[:, 2])], expected)
    assert tiled.weights is not None
    data = (
        tiled.near,
        tiled.far,
        tiled.pieces,
        tiled.sums,
        tiled.weights,
        tiled.groups,
        tiled.groups,
    )
    needed = sum(array.nbytes for array in data)
    assert tiles.tile_rows(device, cut, n, tiling, weights, needed) is not None
    assert tiles.tile_rows(device, cut, n, tiling, weights, needed - 1) is None


def test_bands_cost_the_same(device, monkeypatch):
    """Bands cost the same, also where every second turn has a row: even turns first, then odd
    ones.
    """
    _cut_by(monkeypatch, 64)
    monkeypatch.setattr(tiles, "_WEIGHED", 128)
    long, short, bands = 95, 31, 8
    lengths = np.tile([long, short], 4096)
    lengths[4096] += 64  # from here on turns begin one later
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    targets = np.concatenate([np.arange(length) for length in lengths]).astype(np.uint32)
    tiling = Tiling(1, 13, 1, 31)
    with device.use() as cupy:
        cut = cut_rows.cut(device, Rows(cupy.asarray(offsets), cupy.asarray(targets)))
        args = cut.packed(), pack(tiles.TILING, **tiling._asdict())
        units = cut.parts + len(cut.turn_rows) - 1
        first = tiles._cut_bands(device, "u32", args, units, bands).get()
        costs = cupy.empty(units, np.uint32)
        device.launch(tiles._SOURCE, "weigh_units<u32>", 32 * units, (*args, np.uint32(1), costs))
        each = np.add.reduceat(costs.get().astype(np.int64), first[:-1])
    assert len(each) == bands
    assert each.max() < 1.2 * each.mean()


def _entries_of(tiled: tiles.TiledRows, n: int) -> np.ndarray:
    """Return the (row, target, weight) of each entry, in any order."""
    groups = tiled.groups.get().view(tiles.GROUP).reshape(tiled.bands, tiled.tiling.cells, -1)
    near, far, pieces = tiled.near.get(), tiled.far.get(), tiled.pieces.get()
    assert tiled.weights is not None
    weights, whole = tiled.weights.get(), tiled.whole
    parts = np.repeat(whole.long_rows.get(), np.diff(whole.first_parts.get().astype(np.int64)))
    row_of = np.concatenate([parts, np.arange(n)])
    entries = []
    for (_, cell, length), group in np.ndenumerate(groups):
        width = int(tiles._WIDTH[length])
        each, is_tile = int(tiles._LONGEST[length]) // width, cell < tiled.tiling.tiles
        for chunk in range(group["chunks"]):
            for lane, i in itertools.product(range(32), range(each)):
                within = lane if each == 1 else 32 * (i - i % 2) + 2 * lane + i % 2
                at = int(group["entries"]) + 32 * each * chunk + within
                piece = pieces[int(group["segments"]) + chunk * (32 // width) + lane // width]
                entry = (near if is_tile else far)[at]
                if entry == (1 << tiled.tiling.shift if is_tile else 0xFFFFFFFF):
                    continue
                target = (cell << tiled.tiling.shift) + int(entry) if is_tile else int(entry)
                assert is_tile or target >= tiled.tiling.tiles << tiled.tiling.shift
                weight = weights[at + (0 if is_tile else len(near))]
                entries.append((row_of[piece], target, weight))
    return np.array(entries, np.int64)


def test_the_way_that_reads_least(device, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 400, (2, 20_000))
    even = stored(tmp_path, src, dst, BuildOptions())
    (tmp_path / "hubs").mkdir()
    hubs = stored(tmp_path / "hubs", src, dst // 8, BuildOptions())

    def choose(store: Store, cached: int) -> Cuts | Tiling | None:
        """Choose cuts for a device with a cache for ``cached`` targets, tiles of 32, and 100 blocks
        that hold one.
        """
        facts = {
            "cache_bytes": 3 * 8 * cached,
            "shared_bytes": 2048 + 8 * 33,
            "multiprocessors": 100,
        }
        cut, n = graph_of(store, device).cut, store.info.vertices
        return locality.choose(replace(device, **facts), cut, n, np.float64)

    assert choose(even, 64) is None  # too little to save
    monkeypatch.setattr(locality, "_FEW_SAVED", 0)
    assert choose(even, 512) is None  # one column has all
    assert choose(even, 64) == Cuts(dense=400, columns=7, shift=6)
    monkeypatch.setattr(locality, "_HUBS", 0)
    chosen = choose(hubs, 512)
    assert isinstance(chosen, Tiling)
    assert chosen.shift == 5
    assert chosen.tiles <= 4  # hubs alone


def _cut_by(monkeypatch, turn: int | None) -> None:
    """Make turns of ``turn`` entries; None: turns stay as they are."""
    if turn is not None:
        monkeypatch.setattr(cut_rows, "_LEAST_TURN", turn)
        monkeypatch.setattr(cut_rows, "_MOST_TURN", turn)


def _within(device: Device, store: Store, program: DeviceProgram, share: float) -> Device:
    """Return a device with room for the given share of a program's targets."""
    whole = engine_of(store, program, device).need().device
    entries = sum(store.info.subgraph_edges.values())
    return replace(device, memory_bytes=whole - int(4 * (1 - share) * entries))


@pytest.mark.parametrize("share", [0, 0.4, 1])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_tiers(device, stores, partitions, directed, share):
    store = stores("hubs", directed, partitions=partitions)
    check_components(store, _within(device, store, ComponentsProgram(), share))
    method = check_walk(store, _within(device, store, walk(store), share))
    assert method == ("on a device" if share == 1 else "on a device, tiered")


def test_too_little_memory(device, stores):
    store = stores("hubs", False)
    little = replace(device, memory_bytes=1 << 20, name="little")
    engine = engine_of(store, walk(store), little)
    with pytest.raises(
        DeviceMemoryError, match=r"may be used on .*little.*, but this question needs"
    ):
        engine.need()


def test_going_on_from_a_checkpoint(device, stores, tmp_path, monkeypatch):
    """A walk that was cut off after some launches resumes from its checkpoint with the same
    values.
    """
    monkeypatch.setattr(cut_rows, "TIME", 0)  # of a launch, which does one iteration then
    store, loaded = stores("hubs", True), []

    def checkpoint() -> Checkpoint:
        return Checkpoint(tmp_path / "saved", 0.0, "this", loaded=loaded.append)

    first = run(store, walk(store, most=5), device)
    with pytest.raises(KeyboardInterrupt):
        run(store, Stopping(**vars(walk(store, most=30)), after=2), device, checkpoint())
    whole = run(store, walk(store, most=30), device, checkpoint())
    assert loaded == [2]
    plain = run(store, walk(store, most=30), device)
    assert np.array_equal(whole.values, plain.values)
    changes = [
        [step["change"] for step in result.record["iterations"]] for result in (first, whole, plain)
    ]
    assert changes[1] == changes[2]
    assert changes[2][:5] == changes[0]


class Stopping(PageRankProgram):
    """A PageRank that is cut off after ``after`` launches."""

    def __init__(self, after: int, **fields: Any) -> None:
        super().__init__(**fields)
        object.__setattr__(self, "after", after)

    def run_on(self, graph, saving, tell) -> ProgramResult:
        launches = []

        def count(*_: Any) -> None:
            launches.append(1)
            if len(launches) > self.after:  # what came before it was saved  # pyright: ignore[reportAttributeAccessIssue]
                raise KeyboardInterrupt

        return super().run_on(graph, saving, count)


def test_it_stops_within_a_launch(device, stores):
    store = stores("hubs", False)
    result = run(store, walk(store, most=1000, tolerance=1e-7), device)
    changes = [step["change"] for step in result.record["iterations"]]
    assert changes[-1] < 1e-7 <= min(changes[:-1])
    u, v = edges_of(store)
    wanted = reference.pagerank(u, v, store.info.vertices, 0.85, len(changes))
    np.testing.assert_allclose(result.values, wanted, rtol=1e-12)


KINDS = sorted(PATH_WEIGHTS)


def check_run(store: Store, device: Device, source: int = 0, most: float = np.inf) -> ProgramRun:
    result = run(store, program_of(store, source, most), device)
    check_paths(store, result.columns, source, most)
    return result


@pytest.fixture(scope="module")
def weighted(tmp_path_factory) -> Stores:
    """Return a function that builds the store of a shape with weights of a kind, once."""

    @cache
    def store_of(shape: str, directed: bool, kind: str) -> Store:
        src, dst = SHAPES[shape]
        weight = PATH_WEIGHTS[kind](np.random.default_rng(1), len(src))
        options = BuildOptions(directed=directed)
        return stored(tmp_path_factory.mktemp("store"), src, dst, options, weight)

    return store_of


@pytest.mark.parametrize("few", [None, (0, 0), (2, 3)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shortest_paths(device, weighted, monkeypatch, shape, directed, kind, few):
    """Shortest paths are right; few: the work that one block does alone: much, nothing, little."""
    _alone(monkeypatch, few)
    store = weighted(shape, directed, kind)
    for source in (0, store.info.vertices // 2):
        check_run(store, device, source)


def _alone(monkeypatch, few: tuple[int, int] | None) -> None:
    if few is not None:
        monkeypatch.setattr(shortest_paths, "_FEW", few[0])
        monkeypatch.setattr(shortest_paths, "_FEW_PILED", few[1])


def test_paths_up_to_a_distance(device, weighted):
    store = weighted("hubs", False, "integers")
    far = check_run(store, device).values
    check_run(store, device, 0, float(np.median(far[np.isfinite(far)])))
    check_run(store, device, 0, 0.0)


WHOLE = {
    "little": lambda rng, m: rng.integers(1, 4, m),
    "middling": lambda rng, m: rng.integers(0, 1 << 20, m),
    "large": lambda rng, m: rng.integers(1 << 29, 1 << 30, m),
    "at the end": lambda rng, m: rng.choice([0, 1, 1 << 31, (1 << 32) - 2, (1 << 32) - 1], m),
}


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("shape", ["random", "grid"])
def test_whole_weights(device, tmp_path, monkeypatch, shape, kind):
    """Whole weights give each vertex its least possible parent, whether distances are integers or
    floats.
    """
    src, dst = SHAPES[shape]
    weight = WHOLE[kind](np.random.default_rng(3), len(src))
    store = stored(tmp_path, src, dst, BuildOptions(directed=True), weight)
    kinds, begin = [], shortest_paths.GpuPaths.__init__

    def note(self: Any, *args: Any) -> None:
        kinds.append(type(self).__name__)
        begin(self, *args)

    monkeypatch.setattr(shortest_paths.GpuPaths, "__init__", note)
    columns = check_run(store, device).columns
    u, v, w = entries_of(store)
    distance = columns["distance"]
    looked_at = (distance[u] + w)[np.isfinite(distance[u])]
    if looked_at.max() >= (1 << 32) - 1:
        assert kinds == ["GpuWholePaths", "GpuPaths"]
    elif kind in ("little", "middling"):
        assert kinds == ["GpuWholePaths"]
    tight = (distance[u] < distance[v]) & (distance[u] + w == distance[v])
    least = np.full(store.info.vertices, UNREACHED)
    np.minimum.at(least, v[tight], u[tight].astype(np.uint32))
    assert (columns["parent"][least != UNREACHED] == least[least != UNREACHED]).all()
    reached = distance[np.isfinite(distance)]
    for most in (float(np.median(reached)) + 0.5, float(reached.max()), 2.0**32 - 1):
        check_run(store, device, 0, most)


@pytest.mark.parametrize("kind", ["floats", "ties"])
def test_paths_go_on_from_a_checkpoint(device, weighted, tmp_path, monkeypatch, kind):
    """Shortest paths cut off after some rounds, each a launch of its own, resume from the
    checkpoint.
    """
    monkeypatch.setattr(cut_rows, "TIME", 0)
    store, loaded = weighted("grid", True, kind), []
    program = program_of(store, 0)

    def checkpoint() -> Checkpoint:
        return Checkpoint(tmp_path / "saved", 0.0, "this", loaded=loaded.append)

    engine = engine_of(store, program, device)
    engine.load()
    steps: list[int] = []

    def tell(rounds: int, *_: Any) -> None:
        steps.append(rounds)
        if len(steps) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(checkpoint(), tell)
    assert steps == list(range(1, 21))
    result = run(store, program, device, checkpoint())
    assert loaded == [19]
    whole = check_run(store, device)
    assert np.array_equal(result.values, whole.values)
    check_paths(store, result.columns, 0)


def check_betweenness(store: Store, device: Device, sources: np.ndarray) -> None:
    n = store.info.vertices
    u, v = edges_of(store)
    result = run(store, BetweennessProgram(n, sources), device)
    wanted = reference.betweenness(u, v, n, sources)
    np.testing.assert_allclose(result.values, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("most", [0.0, MOST_PATHS])
@pytest.mark.parametrize("shared", [0, 1 << 60])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_betweenness(device, stores, monkeypatch, shape, directed, shared, most):
    """Betweenness is right by all blocks together, or by one block a source after the first one.
    most: paths that plain counts take; with none, all have exponents.
    """
    monkeypatch.setattr(on_device, "EDGES_TO_SHARE", shared)
    monkeypatch.setattr(on_device, "MOST_PATHS", most)
    store = stores(shape, directed)
    n = store.info.vertices
    check_betweenness(store, device, np.unique(np.linspace(0, n - 1, 6)).astype(np.uint32))


@pytest.mark.parametrize("shared", [0, 1 << 60])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("graph", [layers, layers_beside_a_path])
def test_paths_beyond_the_range_of_floats(device, tmp_path, monkeypatch, graph, directed, shared):
    monkeypatch.setattr(on_device, "EDGES_TO_SHARE", shared)
    check_many_paths(device, tmp_path, graph, directed, 10, 330)


def check_many_paths(
    device: Device, folder: Path, graph: Callable[..., Any], directed: bool, width: int, count: int
) -> None:
    options = BuildOptions(directed=directed, order="none")
    src, dst = graph(width, count)
    store = stored(folder, src, dst, options)
    last = width * count - 1
    check_betweenness(store, device, np.array([0, last // 2, 1, last], np.uint32))


@pytest.mark.parametrize("most", [0.0, MOST_PATHS])
def test_betweenness_goes_on_from_a_checkpoint(device, stores, tmp_path, monkeypatch, most):
    monkeypatch.setattr(on_device, "MOST_PATHS", most)
    monkeypatch.setattr(on_device, "EDGES_TO_SHARE", 1 << 60)
    store = stores("hubs", True)
    program = BetweennessProgram(store.info.vertices, np.arange(9, dtype=np.uint32))
    result = run_cut_off(store, program, device, tmp_path)
    np.testing.assert_allclose(result.values, run(store, program, device).values, rtol=1e-12)


def check_sources(
    store: Store, device: Device, most: int | None = None, count: int = 9
) -> list[dict[str, Any]]:
    """Check all questions about several vertices; return the records of the batches of
    distances.
    """
    n, records, (u, v) = store.info.vertices, [], edges_of(store)
    sources = np.unique(np.linspace(0, n - 1, count).astype(np.uint32))
    for along in (True, False):
        result = run(store, DistanceSumsProgram(sources, along), device)
        check_sums((u, v) if along else (v, u), n, result.columns)
    levels = n if most is None else most
    for bits in (8, 16, 32):
        drawn = np.random.default_rng(n).permutation(sources)[: width(bits)]
        apart = bool(records) and records[-1]["apart"]
        result = run(store, DistanceBits(drawn, bits, most, apart), device)
        records.append(result.record)
        if not result.record["deeper"]:
            break
    check_distances((u, v), n, drawn, levels, result.columns)
    check_nearest(
        (u, v), n, drawn, levels, run(store, NearestSourceProgram(drawn, most), device).columns
    )
    return records


_ALWAYS = 1 << 30
WAYS = {
    "tell": (0, 0, 0),
    "ask": (_ALWAYS, _ALWAYS, 0),
    "both": (_ALWAYS, 4, 0),
    "apart": (8, 4096, 65),
}


def _go(monkeypatch, way: str) -> None:
    """Choose how searches run: only telling, asking wherever rows allow it, both, or apart."""
    ask, few, bits = WAYS[way]
    monkeypatch.setattr(on_device_searches, "ASKED_FOR_TOLD", ask)
    monkeypatch.setattr(on_device_searches, "RARE", few)
    monkeypatch.setattr(on_device_searches, "BITS_TO_PAY", bits)
    monkeypatch.setattr(on_device_searches, "LEVELS_TO_JUDGE", 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_several_sources(device, stores, monkeypatch, shape, directed, way):
    _go(monkeypatch, way)
    count = 9 if shape in ("star", "random") else 70  # more than a word has bits
    records = check_sources(stores(shape, directed), device, count=count)
    assert records[-1]["apart"] or way != "apart"


def test_when_searches_go_apart(device, stores):
    """Searches go apart on a path, where they seldom meet and levels are more than eight bits
    count.
    """
    path = stores("path", False)
    in_vain = run(path, DistanceBits(np.zeros(1, np.uint32), 8, apart=True), device).record
    assert in_vain["deeper"]
    assert in_vain["edges"] >= 2 * 255  # at each level an entry back, and one ahead
    records = check_sources(path, device, count=5)
    assert [(one["deeper"], one["apart"]) for one in records] == [(True, True), (False, True)]
    assert not check_sources(stores("hubs", False), device)[-1]["apart"]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_searches_of_few_levels(device, stores, monkeypatch, most):
    for way in WAYS:
        _go(monkeypatch, way)
        for directed in (False, True):
            check_sources(stores("hubs", directed), device, most)


@pytest.mark.parametrize("way", WAYS)
def test_searches_of_several_partitions_and_tiers(device, stores, monkeypatch, way):
    _go(monkeypatch, way)
    for share in (0, 0.4, 1):
        store = stores("cliques", True, partitions=3)
        program = DistanceBits(np.arange(5, dtype=np.uint32), 8)
        check_sources(store, _within(device, store, program, share))


def test_sums_go_on_from_a_checkpoint(device, stores, tmp_path, monkeypatch):
    store = stores("hubs", True)
    program = DistanceSumsProgram(np.arange(200, dtype=np.uint32), along=False)
    result = run_cut_off(store, program, device, tmp_path, step=64)
    u, v = edges_of(store)
    check_sums((v, u), store.info.vertices, result.columns)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    graph=graphs(),
    order=st.sampled_from(["degree", "none", "random"]),
    partitions=st.sampled_from([1, 1, 3]),
    weights=st.sampled_from(sorted(WEIGHTS)),
    turn=st.sampled_from([None, 1, 8]),
    dangling=st.sampled_from(["even", "none"]),
    personal=st.booleans(),
)
def test_random_graphs(
    device, tmp_path_factory, graph, order, partitions, weights, turn, dangling, personal
):
    with pytest.MonkeyPatch.context() as patched:
        _cut_by(patched, turn)
        way = order, partitions, weights, dangling, personal
        check_graph(device, tmp_path_factory.mktemp("store"), graph, *way)


def check_graph(
    device: Device,
    folder: Path,
    graph: Any,
    order: Any,
    partitions: int,
    weights: str,
    dangling: str,
    personal: bool,
) -> None:
    src, dst, _, directed = graph
    if len(src):
        options = BuildOptions(directed=directed, order=order, partitions=partitions)
        weight = WEIGHTS[weights](np.random.default_rng(2), len(src))
        store = stored(folder, src, dst, options, weight)
        check_components(store, device)
        check_walk(store, device, dangling=dangling, personal=personal)
        n = store.info.vertices
        check_betweenness(store, device, np.arange(0, n, max(1, n // 5), dtype=np.uint32))
        check_sources(store, device, None if partitions == 1 else 3, count=70)


# As a user asks for it


def test_commands_on_a_device(device, ok, edge_list, tmp_path):
    """Commands give a CPU's results on a device, and ``validate`` accepts them."""
    del device
    src, dst = SHAPES["hubs"]
    edges = edge_list(src, dst, w=np.random.default_rng(5).integers(1, 9, len(src)))
    ok("build", edges, "-o", tmp_path / "g.dg", "--weight", "w")
    args = {"components": (), "pagerank": (), "sssp": ("--source", 0)}
    args |= dict.fromkeys(("betweenness", "closeness", "eccentricity"), ("--sources", 4))
    for command, more in args.items():
        for graph in (tmp_path / "g.dg", edges):
            out = tmp_path / f"{command}-{graph.name}"
            if command == "sssp" and graph is edges:
                more = (*more, "--weight", "w")
            record = ok(command, graph, "-o", out, *more, "--device", "cuda", "--json").json
            assert record["device"].startswith("cuda:0")
            assert record[command]["method"] == "on a device"
            ok("validate", tmp_path / "g.dg" if command == "sssp" else graph, out)
        limited = tmp_path / f"{command}-limited"
        how = "-o", limited, "--device-memory-limit", "1MB"
        run = ok(command, tmp_path / "g.dg", *args[command], *how)
        assert "searched on the CPU" in run.err
        assert json.loads((tmp_path / f"{limited.name}.run.json").read_text())["device"] == "cpu"
        plan = ok("plan", tmp_path / "g.dg", "--algorithm", command, "--device", "cuda", "--json")
        (search, *_) = plan.json["steps"]
        assert search["device_bytes"] > 4 * len(src)
    for way in ((), ("--together",)):
        out = tmp_path / f"several{len(way)}"
        asks = "--sources", "0,1,5", *way, "--device", "cuda", "--json"
        record = ok("bfs", tmp_path / "g.dg", "-o", out, *asks).json
        assert record["searches"]["method"] == "on a device"
        ok("validate", tmp_path / "g.dg", out)
    result = delegraph.components(tmp_path / "g.dg", output=tmp_path / "plain", threads=1)
    assert result.record["device"] == "cpu"


def test_self_loops_count_on_the_cpu(device, ok, edge_list, tmp_path):
    """PageRank of a store or an edge list that keeps self-loops runs on a CPU, and says so where a
    device is asked for; a graph that is open on a device, too.
    """
    del device
    src, dst = SHAPES["self-loop"]
    edges, store = edge_list(src, dst), tmp_path / "g.dg"
    ok("build", edges, "-o", store, "--loops", "keep")
    wanted = delegraph.pagerank(edges, loops="keep", device="cpu").table.sort_by("vertex")
    for graph, more in ((store, ()), (edges, ("--loops", "keep"))):
        out = tmp_path / f"ranks-of-{graph.name}"
        told = ok("pagerank", graph, "-o", out, *more, "--device", "cuda", "--json").json
        assert told["device"] == "cpu"
        assert "pagerank does not count self-loops on GPUs yet: used the CPU" in told["notes"]
        found = pq.read_table(out)["pagerank"].to_numpy()
        np.testing.assert_allclose(found, wanted["pagerank"], rtol=1e-12)
    kept: dict[str, Any] = {"loops": "keep"}
    for graph, options in ((store, {}), (edges, kept)):
        with delegraph.open(graph, device="cuda", **options) as opened:
            ranks = opened.pagerank()
            assert ranks.record["device"] == "cpu"
            np.testing.assert_allclose(ranks.table["pagerank"], wanted["pagerank"], rtol=1e-12)
            degrees = opened.degree().table["degree"].to_pylist()
            assert degrees == delegraph.degree(store, device="cpu").table["degree"].to_pylist()


@pytest.mark.parametrize("partitions", [0, 1, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_that_stays_open(device, edge_list, tmp_path, directed, partitions):
    """All questions about an open graph are answered on its device, as on a CPU. partitions: 0
    for an edge list.
    """
    del device
    src, dst = SHAPES["two components"]
    edges = edge_list(src, dst, w=np.random.default_rng(5).integers(1, 9, len(src)))
    reading: dict[str, Any] = {"directed": directed, "weight": "w"}
    store = tmp_path / "g.dg"
    delegraph.build(edges, store, device="cpu", partitions=partitions or 1, **reading)
    opened = {"graph": store} if partitions else {"graph": edges, **reading}
    questions: dict[str, Callable[[Any], Any]] = {
        "bfs": lambda graph: graph.bfs(5),
        "each": lambda graph: graph.bfs(sources=[3, 5, 110]),
        "nearest": lambda graph: graph.bfs(sources=[3, 5, 110], together=True),
        "components": lambda graph: graph.components(),
        "pagerank": lambda graph: graph.pagerank(iterations=5, unweighted=True),
        "weighted": lambda graph: graph.pagerank(iterations=5),
        "sssp": lambda graph: graph.sssp(5),
        "closeness": lambda graph: graph.closeness(sources=9),
        "eccentricity": lambda graph: graph.eccentricity(),
        "betweenness": lambda graph: graph.betweenness(),
    }
    with (
        delegraph.open(**opened, device="cuda") as graph,
        delegraph.open(store, device="cpu") as own,
    ):
        for ask in questions.values():
            result, wanted = ask(graph), ask(own)
            assert result.record["device"].startswith("cuda")
            assert wanted.record["device"] == "cpu"
            for column in wanted.table.column_names:
                one, other = (answer.table[column].to_numpy() for answer in (result, wanted))
                if column != "parent":
                    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        assert graph.notes == own.notes
        assert graph._made is None


# On emulated devices


@pytest.mark.nightly
@pytest.mark.parametrize("kind", mostly_slow(sorted(WHOLE), "middling"))
def test_emulated_whole_weights(emulated, tmp_path, monkeypatch, kind):
    test_whole_weights(emulated[0], tmp_path, monkeypatch, "random", kind)


@pytest.mark.parametrize("directed", [False, slow(True)])
@pytest.mark.parametrize("shape", SMALL)
def test_emulated_programs(emulated, stores, monkeypatch, shape, directed):
    _cut_by(monkeypatch, 16)
    check_components(stores(shape, directed), emulated[0])
    check_walk(stores(shape, directed), emulated[0], most=4)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["floats", "integers"])
@pytest.mark.parametrize("directed", [False, True])
def test_emulated_weights(emulated, stores, directed, weights):
    test_weighted_pagerank(emulated[0], stores, "two components", directed, weights)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, 0.4, 1])
@pytest.mark.parametrize("partitions", [1, 3])
def test_emulated_tiers(emulated, stores, partitions, share):
    test_tiers(emulated[0], stores, partitions, True, share)


@pytest.mark.parametrize(
    ("weights", "stands"), drawn(len(STANDS), ["none", "floats"], sorted(STANDS))
)
def test_emulated_stands(emulated, stores, monkeypatch, weights, stands):
    test_where_entries_stand(
        emulated[0], stores, monkeypatch, "two components", True, weights, stands, 4
    )


@pytest.mark.parametrize("tiling", TILINGS)
def test_emulated_tiles(emulated, tiling):
    test_tiles_have_every_entry_once(emulated[0], LENGTHS[1], tiling)


def test_emulated_bands(emulated, monkeypatch):
    test_bands_cost_the_same(emulated[0], monkeypatch)


@pytest.mark.slow
def test_emulated_locality(emulated, tmp_path, monkeypatch):
    test_columns_and_tiles_are_of_rows_that_rise(emulated[0], tmp_path)
    test_the_way_that_reads_least(emulated[0], tmp_path, monkeypatch)


@pytest.mark.slow
def test_an_emulated_walk(emulated, stores, tmp_path, monkeypatch):
    test_too_little_memory(emulated[0], stores)
    test_going_on_from_a_checkpoint(emulated[0], stores, tmp_path, monkeypatch)
    test_it_stops_within_a_launch(emulated[0], stores)


@pytest.mark.parametrize("most", [0.0, slow(MOST_PATHS)])
@pytest.mark.parametrize("shared", [nightly(0), 1 << 60])
@pytest.mark.parametrize(
    "shape", mostly_slow(["star", "cliques", "hubs", "path", "empty rows"], "star")
)
def test_emulated_betweenness(emulated, stores, monkeypatch, shape, shared, most):
    test_betweenness(emulated[0], stores, monkeypatch, shape, True, shared, most)


@pytest.mark.nightly
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shared", [0, 1 << 60])
def test_emulated_paths_beyond_the_range(emulated, tmp_path, monkeypatch, directed, shared):
    """Betweenness is right where path counts of a level differ by more than floats hold."""
    monkeypatch.setattr(on_device, "EDGES_TO_SHARE", shared)
    check_many_paths(emulated[0], tmp_path, layers_beside_a_path, directed, 24, 240)


@pytest.mark.parametrize(
    ("shape", "way", "directed"),
    drawn(
        *(12, ["star", "cliques", "two components"], sorted(WAYS), [False, True]),
        usual=lambda *of: of == ("cliques", "both", False),
    ),
)
def test_emulated_searches(emulated, stores, monkeypatch, shape, way, directed):
    _go(monkeypatch, way)
    check_sources(stores(shape, directed), emulated[0], count=9)


@pytest.mark.nightly
def test_more_emulated_searches(emulated, stores, tmp_path, monkeypatch):
    test_when_searches_go_apart(emulated[0], stores)
    test_searches_of_few_levels(emulated[0], stores, monkeypatch, 1)
    test_searches_of_several_partitions_and_tiers(emulated[0], stores, monkeypatch, "ask")
    test_sums_go_on_from_a_checkpoint(emulated[0], stores, tmp_path, monkeypatch)


@pytest.mark.slow
def test_emulated_betweenness_goes_on(emulated, stores, tmp_path, monkeypatch):
    test_betweenness_goes_on_from_a_checkpoint(emulated[0], stores, tmp_path, monkeypatch, 0.0)


@pytest.mark.parametrize(
    ("shape", "kind", "few"),
    drawn(
        *(10, ["cliques", "two components"], KINDS, [None, (2, 3)]),
        usual=lambda *of: of == ("cliques", "ties", (2, 3)),
    ),
)
def test_emulated_paths(emulated, weighted, monkeypatch, shape, kind, few):
    _alone(monkeypatch, few)
    check_run(weighted(shape, False, kind), emulated[0])


@pytest.mark.slow
def test_more_emulated_paths(emulated, weighted, tmp_path, monkeypatch):
    check_run(weighted("star", True, "floats"), emulated[0], 5)
    check_run(weighted("hubs", True, "integers"), emulated[0])
    test_paths_up_to_a_distance(emulated[0], weighted)
    test_paths_go_on_from_a_checkpoint(emulated[0], weighted, tmp_path, monkeypatch, "ties")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_emulated_random_graphs(emulated, monkeypatch, tmp_path, seed):
    _cut_by(monkeypatch, [None, 1, 8][seed % 3])
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    src, dst = (rng.random((2, int(rng.integers(1, 600)))) ** 2 * n).astype(np.uint32)
    way = ["degree", "none", "random"][seed % 3], 1 + 2 * (seed % 4 == 3)
    check_graph(
        emulated[0],
        tmp_path,
        (src, dst, n, bool(seed % 2)),
        *way,
        sorted(WEIGHTS)[seed % 3],
        ["even", "none"][seed % 2],
        seed % 3 == 0,
    )


@pytest.mark.parametrize("first", [ComponentsProgram, PageRankProgram])
def test_room_for_another_program(emulated, stores, monkeypatch, first):
    """Spare bytes of a program on a kept engine exclude the program's need and the kept program's
    arrays, and an engine is taken over only where both programs fit.
    """
    store, device = stores("star", False), emulated[0]
    n = store.info.vertices
    engine = engine_of(store, walk(store) if first is PageRankProgram else first(), device)
    engine.load()
    program = DistanceBits(np.arange(9, dtype=np.uint32), 8)
    monkeypatch.setattr(DistanceBits, "run_on", lambda _, graph, *__: graph.extra_bytes)
    extra_bytes = engine.run(None, lambda *_: None, program)
    need = engine_of(store, program, device).need().device
    assert extra_bytes == device.memory_bytes - need - (8 * n if first is PageRankProgram else 0)
    least = replace(device, memory_bytes=engine.need().device)
    for room, fits in ((0, False), (need, True)):
        little = replace(least, memory_bytes=least.memory_bytes + room)
        assert engine_of(store, program, little).take_over(engine) == fits
    engine.close()


@pytest.mark.parametrize("partitions", [slow(0), nightly(1), nightly(3)])
def test_an_emulated_graph_that_stays_open(emulated, edge_list, tmp_path, partitions):
    test_a_graph_that_stays_open(emulated[0], edge_list, tmp_path, True, partitions)


@pytest.mark.slow
def test_emulated_commands(emulated, ok, edge_list, tmp_path):
    test_commands_on_a_device(emulated[0], ok, edge_list, tmp_path)
