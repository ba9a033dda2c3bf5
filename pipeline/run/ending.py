"""What a signal asks for: that a run saves what it has done, and ends.

The program's handlers call ``ask``; a run that saves its state looks here each time that it might.
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

_asked = threading.Event()
_watching = _looked = _saved = False


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """While it is entered a run may save its state."""
    global _watching, _looked
    _watching, _looked = True, False
    try:
        yield
    finally:
        _watching = False


def asked() -> bool:
    """Whether to save and end. A run that asks is taken for one that will do so."""
    global _looked
    _looked = _watching
    return _asked.is_set()


def ask() -> bool:
    """End. Whether a run saves its state first, and raises KeyboardInterrupt then."""
    _asked.set()
    return _watching and _looked


def end_if_asked() -> None:
    """Called once a state is saved."""
    if _asked.is_set():
        end()


def end() -> NoReturn:
    """A state is saved."""
    global _saved
    _saved = True
    raise KeyboardInterrupt


def forget() -> None:
    """A worker goes on to other work when a rank has ended."""
    _asked.clear()


def saved() -> bool:
    """Whether a run has ended so."""
    return _saved
