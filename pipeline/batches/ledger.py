"""The ledger of a batch: the outcome of its jobs, in an SQLite file. Each change is on the disk
before the next one is made.

    batch       version
    jobs        name, state, key, owned, made, attempts; and of the last attempt: began, ended,
                exit_code, seconds, peak_bytes, error
    tries       each try of a job since it was last done: name, state, began, ended, exit_code,
                seconds, peak_bytes, error
"""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args, get_type_hints

from ...partition.disk.files import open_regular
from ...partition.disk.lock import LOCK
from ...partition.errors import DelegraphError, InputError

VERSION = 3

State = Literal["waiting", "running", "done", "failed", "left out", "cut off"]
"""State of a job. left out: a job that it needs has failed. cut off: reported for a running job
that no process runs; never stored.
"""

TryState = Literal["running", "done", "failed", "ended", "cut off"]
"""State of a try. ended: by a signal, with its batch. cut off: its end was never recorded."""

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


_TRIES = """
create table if not exists tries (
    name text not null,
    state text not null,
    began text not null,
    ended text,
    exit_code integer,
    seconds real,
    peak_bytes integer,
    error text,
    primary key (name, began)
);
"""

_MOST_TRIES = 100
"""Most tries of a job that the ledger keeps: the last ones."""


class Entry(NamedTuple):
    """A job in the ledger. key: digest of its command and its input files (due.key_of). owned: the
    output path that the batch may replace, since nothing was there when the job began. made: the
    look of the output after the last try; empty if unknown. attempts: number of tries for this key.
    began, ended: UTC.
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


class Try(NamedTuple):
    """A try of a job; its facts have the same meaning as in Entry."""

    name: str
    state: TryState
    began: str
    ended: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
    peak_bytes: int | None = None
    error: str | None = None


Row = TypeVar("Row", Entry, Try)


def try_of(entry: Entry, state: TryState) -> Try:
    """Return the last try of a job that has begun, with its state."""
    facts = {name: getattr(entry, name) for name in Try._fields}
    return Try(**{**facts, "state": state})


def with_cut_off(tries: Sequence[Try]) -> list[Try]:
    """Return the tries of a job that no process runs: a try that the ledger calls running was cut
    off.
    """
    return [
        attempt._replace(state="cut off") if attempt.state == "running" else attempt
        for attempt in tries
    ]


def folder_of(path: Path) -> Path:
    """Return the folder of a batch's ledger and logs. path: the file of jobs."""
    return path.with_name(f"{path.name}.batch")


def ledger_of(path: Path) -> Path:
    return folder_of(path) / "ledger.sqlite"


def log_of(path: Path, name: str) -> Path:
    """Return the path of the log of a job's events."""
    return folder_of(path) / f"{name}.log"


def is_running(path: Path) -> bool:
    """Return whether a process runs the batch at this moment."""
    try:
        with open(open_regular(folder_of(path) / LOCK), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or no file that a batch could have locked
        return False
    return False


class Ledger:
    """The ledger of one batch. The process that writes it holds the lock of the batch; other
    processes may read it meanwhile.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def entries(self) -> dict[str, Entry]:
        with self._errors():
            rows = self._connection.execute(
                f"select {', '.join(Entry._fields)} from jobs order by rowid"
            )
            return {row[0]: _checked_row(Entry(*row)) for row in rows}

    def tries(self) -> dict[str, list[Try]]:
        """Return the tries of each job since it was last done, in the order in which they began."""
        found: dict[str, list[Try]] = {}
        there = "select count(*) from sqlite_master where type = 'table' and name = 'tries'"
        with self._errors():
            if not self._connection.execute(there).fetchone()[0]:
                return found
            asked = f"select {', '.join(Try._fields)} from tries order by began, rowid"
            for row in self._connection.execute(asked):
                found.setdefault(row[0], []).append(_checked_row(Try(*row)))
        return found

    def put(self, *entries: Entry, tried: Try | None = None) -> None:
        """Write all entries or none. An entry keeps its position among the jobs. tried: a try that
        begins or has ended.
        """
        marks = ", ".join("?" * len(Entry._fields))
        fields = ", ".join(Entry._fields)
        instead = ", ".join(f"{name} = excluded.{name}" for name in Entry._fields)
        with self._errors(), self._connection:
            self._connection.executemany(
                f"insert into jobs ({fields}) values ({marks}) "
                f"on conflict (name) do update set {instead}",
                entries,
            )
            if tried is not None:
                self._put_try(tried)

    def _put_try(self, tried: Try) -> None:
        facts = {**tried._asdict(), "most": _MOST_TRIES}
        marks = ", ".join(f":{name}" for name in Try._fields)
        for change in (
            "delete from tries where name = :name and exists "
            "(select 1 from tries where name = :name and state = 'done' and began <> :began)",
            f"insert or replace into tries ({', '.join(Try._fields)}) values ({marks})",
            "delete from tries where name = :name and began not in "
            "(select began from tries where name = :name order by began desc limit :most)",
        ):
            self._connection.execute(change, facts)

    def forget_try(self, name: str, began: str | None) -> None:
        """Delete a try that did nothing."""
        with self._errors(), self._connection:
            self._connection.execute(
                "delete from tries where name = ? and began = ?", (name, began)
            )

    def keep_only(self, names: set[str]) -> None:
        """Delete jobs that are no longer in the file."""
        gone = [(name,) for name in self.entries().keys() - names]
        with self._errors(), self._connection:
            for table in ("jobs", "tries"):
                self._connection.executemany(f"delete from {table} where name = ?", gone)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        with _sqlite_errors(self._path):
            yield


@contextlib.contextmanager
def open_ledger(path: Path, write: bool) -> Iterator[Ledger]:
    """Open the ledger; create it if ``write`` is set. Raises InputError if there is no ledger to
    read, or the file is no ledger.
    """
    if not write and not path.exists():
        raise InputError(f"{path.parent}: no batch has run here")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not a ledger (a folder, a pipe or a device): move it away")
    with _sqlite_errors(path):
        connection = sqlite3.connect(path, timeout=10)
    try:
        with _sqlite_errors(path):
            connection.execute("pragma synchronous = full")
            _check_version(path, connection, write)
        yield Ledger(path, connection)
    finally:
        connection.close()


def _check_version(path: Path, connection: sqlite3.Connection, write: bool) -> None:
    there = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if not there and not write:  # the disk was full when the file was created
        raise InputError(f"{path.parent}: no batch has run here")
    if not there:
        connection.executescript(f"begin; {_SCHEMA} insert into batch values ({VERSION}); commit;")
    (version,) = connection.execute("select version from batch").fetchone()
    if version != VERSION:
        raise InputError(
            f"{path}: a ledger of version {version}, and this delegraph writes {VERSION}: use the "
            "one that wrote it, or move the ledger away to start over"
        )
    if write:
        connection.executescript(_TRIES)


_hints_of = cache(get_type_hints)


def _checked_row(entry: Row) -> Row:
    """Return a row after checking its values, since SQLite stores any value in any column. Raises
    ValueError for a value that this module would not write.
    """
    hints = _hints_of(type(entry))
    kinds = {**hints, "state": str}
    for name, kind in kinds.items():
        value = getattr(entry, name)
        right = isinstance(value, kind)
        if right and isinstance(value, float):
            right = isfinite(value)
        elif right and name in ("began", "ended") and value is not None:
            moment = datetime.fromisoformat(value)
            right = moment.utcoffset() == timedelta(0) and 1970 <= moment.year < 9999
        elif name == "state":
            right = value in get_args(hints["state"])
        if not right:
            raise ValueError(f"a job's '{name}' is {value!r:.50}")
    return entry


@contextlib.contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into an error of one line."""
    try:
        yield
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:
        # A missing table and invalid UTF-8 have only this general code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
            raise DelegraphError(f"{path}: cannot be read or written: {error}") from error
        raise InputError(
            f"{path}: damaged, or not a ledger: {error}; move it away to start over"
        ) from error
