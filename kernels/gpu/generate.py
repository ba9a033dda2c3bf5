"""Synthetic edge lists on a device: the rows of prepare/generate.py, bit for bit
(cuda/prepare/generate.cu).

Every function returns (src, dst), uint32 arrays on the device; vertices have to be below 2^32 - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..prepare import generate
from .device import Device

MAX_SCALE = 31

_SOURCE = "prepare/generate.cu"
_KRONECKER = np.dtype(
    [
        *((name, np.uint64) for name in ("first", "rows", "seed")),
        *((name, np.uint64, 4) for name in ("add", "multiply")),
        *((name, np.uint32) for name in ("scale", "a", "ab", "abc")),
    ],
    align=True,
)
_GRID = np.dtype(
    [
        (name, np.uint64)
        for name in ("first", "candidates", "seed", "height", "width", "keep_below")
    ],
    align=True,
)


def kronecker(device: Device, first: int, last: int, scale: int, seed: int) -> tuple[Any, Any]:
    """Make rows ``first`` .. ``last - 1`` of the Kronecker graph of that scale (1 to MAX_SCALE)."""
    keys = generate.permutation_keys(np.uint64(seed))
    graph = np.zeros(1, _KRONECKER)
    graph["first"], graph["rows"], graph["seed"] = first, last - first, seed
    graph["add"], graph["multiply"] = keys[0::2], keys[1::2]
    graph["scale"] = scale
    graph["a"], graph["ab"], graph["abc"] = generate.A, generate.AB, generate.ABC
    with device.use() as cupy:
        src, dst = (cupy.empty(last - first, np.uint32) for _ in range(2))
        device.launch(_SOURCE, "kronecker", last - first, (graph, src, dst))
        return src, dst


def uniform(device: Device, first: int, last: int, scale: int, seed: int) -> tuple[Any, Any]:
    """Make rows ``first`` .. ``last - 1``, whose ends are both uniform in ``[0, 2**scale)``, up to
    MAX_SCALE.
    """
    numbers = (np.uint64(first), np.uint64(last - first), np.uint64(seed), np.uint32(scale))
    with device.use() as cupy:
        src, dst = (cupy.empty(last - first, np.uint32) for _ in range(2))
        device.launch(_SOURCE, "uniform", last - first, (*numbers, src, dst))
        return src, dst


def grid(
    device: Device, first: int, last: int, height: int, width: int, keep_below: int, seed: int
) -> tuple[Any, Any]:
    """Make the kept candidates ``first <= k < last`` of a grid, in their order."""
    graph = np.array([(first, last - first, seed, height, width, keep_below)], _GRID)
    with device.use() as cupy:
        src, dst = (cupy.empty(last - first, np.uint32) for _ in range(2))
        device.launch(_SOURCE, "grid", last - first, (graph, src, dst))
        kept = src != np.uint32(0xFFFFFFFF)
        return src[kept], dst[kept]
