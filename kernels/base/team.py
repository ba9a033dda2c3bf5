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
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from weakref import finalize

T = TypeVar("T")


class Team:
    """``threads`` threads that run one kernel together; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, not {threads}")
        self.threads = threads
        self._helpers: tuple[int, _Helpers] | None = None

    def start(self) -> Team:
        """Begin the threads. Otherwise the first call begins them, within its time."""
        if self.threads > 1:
            self._begun()
        return self

    def run(self, kernel: Callable, *args) -> list:
        """Call ``kernel(*args)`` on this thread, and on each other one that comes in time. Returns
        the results, in no order.

        A call must take a share of the work that no other call takes, until none is left: a thread
        that comes once the calling thread is done is not waited for, and does not call. If a call
        fails, the first error is raised once all threads are done: until then they use what the
        caller closes.
        """
        if self.threads == 1:
            return [kernel(*args)]
        return self._together(self.threads - 1, kernel, args)

    def stream(self, function: Callable[..., T], items: Iterable) -> Iterator[T]:
        """Yield the result of ``function`` for each item, in order. While the caller uses one
        result, the threads work on others, as many as there are threads. The calling thread is one
        of these, and takes the items.
        """
        if self.threads == 1:
            yield from map(function, items)
            return
        helpers = self._begun()
        waiting: deque[Future[T]] = deque()
        try:
            for item in items:
                waiting.append(helpers.submit(function, item))
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

        self._together(min(self.threads, len(items)) - 1, take, ())
        return results

    def _begun(self) -> _Helpers:
        """Return the other threads, made in this process: a forked process has none of its parent's
        threads.
        """
        process = os.getpid()
        if self._helpers is None or self._helpers[0] != process:
            self._helpers = process, _Helpers(self.threads - 1)
        return self._helpers[1]

    def _together(self, others: int, kernel: Callable | None, args: Sequence[Any]) -> list:
        """Call ``kernel(*args)`` on this thread and on ``others`` more."""
        calls = self._begun().calls
        results: list[Any] = []
        errors: list[BaseException] = []
        left = iter(range(others))  # calls that no thread has begun
        done: SimpleQueue[None] = SimpleQueue()

        def call() -> None:
            try:
                assert kernel is not None
                results.append(kernel(*args))
            except BaseException as error:
                errors.append(error)

        def help_out() -> None:
            for _ in left:
                call()
                done.put(None)
                return

        for _ in range(others):
            calls.put(help_out)
        call()
        begun = others - sum(1 for _ in left)
        for _ in range(begun):
            done.get()
        kernel, args = None, ()  # a call that comes late holds on to these
        try:
            if errors:
                raise errors[0]
        finally:
            errors.clear()  # an error holds its frames, and they hold the list: no ring
        return results


class _Helpers:
    """Threads that make the calls that are put into ``calls``, until this object is gone.

    A call of a team takes 4 us beside its kernel, where an executor of ``concurrent.futures`` takes
    90: a future has locks of its own, and the caller waits until each thread has come.
    """

    def __init__(self, threads: int) -> None:
        self.calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        finalize(self, _end, self.calls, threads)
        for _ in range(threads):
            Thread(target=_serve, args=(self.calls,), daemon=True).start()

    def submit(self, function: Callable[..., T], item: Any) -> Future[T]:
        given: Future[T] = Future()
        self.calls.put(partial(_give, [given], function, item))
        return given


def _give(into: list[Future[T]], function: Callable[..., T], item: Any) -> None:
    """Call a function, and give its result to a future, which is taken from ``into``: an error
    holds its frames, and they must not hold the future.
    """
    try:
        result = function(item)
    except BaseException as error:
        into.pop().set_exception(error)
    else:
        into.pop().set_result(result)


def _serve(calls: SimpleQueue[Callable[[], Any] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # holds what it works on


def _end(calls: SimpleQueue[Callable[[], Any] | None], threads: int) -> None:
    for _ in range(threads):
        calls.put(None)
