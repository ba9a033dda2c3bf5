"""What ranks do together on Dask workers: a job is data that goes there and is run by each."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ...kernels.base.team import Team
from .communicator import Communicator


class Way(NamedTuple):
    """How a rank can do a job. need: bytes that it takes on its host. job: that does it so."""

    need: int
    job: Any


class RankJob(Protocol):
    """Frozen data that goes to the workers.

    paths: that a worker has to see. device: "cuda", each rank on its worker's GPU, "cpu", or
    "auto": on GPUs if all workers have one. device_limit: bytes on each; None for what is free.
    timeout: seconds that ranks wait for one that shows no sign of life.
    """

    @property
    def paths(self) -> list[str]: ...

    @property
    def device(self) -> str: ...

    @property
    def device_limit(self) -> int | None: ...

    @property
    def timeout(self) -> float: ...

    def for_device(self, device: str, why: str = "") -> RankJob:
        """The same job, on "cuda" or "cpu". One for devices alone raises, with ``why``."""
        ...

    def fresh_attempt(self) -> RankJob:
        """The same job, for an attempt that nothing of an earlier one disturbs."""
        ...

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        """How the rank can do it, the best first; compiles what any of these ways calls.

        What the worker holds afterwards is taken as what it holds beside the job. All ranks have as
        many ways. DeviceMemoryError: no room for it.
        """
        ...

    def run(self, communicator: Communicator, team: Team) -> Any: ...
