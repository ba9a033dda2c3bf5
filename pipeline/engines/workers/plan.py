"""What a search of a store by several workers would hold on each of them: ``plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ....kernels.base.team import Team
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, barrier
from ...ranks.jobs import Way
from ...ranks.on_workers import run_on_workers
from ...run.cluster import Cluster
from ...run.plan import Budget, Plan, Shape, StepPlan
from ...run.resources import Resources
from ..operations.program import Program
from .client import check_room, held_before, open_workers
from .job import ON_DISK, ProgramJob, SearchJob


@dataclass(frozen=True)
class PlanJob:
    """A search, or a program, up to where it would begin to load; ``run`` gives bytes on the rank's
    device.
    """

    search: SearchJob | ProgramJob

    @property
    def paths(self) -> list[str]:
        return [str(self.search.store)]

    @property
    def device(self) -> str:
        return self.search.device

    @property
    def device_limit(self) -> int | None:
        return self.search.device_limit

    @property
    def timeout(self) -> float:
        return self.search.timeout

    def on(self, device: str, why: str = "") -> PlanJob:
        return replace(self, search=self.search.on(device, why))

    def again(self) -> PlanJob:
        return self

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        ways = self.search.get_ready(rank, size, threads)
        return [Way(need, replace(self, search=search)) for need, search in ways]

    def run(self, communicator: Communicator, team: Team) -> int:
        barrier(communicator)  # nobody leaves before the others have met
        if self.device != "cuda":
            return 0
        return self.search.device_bytes(communicator.rank, communicator.size)


def plan_on_ranks(
    store: Store, threads: int, resources: Resources, program: Program | None = None
) -> Plan:
    """The search, or the program, on workers, each of which counts as the one that holds most.

    Raises as search_on_ranks: InputError for more workers than partitions, LimitError, with the
    least limit that would do, where a rank does not fit.
    """
    asked: list[tuple[int, int]] = []
    with open_workers(store, resources, threads) as (cluster, workers, device):
        place, timeout = store.path.resolve(), resources.cluster.timeout
        on = device, resources.device_memory_limit
        search: SearchJob | ProgramJob
        if program is None:
            search = SearchJob(place, 0, None, Path(), timeout, *on)
        else:
            search = ProgramJob(place, (program,), Path(), timeout, None, "", *on)
        room = partial(_check_room, asked, resources.limit, cluster)
        done = run_on_workers(cluster, workers, PlanJob(search), room)
        ranks, (baseline, need) = len(done.results), asked[-1]
        job = done.job
        assert isinstance(job, PlanJob)
        held = held_before(cluster, ranks, baseline)
        budget = Budget(resources.limit, held, cluster.threads, ranks, not cluster.local)
    step = StepPlan("search", ranks, need, at_once=ranks, device_bytes=max(done.results))
    shape = Shape(in_memory=job.device == "cuda" or job.search.way != ON_DISK)
    return Plan(budget, shape, (step,), None, done.devices, tuple(done.notes))


def _check_room(
    asked: list[tuple[int, int]],
    limit: int,
    cluster: Cluster,
    ranks: int,
    baseline: int,
    needs: Sequence[int],
) -> int:
    """As for a search; keeps what was asked for."""
    way = check_room(limit, cluster, ranks, baseline, needs)
    asked.append((baseline, needs[way]))
    return way
