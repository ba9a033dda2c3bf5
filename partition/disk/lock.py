"""The lock of a folder of work in progress: held by the live run, let go of by a dead one."""

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
    """Make the folder, or take it from a run that has died; it is for the work on ``path``.

    remedy: what to do where another run has it.

    Raises BusyError if a live run has it, InputError for one that is not of our making.
    """
    check_private(folder)
    if _is_of_others(folder):
        raise InputError(
            f"{folder} is in the way, and delegraph did not create it: remove or rename it"
        )
    try:
        make_private(folder)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError as error:  # a run that ends has just removed the folder
            raise BusyError(f"another run is writing {path} at this moment: {remedy}") from error
    except OSError as error:
        with contextlib.suppress(OSError):  # not there, or not empty
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
    """A folder beside an output that is a single file, in which it may be written, to be renamed.

    It is this run's alone, and gone at the end. seconds: to wait for another run that has it.
    Raises as ``locked`` does.
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
            for left in _names_in(folder) - {LOCK}:  # without its lock it would be of others
                with contextlib.suppress(OSError):
                    os.unlink(folder / left)
            shutil.rmtree(folder, ignore_errors=True)


def _is_of_others(folder: Path) -> bool:
    """Whether there is something in a folder, and no lock: that is made first, and goes last."""
    names = _names_in(folder)
    return bool(names) and (LOCK not in names or (folder / LOCK).is_dir())


def _names_in(folder: Path) -> set[str]:
    """Nothing where there is no such folder, or no more."""
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
