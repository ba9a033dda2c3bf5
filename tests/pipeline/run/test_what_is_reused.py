"""Files that an earlier run left are reused only if they still are what their record says."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.disk.scratch import FileScratch, whole
from delegraph.pipeline.build import build, prepare
from support.graphs import random_edges
from support.outputs import digest, distances_of


@pytest.fixture
def twins(tmp_path) -> tuple[Path, Path]:
    """Write two edge lists of equal sizes, footers and times, whose rows differ."""
    paths = tmp_path / "one.parquet", tmp_path / "two.parquet"
    src, dst = random_edges(7, 500, 3000)
    dst[:2] = 0, 499  # the bounds stay
    other = dst.copy()
    other[2:] = other[:1:-1]
    for path, targets in zip(paths, (dst, other), strict=True):
        table = pa.table({"src": src, "dst": targets})
        pq.write_table(table, path, compression="none", use_dictionary=False)
    one, two = (pq.ParquetFile(path).metadata for path in paths)
    assert one.row_group(0).to_dict() == two.row_group(0).to_dict()
    return paths


def replace(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def test_a_result_of_other_edges_is_not_current(ok, delegraph, twins, tmp_path):
    edges = tmp_path / "edges.parquet"
    replace(edges, twins[0])
    args = ("bfs", edges, "--source", 7, "-o", tmp_path / "out")
    ok(*args)
    assert "already" in ok(*args).err
    replace(edges, twins[1])
    run = delegraph(*args)
    assert run.code == 2
    assert "from another command: the graph was" in run.err
    ok(*args, "--overwrite")
    ok("bfs", twins[1], "--source", 7, "-o", tmp_path / "wanted")
    assert distances_of(tmp_path / "out") == distances_of(tmp_path / "wanted")


def test_a_result_of_another_store_is_not_current(ok, delegraph, twins, tmp_path):
    store, args = tmp_path / "graph.dg", ("--source", 7, "-o", tmp_path / "out")
    ok("build", twins[0], "-o", store)
    ok("bfs", store, *args)
    ok("build", twins[1], "-o", store, "--overwrite")
    assert delegraph("bfs", store, *args).code == 2


def test_a_checkpoint_of_another_store_is_not_taken(ok, delegraph, twins, tmp_path, monkeypatch):
    from delegraph.pipeline.algorithms import run

    store, args = tmp_path / "graph.dg", ("--source", 7, "--checkpoint", 0)
    ok("build", twins[0], "-o", store)
    monkeypatch.setattr(run, "write", interrupt)
    assert delegraph("bfs", store, *args, "-o", tmp_path / "out").code == 130
    monkeypatch.undo()
    ok("build", twins[1], "-o", store, "--overwrite")
    outcome = delegraph("bfs", store, *args, "-o", tmp_path / "out")
    assert outcome.code == 2
    assert "the graph was" in outcome.err


def interrupt(*args):
    raise KeyboardInterrupt


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-17] ^= 1  # the last byte of the values: a digest of 16 is behind them
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def empty(path: Path) -> None:
    path.write_bytes(b"")


STRING_IDS, INTEGER_IDS = (lambda id: f"vertex {id}"), (lambda id: id * 10**12)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink])
@pytest.mark.parametrize("ids", [INTEGER_IDS, STRING_IDS], ids=["integers", "strings"])
def test_scratch_that_is_damaged_is_made_anew(ok, delegraph, tmp_path, monkeypatch, ids, damage):
    """A damaged scratch file of a build is made anew, for each file that a build leaves when cut
    off before its last step.
    """
    src, dst = random_edges(2, 300, 2000)
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": list(map(ids, src)), "dst": list(map(ids, dst))}), path)
    ok("build", path, "-o", tmp_path / "wanted.dg", "--partitions", 2)
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    number = 0
    while True:
        args = ("build", path, "-o", tmp_path / "graph.dg", "--partitions", 2)
        with monkeypatch.context() as cut_off:
            cut_off.setattr(build, "write_store", interrupt)
            assert delegraph(*args).code == 130
        files = sorted((tmp_path / ".graph.dg.work" / "scratch").glob("*"))
        assert files
        if number == len(files):
            break
        damage(files[number])
        ok(*args)
        assert digest(tmp_path / "graph.dg") == digest(tmp_path / "wanted.dg"), files[number]
        assert not (tmp_path / ".graph.dg.work").exists()
        shutil.rmtree(tmp_path / "graph.dg")
        number += 1


def test_a_seal_tells_every_damage(tmp_path):
    scratch = FileScratch(str(tmp_path))
    for values in (np.arange(100), np.empty(0, np.uint32), np.ones((3, 4))):
        scratch.save("values", values)
        path = scratch.path("values")
        assert whole(path)
        assert np.array_equal(scratch.load("values"), values)
        data = path.read_bytes()
        for place in range(0, len(data), 7):
            path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
            assert not whole(path)
            path.write_bytes(data[:place])
            assert not whole(path)


def test_what_a_killed_worker_was_writing_is_not_published(ok, edge_list, tmp_path, monkeypatch):
    write = build.write_store

    def write_beside(run, counted):
        (run.work.output / ".nn.targets-0000.npy.partial-17-17").touch()
        return write(run, counted)

    monkeypatch.setattr(build, "write_store", write_beside)
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    assert not list((tmp_path / "graph.dg").rglob(".*"))
