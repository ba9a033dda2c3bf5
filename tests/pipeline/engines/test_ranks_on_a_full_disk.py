"""Results that ranks save for the client: a full disk is named, and no output is left."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines.ranks.result import Part, gather, save_whole

VERTICES = 20_000


@pytest.mark.slow
def test_it_fills_while_ranks_save(ok, edge_list, tmp_path):
    """A disk that fills while ranks save is named; a limit on the size of files, which workers
    inherit, stands for the disk.
    """
    path = edge_list(np.zeros(VERTICES, np.int64), np.arange(1, VERTICES + 1))
    ok("build", path, "-o", tmp_path / "graph.dg", "--partitions", 2)
    out = tmp_path / "out"
    line = ("bfs", tmp_path / "graph.dg", "--source", 0, "-o", out, "--workers", 2)
    command = [sys.executable, "-m", "delegraph", *map(str, line)]
    limits = (30_000, 30_000)
    run = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "no space left to write" in run.stderr
    assert "bytes are needed" in run.stderr
    assert "Traceback" not in run.stderr
    assert not out.exists()


def test_too_little_room_is_told_beforehand(ok, delegraph, edge_list, tmp_path, monkeypatch):
    path = edge_list(np.zeros(VERTICES, np.int64), np.arange(1, VERTICES + 1))
    ok("build", path, "-o", tmp_path / "graph.dg", "--partitions", 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=8 * VERTICES))
    out = tmp_path / "out"
    run = delegraph("bfs", tmp_path / "graph.dg", "--source", 0, "-o", out, "--workers", 2)
    assert run.code == 1
    assert "bytes are needed there, but 160,000 are free" in run.err
    assert {path.name for path in tmp_path.iterdir()} == {
        *("edges.parquet", "graph.dg", "graph.dg.run.json")
    }


def test_what_was_saved_is_whole(ok, edge_list, tmp_path):
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    distance, parent = np.arange(3, dtype=np.int32), np.arange(3, dtype=np.uint32)
    save_whole(tmp_path, Part(distance, parent)._asdict())
    arrays = gather(open_store(tmp_path / "graph.dg"), tmp_path)
    assert [array.dtype for array in arrays] == [np.int32, np.uint32]
    assert np.array_equal(arrays, [distance, parent])
