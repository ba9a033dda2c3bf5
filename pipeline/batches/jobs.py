"""A file of jobs, checked as a whole before any of them begins.

    [defaults]                          # of every job whose command knows them
    memory_limit = "4GB"

    [[job]]
    name = "ranks"
    command = "pagerank"
    graph = "graph.dg"
    output = "out/{date}/{name}"        # {name}, {date}, and what the caller gives
    needs = ["store"]                   # jobs that come first
    retries = 3                         # where another try may help
    timeout = "2h"                      # for a try

All other keys are the command's options. Every fault is found at once, each with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import iglob
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...partition.disk.system_errors import raise_failure
from ...partition.disk.urls import absolute, is_remote
from ...partition.errors import InputError
from ...partition.input.find import facts_of_remote

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_OF_JOBS = ("name", "command", "needs", "retries", "timeout")
_OF_DEFAULTS = ("retries", "timeout")


class Line(NamedTuple):
    """What a job runs. options: words after the program's name. arguments: after these. asked: what
    of all that decides what it gives. inputs: files that it reads, by option. output: what it
    writes; None for nothing. memory_limit: bytes that it is given; None: it takes what the batch
    gives it, if ``takes_limit``. takes_restart: whether it can be told to start over. shares: what
    its process may keep for another job, in words: a graph and how it is held, or workers; None:
    nothing.
    """

    options: Sequence[str]
    arguments: Sequence[str]
    asked: Sequence[str]
    inputs: Mapping[str, str]
    output: str | None
    memory_limit: int | None
    takes_limit: bool
    takes_restart: bool
    shares: str | None = None


class Commands(Protocol):
    """What jobs may run."""

    def options(self, command: str) -> Collection[str] | None:
        """Of a command, by name; None: there is none."""
        ...

    def line(
        self, command: str, options: Mapping[str, Any]
    ) -> tuple[Line | None, Mapping[str, str]]:
        """With some of its options; what is wrong, by option, and no line if anything is."""
        ...


@dataclass(frozen=True)
class Job:
    """needs: names. timeout: seconds for a try; None for any. at: its line in the file, and those
    of what it reads, by option.
    """

    name: str
    command: str
    line: Line
    needs: tuple[str, ...]
    retries: int
    timeout: float | None
    at: int
    inputs_at: Mapping[str, int]


def read_jobs(path: Path, variables: Mapping[str, str], commands: Commands) -> list[Job]:
    """The jobs of a file, each after those that it needs.

    variables: what stands for {NAME} in text. InputError: all that is wrong, a line each.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from error
    reading = _Reading(document, _lines_of(text), variables, commands)
    ordered = reading.in_order(list(reading.jobs()))
    if reading.faults:
        told = sorted(set(reading.faults))
        raise InputError("\n".join(f"{path}, line {line}: {fault}" for line, fault in told))
    return ordered


class _Reading:
    """faults: lines, and what is wrong there. places: of each key, by table and key."""

    def __init__(
        self,
        document: dict[str, Any],
        places: Mapping[tuple[int | str, str], int],
        variables: Mapping[str, str],
        commands: Commands,
    ) -> None:
        self.faults: list[tuple[int, str]] = []
        self._names: set[str] = set()
        self._document = document
        self._places = places
        self._variables = variables
        self._commands = commands

    def jobs(self) -> Iterator[Job]:
        document = {"defaults": {}, "job": [], **self._document}
        defaults, tables = document["defaults"], document["job"]
        for key in document.keys() - {"defaults", "job"}:
            self._fault("", key, f"'{key}': there are [defaults] and [[job]]")
        if not isinstance(defaults, dict):
            self._fault("", "defaults", "[defaults] is a table")
            defaults = {}
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._fault("", "job", "a job begins with [[job]]")
            tables = []
        if not tables:
            self._fault("", "job", "no [[job]]")
        used: set[str] = set(_OF_DEFAULTS)
        for number, table in enumerate(tables):
            job = self._job(number, table, defaults, used)
            if job is not None:
                yield job
        for key in defaults.keys() - used:
            self._fault("defaults", key, f"'{key}': no job's command has such an option")

    def _job(
        self, number: int, table: dict[str, Any], defaults: dict[str, Any], used: set[str]
    ) -> Job | None:
        """used: receives the defaults that are taken."""
        before = len(self.faults)
        own = {**{key: defaults[key] for key in _OF_DEFAULTS if key in defaults}, **table}
        name = self._of(number, own, "name", str, "")
        command = self._of(number, own, "command", str, "")
        needs = self._of(number, own, "needs", list, [])
        retries = self._of(number, own, "retries", int, 0)
        timeout = self._timeout(number, own.get("timeout"))
        if name and not _NAME.fullmatch(name):
            self._fault(number, "name", f"'{name}': names are of letters, digits, '.', '_' and '-'")
        if name in self._names:
            self._fault(number, "name", f"two jobs are called '{name}'")
        self._names.add(name)
        if retries < 0:
            self._fault(number, "retries", "'retries' must not be negative")
        known = self._commands.options(command) if command else ()
        if known is None:
            self._fault(number, "command", f"'{command}': no such command")
        if not command or known is None:
            return None
        general = {key: value for key, value in defaults.items() if key in known}
        used.update(general)
        given = {key: value for key, value in table.items() if key not in _OF_JOBS}
        for key in given.keys() - set(known):
            self._fault(number, key, f"'{key}': {command} has no such option")
        variables = {**self._variables, "name": name}
        filled = {
            key: self._filled(number, key, value, variables)
            for key, value in {**general, **given}.items()
            if key in known
        }
        line, wrong = self._commands.line(command, filled)
        for key, fault in wrong.items():
            self._fault(number, key, fault)
        if line is None or len(self.faults) > before:
            return None
        at = self._place(number, "name")
        inputs_at = {option: self._place(number, option) for option in line.inputs}
        of = tuple(map(str, needs)), retries, timeout
        return Job(name, command, line, *of, at, inputs_at)

    def in_order(self, jobs: Sequence[Job]) -> list[Job]:
        """Each after those it needs; by their order in the file where that leaves a choice."""
        named = {job.name: job for job in jobs}
        for job in jobs:
            for need in set(job.needs) - self._names:
                self._note(job.at, f"'{job.name}' needs '{need}', which is no job")
        known = {job.name: [need for need in job.needs if need in named] for job in jobs}
        sorter = TopologicalSorter(known)
        try:
            sorter.prepare()
        except CycleError as error:
            ring = error.args[1]
            fault = f"jobs that need each other: {' needs '.join(reversed(ring))}"
            self._note(named[ring[0]].at, fault)
            return []
        ordered: list[Job] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=lambda name: named[name].at)
            ordered += [named[name] for name in ready]
            sorter.done(*ready)
        self._check_files(ordered)
        return ordered

    def _check_files(self, jobs: Sequence[Job]) -> None:
        """Outputs are each one's own; what is read is there, or made by a job that comes first."""
        makers: dict[str, Job] = {}
        before: dict[str, set[str]] = {}
        for job in jobs:
            above = (before[need] for need in job.needs if need in before)
            before[job.name] = set(job.needs).union(*above)
            if job.line.output is None:
                continue
            other = makers.setdefault(absolute(job.line.output), job)
            if other is not job:
                self._note(job.at, f"'{job.name}' and '{other.name}' have one output")
        for output, job in makers.items():
            for other in (makers[folder] for folder in _folders_of(output) if folder in makers):
                self._note(job.at, f"'{job.name}' writes into the output of '{other.name}'")
        for job in jobs:
            for option, file in job.line.inputs.items():
                maker = makers.get(absolute(file))
                if maker is None and not _is_there(file):
                    self._note(job.inputs_at[option], f"{file}: no such file or folder")
                elif maker is not None and maker.name not in before[job.name]:
                    fault = (
                        f"'{job.name}' reads {file}, which '{maker.name}' makes: add it to needs"
                    )
                    self._note(job.inputs_at[option], fault)

    def _of(self, number: int, table: Mapping[str, Any], key: str, kind: type, missing: Any) -> Any:
        """A key of a job's own; ``missing`` where it is wrong, which is noted."""
        value = table.get(key, missing)
        if key not in table and missing == "":
            self._fault(number, key, f"a job without '{key}'")
        elif not isinstance(value, kind) or isinstance(value, bool):
            told = {str: "text", list: "names in brackets", int: "a whole number"}[kind]
            self._fault(number, key, f"'{key}' must be {told}")
            return missing
        return value

    def _timeout(self, number: int, value: Any) -> float | None:
        if value is None:
            return None
        found = _TIME.fullmatch(str(value))
        if found is None or isinstance(value, bool) or not float(found[1]):
            self._fault(
                number, "timeout", f"'timeout': {value!r} is no time: say 90, '30m' or '2h'"
            )
            return None
        return float(found[1]) * _SECONDS[found[2]]

    def _filled(self, number: int, key: str, value: Any, variables: Mapping[str, str]) -> Any:
        """Text with what stands for its {variables}."""
        if not isinstance(value, str):
            return value
        try:
            return value.format_map(variables)
        except Exception:  # formats have many ways to be wrong
            known = ", ".join(f"{{{name}}}" for name in sorted(variables))
            self._fault(
                number,
                key,
                f"'{key}': {value!r}: there are {known}, and what --set KEY=VALUE gives; a brace "
                "itself is doubled",
            )
            return value

    def _fault(self, table: int | str, key: str, fault: str) -> None:
        """table: a job's number, or "defaults"."""
        self._note(self._place(table, key), fault)

    def _note(self, line: int, fault: str) -> None:
        self.faults.append((line, fault))

    def _place(self, table: int | str, key: str) -> int:
        """Of a key; of its table where it has none; of the defaults where these have it."""
        ways = (table, key), ("defaults", key), (table, "")
        return next((self._places[way] for way in ways if way in self._places), 1)


def _folders_of(name: str) -> Iterator[str]:
    """Those in which it stands.

    >>> list(_folders_of("s3://bucket/a/b"))[:2]
    ['s3://bucket/a', 's3://bucket']
    """
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _is_there(name: str) -> bool:
    """Whether a file or a folder is there, or files that a glob names."""
    if is_remote(name):
        return bool(facts_of_remote(name))
    return Path(name).exists() or next(iglob(name, recursive=True), None) is not None


def _lines_of(text: str) -> dict[tuple[int | str, str], int]:
    """Where each key stands, by its table, a job's number or "defaults"; of no key, the table."""
    places: dict[tuple[int | str, str], int] = {}
    table: int | str = ""
    jobs = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("[["):
            table, jobs = jobs, jobs + 1
            places[table, ""] = number
        elif found := re.match(r"\[\s*([\w-]+)\s*\]", line):
            table = found[1]
            places["", found[1]] = places[table, ""] = number
        elif found := re.match(r"""["']?([\w-]+)["']?\s*=""", line):
            places.setdefault((table, found[1]), number)
    return places
