"""Validation of searches from several sources. The rules are in kernels/judging/programs.py.

Rows of separate searches are read twice: first to count the rows of each source, then to hold the
rows of as many sources as fit the memory limit, while all edges are streamed. A search from all
sources together has one row for each vertex.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging import distances, programs
from ...kernels.judging.distances import check_claims, count_ends, put_claims, take_least
from ...kernels.judging.programs import EACH_RULES, TOGETHER_RULES, check_levels
from ...partition.input.arrow import as_arrow, as_numpy, valid
from ...partition.input.id_types import stored
from ..results.result import Result
from ..results.weights import digest_of
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, read_column, rule_of, verdict_of
from .searches import PlaceLookup, RuleVerdict, Verdict, check_kind, named, rows_at_once

_FEWEST, _MOST = 4, 16
"""Least and most sources whose rows are held at a time; 16 sources fill a line of a processor's
cache.
"""

_CLAIM_BYTES = 2 * 4
"""Bytes for each vertex and each source whose rows are held."""

EACH_BYTES = _FEWEST * _CLAIM_BYTES + 24
"""Bytes for each vertex, beyond those for judging a search."""


class EachVerdict(Verdict):
    sources: int
    rows: int


class TogetherVerdict(Verdict):
    sources: int
    reached: int
    depth: int


class _Rows:
    """Rows of a result, in batches of four arrays. For each row: the place of its source (UNREACHED
    if that is no vertex), the place of its vertex, whether that is a vertex, and the distance (-1
    for none).
    """

    def __init__(self, graph: JudgedEdges, result: Result) -> None:
        self._result = result
        self._rows = rows_at_once(graph.names.id_type)
        self._places = PlaceLookup(graph.names)

    def sources(self) -> Iterator[NDArray[np.uint32]]:
        for batch in self._result.batches(self._rows, ("source",)):
            yield self._sources_of(batch.column("source"))

    def __iter__(self) -> Iterator[tuple[NDArray, NDArray, NDArray, NDArray]]:
        for batch in self._result.batches(self._rows):
            vertex, known = self._places(batch.column("vertex"))
            distance = as_numpy(batch.column("distance").cast(pa.int64()).fill_null(-1))
            # The kernel is compiled for writable arrays; Arrow's are read-only.
            known, distance = (np.require(array, requirements="W") for array in (known, distance))
            yield self._sources_of(batch.column("source")), vertex, known, distance

    def _sources_of(self, column: pa.Array) -> NDArray[np.uint32]:
        """Return the places of a column of sources. Each distinct id is looked up once, since a
        source has many rows.
        """
        column = stored(column)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        places, known = self._places(column.dictionary)
        places = np.append(np.where(known, places, UNREACHED), UNREACHED)
        return places[as_numpy(column.indices.cast(pa.int64()).fill_null(len(places) - 1))]


def validate_each(graph: JudgedEdges, result: Result) -> EachVerdict:
    """Return the verdict on separate searches. Batches of the graph must have undirected edges in
    both directions. Raises InputError if the result is of a graph with another kind of edges
    (directed or not), or with other ids.
    """
    check_kind(result, graph.directed)
    rows = _Rows(graph, result)
    counts, strangers = np.zeros(graph.places, np.int64), 0
    order: list[NDArray[np.uint32]] = []  # for each batch, the source of each run of equal sources
    for source in rows.sources():
        runs = source[np.flatnonzero(np.diff(source, prepend=source[:1] ^ np.uint32(1)))]
        order.append(runs[runs != UNREACHED])
        known = source if len(runs) == len(order[-1]) else source[source != UNREACHED]
        strangers += len(source) - len(known)
        count_ends(known, counts)
    runs = np.concatenate([np.zeros(0, np.uint32), *order])
    runs = runs[np.diff(runs, prepend=UNREACHED) != 0]
    sources = graph.names.index[counts[graph.names.index] > 0]
    together = len(runs) == len(sources)
    rules = _check_sources(graph, result, sources, EACH_RULES)
    claims = _Claims(graph, rows, counts, strangers, _most(graph, result))
    rules = claims.judge(runs if together else sources, together) + rules
    return EachVerdict(**verdict_of(graph, result, rules), sources=len(sources), rows=result.rows)


class _Claims:
    """The values of a result for a group of sources at a time. counts: number of rows of each
    source. strangers: number of rows whose source is no vertex. most: number of levels that were
    searched.
    """

    def __init__(
        self,
        graph: JudgedEdges,
        rows: _Rows,
        counts: NDArray[np.int64],
        strangers: int,
        most: int,
    ) -> None:
        self._graph = graph
        self._rows = rows
        self._counts = counts
        self._most = most
        self._strangers = strangers

    def judge(self, sources: NDArray[np.uint32], together: bool) -> list[RuleVerdict]:
        """Return the rules that the values break.

        together: whether all rows of each source are adjacent, and the sources are in this order.
        If not, all rows are read again for each group of sources.
        """
        graph, width = self._graph, _FEWEST
        while width < min(_MOST, len(sources)) and graph.take(_CLAIM_BYTES * graph.places):
            width += 1
        if len(sources) > width:
            graph.keep_batches()
        claim = np.empty((graph.places, width), np.uint32)
        least = np.empty((graph.places, width), np.uint32)
        slot = np.full(graph.places, UNREACHED)
        bad = np.zeros((2, graph.places), np.bool_)  # by source: bad distances, bad rows at 0
        looked, found = np.zeros(3, np.int64), np.zeros(3, np.int64)
        example: list[int | str | None] = []
        left, batch = iter(self._rows), None
        for first in range(0, len(sources), width):
            group = sources[first : first + width]
            claim.fill(UNREACHED)
            least.fill(UNREACHED)
            slot[group] = np.arange(len(group), dtype=np.uint32)
            wrong = np.zeros((2, len(group)), np.uint8)
            if not together:
                left, batch = iter(self._rows), None
            wanted = looked[0] + self._counts[group].sum()
            while looked[0] < wanted:
                # A batch may also hold rows of the next sources.
                batch = next(left) if batch is None else batch
                put_claims(*batch, slot, self._most, claim, wrong[0], looked)
                batch = batch if looked[0] == wanted else None
            slot[group] = UNREACHED
            for ends in graph.batches():
                take_least(*ends, claim, least)
            check_claims(claim, least, group, self._most, wrong[1], found)
            bad[:, group] = wrong
            if found[0] and not example:
                example = named(graph.names, (int(group[found[1]]), int(found[2])))
        return self._rules(looked, bad, int(found[0]), example)

    def _rules(
        self,
        looked: NDArray[np.int64],
        bad: NDArray[np.bool_],
        wrong: int,
        example: list[int | str | None],
    ) -> list[RuleVerdict]:
        names, rules = self._graph.names, []
        out_of_place = self._strangers + int(looked[1] + looked[2])
        if out_of_place:
            rules.append(rule_of(EACH_RULES, 0, out_of_place, []))
        add_rule(rules, names, EACH_RULES, 1, bad[0][names.index])
        add_rule(rules, names, EACH_RULES, 2, bad[1][names.index])
        if wrong:
            rules.append(rule_of(EACH_RULES, 3, wrong, example))
        return rules


def validate_together(graph: JudgedEdges, result: Result) -> TogetherVerdict:
    """Return the verdict on a search from all sources together. Batches of the graph must have
    undirected edges in both directions. Raises InputError as ``validate_each`` does.
    """
    check_kind(result, graph.directed)
    names, index, most = graph.names, graph.names.index, _most(graph, result)
    distance = np.full(graph.places, -1, np.int32)
    nearest = np.full(graph.places, UNREACHED, np.uint32)
    wrong = np.zeros(graph.places, np.bool_)
    places_of = PlaceLookup(names)
    nobody = np.zeros(graph.places, np.bool_)

    def put_distance(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        told = as_numpy(column.cast(pa.int64()).fill_null(-1))[known]
        wrong[at] = (told > most) | (told < 0) & as_numpy(column.is_valid().cast(pa.uint8()))[known]
        distance[at] = np.clip(told, -1, most)

    def put_nearest(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        place, there = places_of(column)
        nearest[at] = np.where(there, place, UNREACHED)[known]
        nobody[at] = (valid(column) & ~there)[known]

    rules = read_column(graph, result, places_of, "distance", put_distance)
    read_column(graph, result, places_of, "nearest", put_nearest)
    add_rule(rules, names, TOGETHER_RULES, 1, wrong[index])
    sources = index[distance[index] == 0]
    stray = np.zeros(graph.places, np.bool_)
    stray[sources] = nearest[sources] != sources
    add_rule(rules, names, TOGETHER_RULES, 2, stray[index])
    rules += _check_sources(graph, result, sources, TOGETHER_RULES)
    order = np.full(graph.places, UNREACHED, np.uint32)
    order[index] = np.arange(len(index), dtype=np.uint32)
    has_nearest = nearest != UNREACHED
    rank = nearest
    rank[has_nearest] = order[nearest[has_nearest]]
    least, found = np.full(graph.places, UNREACHED, np.uint32), np.zeros(3, np.int64)
    for ends in graph.batches():
        check_levels(*ends, distance, rank, most, least, found)
    beyond, *example = found.tolist()
    if beyond:
        rules.append(rule_of(TOGETHER_RULES, 3, beyond, named(names, tuple(example))))
    unlike = (distance != 0) & (least != rank) | (distance > 0) & (least == UNREACHED)
    unlike |= (distance < 0) & (rank != UNREACHED) | nobody
    add_rule(rules, names, TOGETHER_RULES, 4, unlike[index])
    return TogetherVerdict(
        **verdict_of(graph, result, rules),
        sources=len(sources),
        reached=int(np.count_nonzero(distance >= 0)),
        depth=int(distance.max()),
    )


def _most(graph: JudgedEdges, result: Result) -> int:
    """Return the greatest distance that the search can have found."""
    asked = result.info.options.get("max_depth") if result.info else None
    return min(graph.places, int(asked)) if asked is not None else graph.places


def _check_sources(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32], meanings: dict[int, str]
) -> list[RuleVerdict]:
    """Return the rule that is broken if the result has other sources than its record names, or
    none. sources: those of the result.
    """
    said = result.info.options.get("sources") if result.info else None
    if not len(sources) or (
        said is not None and said != digest_of(graph.names.decode(as_arrow(sources)))
    ):
        return [rule_of(meanings, 2, 1, [])]
    return []


BFS_EACH = Judge(validate_each, vertex_bytes=EACH_BYTES, kernels=(programs, distances))
BFS_TOGETHER = Judge(validate_together, vertex_bytes=24)
