"""Signals that ask a run to save what it has done, and to end.

The program's handlers call ``ask``. A run that saves its state checks for a request each time that
it might save.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NoReturn

SAVE_SECONDS = 20
"""How long that may take: schedulers kill what has not ended 30 s after they asked."""

LIFELINE = "DELEGRAPH_LIFELINE"
"""In a job's environment: the descriptor of a socket that is closed when its batch is gone."""

KEEP = "DELEGRAPH_KEEP"
"""There where the process may be given other jobs on the same graph, which is kept for them."""

_end_requested = threading.Event()
_may_save = _run_will_save = _saved = False


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """Mark the block as one in which a run may save its state."""
    global _may_save, _run_will_save
    _may_save, _run_will_save = True, False
    try:
        yield
    finally:
        _may_save = False


def asked() -> bool:
    """Return whether to save and end. A run that calls this function is counted as one that will do
    so.
    """
    global _run_will_save
    _run_will_save = _may_save
    return _end_requested.is_set()


def ask() -> bool:
    """Ask for an end. Returns whether a run saves its state first, and raises KeyboardInterrupt
    then.
    """
    _end_requested.set()
    return _may_save and _run_will_save


def end_if_asked() -> None:
    """End the run if a signal asked for it. Called once a state is saved."""
    if _end_requested.is_set():
        end()


def end() -> NoReturn:
    """End the run, whose state is saved."""
    global _saved
    _saved = True
    raise KeyboardInterrupt


def forget() -> None:
    """Forget the request: a worker goes on to other work when a rank has ended."""
    _end_requested.clear()


def saved() -> bool:
    """Return whether a run has ended after saving its state."""
    return _saved
