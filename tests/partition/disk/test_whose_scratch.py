"""Scratch that a journal names is removed only where it is of the same output."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from delegraph.partition.disk import work as works
from delegraph.partition.disk.work import Work, begin_work

PURPOSE = {"input": "a"}


def cut_off(output: Path, scratch: Path | None) -> Path:
    """Begin, and be interrupted after a step; the file that it has left in scratch."""
    kept = Work(output, scratch, PURPOSE).scratch / "kept"
    with (
        contextlib.suppress(KeyboardInterrupt),
        begin_work(output, PURPOSE, scratch=scratch) as work,
    ):
        work.step("one", lambda: touch(kept))
        raise KeyboardInterrupt
    assert kept.exists()
    return kept


def touch(path: Path) -> dict[str, str]:
    path.touch()
    return {}


def steps_found(output: Path, scratch: Path | None, restart: bool = False) -> bool:
    """Whether the next attempt, which ends well, has steps to go on from."""
    with begin_work(output, PURPOSE, scratch=scratch, restart=restart) as work:
        return work.began


def work_folder(output: Path) -> Path:
    return output.with_name(f".{output.name}.work")


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path, Path]:
    """Of an output, of what is copied, of scratch."""
    places = tmp_path / "first", tmp_path / "second", tmp_path / "scratch"
    for place in places:
        place.mkdir()
    return places


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_a_copied_work_folder(folders, elsewhere, restart):
    """Leaves the first one's scratch alone; with its own along, it can go on."""
    first, second, place = folders
    scratch = place if elsewhere else None
    kept = cut_off(first / "out", scratch)
    shutil.copytree(work_folder(first / "out"), work_folder(second / "out"))
    goes_on = not elsewhere and not restart
    assert steps_found(second / "out", scratch, restart) == goes_on
    assert kept.exists()
    assert steps_found(first / "out", scratch)
    assert not kept.exists()


def test_our_own_is_removed(folders, tmp_path):
    """By an attempt that has its scratch in another place."""
    first, _, place = folders
    kept = cut_off(first / "out", place)
    assert not steps_found(first / "out", None, restart=True)
    assert not kept.parent.exists()


@pytest.mark.parametrize("wrong", ["name", "owner", "no mark", "mark", "a link"])
def test_what_is_not_ours_is_left(folders, monkeypatch, wrong):
    first, second, place = folders
    kept = cut_off(first / "out", place)
    scratch = kept.parent
    named = second / ("other" if wrong == "name" else scratch.name)
    if wrong == "a link":
        named.symlink_to(scratch)
    else:
        shutil.copytree(scratch, named)
    if wrong == "owner":
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    if wrong == "no mark":
        (named / works._MARK).unlink()
    if wrong == "mark":
        (named / works._MARK).write_text(f"{second}/out")
    journal = Work(first / "out", place, PURPOSE)
    journal.scratch = named
    journal._write_journal()
    assert not steps_found(first / "out", None, restart=True)
    assert (named / "kept").exists()
