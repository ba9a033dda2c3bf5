"""Marked vertices: a bitmap by place of each segment, for programs that go on from few vertices.

What ranks tell each other of marked vertices are lists, of these alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.numbering import by_rule
from ....kernels.pieces.vertices import add_all
from ..ranks.graph import RankGraph
from ..ranks.state import Ghosts, Vertices


@dataclass
class Marks:
    """Bitmaps, as Vector has values."""

    own: NDArray[np.uint64]
    shared: NDArray[np.uint64]
    ghosts: dict[int, NDArray[np.uint64]]

    @classmethod
    def none(cls, graph: RankGraph) -> Marks:
        shared = 0 if graph.shared is None else graph.shared.count
        ghosts = {id(some): _empty(some.count) for some in graph.every_ghost}
        return cls(_empty(graph.own.count), _empty(shared), ghosts)

    def at(self, segment: Vertices | Ghosts, graph: RankGraph) -> NDArray[np.uint64]:
        if segment is graph.own:
            return self.own
        return self.shared if segment is graph.shared else self.ghosts[id(segment)]

    def clear(self) -> None:
        for words in (self.own, self.shared, *self.ghosts.values()):
            words[:] = 0


def marks_bytes(vertices: int) -> int:
    """Of so many vertices."""
    return 8 * (vertices // WORD + 1)


def _empty(vertices: int) -> NDArray[np.uint64]:
    return np.zeros(-(-vertices // WORD), np.uint64)


def mark_where(words: NDArray[np.uint64], chosen: NDArray[np.bool_]) -> None:
    """Mark some vertices, and no others. chosen: by place."""
    packed = np.packbits(chosen, bitorder="little")
    words[:] = 0
    words.view(np.uint8)[: len(packed)] = packed


def add(words: NDArray[np.uint64], places: NDArray) -> None:
    """Mark some places."""
    add_all(np.ascontiguousarray(places, np.uint32), by_rule(), words)


def where(words: NDArray[np.uint64], places: NDArray) -> NDArray[np.intp]:
    """Which of some places are marked: their indexes."""
    bits = words[places >> np.uint32(6)] >> (places & np.uint32(63)).astype(np.uint64)
    return np.flatnonzero(bits & np.uint64(1))
