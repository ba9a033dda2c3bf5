"""Graph500's rules over what several ranks found of an undirected graph (cuda/rank_check.cu).

The definition is check.py. A rank checks the edges that it has, with the distances of its ghosts
from their owners; a tree edge is looked for where its lower end's parent is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.graph import UNREACHED
from ..bfs.check import RULES, Violations
from ..gpu.check import _LANES, _NOWHERE, _REPORT, _TILE, reached
from ..gpu.device import Device, pack
from ..gpu.graph import Array, Rows
from ..gpu.search import widened
from .delegate_rows import RankRows
from .delegate_search import GpuRankSearch
from .numbering import ALIGNED, RankNumbering, parts_of
from .peer_memory import Exchange

_SOURCE = "ranks/check.cu"
_CLAIM = np.dtype(
    [(name, np.uint64) for name in ("distance", "parent", "global_id")],
    align=True,
)


class EdgeCheck:
    """Rules 3 and 4 over the edges of rows that a rank has.

    distance, parent: by its numbers, of all that its rows lead to, and of these rows; global_id:
    the same. joined: uint8, set where an edge leads to a row's parent, one level up.
    """

    def __init__(self, device: Device, distance: Array, parent: Array, global_id: Array) -> None:
        self._device = device
        cupy = device.cupy
        self._count = cupy.zeros(1 + len(RULES), np.uint64)
        self._first = cupy.full(1 + len(RULES), _NOWHERE, np.uint64)
        self._report = pack(_REPORT, count=self._count, first=self._first)
        self._claim = pack(_CLAIM, distance=distance, parent=parent, global_id=global_id)

    def look_at(self, rows: Rows, begin: int, joined: Array) -> None:
        """begin: the number of their first row."""
        lanes = -(-rows.edges // _TILE) * _LANES
        edges = (rows.offsets, rows.targets(), np.uint64(rows.edges))
        last = (np.uint32(len(rows.offsets) - 1), np.uint32(begin))
        function = f"check_rank_edges<{rows.offset_type}>"
        arguments = (*edges, *last, self._claim, joined, self._report)
        self._device.launch(_SOURCE, function, lanes, arguments)

    def violations(self) -> Violations:
        found = Violations()
        counts, places = self._count.get().tolist(), self._first.get().tolist()
        for rule in (3, 4):
            known = () if places[rule] == _NOWHERE else divmod(places[rule], 2**32)
            found.add(rule, counts[rule], *known)
        return found


class RankChecker:
    """Checks of searches of one graph; every rank makes one, and all call ``check`` together."""

    def __init__(self, device: Device, search: GpuRankSearch, exchange: Exchange) -> None:
        self._device = device
        self._search = search
        self._exchange = exchange
        with device.use() as cupy:
            self._global_id = global_ids(cupy, search.rows)

    def check(self, source: int) -> Violations:
        """source: a global id. On every rank the violations that it knows of."""
        search, rows = self._search, self._search.rows
        numbering = rows.numbering
        own, delegates = rows.own_numbers, numbering.first_normal
        with self._device.use() as cupy:
            distance = self._distances()
            joined = cupy.zeros(own, np.uint8)
            edges = EdgeCheck(self._device, distance, search.parent, self._global_id)
            edges.look_at(rows.graph.forward, 0, joined)
            nn = Rows(rows.nn_offsets, rows.nn_targets)
            edges.look_at(nn, numbering.first_normal, joined)
            violations = edges.violations()
            has_parent = search.knows()
            found = distance[:own] >= 0
            root = self._global_id[:own] == np.uint32(source)
            add_wrong(cupy, violations, 5, has_parent & ~joined.astype(bool))
            add_wrong(cupy, violations, 2, (distance[:own] == 0) != (root & found))
            # Somebody has to know each parent: the owner, or of a delegate any rank.
            told = cupy.packbits(has_parent[:delegates]).get()
            known = np.bitwise_or.reduce([some[0] for some in self._exchange(self._to_all(told))])
            known = cupy.unpackbits(cupy.asarray(known))[:delegates].astype(bool)
            has_parent[:delegates] = known
            add_wrong(cupy, violations, 1, has_parent != (found & ~root))
        return violations

    def rows_reached(self, rows_from: Array) -> int:
        """The sum of ``rows_from``, by own number, over what this rank reached."""
        return reached(self._device, self._search.distance, rows_from)[1]

    def _distances(self) -> Array:
        """int32, by all numbers: of other ranks' delegates and of ghosts from their owners."""
        search, rows = self._search, self._search.rows
        cupy = self._device.cupy
        distance = cupy.full(rows.numbers, -1, np.int32)
        own = distance[: rows.own_numbers]
        own[:] = widened(search.distance)
        first, end = rows.numbering.own_delegates(rows.rank)
        delegates = own[first:end].get()
        messages = [[delegates, own[vertices].get()] for vertices in search.ghost_vertices]
        for peer, (delegates, ghosts) in enumerate(self._exchange(messages)):
            if peer == rows.rank:
                continue
            first, end = rows.numbering.own_delegates(peer)
            distance[first:end] = cupy.asarray(delegates)
            first = rows.ghost_first[peer]
            distance[first : first + len(ghosts)] = cupy.asarray(ghosts)
        return distance

    def _to_all(self, message: Any) -> list[list[Any]]:
        return [[message]] * self._search.rows.numbering.ranks


def global_ids(cupy: Any, rows: RankRows) -> Array:
    """uint32, by a rank's numbers; UNREACHED where there is no vertex."""
    numbering = rows.numbering
    found = cupy.full(rows.numbers, UNREACHED, np.uint32)
    segments = [*numbering.normal_segments(rows.rank).values()]
    delegates = rows.delegate_ids(cupy)
    if delegates is None:
        segments += numbering.delegate_segments.values()
    else:
        found[: numbering.first_normal] = delegates
    for partition, first, vertices, skipped in segments:
        places = cupy.arange(skipped, skipped + vertices, dtype=np.uint32)
        some = places * np.uint32(numbering.partitions) + np.uint32(partition)
        found[first : first + vertices] = some
    for owner, ghosts in enumerate(rows.ghosts):
        at = rows.ghost_first[owner]
        found[at : at + len(ghosts)] = _ghost_ids(cupy, numbering, owner, ghosts)
    return found


def _ghost_ids(cupy: Any, numbering: RankNumbering, owner: int, ghosts: Array) -> Array:
    """Global ids of normal vertices, as their owner numbers them."""
    parts = parts_of(numbering.normal_segments(owner).values())
    part = (ghosts - np.uint32(numbering.first_normal)) // np.uint32(ALIGNED)
    first, partition = (cupy.asarray(parts[name].copy())[part] for name in ("first", "partition"))
    return (ghosts - first) * np.uint32(numbering.partitions) + partition


def add_wrong(cupy: Any, violations: Violations, rule: int, wrong: Array) -> None:
    """Vertices that break a rule."""
    count = int(cupy.count_nonzero(wrong))
    if count:
        violations.add(rule, count, int(cupy.argmax(wrong)))
