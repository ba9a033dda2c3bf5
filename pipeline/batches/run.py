"""Runs the jobs of a batch, each in a process of its own, several side by side within one memory
limit.

    jobs.toml.batch/    ledger.sqlite, lock, and of each job NAME.log (its events) and NAME.out

A batch that was ended goes on where it was: what is done is not done again, unless what it was made
from has changed. Jobs whose batch dies save what they have done, and end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import iglob
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from ...partition.disk.lock import LOCK, locked
from ...partition.disk.memory import format_bytes
from ...partition.disk.urls import absolute, is_remote
from ...partition.errors import DelegraphError, InputError
from ...partition.input.find import facts_of_remote
from ..run.ending import LIFELINE, SAVE_SECONDS
from ..run.execute import Progress
from .jobs import Job
from .ledger import Entry, Ledger, open_ledger

_TRY_AGAIN = 75
_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 5.0
"""Before a second try; twice as long before each further one."""
_LONGEST_PAUSE = 300.0
_END_SECONDS = SAVE_SECONDS + 5

Tell = Callable[[str, str], None]
"""Called with a job's name and what has become of it."""


@dataclass(frozen=True)
class BatchOptions:
    """at_once: jobs side by side. memory_limit: bytes of all of them."""

    at_once: int = 1
    memory_limit: int = 1 << 40


class Planned(NamedTuple):
    """A job, whether it would run, why, and within how many bytes."""

    job: Job
    runs: bool
    why: str
    memory_limit: int


def folder_of(path: Path) -> Path:
    """Where a batch keeps what it knows."""
    return path.with_name(f"{path.name}.batch")


def ledger_of(path: Path) -> Path:
    return folder_of(path) / "ledger.sqlite"


def log_of(path: Path, name: str) -> Path:
    return folder_of(path) / f"{name}.log"


def run_batch(
    path: Path,
    jobs: Sequence[Job],
    options: BatchOptions,
    tell: Tell,
    progress: Progress = lambda step, done, total: None,
) -> list[Entry]:
    """Run what is not done; what has become of each, in order.

    Raises BusyError where another process runs the same batch; InputError for a job that asks for
    more memory than there is.
    """
    check_memory(path, jobs, options)
    with (
        locked(folder_of(path), path, "wait for it"),
        open_ledger(ledger_of(path), write=True) as ledger,
        _Run(path, jobs, options, tell, ledger) as run,
    ):
        while run.goes_on():
            progress("jobs", len(jobs) - len(run.undecided), len(jobs))
            time.sleep(_LOOK_SECONDS)
        entries = ledger.entries()
        return [entries[job.name] for job in jobs]


def check_memory(path: Path, jobs: Sequence[Job], options: BatchOptions) -> None:
    for job in jobs:
        asked = job.line.memory_limit
        if asked is not None and asked > options.memory_limit:
            raise InputError(
                f"{path}, line {job.at}: '{job.name}' asks for {format_bytes(asked)}, more than "
                f"the batch has, {format_bytes(options.memory_limit)}: give it --memory-limit"
            )


def plan_batch(path: Path, jobs: Sequence[Job], options: BatchOptions) -> list[Planned]:
    """What ``run_batch`` would do now, in order."""
    entries: Mapping[str, Entry] = {}
    if ledger_of(path).exists():
        with open_ledger(ledger_of(path), write=False) as ledger:
            entries = ledger.entries()
    planned: dict[str, Planned] = {}
    for job in jobs:
        after = [need for need in job.needs if planned[need].runs]
        entry = entries.get(job.name)
        why = f"after {', '.join(after)}" if after else _why(job, entry)
        share = _share(job, options)
        planned[job.name] = Planned(job, bool(after) or why != "", why, share)
    return list(planned.values())


def _share(job: Job, options: BatchOptions) -> int:
    return job.line.memory_limit or options.memory_limit // options.at_once


def _why(job: Job, entry: Entry | None) -> str:
    """Why a job has to run whose needs are done; empty: it has not."""
    if entry is None or (entry.state == "waiting" and not entry.attempts):
        return "it has not run yet"
    if entry.state == "running":
        return "it was cut off"
    if entry.state != "done":
        return f"it has {entry.state}" if entry.state == "failed" else "it has not run yet"
    if job.line.output is not None and not _is_there(job.line.output):
        return "its output is gone"
    return "" if entry.key == key_of(job) else "what it is made from has changed"


def key_of(job: Job) -> str:
    """Of what a job is to do, and of the files that it reads, as they are now."""
    digest = xxhash.xxh3_128(json.dumps(list(job.line.asked)).encode())
    for option, file in sorted(job.line.inputs.items()):
        digest.update(f"\n{option} {file}".encode())
        if is_remote(file):
            digest.update("\n".join(["", *facts_of_remote(file)]).encode())
            continue
        for path in sorted(_files(file)):
            facts = path.stat()
            digest.update(f"\n{path} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()


def _is_there(output: str) -> bool:
    return bool(facts_of_remote(output)) if is_remote(output) else os.path.lexists(output)


def _files(name: str) -> Iterator[Path]:
    """All of a folder, a file, or those that a pattern names; with the record beside it."""
    path = Path(name)
    there = [path] if path.exists() else [Path(one) for one in iglob(name, recursive=True)]
    for one in [*there, path.with_name(f"{path.name}.run.json")]:
        if one.is_dir():
            yield from (file for file in one.rglob("*") if file.is_file())
        elif one.exists():
            yield one


@dataclass
class _Running:
    """until: when its time is over. log_from: where its own lines of the log begin. ended: whether
    it was told to.
    """

    job: Job
    process: subprocess.Popen[bytes]
    began: float
    until: float
    memory: int
    log_from: int
    ended: bool = False


@dataclass
class _Run:
    """later: when jobs that are tried again may begin. orphaned: until when those of a batch that
    was killed may still be there. undecided: those of which it is open what becomes of them.
    """

    path: Path
    jobs: Sequence[Job]
    options: BatchOptions
    tell: Tell
    ledger: Ledger
    running: dict[str, _Running] = field(default_factory=dict)
    later: dict[str, float] = field(default_factory=dict)
    orphaned: dict[str, float] = field(default_factory=dict)

    def __enter__(self) -> _Run:
        self.entries = self.ledger.entries()
        for job in self.jobs:
            entry = self.entries.get(job.name, Entry(job.name, "waiting"))
            if entry.state == "running":  # and may still be saving
                self.orphaned[job.name] = time.monotonic() + 2 * _END_SECONDS
            if entry.state != "done":  # what has failed, or was cut off, gets its tries again
                self._put(entry._replace(state="waiting", attempts=0))
        self.ledger.keep_only({job.name for job in self.jobs})
        self.undecided = {job.name for job in self.jobs}
        self._near, self._far = os.pipe()  # closed when this process is gone, however that goes
        return self

    def __exit__(self, *error: object) -> None:
        """Jobs that run save what they have done."""
        for running in list(self.running.values()):
            self._look(running)  # some may have ended by themselves
        for running in self.running.values():
            _signal(running.process, signal.SIGTERM)
        until = time.monotonic() + _END_SECONDS
        for running in self.running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(max(0.0, until - time.monotonic()))
            _signal(running.process, signal.SIGKILL)
            running.process.wait()
            entry = self.entries[running.job.name]
            self._put(entry._replace(state="waiting", attempts=entry.attempts - 1))
        os.close(self._near)
        os.close(self._far)

    def goes_on(self) -> bool:
        """Look at what runs, and begin what can; whether anything is left."""
        for running in list(self.running.values()):
            self._look(running)
        for job in self.jobs:
            if job.name in self.undecided and job.name not in self.running:
                self._decide(job)
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
        entry = self.entries[job.name]
        try:
            due = _why(job, entry) != ""
        except DelegraphError as error:  # of an object store that does not answer
            self._fail(job, entry, f"cannot begin: {error}")
            return
        if not due:
            self.undecided.discard(job.name)
            self.tell(job.name, "done already")
            return
        memory = _share(job, self.options)
        used = sum(running.memory for running in self.running.values())
        room = len(self.running) < self.options.at_once
        if room and used + memory <= self.options.memory_limit:
            self._begin(job, entry, memory)

    def _begin(self, job: Job, entry: Entry, memory: int) -> None:
        try:
            running = self._started(job, entry, memory)
        except (OSError, DelegraphError) as error:
            self._fail(job, self.entries[job.name], f"cannot begin: {error}")
            return
        self.running[job.name] = running
        tries = self.entries[job.name].attempts
        self.tell(job.name, "begun" if tries == 1 else f"begun, try {tries}")

    def _started(self, job: Job, entry: Entry, memory: int) -> _Running:
        output = absolute(job.line.output) if job.line.output else ""
        there, key = bool(output) and _is_there(output), key_of(job)
        # Whatever lies in this folder is no module.
        line = [sys.executable, "-P", "-m", "delegraph", *job.line.options, "--log-format=json"]
        if job.line.takes_limit and job.line.memory_limit is None:
            line.append(f"--memory-limit={memory}")
        if there and entry.owned == output:
            line.append("--overwrite")
        if job.line.takes_restart and entry.began is not None and entry.key != key:
            line.append("--restart")  # what was left is of something else
        line += ["--", *job.line.arguments]
        owned = output if not there or entry.owned == output else ""
        tries = 1 if entry.state == "done" else entry.attempts + 1
        self._put(Entry(job.name, "running", key, owned, tries, _now()))
        if output and not is_remote(output):
            Path(output).parent.mkdir(parents=True, exist_ok=True)
        log = log_of(self.path, job.name)
        with log.open("ab") as told, log.with_suffix(".out").open("wb") as found:
            process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=found,
                stderr=told,
                start_new_session=True,
                pass_fds=[self._near],
                env={**os.environ, LIFELINE: str(self._near)},
            )
            now = time.monotonic()
            return _Running(job, process, now, now + (job.timeout or math.inf), memory, told.tell())

    def _look(self, running: _Running) -> None:
        job, code, now = running.job, running.process.poll(), time.monotonic()
        if code is None:
            if now > running.until + _END_SECONDS:
                _signal(running.process, signal.SIGKILL)
            elif now > running.until and not running.ended:
                running.ended = True
                _signal(running.process, signal.SIGTERM)
            return
        del self.running[job.name]
        told = _last_event(log_of(self.path, job.name), running.log_from)
        seconds = now - running.began
        entry = self.entries[job.name]._replace(
            ended=_now(),
            exit_code=code,
            seconds=round(seconds, 3),
            peak_bytes=told.get("peak_bytes"),
            error=told.get("error"),
        )
        if code == 0:
            self._end(job, entry._replace(state="done"))
            self.tell(job.name, f"done in {seconds:.1f} s")
            return
        why = entry.error or _ending(code)
        tries_left = entry.attempts <= job.retries
        if running.ended:
            why = f"no end after {job.timeout:g} s"
        elif code == _TRY_AGAIN and now < self.orphaned.get(job.name, 0.0):
            # One that an earlier batch has left still saves.
            self._again(job, entry._replace(attempts=entry.attempts - 1), why, 1.0)
            return
        elif (code == _TRY_AGAIN or told.get("retry")) and tries_left:
            pause = min(_PAUSE_SECONDS * 2 ** (entry.attempts - 1), _LONGEST_PAUSE)
            self._again(job, entry, why, pause)
            return
        self._fail(job, entry, why)

    def _again(self, job: Job, entry: Entry, why: str, pause: float) -> None:
        self.later[job.name] = time.monotonic() + pause
        self._put(entry._replace(state="waiting", error=why))
        self.tell(job.name, f"{why}; tried again in {pause:g} s")

    def _fail(self, job: Job, entry: Entry, why: str) -> None:
        self._end(job, entry._replace(state="failed", error=why))
        self.tell(job.name, f"failed: {why}")

    def _end(self, job: Job, entry: Entry) -> None:
        self.undecided.discard(job.name)
        self._put(entry)

    def _put(self, entry: Entry) -> None:
        self.ledger.put(entry)
        self.entries[entry.name] = entry


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To a job; SIGKILL to its workers, too."""
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        elif process.poll() is None:
            process.send_signal(number)


def _last_event(log: Path, first: int) -> dict[str, Any]:
    """How a job said that it ended; nothing if it did not. first: byte of the log that is its."""
    with log.open("rb") as file:
        file.seek(max(first, log.stat().st_size - (1 << 16)))
        lines = file.read().splitlines()
    try:
        event = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return event if isinstance(event, dict) and event.get("event") == "end" else {}


def _ending(code: int) -> str:
    """Of a job that did not say anything."""
    if code == -signal.SIGKILL:
        return "killed by SIGKILL: out of memory?"
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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


def retry(path: Path, jobs: Sequence[Job], name: str) -> list[str]:
    """Have a job, and all that need it, run again; their names."""
    if name not in {job.name for job in jobs}:
        raise InputError(f"{path}: no job is called '{name}'")
    again = [name]
    for job in jobs:
        if set(job.needs) & set(again):
            again.append(job.name)
    with locked(folder_of(path), path), open_ledger(ledger_of(path), write=True) as ledger:
        entries = ledger.entries()
        begun = (entries.get(one, Entry(one, "waiting")) for one in again)
        ledger.put(*(entry._replace(state="waiting", key="", attempts=0) for entry in begun))
    return again
