"""Removal of semaphores of killed processes, whose names in shared memory tell which process made
them.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")
_OURS = re.compile(r"sem\.delegraph-(\d+)-(\d+)-(\d+)-.+")


def semaphore_mark() -> str:
    """Return the prefix of this process's semaphore names: its namespace of process ids, its id,
    and its start time.
    """
    process = os.getpid()
    return f"/delegraph-{_namespace()}-{process}-{_began(process)}"


def remove_dead_semaphores(place: Path = _SHARED_MEMORY) -> None:
    """Remove the names of this user's semaphores whose processes are gone.

    Names from another namespace of process ids (such as a container's) stay, since this process
    cannot know whether those processes run.
    """
    here = _namespace()
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            named = _OURS.fullmatch(entry.name)
            if named is None or int(named[1]) != here:
                continue
            with contextlib.suppress(OSError):
                ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                if ours and _began(int(named[2])) != int(named[3]):
                    os.unlink(entry.path)


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # not Linux
        return 0


def _began(process: int) -> int:
    """Return the start time of a process, in clock ticks since boot; 0 if there is no such
    process.
    """
    try:
        told = Path(f"/proc/{process}/stat").read_text()
        return int(told.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
