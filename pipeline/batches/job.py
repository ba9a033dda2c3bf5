"""A job of a batch, as it is checked and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Line(NamedTuple):
    """The command line of a job.

    options: words after the program's name. arguments: after these. asked: what
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


@dataclass(frozen=True)
class Job:
    """needs: names. timeout: seconds for a try; None for any. at: its line in the file, and those
    of what it reads, by option; output_at: of what it writes.
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
