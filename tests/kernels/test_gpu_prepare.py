"""Preparation on a GPU has the same rows, bytes and verdicts as on a CPU.

Every test runs twice: races need not show at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.kernels import reference
from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.bfs import check
from delegraph.kernels.gpu import check as gpu_check
from delegraph.kernels.gpu import generate as gpu_generate
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu.graph import Rows
from delegraph.kernels.prepare import generate as cpu_generate
from delegraph.partition.store.store import open_store
from support.graphs import random_edges
from support.outputs import device_of, digest


@pytest.fixture(params=[1, 2], ids=["first", "again"])
def again(request) -> int:
    return request.param


def to_device(device: Device, *arrays: np.ndarray) -> Any:
    with device.use() as cupy:
        return tuple(cupy.asarray(array) for array in arrays)


# The generators


RANGES = [(0, 3000), (123_456_789_012, 123_456_790_000)]


@pytest.mark.parametrize("seed", [0, 1, 2**62 + 5])
@pytest.mark.parametrize("scale", [1, 6, 17, 22, 31])
@pytest.mark.parametrize("kind", ["kronecker", "uniform"])
def test_rows_are_those_of_the_cpu(device, kind, scale, seed, again):
    for first, last in RANGES:
        wanted = np.empty((2, last - first), np.int64)
        getattr(cpu_generate, kind)(first, scale, seed, *wanted)
        columns = getattr(gpu_generate, kind)(device, first, last, scale, seed)
        assert [column.get().tolist() for column in columns] == wanted.tolist()


@pytest.mark.parametrize("keep_below", [0, 1 << 31, 3 << 30, 1 << 32])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (1, 90), (70, 1), (30, 41)], ids=str)
def test_a_grid_is_that_of_the_cpu(device, shape, keep_below, again):
    height, width = shape
    cells = height * width
    for first, last in ((0, 2 * cells), (cells // 3, cells)):
        wanted = np.empty((2, last - first), np.int64)
        src, dst = wanted
        count = cpu_generate.grid(first, last, height, width, keep_below, 9, src, dst)
        columns = gpu_generate.grid(device, first, last, height, width, keep_below, 9)
        assert [column.get().tolist() for column in columns] == wanted[:, :count].tolist()


# Rows from edges on the device


def star(leaves: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(leaves, np.int64), np.arange(1, leaves + 1)


def graphs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    one = np.array([4])
    skewed = random_edges(1, 3000, 40_000)
    return {
        "skewed": skewed,
        "sparse": (skewed[0] * 7, skewed[1] * 7),
        "large": random_edges(2, 1 << 17, 3_000_000),
        "star": star(50_000),
        "path": (np.arange(5000), np.arange(1, 5001)),
        "one edge": (one, one + 3),
        "one edge often": (np.tile([2, 5], 6000), np.tile([5, 2], 6000)),
        "one loop": (one, one),
        "loops only": (np.arange(40), np.arange(40)),
        "loops apart": (np.append(skewed[0], 9000), np.append(skewed[1], 9000)),
        "clique": (np.repeat(np.arange(80), 80), np.tile(np.arange(80), 80)),
        "sinks": (np.arange(30_000) % 3, np.arange(30_000) + 3),
    }


def definition(src, dst, directed: bool):
    """Return (ids by position, degree, out-degree, both ways' sorted (row, target)), by NumPy."""
    no_loop = src != dst
    size = int(max(src.max(), dst.max())) + 1
    degree = np.bincount(np.concatenate([src[no_loop], dst[no_loop]]), minlength=size)
    out_degree = np.bincount(src[no_loop], minlength=size)
    occurring = np.unique(np.concatenate([src, dst]))
    ids = occurring[reference.degree_order(degree[occurring])]
    position = np.zeros(size, np.int64)
    position[ids] = np.arange(len(ids))
    pairs = position[src[no_loop]], position[dst[no_loop]]
    ways = [pairs, pairs[::-1]]
    if not directed:
        ways = [tuple(np.concatenate([pairs[way], pairs[1 - way]]) for way in (0, 1))] * 2
    keys = [np.unique(u << 32 | v) for u, v in ways]
    return ids, degree[ids], (out_degree if directed else degree)[ids], keys


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", graphs())
def test_rows_against_the_definition(device, name, directed, again):
    src, dst = graphs()[name]
    u, v = to_device(device, src.astype(np.uint32), dst.astype(np.uint32))
    cut = len(src) // 3
    blocks = [(u[:cut], v[:cut]), (u[cut:], v[cut:])]
    domain = int(max(src.max(), dst.max())) + 1 + 100
    prepared = gpu_prepare.prepare(device, blocks, domain, directed)
    assert not blocks
    ids, degree, rows_from, keys = definition(src, dst, directed)
    assert prepared.vertices == len(ids)
    assert prepared.self_loops == np.count_nonzero(src == dst)
    assert prepared.id_of_position.get().tolist() == ids.tolist()
    assert prepared.degree.get().tolist() == degree.tolist()
    assert prepared.rows_from.get().tolist() == rows_from.tolist()
    ways = [
        (prepared.offsets, prepared.targets),
        (prepared.reverse_offsets, prepared.reverse_targets),
    ]
    for (offsets, targets), wanted in zip(ways, keys, strict=True):
        assert offsets.dtype == targets.dtype == np.uint32
        offsets, targets = offsets.get().astype(np.int64), targets.get()
        assert offsets[0] == 0
        assert offsets[-1] == len(targets)
        rows = np.repeat(np.arange(len(ids)), np.diff(offsets))
        assert np.array_equal(rows << 32 | targets.astype(np.int64), wanted)


def test_counters_of_64_bits(device, monkeypatch, again):
    """Counters of 64 bits, which 2^31 rows need, give the same result."""
    monkeypatch.setattr(gpu_prepare, "degree_dtype", lambda rows: np.uint64)
    src, dst = graphs()["skewed"]
    edges = to_device(device, src.astype(np.uint32), dst.astype(np.uint32))
    prepared = gpu_prepare.prepare(device, [edges], 3000, True)
    ids, degree, rows_from, _ = definition(src, dst, True)
    assert prepared.degree.dtype == np.uint64
    assert prepared.id_of_position.get().tolist() == ids.tolist()
    assert prepared.degree.get().tolist() == degree.tolist()
    assert prepared.rows_from.get().tolist() == rows_from.tolist()


def test_what_is_held_is_within_what_is_said(device):
    """Preparation holds no more than ``bytes_needed`` says: the memory pool's limit is that
    number.
    """
    rows, domain = 4_000_000, 1 << 19
    for directed in (False, True):
        need = gpu_prepare.bytes_needed(rows, domain, directed)
        with device.use() as cupy:
            pool = cupy.get_default_memory_pool()
            pool.free_all_blocks()
            before, limit = pool.total_bytes(), pool.get_limit()
            pool.set_limit(size=before + need)
            try:
                blocks = [gpu_generate.uniform(device, 0, rows, 19, 1)]
                prepared = gpu_prepare.prepare(device, blocks, domain, directed)
                assert prepared.vertices <= domain
                del prepared
            finally:
                pool.set_limit(size=limit)
                pool.free_all_blocks()


# Stores


def spelled(ids: str, src, dst):
    if ids == "sparse":
        return src * -9_876_543_210 + 7, dst * -9_876_543_210 + 7
    if ids == "strings":
        return tuple(np.char.add("v", column.astype(str)) for column in (src, dst))
    return src, dst


ON_CPU = ("--device", "cpu")


def build(ok, path: Path, output: Path, *options) -> str:
    ok("build", path, "-o", output, "--quiet", *options)
    return digest(output)


@pytest.mark.parametrize("ids", ["dense", "sparse", "strings"])
@pytest.mark.parametrize("directed", [(), ("--directed",)], ids=["undirected", "directed"])
@pytest.mark.parametrize("order", ["degree", "none", "random"])
@pytest.mark.parametrize(
    ("partitions", "layout"),
    [(1, "delegate"), (3, "delegate"), (4, "delegate"), (6, "2d"), (3, "1d")],
)
def test_a_store_has_the_bytes_of_the_cpus(
    device, ok, edge_list, tmp_path, ids, directed, order, partitions, layout
):
    path = edge_list(*spelled(ids, *random_edges(partitions, 2000, 30_000)), row_group_size=4000)
    options = (*directed, "--order", order, "--partitions", partitions, "--layout", layout)
    wanted = build(ok, path, tmp_path / "cpu.dg", *options, *ON_CPU)
    for name, more in (
        ("first", ()),
        ("again", ()),
        ("files", ("--scratch", tmp_path, "--threads", 3)),
    ):
        output = tmp_path / f"{name}.dg"
        assert build(ok, path, output, *options, "--device", "cuda", *more) == wanted
        assert device_of(output) == str(device)
    assert device_of(tmp_path / "cpu.dg") == "cpu"


def check_weights(ok, edge_list, folder: Path, on: Device, kind: str, duplicates: str, *options):
    """Check that stores of rows with weights, some far apart and most edges repeated, are the same
    from CPU and GPU.
    """
    src, dst = random_edges(8, 300, 60_000)
    weight = np.random.default_rng(8).integers(0, 1000, len(src))
    column = pa.array(weight if kind == "uint32" else 1.7 ** weight.clip(0, 100) / 3)
    path = edge_list(src, dst, weight=column.cast(kind), row_group_size=9000)
    options = (*options, "--weight", "weight", "--duplicates", duplicates)
    wanted = build(ok, path, folder / "cpu.dg", *options, *ON_CPU)
    assert build(ok, path, folder / "gpu.dg", *options, "--device", "cuda") == wanted
    assert device_of(folder / "gpu.dg") == str(on)
    ok("build", path, "-o", folder / "3.dg", "--quiet", *options, *ON_CPU, "--threads", 1)
    assert digest(folder / "3.dg") == wanted


@pytest.mark.parametrize("directed", [(), ("--directed",)], ids=["undirected", "directed"])
@pytest.mark.parametrize("duplicates", ["min", "max", "sum"])
@pytest.mark.parametrize("kind", ["uint32", "float32"])
@pytest.mark.parametrize("more", [(), ("--partitions", 3), ("--layout", "2d", "--grid", "2x2")])
def test_a_store_with_weights_has_the_bytes_of_the_cpus(
    device, ok, edge_list, tmp_path, more, kind, duplicates, directed
):
    check_weights(ok, edge_list, tmp_path, device, kind, duplicates, *more, *directed)


@pytest.mark.parametrize("through", ["memory", "files"])
def test_a_store_with_weights_emulated(emulated, ok, edge_list, tmp_path, through):
    """A store of 64-bit weights counts the rounded ones like the CPU's."""
    more = ["--partitions", 3] if through == "memory" else ["--scratch", tmp_path]
    check_weights(ok, edge_list, tmp_path, emulated[0], "float64", "sum", *more)
    info = open_store(tmp_path / "gpu.dg").info.weights
    assert info is not None
    assert info.rounded
    assert info == open_store(tmp_path / "cpu.dg").info.weights


@pytest.mark.parametrize(
    "options",
    [(), ("--partitions", 3, "--threshold", 2), ("--layout", "2d", "--grid", "3x2")],
    ids=["one", "3", "grid"],
)
@pytest.mark.parametrize("name", [name for name in graphs() if name != "large"])
def test_stores_of_odd_graphs(device, ok, edge_list, tmp_path, name, options, again):
    path = edge_list(*graphs()[name])
    wanted = build(ok, path, tmp_path / "cpu.dg", *options, *ON_CPU)
    assert build(ok, path, tmp_path / "gpu.dg", *options, "--device", "cuda") == wanted
    assert device_of(tmp_path / "gpu.dg") == str(device)


def test_a_hub_of_many_ranges(device, ok, edge_list, tmp_path):
    """A hub has more edges than a shard, and other shards have many rows."""
    src, dst = star(1 << 21)
    more = random_edges(7, 1 << 20, 1 << 22)
    path = edge_list(np.concatenate([src, more[0]]), np.concatenate([dst, more[1]]))
    for options in ((), ("--partitions", 2, "--directed")):
        wanted = build(ok, path, tmp_path / "cpu.dg", *options, *ON_CPU, "--overwrite")
        on_gpu = build(ok, path, tmp_path / "gpu.dg", *options, "--overwrite", "--device", "cuda")
        assert on_gpu == wanted


def test_too_little_device_memory_is_the_cpus_turn(device, delegraph, edge_list, tmp_path):
    path = edge_list(*random_edges(3, 2000, 30_000))
    run = delegraph("build", path, "-o", tmp_path / "cpu.dg", *ON_CPU)
    assert run.code == 0
    limited = ("--device", "cuda", "--device-memory-limit", "1MB")
    for name in ("first", "again"):
        output = tmp_path / f"{name}.dg"
        run = delegraph("build", path, "-o", output, *limited)
        assert run.code == 0, run.err
        assert [line for line in run.err.splitlines() if "CPU" in line and "1 MB" in line]
        assert digest(output) == digest(tmp_path / "cpu.dg")
        assert device_of(output) == "cpu"


def test_a_device_that_is_not_there(device, delegraph, edge_list, tmp_path):
    path = edge_list([0, 1], [1, 2])
    for wrong in ("cuda:99", "gpu", "cuda:-1"):
        run = delegraph("build", path, "-o", tmp_path / "graph.dg", "--device", wrong)
        assert run.code == 2
        assert wrong in run.err.splitlines()[-1]
    run = delegraph("build", path, "-o", tmp_path / "graph.dg", "--device", "cuda", "--workers", 99)
    assert run.code == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name]


def test_a_damaged_input_leaves_nothing(device, delegraph, edge_list, tmp_path):
    path = edge_list(*random_edges(3, 2000, 30_000))
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 2000] = bytes(2000)
    path.write_bytes(data)
    run = delegraph("build", path, "-o", tmp_path / "graph.dg", "--device", "cuda")
    assert run.code != 0
    assert len(run.err.strip().splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_real_graphs(device, ok, real_graph, tmp_path):
    for name in ("cnr-2000", "luxembourg-osm"):
        path = real_graph(name)
        assert pq.read_metadata(path).num_rows
        for options in ((), ("--directed",)):
            wanted = build(ok, path, tmp_path / "cpu.dg", *options, *ON_CPU, "--overwrite")
            more = (*options, "--overwrite", "--device", "cuda")
            assert build(ok, path, tmp_path / "gpu.dg", *more) == wanted


# The rules


def searched(src, dst, source: int, max_depth: int | None):
    """Return (offsets, targets, distance, parent) of an undirected search by NumPy, by id."""
    n = int(max(src.max(), dst.max())) + 1
    u, v = np.concatenate([src, dst]), np.concatenate([dst, src])
    keys = np.unique((u << 32 | v)[u != v])
    rows, targets = keys >> 32, (keys & 0xFFFFFFFF).astype(np.uint32)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    distance, parent = np.full(n, -1, np.int32), np.full(n, UNREACHED, np.uint32)
    distance[source] = level = 0
    while max_depth is None or level < max_depth:
        new = (distance[rows] == level) & (distance[targets] < 0)
        if not new.any():
            break
        level += 1
        distance[targets[new]] = level
        parent[targets[new]] = rows[new]
    return offsets, targets, distance, parent


def judged(offsets, targets, distance, parent, source, max_depth) -> check.Violations:
    """Return the violations that the CPU finds."""
    violations = check.Violations()
    check.check_tree(distance, parent, source, max_depth, violations)
    joined = np.zeros(len(parent), np.uint8)
    rows = np.repeat(np.arange(len(parent), dtype=np.uint32), np.diff(offsets))
    check.check_edges(rows, targets, distance, parent, max_depth, joined, violations)
    check.check_joined(parent, joined, violations)
    return violations


def nearest(distance, level: int) -> int:
    return int(np.flatnonzero(distance == level)[-1])


def no_change(distance, parent, source):
    pass


def source_with_parent(distance, parent, source):
    parent[source] = nearest(distance, 1)


def orphan(distance, parent, source):
    parent[nearest(distance, 2)] = UNREACHED


def cycle(distance, parent, source):
    v = nearest(distance, 2)
    parent[parent[v]] = v


def wrong_level(distance, parent, source):
    distance[nearest(distance, 2)] = 3


def edge_too_long(distance, parent, source):
    distance[distance == 2] = 4


def left_out(distance, parent, source):
    v = int(np.flatnonzero((distance > 0) & ~np.isin(np.arange(len(parent)), parent))[0])
    distance[v], parent[v] = -1, UNREACHED


def parent_apart(distance, parent, source):
    v = nearest(distance, 3)
    others = np.flatnonzero(distance == 2)
    parent[v] = others[others != parent[v]][0]


def second_root(distance, parent, source):
    distance[nearest(distance, 2)] = 0


PLANTED = {
    no_change: set(),
    source_with_parent: {1},
    orphan: {1},
    cycle: {1, 2},
    wrong_level: {2},
    edge_too_long: {2, 3},
    left_out: {4},
    parent_apart: {5},
    second_root: {2},
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_planted_violations_are_found(device, plant, wide, again):
    """Planted violations are found; wide: distances of 32 bits and offsets of 64."""
    for seed in range(4):
        src, dst = random_edges(seed, 4000, 9000)
        src, dst = np.append(src, np.zeros(3000, np.int64)), np.append(dst, np.arange(3000, 6000))
        max_depth = 4 if seed == 3 else None
        source = int(src[0])
        offsets, targets, distance, parent = searched(src, dst, source, max_depth)
        plant(distance, parent, source)
        wanted = judged(offsets, targets, distance, parent, source, max_depth)
        broken = {rule for rule, count in wanted.count.items() if count}
        assert PLANTED[plant] <= broken
        narrow = np.where(distance < 0, 255, distance).astype(np.uint8)
        starts, ends, levels, parents = to_device(
            device,
            offsets.astype(np.uint64 if wide else np.uint32),
            targets,
            distance if wide else narrow,
            parent,
        )
        violations = gpu_check.check(device, Rows(starts, ends), levels, parents, source, max_depth)
        assert violations.count == wanted.count
        assert violations.example == wanted.example
        rows = np.arange(len(parent), dtype=np.uint64 if wide else np.uint32)
        reached = distance >= 0
        reached_sums = gpu_check.reached(device, levels, to_device(device, rows)[0])
        assert reached_sums == (np.count_nonzero(reached), rows[reached].sum())


def test_a_parent_that_is_no_vertex(device):
    offsets, targets, distance, parent = searched(*random_edges(1, 50, 300), 0, None)
    v = nearest(distance, int(distance.max()))  # nobody's parent
    parent[v] = len(parent) + 1000
    narrow = np.where(distance < 0, 255, distance).astype(np.uint8)
    starts, ends, levels, parents = to_device(
        device, offsets.astype(np.uint32), targets, narrow, parent
    )
    violations = gpu_check.check(device, Rows(starts, ends), levels, parents, 0)
    assert violations.count == {1: 1, 2: 1, 3: 0, 4: 0, 5: 1}
    assert violations.example == {1: (v,), 2: (v,), 5: (v, len(parent) + 1000)}
