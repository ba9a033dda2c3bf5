"""A job: work over a store that ranks do together on Dask workers (on_workers.py in ranks brings
them together).
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
"""Ways of a rank: with its edges on disk, or on its device; 0 is in memory."""


class Work(Protocol):
    """The work of ranks: a search (search_work.py), or programs (program_work.py)."""

    def get_ready(self, job: Job, store: Store, rank: int, size: int, threads: int) -> list[Way]:
        """Return the ways of a rank, as a RankJob does."""
        ...

    def run(self, job: Job, store: Store, communicator: Communicator, team: Team) -> Any:
        """A rank's part. What all ranks have found stands in the job's ``place``."""
        ...

    def device_bytes(self, job: Job, store: Store, rank: int, size: int) -> int:
        """Bytes that a rank holds on its device."""
        ...


@dataclass(frozen=True)
class Job:
    """A RankJob (ranks/jobs.py).

    folder: where attempts leave what they find (engines/ranks/result.py), this one in ``place``;
    None where they leave nothing.
    must_fit: whether devices that are too small are an error, rather than the CPUs' turn.
    way: how this rank does it. fits_one: whether one rank's device has room for the whole graph.
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
    fits_one: bool = False

    @property
    def paths(self) -> list[str]:
        return [str(self.store), str(self.place)]

    def for_device(self, device: str, why: str = "") -> Job:
        if device == "cpu" and self.must_fit:
            raise LimitError(why)
        return replace(self, device=device)

    def fresh_attempt(self) -> Job:
        """In a place of its own, as an attempt that was given up may still write."""
        if self.folder is None:
            return self
        place = self.folder / uuid.uuid4().hex
        place.mkdir()
        return replace(self, place=place)

    def ways(self, needs: list[int]) -> list[Way]:
        """Ways by number. needs: bytes of each."""
        return [Way(need, replace(self, way=way)) for way, need in enumerate(needs)]

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        return self.work.get_ready(self, open_store(self.store), rank, size, threads)

    def run(self, communicator: Communicator, team: Team) -> Any:
        return self.work.run(self, open_store(self.store), communicator, team)

    def device_bytes(self, rank: int, size: int) -> int:
        return self.work.device_bytes(self, open_store(self.store), rank, size)

    def gpu(self) -> Device | None:
        """The device of this worker; None on CPUs."""
        return open_device(0, self.device_limit) if self.device == "cuda" else None
