"""Rows in the making on a device: entries are counted, then placed, some at a time
(cuda/rows/made_rows.cuh).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .device import Device, pack, unsigned_name
from .graph import Array, Rows, offsets_dtype

SHARD = np.dtype(
    [
        *((name, "u8") for name in ("targets", "weights", "begin", "count", "offsets")),
        ("rows", "u4"),
    ],
    align=True,
)
MADE_ROWS = np.dtype([(name, "u8") for name in ("fill", "near", "near_end", "far", "weights")])


@dataclass(frozen=True)
class Shard:
    """Entries of a stored subgraph, or tile, from entry ``begin`` on, in device memory.

    targets: uint32, one for each entry. offsets: of all rows of the subgraph. weights: uint32, bits
    of the entries' weights; None without weights.
    """

    targets: Array
    begin: int
    offsets: Array
    weights: Array | None = None

    def pack(self) -> np.ndarray:
        return pack(
            SHARD,
            targets=self.targets,
            weights=self.weights,
            begin=self.begin,
            count=len(self.targets),
            offsets=self.offsets,
            rows=len(self.offsets) - 1,
        )


@dataclass
class MadeRows:
    """Rows in the making.

    counts: uint64, the number of entries of each row; None after ``begin``. rows, fill, weights:
    set by ``begin``. fill: where each row goes on. weights: uint32 by entry; None without weights.
    """

    counts: Array
    rows: Any = None
    fill: Array = None
    weights: Array | None = None

    def begin(self, device: Device, near: int | None, weighted: bool = False) -> None:
        """Make room for the entries that were counted. near: how many of them stand on the device,
        all others pinned in host memory; None for all.
        """
        with device.use() as cupy:
            edges = int(self.counts.sum(dtype=np.uint64))
            kind = offsets_dtype(edges)
            offsets = cupy.zeros(len(self.counts) + 1, kind)
            offsets[1:] = cupy.cumsum(self.counts, dtype=kind)
            self.counts, self.fill = None, offsets[:-1].copy()
            self.rows = Rows.with_room(device, offsets, edges if near is None else near)
            self.weights = cupy.empty(edges, np.uint32) if weighted else None

    def place(
        self, device: Device, source: str, kernel: str, shard: Shard, *numbers: np.ndarray
    ) -> None:
        """Write a shard's entries. numbers: of rows and of targets, as the kernel takes them."""
        rows: Rows = self.rows
        far = 0 if rows.far is None else rows.far.ctypes.data
        to = pack(
            MADE_ROWS,
            fill=self.fill,
            near=rows.near,
            near_end=len(rows.near),
            far=far,
            weights=self.weights,
        )
        function = f"{kernel}<{rows.offset_type}, {unsigned_name(shard.offsets.dtype)}>"
        device.launch(source, function, len(shard.targets), (shard.pack(), to, *numbers))
