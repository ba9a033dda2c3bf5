"""Work in progress belongs to one run and user: files of other owners are neither used nor
removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from delegraph.partition.disk import work as works
from delegraph.partition.disk.work import Work, begin_work
from delegraph.partition.errors import InputError

PURPOSE = {"input": "a"}


def cut_off(output: Path, scratch: Path | None) -> Path:
    """Begin work, interrupt it after a step, and return the file that the step has left in
    scratch.
    """
    scratch_file = Work(output, scratch, PURPOSE).scratch / "kept"
    with (
        contextlib.suppress(KeyboardInterrupt),
        begin_work(output, PURPOSE, scratch=scratch) as work,
    ):
        work.step("one", lambda: touch(scratch_file))
        raise KeyboardInterrupt
    assert scratch_file.exists()
    return scratch_file


def touch(path: Path) -> dict[str, str]:
    path.touch()
    return {}


def steps_found(output: Path, scratch: Path | None, restart: bool = False) -> bool:
    """Return whether the next attempt, which ends well, has steps to resume from."""
    with begin_work(output, PURPOSE, scratch=scratch, restart=restart) as work:
        return work.began


def work_folder(output: Path) -> Path:
    return output.with_name(f".{output.name}.work")


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path, Path]:
    """Make folders for an output, for a copy of its work, and for scratch."""
    places = tmp_path / "first", tmp_path / "second", tmp_path / "scratch"
    for place in places:
        place.mkdir()
    return places


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_a_copied_work_folder(folders, elsewhere, restart):
    """An attempt with a copied work folder leaves the original's scratch alone, and resumes only if
    the scratch was copied, too.
    """
    first, second, place = folders
    scratch = place if elsewhere else None
    scratch_file = cut_off(first / "out", scratch)
    shutil.copytree(work_folder(first / "out"), work_folder(second / "out"))
    goes_on = not elsewhere and not restart
    assert steps_found(second / "out", scratch, restart) == goes_on
    assert scratch_file.exists()
    assert steps_found(first / "out", scratch)
    assert not scratch_file.exists()


def test_our_own_is_removed(folders, tmp_path):
    """A run's own old scratch is removed by an attempt that has its scratch in another place."""
    first, _, place = folders
    scratch_file = cut_off(first / "out", place)
    assert not steps_found(first / "out", None, restart=True)
    assert not scratch_file.parent.exists()


@pytest.mark.parametrize("wrong", ["name", "mode", "no mark", "mark", "secret", "a link"])
def test_what_is_not_ours_is_left(folders, monkeypatch, wrong):
    first, second, place = folders
    scratch_file = cut_off(first / "out", place)
    scratch = scratch_file.parent
    mark = (scratch / works._MARK).read_text()
    named = second / ("other" if wrong == "name" else scratch.name)
    if wrong == "a link":
        named.symlink_to(scratch)
    else:
        shutil.copytree(scratch, named)
    if wrong == "mode":
        named.chmod(0o777)
    if wrong == "no mark":
        (named / works._MARK).unlink()
    if wrong == "mark":
        (named / works._MARK).write_text(mark.replace(str(first), str(second)))
    journal = Work(first / "out", place, PURPOSE)
    journal._mark = "" if wrong == "secret" else mark.split("\n")[1]
    journal.scratch = named
    journal._write_journal()
    assert not steps_found(first / "out", None, restart=True)
    assert (named / "kept").exists()


def test_folders_are_for_their_owner_alone(folders):
    first, _, place = folders
    scratch_file = cut_off(first / "out", place)
    for folder in (work_folder(first / "out"), scratch_file.parent):
        assert stat.S_IMODE(folder.lstat().st_mode) == 0o700


def someone_elses(path: Path, whose: str, monkeypatch) -> None:
    """Put a file tree that may be another user's at ``path``."""
    folder = path.parent / "made"
    folder.mkdir()
    (folder / "lock").touch()
    if whose == "a link":
        path.symlink_to(folder)
    else:
        folder.rename(path)
    if whose == "writable":
        path.chmod(0o777)
    if whose == "owner":
        own, lstat = os.geteuid(), Path.lstat
        status = SimpleNamespace(st_mode=stat.S_IFDIR | 0o700, st_uid=own + 1)
        monkeypatch.setattr(Path, "lstat", lambda self: status if self == path else lstat(self))


@pytest.mark.parametrize("whose", ["a link", "writable", "owner"])
@pytest.mark.parametrize("what", ["work", "scratch"])
def test_folders_of_others_are_refused(folders, monkeypatch, what, whose):
    """Folders of other users are refused, and the refusal changes no file."""
    first, _, place = folders
    out = first / "out"
    where = work_folder(out) if what == "work" else Work(out, place, PURPOSE).scratch
    someone_elses(where, whose, monkeypatch)
    before = sorted(first.parent.rglob("*"))
    with pytest.raises(InputError, match="is in the way"):
        steps_found(out, place)
    assert sorted(first.parent.rglob("*")) == before


def test_a_umask_that_takes_files_from_their_owner(folders):
    first, _, _ = folders
    mask = os.umask(0o777)
    try:
        with pytest.raises(InputError, match="umask"):
            steps_found(first / "out", None)
    finally:
        os.umask(mask)
    assert not list(first.iterdir())


def test_a_lock_that_is_made_at_this_moment(tmp_path, monkeypatch):
    """A lock that another run makes just after this run has looked for the lock marks a busy run,
    not a stranger's folder in the way.
    """
    output = tmp_path / "out"
    folder, is_file = work_folder(output), Path.is_file
    folder.mkdir(0o700)

    def then_made(path: Path) -> bool:
        answer = is_file(path)
        if path.name == "lock" and path.parent.is_dir():
            path.touch()
        return answer

    monkeypatch.setattr(Path, "is_file", then_made)
    with begin_work(output, PURPOSE) as work:
        assert not work.began
