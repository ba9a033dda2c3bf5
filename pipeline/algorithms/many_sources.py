"""Questions about many vertices, each answered by a search from it: closeness, harmonic centrality
and eccentricity add distances up by source and keep none.

A sum is added up level by level, as the number of vertices that the level has found, which is the
same on every engine, times what each counts. So sums of fractions are the same, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.together import WIDTH
from ...kernels.gpu_programs import searches as on_device
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.gather import count_bits
from ...kernels.pieces.operators import Or
from ...kernels.programs import hops
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy, compute
from ...partition.input.id_types import shown_id
from ...partition.store.manifest import GraphInfo
from ..engines.operations.forests import EdgeCounts
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import Program, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import ANSWERED, Saving
from ..engines.operations.vectors import Counts
from ..engines.ranks.edges import Rows
from ..questions.bfs import SearchesRecord
from ..questions.facts import SourcesRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.weights import NamedVertices
from .run import Answer
from .searches import Searches, search_apart, sums_bytes

SOURCE_BYTES = 20
"""Bytes for each source: its place, twice; its number among the sources that are left; and whether
it is left.
"""

SUMS = {"reached": np.int64, "total": np.int64, "farthest": np.int64, "harmonic": np.float64}
"""The sums of a search by name, with the types of their arrays. (Hops in searches.py explains
them.)
"""

SUM_BYTES = SOURCE_BYTES + 8 * len(SUMS)
"""Bytes for each source, with its sums."""


SOURCE_IDS = "source_ids"
"""The option of a result that lists sources, in JSON."""

_MOST_IDS = 1 << 10
_MOST_TEXT = 1 << 14
"""Most characters of the sources' ids, which stand in the metadata of each file of the result."""


@dataclass(frozen=True)
class DistanceSumsProgram:
    """The program: searches from each of ``sources`` (global ids). It gives the sums of each.

    along: whether edges are followed in their direction, or against it. dealt: which rank's part
    this is, of how many ranks.
    """

    sources: NDArray[np.uint32]
    along: bool
    dealt: tuple[int, int] = (0, 1)
    columns = ("source", *SUMS)
    weighted = wants_degrees = scans_once = False
    calls = Calls((Or,), (hops, count_bits))

    @property
    def rows(self) -> ReadRows:
        return ReadRows.BY_SOURCE if self.along else ReadRows.BY_TARGET

    def held_bytes(self, counts: Counts) -> int:
        return sums_bytes(counts) + SUM_BYTES * len(self.sources)

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        found, answered = self._nothing(), nothing_answered(self.sources)
        state = {**found, ANSWERED: answered}
        searches: Searches | None = Searches(operations)
        rows = operations.rows_along(self.along)
        operations.load(state)
        left = left_of(answered)
        done = len(answered) - len(left)
        for first in range(0, len(left), WIDTH):
            at = left[first : first + WIDTH]
            batch = self.sources[at]
            sums = searches and _sums_together(searches, batch, self.along, rows)
            if sums is None:
                assert rows is not None
                searches = None  # for good; its room is used
                apart = search_apart(operations, rows, batch)
                assert apart is not None  # 32 bits are enough
                sums = zip(*apart, strict=True)
            for into, values in zip(found.values(), sums, strict=True):
                into[at] = values
            answered[at] = True
            done += len(at)
            tell(done, len(answered), "")
            if operations.due():
                operations.save(done, state)
        record = {**operations.edge_counts()._asdict(), "directed": operations.directed}
        return ProgramResult({"source": self.sources, **found}, record)

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices, entries, distances=False)

    def compile_on(self, graph: ProgramGraph) -> None:
        on_device.warm_up(graph)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        found, answered = self._nothing(), nothing_answered(self.sources)
        state = {**found, ANSWERED: answered}
        saving.load(state)
        done, left = int(answered.sum()), left_of(answered, *self.dealt)
        searches = on_device.GpuSearches(graph, max(1, len(left)))
        apart = False
        while len(left):
            at, left = np.split(left, [WIDTH * (searches.batches_apart if apart else 1)])
            batch = self.sources[at]
            met = None if apart else searches.together(batch)
            apart = met is None or met.outcome == on_device.SELDOM_MEET
            hops = searches.apart(batch) if met is None or apart else met.hops
            assert hops is not None  # 32 bits are enough
            for name, values in found.items():
                values[at] = hops[name]
            answered[at] = True
            done += len(at)
            tell(done, len(answered), "")
            if saving.due():
                saving.save(done, state)
        record = {**EdgeCounts(edges=searches.edges)._asdict(), "directed": not graph.twice}
        return ProgramResult({"source": self.sources, **found}, record)

    def _nothing(self) -> dict[str, NDArray]:
        return no_sums(len(self.sources))

    def of_rank(self, rank: int, ranks: int) -> DistanceSumsProgram:
        return replace(self, dealt=(rank, ranks))

    def put_together(self, given: ProgramResult, next_result: ProgramResult) -> ProgramResult:
        """Add up the results of ranks: where another rank has answered, a value is 0."""
        values = {name: np.asarray(array) for name, array in given.values.items()}
        for name in SUMS:
            values[name] += np.asarray(next_result.values[name])
        edges = given.record["edges"] + next_result.record["edges"]
        return ProgramResult(values, {**given.record, "edges": edges})


def no_sums(sources: int) -> dict[str, NDArray]:
    """Return the sums of some searches by name, all 0."""
    return {name: np.zeros(sources, kind) for name, kind in SUMS.items()}


def nothing_answered(sources: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return np.zeros(len(sources), np.bool_)


def left_of(answered: NDArray[np.bool_], rank: int = 0, ranks: int = 1) -> NDArray[np.int64]:
    """Return which sources are left. With several ranks, return one rank's part of these."""
    return np.flatnonzero(~answered)[rank::ranks]


def _sums_together(
    searches: Searches, sources: NDArray[np.uint32], along: bool, rows: Rows | None
) -> Iterable[NDArray] | None:
    """Search together. Returns the sums by source, in the order of SUMS; or None if searches seldom
    meet and there are ``rows`` to search apart.
    """
    reached, total, farthest, harmonic = sums = no_sums(len(sources)).values()
    reached += 1
    for level, new in searches.levels(sources, along):
        if rows is not None and not searches.meet:
            return None
        reached += new
        total += level * new
        farthest[new > 0] = level
        harmonic += new / level
    return sums


@dataclass(frozen=True)
class Sources:
    """The vertices to start from: a number of random ones, named ones, or all.

    seed: for the random choice.
    """

    count: int | None
    seed: int
    named: NamedVertices | None = None

    def told(self, id_type: pa.DataType) -> dict[str, str | int | None]:
        """Return the sources as options that decide a result."""
        if self.named is not None:
            return {"sources": self.named.read(id_type).digest}
        if self.count is None:
            return {"sources": None}
        return {"sources": str(self.count), "seed": self.seed}

    def told_by_id(self, id_type: pa.DataType) -> dict[str, str | int | None]:
        """Return the options, and the ids of named sources, if they are not too many: a result
        whose rows do not show its sources says them itself.
        """
        told: dict[str, str | int | None] = {**self.told(id_type)}
        if self.named is not None:
            ids = self.named.read(id_type).vertex
            if len(ids) <= _MOST_IDS:
                text = json.dumps(
                    [shown_id(value) for value in ids.to_pylist()], separators=(",", ":")
                )
                if len(text) <= _MOST_TEXT:
                    told[SOURCE_IDS] = text
        return told

    def most(self, vertices: int) -> int:
        return vertices if self.count is None else self.count

    def places(self, names: Names) -> NDArray[np.uint32]:
        """Return the places of the sources in the arrays of a graph. Raises InputError if there are
        more sources than vertices, or if a named source is not in the graph.
        """
        n = sum(names.pieces)
        if self.named is not None:
            return self.named.read(names.id_type).places(names)
        if self.count is not None and not 0 < self.count <= n:
            raise InputError(f"--sources {self.count}: the graph has only {n:,} vertices")
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


def sources_of(sources: int | NamedVertices | None, seed: int) -> Sources:
    """Return the sources of a question: all vertices, named ones, or a number of random ones."""
    return Sources(sources, seed) if isinstance(sources, int) else Sources(None, seed, sources)


class Distances(NamedTuple):
    """Sums of distances by source, all of one length, and facts of the graph."""

    reached: NDArray[np.int64]
    total: NDArray[np.int64]
    farthest: NDArray[np.int64]
    harmonic: NDArray[np.float64]
    vertices: int
    directed: bool


@dataclass(frozen=True)
class DistancesQuestion:
    """The question that is answered for each source by its distances. sources: the vertices to tell
    of. along: as in DistanceSumsProgram. value: the answer for each source, and other facts for the
    record. more: options beside the sources that decide the result.
    """

    name: str
    sources: Sources
    along: bool
    value: Callable[[Distances], tuple[NDArray, Mapping[str, Any]]]
    more: Mapping[str, Option] = field(default_factory=dict)
    step = "source"
    weighted = False

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {**self.sources.told(id_type), **self.more}

    def program(self, names: Names, info: GraphInfo) -> Program:
        return DistanceSumsProgram(self.sources.places(names), self.along)

    def calls(self, weighted: bool) -> Calls:
        return DistanceSumsProgram.calls

    def held_bytes(self, counts: Counts) -> int:
        return sums_bytes(counts) + SUM_BYTES * self.sources.most(counts.vertices)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        source = np.asarray(given.values["source"])
        sums = {name: np.asarray(given.values[name]) for name in SUMS}
        vertices, directed = sum(names.pieces), given.record["directed"]
        value, facts = self.value(Distances(**sums, vertices=vertices, directed=directed))
        values = np.zeros(vertices, value.dtype)
        values[source] = value
        record = {**sources_record(len(source), method, given), **facts}
        return Answer((Column(self.name, values),), {self.name: record}, only=source)


def sources_record(sources: int, method: str, given: ProgramResult) -> SourcesRecord:
    return SourcesRecord(
        sources=sources,
        method=method,
        edges_examined=given.record["edges"],
        bytes_read=given.record["read"],
        bytes_sent=given.record["sent"],
    )


def sources_by_id(named: NamedVertices, names: Names) -> tuple[pa.Array, NDArray[np.uint32]]:
    """Return user ids of the sources, rising, and their places in the arrays of a graph. Raises
    InputError for ids that the graph does not have.
    """
    given = named.read(names.id_type)
    order = compute("array_sort_indices", given.vertex)
    return given.vertex.take(order), given.places(names)[as_numpy(order)]


def searches_record(
    sources: int, max_depth: int | None, method: str, given: ProgramResult
) -> SearchesRecord:
    return SearchesRecord(
        **sources_record(sources, method, given),
        max_depth=max_depth,
        reached=given.record["reached"],
        depth=given.record["depth"],
    )


def some_places(count: int) -> NDArray[np.uint32]:
    """Return the places of ``count`` sources for a plan. It makes no difference to a plan which
    vertices they are.
    """
    return np.broadcast_to(np.uint32(0), count)


def planned(info: GraphInfo) -> DistanceSumsProgram:
    """Return the program for a plan: searches from all vertices."""
    return DistanceSumsProgram(some_places(info.vertices), along=True)
