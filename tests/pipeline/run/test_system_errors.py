"""A failing system call is told with its file and the reason; the file is not called damaged."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from delegraph.partition.disk.system_errors import naming_file, raise_failure, read_metadata
from delegraph.partition.errors import DelegraphError, InputError
from support.faulty_calls import OPENING, READING, SYNCING, WRITING, run_faulty
from support.fuzz_faults import faults_of
from support.graphs import random_edges
from support.processes import command


@pytest.fixture
def store(ok, edge_list, tmp_path):
    src, dst = random_edges(1, 60, 300)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg", "--partitions", 2)
    return tmp_path / "graph.dg"


def every(calls: int, most: int) -> list[int]:
    """Return ``most`` numbers of calls, evenly from the first to the last."""
    return sorted({1 + (calls - 1) * i // (most - 1) for i in range(most)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "error"),
    [("bfs", errno.EIO), ("pagerank", errno.ESTALE), ("info", errno.EIO), ("convert", errno.EIO)],
)
def test_reading_a_store(store, tmp_path, what, error):
    rest = {
        "bfs": ["--source", 1, "-o", tmp_path / "out"],
        "pagerank": ["-o", tmp_path / "out"],
        "convert": ["-o", tmp_path / "out.npz"],
    }
    more = [*rest[what], "--overwrite"] if what in rest else []
    kinds = READING, OPENING
    calls = run_faulty((what, store, *more), store, calls=kinds).calls
    assert calls >= 4
    for at in every(calls, 4):
        ended = run_faulty((what, store, *more), store, at, error, kinds)
        assert ended.code in (0, 1), ended.err
        assert not faults_of(ended.code, ended.err, error, store), ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "kind"),
    [("build", WRITING), ("bfs", SYNCING), ("convert", WRITING), ("generate", SYNCING)],
)
def test_writing_an_output(store, tmp_path, what, kind):
    folder = tmp_path / "folder"
    folder.mkdir()
    edges = tmp_path / "edges.parquet"
    line = {
        "build": ("build", edges, "--scratch", folder),
        "bfs": ("bfs", store, "--source", 1, "--checkpoint", 0),
        "convert": ("convert", store),
        "generate": ("generate", "grid", "--width", 9, "--height", 9),
    }[what]
    output = folder / ("out.npz" if what == "convert" else "out")
    line = (*line, "-o", output, "--overwrite")
    calls = run_faulty(line, folder, 0, calls=(kind,)).calls
    for at in every(calls, 4):
        ended = run_faulty(line, folder, at, errno.EIO, (kind,))
        went_on = ended.calls < at  # after what the attempt before had done
        assert ended.code == (0 if went_on else 1), ended.err
        assert not faults_of(ended.code, ended.err, errno.EIO, folder), ended.err


@pytest.mark.slow
def test_a_read_of_arrow_that_fails(store, tmp_path):
    """A failed read by Arrow in a search is told as an error of the system, not as a damaged store;
    one call keeps the test quick.
    """
    line = ("bfs", store, "--source", 1, "-o", tmp_path / "out")
    calls = run_faulty(line, store / "vertices.parquet", 0, calls=(READING,)).calls
    ended = run_faulty(
        (*line, "--overwrite"), store / "vertices.parquet", calls, errno.EIO, (READING,)
    )
    assert ended.code == 1
    assert ended.err == f"delegraph: {store}/vertices.parquet: Input/output error\n"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "Error reading bytes from file. Detail: [errno 5] Input/output error"),
        pa.ArrowInvalid("cut off: [errno 5] Input/output error"),
        OSError(errno.EIO, os.strerror(errno.EIO), "file"),
    ],
)
def test_what_fails_names_its_file(error):
    with pytest.raises(DelegraphError) as raised:
        raise_failure("file", error)
    assert str(raised.value) == "file: Input/output error"
    assert not isinstance(raised.value, InputError)


def test_what_is_there_and_wrong_is_no_failure(tmp_path):
    for error in (
        FileNotFoundError(errno.ENOENT, "gone"),
        pa.ArrowInvalid("no Parquet"),
        OSError("x"),
    ):
        raise_failure("file", error)
    with pytest.raises(OSError, match="No space left on device: 'file'"):
        raise_failure("file", OSError(errno.ENOSPC, "full"))
    with pytest.raises(MemoryError):
        raise_failure("file", pa.ArrowMemoryError("malloc"))
    with pytest.raises(OSError, match="Input/output error: 'file'"), naming_file("file"):
        raise OSError(errno.EIO, "read")
    with pytest.raises(OSError, match="read: 'other'"), naming_file("file"):
        raise OSError(errno.EIO, "read", "other")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_footer_names_all_of_its_path(tmp_path, kind):
    with pytest.raises(OSError, match="No such file") as raised:
        read_metadata(kind(tmp_path / "gone.parquet"))
    assert raised.value.filename == str(tmp_path / "gone.parquet")


def test_stdout_that_is_full(store):
    """A full stdout, as /dev/full always is, ends a command with an error."""
    with open("/dev/full", "w") as full:
        run = subprocess.run(command("info", store), stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1
    assert run.stderr == "delegraph: stdout: No space left on device\n"
