"""Sections from a run record: command and machine, phases, steps, memory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....partition.disk.files import read_json
from ....partition.disk.outputs import record_path
from ...run.records import SCHEMA_VERSION
from ..numbers import (
    UNKNOWN,
    at,
    duration,
    entries,
    figure,
    number,
    numbers,
    share,
    size,
    text,
)
from .markup import Content, tag
from .page import Figure, Section
from .tables import Bar, bars, facts

Record = dict[str, Any]

_FAR = 4
"""The greatest multiple of the largest bar at which a limit is still drawn to scale."""


_WHAT = "What ran, and for how long:"


def read_record(output: Path) -> tuple[Record, list[str]]:
    """Return the record beside an output, and the facts that are unknown without a record, or
    because of its age.
    """
    path = record_path(output)
    try:
        record = read_json(path)
    except FileNotFoundError:
        return {}, [f"{_WHAT} there is no record {path.name} beside it."]
    except (OSError, ValueError):
        return {}, [f"{_WHAT} the record {path.name} cannot be read."]
    if not isinstance(record, dict):
        return {}, [f"{_WHAT} the record {path.name} was not written by delegraph."]
    version = number(record, "schema_version")
    if version != SCHEMA_VERSION:
        told = f"Some of the record, maybe: its schema is {figure(version)}, and this page knows "
        return record, [f"{told}{SCHEMA_VERSION}."]
    return record, []


def command(document: Record) -> str | None:
    """Return the command as a user can type it again, without the program's folder."""
    words = document.get("command")
    if not isinstance(words, list) or not words:
        return None
    program, *arguments = (str(word) for word in words)
    name = Path(program).name
    return shlex.join(["delegraph" if name == "__main__.py" else name, *arguments])


def notes(document: Record) -> list[str]:
    found = document.get("notes")
    return [str(note) for note in found] if isinstance(found, list) else []


def the_run(document: Record, path: Path, items: Sequence[tuple[str, Content]] = ()) -> Section:
    """Return the section on where and by what a document was made. path: the file or folder that
    the page is about. items: more about the subject.
    """
    hardware = at(document, "hardware")
    versions = at(document, "versions")
    cores, memory = number(hardware, "cores"), number(hardware, "memory_bytes")
    machine = [text(at(hardware, "machine")) if at(hardware, "machine") else None]
    machine += [None if cores is None else f"{figure(cores)} cores"]
    machine += [None if memory is None else size(memory)]
    told = ", ".join(part for part in machine if part)
    rows: list[tuple[str, Content]] = [
        ("path", tag("code", str(path))),
        ("written", _written(path)),
        *items,
        ("device", text(document["device"]) if document.get("device") else UNKNOWN),
        ("threads", figure(number(document, "threads"))),
        ("machine", told or UNKNOWN),
        ("versions", text(versions) if isinstance(versions, dict) else UNKNOWN),
    ]
    if (ranks := number(document, "ranks")) is not None:
        rows.insert(-2, ("ranks", figure(ranks)))
    return Section("The run", [facts([row for row in rows if document or row[1] != UNKNOWN])])


def _written(path: Path) -> str:
    """Return the time of the file, or of a folder's newest file: records hold no time."""
    found = list(path.iterdir()) if path.is_dir() else [path]
    newest = max((file.stat().st_mtime for file in found), default=path.stat().st_mtime)
    return f"{datetime.fromtimestamp(int(newest), UTC):%Y-%m-%d %H:%M:%S} UTC, by the file's time"


def phases(document: Record) -> Section | None:
    """Return a section on the phases of an answer: load, compile, search, write."""
    seconds = numbers(document, "seconds")
    whole = sum(seconds.values())
    if not seconds or not whole:
        return None
    longest = max(seconds, key=seconds.__getitem__)
    told = f"{duration(whole)} in all, {share(seconds[longest], whole)} of it {PHASES[longest]}."
    rows = [
        Bar(name, value, duration(value), (share(value, whole),)) for name, value in seconds.items()
    ]
    made = bars("Seconds by phase", ("phase", "time", "share"), rows)
    return Section("Time by phase", [tag("p", told), made])


PHASES = {
    "load": "loading",
    "compile": "compiling",
    "search": "in the work itself",
    "write": "writing",
}


def steps(document: Record) -> Section | None:
    """Return a section on the time of each step of a plan."""
    found = entries(document, "plan", "steps")
    if not found:
        return None
    rows = []
    for step in found:
        reused = step.get("reused") is True
        seconds = None if reused else number(step, "seconds")
        told = "reused" if reused else duration(seconds)
        rows.append(Bar(text(step.get("name")), seconds, told, (figure(number(step, "tasks")),)))
    whole = sum(row.value or 0 for row in rows)
    longest = max(rows, key=lambda row: row.value or 0)
    told = f"{duration(whole)} in all"
    told += f", {share(longest.value, whole)} of it '{longest.label}'." if longest.value else "."
    made = bars("Seconds by step", ("step", "time", "tasks"), rows)
    return Section("Time by step", [tag("p", told), made])


def memory(document: Record) -> Section | None:
    """Return a section on the memory planned for each step, and the memory held, against the
    limit.
    """
    plan = at(document, "plan")
    measured = number(plan, "measured_peak_bytes")
    limit = number(plan, "memory_limit_bytes")
    projected = number(plan, "projected_peak_bytes")
    if measured is None and projected is None:
        return None
    found = entries(plan, "steps")
    rows = []
    for step in found:
        held = number(step, "projected_bytes")
        if held:
            rows.append(Bar(text(step.get("name")), held, size(held)))
    if not rows and projected:
        rows = [Bar("projected", projected, size(projected))]
    largest = max([measured or 0, *(row.value or 0 for row in rows)])
    rows.append(Bar("measured", measured, size(measured), kind="measured"))
    most = largest
    if limit:
        rows.append(Bar("limit", limit, size(limit), kind="limit"))
        most = limit if limit <= _FAR * largest else 1.25 * largest
    told = "Bars are the projected memory of all processes in each step; measured is the most that "
    told += "the command's own process held"
    if measured is not None and projected:
        told += f", {share(measured, projected)} of the largest projection"
    if measured is not None and limit:
        told += f" and {share(measured, limit)} of the limit"
    told += ". There was no limit." if limit == 0 else "."
    if limit and most < limit:
        told += " The limit's bar is cut: it is far beyond the scale."
    made = bars("Memory, projected and measured", ("step", "memory"), rows, most)
    return Section("Memory", [tag("p", told), made])


def peak(document: Record) -> Figure | None:
    """Return the key figure on peak memory."""
    measured = number(document, "plan", "measured_peak_bytes")
    limit = number(document, "plan", "memory_limit_bytes")
    if measured is None:
        return None
    return Figure("memory held", size(measured), f"of {size(limit)} allowed" if limit else "")
