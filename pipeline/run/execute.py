"""Execution of a plan's steps as tasks, on threads of this process or as Dask tasks on a
cluster.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...partition.errors import InputError
from .records import StepRecord

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]
"""Function that is called with a step's name, its work done and its whole work, from any thread.

Work is counted in rows of the input if a step's items have such a size, else in tasks. The text
after a colon in the name has results of the last piece of work, as in "search: change 1e-5, level
3".
"""


class Pool(Protocol):
    """A place where tasks run: threads or a cluster."""

    def run(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        at_once: int,
        done: Callable[[int], None],
    ) -> list[Result]:
        """Run ``task`` on each item, in order, ``at_once`` at a time. Call ``done`` with the item's
        index when its task ends. Returns the results in the order of items.
        """
        ...

    def check_sees(self, folder: Path, inputs: Sequence[str]) -> None:
        """Raise DelegraphError, which names a worker, unless all workers see this process's
        files.
        """
        ...


class Threads:
    """Threads of this process."""

    def run(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        at_once: int,
        done: Callable[[int], None],
    ) -> list[Result]:
        def run_one(i: int) -> Result:
            result = task(items[i])
            done(i)
            return result

        if len(items) < 2:
            return [run_one(i) for i in range(len(items))]
        pool = ThreadPoolExecutor(min(at_once, len(items)))
        try:
            futures = [pool.submit(run_one, i) for i in range(len(items))]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # an error is raised at once

    def check_sees(self, folder: Path, inputs: Sequence[str]) -> None:
        """Do nothing: this process sees its own files."""


class Executor:
    """An executor runs one step after another, each as independent tasks, and keeps a record of the
    steps.

    pool: where tasks of ``spread`` run; tasks of ``step`` always run in this process.
    """

    def __init__(
        self, threads: int, progress: Progress | None = None, pool: Pool | None = None
    ) -> None:
        if threads < 1:
            raise InputError(f"threads must be positive, not {threads}")
        self.threads = threads
        self.pool = pool or Threads()
        self.steps: list[StepRecord] = []
        self.progress = progress
        self._done = 0
        self._lock = threading.Lock()

    def step(
        self,
        name: str,
        task: Callable[[Any], Result],
        items: Iterable[Any],
        projected_bytes: int = 0,
        total: int | None = None,
        at_once: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> list[Result]:
        """Run ``task`` on each item, in order, on threads. projected_bytes: the most that the step
        holds.

        A task must not touch anything that another task writes; a task may run again. A call with
        the name of the last step continues that step; ``total`` is the work of all such calls.
        sizes: the work of each item; 1 each by default.
        """
        return self._run(Threads(), name, task, items, projected_bytes, total, at_once, sizes)

    def stream(
        self,
        name: str,
        task: Callable[[Item], Result],
        items: Iterable[Item],
        projected_bytes: int,
        total: int,
        held: int,
        size_of: Callable[[Item], int],
    ) -> Iterator[Result]:
        """Yield the result of ``task`` for each item, in order; threads work on the next ones then.

        items: taken one at a time, by the caller's thread. total: the size of all items. held: how
        many items are held at the same time, with the one that was yielded last.
        """
        started, tasks = self._begin(name), 0
        waiting: deque[tuple[int, Future[Result]]] = deque()
        pool = ThreadPoolExecutor(min(self.threads, max(1, held - 1)))
        self._tell(name, total)

        def first() -> Result:
            size, future = waiting.popleft()
            result = future.result()
            self._done += size
            self._tell(name, total)
            return result

        try:
            for item in items:
                waiting.append((size_of(item), pool.submit(task, item)))
                tasks += 1
                del item
                if len(waiting) >= max(1, held - 1):
                    yield first()
            while waiting:
                yield first()
        finally:
            pool.shutdown(cancel_futures=True)
            self._end(started, tasks, projected_bytes)

    def once(self, name: str, task: Callable[[], Result], projected_bytes: int = 0) -> Result:
        """Run a step of a single task, in this process."""
        started = self._begin(name)
        total = self._done + 1
        self._tell(name, total)
        result = task()
        self._done += 1
        self._tell(name, total)
        self._end(started, 1, projected_bytes)
        return result

    def spread(
        self,
        name: str,
        task: Callable[[Any], Result],
        items: Iterable[Any],
        projected_bytes: int = 0,
        at_once: int | None = None,
        sizes: Sequence[int] | None = None,
    ) -> list[Result]:
        """Run ``task`` on each item like ``step``, but in the pool, so the task and its results
        must be picklable.
        """
        return self._run(self.pool, name, task, items, projected_bytes, None, at_once, sizes)

    def reused(self, name: str) -> None:
        """Note a step that an earlier attempt has finished."""
        self.steps.append(
            StepRecord(name=name, tasks=0, projected_bytes=0, seconds=0.0, reused=True)
        )

    def _run(
        self,
        pool: Pool,
        name: str,
        task: Callable[[Any], Result],
        items: Iterable[Any],
        projected_bytes: int,
        total: int | None,
        at_once: int | None,
        sizes: Sequence[int] | None,
    ) -> list[Result]:
        items = list(items)
        sizes = [1] * len(items) if sizes is None else sizes
        started = self._begin(name)
        total = total or self._done + sum(sizes)
        self._tell(name, total)

        def done(item: int) -> None:
            with self._lock:
                self._done += sizes[item]
            self._tell(name, total)

        results = pool.run(task, items, at_once or self.threads, done)
        self._end(started, len(items), projected_bytes)
        return results

    def _begin(self, name: str) -> float:
        """Begin a step, or go on with the last one of that name. Returns the time."""
        if not self.steps or self.steps[-1]["name"] != name:
            self.steps.append(
                StepRecord(name=name, tasks=0, projected_bytes=0, seconds=0.0, reused=False)
            )
            self._done = 0
        return time.perf_counter()

    def _end(self, started: float, tasks: int, projected_bytes: int) -> None:
        record = self.steps[-1]
        record["tasks"] += tasks
        record["seconds"] += time.perf_counter() - started
        record["projected_bytes"] = max(record["projected_bytes"], projected_bytes)

    def _tell(self, name: str, total: int) -> None:
        if self.progress:
            self.progress(name, self._done, total)
