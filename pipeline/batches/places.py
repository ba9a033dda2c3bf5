"""Checks of the paths that the jobs of a batch read and write, before any job begins.

Paths are compared after links are resolved: two links to one place are the same path. A glob is
checked by its existing files, and by whether it will match the job's output.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

from ...partition.disk.urls import is_remote, rooted
from ...partition.input.find import facts_of_remote
from ...partition.numbers import quoted, shown
from .job import Job
from .ledger import folder_of

Fault = tuple[int, str]
"""A line of the file of jobs, and the fault in it."""

_RECORD = ".run.json"
"""The end of the name of an output's record (disk/outputs.py)."""
_LONGEST_NAME = 255 - len(f"{_RECORD}..partial")
"""Most bytes of an output's name: its record, with a longer name, is written beside it."""
_LONGEST_FOLDER = 255
_FEW_FILES = 1000
"""Most files of a glob that are compared with the job's output."""


def check_places(path: Path, jobs: Sequence[Job]) -> Iterator[Fault]:
    """Yield all faults. path: the file of jobs. jobs: each after the jobs that it needs."""
    wrong: set[str] = set()
    for job in jobs:
        if job.line.output is not None and not is_remote(job.line.output):
            told = _wrong_output(job.line.output, path) or _in_its_input(job)
            if told:
                wrong.add(job.name)
                yield job.output_at, f"'output': {shown(job.line.output)} {told}"
    yield from _Places(jobs, wrong).faults()


def _wrong_output(output: str, path: Path) -> str:
    """Return the fault of an output that does not depend on the job's inputs; empty if there is
    none.
    """
    real, jobs = os.path.realpath(output), os.path.realpath(path)
    ledger = os.path.realpath(folder_of(path))
    folders, name = [os.fsencode(part) for part in real.split("/")], os.fsencode(real)
    if real == jobs:
        return "is the job file itself"
    if _is_within(real, ledger):
        return "is inside the folder of the batch's ledger"
    if _is_within(os.getcwd(), real):
        return "is, or contains, the folder that the batch is started in"
    if _is_within(jobs, real) or _is_within(ledger, real):
        return "contains the job file or its ledger"
    if f"{real}{_RECORD}" in (jobs, ledger):
        return "has a run record that would replace the job file"
    if max(map(len, folders)) > _LONGEST_FOLDER or len(folders[-1]) > _LONGEST_NAME:
        return "is too long a name"
    if len(name) > os.pathconf("/", "PC_PATH_MAX") - 1 - _LONGEST_FOLDER:
        return "is too long a name"
    return ""


def _in_its_input(job: Job) -> str:
    """Return the fault of an output in relation to the job's own inputs; empty if there is none."""
    output = os.path.realpath(str(job.line.output))
    for file in job.line.inputs.values():
        if is_remote(file):
            continue
        is_one = os.path.lexists(file) or not has_magic(file)
        files = [file] if is_one else islice(iglob(file, recursive=True), _FEW_FILES)
        for real in map(os.path.realpath, files):
            if real == output:
                return f"is also the input of the job, {quoted(file)}"
            if _is_within(output, real):
                return f"is inside the input of the job, {quoted(file)}"
            if _is_within(real, output):
                return f"contains the input of the job, {quoted(file)}"
        if not is_one and _would_match(output, rooted(file)):
            return f"would match the input of the job, {quoted(file)}"
    return ""


def _would_match(output: str, pattern: str) -> bool:
    """Return whether a glob matches an output, or a folder that contains it.

    >>> _would_match("/a/b.parquet", "/a/*.parquet"), _would_match("/a/b/c", "/a/*.parquet")
    (True, False)
    """
    wanted = [*Path(os.path.abspath(pattern)).parts]
    parts = Path(output).parts
    if "**" in wanted:
        return fnmatchcase(output, "/".join(wanted).replace("//", "/").replace("**/", "*"))
    return len(parts) >= len(wanted) and all(
        fnmatchcase(part, want) and (want[:1] == "." or part[:1] != ".")
        for part, want in zip(parts, wanted, strict=False)
    )


class _Places:
    """The paths of several jobs. wrong: names of jobs whose outputs have been reported. makers: the
    job that writes each output. inside: the jobs that write into each folder.
    """

    def __init__(self, jobs: Sequence[Job], wrong: Collection[str]) -> None:
        self._jobs = jobs
        self._wrong = wrong
        self._is_before = order_of(jobs)
        self._makers: dict[str, Job] = {}
        self._inside: defaultdict[str, list[Job]] = defaultdict(list)

    def faults(self) -> Iterator[Fault]:
        yield from self._outputs()
        for job in self._jobs:
            for option, file in job.line.inputs.items():
                for fault in self._input(job, file):
                    yield job.inputs_at[option], fault

    def _outputs(self) -> Iterator[Fault]:
        for job in self._jobs:
            if job.line.output is not None and job.name not in self._wrong:
                maker = self._makers.setdefault(_real(job.line.output), job)
                if maker is not job:
                    yield job.at, f"'{job.name}' and '{maker.name}' have the same output"
        for output, job in self._makers.items():
            for folder in _folders_of(output):
                self._inside[folder].append(job)
                if folder in self._makers:
                    maker_name = self._makers[folder].name
                    yield job.at, f"'{job.name}' writes into the output of '{maker_name}'"
            if not is_remote(output) and (writer := self._makers.get(output + _RECORD)):
                yield (
                    writer.at,
                    f"'{writer.name}' writes to the path of the run record of '{job.name}'",
                )

    def _input(self, job: Job, file: str) -> Iterator[str]:
        real, reads = _real(file), f"'{job.name}' reads {quoted(file)}"
        ways = (real, *_folders_of(real))
        maker = next((self._makers[way] for way in ways if way in self._makers), None)
        if maker is None:
            if (told := _not_there(file)) is not None:
                yield told
            writers = (
                candidate for candidate in self._inside.get(real, ()) if candidate is not job
            )
            writer = next(
                (candidate for candidate in writers if not self._is_before(candidate, job)), None
            )
            if writer is not None:
                yield f"{reads}, and '{writer.name}' writes into it: add '{writer.name}' to needs"
        elif maker is not job and not self._is_before(maker, job):
            yield f"{reads}, which '{maker.name}' writes: add '{maker.name}' to needs"


def order_of(jobs: Sequence[Job]) -> Callable[[Job, Job], bool]:
    """Return a function that tells whether one job comes before another one, which needs it
    directly or indirectly. jobs: each after the jobs that it needs.
    """
    bits = {job.name: 1 << number for number, job in enumerate(jobs)}
    before: dict[str, int] = {}  # a bit for each job, since sets of names would fill the memory
    for job in jobs:
        before[job.name] = 0
        for need in job.needs:
            before[job.name] |= bits.get(need, 0) | before.get(need, 0)
    return lambda first, second: bool(before[second.name] & bits[first.name])


def _real(name: str) -> str:
    """Return the same text for all paths that lead to one place."""
    return name if is_remote(name) else os.path.realpath(name)


def _is_within(inner: str, outer: str) -> bool:
    """Return whether one path is the other, or lies inside it."""
    return inner == outer or inner.startswith(outer if outer == "/" else f"{outer}/")


def _folders_of(name: str) -> Iterator[str]:
    """Yield the folders that contain a path, the nearest first.

    >>> list(_folders_of("s3://bucket/a/b"))[:2]
    ['s3://bucket/a', 's3://bucket']
    """
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _not_there(name: str) -> str | None:
    """Return the fault of an input that is no existing file or folder, or whose glob matches none;
    None if it is there.
    """
    if is_remote(name):
        return None if facts_of_remote(name) else f"{quoted(name)}: no such file or folder"
    try:
        mode = Path(name).stat().st_mode
    except (OSError, ValueError):
        found = next(iglob(name, recursive=True), None)
        return None if found is not None else f"{quoted(name)}: no such file or folder"
    is_data = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return None if is_data else f"{quoted(name)}: neither a file nor a folder"
