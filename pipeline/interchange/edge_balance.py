"""Formats that hold each edge twice: whether both copies agree, whatever their order."""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import NDArray

_SOURCE, _TARGET, _WEIGHT = (
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)
_MIX = [np.uint64(odd) for odd in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)]
_SHIFT = np.uint64(33)


class EdgeBalance:
    """The sum of all edges' digests, where the second copies are subtracted; from any thread.

    It is zero where both copies hold the same edges, weights included, as often. Other edges have
    the same sum with a chance of 2^-64.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sum = 0

    def add(self, src: NDArray, dst: NDArray, weights: NDArray | None, sign: int) -> None:
        """sign: 1 for the first copy of edges, -1 for the second one."""
        total = sign * int(_digests(src, dst, weights).sum(dtype=np.uint64))
        with self._lock:
            self._sum = (self._sum + total) % 2**64

    @property
    def even(self) -> bool:
        return self._sum == 0


def _digests(src: NDArray, dst: NDArray, weights: NDArray | None) -> NDArray[np.uint64]:
    """MurmurHash3's finalizer over a sum of both ends and the weight, each with a factor."""
    digests = src.astype(np.uint64) * _SOURCE + dst.astype(np.uint64) * _TARGET
    if weights is not None:
        digests += weights.astype(np.uint64) * _WEIGHT
    for factor in _MIX:
        digests ^= digests >> _SHIFT
        digests *= factor
    digests ^= digests >> _SHIFT
    return digests
