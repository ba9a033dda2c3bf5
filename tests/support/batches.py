"""Ledgers of batches, made without a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from delegraph.pipeline.batches.ledger import Entry, State, Try, folder_of, ledger_of, open_ledger

BEGIN = datetime(2026, 7, 2, 23, 50, tzinfo=UTC)


def tried(
    name: str, state: State, began: float, minutes: float | None = None, **facts: Any
) -> Entry:
    """Return a job with its last try. began: minutes after BEGIN. minutes: length of the try; None:
    the end is unknown.
    """
    times = {"began": _told(began)}
    if minutes is not None:
        facts = {"seconds": minutes * 60, "peak_bytes": 10**9, "exit_code": 0, **facts}
        times["ended"] = _told(began + minutes)
    return Entry(name, state, "key", attempts=facts.pop("attempts", 1), **times, **facts)


def _told(minutes: float) -> str:
    return (BEGIN + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def every_state() -> list[Entry]:
    """Return a job in each state; the running one counts as cut off, as nobody runs the batch."""
    fault = "worker tcp://10.0.0.3:2222 is lost"
    return [
        tried("store", "done", -30_000, 100, peak_bytes=6_200_000_000),
        tried("parts", "done", 0, 8.2),
        tried("ranks-of-europe-and-all-the-rest-2026", "done", 8.3, 81.5, attempts=2),
        tried("close", "failed", 41, 21.5, attempts=3, exit_code=75, error="too little memory"),
        tried("far", "waiting", 20, 10, exit_code=1, error=fault, peak_bytes=None),
        tried("saved", "waiting", 72, attempts=0),
        tried("between", "running", 75),
        Entry("check", "left out"),
        Entry("page", "waiting"),
    ]


def write_batch(jobs: Path, *entries: Entry, tries: Sequence[Try] = ()) -> Path:
    """Write a file of jobs, and the files that a batch leaves beside it."""
    jobs.touch()
    folder_of(jobs).mkdir()
    (folder_of(jobs) / "lock").touch()
    with open_ledger(ledger_of(jobs), write=True) as ledger:
        ledger.put(*entries)
        for one in tries:
            ledger.put(tried=one)
    return jobs
