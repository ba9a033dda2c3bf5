"""Ranks whose kernels meet in the middle of a launch, and read or write each other's arrays:
cuda/programs/meeting.cuh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol, TypeVar

import numpy as np

from ..base.arrays import Array as Declared
from ..gpu.device import pack
from ..gpu.graph import Array
from ..gpu.peer_memory import PeerArrays
from ..gpu.waiting import WaitingLaunches
from .ranks import Ranks

SAID = 7
ARRIVAL = np.dtype([("round", "u8"), ("said", "u8", SAID)], align=True)
MEETING = np.dtype(
    [
        *((name, "u8") for name in ("tell", "heard", "stop")),
        *((name, "u4") for name in ("rank", "ranks")),
    ],
    align=True,
)


class Meeting:
    """A meeting of ranks that can read each other's memory (``open_meeting``)."""

    def __init__(self, ranks: Ranks, arrays: PeerArrays, bases: Sequence[int]) -> None:
        self._ranks, self._arrays, self._bases = ranks, arrays, bases
        self._launches = WaitingLaunches(ranks.device, ranks.check)
        self.ended = self._launches.ended
        mine = 2 * ranks.rank * ARRIVAL.itemsize  # where others hear of this rank
        self._tell = self.table("heard", mine)

    def array(self, name: str) -> Array:
        """Return this rank's array of that name."""
        return self._arrays.array(name)

    def table(self, name: str, beyond: int = 0) -> Array:
        """Return the addresses of an array by rank, uint64, on the device. beyond: bytes to add to
        each address.
        """
        place = np.uint64(self._arrays.places[name] + beyond)
        with self._ranks.device.use() as cupy:
            return cupy.asarray(np.array(self._bases, np.uint64) + place)

    def packed(self) -> np.ndarray:
        """Return the structure that kernels take for the meeting."""
        of = {"rank": self._ranks.rank, "ranks": self._ranks.size, "stop": self._launches.stop}
        return pack(MEETING, tell=self._tell, heard=self._arrays.address("heard"), **of)

    def run(self, start: Callable[[], None]) -> None:
        """Start a kernel, as all ranks do, and wait until it has ended."""
        self._launches.run(start)

    def close(self) -> None:
        """Forget the others' memory. This rank's memory may be let go of once all ranks have
        closed: others may still have it in sight.
        """
        self._arrays.memory.close()


class InSight(Protocol):
    """An object that has others' memory in sight, or nothing of theirs."""

    def close(self) -> None: ...


S = TypeVar("S", bound=InSight)


@contextmanager
def closed_by_all(state: S, ranks: Ranks) -> Iterator[S]:
    """Close an object on all ranks together, also where all are interrupted: memory that others had
    in sight may be freed afterwards.
    """
    try:
        with closing(state):
            yield state
    except KeyboardInterrupt:
        ranks.total([])
        raise
    ranks.total([])


def open_meeting(ranks: Ranks, declared: Sequence[Declared]) -> Meeting | None:
    """Open a meeting of ranks that have the declared arrays on each rank, filled with zeros.
    Returns None, on all ranks, if some rank's memory cannot be read.
    """
    heard = Declared("heard", np.uint8, 2 * ranks.size * ARRIVAL.itemsize)
    arrays = PeerArrays(ranks.device, [*declared, heard])
    bases = arrays.memory.open(ranks.tell, ranks.rank, ranks.size)
    if bases is None:
        ranks.total([])  # nobody has the memory in sight any more
        return None
    try:
        return Meeting(ranks, arrays, bases)
    except BaseException:
        arrays.memory.close()
        raise
