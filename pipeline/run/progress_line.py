"""The line on stderr that shows the progress of a run."""

from __future__ import annotations

import shutil
import sys
import threading
import time


class ProgressLine:
    """Display of the progress of a command's steps, while it is entered.

    On a terminal one line, with the step's share done, its rate and the time left. In a pipe a line
    at the end of every long step. Nothing if ``quiet``.
    """

    _INTERVAL = 0.1
    _LONG = 2.0  # seconds
    _WIDTH = 20

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._step = ""
        self._done = 0
        self._started = 0.0
        self._next = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show progress. step: the text after a colon is about the last piece of work."""
        if self._quiet:
            return
        step, _, last = step.partition(": ")
        with self._lock:
            now = time.monotonic()
            if step != self._step:
                self._end_step(now)
                self._step, self._started, self._done = step, now, done
            self._done = done
            if not self._terminal or (now < self._next and done < total):
                return
            self._next = now + self._INTERVAL
            spent = now - self._started
            left = remaining(spent, done, total) if spent > 1 else None
            time_left = "" if left is None else f", {left:.0f} s left"
            pace = f"  {_rate(done, spent)}{time_left}" if done else ""
            pace += f", {last}" if last else ""
            told = f"{step}{self._bar(done, total)}{pace}"[: shutil.get_terminal_size().columns - 1]
            _print(f"\r\x1b[K{told}")

    def _bar(self, done: int, total: int) -> str:
        """Return a bar; nothing where the total is not known."""
        if not total:
            return ""
        full = min(self._WIDTH, self._WIDTH * done // total)
        return f" [{'#' * full}{'-' * (self._WIDTH - full)}] {done / total:4.0%}"

    def _end_step(self, now: float) -> None:
        if self._terminal or self._step in ("", "compile"):
            return
        spent = now - self._started
        if spent >= self._LONG:
            rate = f", {_rate(self._done, spent)}" if self._done > 1 else ""
            _print(f"{self._step}: {spent:.1f} s{rate}\n")

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        self.finish()

    def finish(self) -> None:
        """End the step that is shown, and remove the line."""
        if self._quiet:
            return
        with self._lock:
            self._end_step(time.monotonic())
            step, self._step = self._step, ""
        if self._terminal and step:
            _print("\r\x1b[K")


def remaining(spent: float, done: int, total: int) -> float | None:
    """Estimate the seconds left in a step, from the time it has taken; None: not known."""
    return round(spent / done * (total - done), 1) if 0 < done <= total else None


def _print(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _rate(done: int, seconds: float) -> str:
    """Return the work done each second, for people.

    >>> _rate(25_000_000, 2.0), _rate(3, 2.0)
    ('12.5 M/s', '1.5/s')
    """
    rate = done / max(seconds, 1e-9)
    for unit, scale in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if rate >= scale:
            return f"{rate / scale:.1f}{unit}/s"
    return f"{rate:.1f}/s"
