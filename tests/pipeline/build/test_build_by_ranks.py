"""Builds across ranks with a device each: the CPU's bytes, whatever the number of ranks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu import peer_memory
from delegraph.kernels.gpu.device import DeviceMemoryError
from delegraph.partition.disk.work import begin_work
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.build import ranks as rank_build
from delegraph.pipeline.build.build import begin, open_pool, purpose_of
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.ranks.communicator import Communicator, ThreadGroup, telling_others
from delegraph.pipeline.run.resources import Resources
from support.graphs import SHAPES, random_edges
from support.marks import mostly_slow, slow
from support.outputs import device_of, digest

LAYOUTS = {
    "one": {},
    "delegates": {"partitions": 3},
    "directed": {"partitions": 2, "directed": True, "threshold": 6},
    "random": {"partitions": 4, "order": "random"},
    "2d": {"partitions": 6, "layout": "2d"},
    "1d": {"partitions": 3, "layout": "1d", "directed": True, "order": "none"},
}


def build(path: Path, output: Path, ranks: int, limit: int | None = None, **options) -> None:
    """Build by several ranks that share a device: the host carries messages between ranks."""
    chosen = BuildOptions(**options)
    edges = open_edges(path, "src", "dst")
    with (
        begin_work(output, purpose_of(edges, chosen)) as work,
        open_pool(edges, chosen, 2, Resources(), None) as (executor, budget),
    ):
        run = begin(edges, chosen, executor, budget, work, through_files=True)
        job = rank_build.job_of(run, ranks, 2, Resources(device="cuda", device_memory_limit=limit))

        def one(communicator: Communicator) -> rank_build.Share:
            with telling_others(communicator.rank, communicator):
                job.get_ready(communicator.rank, ranks, threads=1)
                return job.run(communicator, Team(1))

        with ThreadPoolExecutor(ranks) as pool:
            shares = list(pool.map(one, ThreadGroup(ranks).communicators))
        rank_build.finish(run, shares)
        work.publish("store", overwrite=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", ["two vertices", "self-loop", "star", "clique", "random"])
def test_the_same_bytes(device, edge_list, tmp_path, monkeypatch, shape, layout):
    monkeypatch.setattr(peer_memory, "PIECE_BYTES", 1 << 16)  # sent in some pieces
    path = edge_list(*SHAPES[shape], row_group_size=50_000)
    delegraph.build(path, tmp_path / "cpu.dg", device="cpu", **LAYOUTS[layout])
    for ranks in (1, 2, 3):
        build(path, tmp_path / f"{ranks}.dg", ranks, **LAYOUTS[layout])
        assert digest(tmp_path / f"{ranks}.dg") == digest(tmp_path / "cpu.dg")


@pytest.mark.parametrize("layout", mostly_slow(LAYOUTS, "2d"))
@pytest.mark.parametrize("shape", [slow("self-loop"), "random"])
def test_the_same_bytes_emulated(emulated, edge_list, tmp_path, monkeypatch, shape, layout):
    test_the_same_bytes(emulated[0], edge_list, tmp_path, monkeypatch, shape, layout)


def test_ids_that_need_a_dictionary(device, edge_list, tmp_path):
    src, dst = random_edges(5, 3000, 50_000)
    path = edge_list([f"v{i * 7}" for i in src], [f"v{i * 7}" for i in dst])
    delegraph.build(path, tmp_path / "cpu.dg", device="cpu", partitions=2)
    build(path, tmp_path / "ranks.dg", 2, partitions=2)
    assert digest(tmp_path / "ranks.dg") == digest(tmp_path / "cpu.dg")


def test_shards_of_many_ranks(device, edge_list, tmp_path):
    """Ranks build long rows and more shards than there are ranks."""
    more = random_edges(7, 1 << 20, 1 << 22)
    src = np.concatenate([np.zeros(1 << 21, np.int64), more[0]])
    dst = np.concatenate([np.arange(1, (1 << 21) + 1), more[1]])
    path = edge_list(src, dst, row_group_size=1 << 19)
    delegraph.build(path, tmp_path / "cpu.dg", device="cpu", directed=True)
    build(path, tmp_path / "ranks.dg", 3, directed=True)
    assert digest(tmp_path / "ranks.dg") == digest(tmp_path / "cpu.dg")


def test_too_little_room(device, edge_list, tmp_path):
    path = edge_list(*SHAPES["random"])
    with pytest.raises(Exception, match="only 1 MB of memory may be used") as raised:
        build(path, tmp_path / "no.dg", 2, limit=10**6)
    assert isinstance(raised.value.__cause__, DeviceMemoryError)
    assert not (tmp_path / "no.dg").exists()


@pytest.mark.parametrize("layout", ["one", "delegates", "directed", "2d"])
def test_workers(two_devices, ok, edge_list, tmp_path, layout):
    path = edge_list(*random_edges(9, 30_000, 600_000), row_group_size=100_000)
    shape = LAYOUTS[layout]
    flags = [word for name, value in shape.items() for word in (f"--{name}", value)]
    flags = [str(word) for word in flags if word is not True]
    ok("build", path, "-o", tmp_path / "cpu.dg", "--device", "cpu", *flags)
    for workers in (1, 2):
        on = ("--device", "cuda", "--workers", workers)
        run = ok("build", path, "-o", tmp_path / f"{workers}.dg", *flags, *on)
        assert f"built on {workers} x " in run.err
        assert digest(tmp_path / f"{workers}.dg") == digest(tmp_path / "cpu.dg")
        assert device_of(tmp_path / f"{workers}.dg").startswith(f"{workers} x ")


def test_workers_with_too_little_room(two_devices, ok, edge_list, tmp_path):
    path = edge_list(*SHAPES["random"])
    ok("build", path, "-o", tmp_path / "cpu.dg", "--device", "cpu")
    on = ("--device", "cuda", "--workers", 2, "--device-memory-limit", "1MB")
    run = ok("build", path, "-o", tmp_path / "graph.dg", *on)
    assert "built on the CPU: only 1 MB of memory may be used" in run.err
    assert digest(tmp_path / "graph.dg") == digest(tmp_path / "cpu.dg")
