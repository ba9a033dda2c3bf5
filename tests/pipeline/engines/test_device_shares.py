"""Shares that ranks load on devices for programs: together they have each edge once, with its
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu_programs import stored_rows
from delegraph.kernels.gpu_programs.rows import ProgramGraph
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.algorithms.bfs_each import DistanceBits
from delegraph.pipeline.algorithms.components import ComponentsProgram
from delegraph.pipeline.algorithms.hits import HitsProgram
from delegraph.pipeline.algorithms.iterations import Stop
from delegraph.pipeline.algorithms.many_sources import DistanceSumsProgram
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from delegraph.pipeline.engines.one_device.share import DeviceShare
from delegraph.pipeline.engines.operations.program import DeviceProgram, ReadRows
from support.degrees import degree_program
from support.graphs import SHAPES, random_edges
from support.marks import partly_nightly
from support.paths import entries_of, program_of
from support.programs import stored

LAYOUTS: dict[str, dict[str, Any]] = {
    "one": {},
    "delegates": {"partitions": 3, "threshold": 6},
    "all delegates": {"partitions": 3, "threshold": 1},
    "no delegates": {"partitions": 4, "threshold": 10**6},
    "any order": {"partitions": 3, "threshold": 6, "order": "random"},
    "grid": {"partitions": 6, "layout": "2d", "grid": Grid(2, 3)},
    "1d": {"partitions": 3, "layout": "1d"},
}


EVERY = [*product(LAYOUTS, [False, True])]
RARELY = set(EVERY) - {("one", True), ("delegates", True), ("grid", True)}
"""Layouts of graphs, directed or not; those that are emulated rarely."""


def entries_there(graph: ProgramGraph, store: Store) -> np.ndarray:
    """Return rows, targets and weights of a share, int64 (3, entries), and check their order.
    Weights are 0 where the share has none.
    """
    rows = graph.cut.rows
    with graph.device.use():
        offsets, targets = rows.offsets.get(), rows.near.get()
        weights = None if graph.weights is None else graph.weights.get()
    if rows.far is not None:
        targets = np.concatenate([targets, rows.far])
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets.astype(np.int64)))
    bits = np.zeros(len(row), np.uint32) if weights is None else weights.copy()
    if store.info.order == "degree":
        assert (np.diff(targets.astype(np.int64))[np.diff(row) == 0] > 0).all()
    return np.stack([row, targets.astype(np.int64), bits.astype(np.int64)])


def in_order(u: Any, v: Any, bits: Any) -> np.ndarray:
    table = np.stack([np.asarray(column, np.int64) for column in (u, v, bits)])
    return table[:, np.lexsort(table[::-1])]


def check_shares(store: Store, device: Device, ranks: int, weighted: bool, near: Any) -> None:
    n, kind = store.info.vertices, "float32" if weighted else None
    pagerank = PageRankProgram(n, 0.85, None, 1, "even", None, kind)
    hits = HitsProgram(n, Stop(1, None), None)
    u, v, weight = entries_of(store)
    bits = weight.view(np.uint32) if weighted else np.zeros(len(u), np.uint32)
    for program in (pagerank, *(() if weighted else (hits, ComponentsProgram()))):
        entries, entries_back, degree = [], [], np.zeros(n)
        for rank in range(ranks):
            share = DeviceShare(store, rank, ranks)
            room = share.room(program, device)
            graph = share.load(program, device, room.near if near is None else near, Team(2))
            assert graph.twice == (not store.info.directed)
            entries.append(entries_there(graph, store))
            if graph.back is not None:
                back = replace(graph, cut=graph.back, weights=graph.back_weights)
                entries_back.append(entries_there(back, store))
            if program.wants_degrees:
                assert graph.degree is not None
                with device.use():
                    degree += graph.degree.get()
        ends = (u, v) if program.rows == ReadRows.BY_SOURCE else (v, u)
        assert (len(entries_back) > 0) == (program is hits and store.info.directed)
        if entries_back:
            assert np.array_equal(in_order(*np.concatenate(entries_back, 1)), in_order(u, v, bits))
        assert np.array_equal(in_order(*np.concatenate(entries, 1)), in_order(*ends, bits))
        if program.wants_degrees:
            wanted = np.bincount(u, weight if weighted else None, minlength=n)
            np.testing.assert_allclose(degree, wanted, rtol=1e-12)


def check_layout(
    folder: Path, device: Device, shape: str, layout: str, directed: bool, near: Any = None
) -> None:
    src, dst = SHAPES[shape]
    options = BuildOptions(directed=directed, **LAYOUTS[layout])
    weight = np.random.default_rng(1).random(len(src)).astype(np.float32)
    store = stored(folder, src, dst, options, weight)
    for ranks in range(1, store.info.partitions + 1):
        for weighted in (False, True):
            check_shares(store, device, ranks, weighted, None if weighted else near)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_edges_once(device, tmp_path, shape, layout, directed):
    check_layout(tmp_path, device, shape, layout, directed)


@pytest.mark.parametrize("layout", ["delegates", "grid"])
def test_tiers_sorted_in_pieces(device, tmp_path, monkeypatch, layout):
    monkeypatch.setattr(stored_rows, "_SORTED", 64)
    check_layout(tmp_path, device, "hubs", layout, True, near=100)


PROGRAMS: dict[str, Callable[[Store], DeviceProgram]] = {
    "components": lambda store: ComponentsProgram(),
    "pagerank": lambda store: PageRankProgram(store.info.vertices, 0.85, None, 3, "even", None),
    "weighted": lambda store: PageRankProgram(
        store.info.vertices, 0.85, None, 3, "even", None, "float32"
    ),
    "hits": lambda store: HitsProgram(store.info.vertices, Stop(3, None), "float32"),
    "degree": degree_program,
    "sssp": lambda store: program_of(store, 0),
    "betweenness": lambda store: BetweennessProgram(
        store.info.vertices, np.arange(2, dtype=np.uint32)
    ),
    "closeness": lambda store: DistanceSumsProgram(np.arange(70, dtype=np.uint32), along=False),
    "distances": lambda store: DistanceBits(np.arange(32, dtype=np.uint32), 16, apart=True),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", ["one", "delegates", "grid"])
def test_what_is_said_is_enough(device, tmp_path, layout, directed):
    """Memory of the planned size is enough to load and run each program."""
    src, dst = random_edges(3, 300_000, 3_000_000)
    weight = np.random.default_rng(1).random(len(src)).astype(np.float32)
    store = stored(tmp_path, src, dst, BuildOptions(directed=directed, **LAYOUTS[layout]), weight)
    pool = device.cupy.get_default_memory_pool()
    for name, make in PROGRAMS.items():
        program = make(store)
        limit = DeviceShare(store).room(program, device).device
        little = replace(device, memory_bytes=limit)
        rows = StoreRowsOnDevice(store, None, little, 2)
        engine = DeviceProgramEngine(rows, program, little)
        pool.free_all_blocks()
        pool.set_limit(size=limit)
        try:
            engine.load()
            assert engine.method == "on a device", name
            engine.run(None, lambda *_: None)
        finally:
            engine.close()
            pool.set_limit(size=0)


@pytest.mark.parametrize(("layout", "directed"), partly_nightly(EVERY, *RARELY))
def test_emulated(emulated, tmp_path, layout, directed):
    check_layout(tmp_path, emulated[0], "hubs", layout, directed)


@pytest.mark.nightly
def test_emulated_tiers(emulated, tmp_path, monkeypatch):
    test_tiers_sorted_in_pieces(emulated[0], tmp_path, monkeypatch, "delegates")
