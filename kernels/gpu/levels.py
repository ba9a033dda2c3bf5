"""Records of what each level of a search on one GPU did, made from the search's own records when
somebody asks for them.

A wide search records what its levels found and examined. A search over slices records times alone,
and a narrow search records no edges. What these records lack is counted by distance
(cuda/bfs/levels.cu), as long as the distances stand on the device.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .device import Device, unsigned_name
from .graph import Array

LEVEL = np.dtype(
    [("examined", "u8"), ("clocks", "u8"), ("found", "u4"), ("pulled", "u4")], align=True
)
_SOURCE = "bfs/levels.cu"
_WARP = 32


class Level(NamedTuple):
    """The work of a level. found: vertices; examined: entries looked at."""

    direction: str
    found: int
    examined: int
    seconds: float


class LevelRecords:
    """The records of one search.

    records: LEVEL, of each level in turn. lacks_found: whether their ``found`` is missing.
    """

    def __init__(self, records: np.ndarray, lacks_found: bool = False) -> None:
        self._records = records
        self._lacks_found = lacks_found
        self._counted: tuple[Device, Array] | None = None
        self._counts: np.ndarray | None = None

    @cached_property
    def _lacks_edges(self) -> np.ndarray | None:
        """Return which records lack their ``examined``; None if none does."""
        pushed = self._records["pulled"] == 0
        return pushed if (self._records["examined"][pushed] == 0).any() else None

    def count(self, device: Device, offsets: Array, used: int, distance: Array) -> None:
        """Count what the records lack, by the search's distances: uint8 (n,) with 255, or int32
        (n,) with -1, where unreached. Returns before the device has counted.

        offsets: of the graph's forward rows. used: as of DeviceGraph.
        """
        if self._counts is not None or self._counted is not None:
            return
        if self._lacks_edges is None and not self._lacks_found:
            return
        with device.use() as cupy:
            counts = cupy.zeros((len(self._records) + 1, 2), np.uint64)
            strips = -(-used // _WARP)
            arguments = (offsets, distance, np.uint32(used), counts)
            function = counting_of(unsigned_name(offsets.dtype), distance.dtype.kind == "i")
            device.launch(_SOURCE, function, _WARP * strips, arguments)
        self._counted = device, counts

    def fetch(self) -> None:
        """Copy what was counted to host memory."""
        if self._counted is not None:
            device, counts = self._counted
            with device.use():
                self._counts = counts.get().astype(np.int64)
            self._counted = None

    def levels(self, seconds: float) -> list[Level]:
        """Return the work of each level; ``count`` was called before.

        seconds: of the search, by events, which the levels share by the clock of a multiprocessor.
        """
        records = self._records
        found, examined = records["found"], records["examined"].astype(np.int64)
        self.fetch()
        if self._counts is not None:
            vertices, edges = self._counts.T
            if self._lacks_found:
                found = vertices[1:]
            if self._lacks_edges is not None:
                examined[self._lacks_edges] = edges[:-1][self._lacks_edges]
        shares = records["clocks"] * (seconds / max(1, records["clocks"].sum()))
        columns = (records["pulled"], found, examined, shares)
        return [
            Level("pull" if pulled else "push", *work)
            for pulled, *work in zip(*(column.tolist() for column in columns), strict=True)
        ]


def counting_of(offset: str, deep: bool) -> str:
    """Return the name of a kernel that counts.

    offset: type of the graph's offsets in C++. deep: for distances of more than a byte.
    """
    return f"count_levels<{offset}, {'int' if deep else 'u8'}>"


def compile_counting(device: Device, offset: str) -> None:
    """Compile the kernels that count, or load them from the cache."""
    for deep in (False, True):
        device.kernel(_SOURCE, counting_of(offset, deep))
