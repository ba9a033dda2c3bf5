"""Dask clusters: local worker processes, or one that is there already.

Workers read the input and the scratch folder by the same paths as this process, so they have to
share its file systems; that is checked before any work.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ...partition.disk.memory import held_bytes, return_freed_memory
from ...partition.errors import DelegraphError, InputError

Result = TypeVar("Result")

CONNECT_SECONDS = 30
WORKERLESS_SECONDS = 60
_LOOK_SECONDS = 5


@dataclass(frozen=True)
class ClusterOptions:
    """Where tasks run: ``workers`` local processes, or the cluster of a scheduler.

    None of them: in this process.
    """

    workers: int | None = None
    scheduler: str | None = None
    scheduler_file: str | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.workers, self.scheduler, self.scheduler_file) if value]
        if len(given) > 1:
            raise InputError("give one of --workers, --scheduler and --scheduler-file")

    @property
    def any(self) -> bool:
        return bool(self.workers or self.scheduler or self.scheduler_file)


class Cluster:
    """Workers of a Dask cluster.

    workers: how many there are; threads: of each. baseline: bytes that each holds, by
    measurement, after ``warm_up`` ran there.
    """

    def __init__(self, client: Any, local: bool) -> None:
        self.client = client
        self.local = local
        found = client.scheduler_info(n_workers=-1)["workers"]
        if not found:
            raise DelegraphError("the cluster has no workers: start some, then run again")
        self.workers = len(found)
        self.threads = min(worker["nthreads"] for worker in found.values())
        self.baseline = 0

    def check_sees(self, folder: Path, inputs: Sequence[str]) -> None:
        """Raises DelegraphError naming a worker that does not see our files."""
        token = folder / f".seen-{uuid.uuid4().hex}"
        token.write_bytes(b"")
        try:
            for address, missing in self.client.run(unseen, [str(token), *inputs]).items():
                if missing:
                    raise unseen_by(address, missing)
        finally:
            token.unlink()

    def warm_up(self, task: Callable[[], None]) -> None:
        """Compile on every worker what tasks will call, then measure what a worker holds."""
        self.baseline = max(self.client.run(_warm_up, task).values())

    def run(
        self,
        task: Callable[[Any], Result],
        items: Sequence[Any],
        at_once: int,
        done: Callable[[int], None],
    ) -> list[Result]:
        """See execute.Pool. A task whose worker dies runs again on another one."""
        from distributed import wait
        from distributed.scheduler import KilledWorker

        left = iter(enumerate(items))
        results: list[Any] = [None] * len(items)
        running: dict[Any, int] = {}
        alone_since = None
        try:
            while True:
                for i, item in islice(left, max(0, at_once - len(running))):
                    running[self.client.submit(task, item, pure=False)] = i
                if not running:
                    return results
                try:
                    ended: Any = wait(list(running), _LOOK_SECONDS, "FIRST_COMPLETED")
                except TimeoutError:
                    alone_since = self._alone_since(alone_since)
                    continue
                alone_since = None
                for future in ended.done:
                    i = running.pop(future)
                    results[i] = future.result()
                    done(i)
        except KilledWorker as error:
            raise DelegraphError(
                f"workers died again and again on one task ({error.last_worker.address} last): "
                "out of memory? Run the same command again, with fewer threads a worker"
            ) from error
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of a task
            raise DelegraphError("the cluster is gone; run the same command again") from error
        finally:
            for future in running:
                future.cancel()

    def _alone_since(self, since: float | None) -> float | None:
        """Since when there is no worker; DelegraphError if that is long ago."""
        if self.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        if since is not None and now - since > WORKERLESS_SECONDS:
            raise DelegraphError(
                f"the cluster has had no worker for {WORKERLESS_SECONDS} s: start some, and run "
                "the same command again"
            )
        return since or now


@contextlib.contextmanager
def open_cluster(options: ClusterOptions, threads: int, devices: bool = False) -> Iterator[Cluster]:
    """The cluster that the options name. Local workers share ``threads`` and end with the block.

    devices: whether local workers get a GPU each.
    """
    from distributed import Client

    # What goes wrong is told in one line, by us; a cluster tells of each connection that ends.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        if options.workers:
            cluster = stack.enter_context(_local_cluster(options.workers, threads, devices))
            client = stack.enter_context(Client(cluster))
            client.wait_for_workers(options.workers)
        else:
            address = options.scheduler or _address_in(str(options.scheduler_file))
            try:
                client = stack.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError, TypeError) as error:
                raise InputError(f"no Dask scheduler answers at {address}: {error}") from error
        yield Cluster(client, local=bool(options.workers))


def _local_cluster(workers: int, threads: int, devices: bool) -> Any:
    options: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": max(1, threads // workers),
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    if devices:
        from dask_cuda import LocalCUDACluster  # pyright: ignore[reportMissingImports]

        # No memory of its own for Dask: nothing passes through it, and the plan keeps the limit.
        return LocalCUDACluster(memory_limit=None, data=dict, **options)
    from distributed import LocalCluster

    return LocalCluster(processes=True, memory_limit=0, **options)


def unseen_by(worker: str, path: str) -> DelegraphError:
    return DelegraphError(
        f"worker {worker} does not see {path}: workers must share the file system with this "
        "machine, under the same paths"
    )


def _address_in(file: str) -> str:
    """A scheduler's address, by the file that it wrote."""
    try:
        return str(json.loads(Path(file).read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: not the file of a Dask scheduler: {error}") from error


def unseen(paths: Sequence[str]) -> str | None:
    """The first of some paths that is not there; run on a worker."""
    return next((path for path in paths if not os.path.exists(path)), None)


def _warm_up(task: Callable[[], None]) -> int:
    task()
    return_freed_memory()
    return held_bytes()
