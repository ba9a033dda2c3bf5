"""Searches from many vertices at once: 64 in one pass over the edges, a bit of a word each.

What a vertex has been reached from, and what it was reached from last, are words; a level combines
the words of neighbours by or (Then et al., The More the Merrier: Efficient Multi-Source Graph
Traversal, VLDB 2014). Closeness and eccentricity add distances up by source and keep none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ...partition.input.edges import EdgeList
from ...partition.store.manifest import GraphInfo
from ..engines.operations.marks import Places, marks_bytes
from ..engines.operations.operations import Operations
from ..engines.operations.program import Counts, Given, Program, ProgramEngine, Tell
from ..engines.operations.vectors import links_bytes
from ..results.checkpoint import Checkpoint
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.weights import NamedVertices, VertexFile
from ..run.execute import Executor
from ..run.records import SearchesRecord, SourcesRecord
from .run import Answer

WIDTH = 64
"""Searches at once: bits of a word."""

SOURCE_BYTES = 16
"""Of a source: its place, and what finds it."""


@dataclass(frozen=True)
class Sums:
    """The program: of searches from each of ``sources`` (global ids) how many vertices are reached,
    itself among them, the sum of their distances, and the greatest one.

    along: edges are followed so, or against their direction.
    """

    sources: NDArray[np.uint32]
    along: bool
    columns = ("source", "reached", "total", "farthest")
    weighted = False
    kernels = ()

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
    """Of some vertices at once.

    seen, frontier: words by vertex, of bits by source: what each has been reached from, and what on
    the last level. reached: the vertices that may be in ``frontier``; None for any.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self.seen = operations.vector(np.uint64)
        self.frontier = operations.vector(np.uint64, ghosts=True)
        self._came = operations.vector(np.uint64, ghosts=True)
        self.reached: Places | None = None

    def levels(
        self, sources: NDArray[np.uint32], along: bool
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Each level, from 1 on, and how many vertices each search reaches there, until none does:
        it is searched as it is asked for.

        sources: global ids, each once, WIDTH of them at most; they are reached from now on.
        """
        operations, count = self._operations, len(sources)
        bits = np.uint64(1) << np.arange(count, dtype=np.uint64)
        for words in (self.seen, self.frontier, self._came):
            words.fill(0)
        for words in (self.seen, self.frontier):
            operations.put(words, sources, bits)
        operations.each(_copy, self.seen, self._came)
        return self._levels(bits, along)

    def _levels(
        self, bits: NDArray[np.uint64], along: bool
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        operations, level = self._operations, 0
        places, searching = operations.where(self.frontier), bits
        while True:
            level += 1
            # What searches that have ended have reached is asked of no row.
            either = Or(np.uint64(0), np.bitwise_or.reduce(searching))
            reached = operations.spread(either, self.frontier, self._came, along, places)
            if reached is not None:
                self.frontier.fill(0, places)
            vectors, reads = (self.seen, self.frontier), [self._came]
            counts = operations.sum_each(_advance, *vectors, reads=reads, places=reached)
            new = counts[: len(bits)]
            if not new.any():
                return
            searching = bits[new > 0]
            self.reached = reached
            yield level, new.astype(np.int64)
            places = operations.where(self.frontier) if reached is None else reached


def _copy(seen: NDArray, came: NDArray) -> None:
    """A row that was reached by all is passed over."""
    came[:] = seen


def _advance(counted: Any, seen: NDArray, frontier: NDArray, came: NDArray) -> NDArray[np.int64]:
    """What is new becomes the frontier; how many vertices that are, by source."""
    np.bitwise_xor(came, seen, out=frontier)
    seen[:] = came
    counts = np.zeros(WIDTH, np.int64)
    count_bits(frontier if counted is True else np.where(counted, frontier, np.uint64(0)), counts)
    return counts


def sums_bytes(counts: Counts) -> int:
    """Of ``Searches``."""
    return 3 * 8 * (counts.own + counts.shared) + 2 * 8 * counts.ghosts + lists_bytes(counts)


def lists_bytes(counts: Counts) -> int:
    """What ranks tell each other, which vertices are delegates, and bitmaps and lists of a level's
    vertices, of the one before, and of its rows in a subgraph.
    """
    here, ghosts, ranks = counts.own + counts.shared, counts.ghosts, counts.ranks
    told = links_bytes(ghosts) + 2 * 12 * counts.shared * (ranks if ranks > 1 else 0)
    marks = 2 * marks_bytes(here + ghosts) + here
    return told + counts.own + marks + 3 * 4 * here + 2 * 4 * ghosts


@dataclass(frozen=True)
class Sources:
    """Which vertices to start from: so many at random, those of a file, or all. seed: of random
    ones.
    """

    count: int | None
    seed: int
    file: VertexFile | None = None

    def told(self, id_type: pa.DataType) -> dict[str, str | int | None]:
        """For the options that decide a result."""
        if self.file is not None:
            return {"sources": self.file.read(id_type).digest}
        if self.count is None:
            return {"sources": None}
        return {"sources": str(self.count), "seed": self.seed}

    def most(self, vertices: int) -> int:
        return vertices if self.count is None else self.count

    def places(self, names: Names) -> NDArray[np.uint32]:
        """In the arrays of a graph. InputError: more than there are, or of another one."""
        n = sum(names.pieces)
        if self.file is not None:
            return self.file.read(names.id_type).places(names)
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


class Distances(NamedTuple):
    """What ``Sums`` found, by source, and the graph's vertices: int64, all of one length."""

    reached: NDArray[np.int64]
    total: NDArray[np.int64]
    farthest: NDArray[np.int64]
    vertices: int
    directed: bool


@dataclass(frozen=True)
class ByDistances:
    """The question that is answered for each source by its distances. sources: the vertices to tell
    of. along: as in Sums. value: of each of them, and what the record says besides.
    """

    name: str
    sources: Sources
    along: bool
    value: Callable[[Distances], tuple[NDArray, Mapping[str, Any]]]
    step = "batch of sources"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {**self.sources.told(id_type)}

    def program(self, names: Names, info: GraphInfo) -> Program:
        return Sums(self.sources.places(names), self.along)

    def held_bytes(self, counts: Counts) -> int:
        return sums_bytes(counts) + 8 * 4 * self.sources.most(counts.vertices)

    def engines_of_edges(
        self, edges: EdgeList, directed: bool, executor: Executor
    ) -> Sequence[ProgramEngine]:
        return []  # many passes want rows

    def answer(self, given: Given, names: Names, method: str) -> Answer:
        source, reached, total, farthest = (np.asarray(given.values[c]) for c in Sums.columns)
        vertices, directed = sum(names.pieces), given.record["directed"]
        value, more = self.value(Distances(reached, total, farthest, vertices, directed))
        values = np.zeros(vertices, value.dtype)
        values[source] = value
        record = {**sources_record(len(source), method, given), **more}
        return Answer((Column(self.name, values),), {self.name: record}, only=source)


def sources_record(sources: int, method: str, given: Given) -> SourcesRecord:
    return SourcesRecord(
        sources=sources,
        method=method,
        edges_examined=given.record["edges"],
        bytes_read=given.record["read"],
        bytes_sent=given.record["sent"],
    )


def sources_by_id(named: NamedVertices, names: Names) -> tuple[pa.Array, NDArray[np.uint32]]:
    """User ids, rising, and their places in the arrays of a graph. InputError for others."""
    given = named.read(names.id_type)
    order = pc.call_function("array_sort_indices", [given.vertex])
    return given.vertex.take(order), given.places(names)[as_numpy(order)]


def searches_record(
    sources: int, max_depth: int | None, method: str, given: Given
) -> SearchesRecord:
    return SearchesRecord(
        **sources_record(sources, method, given),
        max_depth=max_depth,
        reached=given.record["reached"],
        depth=given.record["depth"],
    )
