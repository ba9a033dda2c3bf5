"""Jobs that ranks do together on Dask workers. A job is data that is sent to the workers; each
worker runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ...kernels.base.team import Team
from .communicator import Communicator


class Way(NamedTuple):
    """A way in which a rank can do a job. need: bytes that the way takes on its host. job: the
    object that does the job this way.
    """

    need: int
    job: Any


class Room(NamedTuple):
    """The room of ranks. way: the index of the way that all ranks take. extra_bytes: bytes
    that each rank may hold beyond the need of this way.
    """

    way: int
    extra_bytes: int = 0


CheckRoom = Callable[[int, int, Sequence[int]], Room]
"""Called with the number of ranks, the most bytes that a worker holds before any work, and the most
bytes that a rank takes, for each way. Returns the room of ranks, or raises an error for the user if
there is too little memory.
"""


class RankJob(Protocol):
    """A job as frozen data that is sent to the workers.

    paths: paths that a worker must see. device: "cuda": each rank on its worker's GPU; "cpu"; or
    "auto": on GPUs if all workers have one. device_limit: bytes on each GPU; None for all free
    bytes. timeout: seconds that ranks wait for a rank that shows no sign of life.
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
        """Return the same job for "cuda" or "cpu". A job that must run on devices raises
        LimitError, with ``why``, for "cpu".
        """
        ...

    def fresh_attempt(self) -> RankJob:
        """Return the same job for a new attempt, which an earlier attempt cannot disturb."""
        ...

    def with_extra(self, extra_bytes: int) -> RankJob:
        """Return the same job for ranks that may hold so many bytes beyond their need."""
        ...

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        """Return the ways in which the rank can do the job, the best first, and compile the kernels
        of all of them.

        The bytes that the worker holds afterwards count as held beside the job. All ranks return
        the same number of ways. Raises DeviceMemoryError if the device has no room for the job.
        """
        ...

    def run(self, communicator: Communicator, team: Team) -> Any: ...
