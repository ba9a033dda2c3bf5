"""Rows that a rank has of several stored subgraphs, or tiles: one graph, made on its device
(cuda/ranks/rows.cuh).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..gpu.device import Device, pack, unsigned_name
from ..gpu.graph import MOST_SHORT, Array, Rows

SHARD = np.dtype(
    [*((name, "u8") for name in ("targets", "begin", "count", "offsets")), ("rows", "u4")],
    align=True,
)
MERGED_ROWS = np.dtype([(name, "u8") for name in ("fill", "near", "near_end", "far")])


@dataclass
class MergedRows:
    """counts: uint64, entries of each row. fill: where each row goes on."""

    counts: Array
    offsets: Array = None
    fill: Array = None
    near: Array = None
    far: np.ndarray | None = None

    def begin(self, device: Device, near: int | None) -> None:
        cupy = device.cupy
        edges = int(self.counts.sum(dtype=np.uint64))
        kind = np.uint32 if edges < MOST_SHORT else np.uint64
        self.offsets = cupy.zeros(len(self.counts) + 1, kind)
        self.offsets[1:] = cupy.cumsum(self.counts, dtype=kind)
        self.fill = self.offsets[:-1].copy()
        near = edges if near is None else min(near, edges)
        self.near = cupy.empty(near, np.uint32)
        self.far = device.pinned(edges - near, np.uint32) if near < edges else None

    @property
    def rows(self) -> Rows:
        return Rows(self.offsets, self.near, self.far)

    def place(
        self, device: Device, kernel: tuple[str, str], shard: np.ndarray, *numbers: np.ndarray
    ) -> None:
        """Write a shard's targets. kernel: its source, and its name with the types of offsets.

        numbers: of rows and of targets, as the kernel takes them.
        """
        far = 0 if self.far is None else self.far.ctypes.data
        near_end = len(self.near)
        to = pack(MERGED_ROWS, fill=self.fill, near=self.near, near_end=near_end, far=far)
        device.launch(*kernel, int(shard["count"][0]), (shard, to, *numbers))

    def types(self, stored: Array) -> str:
        """In C++, of the offsets that are made and of stored ones."""
        return f"{unsigned_name(self.offsets.dtype)}, {unsigned_name(stored.dtype)}"


def pack_shard(targets: Array, begin: int, offsets: Array) -> np.ndarray:
    """Targets of stored rows from entry ``begin`` on."""
    count, rows = len(targets), len(offsets) - 1
    return pack(SHARD, targets=targets, begin=begin, count=count, offsets=offsets, rows=rows)
