"""The jobs of a batch that must run, with the reason and the memory of each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import iglob
from pathlib import Path
from typing import NamedTuple

import xxhash

from ...partition.disk.digests import file_digest
from ...partition.disk.files import file_bytes
from ...partition.disk.memory import format_bytes
from ...partition.disk.urls import is_remote
from ...partition.errors import InputError
from ...partition.input.find import facts_of_remote
from .job import Job
from .ledger import Entry, is_running, ledger_of, open_ledger
from .places import order_of


@dataclass(frozen=True)
class BatchOptions:
    """Options of a batch. at_once: the number of jobs that run side by side. memory_limit: bytes of
    all jobs together.
    """

    at_once: int = 1
    memory_limit: int = 1 << 40


_MOST_COMPARED = 200
"""Number of jobs whose memory limits are compared with each other."""


class Planned(NamedTuple):
    """A planned job. why: the reason for which it would run; empty if it would not. memory_limit:
    its limit in bytes.
    """

    job: Job
    why: str
    memory_limit: int


def plan_batch(path: Path, jobs: Sequence[Job], options: BatchOptions) -> list[Planned]:
    """Return what a run of the batch would do now, for each job in order."""
    entries: Mapping[str, Entry] = {}
    runs = is_running(path)  # first: a job that ends meanwhile was not cut off
    if ledger_of(path).exists():
        with open_ledger(ledger_of(path), write=False) as ledger:
            entries = ledger.entries()
    planned: dict[str, Planned] = {}
    for job in jobs:
        after = [need for need in job.needs if planned[need].why]
        why = f"after {', '.join(after)}" if after else why_due(job, entries.get(job.name), runs)
        planned[job.name] = Planned(job, why, share_of(job, options))
    return list(planned.values())


def check_memory(path: Path, jobs: Sequence[Job], options: BatchOptions) -> None:
    if options.memory_limit < options.at_once:
        raise InputError(
            f"the memory limit of {format_bytes(options.memory_limit)} is too small for "
            f"{options.at_once:,} jobs at once: give fewer --jobs"
        )
    for job in jobs:
        asked = job.line.memory_limit
        if asked is not None and asked > options.memory_limit:
            raise InputError(
                f"{path}, line {job.at}: '{job.name}' asks for {format_bytes(asked)}, but the "
                f"batch may use {format_bytes(options.memory_limit)}: raise --memory-limit"
            )


def held_back(jobs: Sequence[Job], options: BatchOptions) -> list[tuple[Job, Job]]:
    """Return pairs of jobs that could run side by side but for the memory limit: each of the
    largest jobs with another one that is as large or larger.
    """
    if options.at_once < 2:
        return []
    found: list[tuple[Job, Job]] = []
    is_before = order_of(jobs)
    largest = sorted(jobs, key=lambda job: share_of(job, options), reverse=True)[:_MOST_COMPARED]
    for number, job in enumerate(largest):
        for larger_job in largest[:number]:
            if share_of(job, options) + share_of(larger_job, options) <= options.memory_limit:
                continue
            if not is_before(larger_job, job) and not is_before(job, larger_job):
                found.append((larger_job, job))
                break
    return found


def too_little_for_both(together: int, options: BatchOptions) -> str:
    """Return the message that jobs run one by one because their memory limits do not fit together.
    together: the sum of their limits in bytes.
    """
    return (
        f"together they may take {format_bytes(together)}, but the batch may use "
        f"{format_bytes(options.memory_limit)}: raise --memory-limit, or lower those of the jobs"
    )


def share_of(job: Job, options: BatchOptions) -> int:
    """Return a job's share of the memory limit in bytes."""
    return job.line.memory_limit or options.memory_limit // options.at_once


def why_due(job: Job, entry: Entry | None, runs: bool = False) -> str:
    """Return the reason why a job must run, given that the jobs it needs are done; empty if it need
    not. runs: whether another process runs the batch at this moment.
    """
    state = "waiting" if entry is None else entry.state
    if entry is None or state != "done":
        again = "it is to run again" if entry and entry.made else "it has not run yet"
        cut_off = "it is running now" if runs else "it was cut off"
        return {"running": cut_off, "failed": "it has failed"}.get(state, again)
    if entry.key != key_of(job):
        return "its options or its inputs have changed"
    if job.line.output is not None and not is_there(job.line.output):
        return "its output is missing"
    if job.line.output is not None and entry.made not in ("", looks_of(job.line.output)):
        return "its output has changed since the job wrote it"
    return ""


def key_of(job: Job) -> str:
    """Return the key of a job: a digest of its command and of the names, sizes and times of the
    files that it reads.
    """
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


def looks_of(output: str) -> str:
    """Return the look of an output: a digest of its files' names and bytes and of its record,
    regardless of file times.
    """
    if is_remote(output):
        return xxhash.xxh3_128("\n".join(facts_of_remote(output)).encode()).hexdigest()
    digest, path = xxhash.xxh3_128(), Path(output)
    record = path.with_name(f"{path.name}.run.json")
    for file in sorted(file for file in _files(output) if file != record):
        digest.update(f"\n{file.relative_to(path.parent)} {file_digest(file)}".encode())
    if record.exists():
        digest.update(file_bytes(record))
    return digest.hexdigest()


def is_there(output: str) -> bool:
    return bool(facts_of_remote(output)) if is_remote(output) else os.path.lexists(output)


def _files(name: str) -> Iterator[Path]:
    """Yield all files of a folder, a single file, or the files that a pattern matches; and those of
    the record beside it.
    """
    path = Path(name)
    there = [path] if path.exists() else [Path(match) for match in iglob(name, recursive=True)]
    for place in [*there, path.with_name(f"{path.name}.run.json")]:
        if place.is_dir():
            yield from (file for file in place.rglob("*") if file.is_file())
        elif place.exists():
            yield place
