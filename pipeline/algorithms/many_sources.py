"""Searches from many vertices at once: 64 in one pass over the edges, a bit of a word each.

What a vertex has been reached from, and what it was reached from last, are words; a level combines
the words of neighbours by or (Then et al., The More the Merrier: Efficient Multi-Source Graph
Traversal, VLDB 2014). Distances are not kept: closeness and eccentricity add them up by source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...partition.errors import InputError
from ..engines.operations.operations import Operations
from ..engines.operations.program import Counts, Given, Tell
from ..engines.operations.vectors import links_bytes
from ..results.checkpoint import Checkpoint
from ..results.columns import Column
from ..results.names import Names
from ..results.weights import read_weights

WIDTH = 64
"""Searches at once: bits of a word."""


@dataclass(frozen=True)
class Sums:
    """The program: of searches from each of ``sources`` (global ids) how many vertices are reached,
    itself among them, the sum of their distances, and the greatest one.

    along: edges are followed so, or against their direction.
    """

    sources: NDArray[np.uint32]
    along: bool
    columns = ("source", "reached", "total", "farthest")

    def held_bytes(self, counts: Counts) -> int:
        return sums_bytes(counts) + 8 * 4 * len(self.sources)

    def run(self, operations: Operations, checkpoint: Checkpoint | None, tell: Tell) -> Given:
        names, count = self.columns[1:], len(self.sources)
        found = {name: np.zeros(count, np.int64) for name in names}
        searches = Searches(operations)
        done = 0
        saved = checkpoint and checkpoint.load_state(dict.fromkeys(names, np.int64), count)
        if checkpoint and saved:
            checkpoint.go_on_from(saved.done)
            done, found = saved.done, saved.arrays
        batches = -(-count // WIDTH)
        for batch in range(done, batches):
            at = slice(batch * WIDTH, (batch + 1) * WIDTH)
            some = self.sources[at]
            reached, total, farthest = np.zeros((3, len(some)), np.int64)
            reached += 1
            for level, new in searches.levels(some, self.along):
                reached += new
                total += level * new
                farthest[new > 0] = level
            for name, values in zip(names, (reached, total, farthest), strict=True):
                found[name][at] = values
            tell(batch + 1, batches, f"{min(count, (batch + 1) * WIDTH):,} sources")
            if checkpoint and checkpoint.due():
                checkpoint.save_state(batch + 1, found)
        record = {**operations.looked()._asdict(), "directed": operations.directed}
        return Given({"source": self.sources, **found}, record)


class Searches:
    """Of some vertices at once. seen, frontier: words by vertex, of bits by source."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._seen = operations.vector(np.uint64)
        self._frontier = operations.vector(np.uint64, ghosts=True)
        self._came = operations.vector(np.uint64, ghosts=True)

    def levels(
        self, sources: NDArray[np.uint32], along: bool
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Each level, from 1 on, and how many vertices each search reaches there, until none does.

        sources: global ids, each once, WIDTH of them at most.
        """
        operations, count = self._operations, len(sources)
        bits = np.uint64(1) << np.arange(count, dtype=np.uint64)
        for words in (self._seen, self._frontier):
            words.fill(0)
            operations.put(words, sources, bits)
        either = Or(np.uint64(0), np.bitwise_or.reduce(bits))
        level = 0
        while True:
            level += 1
            operations.each(_copy, self._seen, self._came)
            operations.spread(either, self._frontier, self._came, along)
            new = operations.each(_advance, self._seen, self._frontier, self._came)
            if not new.any():
                return
            yield level, new[:count].astype(np.int64)


def _copy(counted: Any, seen: NDArray, came: NDArray) -> int:
    """A row that was reached by all is passed over."""
    came[:] = seen
    return 0


def _advance(counted: Any, seen: NDArray, frontier: NDArray, came: NDArray) -> NDArray[np.int64]:
    """What is new becomes the frontier; how many vertices that are, by source."""
    np.bitwise_xor(came, seen, out=frontier)
    seen[:] = came
    counts = np.zeros(WIDTH, np.int64)
    if counted is not False:
        count_bits(
            frontier if counted is True else np.where(counted, frontier, np.uint64(0)), counts
        )
    return counts


def sums_bytes(counts: Counts) -> int:
    """Of ``Searches``."""
    return 3 * 8 * (counts.own + counts.shared) + 2 * 8 * counts.ghosts + lists_bytes(counts)


def lists_bytes(counts: Counts) -> int:
    """What ranks tell each other, which vertices are delegates, and a level's rows."""
    return links_bytes(counts.ghosts) + counts.own + 4 * (counts.own + counts.shared)


def arrays_of(given: Given, *names: str) -> list[NDArray]:
    """What ``Sums`` found, by source."""
    return [np.asarray(given.values[name]) for name in names]


def column_of(name: str, source: NDArray, value: NDArray, names: Names) -> Column:
    """Values of the sources, by place."""
    values = np.zeros(sum(names.pieces), value.dtype)
    values[source] = value
    return Column(name, values)


@dataclass(frozen=True)
class Sources:
    """Which vertices to start from: all, so many at random, or those of a Parquet file.

    asked: None, a number as typed, or a path. seed: of random ones.
    """

    asked: str | None
    seed: int

    @property
    def count(self) -> int | None:
        return int(self.asked) if self.asked is not None and self.asked.isdecimal() else None

    def told(self, id_type: pa.DataType) -> dict[str, str | int | None]:
        """For the options that decide a result."""
        if self.asked is None:
            return {"sources": None}
        if self.count is None:
            return {"sources": read_weights(Path(self.asked), id_type).digest}
        return {"sources": self.asked, "seed": self.seed}

    def places(self, names: Names) -> NDArray[np.uint32]:
        """In the arrays of a graph. InputError: more than there are, or of another one."""
        n = sum(names.pieces)
        if self.asked is not None and self.count is None:
            return read_weights(Path(self.asked), names.id_type).places(names)
        if self.count is not None and not 0 < self.count <= n:
            raise InputError(f"--sources {self.count}: the graph has {n:,} vertices")
        chosen = np.ones(n, np.bool_)
        if self.count is not None:
            chosen[:] = False
            rng = np.random.default_rng(self.seed)
            chosen[rng.choice(n, self.count, replace=False, shuffle=False)] = True
        places, first = [], 0
        for number, length in enumerate(names.pieces):
            places.append(names.piece(number)[1][chosen[first : first + length]])
            first += length
        return np.concatenate(places)
