"""Threads: how many are of use, and starting them without waiting for one that never begins."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_MOST_EACH = 4
_ALWAYS = 64
START_SECONDS = 60.0
"""The time that a thread may take to begin."""
CANNOT_START = "can't start new thread"
"""Python's message if the system refuses a thread."""


def available_threads() -> int:
    """Count the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not every system can tell


def useful_threads(asked: int | None) -> int:
    """Return the number of threads to use if somebody asks for ``asked`` of them; None asks for as
    many as there are cores.

    More than a few threads for each core only take turns, and take memory and shares of a loop for
    each thread.
    """
    cores = available_threads()
    return cores if asked is None else min(asked, max(_ALWAYS, _MOST_EACH * cores))


class _Begun(threading.Event):
    """An event that a thread sets once it runs. Whoever started the thread waits for the event, but
    not without end.
    """

    failed = False

    def wait(self, timeout: float | None = None) -> bool:
        began = super().wait(START_SECONDS if timeout is None else timeout)
        if timeout is None and (self.failed or not began):
            self.clear()
            raise RuntimeError(f"{CANNOT_START}: no memory for its first steps")
        return began


def bound_thread_starts() -> None:
    """Have ``Thread.start`` raise RuntimeError where a thread does not begin, in this process.

    A thread that runs out of memory before it can say that it has begun ends, and Python's own
    ``start`` waits for it forever.
    """
    start, hook = threading.Thread.start, sys.unraisablehook

    def bounded_start(self: threading.Thread) -> None:
        if not vars(self).get("_started", _Begun()).is_set():
            vars(self)["_started"] = _Begun()
        start(self)

    def tell_starter(told: Any) -> None:
        begun = getattr(getattr(told.object, "__self__", None), "_started", None)
        if isinstance(begun, _Begun) and not begun.is_set():
            begun.failed = True
            begun.set()
        else:
            hook(told)

    threading.Thread.start = bounded_start
    sys.unraisablehook = tell_starter
