"""A replaced output: the old one or the new one stands at its path at any time."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest

from delegraph.partition.disk import outputs
from delegraph.partition.disk.work import begin_work, clean_up
from delegraph.partition.errors import DelegraphError
from support.failing import Failing

CALLS = [
    (outputs, "write_file"),
    (outputs, "sync_to_disk"),
    (outputs, "_exchange"),
    (os, "rename"),
    (os, "replace"),
    (os, "chmod"),
]
"""Functions that ``publish`` calls and that change something on disk."""


class Killed(BaseException):
    """An exception that stands for a kill: none of delegraph's code handles it."""


def store(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text('{"format": "delegraph store"}' + content)


def overwrite(out: Path, scratch: Path | None = None) -> bool:
    """Replace the output; return whether the run reused steps that an earlier attempt had
    finished.
    """
    with begin_work(out, {}, scratch=scratch) as work:
        before = work.began

        def write():
            store(work.output, "new")
            (work.scratch / "some").touch()
            return {}

        work.step("write", write)
        work.publish("store", overwrite=True, record=b"{}")
        return before


def content(out: Path) -> str:
    return (out / "manifest.json").read_text().rpartition("}")[2]


def killed_at(number: int, monkeypatch, out: Path, contents: list[str]) -> bool:
    """Return whether the run is killed before its call of the given number; ``False``: the run
    makes fewer calls.

    contents: gets what stands at ``out`` before each call.
    """
    calls = 0

    def counting(real):
        def call(*args, **named):
            nonlocal calls
            contents.append(content(out) if out.exists() else "nothing")
            if calls == number:
                raise Killed
            calls += 1
            return real(*args, **named)

        return call

    with monkeypatch.context() as patched:
        for module, name in CALLS:
            patched.setattr(module, name, counting(getattr(module, name)))
        patched.setattr("delegraph.partition.disk.work.Work.discard", lambda work: None)
        try:
            overwrite(out)
        except Killed:
            return True
        return False


@pytest.mark.parametrize("exchanges", [True, False])
def test_killed_at_any_call_while_it_is_replaced(tmp_path, monkeypatch, exchanges):
    """A run after a kill reuses finished steps, the new output appears, and nothing else is
    left.
    """
    out = tmp_path / "out"
    if not exchanges:
        monkeypatch.setattr(outputs, "_exchange", lambda one, other: False)
    number, contents = 0, []
    while True:
        out.mkdir()
        store(out, "old")
        if not killed_at(number, monkeypatch, out, contents):
            break
        replaced = out.exists() and content(out) == "new"
        assert overwrite(out) != replaced or number == 0  # nothing was finished by then
        assert content(out) == "new"
        assert {path.name for path in tmp_path.iterdir()} == {"out", "out.run.json"}
        (out / "manifest.json").unlink()
        out.rmdir()
        number += 1
    assert number > 5
    assert set(contents) == ({"old", "new"} if exchanges else {"old", "new", "nothing"})


def test_what_was_removed_after_a_kill_does_not_come_back(tmp_path, monkeypatch):
    """An old output that a killed run replaced is not restored after the user has removed the new
    one.
    """
    out = tmp_path / "out"
    out.mkdir()
    store(out, "old")
    with monkeypatch.context() as patched:
        patched.setattr("delegraph.partition.disk.work.Work.discard", lambda work: None)
        patched.setattr(outputs, "restore_replaced", lambda *args: None)
        patched.setattr("delegraph.partition.disk.work.Work._publish_record", lambda work: None)
        overwrite(out)
    (out / "manifest.json").unlink()
    out.rmdir()
    assert not overwrite(out)
    assert content(out) == "new"


@pytest.mark.slow
@pytest.mark.parametrize("replaces", [True, False])
def test_an_error_at_each_call(tmp_path, monkeypatch, replaces):
    """The attempt after an error ends well and leaves nothing, even though the failed attempt had
    its scratch elsewhere.
    """
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    number = 0
    while True:
        number += 1
        if replaces:
            out.mkdir()
            store(out, "old")
        with (
            Failing(monkeypatch, tmp_path, number, errno.EIO) as failing,
            contextlib.suppress(OSError, DelegraphError),
        ):
            overwrite(out, scratch)
        if failing.calls < number:
            break
        assert not replaces or content(out) in ("old", "new")
        if out.exists() and content(out) == "new":  # it would be told so
            clean_up(out, {}, scratch)
        else:
            overwrite(out, scratch)
        assert content(out) == "new"
        assert {path.name for path in tmp_path.iterdir()} == {"out", "out.run.json", "scratch"}
        assert not list(scratch.iterdir()), number
        for path in (out / "manifest.json", tmp_path / "out.run.json"):
            path.unlink()
        out.rmdir()
    assert number > 30
