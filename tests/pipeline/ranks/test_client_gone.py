"""Ranks whose client is gone end, and free their workers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest
from distributed import Client

from delegraph.kernels.base.team import Team
from delegraph.pipeline.ranks.communicator import Communicator, barrier
from delegraph.pipeline.ranks.jobs import Room, Way
from delegraph.pipeline.ranks.on_workers import run_on_workers, workers_of
from delegraph.pipeline.run.cluster import Cluster
from support.processes import Background, cluster, wait_for_supersteps, wait_until

# Sockets that the cluster itself leaves to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@dataclass(frozen=True)
class LongJob:
    device: str = "cpu"
    device_limit: int | None = None
    timeout: float = 60.0
    paths: tuple = ()
    seconds: float = 600.0

    def for_device(self, device: str, why: str = "") -> LongJob:
        return self

    def fresh_attempt(self) -> LongJob:
        return self

    def with_extra(self, extra_bytes: int) -> LongJob:
        return self

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        return [Way(0, self)]

    def run(self, communicator: Communicator, team: Team) -> str:
        barrier(communicator)  # nobody leaves before the others have met
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            communicator.check()
            time.sleep(0.05)
        return "done"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_client_that_is_gone(ranks):
    """A client that closes without a word to its ranks, like a killed client, leaves workers that
    run another job.
    """
    with cluster(ranks) as (local, client):
        gone = Client(local.scheduler_address, set_as_default=False)
        there = Cluster(gone, False, 60.0)
        job: Any = LongJob()
        running = Background(
            lambda: run_on_workers(there, workers_of(there), job, lambda *_: Room(0))
        )
        wait_for_supersteps(client)
        before = workers_of(there)[0]
        gone.close()
        running.join(60)
        assert running.error is not None
        if ranks == 1:  # the only one asks nobody whether to go on: its process is another one now
            wait_until(lambda: before not in client.scheduler_info()["workers"])
        there = Cluster(client, False, 60.0)
        job = LongJob(seconds=0.0)
        done = run_on_workers(there, workers_of(there), job, lambda *_: Room(0))
        assert done.results == ["done"] * ranks
