"""Searches from many vertices: 64 in one pass over the edges, with a bit of a word each; or, where
they seldom meet, each by itself.

A vertex has two words: the searches that have reached it, and the searches that reached it last. A
level combines the words of neighbours by "or" (Then et al., The More the Merrier: Efficient
Multi-Source Graph Traversal, VLDB 2014). That pays if a word has many bits. On roads a word has
few, and a search by one thread takes less time for a vertex than a pass takes for a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...kernels.base.together import (
    BITS_TO_PAY,
    LEVELS_TO_JUDGE,
    LEVELS_TO_SEE_GROWTH,
    RARE,
    WIDTH,
)
from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...kernels.programs.hops import AHEAD, search_alone
from ..engines.operations.marks import VertexPlaces, marks_bytes
from ..engines.operations.operations import Operations, SlowBits
from ..engines.operations.vectors import Counts, VectorType, links_bytes, vectors_bytes
from ..engines.ranks.edges import Rows

_SEEN = VectorType(np.uint64)
_FRONTIERS = VectorType(np.uint64, ghosts=True)
_WORDS = _SEEN, _FRONTIERS, _FRONTIERS
"""The vectors of ``Searches``."""


class Searches:
    """Searches from some vertices at once.

    seen, frontier: words by vertex, with a bit for each source: the searches that have reached the
    vertex, and those that reached it on the last level. reached: the vertices that may be in
    ``frontier``; None if any may be. meet: whether searches have been in the same vertices often
    enough for this to pay.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self.seen, self.frontier, self._came = map(operations.vector, _WORDS)
        self.reached: VertexPlaces | None = None
        self.meet = True

    def levels(
        self, sources: NDArray[np.uint32], along: bool
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each level, from 1 on, with the number of vertices that each search reaches there,
        until no search reaches any. A level is searched when it is asked for.

        sources: global ids, each once, WIDTH of them at most; they are reached from now on.
        """
        operations, count = self._operations, len(sources)
        bits = np.uint64(1) << np.arange(count, dtype=np.uint64)
        for words in (self.seen, self.frontier, self._came):
            words.fill(0)
            operations.put(words, sources, bits)
        self.meet = True
        return self._levels(bits, along)

    def _levels(
        self, bits: NDArray[np.uint64], along: bool
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        operations, level = self._operations, 0
        places, searching, aside = operations.where(self.frontier), bits, None
        found = words = 0
        frontiers: list[int] = []
        while True:
            level += 1
            # What searches that have ended have reached is asked of no row.
            either = Or(np.uint64(0), np.bitwise_or.reduce(searching))
            reached = operations.spread(either, self.frontier, self._came, along, places, aside)
            if reached is not None:
                self.frontier.fill(0, places)
            vectors, reads = (self.seen, self.frontier), [self._came]
            counts = operations.sum_each(_advance, *vectors, reads=reads, places=reached)
            new = counts[: len(bits)]
            if not new.any():
                return
            searching = bits[new > 0]
            aside = self._aside(
                bits[(new > 0) & (new * RARE < operations.graph.vertices)], searching
            )
            self.reached = reached
            places = operations.where(self.frontier) if reached is None else reached
            found, words = found + int(new.sum()), words + len(places.own)
            if level < LEVELS_TO_JUDGE:
                frontiers.append(len(places.own))
            judged = level >= LEVELS_TO_JUDGE or not _grows(frontiers)
            self.meet = found >= BITS_TO_PAY * words or not judged
            yield level, new.astype(np.int64)

    def _aside(self, slow: NDArray[np.uint64], searching: NDArray[np.uint64]) -> SlowBits | None:
        """Return the bits of ``slow`` searches as SlowBits; None if no search is slow, or if all
        are.
        """
        if not 0 < len(slow) < len(searching):
            return None
        fast_bits = np.bitwise_or.reduce(searching) & ~np.bitwise_or.reduce(slow)
        where = partial(self._operations.where_any, self.frontier, np.bitwise_or.reduce(slow))
        return SlowBits(Or(np.uint64(0), fast_bits), where)


def _grows(frontiers: list[int]) -> bool:
    """Return whether the frontier may come to be much larger. frontiers: its size, by level."""
    levels = len(frontiers)
    return levels < LEVELS_TO_SEE_GROWTH or frontiers[-1] >= 4 * frontiers[levels // 2 - 1]


def _advance(counted: Any, seen: NDArray, frontier: NDArray, came: NDArray) -> NDArray[np.int64]:
    """Make the new vertices the frontier, and return their numbers by source."""
    np.bitwise_xor(came, seen, out=frontier)
    seen[:] = came
    counts = np.zeros(WIDTH, np.int64)
    count_bits(frontier if counted is True else np.where(counted, frontier, np.uint64(0)), counts)
    return counts


class Hops(NamedTuple):
    """Facts of a search by itself. reached: the number of vertices reached, the source among them.
    total, farthest: the sum of their distances, and the greatest distance. harmonic: the sum of 1
    over the distances of all but the source.
    """

    reached: int
    total: int
    farthest: int
    harmonic: float


def search_apart(
    operations: Operations,
    rows: Rows,
    sources: NDArray[np.uint32],
    distances: Sequence[NDArray] | None = None,
    most: int | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Hops] | None:
    """Search from each of ``sources`` by itself. As many searches run at a time as fit in the room
    of ``Searches`` and in spare memory. Returns None if a distance is too great for the numbers
    that are kept; then no more searches begin.

    rows: as ``operations.rows_along`` gives them. distances: for each search an array for its
    distances (hops.py); None if nobody wants them. most: levels; None for all. tell: called with
    the number of searches that are done, by any thread.
    """
    here, kept = operations.graph.vertices, distances is not None
    levels = here if most is None else min(most, here)
    alone = (5 if kept else 9) * here
    room = vectors_bytes(Counts(here, here, 0, 0), _WORDS) + operations.extra_bytes
    threads = min(operations.team.threads, room // alone)
    free: SimpleQueue[tuple[NDArray, NDArray, NDArray]] = SimpleQueue()
    for _ in range(threads):
        queue, seen = np.zeros(here + AHEAD, np.uint32), np.empty(here, np.uint8)
        free.put((np.empty(0 if kept else here, np.uint32), queue, seen))
    done = iter(range(1, len(sources) + 1))  # next() on it is atomic under the GIL
    deeper: list[int] = []

    def search(i: int) -> tuple[Hops, int]:
        if deeper:
            return Hops(0, 0, 0, 0.0), 0
        buffer, queue, seen = free.get()
        distance = buffer if distances is None else distances[i]
        *hops, edges = search_alone(rows.piece, int(sources[i]), levels, distance, queue, seen)
        free.put((buffer, queue, seen))
        tell(next(done))
        if hops[0] < 0:
            deeper.append(i)
        return Hops(*hops), edges

    team = operations.team if threads == operations.team.threads else Team(threads)
    found = team.map(search, range(len(sources)))
    operations.note(sum(edges for _, edges in found))
    return None if deeper else [hops for hops, _ in found]


def sums_bytes(counts: Counts) -> int:
    """Return the bytes of ``Searches``."""
    return vectors_bytes(counts, _WORDS) + lists_bytes(counts)


def lists_bytes(counts: Counts) -> int:
    """Return the bytes of messages between ranks, of which vertices are delegates, and of bitmaps
    and lists of a level's vertices, of the level before, and of its rows in a subgraph.
    """
    here, ghosts, ranks = counts.own + counts.shared, counts.ghosts, counts.ranks
    told = links_bytes(ghosts) + 2 * 12 * counts.shared * (ranks if ranks > 1 else 0)
    marks = 2 * marks_bytes(here + ghosts) + here
    return told + counts.own + marks + 3 * 4 * here + 2 * 4 * ghosts
