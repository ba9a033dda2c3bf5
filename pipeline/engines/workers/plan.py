"""Plans of questions that several workers would answer: the memory that each worker would hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ....kernels.base.team import Team
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Room, Way
from ...ranks.on_workers import run_on_workers
from ...run.cluster import Cluster
from ...run.plan import Budget, Plan, Shape, StepPlan
from ...run.resources import Resources
from ..operations.program import Program
from .client import check_room, held_before, open_workers
from .job import ON_DISK, Job, Work
from .program_work import ProgramWork
from .search_work import SearchWork


@dataclass(frozen=True)
class PlannedWork:
    """Work that stops before it would load anything. ``run`` returns the bytes on the rank's
    device; 0 on CPUs.
    """

    work: Work

    def get_ready(self, job: Job, store: Store, rank: int, size: int, threads: int) -> list[Way]:
        return self.work.get_ready(job, store, rank, size, threads)

    def run(self, job: Job, store: Store, communicator: Communicator, team: Team) -> int:
        barrier(communicator)  # no rank leaves before all ranks have met
        if job.device != "cuda":
            return 0
        return self.device_bytes(job, store, communicator.rank, communicator.size)

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        return self.work.device_bytes(job, store, rank, size)


def plan_on_ranks(
    store: Store, threads: int, resources: Resources, program: Program | None = None
) -> Plan:
    """Return the plan of a search, or of a program, on workers. Every worker counts as the one that
    holds most.

    Raises InputError if there are more local workers than partitions; LimitError, which names the
    least limit that would do, if a rank does not fit.
    """
    asked: list[tuple[int, int]] = []
    with open_workers(store, resources, threads) as (cluster, workers, device):
        place, timeout = store.path.resolve(), resources.cluster.timeout
        work = SearchWork(0) if program is None else ProgramWork((program,))
        limit = resources.device_memory_limit
        asking = Job(place, PlannedWork(work), None, timeout, device, limit)
        room = partial(_check_room, asked, resources.limit, cluster)
        done = run_on_workers(cluster, workers, asking, room)
        ranks, (baseline, need) = len(done.results), asked[-1]
        job = done.job
        assert isinstance(job, Job)
        held = held_before(cluster, ranks, baseline)
        budget = Budget(resources.limit, held, cluster.threads, ranks, not cluster.local)
    step = StepPlan("search", ranks, need, at_once=ranks, device_bytes=max(done.results))
    shape = Shape(in_memory=job.device == "cuda" or job.way != ON_DISK)
    return Plan(budget, shape, (step,), None, done.devices, tuple(done.notes))


def _check_room(
    asked: list[tuple[int, int]],
    limit: int,
    cluster: Cluster,
    ranks: int,
    baseline: int,
    needs: Sequence[int],
) -> Room:
    """Check the room as for a search, and append the baseline and the need to ``asked``."""
    room = check_room(limit, cluster, ranks, baseline, needs)
    asked.append((baseline, needs[room.way]))
    return room
