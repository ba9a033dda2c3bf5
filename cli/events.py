"""Events by which a command tells other programs how far it is (docs/reference/events.md): with
``--log-format json`` an event on each line of stderr, and with ``--heartbeat`` the last event in a
file.

While a command works there is an event every 30 s at least, and a heartbeat every 10 s.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from .._version import __version__
from ..partition.secrets import without_secrets
from ..pipeline.run.peak import peak_bytes
from ..pipeline.run.progress_line import remaining

_BEAT_SECONDS = 10.0
_OFTEN_SECONDS = 5.0
"""Between two events of the same phase, at least."""
_MOST_EVENT_BYTES = 1 << 20
_SELDOM_SECONDS = 20.0
"""At most, and a beat."""


class _Log:
    """Log of one command. as_json: whether events are written, which the parser may need to know
    before it has read the options; error: the error by which the command failed; retry: whether it
    may succeed later.
    """

    def __init__(self) -> None:
        options = " ".join(sys.argv)
        self.as_json = "--log-format json" in options or "--log-format=json" in options
        self.heartbeat: Path | None = None
        self.error: str | None = None
        self.retry = False
        self.began = time.monotonic()

    def event(self, kind: str, **facts: Any) -> None:
        """Write an event to stderr and to the heartbeat, as the options say; that nobody can read
        it is no failure.
        """
        about = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": kind}
        line = json.dumps({**about, **facts})
        with contextlib.suppress(OSError):
            if self.as_json and not _is_quiet(kind):
                click.echo(line, err=True)
        with contextlib.suppress(OSError):
            if self.heartbeat and kind != "note":
                self.beat(self.heartbeat, line)

    def beat(self, file: Path, line: str) -> None:
        """Replace the heartbeat file as a whole."""
        partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
        try:
            partial.write_text(line + "\n")
            partial.replace(file)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


_log = _Log()


def _is_quiet(kind: str) -> bool:
    """Return whether --quiet suppresses an event; only a failure is told then."""
    return "--quiet" in sys.argv and (kind != "end" or _log.error is None)


def begin() -> None:
    """Begin the log of a command whose options are not parsed yet."""
    global _log
    _log = _Log()
    logger = logging.getLogger("delegraph")  # of what is told when it happens
    logger.handlers = [_Notes()] if _log.as_json else []
    logger.propagate = not _log.as_json
    _tell_begin()


def are_wanted() -> bool:
    """Return whether events are written instead of lines for people."""
    return _log.as_json


def beat_in(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Use the file of --heartbeat."""
    if value is None:
        return
    file = Path(value)
    try:
        if os.path.lexists(file) and not _is_event(file):
            raise click.BadParameter(f"{file} is there, and no heartbeat: name another file")
        _log.beat(file, "{}")
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}") from error
    _log.heartbeat = file


def _is_event(file: Path) -> bool:
    from ..partition.disk.files import read_small
    from ..partition.errors import InputError

    try:
        return isinstance(json.loads(read_small(file, _MOST_EVENT_BYTES)), dict)
    except (InputError, ValueError, RecursionError):
        return False


def _tell_begin() -> None:
    command = ["delegraph", *map(without_secrets, sys.argv[1:])]
    _log.event("begin", command=command, version=__version__, pid=os.getpid())


def tell(message: str, mark: str = "") -> None:
    """Write an event; or a line for a person, which begins with ``mark``. A full stderr is no
    failure of the command.
    """
    message = without_secrets(message)
    if _log.as_json:
        _log.event("note", message=message)
        return
    with contextlib.suppress(OSError):
        click.echo(f"{mark}{message}", err=True)


def failed(message: str, retry: bool = False) -> None:
    """Note the error for the end event. retry: whether the same command may succeed when it is run
    again.
    """
    _log.error, _log.retry = without_secrets(message), retry


def end(code: int) -> None:
    error = {} if _log.error is None else {"error": _log.error, "retry": _log.retry}
    seconds = round(time.monotonic() - _log.began, 3)
    _log.event("end", exit_code=code, **error, seconds=seconds, peak_bytes=peak_bytes())


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(record.getMessage())


@contextlib.contextmanager
def of_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function to call with a step, its work done and its total work."""
    if not (_log.as_json or _log.heartbeat):
        yield lambda step, done, total: None
        return
    watch = _Watch()
    ticker = threading.Thread(target=watch.tick, daemon=True)
    ticker.start()
    try:
        yield watch
    finally:
        watch.over.set()
        ticker.join()


class _Watch:
    """Progress of a command's steps, told as events."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._step, self._last = "begin", ""
        self._done = self._total = 0
        self._began = self._told = time.monotonic()

    def __call__(self, step: str, done: int, total: int) -> None:
        step, _, last = step.partition(": ")
        with self._lock:
            now = time.monotonic()
            new = step != self._step
            if new:
                self._step, self._began = step, now
            self._last, self._done, self._total = last, done, total
            if new or now - self._told >= _OFTEN_SECONDS:
                self._tell(now)

    def tick(self) -> None:
        while not self.over.wait(_BEAT_SECONDS):
            with self._lock:
                now = time.monotonic()
                if _log.heartbeat or now - self._told >= _SELDOM_SECONDS:
                    self._tell(now)

    def _tell(self, now: float) -> None:
        self._told, spent = now, now - self._began
        _log.event(
            "progress",
            phase=self._step,
            done=self._done,
            total=self._total,
            **facts(self._last),
            seconds=round(spent, 3),
            remaining_seconds=remaining(spent, self._done, self._total),
            peak_bytes=peak_bytes(),
        )


def facts(last: str) -> dict[str, Any]:
    """Return the names and numbers in a step's text about its last piece of work.

    >>> facts("change 1.5e-05, sources 64")
    {'change': 1.5e-05, 'sources': 64}
    """
    pairs = (fact.rpartition(" ") for fact in last.split(", ") if fact)
    return {name.replace(" ", "_"): json.loads(number) for name, _, number in pairs}
