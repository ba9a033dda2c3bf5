"""A page about a batch: what became of its jobs, and when, by its ledger.

The ledger has the last try of each job, those before it since the job was last done, and knows no
runs: of a batch that is run night by night
some jobs were done weeks ago. These have no bar and say when that was: the axis begins after the
last pause that is longer than all that follows it, and than any before another try.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from math import ceil, floor, inf
from pathlib import Path
from xml.etree.ElementTree import Element

from ....partition.errors import InputError
from ...batches.ledger import (
    Entry,
    State,
    Try,
    folder_of,
    is_running,
    ledger_of,
    open_ledger,
    with_cut_off,
)
from ..numbers import UNKNOWN, duration, figure, share, size
from . import run
from .charts import LANE, Frame, Lane, Tick, chart, lanes
from .markup import Content, tag
from .page import Figure, Page, Section
from .scales import Scale, moments
from .tables import beside, facts, table

_PAUSE = 300
"""Seconds: the longest before another try."""
_MOST_LANES = 100
_NOTHING = "-"

_DRAWN: dict[State, str] = {
    "done": "done",
    "failed": "failed",
    "running": "running",
    "waiting": "waiting: its last try",
    "cut off": "cut off",
}


@dataclass(frozen=True)
class Job:
    """A job of a batch. began, ended: of its last try, in seconds since 1970; inf: it has not
    begun, or not ended; None: its end is not known. tries: number of tries since the job was last
    done; an earlier delegraph's ledger does not count them.
    """

    entry: Entry
    began: float
    ended: float | None
    tries: Sequence[Try] = ()

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
        return [one for one in self.tries if one.began != self.entry.began]

    @property
    def end(self) -> float | None:
        """Return the end of the last try; None where it is not known."""
        return None if self.ended == inf else self.ended

    @property
    def latest(self) -> float:
        """Return the last time that is known of the job."""
        return max(self.began, self.end or 0)


@dataclass(frozen=True)
class Axis:
    """Axis of time. jobs: those with a bar, by their begin; earlier: those that ended before the
    axis. first: a begin; last: the last time that is known.
    """

    jobs: Sequence[Job]
    earlier: Sequence[Job]
    first: float
    last: float


def jobs_file(path: Path) -> Path | None:
    """Return the file of jobs of the batch that ``path`` names by its file or its folder; None: no
    batch.

    A batch that has not run is recognized by the name of the file.
    """
    jobs = path.with_suffix("")
    if folder_of(jobs) == path and os.path.exists(ledger_of(jobs)):
        return jobs
    is_one = path.suffix == ".toml" or os.path.exists(ledger_of(path))
    return path if is_one and not path.is_dir() else None


def page_of_batch(path: Path) -> Page:
    """Return the page of a batch. path: the file of jobs, whether or not the file still exists."""
    runs = is_running(path)  # asked first: what ends meanwhile is not cut off
    with open_ledger(ledger_of(path), write=False) as ledger:
        tries = ledger.tries()
        jobs = [_job(entry, tries.get(entry.name, []), runs) for entry in ledger.entries().values()]
    if not jobs:
        raise InputError(f"{folder_of(path)}: no batch has run here")
    jobs.sort(key=lambda job: (job.began, job.name))
    axis = _axis([job for job in jobs if job.began < inf and job.state != "left out"])
    return Page(
        kind="Batch",
        name=path.name,
        command=None,
        figures=_figures(jobs, axis, runs),
        unknown=_unknown(jobs),
        sections=[
            _timeline(jobs, axis),
            _failed(jobs),
            _earlier(jobs),
            _not_done(jobs, runs),
            run.the_run({}, ledger_of(path)),
        ],
    )


def _job(entry: Entry, tries: Sequence[Try], runs: bool) -> Job:
    began, ended = (
        None if told is None else datetime.fromisoformat(told).timestamp()
        for told in (entry.began, entry.ended)
    )
    if entry.state == "running":
        entry = entry if runs else entry._replace(state="cut off")
        ended = inf if runs else None
    tries = tries if runs else with_cut_off(tries)
    return Job(entry, inf if began is None else began, ended, tries)


def _axis(begun: Sequence[Job]) -> Axis | None:
    """Return the axis for jobs that have begun. begun: by their begin."""
    if not begun:
        return None
    last = max(job.latest for job in begun)
    ends = list(accumulate((inf if job.ended == inf else job.latest for job in begun), max))
    cut = next(
        (
            i
            for i in range(len(begun) - 1, 0, -1)
            if begun[i].began - ends[i - 1] > max(_PAUSE, last - begun[i].began)
        ),
        0,
    )
    return Axis(begun[cut:], begun[:cut], begun[cut].began, last)


def _figures(jobs: Sequence[Job], axis: Axis | None, runs: bool) -> list[Figure]:
    counts = Counter(job.state for job in jobs)
    made = [
        Figure("jobs", figure(len(jobs)), "the batch runs" if runs else "the batch does not run"),
        Figure("done", figure(counts["done"]), share(counts["done"], len(jobs))),
        Figure("failed", figure(counts["failed"])),
        Figure("left out", figure(counts["left out"])),
    ]
    rarer: tuple[State, ...] = ("running", "waiting", "cut off")
    made += [Figure(state, figure(counts[state])) for state in rarer if counts[state]]
    drawn = axis.jobs if axis else ()
    ends = [job.end for job in drawn if job.end is not None]
    if axis and ends:
        spent = sum(job.entry.seconds or 0 for job in drawn)
        note = f"of {_count(drawn)}, one after the other {duration(spent)}"
        made.append(Figure("first begin to last end", duration(max(ends) - axis.first), note))
    held = [(job.entry.peak_bytes, job.name) for job in jobs if job.entry.peak_bytes is not None]
    if held:
        most, name = max(held)
        made.append(Figure("most memory", size(most), name))
    return made


def _count(jobs: Sequence[Job]) -> str:
    return f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}"


def _unknown(jobs: Sequence[Job]) -> list[str]:
    names = [job.name for job in jobs if job.state == "cut off"]
    return (
        [f"When these jobs ended, because their batch was killed: {', '.join(names)}."]
        if names
        else []
    )


def _timeline(jobs: Sequence[Job], axis: Axis | None) -> Section:
    rows = [_row(job) for job in jobs]
    head = ("job", "state", "began", "ended", "time", "tries", "peak memory")
    made = table("Jobs, and the last try of each; times are UTC", head, rows)
    folded = beside("Table of jobs", made, len(rows))
    if axis is None:
        return Section("Jobs", [tag("p", "No job has begun."), folded], wide=True)
    bars = sorted(axis.jobs, key=_length, reverse=True)[:_MOST_LANES]
    shown = jobs
    told = ["Each bar is the last try of a job, from its begin to its end, in UTC."]
    if len(jobs) > _MOST_LANES:
        shown = sorted(bars, key=lambda job: (job.began, job.name))
        told.append(f"Only the {len(shown):,} longest bars of {len(jobs):,} jobs are drawn.")
    if any(job.ended == inf for job in bars):
        told.append("Jobs that are running have bars with a point.")
    if any(job.ended is None for job in bars):
        told.append("A bar with a torn end is a try whose end is not known.")
    if axis.earlier:
        told.append(
            f"The axis begins after the last pause that is longer than {_PAUSE // 60} minutes and "
            f"longer than all the time after it. Earlier, and without a bar: "
            f"{_count(axis.earlier)}."
        )
    content = [tag("p", " ".join(told)), tag("figure", _legend(bars), _drawn(shown, axis)), folded]
    return Section("Jobs by time", content, wide=True)


def _length(job: Job) -> float:
    return inf if job.ended is None else job.ended - job.began


def _legend(drawn: Sequence[Job]) -> Element:
    there = {job.state for job in drawn}
    marks = (tag("span", _swatch(state), name) for state, name in _DRAWN.items() if state in there)
    return tag("div", *marks, class_="legend")


def _swatch(state: State) -> Element:
    drawn = tag("rect", class_=_kind(state), x=1, y=1, width=12, height=12)
    return tag("svg", drawn, width=14, height=14, aria_hidden="true")


def _kind(state: State) -> str:
    return state.replace(" ", "-")


def _drawn(shown: Sequence[Job], axis: Axis) -> Element:
    first = floor(axis.first)
    last = max(first + 1, ceil(axis.last))

    def place(time: float) -> float:
        return (time - first) / (last - first)

    def lane(job: Job) -> Lane:
        if (told := _without_bar(job, axis)) is not None:
            return Lane(job.name, job.state, None, None, _kind(job.state), told)
        stop = None if job.ended is None else place(job.ended)
        return Lane(job.name, job.state, place(job.began), stop, _kind(job.state), _pointed(job))

    frame = Frame(
        "Jobs by time",
        "A row for each job, with a bar from its begin to its end; the table has the times.",
        Scale(0, 1, ()),
        "job: state",
        [Tick(place(at), name) for at, name in moments(first, last)],
        f"UTC, from {_time(first)}",
        height=LANE * len(shown),
    )
    return chart(frame, lanes(frame, [lane(job) for job in shown]))


def _without_bar(job: Job, axis: Axis) -> str | None:
    """Return the text in place of a job's bar; None: the job has a bar."""
    if job.state == "left out":
        return "a job that it needs has failed"
    if job.began == inf:
        return "it could not begin" if job.state == "failed" else "it has not begun"
    if job.began < axis.first:
        return f"{'began' if job.end is None else 'ended'} {_time(job.latest)}, before this axis"
    return None


def _pointed(job: Job) -> str:
    name, state, began, ended, seconds, tries, held = _row(job)
    return f"{name}, {state}: {began} to {ended}, {seconds}, tries {tries}, memory {held}"


def _row(job: Job) -> tuple[str, ...]:
    entry = job.entry
    lacking = _NOTHING if inf in (job.began, job.ended) else UNKNOWN
    return (
        job.name,
        job.state,
        _NOTHING if job.began == inf else _time(job.began),
        lacking if job.end is None else _time(job.end),
        lacking if entry.seconds is None else duration(entry.seconds),
        figure(job.tried),
        lacking if entry.peak_bytes is None else size(entry.peak_bytes),
    )


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(floor(seconds), UTC):%Y-%m-%d %H:%M:%S}"


def _failed(jobs: Sequence[Job]) -> Section | None:
    rows: list[tuple[str, Content]] = []
    for job in jobs:
        if job.state == "failed":
            entry = job.entry
            code = [] if entry.exit_code is None else [f"exit code {entry.exit_code}"]
            tries = f"{figure(job.tried)} tr{'y' if job.tried == 1 else 'ies'}"
            rows.append((job.name, f"{entry.error or UNKNOWN} ({', '.join([*code, tries])})"))
    return Section("Failed jobs, and their errors", [facts(rows)]) if rows else None


def _earlier(jobs: Sequence[Job]) -> Section | None:
    """Return a section on the tries before the last one of each job, since the job was last
    done.
    """
    rows = [
        (
            job.name,
            figure(number),
            one.state,
            _time(datetime.fromisoformat(one.began).timestamp()),
            UNKNOWN if one.ended is None else _time(datetime.fromisoformat(one.ended).timestamp()),
            UNKNOWN if one.seconds is None else duration(one.seconds),
            UNKNOWN if one.peak_bytes is None else size(one.peak_bytes),
            one.error or _NOTHING,
        )
        for job in jobs
        for number, one in enumerate(job.earlier, 1)
    ]
    if not rows:
        return None
    head = ("job", "try", "state", "began", "ended", "time", "peak memory", "error")
    made = table("Tries before the last one of each job; times are UTC", head, rows)
    told = "cut off: the batch was killed, so the end is not known; ended: a signal ended the try."
    folded = beside("Table of tries", made, len(rows))
    return Section("Earlier tries", [tag("p", told), folded], wide=True)


def _not_done(jobs: Sequence[Job], runs: bool) -> Section | None:
    """Return a section on jobs that have neither ended well nor failed, and their next step."""
    then = "" if runs else ", until the batch is run"
    told: dict[State, str] = {
        "running": "at this moment",
        "waiting": f"for their turn{then}",
        "cut off": "when the batch was killed; its next run continues them",
        "left out": "because a job that they need has failed",
    }
    rows: list[tuple[str, Content]] = []
    for state, why in told.items():
        some = [job for job in jobs if job.state == state]
        if some:
            rows.append((state, f"{why}: {', '.join(job.name for job in some)}"))
    for job in jobs:
        if job.state == "waiting" and job.entry.error:
            rows.append((job.name, f"its last try: {job.entry.error}"))
    return Section("Not done yet", [facts(rows)]) if rows else None
