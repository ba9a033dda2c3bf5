"""Rounds of minimum spanning forests over all ranks: each takes the least edges that leave trees,
and joins these trees (kernels/programs/spanning.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces.piece import Piece, row_of
from ....kernels.programs import forest
from ....kernels.programs.spanning import (
    NO_PAIR,
    join_least,
    least_of_rows,
    merge_least,
    pack_edges,
    set_words,
    take_least,
    take_of_targets,
    unpack_edges,
)
from ...ranks.communicator import Communicator
from ..ranks.graph import Adjacency, RankGraph
from .tally import How
from .vectors import Counts, Links, Vector

_AT_ONCE = 1 << 18
"""Number of trees whose least edges ranks tell each other at once."""

_EDGES_AT_ONCE = 1 << 16
"""The most edges that a thread looks at before it takes the least ones of their rows."""


class TreeOperations(Protocol):
    """The operations of a rank that trees call (operations.py)."""

    @property
    def graph(self) -> RankGraph: ...
    @property
    def communicator(self) -> Communicator: ...
    @property
    def team(self) -> Team: ...
    @property
    def links(self) -> Links: ...
    def each(
        self, function: Callable[..., None], *vectors: Vector, reads: Sequence[Vector]
    ) -> None: ...
    def ends(self, adjacency: Adjacency, values: Vector) -> tuple[Any, NDArray, Any, NDArray]: ...
    def note_sent(self, sent: int) -> None: ...


class Trees:
    """The trees of a forest, and its edges so far, the same on all ranks. Vertices are numbered.

    tree: uint32 (n,), by number, the name of each vertex's tree. pairs, weights: uint64 and uint32
    (n,), the slots of trees and edges (spanning.py): pairs of numbers, and the bits of weights.
    found: the number of edges. ways: all edges, as values would travel along them to each end.
    """

    def __init__(
        self,
        operations: TreeOperations,
        ways: Iterable[tuple[Adjacency, How]],
        note: Callable[[int, int], None],
    ) -> None:
        self._operations, self._ways, self._note = operations, list(ways), note
        n = operations.graph.vertices
        self.tree = np.arange(n, dtype=np.uint32)
        self.pairs, self.weights = np.full(n, NO_PAIR), np.zeros(n, np.uint32)
        self._marks = np.zeros((2, -(-n // WORD)), np.uint64)
        self._begin, self._slots_lock = True, Lock()
        self.found = 0

    @contextmanager
    def packed(self) -> Iterator[dict[str, NDArray]]:
        """Give what the next round needs, beside ``found``, to be saved or filled. Meanwhile the
        first ``found`` pairs and weights are the edges.
        """
        pack_edges(self.tree, self.weights, self.pairs)
        yield {"tree": self.tree, "pairs": self.pairs, "weights": self.weights}
        unpack_edges(self.tree, self.found, self.weights, self.pairs)

    def find_least(self, words: Vector, numbers: Vector) -> None:
        """Find the least edge that leaves each tree.

        words: uint64, with ghosts, of the vertices; they receive their trees (set_words). numbers:
        uint32.
        """
        operations, begin = self._operations, self._begin

        def set_some(word: Any, number: Any) -> None:
            set_words(word, number, self.tree, begin)

        operations.each(set_some, words, reads=[numbers])
        operations.links.expand(words)
        self._begin = False
        # One way has the rows of both ends of each edge, whole on a single rank.
        every = len(self._ways) == 1 and operations.communicator.size == 1
        for adjacency, how in self._ways:
            operations.communicator.check()
            ends = operations.ends(adjacency, words)
            visit = self._visit_rows(ends, every) if how == "gather" else self._visit_targets(ends)
            visits = adjacency.rows.every(operations.team, visit)
            self._note(int(adjacency.rows.offsets[-1]), visits.read)
        if operations.communicator.size > 1:
            self._tell_least()

    def _visit_rows(self, ends: tuple[Any, ...], every: bool) -> Callable[..., None]:
        def visit(piece: Piece, *_: Any) -> None:
            for part in piece.parts(_EDGES_AT_ONCE):
                first, last = (row_of(part.offsets, e) for e in (part.begin, part.end - 1))
                room = min(last - first + 1, len(part.targets))
                least = np.empty(room, np.uint64), np.empty(room, np.uint64)
                count = least_of_rows(part, *ends, every, *least)
                with self._slots_lock:
                    take_least(*least, count, self.weights, self.pairs)

        return visit

    def _visit_targets(self, ends: tuple[Any, ...]) -> Callable[..., None]:
        def visit(piece: Piece, *_: Any) -> None:
            with self._slots_lock:
                take_of_targets(piece, *ends, self.weights, self.pairs)

        return visit

    def _tell_least(self) -> None:
        """Tell all ranks the least edges of trees, and take theirs."""
        communicator, n = self._operations.communicator, len(self.tree)
        for first in range(0, n, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, n))
            is_tree = self.tree[some] == np.arange(some.start, some.stop, dtype=np.uint32)
            trees = first + np.flatnonzero(is_tree & (self.pairs[some] != NO_PAIR))
            message = [trees.astype(np.uint32), self.weights[trees], self.pairs[trees]]
            came = communicator.exchange([message] * communicator.size)
            sent = sum(part.nbytes for part in message)
            self._operations.note_sent((communicator.size - 1) * sent)
            for rank, theirs in enumerate(came):
                if rank != communicator.rank:
                    merge_least(*theirs, self.weights, self.pairs)

    def join(self) -> int:
        """Add the edges that were found to the forest, and join trees. Returns how many edges are
        added.
        """
        added = join_least(self.tree, self.weights, self.pairs, *self._marks)
        team = self._operations.team
        team.run(forest.flatten, self.tree, no_turns(team.threads))
        self.found += added
        return added

    def edges(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the pairs of the forest, rising, and the bits of their weights. Everything else is
        freed: no round can follow.
        """
        pack_edges(self.tree, self.weights, self.pairs)
        pairs, weights = self.pairs[: self.found], self.weights[: self.found]
        del self.tree, self.pairs, self.weights
        rising = pairs.argsort().astype(np.uint32)
        pairs = pairs[rising]
        return pairs, weights[rising]


def trees_bytes(counts: Counts) -> int:
    """Return the bytes that trees hold on a rank, and messages."""
    tree, slots = 4, 8 + 4
    messages = 2 * (counts.ranks if counts.ranks > 1 else 0) * (4 + 4 + 8) * _AT_ONCE
    marks = 2 * 8 * -(-counts.vertices // WORD)
    return counts.vertices * (tree + slots) + marks + messages


def sorting_bytes(counts: Counts) -> int:
    """Return the bytes that ``Trees.edges`` holds."""
    slots, order = 8 + 4, 8 + 4  # 64 bits of the order give way to pairs that are in order
    return (slots + order) * counts.vertices
