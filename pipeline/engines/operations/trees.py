"""Rounds of minimum spanning forests over all ranks: each takes the least edges that leave trees,
and joins these trees (kernels/programs/spanning.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.programs import forest
from ....kernels.programs.spanning import NO_PAIR, join_least, merge_least, set_words, take_least
from ...ranks.communicator import Communicator
from .vectors import Counts, Vector

_AT_ONCE = 1 << 18
"""Number of trees whose least edges ranks tell each other at once."""


class Trees:
    """The trees of a forest, and its edges so far, the same on all ranks. Vertices are numbered.

    tree: uint32 (n,), by number, the least vertex of each vertex's tree. pairs, weights: uint64 and
    uint32 (n,): room for edges, of which ``found`` are there, in any order: pairs of numbers, and
    the bits of weights. each: of the operations. note_sent: called with the bytes that this rank
    sends.
    """

    def __init__(
        self,
        vertices: int,
        communicator: Communicator,
        team: Team,
        each: Callable[..., None],
        note_sent: Callable[[int], None],
    ) -> None:
        self._communicator, self._team = communicator, team
        self._each, self._note_sent = each, note_sent
        self.tree = np.arange(vertices, dtype=np.uint32)
        self.pairs, self.weights = np.zeros(vertices, np.uint64), np.zeros(vertices, np.uint32)
        self._least_weights = np.zeros(vertices, np.uint32)
        self._least_pairs = np.full(vertices, NO_PAIR)
        self.found = 0

    @property
    def saved(self) -> dict[str, NDArray]:
        """Return what the next round needs, beside ``found``."""
        return {"tree": self.tree, "pairs": self.pairs, "weights": self.weights}

    def set_words(self, words: Vector, least: Vector, numbers: Vector) -> None:
        """Set the word of each vertex, as spanning.set_words does. least: the ``words`` that
        ``join_least`` was given last; zeros before the first round.
        """

        def set_some(word: Any, of_least: Any, number: Any) -> None:
            set_words(word, of_least, number, self.tree)

        self._each(set_some, words, reads=[least, numbers])

    def join_least(self, words: Vector, numbers: Vector) -> None:
        """Add the least edge that leaves each tree, and join the trees at its ends.

        words: uint64, of each vertex its least edge that leaves its tree, as spanning.take_least
        has them. numbers: uint32, of the vertices.
        """
        least = self._least_weights, self._least_pairs
        take_least(words.own, numbers.own, self.tree, *least)
        if self._communicator.rank == 0:  # all ranks have the same values of delegates
            take_least(words.shared, numbers.shared, self.tree, *least)
        if self._communicator.size > 1:
            self._tell_least()
        self.found = join_least(self.tree, *least, self.weights, self.pairs, self.found)
        self._team.run(forest.flatten, self.tree, no_turns(self._team.threads))

    def _tell_least(self) -> None:
        """Tell all ranks the least edges of trees, and take theirs."""
        communicator = self._communicator
        weights, pairs = self._least_weights, self._least_pairs
        for first in range(0, len(pairs), _AT_ONCE):
            some = first + np.flatnonzero(pairs[first : first + _AT_ONCE] != NO_PAIR)
            message = [some.astype(np.uint32), weights[some], pairs[some]]
            came = communicator.exchange([message] * communicator.size)
            sent = sum(part.nbytes for part in message)
            self._note_sent((communicator.size - 1) * sent)
            for rank, theirs in enumerate(came):
                if rank != communicator.rank:
                    merge_least(*theirs, weights, pairs)


def trees_bytes(counts: Counts) -> int:
    """Return the bytes that trees hold on a rank, and messages."""
    trees, edges, least = 4, 8 + 4, 4 + 8
    messages = 2 * (counts.ranks if counts.ranks > 1 else 0) * (4 + 4 + 8) * _AT_ONCE
    return counts.vertices * (trees + edges + least) + messages
