"""A team of threads that runs kernels together.

The kernels are compiled without the GIL and without Numba's own parallel runtime: Python
threads call them, and each thread takes its next piece from a shared cursor. So there is one
compiled variant of each, quick to compile, and calling them from several Dask tasks at once is
safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


class Team:
    """``threads`` threads that run one kernel together; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, not {threads}")
        self.threads = threads
        self._others = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def run(self, kernel: Callable, *args) -> list:
        """Call ``kernel(*args)`` once a thread; the results, in no order."""
        if self._others is None:
            return [kernel(*args)]
        others = [self._others.submit(kernel, *args) for _ in range(self.threads - 1)]
        mine = kernel(*args)
        return [mine, *(other.result() for other in others)]

    def map(self, function: Callable, items: Sequence) -> list:
        """``function`` of each item, in order, each thread taking the next one."""
        if self._others is None or len(items) < 2:
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
