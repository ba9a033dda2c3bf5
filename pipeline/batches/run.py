"""Execution of a batch's jobs, each in a process, several side by side within one memory limit.

    jobs.toml.batch/    ledger.sqlite, lock, and for each job NAME.log (its events) and NAME.out

A batch that was ended resumes where it stopped: finished jobs do not run again unless their inputs
have changed. Jobs on one graph that run one after another share a process, which keeps the graph.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...partition.disk.lock import locked
from ...partition.disk.urls import absolute
from ...partition.errors import DelegraphError, InputError
from ..run.ending import SAVE_SECONDS
from ..run.execute import Progress
from .causes import describe_exit
from .due import (
    BatchOptions,
    check_memory,
    is_there,
    key_of,
    looks_of,
    share_of,
    too_little_for_both,
    why_due,
)
from .job import Job
from .ledger import (
    Entry,
    Ledger,
    Try,
    TryState,
    folder_of,
    ledger_of,
    log_of,
    open_ledger,
    try_of,
)
from .process import JobProcess

_TRY_AGAIN = 75
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 5.0
"""Seconds before the second try; each further pause is twice as long."""
_LONGEST_PAUSE = 300.0
_MOST_DOUBLINGS = 10
_END_SECONDS = SAVE_SECONDS + 5

Tell = Callable[[str, str], None]
"""Function that is called with a job's name and its new state as text."""


def run_batch(
    path: Path,
    jobs: Sequence[Job],
    options: BatchOptions,
    tell: Tell,
    progress: Progress = lambda step, done, total: None,
) -> list[Entry]:
    """Run the jobs that are not done, and return the ledger's entry of each job, in order.

    Raises BusyError if another process runs the same batch; InputError for a job whose memory limit
    is larger than the batch's.
    """
    check_memory(path, jobs, options)
    with (
        _alone(path),
        open_ledger(ledger_of(path), write=True) as ledger,
        _Run(path, jobs, options, tell, ledger) as run,
    ):
        while run.goes_on():
            progress("jobs", len(jobs) - len(run.undecided), len(jobs))
            time.sleep(_LOOK_SECONDS)
        return [run.entries[job.name] for job in jobs]


def _alone(path: Path) -> contextlib.AbstractContextManager[None]:
    return locked(folder_of(path), path, "wait for it")


@dataclass
class _Running:
    """A running job. until: the time of its timeout. ended: whether it was told to end."""

    job: Job
    process: JobProcess
    began: float
    until: float
    memory: int
    ended: bool = False


@dataclass
class _Run:
    """A run of a batch. waiting: finished jobs whose process is kept, by the text that names what
    it keeps; a process is kept only while no job runs and an undecided job could use it, and is
    reused or ended when the next job begins. apart: jobs that must have a process of their own.
    later: the earliest time of the next try of a job. orphaned: the time until which a process that
    a killed batch left behind may still run, by job. trying: jobs that have begun a try. held_back:
    jobs already reported as waiting for memory. undecided: jobs whose outcome is open.
    """

    path: Path
    jobs: Sequence[Job]
    options: BatchOptions
    tell: Tell
    ledger: Ledger
    running: dict[str, _Running] = field(default_factory=dict)
    waiting: dict[str, _Running] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    later: dict[str, float] = field(default_factory=dict)
    orphaned: dict[str, float] = field(default_factory=dict)
    trying: set[str] = field(default_factory=set)
    held_back: set[str] = field(default_factory=set)

    def __enter__(self) -> _Run:
        self.entries = self.ledger.entries()
        for job in self.jobs:
            entry = self.entries.get(job.name, Entry(job.name, "waiting"))
            if entry.state == "running":  # its process may still be saving
                self.orphaned[job.name] = time.monotonic() + 2 * _END_SECONDS
                self.ledger.put(tried=try_of(entry, "cut off"))
            if entry.state != "done":  # a failed or cut off job gets all its tries again
                self._put(entry._replace(state="waiting", attempts=0))
        self.ledger.keep_only({job.name for job in self.jobs})
        self.undecided = {job.name for job in self.jobs}
        return self

    def __exit__(self, *error: object) -> None:
        """Let running jobs save their state and end, even if the ledger cannot be written."""
        try:
            for running in list(self.running.values()):
                self._look(running)  # some may have ended by themselves
        finally:
            for running in self.running.values():
                running.process.send(signal.SIGTERM)
            until = time.monotonic() + _END_SECONDS
            self._let_go()
            for running in self.running.values():
                running.process.end(until - time.monotonic())
        for running in list(self.running.values()):
            if running.process.code() == 0:
                self._look(running)
                continue
            entry = _with_output_look(self.entries[running.job.name])
            ended = entry._replace(ended=_now(), exit_code=running.process.code())
            self._put(
                entry._replace(state="waiting", attempts=entry.attempts - 1),
                try_of(ended, "ended"),
            )

    def goes_on(self) -> bool:
        """Check the running jobs, begin more jobs, and return whether any job is undecided."""
        for running in list(self.running.values()):
            self._look(running)
        for job in self.jobs:
            if job.name in self.undecided and job.name not in self.running:
                self._decide(job)
        left = (job for job in self.jobs if job.name in self.undecided)
        self._let_go(() if self.running else {job.line.shares for job in left})
        return bool(self.undecided)

    def _decide(self, job: Job) -> None:
        needs = [self.entries[need] for need in job.needs]
        if any(need.name in self.undecided for need in needs):
            return
        bad = [need.name for need in needs if need.state != "done"]
        if bad:
            self._end(job, self.entries[job.name]._replace(state="left out"))
            self.tell(job.name, f"left out: {', '.join(bad)} failed")
            return
        if time.monotonic() < self.later.get(job.name, 0.0):
            return
        if self.entries[job.name].state == "done":
            try:
                due = why_due(job, self.entries[job.name]) != ""
            except (DelegraphError, OSError) as error:  # such as no answer of an object store
                self._fail(job, self.entries[job.name], f"cannot begin: {error}")
                return
            if not due:
                self.undecided.discard(job.name)
                self.tell(job.name, "done already")
                return
            self._put(self.entries[job.name]._replace(state="waiting", attempts=0))
        memory = share_of(job, self.options)
        used = sum(running.memory for running in self.running.values())
        room = len(self.running) < self.options.at_once
        if room and used + memory <= self.options.memory_limit:
            self._begin(job, memory)
        elif room and job.name not in self.held_back:
            self.held_back.add(job.name)
            names = ", ".join(self.running)
            self.tell(
                job.name, f"waits for {names}: {too_little_for_both(used + memory, self.options)}"
            )

    def _begin(self, job: Job, memory: int) -> None:
        try:
            words, entry = self._next_try(job, memory)
        except (OSError, DelegraphError) as error:
            self._fail(job, self.entries[job.name], f"cannot begin: {error}")
            return
        # The ledger has the try before it begins; if it cannot be written, the batch ends.
        self._put(entry, try_of(entry, "running"))
        self.trying.add(job.name)
        try:
            process = self._process_with(words, job, memory)
        except (OSError, DelegraphError) as error:
            self._fail(job, self.entries[job.name], f"cannot begin: {error}")
            return
        now = time.monotonic()
        until = now + (job.timeout or math.inf)
        self.running[job.name] = _Running(job, process, now, until, memory)
        tries = self.entries[job.name].attempts
        self.tell(job.name, "begun" if tries == 1 else f"begun, try {tries}")

    def _process_with(self, words: Sequence[str], job: Job, memory: int) -> JobProcess:
        """Return a process that has begun a job: one that keeps what the job needs and holds no
        more than the job may, or a new one.
        """
        log = log_of(self.path, job.name)
        kept = None if job.name in self.apart else job.line.shares
        before = None if kept is None else self.waiting.pop(kept, None)
        self._let_go()  # this job may need their memory
        if before is not None:
            if before.memory <= memory:
                with contextlib.suppress(OSError):  # the process is gone
                    before.process.begin(words, log)
                    return before.process
            before.process.let_go()
        process = JobProcess(stays=kept is not None)
        process.begin(words, log)
        return process

    def _next_try(self, job: Job, memory: int) -> tuple[list[str], Entry]:
        """Return the words of a job's command, and the entry that the ledger gets for the try."""
        entry = self.entries[job.name]
        output = absolute(job.line.output) if job.line.output else ""
        there, key = bool(output) and is_there(output), key_of(job)
        ours = entry.owned == output and (not entry.made or entry.made == looks_of(output))
        words = [*job.line.options, "--log-format=json"]
        if job.line.takes_limit and job.line.memory_limit is None:
            words.append(f"--memory-limit={memory}")
        if there and ours:
            words.append("--overwrite")
        if job.line.takes_restart and entry.began is not None and entry.key != key:
            words.append("--restart")  # files left behind belong to another key
        owned = output if not there or ours else ""
        attempts, began = entry.attempts + 1, _now()
        next_entry = Entry(job.name, "running", key, owned, attempts=attempts, began=began)
        return [*words, "--", *job.line.arguments], next_entry

    def _let_go(self, wanted: Collection[str | None] = ()) -> None:
        """End waiting processes, except those that keep something in ``wanted``."""
        for kept in self.waiting.keys() - set(wanted):
            self.waiting.pop(kept).process.let_go()

    def _look(self, running: _Running) -> None:
        job, code, now = running.job, running.process.code(), time.monotonic()
        if code is None:
            if now > running.until + _END_SECONDS:
                running.process.send(signal.SIGKILL)
            elif now > running.until and not running.ended:
                running.ended = True
                running.process.send(signal.SIGTERM)
            return
        del self.running[job.name]
        told, seconds = running.process.last_event(), now - running.began
        entry = self.entries[job.name]._replace(
            ended=_now(),
            exit_code=code,
            seconds=round(seconds, 3),
            peak_bytes=told.get("peak_bytes"),
            error=told.get("error"),
        )
        if code == 0:
            self._keep(running)
            self._end(job, _with_output_look(entry._replace(state="done")), "done")
            self.tell(job.name, f"done in {seconds:.1f} s")
            return
        running.process.end(0)
        why = entry.error or describe_exit(code)
        if running.ended:
            self._fail(job, entry, f"did not end within its timeout of {job.timeout:g} s")
        elif code == _TRY_AGAIN and now < self.orphaned.get(job.name, 0.0):
            # A process that an earlier batch left behind is still saving.
            self.trying.discard(job.name)
            self._try_later(job, entry._replace(attempts=entry.attempts - 1), why, 1.0)
            self.ledger.forget_try(job.name, entry.began)
        elif (code == _TRY_AGAIN or told.get("retry")) and entry.attempts <= job.retries:
            doublings = min(entry.attempts - 1, _MOST_DOUBLINGS)
            pause = min(_PAUSE_SECONDS * 2**doublings, _LONGEST_PAUSE)
            self._try_later(job, entry, why, pause)
        elif running.process.jobs > 1:  # perhaps because of earlier jobs in that process
            self.apart.add(job.name)
            self._try_later(job, entry._replace(attempts=entry.attempts - 1), why, 0.0)
        else:
            self._fail(job, entry, why)

    def _keep(self, running: _Running) -> None:
        """Keep the process of a finished job if it stays and was not told to end; else end it."""
        kept, process = running.job.line.shares, running.process
        stays = process.stays and process.is_alive() and not running.ended
        if kept is not None and stays and kept not in self.waiting:
            self.waiting[kept] = running
        else:
            process.let_go()

    def _try_later(self, job: Job, entry: Entry, why: str, pause: float) -> None:
        self.later[job.name] = time.monotonic() + pause
        waiting = _with_output_look(entry)._replace(state="waiting", error=why)
        self._put(*self._entry_and_try(waiting, "failed"))
        self.tell(job.name, f"{why}; next try in {pause:g} s")

    def _fail(self, job: Job, entry: Entry, why: str) -> None:
        self._end(job, _with_output_look(entry)._replace(state="failed", error=why), "failed")
        self.tell(job.name, f"failed: {why}")

    def _end(self, job: Job, entry: Entry, how: TryState = "failed") -> None:
        self.undecided.discard(job.name)
        self._put(*self._entry_and_try(entry, how))

    def _entry_and_try(self, entry: Entry, how: TryState) -> tuple[Entry, Try | None]:
        """Return the entry and, if the job has begun a try, that try with its outcome ``how``."""
        begun = entry.name in self.trying
        self.trying.discard(entry.name)
        return entry, try_of(entry, how) if begun else None

    def _put(self, entry: Entry, tried: Try | None = None) -> None:
        self.ledger.put(entry, tried=tried)
        self.entries[entry.name] = entry


def _with_output_look(entry: Entry) -> Entry:
    """Return the entry with the present look of the batch's own output, whatever the outcome of the
    try.
    """
    if not entry.owned or entry.made:
        return entry
    try:
        return entry._replace(made=looks_of(entry.owned))
    except (DelegraphError, OSError):  # such as no answer of an object store
        return entry


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def retry(path: Path, jobs: Sequence[Job], name: str) -> list[str]:
    """Mark a job, and all jobs that need it, to run again. Returns their names."""
    if name not in {job.name for job in jobs}:
        raise InputError(f"{path}: no job has the name '{name}'")
    again = [name]
    for job in jobs:
        if set(job.needs) & set(again):
            again.append(job.name)
    with _alone(path), open_ledger(ledger_of(path), write=True) as ledger:
        entries = ledger.entries()
        begun = (entries.get(job_name, Entry(job_name, "waiting")) for job_name in again)
        ledger.put(*(entry._replace(state="waiting", key="", attempts=0) for entry in begun))
    return again
