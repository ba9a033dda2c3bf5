"""A full or read-only disk is named in the message of a batch, and no work is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from delegraph.partition.errors import DelegraphError
from delegraph.pipeline.batches.ledger import Entry, open_ledger
from support.graphs import random_edges
from support.outputs import digest

JOBS = """
[defaults]
memory_limit = "600MB"

[[job]]
name = "store"
command = "build"
edges = "edges.parquet"
output = "graph.dg"

[[job]]
name = "parts"
command = "components"
graph = "graph.dg"
output = "parts"
needs = ["store"]

[[job]]
name = "check"
command = "validate"
graph = "graph.dg"
result = "parts"
needs = ["parts"]
"""


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """Mount a disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    line = [mount or "", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if mount is None or subprocess.run(line, capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(disk: Path, spare: int) -> None:
    """Fill the disk but for ``spare`` bytes."""
    facts = os.statvfs(disk)
    with (disk / "filler").open("wb") as file:
        file.write(bytes(facts.f_bavail * facts.f_frsize - spare))


def test_a_ledger_keeps_what_it_had(disk):
    path = disk / "ledger.sqlite"
    before = {"a": Entry("a", "done", "key", attempts=1)}
    with open_ledger(path, write=True) as ledger:
        ledger.put(before["a"])
        fill(disk, 4096)
        with pytest.raises(DelegraphError) as raised:
            ledger.put(*(Entry(f"{number}", "done", error="x" * 99) for number in range(999)))
        assert str(raised.value) == f"{path}: cannot be read or written: database or disk is full"
        assert raised.value.exit_code == 1
        assert ledger.entries() == before
    (disk / "filler").unlink()
    with open_ledger(path, write=True) as ledger:
        assert ledger.entries() == before
        ledger.put(Entry("b", "waiting"))
        assert set(ledger.entries()) == {"a", "b"}


def test_a_ledger_that_may_only_be_read(delegraph, disk, edge_list, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    edge_list([0, 1], [1, 2])
    path = disk / "jobs.toml"
    path.write_text(JOBS.split('[[job]]\nname = "parts"')[0])
    assert delegraph("batch", "run", path).code == 0
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    run = delegraph("batch", "run", path)
    line = f"delegraph: {path} cannot be written: Read-only file system\n"
    assert (run.code, run.err) == (2, line)
    assert delegraph("batch", "status", path).out.startswith("store  done")
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert delegraph("batch", "run", path).err == "store: done already\n"


@pytest.mark.slow
@pytest.mark.parametrize("spare", range(0, 1 << 16, 1 << 13))
def test_a_batch_goes_on_once_there_is_room(
    delegraph, edge_list, tmp_path, monkeypatch, disk, spare
):
    """A batch whose ledger and logs are on a full disk resumes once there is room; its outputs are
    elsewhere. By the spare bytes, the disk is full before the first job, as one begins, or as one
    is done.
    """
    monkeypatch.chdir(tmp_path)
    edge_list(*random_edges(1, 300, 900))
    (disk / "jobs.toml").write_text(JOBS)
    fill(disk, spare)
    run = delegraph("batch", "run", disk / "jobs.toml")
    if run.code:
        assert run.code == 1
        assert run.err.count("delegraph: ") == 1
        assert run.err.splitlines()[-1].endswith("database or disk is full")
    (disk / "filler").unlink()
    stores = [digest(path) for path in tmp_path.glob("graph.dg")]
    run = delegraph("batch", "run", disk / "jobs.toml")
    assert (run.code, run.out) == (0, "3 of 3 jobs done\n"), run.err
    assert stores in ([], [digest(tmp_path / "graph.dg")])
    assert not list(tmp_path.glob(".*"))
