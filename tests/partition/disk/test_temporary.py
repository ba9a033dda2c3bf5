"""Temporary folders are removed with their process, however the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.partition.disk.temporary import TemporaryFolder

HOLDING = """
import sys, time
from delegraph.partition.disk.temporary import TemporaryFolder
folder = TemporaryFolder(parent=sys.argv[1])
open(folder.name + "/edges", "w").close()
print(folder.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Start a process that has a temporary folder, and give the process and the path of the
    folder.
    """
    line = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_it_is_gone_at_the_end(tmp_path):
    with TemporaryFolder(parent=tmp_path) as name:
        Path(name, "edges").touch()
    folder = TemporaryFolder("delegraph-other-", tmp_path)
    assert Path(folder.name).is_dir()
    del folder
    assert not list(tmp_path.iterdir())


def test_that_of_a_killed_process_goes_with_the_next(holder, tmp_path):
    process, folder = holder
    with TemporaryFolder(parent=tmp_path):
        assert (folder / "edges").exists()  # it lives
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "edges").exists()
    with TemporaryFolder(parent=tmp_path) as name:
        assert os.listdir(tmp_path) == [os.path.basename(name)]


def test_what_is_not_marked_as_ours_stays(tmp_path):
    for name, mode in (("delegraph-1000", 0o700), ("delegraph-open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "delegraph-open" / ".delegraph-lock").touch()
    (tmp_path / "delegraph-link").symlink_to(tmp_path / "delegraph-open")
    TemporaryFolder(parent=tmp_path).cleanup()
    assert len(list(tmp_path.glob("*/thesis.tex"))) == 3


def test_a_fork_does_not_remove_it(tmp_path):
    with TemporaryFolder(parent=tmp_path) as name:
        subprocess.run(
            [sys.executable, "-c", FORKING, str(tmp_path)], check=True, capture_output=True
        )
        assert Path(name).is_dir()
    assert not list(tmp_path.iterdir())


FORKING = """
import os, sys
from delegraph.partition.disk.temporary import TemporaryFolder
folder = TemporaryFolder(parent=sys.argv[1])
child = os.fork()
if child == 0:
    sys.exit()  # which runs what is to run at the end
os.waitpid(child, 0)
assert os.path.isdir(folder.name)
"""
