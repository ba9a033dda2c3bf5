"""A full disk is told with the folder that is full and the bytes that are free."""

from __future__ import annotations

import errno
import os
import resource
from types import SimpleNamespace

import pytest

from delegraph.partition.disk import outputs
from delegraph.partition.disk.outputs import naming_full_disk
from delegraph.partition.disk.work import begin_work
from delegraph.partition.errors import DelegraphError, InputError


def full(number: int = errno.ENOSPC, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


@pytest.fixture
def message_of(tmp_path):
    """Return a function that gives the message of an error raised while ``tmp_path/out`` is
    written.
    """

    def tell(error: OSError) -> str:
        with (
            pytest.raises(DelegraphError) as raised,
            naming_full_disk(tmp_path / "out", lambda: "5 bytes are needed, "),
        ):
            raise error
        assert raised.value.exit_code == 1
        return str(raised.value)

    return tell


def test_the_scratch_disk_is_named(tmp_path, monkeypatch):
    """The full scratch folder is named, even though scratch is removed by the time that the user
    reads the message.
    """
    scratch = tmp_path / "small"
    scratch.mkdir()

    def free(path):
        return SimpleNamespace(free=7 if str(path).startswith(str(scratch)) else 10**9)

    monkeypatch.setattr(outputs.shutil, "disk_usage", free)
    with (
        pytest.raises(DelegraphError, match=f" 7 bytes are free in {scratch}"),
        begin_work(tmp_path / "out", {}, scratch=scratch),
    ):
        raise full()
    assert not list(scratch.iterdir())


def test_a_scratch_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match=r"file cannot be written: .*; name another folder"),
        begin_work(tmp_path / "out", {}, scratch=tmp_path / "file"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_file_that_failed_is_believed(message_of, tmp_path):
    (tmp_path / "other").mkdir()
    assert f"in {tmp_path}/other;" in message_of(full(name=f"{tmp_path}/other/file"))


def test_no_inodes(message_of, monkeypatch):
    disk = dict.fromkeys(("f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files"), 6)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**disk, f_favail=0))
    assert "has no inodes left for more files" in message_of(full())


def test_a_quota(message_of):
    assert "your quota in" in message_of(full(errno.EDQUOT))


def test_a_limit_on_files(message_of, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1000, 1000))
    assert "limit of 1,000 bytes (ulimit -f)" in message_of(full(errno.EFBIG))
