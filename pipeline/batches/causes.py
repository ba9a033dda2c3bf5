"""Causes of what a batch did not do: the failed jobs that left another job out, and exit codes in
words.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

from ...partition.errors import DelegraphError
from .toml import read_toml

_MEANINGS = {
    2: "wrong use or bad input",
    75: "something that it needs was not available",
    128 + signal.SIGINT: "ended by Ctrl-C (SIGINT)",
    128 + signal.SIGTERM: "ended by SIGTERM or SIGUSR1",
}
"""Exit codes of delegraph; docs/reference/events.md lists them all."""

MOST_NAMED = 3
"""Failed jobs that are named as the cause of another one's state."""

_NEEDS_MEMORY = ", maybe out of memory"


def describe_exit(code: int) -> str:
    """Describe the exit code of a job. A negative code is that of a signal.

    >>> describe_exit(1), describe_exit(130)
    ('exit code 1', 'exit code 130: ended by Ctrl-C (SIGINT)')
    >>> describe_exit(137), describe_exit(-9)
    ('exit code 137: killed, maybe out of memory', 'killed by SIGKILL, maybe out of memory')
    """
    if code < 0:
        return f"killed by {_signal(-code)}{_NEEDS_MEMORY if -code == signal.SIGKILL else ''}"
    if code in _MEANINGS:
        return f"exit code {code}: {_MEANINGS[code]}"
    if code == 128 + signal.SIGKILL:  # as a shell tells it
        return f"exit code {code}: killed{_NEEDS_MEMORY}"
    return f"exit code {code}"


def _signal(number: int) -> str:
    known = {member.value: member.name for member in signal.Signals}
    return known.get(number, f"signal {number}")


def read_needs(path: Path) -> dict[str, list[str]]:
    """Return the names of the jobs that each job of a file needs. Jobs with a fault are missing, as
    are all jobs of a file that cannot be read.
    """
    try:
        document, _ = read_toml(path)
    except (DelegraphError, OSError):
        return {}
    needs: dict[str, list[str]] = {}
    tables = document.get("job")
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict):
            name, names = table.get("name"), table.get("needs")
            if isinstance(name, str) and isinstance(names, list):
                needs[name] = [need for need in names if isinstance(need, str)]
    return needs


def failed_needs(
    needs: Mapping[str, Sequence[str]], failed: Collection[str], left_out: Collection[str]
) -> dict[str, list[str]]:
    """Return the failed jobs for which each job was left out: those that the job needs, and those
    for which a job that it needs was left out. Only MOST_NAMED of them and one more are returned;
    none if jobs need each other.

    >>> failed_needs({"page": ["ranks"], "ranks": ["load", "store"]}, {"store"}, {"page", "ranks"})
    {'ranks': ['store'], 'page': ['store']}
    """
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError:
        return {}
    found: dict[str, list[str]] = {}
    for name in order:
        if name in left_out:
            causes = (
                [need] if need in failed else found.get(need, []) for need in needs.get(name, [])
            )
            found[name] = list(dict.fromkeys(chain.from_iterable(causes)))[: MOST_NAMED + 1]
    return found
