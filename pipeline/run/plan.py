"""The plan of a run: the bytes that each step holds and writes, and whether they fit, known before
the run begins.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...partition.disk.memory import GROWTH_BYTES, format_bytes, resident_bytes
from ...partition.errors import DelegraphError, LimitError
from ...partition.input.pages import Reading

if TYPE_CHECKING:
    from ...partition.store.grid import Grid

SLACK = 8 << 20
"""Bytes by which the memory that a process holds before any work may vary from run to run."""


@dataclass(frozen=True)
class StepPlan:
    """A step of ``tasks`` tasks, which hold at most ``task_bytes`` each and run ``at_once`` at a
    time.

    shared_bytes: held once, however many tasks run. disk_bytes: written to scratch. final_bytes:
    written to the output. device_bytes: held on a device; 0 on a CPU.
    """

    name: str
    tasks: int
    task_bytes: int
    shared_bytes: int = 0
    at_once: int = 1
    disk_bytes: int = 0
    final_bytes: int = 0
    device_bytes: int = 0

    @property
    def least_bytes(self) -> int:
        return self.shared_bytes + self.task_bytes


@dataclass(frozen=True)
class Facts:
    """Facts of a graph known before a step runs; a fact that has not been counted is a bound.

    id_bytes: of one id in memory; for strings without their characters. encoded: whether ids go
    through a dictionary. exact: whether ``domain`` and ``vertices`` were counted. grid: None for
    the delegate layout. reading: the bytes that reading holds; its ``distinct`` is exact if
    ``exact`` is set. weight_bytes: of an edge's weight; 0 without weights. keeps_loops: whether
    self-loops are kept.
    """

    rows: int
    domain: int
    vertices: int
    id_bytes: int
    encoded: bool
    directed: bool
    ordered_by_degree: bool
    partitions: int
    grid: Grid | None
    exact: bool = False
    reading: Reading = field(default_factory=Reading)
    weight_bytes: int = 0
    keeps_loops: bool = False

    @property
    def degree_bytes(self) -> int:
        return 4 if self.rows < 2**31 else 8


@dataclass(frozen=True)
class Shape:
    """The way a build splits its data. spans: ranges of ids. batch_rows: rows of a batch.
    in_memory: whether the data stay in memory between steps.
    """

    spans: int = 1
    batch_rows: int = 1 << 22
    in_memory: bool = False


@dataclass(frozen=True)
class Budget:
    """The memory that a run may use. limit: bytes that the process tree may hold. baseline: bytes
    that it holds before any work. workers: processes that run tasks, with ``threads`` threads each;
    0: this process runs them. per_worker: whether the limit holds for each worker, as in an
    existing cluster.
    """

    limit: int
    baseline: int
    threads: int
    workers: int = 0
    per_worker: bool = False

    @property
    def sharing(self) -> int:
        """Return the number of processes that share the limit."""
        return 1 if self.per_worker else max(1, self.workers)

    @property
    def apart(self) -> int:
        """Return the number of groups of processes to which the limit applies separately."""
        return self.workers if self.per_worker else 1

    @property
    def free(self) -> int:
        return self.limit - self.baseline


@dataclass(frozen=True)
class Plan:
    """The steps of a build or a search, in order, under a budget.

    facts: of a graph to be built; None for a search, whose store is known exactly. device: the name
    of the device that steps with device bytes run on; None for the CPU. notes: lines for the user
    about devices that cannot be used.
    """

    budget: Budget
    shape: Shape
    steps: tuple[StepPlan, ...]
    facts: Facts | None = field(repr=False)
    device: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        return self.facts is None or self.facts.exact

    @property
    def worst(self) -> StepPlan:
        return max(self.steps, key=self.held)

    @property
    def peak_bytes(self) -> int:
        return self.held(self.worst)

    def held(self, step: StepPlan) -> int:
        """Return the bytes held within the limit while a step runs."""
        at_once = -(-step.at_once // self.budget.apart)
        return self.budget.baseline + step.shared_bytes + at_once * step.task_bytes

    @property
    def scratch_bytes(self) -> int:
        return sum(step.disk_bytes for step in self.steps)

    @property
    def final_bytes(self) -> int:
        return sum(step.final_bytes for step in self.steps)

    def step(self, name: str) -> StepPlan:
        return next(step for step in self.steps if step.name == name)


def check_space(wanted: Sequence[tuple[Path, int]], scratch: bool = True) -> None:
    """Raise DelegraphError if a disk has less free space than will be written to its folders.

    wanted: folders, each with the bytes to be written there. scratch: whether the bytes include
    scratch files, which may be put elsewhere.
    """
    places: dict[int, tuple[Path, int]] = {}
    for path, size in wanted:
        device = path.stat().st_dev
        before = places.get(device, (path, 0))
        places[device] = (before[0], before[1] + size)
    for path, size in places.values():
        free = shutil.disk_usage(path).free
        if size > free:
            raise DelegraphError(
                f"{path}: up to {size:,} bytes are needed there, but {free:,} are free: free some "
                "space" + (", or put scratch files elsewhere with --scratch" if scratch else "")
            )


def fits(need: int, limit: int) -> bool:
    """Return whether ``need`` bytes fit beside the bytes that this process already holds."""
    return held_now() + need <= limit


def too_little(step: str, need: int, limit: int, held: int | None = None) -> LimitError:
    """Return the LimitError for ``need`` bytes that do not fit beside the bytes held before any
    work.
    """
    held = held_now() if held is None else held
    least = held + need + SLACK
    told = format_bytes(least)
    return LimitError(
        f"the memory limit of {format_bytes(limit)} is too small: step '{step}' needs "
        f"{told}, including {format_bytes(held)} for Python and libraries; give "
        f"--memory-limit {told.replace(' ', '')} or more",
        least,
    )


def held_now() -> int:
    return resident_bytes() + GROWTH_BYTES
