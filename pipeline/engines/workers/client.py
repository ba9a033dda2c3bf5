"""The client of a Dask cluster that searches a store, or runs a program over it, with a rank on
each worker.
"""

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
from ...ranks.jobs import Room
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
    """The engine that runs ranks on the workers of a cluster: as many ranks as there are workers,
    at most one for each partition. Each worker loads its share again for every search. If several
    programs follow each other, workers keep their shares.

    folder: visible to all workers; ranks leave their results there. notes: receives lines for the
    user. program: for ``run``; None for searches.
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
        self._beginning = self._working = 0.0  # seconds, of workers started here
        self._fits_one = False
        self._searching = False

    def need(self) -> Need:
        """Return the bytes that this process needs, which are those of the result. Ranks state
        their own needs when they get ready (``Way``).
        """
        columns = 1 if self._program is None else len(self._program.columns)
        return Need(8 * columns * self._store.info.vertices)

    def compile(self) -> None:
        """Do nothing: ranks compile before they meet."""

    def load(self) -> None:
        """Open the workers. Raises InputError if there are more local workers than partitions."""
        if self._workers is not None:
            return
        began = time.monotonic()
        there = open_workers(self._store, self._resources, self._threads)
        with self._loading:
            self._workers = self._open.enter_context(there)
        if self._workers.cluster.local:
            self._beginning = time.monotonic() - began

    def take_over(self, other: Engine) -> bool:
        """Take over the workers of another engine, with their lease."""
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
        """Return the choices that decide which workers are opened."""
        return self._resources.cluster, self._resources.device, self._threads

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """Search on the workers. checkpoint: not used; all that a search needs is in the store.

        Raises LimitError if a share does not fit; DelegraphError if the disk has no room for the
        results of ranks, or, naming the rank, if a rank fails.
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
        """Run the program on the workers. Raises the same errors as ``search``. tell: not used."""
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
        """Make workers keep their shares from now on, until the engine is closed."""
        assert self._workers is not None
        submit, workers = self._workers.cluster.contact.submit, self._workers.addresses
        self._shares = self._shares or [
            submit(keep_share, self._name, workers=[worker]) for worker in workers
        ]

    @contextmanager
    def _done(
        self, work: Work, written: int, checkpoint: Checkpoint | None = None
    ) -> Iterator[tuple[Done, Job]]:
        """Run the work on the workers, and yield its outcome and job. The folder of the ranks'
        results is removed at the end of the context.

        written: bytes that all ranks leave in the folder. checkpoint: where rank 0 saves; None if
        it does not.
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
                asked()  # keeps the last saved state
            self._searching = False
            self._notes += done.notes
            self._working += time.monotonic() - began
            self._fits_one = done.devices is not None and cast(Job, done.job).fits_one
            self.device, self.ranks = done.devices, len(done.results)
            yield done, cast(Job, done.job)

    def _tell_of_one(self) -> None:
        """Add a note if a single GPU would have taken no longer than the ranks, their start
        included. Workers that are kept get no note, since they start only once.
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
        if self._workers is not None and self._searching:  # ranks do not receive Ctrl-C
            stop(self._workers.cluster, self._workers.addresses)
        # Ctrl-C may come while another thread opens workers: wait for it, so that they are closed.
        if self._loading.acquire(timeout=CLOSE_SECONDS):
            self._loading.release()
        else:
            end_workers()
        self._open.close()


class Workers(NamedTuple):
    """The workers of a cluster. addresses: of the workers that get a rank. device: the kind of
    device that they may search on.
    """

    cluster: Cluster
    addresses: list[str]
    device: str


@contextmanager
def open_workers(store: Store, resources: Resources, threads: int) -> Iterator[Workers]:
    """Open a cluster for one command, and choose at most one worker for each partition. Raises
    InputError if there are more local workers than partitions.
    """
    check_partitions(store, resources)
    with open_ranks(resources, threads) as (cluster, device):
        yield Workers(cluster, workers_for(store, cluster), device)


@contextmanager
def open_ranks(resources: Resources, threads: int) -> Iterator[tuple[Cluster, str]]:
    """Open a cluster for one command, and yield it with the kind of device that its ranks may run
    on.
    """
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
    """Raise InputError if there are more local workers than partitions."""
    if too_many(store, resources):
        partitions, asked = store.info.partitions, resources.cluster.workers
        raise InputError(
            f"{store.path} has {partitions} partition{'s'[: partitions > 1]} for {asked} "
            f"workers: build it again with --partitions {asked} or more"
        )


def too_many(store: Store, resources: Resources) -> bool:
    """Return whether there are more local workers than partitions."""
    return (resources.cluster.workers or 0) > store.info.partitions


def workers_for(store: Store, cluster: Cluster) -> list[str]:
    return workers_of(cluster)[: store.info.partitions]


def method_of(done: Done, attempt: Job) -> str:
    """Return the record's name of the method by which a program ran."""
    if done.devices is not None:
        return "on devices"
    return "streamed" if attempt.way == ON_DISK else "in memory"


def held_before(cluster: Cluster, ranks: int, baseline: int) -> int:
    """Return the bytes that count towards the limit before any work: those of all local processes,
    or those of one worker of a remote cluster.

    baseline: bytes that a worker holds.
    """
    worker_bytes = baseline + GROWTH_BYTES
    if not cluster.local:
        return worker_bytes
    return resident_bytes() + server_bytes() + GROWTH_BYTES + ranks * worker_bytes


def check_room(
    limit: int, cluster: Cluster, ranks: int, baseline: int, needs: Sequence[int]
) -> Room:
    """Return the first way that fits, and what it leaves. needs: the bytes that each way takes on a
    rank.

    Raises LimitError, which names the least limit that would do, if no way fits.
    """
    before, sharing = held_before(cluster, ranks, baseline), ranks if cluster.local else 1

    def held(need: int) -> int:
        return before + sharing * need

    way = first_that_fits(needs, lambda need: held(need) <= limit)
    if way is not None:
        return Room(way, (limit - held(needs[way])) // sharing)
    need = min(needs)
    processes = ranks + 2 if cluster.local else 1  # with this one and the workers' server
    wanted = format_bytes(held(need) + processes * SLACK).replace(" ", "")
    of_each = "" if cluster.local else " of each worker"
    raise LimitError(
        f"the memory limit{of_each} of {format_bytes(limit)} is too small: each of "
        f"{ranks} ranks holds up to {format_bytes(need)}, beside Python and libraries; give "
        f"--memory-limit {wanted} or more"
    )
