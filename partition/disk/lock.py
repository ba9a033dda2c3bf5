"""The lock of a folder of work in progress. A live run holds it; the system releases it when the
run dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import BusyError, InputError
from .private import check_private, make_private
from .system_errors import raise_failure

LOCK = "lock"
_REMEDY = "wait for it, or name another output"
_PAUSE_SECONDS = 0.05


@contextlib.contextmanager
def locked(folder: Path, path: Path | str, remedy: str = _REMEDY) -> Iterator[None]:
    """Make the folder, or take it from a run that has died, and hold its lock. The folder is for
    the work on ``path``.

    remedy: advice for the case that another run holds the lock. Raises BusyError if a live run
    holds it, InputError for a folder that delegraph did not make.
    """
    check_private(folder)
    if _is_of_others(folder):
        raise InputError(f"{folder} exists, and delegraph did not make it: remove or rename it")
    try:
        make_private(folder)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError as error:  # a run that has just ended removed the folder
            raise BusyError(f"another run is writing {path} at this moment: {remedy}") from error
    except OSError as error:
        with contextlib.suppress(OSError):  # the folder is missing, or not empty
            folder.rmdir()
        raise_failure(folder, error)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that has just ended may have removed the folder after we opened its lock.
            current = os.stat(folder / LOCK).st_ino == os.fstat(lock).st_ino
        except OSError:
            current = False
        if not current:
            raise BusyError(f"another run is writing {path} at this moment: {remedy}")
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def writing_alone(path: Path, seconds: float = 0.0) -> Iterator[Path]:
    """Yield a folder beside an output that is a single file. The output may be written there, and
    then renamed.

    The folder belongs to this run alone, and is removed at the end. seconds: how long to wait for
    another run that holds it. Raises as ``locked`` does.
    """
    folder, until = path.with_name(f".{path.name}.work"), time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(folder, path))
                break
            except BusyError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
        try:
            yield folder
        finally:
            for left in _names_in(folder) - {LOCK}:  # the lock goes last
                with contextlib.suppress(OSError):
                    os.unlink(folder / left)
            shutil.rmtree(folder, ignore_errors=True)


def _is_of_others(folder: Path) -> bool:
    """Return whether a folder has files but no lock. delegraph makes the lock first and removes it
    last.
    """
    names = _names_in(folder)
    return bool(names) and (LOCK not in names or (folder / LOCK).is_dir())


def _names_in(folder: Path) -> set[str]:
    """Return the names in a folder; an empty set if there is no such folder."""
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
