"""The history of a batch's jobs: when each was tried, what became of it, and the failures for which
it was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

from ...partition.errors import InputError
from .causes import failed_needs, read_needs
from .ledger import (
    Entry,
    State,
    Try,
    TryState,
    folder_of,
    is_running,
    ledger_of,
    open_ledger,
    with_cut_off,
)

_OF_END = ("ended", "exit_code", "seconds", "peak_bytes", "error")
"""Facts of a try that a waiting job's entry lacks after a signal ended the try."""


class Times(NamedTuple):
    """Times of a try, in seconds since 1970. began: inf: the job has not begun. ended: inf: the try
    has not ended; None: its end is not known.
    """

    began: float
    ended: float | None

    @property
    def end(self) -> float | None:
        """Return the end of the try; None where it is not known."""
        return None if self.ended == inf else self.ended

    @property
    def latest(self) -> float:
        """Return the last time that is known of the try."""
        return max(self.began, self.end or 0)


@dataclass(frozen=True)
class JobHistory:
    """A job of a batch. times: of its last try. tries: those since the job was last done; an
    earlier delegraph's ledger has none. blockers: the failed jobs for which the job was left out,
    where they are known.
    """

    entry: Entry
    times: Times
    tries: Sequence[Try] = ()
    blockers: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def state(self) -> State:
        return self.entry.state

    @property
    def tried(self) -> int:
        """Return the number of tries."""
        return len(self.tries) or self.entry.attempts

    @property
    def earlier(self) -> Sequence[Try]:
        """Return the tries before the last one."""
        return [attempt for attempt in self.tries if attempt.began != self.entry.began]

    @property
    def outcome(self) -> State | TryState:
        """Return the state of the last try, which a waiting job's own state does not tell."""
        if self.state == "waiting":
            for attempt in self.tries:
                if attempt.began == self.entry.began:
                    return attempt.state
        return self.state

    def every_time(self) -> Iterator[Times]:
        """Yield the times of all tries."""
        yield from map(times_of, self.earlier)
        yield self.times


def read_histories(path: Path) -> tuple[bool, list[JobHistory]]:
    """Return whether the batch runs at this moment, and the history of each job. path: the file of
    jobs, whether or not the file still exists. Raises InputError if no batch has run there.
    """
    runs = is_running(path)  # asked first: what ends meanwhile is not cut off
    with open_ledger(ledger_of(path), write=False) as ledger:
        tries, entries = ledger.tries(), ledger.entries()
    if not entries:
        raise InputError(f"{folder_of(path)}: no batch has run here")
    blockers = _blockers(path, entries)
    return runs, [
        _history(entry, tries.get(name, []), runs, blockers.get(name, []))
        for name, entry in entries.items()
    ]


def _blockers(path: Path, entries: Mapping[str, Entry]) -> Mapping[str, Sequence[str]]:
    """Return the failed jobs for which each job was left out, where they are known."""
    named = {
        state: {name for name, entry in entries.items() if entry.state == state}
        for state in ("failed", "left out")
    }
    if not named["left out"]:
        return {}
    return failed_needs(read_needs(path), named["failed"], named["left out"])


def _history(entry: Entry, tries: Sequence[Try], runs: bool, blockers: Sequence[str]) -> JobHistory:
    """Return a job's history. runs: whether the batch runs at this moment."""
    tries = tries if runs else with_cut_off(tries)
    last = next((attempt for attempt in tries if attempt.began == entry.began), None)
    if entry.state == "waiting" and entry.ended is None and last is not None:
        entry = entry._replace(**{name: getattr(last, name) for name in _OF_END})
    times = times_of(entry)
    if entry.state == "running":
        entry = entry if runs else entry._replace(state="cut off")
        times = times._replace(ended=inf if runs else None)
    return JobHistory(entry, times, tries, blockers)


def times_of(record: Entry | Try) -> Times:
    """Return the times of a try, or of the last try of a job."""
    began, ended = (
        None if told is None else datetime.fromisoformat(told).timestamp()
        for told in (record.began, record.ended)
    )
    return Times(inf if began is None else began, ended)
