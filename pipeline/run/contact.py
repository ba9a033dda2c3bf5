"""Communication with a Dask cluster that never waits for ever, whatever has stopped or gone.

Dask's own waiting calls (``wait``, ``Future.exception``, ``Future.cancel``) wait for ever if
another thread closes the client meanwhile: the client's loop ends, and nothing wakes them. So this
module runs coroutines of the client's loop, and waits for them a little at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from ...partition.errors import DelegraphError, LostError

Result = TypeVar("Result")

CLOSE_SECONDS = 5
"""Seconds that an orderly close may take."""

_LOOK_SECONDS = 0.5
_GONE = "the cluster is gone; run the same command again"


class Contact:
    """Calls to a cluster that watch for signs of life. timeout: seconds without a sign of life of
    the scheduler, or of a worker that is waited for.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._seen: dict[str, tuple[float, float]] = {}

    def call(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine in the client's loop. Raises LostError if the loop has ended."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)
        except RuntimeError as error:
            work.close()
            raise LostError(_GONE) from error

    def submit(self, task: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """Submit a task to the cluster and return Dask's future. Raises LostError if the client is
        closed.
        """
        from distributed.client import ClosedClientError

        try:
            return self._client.submit(task, *arguments, pure=False, **where)
        except (ClosedClientError, RuntimeError) as error:
            raise LostError(_GONE) from error

    def first_ended(self, futures: Sequence[Any], seconds: float) -> None:
        """Return when one of the tasks has ended, or after ``seconds``."""
        from distributed.client import _wait

        call = self.call(_wait(futures, None, "FIRST_COMPLETED"))
        try:
            if wait_for([call], seconds).done:
                call.result()
        finally:
            call.cancel()

    def error_of(self, future: Any) -> BaseException:
        """Return the error of a task that has failed."""
        return self.wait(future._exception(), [])

    def drop(self, futures: Sequence[Any]) -> None:
        """Cancel tasks whose results are no longer needed. Returns at once."""
        with contextlib.suppress(LostError):  # no cluster, no tasks
            self.call(self._client._cancel(futures))

    def wait(
        self, work: Coroutine[Any, Any, Result], workers: Iterable[str] | None = None
    ) -> Result:
        """Run a coroutine in the client's loop, wait however long it takes, and return its result.

        Raises LostError if the scheduler, or one of ``workers``, shows no sign of life meanwhile.
        workers: None for all present workers.
        """
        call = self.call(work)
        try:
            while not wait_for([call], _LOOK_SECONDS).done:
                self.check(workers)
            return call.result()
        finally:
            call.cancel()

    def check(self, workers: Iterable[str] | None = None) -> list[str]:
        """Return the present workers. Raises LostError if the scheduler, or one of ``workers``, is
        silent. workers: None for all present workers.
        """
        silent = self.look()
        for worker in silent if workers is None else workers:
            if silent.get(worker, 0.0) > self._timeout:
                raise LostError(
                    f"worker {worker} has shown no sign of life for {silent[worker]:.0f} s: "
                    "end it, then run the same command again"
                )
        return list(silent)

    def workers(self) -> dict[str, Any]:
        """Return the scheduler's facts about each worker, by address. Raises LostError."""
        self._check_running()
        asked = self.call(self._client.scheduler.identity(n_workers=-1))
        until = time.monotonic() + self._timeout
        while not wait_for([asked], _LOOK_SECONDS).done:
            self._check_running()
            if time.monotonic() > until:
                asked.cancel()
                raise LostError(
                    f"the scheduler has not answered for {self._timeout:g} s: start another one, "
                    "then run the same command again"
                )
        with cluster_errors():
            return asked.result()["workers"]

    def look(self) -> dict[str, float]:
        """Return for each worker, by address, the seconds since the scheduler has last heard from
        it.
        """
        found, now = self.workers(), time.monotonic()
        for address, worker in found.items():
            if self._seen.get(address, (0.0, 0.0))[0] != worker["last_seen"]:
                self._seen[address] = worker["last_seen"], now
        return {address: now - self._seen[address][1] for address in found}

    def _check_running(self) -> None:
        if self._client.status != "running":
            raise LostError(_GONE)


@contextlib.contextmanager
def cluster_errors() -> Iterator[None]:
    """Turn the errors that Dask raises when the scheduler is lost into a LostError."""
    try:
        yield
    except DelegraphError:
        raise
    except (CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise LostError(_GONE) from error


def begin(work: Callable[[], Result]) -> Future[Result]:
    """Run ``work`` in its own daemon thread, and return a future of its result. The process can end
    without waiting for the thread.

    Ctrl-C reaches neither the thread of ``work`` nor the processes that ``work`` starts. It ends
    the calling thread, which then ends these processes.
    """
    resource_tracker.ensure_running()  # started later, it would unblock Ctrl-C
    begun: Future[Result] = Future()

    def run() -> None:
        try:
            begun.set_result(work())
        except BaseException as error:
            begun.set_exception(error)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # threads inherit it
    try:
        threading.Thread(target=run, daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return begun
