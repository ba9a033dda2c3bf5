"""Graph500's rules over what several ranks found in a grid of partitions of an undirected graph
(cuda/rank_check.cu).

The definition is check.py. A rank checks the edges of its tiles, with what the owners of their
vertices found; that an edge leads to a vertex's parent is told to its owner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.graph import UNREACHED
from ..bfs.check import Violations
from ..gpu.check import reached
from ..gpu.device import Device
from ..gpu.graph import Array
from ..gpu.search import widened
from .delegate_check import EdgeCheck, add_wrong
from .grid_mail import Kind
from .grid_rows import GridRows
from .grid_search import GpuGridSearch
from .peer_memory import Exchange


class GridChecker:
    """Checks of searches of one graph; every rank makes one, and all call ``check`` together."""

    def __init__(self, device: Device, search: GpuGridSearch, exchange: Exchange) -> None:
        self._device = device
        self._search = search
        self._exchange = exchange
        self._known = search.rows.known
        with device.use() as cupy:
            self._global_id = global_ids(cupy, search.rows)

    def check(self, source: int) -> Violations:
        """source: a global id. On every rank the violations that it knows of."""
        search, known = self._search, self._known
        own = known.own_numbers
        with self._device.use() as cupy:
            unreached = -1 if search.distance.dtype == np.int32 else 255
            distance = cupy.full(known.numbers, unreached, search.distance.dtype)
            distance[:own] = search.distance
            parent = cupy.full(known.row_numbers, UNREACHED, np.uint32)
            parent[:own] = search.parent[:own]
            self._from_owners(Kind.VISITED_OF_ROWS, distance)
            self._from_owners(Kind.FRONTIER_OF_COLUMNS, distance)
            distance = widened(distance)
            self._from_owners(Kind.FRONTIER_OF_COLUMNS, parent)
            joined = cupy.zeros(known.row_numbers, np.uint8)
            edges = EdgeCheck(self._device, distance, parent, self._global_id)
            edges.look_at(search.rows.graph.forward, 0, joined)
            self._to_owners(joined)
            violations = edges.violations()
            has_parent, there = parent[:own] != np.uint32(UNREACHED), distance[:own] >= 0
            root = self._global_id[:own] == np.uint32(source)
            add_wrong(cupy, violations, 5, has_parent & ~joined[:own].astype(bool))
            add_wrong(cupy, violations, 2, (distance[:own] == 0) != (root & there))
            add_wrong(cupy, violations, 1, has_parent != (there & ~root))
        return violations

    def rows_reached(self, rows_from: Array) -> int:
        """The sum of ``rows_from``, by own number, over what this rank reached."""
        return reached(self._device, self._search.distance, rows_from)[1]

    def _from_owners(self, kind: Kind, values: Array) -> None:
        """Of other ranks' vertices, what their owners have."""
        self._move(kind, values, adding=False)

    def _to_owners(self, joined: Array) -> None:
        """What any rank has said of a vertex."""
        self._move(Kind.FOUND_IN_COLUMNS, joined, adding=True)

    def _move(self, kind: Kind, values: Array, adding: bool) -> None:
        rank = self._search.rows.rank
        ranks = range(self._search.rows.numbering.ranks)
        told = {p for peer in ranks for p in self._told(kind, rank, peer)}
        copies = {p: self._of(values, p).get() for p in told}  # for all who are told
        messages = [[copies[p] for p in self._told(kind, rank, peer)] for peer in ranks]
        cupy = self._device.cupy
        for peer, message in enumerate(self._exchange(messages)):
            for p, theirs in zip(self._told(kind, peer, rank), message, strict=True):
                some, came = self._of(values, p), cupy.asarray(theirs)
                some[:] = some | came if adding else came

    def _told(self, kind: Kind, sender: int, receiver: int) -> list[int]:
        return [] if sender == receiver else self._search.letters.of(kind, sender, receiver)

    def _of(self, values: Array, partition: int) -> Array:
        segment = self._known.at[partition]
        return values[segment.first : segment.first + segment.vertices]


def global_ids(cupy: Any, rows: GridRows) -> Array:
    """uint32, by a rank's numbers; UNREACHED where there is no vertex."""
    partitions = np.uint32(rows.numbering.partitions)
    found = cupy.full(rows.known.numbers, UNREACHED, np.uint32)
    for p, first, count, _ in rows.known.segments:
        ids = cupy.arange(count, dtype=np.uint32) * partitions + np.uint32(p)
        found[first : first + count] = ids
    return found
