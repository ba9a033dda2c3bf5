"""The state of breadth-first search in a segment, by place: which vertices are visited, and one
parent of each.
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
    """The state of own vertices, or of shared ones.

    ids: numbering from places to global ids. visited, frontier, found: bitmaps; found: in this
    superstep. distance: int32, -1 for vertices not reached. parent: uint32, global ids, UNREACHED
    if not known here. entered: the number of vertices in the frontier. Before the first search only
    the bitmaps are allocated.
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
        """Reset the state before a search. The arrays of an earlier search are reused."""
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
        """Set the state to that of a search after ``level``, instead of ``clear``. The arrays are
        not copied; the search changes them.
        """
        self.distance, self.parent = distance, parent
        for bits in (self.visited, self.frontier, self.found):
            bits[:] = 0
        bitmap.add_where(self.visited, distance, 0, level - 1)
        bitmap.add_where(self.found, distance, level, level)
        self.advance(level)

    def advance(self, level: int) -> None:
        """Make the vertices in ``found`` the frontier, at distance ``level``."""
        state = self.visited, self.frontier, self.found, self.distance
        self.entered = int(next_level(*state, level))

    def take(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Return distances and parents, and drop the references to them: the next search allocates
        its own.
        """
        taken = self.distance, self.parent
        self.distance, self.parent = np.empty(0, np.int32), np.empty(0, np.uint32)
        return taken

    def chosen(self, numbers: Numbering, rows: int) -> Chosen:
        """Return the frontier as rows of a subgraph. numbers: numbering from the ``rows`` rows to
        places.
        """
        return Chosen(numbers, self.frontier, rows)

    def pushing(self, frontier: Chosen) -> Start:
        """Return the frontier as the start of a push."""
        return Start(frontier.places, self.ids, self.frontier)

    def pulling(self, frontier: Chosen) -> Start:
        """Return all visited vertices as the start of a pull: an unvisited vertex has no neighbour
        that was visited before the frontier.
        """
        return Start(frontier.places, self.ids, self.visited)

    def ends(self, numbers: Numbering, most: int) -> Ends:
        """Return the vertices as the end of a visit."""
        return Ends(numbers, self.visited, self.found, NONE, self.parent)


class Ghosts:
    """A segment in which other ranks own vertices: what this rank knows of them or has sent to
    their owners.

    visited: bitmap of the vertices that are known as visited or were sent. told: the frontier's
    vertices that owners have expanded to this rank, by place.
    """

    def __init__(self, segment: range, count: int, partitions: int) -> None:
        self.segment = segment
        self.count = count
        self.ids = places(segment, range(partitions))
        self.visited = np.zeros(-(-count // bitmap.WORD), np.uint64)
        self.told: list[NDArray[np.uint32]] = []

    def clear(self) -> None:
        """Reset the state before a search."""
        self.visited[:] = 0
        self.told.clear()

    def enter(self, partition: int, local: NDArray[np.uint32], expanded: bool) -> None:
        """Mark the frontier's vertices of a partition as visited, by local id: no rank has to find
        them. expanded: whether they are also added to ``told``.
        """
        several, first = np.uint32(len(self.segment)), np.uint32(self.segment.index(partition))
        numbers = local * several + first  # the same numbering as ``places``
        add_all(numbers, by_rule(), self.visited)
        if expanded:
            self.told.append(numbers)

    def pushing(self, frontier: Chosen) -> Start:
        return Start(frontier.places, self.ids, frontier.bits)

    def pulling(self, frontier: Chosen) -> Start:
        """Return the frontier as the start of a pull: ``visited`` may hold vertices of the level
        that is being found.
        """
        return self.pushing(frontier)

    def chosen(self, numbers: Numbering, rows: int) -> Chosen:
        """Return the part of the frontier that has been expanded so far, as rows of a subgraph."""
        return Chosen.of_lists([*self.told], rows)

    def ends(self, numbers: Numbering, most: int) -> Ends:
        """Return the vertices as the end of a visit. most: a bound on the vertices found."""
        lists = np.empty(most, np.uint32), np.empty(most, np.uint32)
        return Ends(numbers, self.visited, self.visited, *lists)
