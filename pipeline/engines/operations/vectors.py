"""Vectors: a value for each vertex, split over ranks, and what ranks tell each other of them.

A rank has values of its *own* vertices, of *shared* ones (the delegates, on all ranks alike), and
of *ghosts*, which others own and its edges lead to. Owners *expand* values to those that hold
ghosts; holders *fold* theirs into the owners'. Both go by lists that ranks agree on once: of each
segment the vertices that edges here touch.
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
"""Values that a thread fills."""


class Counts(NamedTuple):
    """Numbers of vertices: of the graph, and of a rank's segments. ranks: how many there are."""

    vertices: int
    own: int
    shared: int
    ghosts: int
    ranks: int = 1


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
"""Values that were held, values that came: values."""


@dataclass
class Vector:
    """own, shared: by place; shared: (0,) of a rank that is alone. ghosts: by segment."""

    own: NDArray
    shared: NDArray
    ghosts: dict[int, NDArray] = field(default_factory=dict)

    def at(self, segment: Vertices | Ghosts, graph: RankGraph) -> NDArray:
        if segment is graph.own:
            return self.own
        return self.shared if segment is graph.shared else self.ghosts[id(segment)]

    def fill(self, value: Any, places: VertexPlaces | None = None) -> None:
        """places: of the vertices that are meant; None for all, ghosts too."""
        if places is not None:
            self.own[places.own] = self.shared[places.shared] = value
            return
        for values in (self.own, self.shared, *self.ghosts.values()):
            values[:] = value


def make_vector(graph: RankGraph, vector: VectorType, value: Any, team: Team) -> Vector:
    """Return a vector that has ``value`` everywhere."""

    def filled(count: int) -> NDArray:
        # Memory that is touched for the first time takes longest: zeros are not, and others are by
        # all threads.
        if not value:
            return np.zeros(count, vector.dtype)
        values = np.empty(count, vector.dtype)
        parts = [values[first : first + _AT_ONCE] for first in range(0, count, _AT_ONCE)]
        team.map(lambda part: np.copyto(part, value), parts)
        return values

    shared = 0 if graph.shared is None else graph.shared.count
    some = graph.every_ghost if vector.ghosts else []
    ghosts_by_segment = {id(segment): filled(segment.count) for segment in some}
    return Vector(filled(graph.own.count), filled(shared), ghosts_by_segment)


@dataclass(frozen=True)
class _Link:
    """Vertices of a partition that another rank owns. ghost, places: of them here, in a segment of
    ghosts; of the rank that owns them, in its own one, and ``ghost`` is 0.
    """

    ghost: int
    places: NDArray[np.uint32]


class Links:
    """Which values go from rank to rank. Of a rank that is alone there are none."""

    def __init__(self, graph: RankGraph, communicator: Communicator) -> None:
        self._communicator = communicator
        size = communicator.size
        self._held: list[list[_Link]] = [[] for _ in range(size)]  # here, by their owner
        self._asked: list[list[_Link]] = [[] for _ in range(size)]  # own ones, by who holds them
        self.sent = self.read = 0
        if size > 1:
            self._agree(graph)

    def _agree(self, graph: RankGraph) -> None:
        """Tell owners which of their vertices are touched here."""
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
        """Give ghosts the values of their owners."""
        if self._communicator.size == 1:
            return
        messages = [[values.own[link.places] for link in some] for some in self._asked]
        for some, message in zip(self._held, self._send(messages), strict=True):
            for link, came in zip(some, message, strict=True):
                values.ghosts[link.ghost][link.places] = came

    def fold(self, values: Vector, fold: Fold) -> None:
        """Fold ghosts into their owners' values, rank after rank; and shared ones into each
        other's, which are the same on all ranks then.
        """
        if self._communicator.size == 1:
            return
        ghosts = values.ghosts
        messages = [[ghosts[link.ghost][link.places] for link in some] for some in self._held]
        for some, message in zip(self._asked, self._send(messages), strict=True):
            for link, came in zip(some, message, strict=True):
                values.own[link.places] = fold(values.own[link.places], came)
        if len(values.shared):
            values.shared[:] = self._fold_shared(values.shared, fold)

    def expand_marked(self, values: Vector, marked: Marks) -> None:
        """Give ghosts the values of their owners' marked vertices, and marks."""
        if self._communicator.size == 1:
            return
        messages: list[Message] = []
        for some in self._asked:
            messages.append([])
            for link in some:
                at = where(marked.own, link.places)
                messages[-1] += [at.astype(np.uint32), values.own[link.places[at]]]
        for some, message in zip(self._held, self._send(messages), strict=True):
            for link, at, came in zip(some, message[::2], message[1::2], strict=True):
                places = link.places[at]
                values.ghosts[link.ghost][places] = came
                add(marked.ghosts[link.ghost], places)

    def fold_marked(self, values: Vector, marked: Marks, fold: Fold) -> None:
        """Fold the marked ones: ghosts into their owners' values, shared ones into each other's, by
        what may combine a value twice. Owners mark what has become another value, all ranks what
        did of shared ones; marks of ghosts are gone.
        """
        if self._communicator.size == 1:
            return
        shared = bitmap.members(marked.shared)
        messages: list[Message] = []
        for some in self._held:
            messages.append([shared, values.shared[shared]])
            for link in some:
                at = where(marked.ghosts[link.ghost], link.places)
                ghosts = values.ghosts[link.ghost]
                messages[-1] += [at.astype(np.uint32), ghosts[link.places[at]]]
        for words in marked.ghosts.values():
            words[:] = 0
        for some, message in zip(self._asked, self._send(messages), strict=True):
            _fold_into(values.shared, marked.shared, message[0], message[1], fold)
            for link, at, came in zip(some, message[2::2], message[3::2], strict=True):
                _fold_into(values.own, marked.own, link.places[at], came, fold)

    def _fold_shared(self, values: NDArray, fold: Fold) -> NDArray:
        """Each rank folds a part of all ranks' values, and tells all."""
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
    """Bitmap of the places in a segment that edges here lead from or to; bytes read for that."""
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
    """Return the bytes of lists of ghosts, of as many own vertices that others hold, and of
    messages there and back.
    """
    return (2 * 2 * 4 + 2 * 8) * ghosts
