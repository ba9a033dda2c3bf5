"""Graph500's rules, checked over what several ranks found of an undirected graph
(cuda/ranks/check.cu).

The definition is bfs/check.py. A rank checks the edges that it has, with what the owners of their
vertices found. That an edge leads to a vertex's parent is found where that parent is known
(delegates), or told to the owner (a grid).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..base.graph import UNREACHED
from ..bfs.check import RULES, Violations
from ..gpu.check import NOWHERE, REPORT, reached
from ..gpu.device import Device, pack, strip_lanes
from ..gpu.graph import Array, Rows
from ..gpu.peer_memory import Exchange
from ..gpu.search import widened
from .delegate_layout import DelegateLayout
from .grid_layout import GridLayout
from .grid_mail import Kind
from .search import Search

_SOURCE = "ranks/check.cu"
CLAIM = np.dtype(
    [(name, np.uint64) for name in ("distance", "parent", "global_id")],
    align=True,
)


class EdgeCheck:
    """A check of rules 3 and 4 over the edges of rows that a rank has.

    distance, parent: arrays by the rank's numbers, distances of all vertices that its rows lead to,
    and parents of its rows. global_id: global ids of the same vertices. joined: uint8, set where an
    edge leads to a row's parent, one level up.
    """

    def __init__(self, device: Device, distance: Array, parent: Array, global_id: Array) -> None:
        self._device = device
        cupy = device.cupy
        self._count = cupy.zeros(1 + len(RULES), np.uint64)
        self._first = cupy.full(1 + len(RULES), NOWHERE, np.uint64)
        self._report = pack(REPORT, count=self._count, first=self._first)
        self._claim = pack(CLAIM, distance=distance, parent=parent, global_id=global_id)

    def look_at(self, rows: Rows, begin: int, joined: Array) -> None:
        """Check the edges of ``rows``. begin: the number of the first row."""
        edges = rows.offsets, rows.targets(), np.uint64(rows.edges)
        which = np.uint32(len(rows.offsets) - 1), np.uint32(begin)
        function = f"check_edges<{rows.offset_type}>"
        arguments = (*edges, *which, self._claim, joined, self._report)
        self._device.launch(_SOURCE, function, strip_lanes(rows.edges), arguments)

    def violations(self) -> Violations:
        found = Violations()
        counts, places = self._count.get().tolist(), self._first.get().tolist()
        for rule in (3, 4):
            known = () if places[rule] == NOWHERE else divmod(places[rule], 2**32)
            found.add(rule, counts[rule], *known)
        return found


class Claims(Protocol):
    """The messages of the ranks of a layout for a check.

    rows: rows that a rank has, each with the number of the first row.
    """

    rows: list[tuple[Rows, int]]

    def gather(self) -> tuple[Array, Array]:
        """Return the distances (int32) of all vertices that the rows lead to, and the parents of
        those that have rows, by the rank's numbers. What other ranks' vertices have comes from
        their owners.
        """
        ...

    def tell(self, joined: Array) -> None:
        """Tell owners what others have found of the tree edges of their vertices."""
        ...

    def knows(self, parent: Array) -> Array:
        """Return bool, by own number: whether the rank has a parent for the vertex."""
        ...

    def known(self, has_parent: Array) -> None:
        """Enter vertices of which another rank has the parent."""
        ...


class Checker:
    """Checks of searches of one graph; every rank makes one, and all call ``check`` together."""

    def __init__(self, search: Search[Any], exchange: Exchange) -> None:
        self._search = search
        self._claims: Claims = _CLAIMS[type(search.layout)](search, exchange)
        with search.device.use() as cupy:
            self._global_id = search.rows.global_ids(cupy)

    def check(self, source: int) -> Violations:
        """Check a search from ``source``, a global id. Returns, on every rank, the violations that
        the rank knows of.
        """
        device, claims = self._search.device, self._claims
        own_numbers = self._search.rows.own_numbers
        with device.use() as cupy:
            distance, parent = claims.gather()
            joined = cupy.zeros(len(parent), np.uint8)
            edges = EdgeCheck(device, distance, parent, self._global_id)
            for rows, begin in claims.rows:
                edges.look_at(rows, begin, joined)
            claims.tell(joined)
            violations = edges.violations()
            distance, has_parent = distance[:own_numbers], claims.knows(parent)
            found = distance >= 0
            root = self._global_id[:own_numbers] == np.uint32(source)
            _add_wrong(cupy, violations, 5, has_parent & ~joined[:own_numbers].astype(bool))
            _add_wrong(cupy, violations, 2, (distance == 0) != (root & found))
            claims.known(has_parent)
            _add_wrong(cupy, violations, 1, has_parent != (found & ~root))
        return violations

    def rows_reached(self, rows_from: Array) -> int:
        """Return the sum of ``rows_from``, by own number, over the vertices that this rank
        reached.
        """
        return reached(self._search.device, self._search.distance, rows_from)[1]


class DelegateClaims:
    """Messages for a check in the layout of delegates. A tree edge stands where its lower end's
    parent is known, so that nobody needs to be told.
    """

    def __init__(self, search: Search[DelegateLayout], exchange: Exchange) -> None:
        self._search = search
        self._exchange = exchange
        rows = search.layout.rows
        nn = Rows(rows.nn_offsets, rows.nn_targets)
        self.rows = [(rows.graph.forward, 0), (nn, rows.numbering.first_normal)]

    def gather(self) -> tuple[Array, Array]:
        search, rows = self._search, self._search.layout.rows
        cupy = search.device.cupy
        distance = cupy.full(rows.numbers, -1, np.int32)
        own_distance = distance[: rows.own_numbers]
        own_distance[:] = widened(search.distance)
        first, end = rows.numbering.own_delegates(rows.rank)
        delegates = own_distance[first:end].get()
        messages = [
            [delegates, own_distance[vertices].get()] for vertices in search.layout.ghost_vertices
        ]
        for peer, (delegates, ghosts) in enumerate(self._exchange(messages)):
            if peer == rows.rank:
                continue
            first, end = rows.numbering.own_delegates(peer)
            distance[first:end] = cupy.asarray(delegates)
            first = rows.ghost_first[peer]
            distance[first : first + len(ghosts)] = cupy.asarray(ghosts)
        return distance, search.parent[: rows.own_numbers]

    def tell(self, joined: Array) -> None:
        pass

    def knows(self, parent: Array) -> Array:
        return self._search.layout.knows()

    def known(self, has_parent: Array) -> None:
        """Enter delegates of which another rank has the parent. Somebody has to know each parent:
        the owner, or, for a delegate, any rank.
        """
        rows, cupy = self._search.layout.rows, self._search.device.cupy
        delegates = rows.numbering.first_normal
        told = cupy.packbits(has_parent[:delegates]).get()
        bitmaps = [message[0] for message in self._exchange([[told]] * rows.ranks)]
        known = cupy.unpackbits(cupy.asarray(np.bitwise_or.reduce(bitmaps)))
        has_parent[:delegates] = known[:delegates].astype(bool)


class GridClaims:
    """Messages for a check in a grid. A rank has the rows of its grid columns. If an edge leads to
    the parent of another rank's vertex, the owner is told.
    """

    def __init__(self, search: Search[GridLayout], exchange: Exchange) -> None:
        self._search = search
        self._exchange = exchange
        self._known = search.layout.rows.known
        self.rows = [(search.layout.rows.graph.forward, 0)]

    def gather(self) -> tuple[Array, Array]:
        search, known, cupy = self._search, self._known, self._search.device.cupy
        unreached = -1 if search.distance.dtype == np.int32 else 255
        distance = cupy.full(known.numbers, unreached, search.distance.dtype)
        distance[: known.own_numbers] = search.distance
        parent = cupy.full(known.row_numbers, UNREACHED, np.uint32)
        parent[: known.own_numbers] = search.parent[: known.own_numbers]
        self._move(Kind.VISITED_OF_ROWS, distance)
        self._move(Kind.FRONTIER_OF_COLUMNS, distance)
        distance = widened(distance)
        self._move(Kind.FRONTIER_OF_COLUMNS, parent)
        return distance, parent

    def tell(self, joined: Array) -> None:
        self._move(Kind.FOUND_IN_COLUMNS, joined, adding=True)

    def knows(self, parent: Array) -> Array:
        return parent[: self._known.own_numbers] != np.uint32(UNREACHED)

    def known(self, has_parent: Array) -> None:
        pass  # the owner knows them all

    def _move(self, kind: Kind, values: Array, adding: bool = False) -> None:
        """Send values in the way that letters of that kind go. adding: whether to add to the values
        that stand there, by bits.
        """
        rank = self._search.rows.rank
        ranks = range(self._search.rows.ranks)
        told = {p for peer in ranks for p in self._told(kind, rank, peer)}
        copies = {p: self._of(values, p).get() for p in told}  # for all who are told
        messages = [[copies[p] for p in self._told(kind, rank, peer)] for peer in ranks]
        cupy = self._search.device.cupy
        for peer, message in enumerate(self._exchange(messages)):
            for p, theirs in zip(self._told(kind, peer, rank), message, strict=True):
                target, came = self._of(values, p), cupy.asarray(theirs)
                target[:] = target | came if adding else came

    def _told(self, kind: Kind, sender: int, receiver: int) -> list[int]:
        return [] if sender == receiver else self._search.layout.letters.of(kind, sender, receiver)

    def _of(self, values: Array, partition: int) -> Array:
        segment = self._known.at[partition]
        return values[segment.first : segment.first + segment.vertices]


_CLAIMS: dict[type, Any] = {DelegateLayout: DelegateClaims, GridLayout: GridClaims}


def _add_wrong(cupy: Any, violations: Violations, rule: int, wrong: Array) -> None:
    """Add the vertices that break a rule to ``violations``."""
    count = int(cupy.count_nonzero(wrong))
    if count:
        violations.add(rule, count, int(cupy.argmax(wrong)))
