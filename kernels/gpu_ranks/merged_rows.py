"""Rows that a rank has of several stored subgraphs, or tiles: one graph, made on its device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..gpu.device import Device, unsigned_name
from ..gpu.graph import MOST_SHORT, Array, Rows


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

    def types(self, stored: Array) -> str:
        """In C++, of the offsets that are made and of stored ones."""
        return f"{unsigned_name(self.offsets.dtype)}, {unsigned_name(stored.dtype)}"

    @property
    def places(self) -> tuple[Any, ...]:
        """What kernels are told of the targets: those on the device, how many, the others."""
        far = 0 if self.far is None else self.far.ctypes.data
        return self.near, np.uint64(len(self.near)), np.uint64(far)
