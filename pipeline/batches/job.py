"""A job of a batch, as it is checked and as it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Line(NamedTuple):
    """The command line of a job.

    options: words after the program's name. arguments: words after the options. asked: the options
    that decide the output. inputs: files that the command reads, by option. output: the path that
    it writes; None if it writes none. memory_limit: the command's limit in bytes; if None and
    ``takes_limit`` is set, the batch gives it a limit. takes_restart: whether the command can be
    told to start over. shares: a text that names what the process may keep for another job, such as
    a graph and how it is held, or workers; None if it keeps nothing.
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


@dataclass(frozen=True)
class Job:
    """A job of a batch. needs: names of the jobs that must be done before. timeout: seconds for one
    try; None for no timeout. at: the line of the job in the file. inputs_at: the line of each file
    that it reads, by option. output_at: the line of its output.
    """

    name: str
    command: str
    line: Line
    needs: tuple[str, ...]
    retries: int
    timeout: float | None
    at: int
    inputs_at: Mapping[str, int]
    output_at: int
