"""A file of jobs, which is checked as a whole before any job begins.

    [defaults]                          # of every job whose command has these options
    memory_limit = "4GB"

    [[job]]
    name = "ranks"
    command = "pagerank"
    graph = "graph.dg"
    output = "out/{date}/{name}"        # {name}, {date}, and names that the caller sets
    needs = ["store"]                   # jobs that must be done before
    retries = 3                         # more tries, if another one may help
    timeout = "2h"                      # for a try

All other keys are options of the command. All faults are reported at once, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from string import Formatter
from typing import Any, Protocol

from ...partition.errors import InputError, did_you_mean
from ...partition.numbers import MOST_SECONDS, shown
from .job import Job, Line
from .places import check_places
from .toml import read_toml

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_OF_JOBS = ("name", "command", "needs", "retries", "timeout")
_OF_DEFAULTS = ("retries", "timeout")
_MOST_FAULTS = 100
"""Most faults that are reported."""
_MOST_OF_RING = 10


class Commands(Protocol):
    """The commands that jobs may run."""

    def names(self) -> Collection[str]:
        """Return the names of the commands."""
        ...

    def options(self, command: str) -> Collection[str] | None:
        """Return a command's options by name; None if there is no such command."""
        ...

    def line(
        self, command: str, options: Mapping[str, Any]
    ) -> tuple[Line | None, Mapping[str, str]]:
        """Return the command line with these options and no faults; or None and the faults, by
        option.
        """
        ...


def read_jobs(path: Path, variables: Mapping[str, str], commands: Commands) -> list[Job]:
    """Read the jobs of a file. Each job comes after the jobs that it needs.

    variables: the text for each {NAME}. Raises InputError with all faults, a line for each.
    """
    document, text = read_toml(path)
    reading = _Reading(document, _lines_of(text), variables, commands)
    ordered = reading.in_order(list(reading.jobs()))
    reading.faults += check_places(path, ordered)
    if reading.faults:
        faults = sorted(set(reading.faults))
        told = [f"{path}, line {line}: {fault}" for line, fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            told.append(f"{path}: and {len(faults) - _MOST_FAULTS:,} more")
        raise InputError("\n".join(told))
    return ordered


class _Reading:
    """A reading of a file of jobs. faults: pairs of a line and its fault. places: the line of each
    key, by table and key. options: those that the commands of all jobs have.
    """

    def __init__(
        self,
        document: dict[str, Any],
        places: Mapping[tuple[int | str, str], int],
        variables: Mapping[str, str],
        commands: Commands,
    ) -> None:
        self.faults: list[tuple[int, str]] = []
        self._names: set[str] = set()
        self._options: set[str] = set()
        self._document = document
        self._places = places
        self._variables = variables
        self._commands = commands

    def jobs(self) -> Iterator[Job]:
        document = {"defaults": {}, "job": [], **self._document}
        defaults, tables = document["defaults"], document["job"]
        for key in document.keys() - {"defaults", "job"}:
            self._fault(
                "", key, f"{shown(key)} is unknown: a job file has only [defaults] and [[job]]"
            )
        if not isinstance(defaults, dict):
            self._fault("", "defaults", "[defaults] must be a table")
            defaults = {}
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._fault("", "job", "each job must begin with [[job]]")
            tables = []
        if not tables:
            self._fault("", "job", "the file has no [[job]]")
        used: set[str] = set(_OF_DEFAULTS)
        self._options.update(_OF_DEFAULTS)
        for number, table in enumerate(tables):
            job = self._job(number, table, defaults, used)
            if job is not None:
                yield job
        for key in defaults.keys() - used:
            told = f"{shown(key)}: no job's command has this option"
            self._fault("defaults", key, f"{told}{did_you_mean(key, self._options)}")

    def _job(
        self, number: int, table: dict[str, Any], defaults: dict[str, Any], used: set[str]
    ) -> Job | None:
        """Return a job, or None if it has faults. used: receives the names of the defaults that the
        job takes.
        """
        before = len(self.faults)
        settings = {**{key: defaults[key] for key in _OF_DEFAULTS if key in defaults}, **table}
        name = self._value_of(number, settings, "name", str, None)
        command = self._value_of(number, settings, "command", str, None)
        needs = self._needs(number, settings)
        retries = self._value_of(number, settings, "retries", int, 0)
        timeout = self._timeout(number, settings.get("timeout"))
        if name is not None and not _NAME.fullmatch(name):
            told = (
                "a name has only letters, digits, '.', '_' and '-', and begins with a letter or a "
                "digit"
            )
            self._fault(number, "name", f"{shown(name)}: {told}")
        if name in self._names:
            self._fault(number, "name", f"two jobs have the name {shown(name)}")
        self._names.update([name] if name is not None else [])
        if retries < 0:
            self._fault(number, "retries", "'retries' must not be negative")
        known = None if command is None else self._commands.options(command)
        if command is not None and known is None:
            meant = did_you_mean(command, self._commands.names())
            self._fault(number, "command", f"{shown(command)}: no such command{meant}")
        if command is None or known is None:
            return None
        self._options.update(known)
        general = {key: value for key, value in defaults.items() if key in known}
        used.update(general)
        given = {key: value for key, value in table.items() if key not in _OF_JOBS}
        for key in given.keys() - set(known):
            meant = did_you_mean(key, {*known, *_OF_JOBS})
            self._fault(number, key, f"{shown(key)}: {command} has no such option{meant}")
        variables = {**self._variables, "name": name or ""}
        filled = {
            key: self._fill_variables(number, key, value, variables)
            for key, value in {**general, **given}.items()
            if key in known
        }
        line, wrong = self._commands.line(command, filled)
        for key, fault in wrong.items():
            self._fault(number, key, fault)
        if line is None or name is None or len(self.faults) > before:
            return None
        at, output_at = self._place(number, "name"), self._place(number, "output")
        inputs_at = {option: self._place(number, option) for option in line.inputs}
        return Job(name, command, line, needs, retries, timeout, at, inputs_at, output_at)

    def in_order(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs, each after the jobs that it needs, otherwise by their order in the file.
        If jobs need each other in a ring, the fault is noted and no jobs are returned.
        """
        named = {job.name: job for job in jobs}
        for job in jobs:
            for need in set(job.needs) - self._names:
                told = f"'{job.name}' needs {shown(need)}, which is not a job"
                few = len(self.faults) < _MOST_FAULTS  # the ones that are told
                meant = did_you_mean(need, self._names) if few else ""
                self._note(job.at, f"{told}{meant}")
        known = {job.name: [need for need in job.needs if need in named] for job in jobs}
        sorter = TopologicalSorter(known)
        try:
            sorter.prepare()
        except CycleError as error:
            ring = error.args[1][::-1]
            told = " needs ".join(ring[:_MOST_OF_RING])
            suffix = (
                f" needs ..., {len(ring) - 1:,} jobs in all" if len(ring) > _MOST_OF_RING else ""
            )
            self._note(named[ring[0]].at, f"jobs that need each other: {told}{suffix}")
            return []
        ordered: list[Job] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=lambda name: named[name].at)
            ordered += [named[name] for name in ready]
            sorter.done(*ready)
        return ordered

    def _value_of(
        self, number: int, table: Mapping[str, Any], key: str, kind: type, missing: Any
    ) -> Any:
        """Return the value of a job's own key, or ``missing`` if the key is not there; a key whose
        ``missing`` is None is required. Faults are noted.
        """
        value = table.get(key, missing)
        if key not in table and missing is None:
            self._fault(number, key, f"the job has no '{key}'")
        elif not isinstance(value, kind) or isinstance(value, bool):
            told = {str: "text", list: "a list of names", int: "a whole number"}[kind]
            self._fault(number, key, f"'{key}' must be {told}")
            return missing
        return value

    def _needs(self, number: int, table: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of needed jobs; an empty tuple, and a noted fault, if the value is
        wrong.
        """
        needs = self._value_of(number, table, "needs", list, [])
        if all(isinstance(need, str) for need in needs):
            return tuple(needs)
        self._fault(number, "needs", "'needs' must be a list of names")
        return ()

    def _timeout(self, number: int, value: Any) -> float | None:
        if value is None:
            return None
        try:
            found = _TIME.fullmatch(str(value))
        except ValueError:  # an integer that is too long to print
            found = None
        seconds = 0.0 if found is None else float(found[1]) * _SECONDS[found[2]]
        if not 0 < seconds <= MOST_SECONDS:
            told = f"'timeout': {shown(value)} is not a time: write 90 (seconds), '30m' or '2h'"
            self._fault(number, "timeout", told)
            return None
        return seconds

    def _fill_variables(
        self, number: int, key: str, value: Any, variables: Mapping[str, str]
    ) -> Any:
        """Return the text with its {variables} replaced."""
        if not isinstance(value, str):
            return value
        filled: list[str] = []
        try:
            for text, name, form, conversion in Formatter().parse(value):
                if form or conversion:  # formats of Python could have any width
                    raise ValueError
                filled += text, "" if name is None else variables[name]
        except (ValueError, KeyError):
            known = ", ".join(f"{{{name}}}" for name in sorted(variables))
            self._fault(
                number,
                key,
                f"'{key}': {shown(value)}: braces may hold {known} and the keys of --set "
                "KEY=VALUE; write a brace itself twice",
            )
            return value
        return "".join(filled)

    def _fault(self, table: int | str, key: str, fault: str) -> None:
        """Note a fault. table: a job's number, or "defaults"."""
        self._note(self._place(table, key), fault)

    def _note(self, line: int, fault: str) -> None:
        self.faults.append((line, fault))

    def _place(self, table: int | str, key: str) -> int:
        """Return the line of a key; if the table lacks the key, that of the key in the defaults;
        otherwise that of the table.
        """
        ways = (table, key), ("defaults", key), (table, "")
        return next((self._places[way] for way in ways if way in self._places), 1)


def _lines_of(text: str) -> dict[tuple[int | str, str], int]:
    """Return the line of each key, by its table (a job's number or "defaults") and name. An empty
    name stands for the table itself.
    """
    places: dict[tuple[int | str, str], int] = {}
    table: int | str = ""
    jobs = 0
    for number, line in enumerate(text.split("\n"), 1):
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
