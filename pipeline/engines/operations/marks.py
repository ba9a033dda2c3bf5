"""Marked vertices: a bitmap by place for each segment, for programs that continue from few
vertices. Ranks send each other lists of the marked vertices only.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD, members
from ....kernels.base.numbering import by_rule
from ....kernels.pieces.vertices import add_all
from ..ranks.graph import RankGraph
from ..ranks.state import Ghosts, Vertices


class VertexPlaces(NamedTuple):
    """A set of vertices: the places of their values in a vector. own, shared: uint32, rising."""

    own: NDArray[np.uint32]
    shared: NDArray[np.uint32]


def union(sets: Sequence[VertexPlaces | None]) -> VertexPlaces | None:
    """Return the vertices of several sets, each once; None if one of the sets is None."""
    known = [places for places in sets if places is not None]
    if len(known) < len(sets):
        return None
    return VertexPlaces(*(reduce(np.union1d, parts) for parts in zip(*known, strict=True)))


class PlacesByLevel:
    """Lists of vertices by level, stored one after the other. own, shared: the most vertices of all
    levels together; a vertex is in one level only.
    """

    def __init__(self, own_count: int, shared_count: int) -> None:
        self._places = VertexPlaces(
            np.empty(own_count, np.uint32), np.empty(shared_count, np.uint32)
        )
        self.clear()

    def __len__(self) -> int:
        return len(self._ends[0]) - 1

    def __getitem__(self, level: int) -> VertexPlaces:
        segments = zip(self._places, self._ends, strict=True)
        return VertexPlaces(*(places[ends[level] : ends[level + 1]] for places, ends in segments))

    def append(self, level: VertexPlaces) -> None:
        for places, ends, new_places in zip(self._places, self._ends, level, strict=True):
            ends.append(ends[-1] + len(new_places))
            places[ends[-2] : ends[-1]] = new_places

    def clear(self) -> None:
        self._ends = array("I", [0]), array("I", [0])

    @property
    def own(self) -> NDArray[np.uint32]:
        """Return the whole array of own places: those of all levels, and unused entries after
        them.
        """
        return self._places.own

    @property
    def own_last(self) -> tuple[int, int]:
        """Return the range of the last level's entries in ``own``."""
        return self._ends[0][-2], self._ends[0][-1]

    def own_ends(self) -> NDArray[np.int64]:
        """Return the bounds of levels in ``own``: level i is from entry ``ends[i]`` to ``ends[i +
        1]``.
        """
        return np.array(self._ends[0], np.int64)

    def pop(self) -> None:
        """Remove the last level."""
        for ends in self._ends:
            ends.pop()

    def extend(self, ends: NDArray[np.int64]) -> None:
        """Append levels whose own places are already in ``own`` and that have no shared vertices.
        ends: the end of each level.
        """
        self._ends[0].extend(ends.tolist())
        self._ends[1].extend([0] * len(ends))


def levels_bytes(vertices: int) -> int:
    """Return the bytes of PlacesByLevel if every vertex is a level of its own: a place and two ends
    for each; arrays of ends may be half empty.
    """
    return (4 + 2 * 6) * vertices


@dataclass
class Marks:
    """Marked vertices as bitmaps, for the same segments as a Vector."""

    own: NDArray[np.uint64]
    shared: NDArray[np.uint64]
    ghosts: dict[int, NDArray[np.uint64]]

    @classmethod
    def none(cls, graph: RankGraph) -> Marks:
        shared = 0 if graph.shared is None else graph.shared.count
        ghosts = {id(segment): _empty(segment.count) for segment in graph.every_ghost}
        return cls(_empty(graph.own.count), _empty(shared), ghosts)

    def at(self, segment: Vertices | Ghosts, graph: RankGraph) -> NDArray[np.uint64]:
        if segment is graph.own:
            return self.own
        return self.shared if segment is graph.shared else self.ghosts[id(segment)]

    def clear(self) -> None:
        for words in (self.own, self.shared, *self.ghosts.values()):
            words[:] = 0

    def put(self, places: VertexPlaces) -> None:
        """Mark more vertices."""
        for words, vertices in zip((self.own, self.shared), places, strict=True):
            add(words, vertices)

    def take(self) -> VertexPlaces:
        """Return the marked vertices, and remove their marks."""
        places = VertexPlaces(members(self.own), members(self.shared))
        self.clear()
        return places

    def ghost_places(self) -> dict[int, NDArray[np.uint32]]:
        return {ghost: members(words) for ghost, words in self.ghosts.items()}


def marks_bytes(vertices: int) -> int:
    """Return the bytes of marks for this many vertices."""
    return 8 * (vertices // WORD + 1)


def _empty(vertices: int) -> NDArray[np.uint64]:
    return np.zeros(-(-vertices // WORD), np.uint64)


def mark_where(words: NDArray[np.uint64], chosen: NDArray[np.bool_]) -> None:
    """Mark the chosen vertices, and clear all other marks. chosen: a mask by place."""
    packed = np.packbits(chosen, bitorder="little")
    words[:] = 0
    words.view(np.uint8)[: len(packed)] = packed


def mark_range(vertices: int, first: int, last: int) -> NDArray[np.uint64]:
    """Return a bitmap of so many vertices in which ``first <= v < last`` are marked."""
    chosen = np.zeros(vertices, np.bool_)
    chosen[first:last] = True
    words = _empty(vertices)
    mark_where(words, chosen)
    return words


def places_where(chosen: NDArray[np.bool_]) -> NDArray[np.uint32]:
    words = _empty(len(chosen))
    mark_where(words, chosen)
    return members(words)


def add(words: NDArray[np.uint64], places: NDArray) -> None:
    """Mark some places."""
    add_all(np.ascontiguousarray(places, np.uint32), by_rule(), words)


def where(words: NDArray[np.uint64], places: NDArray) -> NDArray[np.intp]:
    """Return the indexes of the places that are marked."""
    bits = words[places >> np.uint32(6)] >> (places & np.uint32(63)).astype(np.uint64)
    return np.flatnonzero(bits & np.uint64(1))
