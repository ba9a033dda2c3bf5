"""A team of threads that runs kernels together.

The kernels are compiled without the GIL and without Numba's own parallel runtime: Python
threads call them, and each thread takes its next piece from a shared cursor. So there is one
compiled variant of each, quick to compile, and calling them from several Dask tasks at once is
safe.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Barrier
from typing import Any, TypeVar

T = TypeVar("T")


class Team:
    """``threads`` threads that run one kernel together; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, not {threads}")
        self.threads = threads
        self._pool = os.getpid(), ThreadPoolExecutor(max(1, threads - 1))

    @property
    def _others(self) -> ThreadPoolExecutor | None:
        """Return the other threads, made in this process: a forked process has none of its parent's
        threads.
        """
        if self.threads == 1:
            return None
        if self._pool[0] != os.getpid():
            self._pool = os.getpid(), ThreadPoolExecutor(self.threads - 1)
        return self._pool[1]

    def start(self) -> Team:
        """Begin the threads. Otherwise the first call begins them, within its time."""
        pool = self._others
        if pool is not None:
            there = Barrier(self.threads)  # each of them takes one, as none is done before all are
            try:
                futures = [pool.submit(there.wait) for _ in range(self.threads - 1)]
            except BaseException:  # there are not to be so many
                there.abort()
                raise
            there.wait()
            wait(futures)
        return self

    def run(self, kernel: Callable, *args) -> list:
        """Call ``kernel(*args)`` once on each thread. Returns the results, in no order.

        If a call fails, the first error is raised once all threads are done: until then they use
        what the caller closes.
        """
        pool = self._others
        if pool is None:
            return [kernel(*args)]
        errors: list[BaseException] = []

        def call() -> Any:
            try:
                return kernel(*args)
            except BaseException as error:
                errors.append(error)

        futures: list[Future] = []
        try:
            for _ in range(self.threads - 1):
                futures.append(pool.submit(call))
        except BaseException:  # there are not to be so many
            wait(futures)
            raise
        results = [call(), *(future.result() for future in futures)]
        try:
            if errors:
                raise errors[0]
        finally:
            errors.clear()  # an error holds its frames, and they hold the list: no ring
        return results

    def stream(self, function: Callable[..., T], items: Iterable) -> Iterator[T]:
        """Yield the result of ``function`` for each item, in order. While the caller uses one
        result, the threads work on others, as many as there are threads. The calling thread is one
        of these, and takes the items.
        """
        pool = self._others
        if pool is None:
            yield from map(function, items)
            return
        waiting: deque[Future[T]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) == self.threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            wait(waiting)

    def map(self, function: Callable, items: Sequence) -> list:
        """Return the result of ``function`` for each item, in order. Each thread takes the next
        item.
        """
        if self.threads == 1 or len(items) < 2:
            return [function(item) for item in items]
        results: list = [None] * len(items)
        left = iter(range(len(items)))  # next() on it is atomic under the GIL

        def take() -> None:
            try:
                for i in left:
                    results[i] = function(items[i])
            except BaseException:
                for _ in left:  # nothing more is begun
                    pass
                raise

        self.run(take)
        return results
