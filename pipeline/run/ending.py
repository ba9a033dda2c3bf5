"""Signals that ask a run to save its state, and to end.

The program's handlers call ``ask``. A run that saves its state checks for a request each time that
it might save.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import NoReturn

SAVE_SECONDS = 20
"""Seconds that a save may take. Job schedulers kill a process that has not ended 30 s after their
request.
"""

LIFELINE = "DELEGRAPH_LIFELINE"
"""Name of a variable in a job's environment: the descriptor of a socket that is closed when the
batch is gone.
"""

KEEP = "DELEGRAPH_KEEP"
"""Name of a variable in a job's environment. It is set if the process may get more jobs on the same
graph, so the process keeps the graph.
"""

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
    """Return whether to save and end. A run that calls this function promises to do so."""
    global _run_will_save
    _run_will_save = _may_save
    return _end_requested.is_set()


def ask() -> bool:
    """Request the end of the run. Returns whether the run saves its state first and then raises
    KeyboardInterrupt.
    """
    _end_requested.set()
    return _may_save and _run_will_save


def end_if_asked() -> None:
    """End the run if a signal has requested it. Called after a state is saved."""
    if _end_requested.is_set():
        end()


def end() -> NoReturn:
    """End the run by KeyboardInterrupt, and note that its state is saved."""
    global _saved
    _saved = True
    raise KeyboardInterrupt


def forget() -> None:
    """Forget the request. A worker does so after a rank has ended, and then does other work."""
    _end_requested.clear()


def saved() -> bool:
    """Return whether a run has ended after saving its state."""
    return _saved
