"""A job: work over a store that ranks do together on Dask workers (pipeline/ranks/on_workers.py
brings them together).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, open_device
from ....partition.errors import LimitError
from ....partition.store.store import Store, open_store
from ...ranks.communicator import Communicator
from ...ranks.jobs import Way

ON_DISK, ON_DEVICE = 1, 2
"""Numbers of ways in which a rank can work: with its edges on disk, or on its device. Way 0 is with
its edges in memory.
"""


class Work(Protocol):
    """The work of ranks: a search (search_work.py), or programs (program_work.py)."""

    def get_ready(self, job: Job, store: Store, rank: int, size: int, threads: int) -> list[Way]:
        """Return the ways in which a rank can do the work, as RankJob.get_ready does."""
        ...

    def run(self, job: Job, store: Store, communicator: Communicator, team: Team) -> Any:
        """Do a rank's part of the work. The results of all ranks are left in the job's
        ``place``.
        """
        ...

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        """Return the bytes that a rank holds on its device."""
        ...


@dataclass(frozen=True)
class Job:
    """A job of ranks over a store. Implements RankJob (ranks/jobs.py).

    folder: attempts leave their results in folders of their own in it (engines/ranks/result.py);
    None for work that leaves none. place: the folder of this attempt. must_fit: whether a device
    that is too small is an error; if not, the CPUs do the job. way: the number of the way in which
    this rank works. extra_bytes: bytes that a rank may hold beyond its need. fits_one: whether a
    single rank's device has room for the whole graph.
    """

    store: Path
    work: Work
    folder: Path | None
    timeout: float
    device: str = "cpu"
    device_limit: int | None = None
    must_fit: bool = False
    place: Path = Path()
    way: int = 0
    extra_bytes: int = 0
    fits_one: bool = False

    @property
    def paths(self) -> list[str]:
        return [str(self.store), str(self.place)]

    def for_device(self, device: str, why: str = "") -> Job:
        if device == "cpu" and self.must_fit:
            raise LimitError(why)
        return replace(self, device=device)

    def fresh_attempt(self) -> Job:
        """Return the job with a new ``place``, since an abandoned attempt may still write to its
        own.
        """
        if self.folder is None:
            return self
        place = self.folder / uuid.uuid4().hex
        place.mkdir()
        return replace(self, place=place)

    def with_extra(self, extra_bytes: int) -> Job:
        return replace(self, extra_bytes=extra_bytes)

    def ways(self, needs: list[int]) -> list[Way]:
        """Return the ways of this job, numbered in the order of ``needs``. needs: the bytes of each
        way.
        """
        return [Way(need, replace(self, way=way)) for way, need in enumerate(needs)]

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        return self.work.get_ready(self, open_store(self.store), rank, size, threads)

    def run(self, communicator: Communicator, team: Team) -> Any:
        return self.work.run(self, open_store(self.store), communicator, team)

    def device_bytes(self, rank: int, size: int) -> int:
        return self.work.device_bytes(self, open_store(self.store), rank, size)

    def gpu(self) -> Device | None:
        """Return the device of this worker; None if the job is for CPUs."""
        return open_device(0, self.device_limit) if self.device == "cuda" else None
