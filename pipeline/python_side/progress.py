"""The display of ``progress=True``: a bar of tqdm where it is installed, which notebooks draw, too;
otherwise the command line's line on stderr.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from ..run.execute import Progress
from ..run.progress_line import ProgressLine


class Display(Protocol):
    """A Progress (execute.py) that shows itself. ``finish`` removes it; a later step shows anew."""

    def __call__(self, step: str, done: int, total: int) -> None: ...
    def finish(self) -> None: ...


def progress_display() -> Display:
    """Return a display that nothing has been told yet."""
    try:
        from tqdm.auto import tqdm  # pyright: ignore[reportMissingModuleSource]
    except ImportError:
        return ProgressLine(quiet=False)
    return ProgressBar(tqdm)


def as_function(progress: Progress | bool | None) -> Progress | None:
    """Return the function to tell progress to, if there is one."""
    return progress if callable(progress) else None


def finish(progress: Any) -> None:
    """Remove what a display shows. Any other function to tell progress to is left alone."""
    if isinstance(progress, (ProgressBar, ProgressLine)):
        progress.finish()


class ProgressBar:
    """A bar of tqdm for each step; the last piece of work, such as a level, stands behind it.

    make: the class of bars.
    """

    def __init__(self, make: Any) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._step: str | None = None
        self._bar: Any = None

    def __call__(self, step: str, done: int, total: int) -> None:
        step, _, last = step.partition(": ")
        with self._lock:
            if step != self._step:
                self._close()
                self._step = step
                self._bar = self._make(desc=step, leave=False, unit_scale=True)
            self._bar.total = total or None  # 0: not known
            if last:
                self._bar.set_postfix_str(last, refresh=False)
            self._bar.update(done - self._bar.n)

    def finish(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._step = self._bar = None
