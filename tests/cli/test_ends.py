"""Ends of commands in bad surroundings: one line, and the promised exit code."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from delegraph.cli import main
from delegraph.pipeline.run.execute import Executor


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """Make every folder for compiled kernels unwritable but the temporary one, which is
    returned.
    """
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_cache_of_our_own(nowhere):
    main._find_cache()
    place = Path(os.environ.pop("NUMBA_CACHE_DIR"))
    assert place.parent == nowhere
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("whose", ["a link", "writable"])
def test_a_cache_that_others_made_is_left(nowhere, capsys, whose):
    place = nowhere / f"delegraph-{os.getuid()}"
    (nowhere / "made").mkdir(mode=0o700)
    if whose == "a link":
        place.symlink_to(nowhere / "made")
    else:
        place.mkdir()
        place.chmod(0o777)
    main._find_cache()
    assert "NUMBA_CACHE_DIR" not in os.environ
    assert f"and the next run compiles again: {place} is in the way" in capsys.readouterr().err


def test_an_option_given_twice(delegraph):
    run = delegraph("bfs", "graph", "--source", 1, "--source", 2, "-o", "out")
    assert run.code == 2
    assert "--source is given twice" in run.err
    run = delegraph("generate", "uniform", "--scale", 1, "--scale", 2, "-o", "out")
    assert run.code == 2
    assert "--scale is given twice" in run.err


@pytest.mark.parametrize("line", ["info none --json", "info --json --no-such-option"])
def test_errors_are_documents_too(delegraph, line):
    run = delegraph(*line.split())
    assert run.code == 2
    assert run.json["exit_code"] == 2
    assert run.json["error"] in run.err


def test_what_is_there_already_says_so(ok, edge_list, tmp_path):
    edges = edge_list([0, 1], [1, 2])
    for line in (
        ("generate", "uniform", "--scale", 2),
        ("build", edges),
        ("bfs", edges, "--source", 0),
    ):
        line = (*line, "-o", tmp_path / line[0])
        first, second = ok(*line, "--json"), ok(*line, "--json")
        assert second.json == {**first.json, "already": True}
        assert first.json["already"] is False
        assert "already" in ok(*line).err


def test_another_edge_list_is_not_there_already(ok, delegraph, tmp_path):
    line = ("generate", "uniform", "-o", tmp_path / "edges", "--scale")
    ok(*line, 2)
    assert delegraph(*line, 3).code == 2
    (tmp_path / "edges.run.json").unlink()
    assert delegraph(*line, 2).code == 2


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in which DELEGRAPH stands for the command."""
    line = line.replace("DELEGRAPH", f"{sys.executable} -m delegraph")
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, errors="backslashreplace"
    )


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("DELEGRAPH info edges.parquet >&-", 2, "stdout is closed: redirect it to /dev/null"),
        ("DELEGRAPH info edges.parquet > /dev/full", 1, "No space left"),
        ("DELEGRAPH info edges.parquet 2>&- <&-", 0, ""),
        ("DELEGRAPH info none 2> /dev/full", 2, ""),
        (r"DELEGRAPH info $(printf 'e\377') 2>&1", 2, r"e\udcff: no such file"),
        (r"LC_ALL=C DELEGRAPH info $(printf 'e\377') 2>&1", 2, r"e\udcff: no such file"),
        (r"DELEGRAPH generate uniform --scale 2 -o $(printf 'o\377')", 2, "not UTF-8"),
        (r"mv edges.parquet $(printf 'e\377.parquet'); DELEGRAPH info .", 2, "not UTF-8"),
        (
            r"DELEGRAPH bfs edges.parquet --src $(printf 's\377') --source 1 -o o",
            2,
            "no column named",
        ),
        ("umask 777; DELEGRAPH build edges.parquet -o ../o", 2, "umask"),
    ],
)
def test_surroundings(edge_list, tmp_path, line, code, message):
    edge_list([0, 1], [1, 2], name="in/edges.parquet")
    run = shell(line, tmp_path / "in")
    assert run.returncode == code, run.stderr
    assert message in run.stderr or (message in run.stdout and "2>&1" in line)
    assert len(run.stderr.splitlines()) == bool(message) - ("2>&1" in line)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert len(list((tmp_path / "in").iterdir())) == 1


@pytest.mark.parametrize(
    "line", ["info X", "bench X", "validate X X", "build X -o o", "build . -o X"]
)
def test_a_name_that_is_too_long(delegraph, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    run = delegraph(*line.replace("X", "x" * 300).split())
    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_no_more_threads(delegraph, edge_list, tmp_path, monkeypatch):
    def start(*args, **named):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Executor, "_run", start)
    run = delegraph("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "o")
    assert run.code == 1
    assert "the system cannot start more threads" in run.err
    assert len(run.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def test_too_few_descriptors(delegraph, edge_list, tmp_path, monkeypatch):
    edges = edge_list([0, 1], [1, 2])
    real = os.open

    def few(path, *args, **named):
        if ".o.work" in str(path):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return real(path, *args, **named)

    monkeypatch.setattr(os, "open", few)
    run = delegraph("build", edges, "-o", tmp_path / "o")
    assert run.code == 1
    assert "the limit on open files is too low" in run.err
    assert [path.name for path in tmp_path.iterdir()] == ["edges.parquet"]


def test_causes_that_go_in_a_circle(delegraph, monkeypatch):
    """An exception that is its own cause by way of another one is told in one line: a thread's
    exception may be raised again while a consequence of the exception is handled.
    """
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    monkeypatch.setattr("delegraph.cli.main._find_cache", Mock(side_effect=first))
    assert delegraph("info", "nothing").err.startswith("delegraph: ValueError: one")


def test_too_few_descriptors_for_workers(delegraph, tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (79, 79))
    run = delegraph("build", tmp_path, "-o", tmp_path / "o", "--workers", 2)
    assert run.code == 1
    assert "--workers 2 needs 80 open files, but the limit is 79" in run.err


SWALLOWED = """
import gc, os, signal, time
from delegraph.cli import main

def interrupt(phase, info):
    gc.callbacks.remove(interrupt)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
main._hear_signals()
gc.callbacks.append(interrupt)
try:
    gc.collect()
    time.sleep(10)
except KeyboardInterrupt:
    print("heard")
"""


def test_an_interrupt_that_python_swallows():
    """An interrupt in code that the garbage collector calls raises nothing."""
    run = [sys.executable, "-c", SWALLOWED]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("heard\n", "")
