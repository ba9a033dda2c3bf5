"""Folders for their owner alone: what lies in them is read again, and removed, without a question.

Nobody else may have put it there: such a folder is ours by its owner and its mode.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..errors import InputError

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def make_private(path: Path) -> None:
    """Make a folder for its owner alone, or take the one that is there.

    Raises InputError for what others may have put there: a link, a folder of someone else, or
    one that others may write into; and for a umask that takes files from their owner.
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
    """Raises InputError where something stands at ``path`` that others may have put there."""
    if os.path.lexists(path) and not is_private(path):
        raise InputError(
            f"{path} is in the way: it must be a folder that you own and that nobody else can "
            "write to; remove or rename it, or name another folder"
        )


def is_private(path: Path) -> bool:
    """Whether a folder is of this user, and no one else may write into it."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return ours and not found.st_mode & _WRITABLE
