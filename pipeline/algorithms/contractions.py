"""Contractions of levels of a community search: the graph between labels becomes the level above,
in memory if it fits, else on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...kernels.pieces.operators import ListedAmounts
from ...kernels.pieces.piece import Piece
from ...kernels.programs.communities import fill_rows
from ..engines.operations.contract import PairSums
from ..engines.operations.operations import Operations
from ..engines.operations.spill import Pairs, Spill, StoredSums, write_rows
from ..engines.ranks.graph import graph_of_rows
from ..ranks.communicator import SingleCommunicator
from .levels import Level
from .memory_level import EDGE_BYTES, VERTEX_BYTES, MemoryLevel, offsets_of
from .spread_level import DiskLevel

ROOM = 16 << 20
"""Bytes that a graph between communities may always take in memory."""

MOST_READERS = 16
"""The most threads that read a level on disk."""


class Contractions(NamedTuple):
    """The contractions of a run. ground: the operations of level 0. spill: for the files of levels
    on disk. spare: bytes that level 0 needs and that are free once it is contracted. meanwhile:
    those that are free already while pairs are added up. check: called again and again while a
    level is contracted.
    """

    ground: Operations
    spill: Spill
    spare: int
    meanwhile: int
    check: Callable[[], None]

    def fits(self, labels: int, edges: int, left: int) -> bool:
        """Return whether a level fits in memory. labels: number of its vertices. left: what the
        level below still holds.
        """
        room = self.ground.extra_bytes + ROOM + self.spare - left
        return VERTEX_BYTES * labels + EDGE_BYTES * edges <= room

    def pair_sums(self, labels: int, left: int) -> PairSums:
        """Return sums of pairs of labels that make a level, of which there are none yet. labels:
        their number. left: as in ``fits``.
        """
        is_first = self.ground.communicator.rank == 0
        extra = self.ground.extra_bytes + self.meanwhile - left
        return PairSums(labels, extra, spill=self.spill, both_ways=is_first, check=self.check)

    def level_of(
        self, found: PairSums, labels: int, inside: NDArray[np.uint64], left: int
    ) -> Level:
        """Return the level whose edges are pairs of labels, of which those inside a label count
        twice. inside: what the edges inside the vertices of each label amount to, which is taken
        over. left: as in ``fits``.
        """
        pairs = found.held()
        if pairs is None or not self.fits(labels, 2 * len(pairs.keys), left):
            return self._level_on_disk(found, labels, inside)
        level = self._level_in_memory(pairs, labels, inside)
        self.spill.clear()
        return level

    def _level_in_memory(
        self, pairs: Pairs, labels: int, inside: NDArray[np.uint64]
    ) -> MemoryLevel:
        is_inside = pairs.keys >> np.uint64(32) == pairs.keys & np.uint64(0xFFFFFFFF)
        inside[pairs.keys[is_inside].astype(np.uint32)] += pairs.sums[is_inside]
        keys, pair_sums = pairs.keys[~is_inside], pairs.sums[~is_inside]
        first, other = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
        degrees = np.bincount(first, minlength=labels) + np.bincount(other, minlength=labels)
        offsets, edges = offsets_of(degrees), 2 * len(first)
        targets, sums = np.empty(edges, np.uint32), np.empty(edges, np.uint64)
        fill_rows(first, other, pair_sums, offsets[:-1].astype(np.int64), targets, sums)
        piece = Piece(offsets, targets, 0, edges, sums)
        return MemoryLevel(self, piece, ListedAmounts(), inside)

    def _level_on_disk(self, found: PairSums, labels: int, inside: NDArray[np.uint64]) -> DiskLevel:
        ground, runs = self.ground, found.put_away()
        self.spill.clear(keep=runs.folder)
        offsets = [a.rows.offsets.dtype for a in ground.graph.adjacencies]
        widest = max(offsets, key=lambda dtype: dtype.itemsize)  # kernels are compiled for it
        check = ground.communicator.check
        rows = write_rows(runs.folder, runs.merged(), inside, widest, check)
        operations = Operations(
            graph_of_rows(rows),
            SingleCommunicator(),
            Team(min(ground.team.threads, MOST_READERS)),
            directed=False,
            extra_bytes=ground.extra_bytes,
            note=ground.note,
        )
        stored = StoredSums(runs.folder / "inside", inside, self.spill.note)
        return DiskLevel(self, operations, ListedAmounts(), stored)
