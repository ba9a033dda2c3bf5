"""The lock of a folder of work in progress: held by the live run, let go of by a dead one."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import BusyError, InputError
from .outputs import FULL
from .private import check_private, make_private

LOCK = "lock"
_REMEDY = "wait for it, or name another output"


@contextlib.contextmanager
def locked(folder: Path, path: Path | str, remedy: str = _REMEDY) -> Iterator[None]:
    """Make the folder, or take it from a run that has died; it is for the work on ``path``.

    remedy: what to do where another run has it.

    Raises BusyError if a live run has it, InputError for one that is not of our making.
    """
    check_private(folder)
    if folder.is_dir() and not (folder / LOCK).is_file() and any(folder.iterdir()):
        raise InputError(f"{folder} is in the way and not of our making: remove or rename it")
    try:
        make_private(folder)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        with contextlib.suppress(OSError):  # not there, or not empty
            folder.rmdir()
        if error.errno in FULL:
            raise
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
