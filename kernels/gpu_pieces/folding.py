"""Values by vertex that ranks have on a device each, combined over all ranks: in the memory of all
(cuda/pieces/folding.cu), or by messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.arrays import Array as Declared
from ..gpu.device import Device, without_fields
from ..gpu.graph import Array
from ..gpu_programs.meeting import ARRIVAL, SAID, Meeting, open_meeting
from ..gpu_programs.ranks import Ranks
from .tracing import TYPES

_SOURCE = "pieces/folding.cu"
_FOLDS = {"add": "Add", "minimum": "Least", "bitwise_or": "Either"}
_WORDS = {**TYPES, "d": "double"}
_BYTES = 8  # of the widest value

MOST = SAID - 1
"""The most numbers that ranks tell each other when they meet, beside whether to save."""

_BLOCK = 32


class Folding:
    """The folds of a program. in_memory: whether ranks read each other's memory. due: whether the
    first rank wanted to save at the last meeting in memory. All ranks make it, and close it,
    together.

    vertices: the number of values. wants: returns whether this rank wants to save.
    """

    def __init__(self, ranks: Ranks, vertices: int, wants: Callable[[], bool]) -> None:
        self._ranks, self._vertices, self._wants = ranks, vertices, wants
        self._round, self.due = 0, False
        self._meeting: Meeting | None = None
        if ranks.size > 1:
            self._meeting = open_meeting(ranks, [Declared("values", np.uint8, _BYTES * vertices)])
        if self._meeting is not None:
            self._tables = self._meeting.table("values")
            self._packed = without_fields(self._meeting.packed())
            ranks.total([])  # none waits in a kernel for one that still makes what it needs

    @property
    def in_memory(self) -> bool:
        return self._meeting is not None

    def run(self, values: Array, fold: str) -> None:
        """Combine the values of all ranks, and give every rank all of the combined values, in
        ``values``: (vertices,). fold: the name of a function of NumPy.
        """
        ranks, meeting = self._ranks, self._meeting
        if meeting is None:
            ranks.fold_whole(values, getattr(ranks.device.cupy, fold))
            return
        with ranks.device.use():
            told = meeting.array("values").view(values.dtype)[: self._vertices]
            told[:] = values
            meeting.run(lambda: self._launch(_WORDS[values.dtype.char], _FOLDS[fold]))
            values[:] = told
        self._hear(meeting)
        mine = ranks.part(self._vertices)
        others = self._vertices - (mine.stop - mine.start)
        of_part = (ranks.size - 1) * (mine.stop - mine.start)
        ranks.sent += (others + of_part) * values.dtype.itemsize

    def from_first(self, numbers: Sequence[float]) -> list[float]:
        """Return the numbers of the first rank, MOST at most, which all ranks hear in memory."""
        meeting = self._meeting
        assert meeting is not None
        with self._ranks.device.use():
            meeting.run(lambda: self._meet(self._said(numbers)))
        return self._hear(meeting)[: len(numbers)]

    def _said(self, numbers: Sequence[float] = ()) -> np.ndarray:
        """Return what this rank says: whether it wants to save, and numbers."""
        said = np.zeros(SAID)
        said[0], said[1 : 1 + len(numbers)] = self._wants(), numbers
        return said.view(f"V{said.nbytes}")

    def _hear(self, meeting: Meeting) -> list[float]:
        """Take note of what the first rank has said at the last meeting. Returns its numbers."""
        with self._ranks.device.use():
            arrivals = meeting.array("heard").get().view(ARRIVAL)
        wants, *numbers = arrivals[self._round & 1]["said"].copy().view(np.float64).tolist()
        self.due = bool(wants)
        return numbers

    def _launch(self, word: str, fold: str) -> None:
        ranks, device = self._ranks, self._ranks.device
        of_rank = self._tables, np.uint32(ranks.rank)
        mine = ranks.part(self._vertices)
        said = self._said()
        self._meet(said)
        bounds = np.uint64(mine.start), np.uint64(mine.stop)
        arguments = *of_rank, np.uint32(ranks.size), *bounds
        device.launch(_SOURCE, f"fold_part<{word}, {fold}>", mine.stop - mine.start, arguments)
        self._meet(said)
        for peer in range(ranks.size):
            theirs = ranks.part(self._vertices, peer)
            bounds = np.uint64(theirs.start), np.uint64(theirs.stop)
            if peer != ranks.rank:
                arguments = *of_rank, np.uint32(peer), *bounds
                count = theirs.stop - theirs.start
                device.launch(_SOURCE, f"copy_part<{word}>", count, arguments)
        self._meet(said)  # nobody writes what another one still copies

    def _meet(self, said: np.ndarray) -> None:
        self._round += 1
        kernel = self._ranks.device.kernel(_SOURCE, "meet_ranks")
        kernel((1,), (_BLOCK,), (self._packed, np.uint64(self._round), said))

    def close(self) -> None:
        """Forget the others' memory."""
        if self._meeting is not None:
            self._meeting.close()


def warm_up(device: Device) -> None:
    """Compile, or load from the cache, all kernels."""
    for function in FUNCTIONS:
        device.kernel(_SOURCE, function)


FUNCTIONS = (
    "meet_ranks",
    *(f"fold_part<{word}, Add>" for word in ("u32", "u64", "double")),
    "fold_part<u64, Least>",
    "fold_part<u64, Either>",
    *(f"copy_part<{word}>" for word in ("u32", "u64", "double")),
)
"""The functions that programs call."""
