"""Validation of searches from several sources (kernels/pieces/check.py has the rules).

Rows of each search for itself are read twice, those of a few sources held; of searches together a
row a vertex.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.pieces.check import EACH_RULES, TOGETHER_RULES, check_levels
from ...partition.input.arrow import as_arrow, as_numpy
from ...partition.input.id_types import stored
from ..results.result import Result
from ..results.weights import digest_of
from .programs import (
    JudgedEdges,
    add_rule,
    distances_anew,
    read_column,
    rule_of,
    verdict_of,
)
from .searches import Places, RuleVerdict, Verdict, check_kind, named, rows_at_once

_FOUND_ANEW = 4
"""Sources, at most: each takes some scans of all edges, and four bytes a vertex."""


class EachVerdict(Verdict):
    """found_anew: sources whose distances were."""

    sources: int
    rows: int
    found_anew: int


class TogetherVerdict(Verdict):
    sources: int
    reached: int
    depth: int


class _Rows:
    """Of a result, some at a time: places of source and vertex, distance (-1: none); and how many
    name what is no vertex.
    """

    def __init__(self, graph: JudgedEdges, result: Result) -> None:
        self._result = result
        self._rows = rows_at_once(graph.names.id_type)
        self._places = Places(graph.names)
        self.strangers = 0

    def __iter__(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray]]:
        self.strangers = 0
        for batch in self._result.batches(self._rows):
            few = stored(batch.column("source"))
            if not pa.types.is_dictionary(few.type):
                few = few.dictionary_encode()
            at, known = self._places(few.dictionary)
            which = as_numpy(few.indices.fill_null(0))
            vertex, there = self._places(batch.column("vertex"))
            good = there & known[which] & as_numpy(few.is_valid().cast(pa.uint8())).view(np.bool_)
            self.strangers += int(np.count_nonzero(~good))
            distance = as_numpy(batch.column("distance").cast(pa.int64()).fill_null(-1))
            yield at[which][good], vertex[good], distance[good]


def validate_each(graph: JudgedEdges, result: Result) -> EachVerdict:
    """InputError where the result is of another kind of edges, or of other ids."""
    check_kind(result, graph.directed)
    names, index, most = graph.names, graph.names.index, _most(graph, result)
    rows = _Rows(graph, result)
    counts, zeros = np.zeros(graph.places, np.int64), np.zeros(graph.places, np.int64)
    out = np.zeros(graph.places, np.bool_)
    for source, vertex, distance in rows:
        places, some = np.unique(source, return_counts=True)
        counts[places] += some
        zero = distance == 0
        np.add.at(zeros, source[zero], np.where(source == vertex, 1, 2)[zero])
        out[source[(distance < 0) | (distance > most)]] = True
    rules: list[RuleVerdict] = []
    if rows.strangers:
        rules.append(rule_of(EACH_RULES, 0, rows.strangers, []))
    add_rule(rules, names, EACH_RULES, 1, out[index])
    sources = index[counts[index] > 0]
    add_rule(rules, names, EACH_RULES, 2, ((counts > 0) & (zeros != 1))[index])
    rules += _not_asked(graph, result, sources, EACH_RULES)
    sample = sources[:: max(1, -(-len(sources) // _FOUND_ANEW))]
    rules += _found_anew(graph, rows, sample, counts, most)
    return EachVerdict(
        **verdict_of(graph, result, rules),
        sources=len(sources),
        rows=result.rows,
        found_anew=len(sample),
    )


def _found_anew(
    graph: JudgedEdges,
    rows: _Rows,
    sample: NDArray[np.uint32],
    counts: NDArray[np.int64],
    most: int,
) -> list[RuleVerdict]:
    """What is wrong with the rows of some sources. counts: of rows, by source."""
    claimed = np.full((len(sample), graph.places), -1, np.int32)
    for source, vertex, distance in rows:
        for claim, one in zip(claimed, sample, strict=True):
            own = source == one
            claim[vertex[own]] = np.clip(distance[own], -1, 2**31 - 1)
    twice = wrong = 0
    example: list[int | str | None] = []
    for claim, one in zip(claimed, sample, strict=True):
        twice += max(0, int(counts[one]) - int(np.count_nonzero(claim >= 0)))
        anew = distances_anew(graph, int(one), along=True)
        anew[anew > most] = UNREACHED
        differ = np.flatnonzero(claim.view(np.uint32) != anew)  # of both all bits, where none
        wrong += len(differ)
        if len(differ) and not example:
            example = named(graph.names, (int(one), int(differ[0])))
    rules = [rule_of(EACH_RULES, 0, twice, [])] if twice else []
    return [*rules, rule_of(EACH_RULES, 3, wrong, example)] if wrong else rules


def validate_together(graph: JudgedEdges, result: Result) -> TogetherVerdict:
    """InputError as above. The graph has undirected edges in both directions."""
    check_kind(result, graph.directed)
    names, index, most = graph.names, graph.names.index, _most(graph, result)
    distance = np.full(graph.places, -1, np.int32)
    nearest = np.full(graph.places, UNREACHED, np.uint32)
    wrong = np.zeros(graph.places, np.bool_)
    places_of = Places(names)

    def put_distance(at: NDArray[np.uint32], known: NDArray[np.bool_], some: pa.Array) -> None:
        told = as_numpy(some.cast(pa.int64()).fill_null(-1))[known]
        wrong[at] = (told > most) | (told < 0) & as_numpy(some.is_valid().cast(pa.uint8()))[known]
        distance[at] = np.clip(told, -1, most)

    def put_nearest(at: NDArray[np.uint32], known: NDArray[np.bool_], some: pa.Array) -> None:
        place, there = places_of(some)
        nearest[at] = np.where(there, place, UNREACHED)[known]

    rules = read_column(graph, result, places_of, "distance", put_distance)
    read_column(graph, result, places_of, "nearest", put_nearest)
    add_rule(rules, names, TOGETHER_RULES, 1, wrong[index])
    sources = index[distance[index] == 0]
    stray = np.zeros(graph.places, np.bool_)
    stray[sources] = nearest[sources] != sources
    add_rule(rules, names, TOGETHER_RULES, 2, stray[index])
    rules += _not_asked(graph, result, sources, TOGETHER_RULES)
    order = np.full(graph.places, UNREACHED, np.uint32)
    order[index] = np.arange(len(index), dtype=np.uint32)
    some = nearest != UNREACHED
    rank = nearest
    rank[some] = order[nearest[some]]
    least, found = np.full(graph.places, UNREACHED, np.uint32), np.zeros(3, np.int64)
    for ends in graph.batches():
        check_levels(*ends, distance, rank, most, least, found)
    beyond, *example = found.tolist()
    if beyond:
        rules.append(rule_of(TOGETHER_RULES, 3, beyond, named(names, tuple(example))))
    unlike = (distance != 0) & (least != rank) | (distance > 0) & (least == UNREACHED)
    unlike |= (distance < 0) & (rank != UNREACHED)
    add_rule(rules, names, TOGETHER_RULES, 4, unlike[index])
    return TogetherVerdict(
        **verdict_of(graph, result, rules),
        sources=len(sources),
        reached=int(np.count_nonzero(distance >= 0)),
        depth=int(distance.max()),
    )


def _most(graph: JudgedEdges, result: Result) -> int:
    """The greatest distance that there may be."""
    asked = result.info.options.get("max_depth") if result.info else None
    return min(graph.places, int(asked)) if asked is not None else graph.places


def _not_asked(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32], meanings: dict[int, str]
) -> list[RuleVerdict]:
    """sources: that the result has; others than those that it says, if it says any?"""
    said = result.info.options.get("sources") if result.info else None
    if not len(sources) or (
        said is not None and said != digest_of(graph.names.decode(as_arrow(sources)))
    ):
        return [rule_of(meanings, 2, 1, [])]
    return []
