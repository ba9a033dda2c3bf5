"""Temporary folders. A folder that a killed process left behind is removed by the next process.

Each folder has a file that its process keeps locked. A folder whose file is not locked belongs to a
dead process. Only folders of this user are considered.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from .private import is_private

_PREFIX = "delegraph-"
_LOCK = ".delegraph-lock"


class TemporaryFolder:
    """A folder for this process alone. It is removed by ``cleanup``, at the end of the block, or
    when the object is deleted. name: its path, as in ``tempfile.TemporaryDirectory``.
    """

    def __init__(self, prefix: str = _PREFIX, parent: str | Path | None = None) -> None:
        """Make the folder. parent: the folder to make it in; None for that of temporary files."""
        place = tempfile.gettempdir() if parent is None else os.fspath(parent)
        remove_dead_folders(place)
        while True:
            self.name = tempfile.mkdtemp(prefix=prefix, dir=place)
            lock = os.open(os.path.join(self.name, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):  # no locks here: then no process removes it
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(os.path.join(self.name, _LOCK)):
                break
            os.close(lock)  # another process removed the folder before it was locked
        self._finalizer = weakref.finalize(self, _remove, self.name, lock, os.getpid())

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *error: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        self._finalizer()


def remove_dead_folders(place: str) -> None:
    """Remove the folders that dead processes of this user have left. A folder that cannot be
    examined or removed is left.
    """
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with contextlib.suppress(OSError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(folder: Path) -> None:
    if not is_private(folder):
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _has_locked(lock):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _has_locked(lock: int) -> bool:
    """Return whether this process has taken the lock now, which no other process held."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: str, lock: int, process: int) -> None:
    if os.getpid() != process:  # a fork of the process that owns the folder
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
