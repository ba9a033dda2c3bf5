"""Checks of a graph file against itself: that its edges join vertices that it lists and, if it
holds each edge twice, that both copies are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.input.arrow import as_arrow
from .graph_file import EDGES, check_room, self_loops

_SOURCE, _TARGET, _WEIGHT = (
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)
_MIX = [np.uint64(odd) for odd in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)]
_SHIFT = np.uint64(33)


class Vertices:
    """Ids of vertices, and which vertices have edges.

    ids: a range, or distinct ids, rising. limit: bytes of memory. bytes: memory held, the ids
    included. Raises LimitError if the ids need more than the limit.
    """

    def __init__(self, ids: range | NDArray[np.int64], limit: int) -> None:
        count = ids.stop - ids.start if isinstance(ids, range) else len(ids)
        self.bytes = count if isinstance(ids, range) else count + ids.nbytes
        check_room(self.bytes, limit)
        self._ids = ids
        self._seen = np.zeros(count, np.bool_)

    def see(self, ids: NDArray) -> NDArray[np.bool_]:
        """Note that these vertices have edges. Returns a mask of the ids that are vertices."""
        if isinstance(self._ids, range):
            known = (ids >= self._ids.start) & (ids < self._ids.stop)
            self._seen[ids[known] - self._ids.start] = True
            return known
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = self._ids[places] == ids
        self._seen[places[known]] = True
        return known

    def self_loops(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield self-loops of the vertices for which no edge was noted."""
        for first in range(0, len(self._seen), EDGES):
            places = first + np.flatnonzero(~self._seen[first : first + EDGES])
            if len(places):
                ids = self._ids[places] if isinstance(self._ids, np.ndarray) else places
                start = self._ids.start if isinstance(self._ids, range) else 0
                yield self_loops(as_arrow(ids + start), schema)


class EdgeBalance:
    """The sum of the digests of first copies of edges, minus that of second copies. Any thread may
    add edges.

    The sum is zero if both copies hold the same edges, weights included, equally often. If they
    differ, the sum is zero with a chance of 2^-64.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sum = 0

    def add(self, src: NDArray, dst: NDArray, weights: NDArray | None, sign: int) -> None:
        """Add edges to the sum. sign: 1 for first copies of edges, -1 for second copies."""
        total = sign * int(_digests(src, dst, weights).sum(dtype=np.uint64))
        with self._lock:
            self._sum = (self._sum + total) % 2**64

    @property
    def even(self) -> bool:
        return self._sum == 0


def _digests(src: NDArray, dst: NDArray, weights: NDArray | None) -> NDArray[np.uint64]:
    """Return a digest of each edge: MurmurHash3's finalizer over the sum of both ends and the
    weight, each times a factor.
    """
    digests = src.astype(np.uint64) * _SOURCE + dst.astype(np.uint64) * _TARGET
    if weights is not None:
        digests += weights.astype(np.uint64) * _WEIGHT
    for factor in _MIX:
        digests ^= digests >> _SHIFT
        digests *= factor
    digests ^= digests >> _SHIFT
    return digests
