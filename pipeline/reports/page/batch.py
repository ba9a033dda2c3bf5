"""A page about a batch: what became of its jobs, when and why, by its ledger.

The ledger has the tries of each job since the job was last done, and knows no runs: of a batch that
is run night by night some jobs were done weeks ago. These have no bar and say when that was: the
axis begins after the last pause that is longer than all that follows it, and than any before
another try. Which jobs a job needs, only the file of jobs knows, as it stands now.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, chain
from math import ceil, floor, inf
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...batches.causes import MOST_NAMED, describe_exit
from ...batches.history import JobHistory, Times, read_histories, times_of
from ...batches.ledger import Entry, State, Try, TryState, folder_of, ledger_of
from ..numbers import UNKNOWN, duration, figure, share, size
from . import run
from .charts import Lane, Span, Tick, timeline
from .markup import Content, tag
from .page import Figure, Page, Section
from .scales import moments
from .tables import beside, facts, table

_PAUSE = 300
"""Seconds: the longest before another try."""
_MOST_LANES = 100
_NOTHING = "-"

_DRAWN: dict[State | TryState, str] = {
    "done": "done",
    "failed": "failed",
    "running": "running",
    "waiting": "waiting: its last try",
    "ended": "ended by a signal",
    "cut off": "cut off",
}


@dataclass(frozen=True)
class Axis:
    """Axis of time. jobs: those with a bar, by their begin; earlier: those that ended before the
    axis. first: a begin; last: the last time that is known.
    """

    jobs: Sequence[JobHistory]
    earlier: Sequence[JobHistory]
    first: float
    last: float


class TryBar(NamedTuple):
    """A try that is drawn. told: its numbers. thin: whether it is not the last try of its job."""

    times: Times
    state: State | TryState
    told: str
    thin: bool


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
    runs, jobs = read_histories(path)
    jobs.sort(key=_by_begin)
    axis = _axis([job for job in jobs if job.times.began < inf and job.state != "left out"])
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


def _by_begin(job: JobHistory) -> tuple[float, str]:
    return job.times.began, job.name


def _axis(begun: Sequence[JobHistory]) -> Axis | None:
    """Return the axis for jobs that have begun. begun: by their begin."""
    if not begun:
        return None
    spans = sorted(chain.from_iterable(job.every_time() for job in begun), key=attrgetter("began"))
    last = max(span.latest for span in spans)
    ends = list(accumulate((inf if span.ended == inf else span.latest for span in spans), max))
    first = next(
        (
            spans[i].began
            for i in range(len(spans) - 1, 0, -1)
            if spans[i].began - ends[i - 1] > max(_PAUSE, last - spans[i].began)
        ),
        spans[0].began,
    )
    cut = bisect_left(begun, first, key=lambda job: job.times.began)
    return Axis(begun[cut:], begun[:cut], first, last)


def _figures(jobs: Sequence[JobHistory], axis: Axis | None, runs: bool) -> list[Figure]:
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
    times = chain.from_iterable(job.every_time() for job in drawn)
    ends = [span.end for span in times if span.end is not None]
    if axis and ends:
        tries = chain(
            (job.entry for job in drawn), *(_earlier_on_axis(job, axis.first) for job in drawn)
        )
        spent = sum(attempt.seconds or 0 for attempt in tries)
        note = f"of {_count(len(drawn), 'job', 'jobs')}, one after the other {duration(spent)}"
        made.append(Figure("first begin to last end", duration(max(ends) - axis.first), note))
    held = [(job.entry.peak_bytes, job.name) for job in jobs if job.entry.peak_bytes is not None]
    if held:
        most, name = max(held)
        made.append(Figure("most memory", size(most), name))
    return made


def _earlier_on_axis(job: JobHistory, first: float) -> list[Try]:
    """Return the tries before the last one of a job, without those before the axis begins."""
    return [attempt for attempt in job.earlier if times_of(attempt).began >= first]


def _count(count: int, what: str, many: str) -> str:
    return f"{count:,} {what if count == 1 else many}"


def _unknown(jobs: Sequence[JobHistory]) -> list[str]:
    names = [job.name for job in jobs if job.state == "cut off"]
    return (
        [f"When these jobs ended, because their batch was killed: {', '.join(names)}."]
        if names
        else []
    )


def _timeline(jobs: Sequence[JobHistory], axis: Axis | None) -> Section:
    rows = [_row(job) for job in jobs]
    head = ("job", "state", "began", "ended", "time", "tries", "peak memory")
    made = table("Jobs, and the last try of each; times are UTC", head, rows)
    folded = beside("Table of jobs", made, len(rows))
    if axis is None:
        return Section("Jobs", [tag("p", "No job has begun."), folded], wide=True)
    shown = _most_telling(jobs, axis)
    bars = {job.name: _bars(job, axis) for job in shown}
    all_bars = list(chain.from_iterable(bars.values()))
    told = ["Each bar is a try of a job, from its begin to its end, in UTC."]
    if any(bar.thin for bar in all_bars):
        told.append("Tries before the last one of a job have thin bars.")
    if len(shown) < len(jobs):
        told.append(
            f"Only {len(shown):,} of {len(jobs):,} jobs are drawn: those that failed come first, "
            "then those whose last try took longest."
        )
    if any(bar.times.ended == inf for bar in all_bars):
        told.append("Jobs that are running have bars with a point.")
    if any(bar.times.ended is None for bar in all_bars):
        told.append("A bar with a torn end is a try whose end is not known.")
    before = sum(len(job.earlier) - len(_earlier_on_axis(job, axis.first)) for job in axis.jobs)
    if axis.earlier or before:
        counts = [_count(len(axis.earlier), "job", "jobs")] if axis.earlier else []
        counts += [_count(before, "try", "tries") + " of jobs with a bar"] if before else []
        told.append(
            f"The axis begins after the last pause that is longer than {_PAUSE // 60} minutes and "
            f"longer than all the time after it. Earlier, and without a bar: {', '.join(counts)}."
        )
    content = [
        tag("p", " ".join(told)),
        tag("figure", _legend(all_bars), _drawn([(job, bars[job.name]) for job in shown], axis)),
        folded,
    ]
    return Section("Jobs by time", content, wide=True)


def _most_telling(jobs: Sequence[JobHistory], axis: Axis) -> Sequence[JobHistory]:
    """Return the jobs that are drawn, by their begin: of many, those that failed come first, then
    those whose last try took longest.
    """
    if len(jobs) <= _MOST_LANES:
        return jobs
    on_axis = {job.name for job in axis.jobs}
    telling = [job for job in jobs if job.state == "failed" or job.name in on_axis]
    telling.sort(key=lambda job: (job.state == "failed", _length(job)), reverse=True)
    return sorted(telling[:_MOST_LANES], key=_by_begin)


def _length(job: JobHistory) -> float:
    began, ended = job.times
    return inf if ended is None else ended - began


def _bars(job: JobHistory, axis: Axis) -> list[TryBar]:
    """Return the bars of a job's tries; none for a job that was left out, has not begun, or ended
    before the axis.
    """
    if job.state == "left out" or not axis.first <= job.times.began < inf:
        return []
    bars = [
        TryBar(times_of(attempt), attempt.state, _pointed_try(attempt, number), True)
        for number, attempt in enumerate(job.earlier, 1)
        if times_of(attempt).began >= axis.first
    ]
    return [*bars, TryBar(job.times, job.outcome, _pointed(job), False)]


def _legend(drawn: Sequence[TryBar]) -> Element:
    there = {bar.state for bar in drawn}
    marks = (tag("span", _swatch(state), name) for state, name in _DRAWN.items() if state in there)
    return tag("div", *marks, class_="legend")


def _swatch(state: State | TryState) -> Element:
    drawn = tag("rect", class_=_kind(state), x=1, y=1, width=12, height=12)
    return tag("svg", drawn, width=14, height=14, aria_hidden="true")


def _kind(state: State | TryState) -> str:
    return state.replace(" ", "-")


def _drawn(rows: Sequence[tuple[JobHistory, Sequence[TryBar]]], axis: Axis) -> Element:
    first = floor(axis.first)
    last = max(first + 1, ceil(axis.last))

    def place(time: float) -> float:
        return (time - first) / (last - first)

    def span(bar: TryBar) -> Span:
        began, ended = bar.times
        stop = None if ended is None else place(ended)
        return Span(place(began), stop, _kind(bar.state), bar.told, bar.thin)

    return timeline(
        "Jobs by time",
        "A row for each job, with a bar for each try from its begin to its end; the tables have "
        "the times.",
        [Tick(place(at), name) for at, name in moments(first, last)],
        f"UTC, from {_time(first)}",
        [Lane(job.name, job.state, [*map(span, bars)], _note(job, axis)) for job, bars in rows],
    )


def _note(job: JobHistory, axis: Axis) -> str:
    """Return the text beside a job's bars: the cause of its state, and why it has no bar."""
    if job.state == "left out":
        return _why_left_out(job)
    notes: list[str] = []
    if job.state == "failed":
        notes.append(_why(job.entry))
    elif job.state == "waiting" and (job.entry.error or job.entry.exit_code):
        notes.append(f"its last try: {_why(job.entry)}")
    if job.times.began == inf:
        notes += ["it has not begun"] if job.state != "failed" else []
    elif job.times.began < axis.first:
        verb = "began" if job.times.end is None else "ended"
        notes.append(f"{verb} {_time(job.times.latest)}, before this axis")
    return "; ".join(notes)


def _why_left_out(job: JobHistory) -> str:
    if not job.blockers:
        return "a job that it needs has failed"
    few = ", ".join(job.blockers[:MOST_NAMED])
    return f"because {few}{' and others' if len(job.blockers) > MOST_NAMED else ''} failed"


def _why(record: Entry | Try, *details: str) -> str:
    """Return the error of a job or a try, and in parentheses its exit code in words and details."""
    code = describe_exit(record.exit_code) if record.exit_code else ""
    error = record.error or code or UNKNOWN
    told = ", ".join([*([code] if code not in error else []), *details])
    return f"{error} ({told})" if told else error


def _pointed(job: JobHistory) -> str:
    name, state, began, ended, seconds, tries, held = _row(job)
    why = f": {_why(job.entry)}" if job.state == "failed" else ""
    return f"{name}, {state}: {began} to {ended}, {seconds}, tries {tries}, memory {held}{why}"


def _pointed_try(attempt: Try, number: int) -> str:
    began, ended, seconds, held, why = _try_cells(attempt)
    told = f"{attempt.name}, try {number}, {attempt.state}: {began} to {ended}, {seconds}, "
    told += f"memory {held}"
    return told if why == _NOTHING else f"{told}: {why}"


def _try_cells(attempt: Try) -> tuple[str, ...]:
    times = times_of(attempt)
    return (
        _time(times.began),
        UNKNOWN if times.ended is None else _time(times.ended),
        UNKNOWN if attempt.seconds is None else duration(attempt.seconds),
        UNKNOWN if attempt.peak_bytes is None else size(attempt.peak_bytes),
        attempt.error or (describe_exit(attempt.exit_code) if attempt.exit_code else _NOTHING),
    )


def _row(job: JobHistory) -> tuple[str, ...]:
    entry = job.entry
    began, end = job.times.began, job.times.end
    lacking = _NOTHING if inf in job.times else UNKNOWN
    return (
        job.name,
        job.state,
        _NOTHING if began == inf else _time(began),
        lacking if end is None else _time(end),
        lacking if entry.seconds is None else duration(entry.seconds),
        figure(job.tried),
        lacking if entry.peak_bytes is None else size(entry.peak_bytes),
    )


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(floor(seconds), UTC):%Y-%m-%d %H:%M:%S}"


def _failed(jobs: Sequence[JobHistory]) -> Section | None:
    rows: list[tuple[str, Content]] = []
    for job in jobs:
        if job.state == "failed":
            tries = _count(job.tried, "try", "tries")
            rows.append((job.name, _why(job.entry, tries)))
    return Section("Failed jobs, and their errors", [facts(rows)]) if rows else None


def _earlier(jobs: Sequence[JobHistory]) -> Section | None:
    """Return a section on the tries before the last one of each job, since the job was last
    done.
    """
    rows = [
        (
            job.name,
            figure(number),
            attempt.state,
            *_try_cells(attempt),
        )
        for job in jobs
        for number, attempt in enumerate(job.earlier, 1)
    ]
    if not rows:
        return None
    head = ("job", "try", "state", "began", "ended", "time", "peak memory", "error")
    made = table("Tries before the last one of each job; times are UTC", head, rows)
    told = "cut off: the batch was killed, so the end is not known; ended: a signal ended the try."
    folded = beside("Table of tries", made, len(rows))
    return Section("Earlier tries", [tag("p", told), folded], wide=True)


def _not_done(jobs: Sequence[JobHistory], runs: bool) -> Section | None:
    """Return a section on jobs that have neither ended well nor failed, and their next step."""
    then = "" if runs else ", until the batch is run"
    told: dict[State, str] = {
        "running": "at this moment",
        "waiting": f"for their turn{then}",
        "cut off": "when the batch was killed; its next run continues them",
    }
    rows: list[tuple[str, Content]] = []
    for state, why in told.items():
        state_jobs = [job for job in jobs if job.state == state]
        if state_jobs:
            rows.append((state, f"{why}: {', '.join(job.name for job in state_jobs)}"))
    causes: dict[str, list[str]] = {}
    for job in jobs:
        if job.state == "left out":
            causes.setdefault(_why_left_out(job), []).append(job.name)
    if causes:
        told_causes = (f"{why}: {', '.join(names)}" for why, names in causes.items())
        rows.append(("left out", "; ".join(told_causes)))
    for job in jobs:
        if job.state == "waiting" and (job.entry.error or job.entry.exit_code):
            rows.append((job.name, f"its last try: {_why(job.entry)}"))
    return Section("Not done yet", [facts(rows)]) if rows else None
