"""Runs the steps of a plan as tasks on Dask's threads, in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dask.base import compute
from dask.delayed import delayed
from dask.threaded import get

from ..partition.errors import InputError
from .metrics import StepRecord

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]
"""Called with a step's name, its tasks done and its tasks in all; from any thread."""


def available_threads() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not every system can tell


class Executor:
    """Runs one step after another, each as independent tasks, and keeps a record of them."""

    def __init__(self, threads: int, progress: Progress | None = None) -> None:
        if threads < 1:
            raise InputError(f"threads must be positive, not {threads}")
        self.threads = threads
        self.steps: list[StepRecord] = []
        self._progress = progress

    def step(
        self,
        name: str,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        projected_bytes: int = 0,
        total: int | None = None,
    ) -> list[Result]:
        """``task`` of each item, in order. ``projected_bytes``: held by the step at most.

        Tasks must not touch what another one writes; a task may be run again. Calls with the
        name of the step before it go on with that step; ``total``: the tasks of all such calls.
        """
        started = time.perf_counter()
        goes_on = bool(self.steps) and self.steps[-1]["name"] == name
        before = self.steps[-1]["tasks"] if goes_on else 0
        total = total or before + len(items)
        done: list[int] = []
        if self._progress:
            self._progress(name, before, total)

        def run(i: int) -> Result:
            result = task(items[i])
            done.append(i)
            if self._progress:
                self._progress(name, before + len(done), total)
            return result

        lazy = delayed(run, pure=False)
        results = list(
            compute(
                *(lazy(i) for i in range(len(items))),
                scheduler=get,
                num_workers=self.threads,
                optimize_graph=False,
            )
        )
        seconds = time.perf_counter() - started
        if goes_on:
            self.steps[-1]["tasks"] += len(items)
            self.steps[-1]["seconds"] += seconds
            self.steps[-1]["projected_bytes"] = max(
                self.steps[-1]["projected_bytes"], projected_bytes
            )
        else:
            self.steps.append(
                StepRecord(
                    name=name,
                    tasks=len(items),
                    projected_bytes=projected_bytes,
                    seconds=seconds,
                    reused=False,
                )
            )
        return results
