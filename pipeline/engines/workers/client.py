"""Searching a store on the workers of a Dask cluster, a rank each, or running a program there."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from ....kernels.gpu.device import Device
from ....partition.disk.memory import GROWTH_BYTES, format_bytes, resident_bytes
from ....partition.errors import InputError, LimitError
from ....partition.store.store import Store
from ...ranks.lease import lease
from ...ranks.on_workers import Done, run_on_workers, stop, workers_of
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...run import ending
from ...run.cluster import Cluster, open_cluster
from ...run.contact import CLOSE_SECONDS
from ...run.devices import has_device_each
from ...run.fork_server import server_bytes
from ...run.local import end_workers
from ...run.plan import SLACK, check_space
from ...run.resources import Resources
from ..engine import Engine, Need, Subject, first_that_fits
from ..operations.program import Program, ProgramResult, Tell
from ..ranks.result import gather, gather_columns, saved_bytes
from .job import ON_DISK, Job, Work
from .program_work import ProgramDone, ProgramWork
from .search_work import SearchWork
from .share import keep_share


class WorkersEngine:
    """As many ranks as the cluster has workers and the store partitions; each loads its share for
    every search. Of a program that is followed by others workers keep it.

    folder: that workers see, for what ranks find. notes: receives lines for the user. program: for
    ``run``; None for searches.
    """

    in_memory = True

    def __init__(
        self,
        store: Store,
        subject: Subject,
        resources: Resources,
        threads: int,
        folder: Path,
        notes: list[str],
        program: Program | None = None,
    ) -> None:
        self.subject = subject
        self.method = "push-pull"
        self.device: Device | str | None = None
        self.ranks = resources.cluster.workers or 1
        self._store = store
        self._resources = resources
        self._threads = threads
        self._folder = folder
        self._notes = notes
        self._program = program
        self._name = uuid.uuid4().hex
        self._shares: list[Any] = []
        self._open = contextlib.ExitStack()
        self._loading = threading.Lock()
        self._workers: Workers | None = None
        self._beginning = self._working = 0.0  # seconds, of local workers for this command alone
        self._fits_one = False
        self._searching = False

    def need(self) -> Need:
        """Return the need of this process: the result. What ranks hold they tell when they are
        asked (``Way``).
        """
        columns = 1 if self._program is None else len(self._program.columns)
        return Need(8 * columns * self._store.info.vertices)

    def compile(self) -> None:
        """Ranks compile before they meet."""

    def load(self) -> None:
        """Raises InputError for more local workers than partitions."""
        if self._workers is not None:
            return
        began = time.monotonic()
        there = open_workers(self._store, self._resources, self._threads)
        with self._loading:
            self._workers = self._open.enter_context(there)
        if self._workers.cluster.local:
            self._beginning = time.monotonic() - began

    def take_over(self, other: Engine) -> bool:
        """The workers, and the lease of them."""
        if not isinstance(other, WorkersEngine) or other._workers is None:
            return False
        if other._how != self._how or too_many(self._store, self._resources):
            return False
        cluster, _, device = other._workers
        self._workers = Workers(cluster, workers_for(self._store, cluster), device)
        self._open, other._workers = other._open.pop_all(), None
        return True

    @property
    def _how(self) -> tuple[Any, ...]:
        """The choices that decide which workers there are."""
        return self._resources.cluster, self._resources.device, self._threads

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """Raises LimitError where a share does not fit, DelegraphError where the disk has no room
        for what ranks find, or naming the rank where one fails.

        checkpoint: not used; what a search needs is in the store.
        """

        work = SearchWork(source, max_depth)
        with self._done(work, saved_bytes(self._store.info)) as (done, attempt):
            on_disk = done.devices is None and attempt.way == ON_DISK
            self.method = "push-pull, streamed" if on_disk else "push-pull"
            return Found(*gather(self._store, attempt.place), done.results[0])

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        extra_bytes: int = 0,
    ) -> ProgramResult:
        """The program. Raises as ``search`` does. tell: not used."""
        if program is not None:
            self._keep_shares()
        program = program or self._program
        assert program is not None

        work = ProgramWork((program,), checkpoint and checkpoint.place, self._name)
        written = 8 * len(program.columns) * self._store.info.vertices
        with self._done(work, written, checkpoint) as (done, attempt):
            given: ProgramDone | None = done.results[0]
            if given is None:
                ending.end()
            for steps in given.went_on:
                assert checkpoint is not None
                checkpoint.go_on_from(steps)
            self.method = method_of(done, attempt)
            values = gather_columns(self._store, attempt.place, given.columns)
            return ProgramResult(dict(zip(given.columns, values, strict=True)), given.record)

    def _keep_shares(self) -> None:
        """From now on, until this is closed."""
        assert self._workers is not None
        submit, workers = self._workers.cluster.contact.submit, self._workers.addresses
        self._shares = self._shares or [
            submit(keep_share, self._name, workers=[worker]) for worker in workers
        ]

    @contextmanager
    def _done(
        self, work: Work, written: int, checkpoint: Checkpoint | None = None
    ) -> Iterator[tuple[Done, Job]]:
        """Yield what ranks did. written: bytes that all of them leave in a folder that workers see,
        which ends with this. checkpoint: where rank 0 saves, if they do.
        """
        asked = checkpoint.ask_elsewhere if checkpoint else lambda: False
        assert self._workers is not None
        cluster, workers, _ = self._workers
        room = partial(check_room, self._resources.limit, cluster)
        check_space([(self._folder, written)])
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
            self._searching, began = True, time.monotonic()
            try:
                job = self._job(work, Path(folder).resolve())
                done = run_on_workers(cluster, workers, job, room, asked)
            finally:
                asked()  # what was saved last is kept
            self._searching = False
            self._notes += done.notes
            self._working += time.monotonic() - began
            self._fits_one = done.devices is not None and cast(Job, done.job).fits_one
            self.device, self.ranks = done.devices, len(done.results)
            yield done, cast(Job, done.job)

    def _tell_of_one(self) -> None:
        """A line where one GPU, had it done all that the ranks did, would have taken no longer. Not
        of workers that are kept: they begin but once.
        """
        beginning, working = self._beginning, self._working
        if self._fits_one and beginning > (self.ranks - 1) * working:
            self._notes.append(
                f"one GPU without --workers would have been as fast: {self.ranks} workers took "
                f"{beginning:.1f} s to start, and {working:.1f} s for the rest"
            )

    def _job(self, work: Work, folder: Path) -> Job:
        assert self._workers is not None
        resources = self._resources
        timeout, limit = resources.cluster.timeout, resources.device_memory_limit
        return Job(self._store.path.resolve(), work, folder, timeout, self._workers.device, limit)

    def close(self) -> None:
        self._tell_of_one()
        self._fits_one = False
        self._shares.clear()
        if self._workers is not None and self._searching:  # Ctrl-C does not come to the ranks
            stop(self._workers.cluster, self._workers.addresses)
        # Ctrl-C may come while another thread begins: what it begins is closed in good order.
        if self._loading.acquire(timeout=CLOSE_SECONDS):
            self._loading.release()
        else:
            end_workers()
        self._open.close()


class Workers(NamedTuple):
    """The workers of a cluster: the addresses of those that get a rank, and the device they may
    search on.
    """

    cluster: Cluster
    addresses: list[str]
    device: str


@contextmanager
def open_workers(store: Store, resources: Resources, threads: int) -> Iterator[Workers]:
    """Open as many workers as the store has partitions, for one command. InputError: they
    cannot.
    """
    check_partitions(store, resources)
    with open_ranks(resources, threads) as (cluster, device):
        yield Workers(cluster, workers_for(store, cluster), device)


@contextmanager
def open_ranks(resources: Resources, threads: int) -> Iterator[tuple[Cluster, str]]:
    """A cluster, for one command, and the device that its ranks may run on."""
    asked, device = resources.cluster.workers or 0, resources.device
    devices = asked > 0 and has_device_each(device, asked)
    if asked and not devices:
        device = "cpu"
    with (
        open_cluster(resources.cluster, threads, devices) as cluster,
        lease(cluster, resources.cluster.timeout),
    ):
        yield cluster, device


def check_partitions(store: Store, resources: Resources) -> None:
    """InputError where there would be local workers without one."""
    if too_many(store, resources):
        partitions, asked = store.info.partitions, resources.cluster.workers
        raise InputError(
            f"{store.path} has {partitions} partition{'s'[: partitions > 1]} for {asked} "
            f"workers: build it again with --partitions {asked} or more"
        )


def too_many(store: Store, resources: Resources) -> bool:
    """Whether there would be local workers without a partition."""
    return (resources.cluster.workers or 0) > store.info.partitions


def workers_for(store: Store, cluster: Cluster) -> list[str]:
    return workers_of(cluster)[: store.info.partitions]


def method_of(done: Done, attempt: Job) -> str:
    """Return the name of the way that a program ran."""
    if done.devices is not None:
        return "on devices"
    return "streamed" if attempt.way == ON_DISK else "in memory"


def held_before(cluster: Cluster, ranks: int, baseline: int) -> int:
    """Return the bytes that count for the limit before any work: of all local processes, or of one
    worker.

    baseline: bytes that a worker holds.
    """
    each = baseline + GROWTH_BYTES
    if not cluster.local:
        return each
    return resident_bytes() + server_bytes() + GROWTH_BYTES + ranks * each


def check_room(
    limit: int, cluster: Cluster, ranks: int, baseline: int, needs: Sequence[int]
) -> int:
    """The first of several ways that fits. needs: bytes that each takes on a rank.

    Raises LimitError, with the least limit that would do, if none does.
    """
    before = held_before(cluster, ranks, baseline)

    def held(need: int) -> int:
        return before + (ranks if cluster.local else 1) * need

    way = first_that_fits(needs, lambda need: held(need) <= limit)
    if way is not None:
        return way
    need = min(needs)
    processes = ranks + 2 if cluster.local else 1  # with this one and the workers' server
    wanted = format_bytes(held(need) + processes * SLACK).replace(" ", "")
    of_each = "" if cluster.local else " of each worker"
    raise LimitError(
        f"the memory limit{of_each} of {format_bytes(limit)} is too small: each of "
        f"{ranks} ranks holds up to {format_bytes(need)}, beside Python and libraries; give "
        f"--memory-limit {wanted} or more"
    )
