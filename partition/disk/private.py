"""Folders for their owner alone. Their files are read again, and removed, without a question, so no
other user may be able to put files there. A folder counts as the user's own by its owner and its
mode.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import InputError

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def make_private(path: Path) -> None:
    """Make a folder for its owner alone, or accept an existing one.

    Raises InputError for anything that another user may have put there (a link, another user's
    folder, a folder that others may write to), and for a umask that denies the owner access.
    """
    try:
        path.mkdir(0o700)
    except FileExistsError:
        check_private(path)
        return
    if path.lstat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        path.rmdir()
        raise InputError(
            f"{path} cannot be used: the umask denies the owner access to new files; set another "
            "umask, for example with 'umask 077'"
        )


def check_private(path: Path) -> None:
    """Raise InputError if ``path`` exists and another user may have put it there."""
    if os.path.lexists(path) and not is_private(path):
        raise InputError(
            f"{path} is in the way: it must be a folder that you own and that nobody else can "
            "write to; remove or rename it, or name another folder"
        )


def is_private(path: Path) -> bool:
    """Return whether a path is a folder of this user that nobody else may write to."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return ours and not found.st_mode & _WRITABLE
