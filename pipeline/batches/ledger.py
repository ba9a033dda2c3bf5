"""What became of the jobs of a batch: an SQLite file. Each change is on the disk before the next.

batch       version
jobs        name, state, key, owned, made, attempts, and of the last attempt: began, ended,
            exit_code, seconds, peak_bytes, error
"""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Literal, NamedTuple, get_args, get_type_hints

from ...partition.disk.lock import LOCK
from ...partition.errors import DelegraphError, InputError

VERSION = 3

State = Literal["waiting", "running", "done", "failed", "left out", "cut off"]
"""left out: a job that it needs has failed. cut off: told of one that nobody runs; never kept."""

_SCHEMA = """
create table batch (version integer not null);
create table jobs (
    name text primary key,
    state text not null,
    key text not null,
    owned text not null,
    made text not null,
    attempts integer not null,
    began text,
    ended text,
    exit_code integer,
    seconds real,
    peak_bytes integer,
    error text
);
"""


class Entry(NamedTuple):
    """A job. key: what it was to do, and from what. owned: the output that is the batch's own, and
    may be replaced: nothing stood there when it began. made: what it looked like when the last try
    had ended; empty: nobody knows. attempts: for this key. began, ended: UTC.
    """

    name: str
    state: State
    key: str = ""
    owned: str = ""
    made: str = ""
    attempts: int = 0
    began: str | None = None
    ended: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
    peak_bytes: int | None = None
    error: str | None = None


def folder_of(path: Path) -> Path:
    """Where a batch keeps what it knows. path: of the file of jobs."""
    return path.with_name(f"{path.name}.batch")


def ledger_of(path: Path) -> Path:
    return folder_of(path) / "ledger.sqlite"


def log_of(path: Path, name: str) -> Path:
    """Of a job: its events."""
    return folder_of(path) / f"{name}.log"


def is_running(path: Path) -> bool:
    """Whether a process runs the batch at this moment."""
    try:
        with (folder_of(path) / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


class Ledger:
    """Of one batch. Its writer holds the lock of the batch; others may read meanwhile."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def entries(self) -> dict[str, Entry]:
        with self._errors():
            rows = self._connection.execute(
                f"select {', '.join(Entry._fields)} from jobs order by rowid"
            )
            return {row[0]: _checked(Entry(*row)) for row in rows}

    def put(self, *entries: Entry) -> None:
        """All of them, or none. A job keeps its place among the others."""
        marks = ", ".join("?" * len(Entry._fields))
        fields = ", ".join(Entry._fields)
        instead = ", ".join(f"{name} = excluded.{name}" for name in Entry._fields)
        with self._errors(), self._connection:
            self._connection.executemany(
                f"insert into jobs ({fields}) values ({marks}) "
                f"on conflict (name) do update set {instead}",
                entries,
            )

    def keep_only(self, names: set[str]) -> None:
        """Forget jobs that are no longer in the file."""
        gone = [(name,) for name in self.entries().keys() - names]
        with self._errors(), self._connection:
            self._connection.executemany("delete from jobs where name = ?", gone)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        with _told(self._path):
            yield


@contextlib.contextmanager
def open_ledger(path: Path, write: bool) -> Iterator[Ledger]:
    """Make it if it is to be written. InputError: there is none, or it is no ledger of ours."""
    if not write and not path.exists():
        raise InputError(f"{path.parent}: no batch has run here")
    with _told(path):
        connection = sqlite3.connect(path, timeout=10)
    try:
        with _told(path):
            connection.execute("pragma synchronous = full")
            _check_version(path, connection, write)
        yield Ledger(path, connection)
    finally:
        connection.close()


def _check_version(path: Path, connection: sqlite3.Connection, write: bool) -> None:
    there = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if not there and not write:  # the disk was full when it was made
        raise InputError(f"{path.parent}: no batch has run here")
    if not there:
        connection.executescript(f"begin; {_SCHEMA} insert into batch values ({VERSION}); commit;")
    (version,) = connection.execute("select version from batch").fetchone()
    if version != VERSION:
        raise InputError(
            f"{path}: a ledger of version {version}, and this delegraph writes {VERSION}: use the "
            "one that wrote it, or move the ledger away to begin anew"
        )


def _checked(entry: Entry) -> Entry:
    """SQLite keeps anything in any column. ValueError: we would not."""
    kinds = {**get_type_hints(Entry), "state": str}
    for name, kind in kinds.items():
        value = getattr(entry, name)
        right = isinstance(value, kind)
        if right and isinstance(value, float):
            right = isfinite(value)
        elif right and name in ("began", "ended") and value is not None:
            moment = datetime.fromisoformat(value)
            right = moment.utcoffset() == timedelta(0) and 1970 <= moment.year < 9999
        elif name == "state":
            right = value in get_args(State)
        if not right:
            raise ValueError(f"a job's '{name}' is {value!r:.50}")
    return entry


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of SQLite, in a line."""
    try:
        yield
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        # Of a table that is not there, or of text that is no UTF-8, there is no other code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise DelegraphError(f"{path}: cannot be read or written: {error}") from error
        raise InputError(
            f"{path}: damaged, or no ledger: {error}; move it away to begin anew"
        ) from error
