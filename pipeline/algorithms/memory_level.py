"""A level of a community search whose edges are in memory, as one set of rows (levels.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.numbering import by_rule
from ...kernels.base.team import Team
from ...kernels.base.turns import no_turns
from ...kernels.pieces.operators import Amounts, BestGain, ListedAmounts, UnitAmounts
from ...kernels.pieces.piece import Piece
from ...kernels.pieces.tally import Table, make_table
from ...kernels.programs.communities import (
    CLASSES,
    add_by_label,
    add_inside,
    choose_joining,
    count_contracted,
    fill_contracted,
    has_more_edges,
    join_picked,
    join_round,
    list_by_class,
    list_members,
    mark_neighbours,
    move_picked,
    move_round,
    pick_moves,
)
from ..engines.operations.contract import Contracted, PairSums, add_pairs
from ..engines.operations.forests import join_in_rows
from ..engines.ranks.edges import Rows
from .host_level import NO_BOUNDS, Contracting, HostLevel, Visit
from .labelling import HOST
from .levels import Level

TABLES_BYTES = 64 << 20
EDGE_BYTES = 4 + 8
VERTEX_BYTES = 60
"""Bytes that a vertex of a level above level 0 takes, beside its edges."""

_LEFT_BYTES = 28  # of these, when the level has been contracted
_ALONE = Team(1)
_LABEL_BYTES = 8 + 4  # of a table
_TABLE_BYTES = 1 << 20
"""Bytes of a thread's table of sums: it stays in a core's cache."""

_SERIAL_EDGES = 1 << 15
"""Number of edges of a graph that is not worth more than one thread."""

_EDGES_TO_BEGIN = 1 << 14
"""Number of vertices and of their edges that one thread looks at in the time that several threads
take to begin and to wait for each other.
"""


class MemoryLevel(HostLevel):
    """A level in memory. piece: its rows, by place. inside: uint64, what the edges inside each
    vertex amount to, in both directions; empty at level 0, where these are loops. order: the place
    of each number at level 0; None at other levels, where they are the same.
    """

    on_disk = False

    def __init__(
        self,
        contractions: Contracting,
        piece: Piece,
        amounts: Amounts,
        inside: NDArray[np.uint64],
        order: NDArray[np.uint32] | None = None,
    ) -> None:
        super().__init__(amounts, len(piece.offsets) - 1)
        self.inside = inside
        team = contractions.ground.team
        self._team = team if len(piece.targets) > _SERIAL_EDGES else Team(1)
        self._contractions, self._note = contractions, contractions.ground.note
        self._piece = piece
        self._is_ground = order is not None
        self._order = self._numbers = np.arange(self.count, dtype=np.uint32)
        if order is not None:
            self._order, self._numbers = order, np.empty_like(order)
            self._numbers[order] = np.arange(self.count, dtype=np.uint32)
        self._labels = self.label  # by place
        self._communities = self.label[:0]  # by place, while they are divided into parts
        self._bounds = np.zeros(CLASSES + 1, np.int64)
        self._is_short = False  # the round
        self._tables: list[Table] = []
        self._make_room()

    def _make_room(self) -> None:
        self._marked = np.zeros(self.count, np.uint8)
        self._listed = np.empty(self.count, np.uint32)

    def _free_room(self) -> None:
        self._forget_communities()
        self._marked, self._listed = self._marked[:0].copy(), self._listed[:0].copy()
        self._labels = self._communities = self.label[:0]
        self._tables.clear()

    @property
    def amount_inside(self) -> int:
        return super().amount_inside + int(self.inside.sum(dtype=np.uint64))

    def left_bytes(self) -> int:
        if self._is_ground:
            return 0
        return _LEFT_BYTES * self.count + EDGE_BYTES * len(self._piece.targets)

    def _visit_within(self, visit: Visit) -> int:
        sums = self._sums_within(self._labels)
        for at in HOST.windows(self.count):
            visit(self._numbers[at], sums[at])
        return int(sums.sum(dtype=np.uint64))

    def strengths(self) -> NDArray[np.uint64]:
        if isinstance(self.amounts, UnitAmounts):
            return np.diff(self._piece.offsets).astype(np.uint64)[self._order]
        return self._sums_within(np.zeros(self.count, np.uint32))[self._order]

    def split(self) -> NDArray[np.uint32]:
        self._set_labels(self.label)
        offsets, targets, *_ = self._piece
        trees = join_in_rows(offsets, targets, self._team, self._labels)
        self._note(len(targets))
        return HOST.named_by_least(trees[self._order])

    def contract(self, label: NDArray[np.uint32], labels: int) -> Level:
        self._free_room()
        contractions = self._contractions
        by_place = label[self._numbers]
        bounds, members = np.empty(labels + 1, np.int64), np.empty(self.count, np.uint32)
        list_members(by_place, bounds, members)
        lists = self.amounts, self._piece, by_place, bounds, members
        tables = self._contraction_tables(labels)
        degrees = np.empty(labels, np.int64)
        self._run(tables, count_contracted, *lists, degrees)
        offsets = offsets_of(degrees)
        edges = int(offsets[-1])
        inside = np.zeros(labels, np.uint64)
        if not contractions.fits(labels, edges, self.left_bytes()):
            del tables, bounds, members, degrees, offsets, lists
            return self._contract_by_pairs(label, by_place, inside)
        targets, sums = np.empty(edges, np.uint32), np.empty(edges, np.uint64)
        into = offsets[:-1].astype(np.int64)
        self._run(tables, fill_contracted, *lists, into, targets, sums, inside)
        self._add_inside(inside, label)
        piece = Piece(offsets, targets, 0, edges, sums)
        return MemoryLevel(contractions, piece, ListedAmounts(), inside)

    def between(self, label: NDArray[np.uint32], labels: int) -> Contracted:
        found = PairSums(labels, 0, planned=labels * labels // 2)
        self._add_pairs(found, label[self._numbers], loops=False)
        pairs = found.held()
        assert pairs is not None
        return Contracted.of(pairs)

    def _contract_by_pairs(
        self, label: NDArray[np.uint32], by_place: NDArray[np.uint32], inside: NDArray[np.uint64]
    ) -> Level:
        """Return the graph between labels. inside: zeros, by label, which are taken over."""
        self._add_inside(inside, label)
        contractions, labels, left = self._contractions, len(inside), self.left_bytes()
        found = contractions.pair_sums(labels, left)
        self._add_pairs(found, by_place)
        return contractions.level_of(found, labels, inside, left)

    def _add_pairs(self, found: PairSums, by_place: NDArray[np.uint32], loops: bool = True) -> None:
        """Add the edges between labels. loops: as in ``add_pairs``."""
        offsets, targets, _, _, weights = self._piece
        rows, ends = Rows(offsets, targets, weights), (by_rule(), by_place)
        team = self._contractions.ground.team
        add_pairs(found, rows, team, self.amounts, ends, ends, loops=loops)

    def _add_inside(self, into: NDArray[np.uint64], label: NDArray[np.uint32]) -> None:
        super()._add_inside(into, label)
        if len(self.inside):
            add_by_label(label, self.inside, into)

    def _sums_within(self, by_place: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return what the edges of each place to others with the same label amount to."""
        sums = np.empty(self.count, np.uint64)
        taken = no_turns(self._team.threads)
        self._team.run(add_inside, self.amounts, self._piece, by_place, sums, taken)
        self._note(len(self._piece.targets))
        return sums

    def _set_labels(self, label: NDArray[np.uint32]) -> None:
        self._labels = label[self._numbers] if self._is_ground else label

    def marks(self) -> NDArray[np.uint8]:
        return self._marked[self._order]

    def set_marks(self, marks: NDArray[np.uint8]) -> None:
        self._marked[self._order] = marks

    def _mark_all(self) -> None:
        self._marked[:] = np.diff(self._piece.offsets) > 0

    def _end_marking(self) -> None:
        """Do nothing: all neighbours have been marked."""

    def _list(self, stamp: np.uint64, chosen: NDArray[np.bool_] | None) -> None:
        marked = self._marked if chosen is None else chosen[self._numbers].view(np.uint8)
        list_by_class(marked, self._numbers, stamp, self._bounds, self._listed)
        self._is_short = self._is_quick(self._listed[: self._bounds[-1]], CLASSES)

    def _move_classes(self) -> int:
        if not self._is_short:
            return super()._move_classes()
        rule = self._rule(self.label, NO_BOUNDS, NO_BOUNDS)
        moves, edges = move_round(*self._round(rule))
        self._note(edges)
        return moves

    def _join_classes(self, groups: NDArray[np.uint32]) -> int:
        if not self._is_short:
            return super()._join_classes(groups)
        rule = self._rule(self.refined, self.label, groups)
        joined, edges = join_round(*self._round(rule), self._communities, self._alone)
        self._note(edges)
        return joined

    def _round(self, rule: BestGain) -> tuple[Any, ...]:
        """Return what a round on one thread needs."""
        listed = self._listed[: self._bounds[-1]]
        rule = rule._replace(numbers=self._numbers)
        rows = self._piece, listed, self._bounds, self._labels, self._marked
        return rule, self.amounts, *rows, np.empty(len(listed), np.uint32), self._all_tables()[0]

    def _all_tables(self) -> list[Table]:
        """Return a table for each thread."""
        if not self._tables:
            self._tables = _make_tables(self.count, self._team.threads)
        return self._tables

    def _move_class(self, i: int) -> int:
        places, picked = self._pick_each(i, self._rule(self.label, NO_BOUNDS, NO_BOUNDS))
        moves = move_picked(
            places, picked, self._numbers, self._labels, self.label, self.mass, self._totals
        )
        moved = picked[:moves]
        team = _ALONE if self._is_quick(moved) else self._team
        taken = no_turns(team.threads)
        edges = team.run(mark_neighbours, self._piece.unweighted, moved, self._marked, taken)
        self._note(sum(edges))
        return moves

    def _join_class(self, i: int, groups: NDArray[np.uint32]) -> int:
        if not choose_joining(self._class(i), self._numbers, self._alone, groups):
            return 0
        places, picked = self._pick_each(i, self._rule(self.refined, self.label, groups))
        return join_picked(
            places,
            picked,
            self._numbers,
            self._labels,
            self.refined,
            self.mass,
            self._totals,
            self._alone,
            self.label,
            groups,
        )

    def begin_joining(self) -> int:
        self._communities = self.label[self._numbers] if self._is_ground else self.label
        return super().begin_joining()

    def _class(self, i: int) -> NDArray[np.uint32]:
        """Return the places of the listed vertices of a class."""
        return self._listed[self._bounds[i] : self._bounds[i + 1]]

    def _pick_each(self, i: int, rule: BestGain) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the places of a class, and what each picks, or NO_LABEL."""
        places = self._class(i)
        picked = np.empty(len(places), np.uint32)
        rule = rule._replace(numbers=self._numbers)
        communities = self._communities if len(rule.parts) else self._communities[:0]
        rows = self._piece, places, self._labels, communities, self._marked, picked
        self._note(self._run(self._all_tables(), pick_moves, rule, self.amounts, *rows))
        return places, picked

    def _is_quick(self, places: NDArray[np.uint32], times: int = 1) -> bool:
        """Return whether one thread looks at all edges of some vertices sooner than several do.
        times: in how many parts it looks at them.
        """
        threads = self._team.threads
        if threads == 1:
            return True
        most = times * _EDGES_TO_BEGIN * threads // (threads - 1)
        return not has_more_edges(self._piece.unweighted, places, most)

    def _run(self, tables: list[Table], kernel: Any, *arguments: Any) -> int:
        """Run a kernel by as many threads as there are tables. Returns the sum of what it does."""
        taken = no_turns(len(tables))
        left = list(tables)

        def run() -> int:
            try:
                table = left.pop()
            except IndexError:
                return 0
            return kernel(*arguments, table, taken) or 0

        return sum((self._team if len(tables) > 1 else _ALONE).run(run))

    def _contraction_tables(self, labels: int) -> list[Table]:
        """Return tables with sums by label, for as many threads as there is room for."""
        each = _LABEL_BYTES * labels
        threads = min(self._team.threads, max(1, TABLES_BYTES // max(1, each)))
        return [make_table(labels, each) for _ in range(threads)]


def _make_tables(labels: int, count: int) -> list[Table]:
    room = min(_TABLE_BYTES, TABLES_BYTES // count)
    return [make_table(labels, room) for _ in range(count)]


def offsets_of(degrees: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    """Return the offsets of rows with so many edges."""
    offsets = np.zeros(len(degrees) + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    return offsets.astype(np.uint32 if offsets[-1] < 1 << 32 else np.uint64)
