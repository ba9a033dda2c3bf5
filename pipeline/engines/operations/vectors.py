"""Vectors: a value for each vertex, split over ranks, and the exchange of values between ranks.

A rank has values of its *own* vertices, of *shared* vertices (the delegates, the same on all
ranks), and of *ghosts*, which other ranks own and which its edges touch. Owners *expand* values to
the ranks that hold ghosts; these *fold* their values into the owners' values. Both use lists that
ranks agree on once: for each segment, the vertices that the rank's edges touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.base import bitmap
from ....kernels.base.team import Team
from ....kernels.pieces.vertices import add_all
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Rows, RowsOnDisk
from ..ranks.graph import Adjacency, RankGraph, Side
from ..ranks.state import Ghosts, Vertices
from .marks import Marks, VertexPlaces, add, where

_AT_ONCE = 1 << 18
"""Number of values that a thread fills at once."""


class Counts(NamedTuple):
    """Numbers of vertices: of the graph, and of a rank's segments. ranks: how many there are.
    edges: the most edges of a graph whose program is yet to be made; 0 for others.
    """

    vertices: int
    own: int
    shared: int
    ghosts: int
    ranks: int = 1
    edges: int = 0


class VectorType(NamedTuple):
    """The type of a vector, by which a program plans it and makes it.

    ghosts: whether vertices of other ranks have values, too.
    """

    dtype: DTypeLike
    ghosts: bool = False

    def bytes(self, counts: Counts) -> int:
        """Return the bytes of such a vector on a rank."""
        vertices = counts.own + counts.shared + self.ghosts * counts.ghosts
        return vertices * np.dtype(self.dtype).itemsize


def vectors_bytes(counts: Counts, vectors: Iterable[VectorType]) -> int:
    return sum(vector.bytes(counts) for vector in vectors)


Fold = Callable[[NDArray, NDArray], NDArray]
"""Function that combines the values held with the values received."""


@dataclass
class Vector:
    """Values of vertices. own: by place. shared: by place; (0,) on a single rank. ghosts: by
    segment, then by place.
    """

    own: NDArray
    shared: NDArray
    ghosts: dict[int, NDArray] = field(default_factory=dict)

    def at(self, segment: Vertices | Ghosts, graph: RankGraph) -> NDArray:
        if segment is graph.own:
            return self.own
        return self.shared if segment is graph.shared else self.ghosts[id(segment)]

    def fill(self, value: Any, places: VertexPlaces | None = None) -> None:
        """Set all values, those of ghosts included; or only the values of the own and shared
        vertices in ``places``.
        """
        if places is not None:
            self.own[places.own] = self.shared[places.shared] = value
            return
        for values in (self.own, self.shared, *self.ghosts.values()):
            values[:] = value


def make_vector(graph: RankGraph, vector: VectorType, value: Any, team: Team) -> Vector:
    """Return a new vector filled with ``value``."""

    def filled(count: int) -> NDArray:
        # The first touch of memory takes longest. Zeros need no touch, and all threads share the
        # touch for other values.
        if not value:
            return np.zeros(count, vector.dtype)
        values = np.empty(count, vector.dtype)
        parts = [values[first : first + _AT_ONCE] for first in range(0, count, _AT_ONCE)]
        team.map(lambda part: np.copyto(part, value), parts)
        return values

    shared = 0 if graph.shared is None else graph.shared.count
    ghost_segments = graph.every_ghost if vector.ghosts else []
    ghosts_by_segment = {id(segment): filled(segment.count) for segment in ghost_segments}
    return Vector(filled(graph.own.count), filled(shared), ghosts_by_segment)


@dataclass(frozen=True)
class _Link:
    """Vertices of one partition whose values two ranks exchange. On the rank that holds ghosts,
    ghost and places are their segment and their places in it. On the owner, places are those in its
    own segment, and ghost is 0.
    """

    ghost: int
    places: NDArray[np.uint32]


class Links:
    """The lists of values that go from rank to rank; empty on a single rank. read: bytes read from
    disk to make the lists. sent: bytes sent to other ranks.
    """

    def __init__(self, graph: RankGraph, communicator: Communicator) -> None:
        self._communicator = communicator
        size = communicator.size
        self._held: list[list[_Link]] = [[] for _ in range(size)]  # ghosts here, by owner
        self._asked: list[list[_Link]] = [[] for _ in range(size)]  # own vertices, by holder
        self.sent = self.read = 0
        if size > 1:
            self._agree(graph)

    def _agree(self, graph: RankGraph) -> None:
        """Tell owners which of their vertices the edges of this rank touch."""
        size = self._communicator.size
        messages: list[Message] = [[] for _ in range(size)]
        for ghosts in graph.every_ghost:
            words, read = _touched(graph, ghosts)
            self.read += read
            numbers = bitmap.members(words).astype(np.int64)
            width = len(ghosts.segment)
            for i, partition in enumerate(ghosts.segment):
                places = numbers[numbers % width == i]
                owner = partition % size
                self._held[owner].append(_Link(id(ghosts), places.astype(np.uint32)))
                local = (places // width).astype(np.uint32)
                messages[owner] += [np.array([partition], np.int64), local]
        for rank, message in enumerate(self._communicator.exchange(messages)):
            for head, local in zip(message[::2], message[1::2], strict=True):
                held = graph.held
                places = local * np.uint32(len(held)) + np.uint32(held.index(int(head[0])))
                self._asked[rank].append(_Link(0, places))

    def expand(self, values: Vector) -> None:
        """Set the values of ghosts to those of their owners."""
        if self._communicator.size == 1:
            return
        messages = [[values.own[link.places] for link in links] for links in self._asked]
        for links, message in zip(self._held, self._send(messages), strict=True):
            for link, came in zip(links, message, strict=True):
                values.ghosts[link.ghost][link.places] = came

    def fold(self, values: Vector, fold: Fold) -> None:
        """Fold values of ghosts into their owners' values, in the order of ranks, and values of
        shared vertices over all ranks, which have the same values afterwards.
        """
        if self._communicator.size == 1:
            return
        ghosts = values.ghosts
        messages = [[ghosts[link.ghost][link.places] for link in links] for links in self._held]
        for links, message in zip(self._asked, self._send(messages), strict=True):
            for link, came in zip(links, message, strict=True):
                values.own[link.places] = fold(values.own[link.places], came)
        if len(values.shared):
            values.shared[:] = self._fold_shared(values.shared, fold)

    def expand_marked(self, values: Vector, marked: Marks) -> None:
        """Set the values of ghosts to those of their owners' marked vertices, and mark these
        ghosts.
        """
        if self._communicator.size == 1:
            return
        messages: list[Message] = []
        for links in self._asked:
            messages.append([])
            for link in links:
                at = where(marked.own, link.places)
                messages[-1] += [at.astype(np.uint32), values.own[link.places[at]]]
        for links, message in zip(self._held, self._send(messages), strict=True):
            for link, at, came in zip(links, message[::2], message[1::2], strict=True):
                places = link.places[at]
                values.ghosts[link.ghost][places] = came
                add(marked.ghosts[link.ghost], places)

    def fold_marked(
        self, values: Vector, marked: Marks, fold: Fold, shared_parts: NDArray | None = None
    ) -> None:
        """Fold values of marked vertices: of ghosts into their owners' values, of shared vertices
        over all ranks. Owners mark own vertices whose values change; all ranks mark shared vertices
        whose values change. Marks of ghosts are cleared.

        shared_parts: this rank's parts of what shared vertices receive, apart from their values,
        which are the same on all ranks. None: the values have them already; then ``fold`` must be
        idempotent.
        """
        if self._communicator.size == 1:
            return
        shared = bitmap.members(marked.shared)
        parts = (values.shared if shared_parts is None else shared_parts)[shared]
        messages: list[Message] = []
        for links in self._held:
            messages.append([shared, parts])
            for link in links:
                at = where(marked.ghosts[link.ghost], link.places)
                ghosts = values.ghosts[link.ghost]
                messages[-1] += [at.astype(np.uint32), ghosts[link.places[at]]]
        for words in marked.ghosts.values():
            words[:] = 0
        for links, message in zip(self._asked, self._send(messages), strict=True):
            _fold_into(values.shared, marked.shared, message[0], message[1], fold)
            for link, at, came in zip(links, message[2::2], message[3::2], strict=True):
                _fold_into(values.own, marked.own, link.places[at], came, fold)

    def _fold_shared(self, values: NDArray, fold: Fold) -> NDArray:
        """Fold the shared values of all ranks. Each rank folds one part of them, and sends the
        result to all ranks.
        """
        parts = np.array_split(values, self._communicator.size)
        came = [message[0] for message in self._send([[part] for part in parts])]
        whole = came[0]
        for part in came[1:]:
            whole = fold(whole, part)
        told = self._send([[whole]] * self._communicator.size)
        return np.concatenate([message[0] for message in told])

    def _send(self, messages: list[Message]) -> list[Message]:
        for rank, message in enumerate(messages):
            if rank != self._communicator.rank:
                self.sent += sum(array.nbytes for array in message)
        return self._communicator.exchange(messages)


def _fold_into(
    values: NDArray,
    words: NDArray[np.uint64],
    places: NDArray[np.uint32],
    came: NDArray,
    fold: Fold,
) -> None:
    folded = fold(values[places], came)
    changed = folded != values[places]
    values[places[changed]] = folded[changed]
    add(words, places[changed])


def _touched(graph: RankGraph, ghosts: Ghosts) -> tuple[NDArray[np.uint64], int]:
    """Return a bitmap of the places in a ghost segment that this rank's edges touch, and the bytes
    read to find them.
    """
    read = 0
    words = np.zeros(-(-ghosts.count // bitmap.WORD), np.uint64)
    for adjacency in graph.adjacencies:
        if adjacency.source.segment is ghosts:
            rows = np.flatnonzero(np.diff(adjacency.rows.offsets)).astype(np.uint32)
            add_all(rows, adjacency.source.places, words)
        if adjacency.target.segment is ghosts:
            read += _mark(adjacency, adjacency.target, words)
    return words, read


def _mark(adjacency: Adjacency, side: Side, words: NDArray[np.uint64]) -> int:
    rows = adjacency.rows
    if isinstance(rows, Rows):
        add_all(rows.targets, side.places, words)
        return 0
    assert isinstance(rows, RowsOnDisk)

    def visit(piece, queue, first, last, most) -> None:
        add_all(piece.targets, side.places, words)

    return rows.every(Team(1), visit).read


def links_bytes(ghosts: int) -> int:
    """Return the bytes of the lists of ghosts, of lists of as many own vertices that other ranks
    hold, and of messages in both directions.
    """
    return (2 * 2 * 4 + 2 * 8) * ghosts
