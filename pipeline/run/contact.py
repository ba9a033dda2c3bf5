"""Talking with a Dask cluster: nothing here waits for ever, whatever has stopped or gone.

Dask's own calls that wait (``wait``, ``Future.exception``, ``Future.cancel``) do so for ever where
another thread closes the client meanwhile: its loop ends, and with it what was to wake them. So
coroutines of the client's loop are called here instead, and waited for a little at a time.
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
"""How long what is closed in good order may take."""

_LOOK_SECONDS = 0.5
_GONE = "the cluster is gone; run the same command again"


class Contact:
    """Signs of life of a cluster. timeout: seconds without a sign of life of the scheduler, or of a
    worker that is waited for.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self._client = client
        self._timeout = timeout
        self._seen: dict[str, tuple[float, float]] = {}

    def call(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Begin work of the client's loop. Raises LostError where the loop has ended."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)
        except RuntimeError as error:
            work.close()
            raise LostError(_GONE) from error

    def submit(self, task: Callable[..., Any], *arguments: Any, **where: Any) -> Any:
        """Submit a task to the cluster and return Dask's future. Raises LostError where the client
        is closed.
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
        """Cancel tasks whose results nobody wants any more. Returns at once."""
        with contextlib.suppress(LostError):  # nor is anybody there to do them
            self.call(self._client._cancel(futures))

    def wait(
        self, work: Coroutine[Any, Any, Result], workers: Iterable[str] | None = None
    ) -> Result:
        """Wait for work of the client's loop, however long it takes, and return its result.

        Raises LostError where the scheduler, or one of ``workers``, shows no sign of life
        meanwhile. None: all workers that are there.
        """
        call = self.call(work)
        try:
            while not wait_for([call], _LOOK_SECONDS).done:
                self.check(workers)
            return call.result()
        finally:
            call.cancel()

    def check(self, workers: Iterable[str] | None = None) -> list[str]:
        """Return the workers that are there. Raises LostError where the scheduler, or one of
        ``workers``, is silent. None: any worker.
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
        """Return what the scheduler knows of each worker, by address. Raises LostError."""
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
        """Return for how many seconds the scheduler has heard nothing of each worker, by
        address.
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
    """Turn the errors that Dask raises where the scheduler goes away into a LostError."""
    try:
        yield
    except DelegraphError:
        raise
    except (CancelledError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise LostError(_GONE) from error


def begin(work: Callable[[], Result]) -> Future[Result]:
    """Run ``work`` in a thread of its own, for which nobody has to wait, and return a future of its
    result.

    Ctrl-C reaches neither the thread of ``work`` nor processes that ``work`` starts: it ends the
    calling thread, and that ends the processes.
    """
    resource_tracker.ensure_running()  # it would let Ctrl-C through to the thread that starts it
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
