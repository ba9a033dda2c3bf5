"""A search's knowledge of the vertices of a segment, by place.

This is breadth-first search's own: which vertices are visited, and a parent for each, any one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.graph import UNREACHED
from ....kernels.base.numbering import Numbering, by_rule
from ....kernels.pieces.piece import Ends, Start
from ....kernels.pieces.vertices import add_all, next_level
from .edges import Chosen
from .packing import NONE
from .routes import places


class Vertices:
    """Own vertices, or shared ones.

    ids: from places to global ids. visited, frontier, found: bitmaps; found: in this superstep.
    distance: int32, -1 where unreached. parent: uint32, global ids, UNREACHED where not known here.
    entered: vertices of the frontier. Before the first search there are bitmaps alone.
    """

    def __init__(self, count: int, ids: Numbering) -> None:
        self.count = count
        self.ids = ids
        self.visited = np.zeros(-(-count // bitmap.WORD), np.uint64)
        self.frontier = np.zeros_like(self.visited)
        self.found = np.zeros_like(self.visited)
        self.distance = np.empty(0, np.int32)
        self.parent = np.empty(0, np.uint32)
        self.entered = 0

    def clear(self) -> None:
        """Before a search. The arrays of another one are used again."""
        if len(self.distance) < self.count:
            self.distance = np.empty(self.count, np.int32)
            self.parent = np.empty(self.count, np.uint32)
        self.distance[:] = -1
        self.parent[:] = UNREACHED
        for bits in (self.visited, self.frontier, self.found):
            bits[:] = 0
        self.entered = 0

    def begin(self, place: int) -> None:
        self.found[place // bitmap.WORD] |= np.uint64(1 << place % bitmap.WORD)
        self.advance(0)

    def resume(self, distance: NDArray[np.int32], parent: NDArray[np.uint32], level: int) -> None:
        """In the place of ``clear``, after ``level``. The arrays are kept, and change."""
        self.distance, self.parent = distance, parent
        for bits in (self.visited, self.frontier, self.found):
            bits[:] = 0
        bitmap.add_where(self.visited, distance, 0, level - 1)
        bitmap.add_where(self.found, distance, level, level)
        self.advance(level)

    def advance(self, level: int) -> None:
        """Make the vertices found the frontier, at distance ``level``."""
        state = self.visited, self.frontier, self.found, self.distance
        self.entered = int(next_level(*state, level))

    def take(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Distances and parents, for good: another search has arrays of its own."""
        taken = self.distance, self.parent
        self.distance, self.parent = np.empty(0, np.int32), np.empty(0, np.uint32)
        return taken

    def chosen(self, numbers: Numbering, rows: int) -> Chosen:
        """The frontier. numbers: of a subgraph's rows, from theirs to places."""
        return Chosen(numbers, self.frontier, rows)

    def pushing(self, frontier: Chosen) -> Start:
        """Return the vertices as a visit starts from them."""
        return Start(frontier.places, self.ids, self.frontier)

    def pulling(self, frontier: Chosen) -> Start:
        """All that is visited: an unvisited vertex has no neighbour of an earlier level."""
        return Start(frontier.places, self.ids, self.visited)

    def ends(self, numbers: Numbering, most: int) -> Ends:
        """Return the vertices as a visit ends at them."""
        return Ends(numbers, self.visited, self.found, NONE, self.parent)


class Ghosts:
    """Vertices of which others own some: what is known of them, or was sent to their owners.

    visited: bitmap; or sent. told: what of the frontier has been expanded to here, by place.
    """

    def __init__(self, segment: range, count: int, partitions: int) -> None:
        self.segment = segment
        self.count = count
        self.ids = places(segment, range(partitions))
        self.visited = np.zeros(-(-count // bitmap.WORD), np.uint64)
        self.told: list[NDArray[np.uint32]] = []

    def clear(self) -> None:
        """Before a search."""
        self.visited[:] = 0
        self.told.clear()

    def enter(self, partition: int, local: NDArray[np.uint32], expanded: bool) -> None:
        """The frontier's vertices of a partition, by local ids; nobody has to look for them."""
        several, first = np.uint32(len(self.segment)), np.uint32(self.segment.index(partition))
        numbers = local * several + first  # as ``places`` has it
        add_all(numbers, by_rule(), self.visited)
        if expanded:
            self.told.append(numbers)

    def pushing(self, frontier: Chosen) -> Start:
        return Start(frontier.places, self.ids, frontier.bits)

    def pulling(self, frontier: Chosen) -> Start:
        """The frontier: ``visited`` may hold what is not yet."""
        return self.pushing(frontier)

    def chosen(self, numbers: Numbering, rows: int) -> Chosen:
        """Return the part of the frontier that is known by now."""
        return Chosen.of_lists([*self.told], rows)

    def ends(self, numbers: Numbering, most: int) -> Ends:
        """most: that may be found."""
        lists = np.empty(most, np.uint32), np.empty(most, np.uint32)
        return Ends(numbers, self.visited, self.visited, *lists)
