"""Work that a journal, a checkpoint or a record counts as done is read again: damaged parts are
made anew, with a note, or refused where a finished output is damaged.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from delegraph.pipeline.algorithms import bfs_each
from delegraph.pipeline.build import prepare, write_store
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.damage import DAMAGES, damage
from support.graphs import random_edges
from support.marks import mostly_slow
from support.outputs import digest
from support.processes import KILLED_BEFORE_THE_RECORD, command


@pytest.fixture
def graph(edge_list):
    src, dst = random_edges(5, 300, 2000)
    return edge_list(src, dst, "in/edges.parquet")


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.fixture
def searching(ok, delegraph, graph, tmp_path, monkeypatch):
    """End a search from many sources after three saved parts; return its command and its work
    folder.
    """
    src, _ = random_edges(5, 300, 2000)
    ids = ",".join(map(str, np.unique(src)[:250]))  # of four batches
    args = ("bfs", graph, "--sources", ids, "--checkpoint", 0, "-o")
    ok(*args, tmp_path / "whole")
    write = bfs_each.write_rows

    def dying(folder, rows, info, first, step):
        return interrupt() if first == 3 else write(folder, rows, info, first, step)

    with monkeypatch.context() as patched:
        patched.setattr(bfs_each, "write_rows", dying)
        assert delegraph(*args, tmp_path / "out").code == 130
    work = tmp_path / ".out.work"
    assert len(list((work / "output").iterdir())) == 3
    return (*args, tmp_path / "out"), work


@pytest.mark.parametrize("kind", mostly_slow(DAMAGES, "a flipped bit", "removed"))
def test_a_finished_part(ok, searching, tmp_path, kind):
    args, work = searching
    damage(work / "output" / "part-00000.parquet", kind)
    run = ok(*args)
    reason = "is missing" if kind == "removed" else "has changed since it was written"
    assert f"part-00000.parquet {reason}" in run.err
    assert "searched again" in run.err
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert any("part-00000.parquet" in note for note in record["notes"])
    assert not list(tmp_path.glob(".*"))


def test_parts_that_are_whole_are_not_searched_again(ok, searching, tmp_path):
    args, _ = searching
    run = ok(*args)
    assert "source 192" in run.err
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


@pytest.mark.parametrize("name", ["journal.json", "scratch/checkpoint/search.json"])
def test_a_journal_and_a_checkpoint(ok, searching, tmp_path, name):
    args, work = searching
    damage(work / name, "a flipped bit")
    run = ok(*args)
    assert "damaged" in run.err
    assert name.rpartition("/")[2] in run.err
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("where", ["output", "scratch"])
def test_files_of_a_build(ok, delegraph, graph, tmp_path, monkeypatch, where, kind):
    args = ("build", graph, "--partitions", 2, "-o")
    ok(*args, tmp_path / "whole.dg")
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    with monkeypatch.context() as patched:
        patched.setattr(write_store, "_write_rest", interrupt)
        assert delegraph(*args, tmp_path / "graph.dg").code == 130
    folder = tmp_path / ".graph.dg.work" / where
    files = sorted(path for path in folder.rglob("*.npy") if path.stat().st_size)
    damage(files[0], kind)
    run = ok(*args, tmp_path / "graph.dg")
    missing_scratch = (where, kind) == ("scratch", "removed")  # which may not be needed any more
    assert missing_scratch or files[0].name in run.err
    assert missing_scratch or "run again" in run.err
    assert digest(tmp_path / "graph.dg") == digest(tmp_path / "whole.dg")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_store_in_the_scratch_of_a_search(ok, delegraph, graph, tmp_path, monkeypatch, kind):
    args = ("bfs", graph, "--source", 0, "--partitions", 2, "-o")
    ok(*args, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "load", interrupt)
        assert delegraph(*args, tmp_path / "out").code == 130
    store = tmp_path / ".out.work" / "scratch" / "graph.dg"
    damage(next(store.glob("partition-0000/*.npy")), kind)
    run = ok(*args, tmp_path / "out")
    assert "damaged" in run.err
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")


def test_the_record_of_an_output_that_appears(ok, delegraph, graph, tmp_path):
    """A record that is damaged after a kill between output and record is refused, and not
    published.
    """
    args = ("bfs", graph, "--source", 0, "-o", tmp_path / "out")
    line = command(*args)
    killed = subprocess.run([line[0], "-c", KILLED_BEFORE_THE_RECORD, *line[3:]])
    assert killed.returncode == -signal.SIGKILL
    (record,) = (tmp_path / ".out.work").glob("record-*.json")
    record.write_bytes(record.read_bytes().replace(b'"reached": ', b'"reached": 9'))
    run = delegraph(*args)
    assert run.code == 2
    assert not (tmp_path / "out.run.json").exists()
    ok(*args, "--overwrite")
    assert not list(tmp_path.glob(".*"))


WHOLE = {
    "bfs": lambda graph, out: ("bfs", graph, "--source", 0, "-o", out),
    "generate": lambda graph, out: ("generate", "kronecker", "--scale", 6, "-o", out),
    "convert": lambda graph, out: ("convert", graph.with_name("edges.txt"), "-o", out),
    "text": lambda graph, out: ("convert", graph.with_name("result"), "-o", f"{out}.txt"),
    "build": lambda graph, out: ("build", graph, "-o", out),
}


@pytest.mark.parametrize("what", WHOLE)
def test_an_output_that_is_there_already(ok, delegraph, graph, tmp_path, what):
    """A repeated command says that its output is done already, unless a bit of the output has
    changed.
    """
    graph.with_name("edges.txt").write_text("1 2\n2 3\n")
    ok("bfs", graph, "--source", 0, "-o", graph.with_name("result"))
    args = WHOLE[what](graph, tmp_path / "out")
    ok(*args)
    place = Path(args[-1])
    files = [path for path in sorted(place.rglob("*.*")) if path.name != "manifest.json"]
    file = next((path for path in files if path.is_file()), place)
    whole, before = file.read_bytes(), os.stat(file)
    assert "already" in ok(*args).err
    data = bytearray(whole)
    data[20] ^= 1  # not in what the file says of itself
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    run = delegraph(*args)
    assert run.code == 2, run.err
    assert file.name in run.err
    ok(*args, "--overwrite")
    assert file.read_bytes() == whole
    assert "already" in ok(*args).err


def test_an_output_of_a_batch(ok, delegraph, graph, tmp_path):
    jobs = tmp_path / "jobs.toml"
    job = f'command = "bfs"\ngraph = "{graph}"\nsource = 0\noutput = "{tmp_path}/out"\n'
    jobs.write_text(f'[[job]]\nname = "hops"\n{job}')
    ok("batch", "run", jobs)
    file = tmp_path / "out" / "part-00000.parquet"
    assert "done already" in ok("batch", "run", jobs).err
    damage(file, "a flipped bit")
    run = ok("batch", "plan", jobs)
    assert "has changed since the job wrote it" in run.out + run.err


def test_a_result_in_an_object_store(ok, delegraph, graph, bucket):
    out = f"{bucket.url}/out"
    args = ("bfs", graph, "--source", 0, "-o", out)
    ok(*args)
    assert "already" in ok(*args).err
    (key,) = [key for key in bucket.names() if "part-00000" in key]
    data = bytearray(bucket.get(key))
    data[20] ^= 1
    bucket.put(key, bytes(data))
    run = delegraph(*args)
    assert run.code == 2, run.err
    assert "has changed since it was written" in run.err
