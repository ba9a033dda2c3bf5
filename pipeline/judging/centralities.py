"""Validation of closeness, harmonic centrality, eccentricity and betweenness. The rules are in
kernels/judging/programs.py.

The judge has kernels of its own (distances.py), which compute as many values again as the limits
allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.judging import distances, programs
from ...kernels.judging.programs import BETWEENNESS_RULES, DISTANCE_RULES, count_edges
from ...partition.input.arrow import as_arrow, as_numpy, valid
from ..results.result import Result
from ..results.weights import digest_of
from .distances import WORD_BYTES, DistanceSums, dependencies_anew, sums_anew
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, read_column, rule_of, verdict_of
from .searches import PlaceLookup, RuleVerdict, Verdict, check_kind

_ROUNDING = 1e-9
"""Relative rounding error of sums of values, added in any order."""

_NOTHING = 1e-12
"""Absolute rounding error of values that should be 0, before they are scaled."""


class DistancesVerdict(Verdict):
    """Verdict on closeness, harmonic centrality or eccentricity. rows: number of rows of the
    result. found_anew: number of vertices whose distances were computed again.
    """

    rows: int
    found_anew: int


class BetweennessVerdict(DistancesVerdict):
    """Verdict on betweenness. found_anew: number of sources whose paths were computed again.
    sources: number of sources; None if unknown.
    """

    sources: int | None


def validate_closeness(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32] | None
) -> DistancesVerdict:
    """Return the verdict on a closeness.

    sources: the vertices that the result must list; None if unknown. graph: its batches have
    undirected edges in both directions. Raises InputError if the result is of a graph with another
    kind of edges (directed or not), or with other ids.
    """
    n = len(graph.names.index)

    def closeness(found: DistanceSums) -> NDArray[np.float64]:
        squares, most = (found.reached - 1.0) ** 2, found.total * float(max(1, n - 1))
        return np.divide(squares, most, out=np.zeros(len(squares)), where=found.total > 0)

    return _validate_distances(
        graph, result, sources, "closeness", closeness, 1 + _ROUNDING, along=False
    )


def validate_harmonic(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32] | None
) -> DistancesVerdict:
    """Return the verdict on a harmonic centrality. Arguments and errors are those of
    ``validate_closeness``.
    """
    others = max(1, len(graph.names.index) - 1)
    normalized = bool(result.info and result.info.options.get("normalized"))
    divisor, most = (others, 1) if normalized else (1, others)
    return _validate_distances(
        graph,
        result,
        sources,
        "harmonic",
        lambda found: found.harmonic / divisor,
        most * (1 + _ROUNDING),
        along=False,
    )


def validate_eccentricity(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32] | None
) -> DistancesVerdict:
    """Return the verdict on an eccentricity. Arguments and errors are those of
    ``validate_closeness``.
    """
    return _validate_distances(
        graph,
        result,
        sources,
        "eccentricity",
        lambda found: found.farthest,
        len(graph.names.index),
        along=True,
    )


def _validate_distances(
    graph: JudgedEdges,
    result: Result,
    sources: NDArray[np.uint32] | None,
    column: str,
    values_of: Callable[[DistanceSums], NDArray],
    most: float,
    along: bool,
) -> DistancesVerdict:
    """Return the verdict on values that are computed from distances.

    values_of: computes the values from sums of distances. most: the greatest possible value. along:
    whether distances are along edges, or against them.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    values = np.full(graph.places, np.nan)
    told = np.zeros(graph.places, np.bool_)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        values[at] = as_numpy(column.cast(pa.float64()).fill_null(np.nan))[known]
        told[at] = True

    rules = read_column(graph, result, PlaceLookup(names), column, put, is_complete=False)
    there = told[index]
    rules += _check_sources(graph, result, sources, there)
    good = (values[index] >= 0) & (values[index] <= most)
    add_rule(rules, names, DISTANCE_RULES, 1, there & ~good)
    asked = index[there]
    found = sums_anew(graph, asked, along)
    anew = asked[found.at]
    wrong = np.zeros(graph.places, np.bool_)
    wrong[anew] = ~(np.abs(values[anew] - values_of(found)) <= _ROUNDING * values_of(found))
    add_rule(rules, names, DISTANCE_RULES, 2, wrong[index] & good)
    unjudged = len(asked) - len(anew)
    judged = "some" if unjudged else "all"
    verdict = verdict_of(graph, result, rules, judged if len(anew) else "none", unjudged)
    return DistancesVerdict(**verdict, rows=len(asked), found_anew=len(anew))


def _check_sources(
    graph: JudgedEdges,
    result: Result,
    sources: NDArray[np.uint32] | None,
    there: NDArray[np.bool_],
) -> list[RuleVerdict]:
    """Return the rule that is broken if the result lists other vertices than its sources. there: by
    rising id, whether the result lists the vertex.
    """
    names = graph.names
    rules: list[RuleVerdict] = []
    if sources is not None:
        asked = np.zeros(graph.places, np.bool_)
        asked[sources] = True
        add_rule(rules, names, DISTANCE_RULES, 3, asked[names.index] != there)
        return rules
    said = result.info.options.get("sources") if result.info else None
    told = names.index[there]
    if said is not None and said != digest_of(names.decode(as_arrow(told))):
        rules.append(rule_of(DISTANCE_RULES, 3, 1, []))
    return rules


def validate_betweenness(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32] | None
) -> BetweennessVerdict:
    """Return the verdict on a betweenness.

    sources: the vertices whose paths were counted; None if unknown: values are then judged by their
    range alone. The graph has every edge once, undirected edges in both directions. Raises
    InputError as ``validate_closeness`` does.
    """
    check_kind(result, graph.directed)
    names, places, index = graph.names, graph.places, graph.names.index
    value, null = np.full(places, np.nan), np.zeros(places, np.bool_)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        value[at] = as_numpy(column.cast(pa.float64()).fill_null(np.nan))[known]
        null[at] = ~valid(column)[known]

    rules = read_column(graph, result, PlaceLookup(names), "betweenness", put)
    unknown = np.zeros(places, np.bool_)
    if sources is not None and len(sources) == 1 and len(index) > 2:
        unknown[sources] = True  # only another source could count the paths through it
    right = np.where(unknown, null, np.isfinite(value) & (value >= 0))
    add_rule(rules, names, BETWEENNESS_RULES, 1, ~right[index])
    leaving, entering = np.zeros(places), np.zeros(places)
    for ends in graph.batches():
        count_edges(ends[0], leaving)
        count_edges(ends[1], entering)
    end = np.minimum(leaving, entering) < (1 if graph.directed else 2)
    add_rule(rules, names, BETWEENNESS_RULES, 2, (end & right & ~unknown & (value != 0))[index])
    if sources is None:
        verdict = verdict_of(graph, result, rules, "none", len(index))
        return BetweennessVerdict(**verdict, rows=len(index), found_anew=0, sources=None)
    factor = np.empty(places)
    normalized = bool(result.info and result.info.options.get("normalized"))
    factor[:], factor[sources] = _factors(len(index), len(sources), graph.directed, normalized)
    told = np.where(right & ~unknown, value, 0.0)
    told = np.divide(told, factor, out=told, where=~unknown)  # sums of shares of paths, not scaled
    anew = dependencies_anew(graph, sources)
    if anew is not None:
        wrong = np.abs(told - anew) > _ROUNDING * anew + _NOTHING
        add_rule(rules, names, BETWEENNESS_RULES, 4, (wrong & right & ~unknown)[index])
        between, searched, judged = float(anew.sum()), len(sources), "all"
    else:
        sums = sums_anew(graph, sources, along=True)
        between, searched = float(sums.total.sum() - (sums.reached - 1).sum()), len(sums.at)
        judged = "some" if searched == len(sources) else "none"
    if judged != "none" and abs(told.sum() - between) > _ROUNDING * max(1.0, between):
        rules.append(rule_of(BETWEENNESS_RULES, 3, 1, []))
    unjudged = 0 if judged == "all" else len(index)
    verdict = verdict_of(graph, result, rules, judged, unjudged)
    n = len(index)
    return BetweennessVerdict(**verdict, rows=n, found_anew=searched, sources=len(sources))


def _factors(vertices: int, sources: int, directed: bool, normalized: bool) -> tuple[float, float]:
    """Return the factors that scale sums over the sources: for a vertex that is no source, and for
    a source.

    NetworkX 3.6 scales sums in this way. Paths through a vertex begin at one of the other n - 1
    vertices. A source does not count its own paths, so one source less contributes to its sum.
    """
    other_vertices = vertices - 1
    if other_vertices < 2:
        return 1.0, 1.0  # nothing lies between two vertices

    def factor(told: int) -> float:
        if not told:
            return math.nan
        if normalized:
            return 1 / (told * (other_vertices - 1))
        return other_vertices / (told * (1 if directed else 2))

    return factor(sources), factor(sources - 1)


_KERNELS = programs, distances

CLOSENESS = Judge(
    validate_closeness, graph="sources", vertex_bytes=24 + WORD_BYTES, kernels=_KERNELS
)
HARMONIC = Judge(validate_harmonic, graph="sources", vertex_bytes=24 + WORD_BYTES, kernels=_KERNELS)
ECCENTRICITY = Judge(
    validate_eccentricity, graph="sources", vertex_bytes=24 + WORD_BYTES, kernels=_KERNELS
)
BETWEENNESS = Judge(
    validate_betweenness, graph="sources", vertex_bytes=64 + WORD_BYTES, kernels=_KERNELS
)
