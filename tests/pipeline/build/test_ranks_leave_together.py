"""A build across workers ends on a rank only after all ranks have written their shards."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from typing import Any

from delegraph.kernels.base.team import Team
from delegraph.pipeline.build.ranks import BuildJob
from delegraph.pipeline.ranks.communicator import Communicator, ThreadGroup
from support import emulator


def test_a_rank_that_is_done_early(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    written = set()

    def write(job: BuildJob, device: Any, communicator: Communicator) -> int:
        time.sleep(0.3 * communicator.rank)
        written.add(communicator.rank)
        return communicator.rank

    def work(communicator: Communicator) -> set[int]:
        assert job.run(communicator, Team(1)) == communicator.rank
        return set(written)

    monkeypatch.setattr(BuildJob, "_run", write)
    nothing: Any = {field.name: None for field in fields(BuildJob) if field.default is MISSING}
    job = BuildJob(**nothing)
    with ThreadPoolExecutor(2) as pool:
        seen = list(pool.map(work, ThreadGroup(2).communicators))
    assert seen == [{0, 1}, {0, 1}]
