"""A search between two supersteps, and what every backend does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base import bitmap
from ..base.arrays import Array, allocate
from ..base.graph import UNREACHED, Graph


class LevelWork(NamedTuple):
    """The work of one superstep, and the edges that it leaves for the next superstep.

    found: vertices reached; forward: edges that leave them; backward: edges that enter them;
    examined: edges looked at.
    """

    found: int
    forward: int
    backward: int
    examined: int


def state_arrays(vertices: int) -> list[Array]:
    """Return the declared arrays over all vertices that a search in memory holds, without the lists
    of a level.
    """
    words = -(-vertices // bitmap.WORD)
    return [
        Array("distance", np.int32, vertices, fill=-1, saved=True),
        Array("parent", np.uint32, vertices, fill=UNREACHED, saved=True),
        Array("visited", np.uint64, words),
        Array("before", np.uint64, words),
    ]


def level_arrays(vertices: int) -> list[Array]:
    """Return the declared arrays of a level, at their greatest: frontier, vertices found, degree
    sums.
    """
    return [
        Array("frontier", np.uint32, vertices),
        Array("found", np.uint32, vertices),
        Array("sums", np.int64, vertices + 1),
    ]


@dataclass
class SearchState:
    """A search between two supersteps.

    distance: int32 (n,), -1 where unreached. parent: uint32 (n,), UNREACHED for the source
    and where unreached. visited: bitmap. level: distance of the frontier, which is either
    ``queue`` or, when that is None, the vertices in ``visited`` that are not in ``before``.
    """

    graph: Graph
    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    visited: NDArray[np.uint64]
    before: NDArray[np.uint64]
    queue: NDArray[np.uint32] | None
    level: int = 0

    @classmethod
    def at(cls, graph: Graph, source: int) -> SearchState:
        state = cls(
            graph, **allocate(state_arrays(graph.vertices)), queue=np.array([source], np.uint32)
        )
        bitmap.clear(state.visited, graph.vertices)
        state.visited[source // bitmap.WORD] |= np.uint64(1 << source % bitmap.WORD)
        state.distance[source] = 0
        return state

    @classmethod
    def saved(
        cls, graph: Graph, distance: NDArray[np.int32], parent: NDArray[np.uint32], level: int
    ) -> SearchState:
        """Return a search that had come to ``level``; it writes to these arrays."""
        visited = bitmap.empty(graph.vertices)
        bitmap.add_where(visited, distance, 0, level)
        return cls(
            graph,
            distance=distance,
            parent=parent,
            visited=visited,
            before=np.empty_like(visited),
            queue=np.flatnonzero(distance == level).astype(np.uint32),
            level=level,
        )


class Backend(Protocol):
    """A backend, which advances a search in the direction that it is told.

    Both directions find the same vertices; a vertex reached from several may get any of
    them as its parent.
    """

    name: str

    def start(self, graph: Graph, source: int) -> SearchState:
        """Return the state of a search whose frontier is ``source`` alone."""
        ...

    def push(self, state: SearchState, work: int, levels: int) -> list[LevelWork]:
        """Follow the ``work`` edges that leave the frontier.

        Goes on, up to ``levels`` levels in all, while a level is too small for its direction to
        matter; returns the work of each.
        """
        ...

    def pull(self, state: SearchState) -> LevelWork:
        """Let every unvisited vertex look for a parent."""
        ...
