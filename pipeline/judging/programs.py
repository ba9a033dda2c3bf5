"""Validation of components and PageRank (kernels/pieces/check.py has the rules).

Streams the result's rows and, once or twice, the graph's edges; holds a value or three a vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.pieces.check import (
    BETWEENNESS_RULES,
    COMPONENT_RULES,
    DISTANCE_RULES,
    PAGERANK_RULES,
    add_shares,
    add_weighted_shares,
    add_weights,
    check_components,
    count_edges,
    shorten,
)
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ...partition.input.weights import Duplicates
from ...partition.store.store import Store
from ..algorithms.betweenness import scale_factors
from ..results.names import VertexNames, names_of_store
from ..results.result import Option, Result
from ..results.weights import VertexFile
from .searches import (
    Places,
    RuleVerdict,
    Verdict,
    check_kind,
    named,
    rows_at_once,
    rows_verdict,
)

_SINGLE_ROUNDING = 1e-5
"""The same where each value has 32 bits."""

_BY_DEFAULT: dict[str, Option] = {"damping": 0.85, "tolerance": 1e-6, "max_iterations": 100}
"""What a PageRank is taken for that does not say it."""

_FOUND_ANEW = 4
"""Vertices, at most: each takes some scans of all edges, a few on most graphs."""

_SMALL = 1 << 12
"""The same, of a small graph: as many as make so many vertices, those of each scan counted."""

_FEW_SOURCES = 16
_FEW_EDGES = 1 << 30
"""The same, of sources of betweenness: as many as look at so many edges, by a scan each, or few."""

_ROUNDING = 1e-9
"""Of sums of values that add up to 1, in any order."""


Weighted = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]
"""Sources, targets and weights of some edges."""


class ComponentsVerdict(Verdict):
    components: int


class DistancesVerdict(Verdict):
    """rows: of the result. found_anew: vertices whose distances were."""

    rows: int
    found_anew: int


class PageRankVerdict(Verdict):
    """sum: of all values. change: of one more iteration, in L1."""

    sum: float
    change: float


@dataclass(frozen=True)
class JudgedEdges:
    """A graph that results are judged against.

    places: below which the vertices' places in arrays lie. batches: of all edges, as often as it is
    called, in any order; undirected ones in one direction or both. weighted_batches: the same with
    weights (float64); None where there are none.
    """

    names: VertexNames
    places: int
    fingerprint: str
    directed: bool
    batches: Callable[[], Iterator[tuple[NDArray[np.uint32], ...]]]
    weighted_batches: Callable[[], Iterator[Weighted]] | None = None


def judged_edges(store: Store, team: Team) -> JudgedEdges:
    """Of a store: every edge once, undirected ones in both directions."""
    info, names = store.info, names_of_store(store, team)

    def weighted() -> Iterator[Weighted]:
        for sources, targets, weights in store.weighted_batches(team):
            yield sources, targets, weights.astype(np.float64)

    return JudgedEdges(
        names,
        info.vertices,
        info.fingerprint,
        info.directed,
        lambda: store.edge_batches(team),
        None if info.weights is None else weighted,
    )


def validate_components(graph: JudgedEdges, result: Result) -> ComponentsVerdict:
    """InputError where the result is of another kind of edges, or of other ids."""
    check_kind(result, graph.directed)
    names = graph.names
    component = np.full(graph.places, UNREACHED, np.uint32)
    places_of = Places(names)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        place, there = places_of(column)
        component[at] = np.where(there, place, UNREACHED)[known]

    rules = read_column(graph, result, places_of, "component", put)
    index = names.index
    unnamed = component[index] == UNREACHED
    component[index[unnamed]] = index[unnamed]  # each its own, for what follows
    stray = unnamed | (component[component[index]] != component[index])
    add_rule(rules, names, COMPONENT_RULES, 1, stray)
    rank = np.empty(graph.places, np.uint32)
    rank[index] = np.arange(len(index), dtype=np.uint32)
    add_rule(rules, names, COMPONENT_RULES, 3, rank[component[index]] > rank[index])
    parent = np.arange(graph.places, dtype=np.uint32)
    found = np.zeros(4, np.int64)
    for sources, targets in graph.batches():
        check_components(sources, targets, component, parent, found)
    apart, joined, *ends = found.tolist()
    if apart:
        rules.append(rule_of(COMPONENT_RULES, 2, apart, named(names, tuple(ends))))
    claimed = int(np.count_nonzero(component[index] == index))
    if claimed != len(index) - joined:
        rules.append(rule_of(COMPONENT_RULES, 4, abs(len(index) - joined - claimed), []))
    return ComponentsVerdict(
        **verdict_of(graph, result, rules),
        components=claimed,
    )


def is_by_weights(result: Result) -> bool:
    """Whether ranks are by the weights of edges, where these have some. A result says of its graph
    what became of the weights of duplicates, if the graph had weights.
    """
    if result.info is None:
        return True
    weighted = result.info.graph.rpartition("-")[2] in get_args(Duplicates)
    return weighted and not result.info.options.get("unweighted")


def validate_pagerank(
    graph: JudgedEdges, result: Result, personalize: VertexFile | None = None
) -> PageRankVerdict:
    """personalize: the file, of a result that is personalised. The graph has every edge once.

    InputError as above, and where that file is not the result's.
    """
    check_kind(result, graph.directed)
    names, places = graph.names, graph.places
    options = result.info.options if result.info else _BY_DEFAULT
    damping = float(options.get("damping", 0.85) or 0.0)
    rank = np.zeros(places)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        rank[at] = as_numpy(column.cast(pa.float64()).fill_null(np.nan))[known]

    rules = read_column(graph, result, Places(names), "pagerank", put)
    index = names.index
    n = len(index)
    wrong = ~((rank[index] >= 0) & (rank[index] <= 1 + _ROUNDING))
    add_rule(rules, names, PAGERANK_RULES, 1, wrong)
    rank[index[wrong]] = 0
    teleport = _teleport(graph, result, personalize)
    degree = np.zeros(places)
    weighted = graph.weighted_batches if is_by_weights(result) else None
    if weighted is None:
        for sources, _ in graph.batches():
            count_edges(sources, degree)
    else:
        for sources, _, weights in weighted():
            add_weights(sources, weights, degree)
    keeps = options.get("dangling") != "none"
    lost = float(rank[index[degree[index] == 0]].sum()) if keeps else 0.0
    share = np.divide(rank, degree, out=degree, where=degree > 0)  # 0 where there are none
    came = np.zeros(places)
    if weighted is None:
        for sources, targets in graph.batches():
            add_shares(sources, targets, share, came)
    else:
        for sources, targets, weights in weighted():
            add_weighted_shares(sources, targets, weights, share, came)
    came *= damping
    came[index] += (1 - damping + damping * lost) * (1 / n if teleport is None else teleport[index])
    total = float(rank[index].sum())
    came -= rank
    change = float(np.abs(came, out=came)[index].sum())
    single = result.schema.field("pagerank").type == pa.float32()
    rounding = _SINGLE_ROUNDING if single else _ROUNDING
    if keeps and abs(total - 1) > rounding:
        rules.append(rule_of(PAGERANK_RULES, 2, 1, []))
    if change > _allowed(options, damping) + rounding:
        rules.append(rule_of(PAGERANK_RULES, 3, 1, []))
    return PageRankVerdict(**verdict_of(graph, result, rules), sum=total, change=change)


def validate_closeness(graph: JudgedEdges, result: Result) -> DistancesVerdict:
    """InputError as above."""
    n = len(graph.names.index)

    def closeness(distance: NDArray[np.int64]) -> float:
        total = int(distance.sum())
        return (len(distance) - 1) ** 2 / (total * (n - 1)) if total else 0.0

    return _validate_distances(graph, result, "closeness", closeness, most=1 + _ROUNDING)


def validate_eccentricity(graph: JudgedEdges, result: Result) -> DistancesVerdict:
    """InputError as above."""
    return _validate_distances(graph, result, "eccentricity", np.max, most=len(graph.names.index))


def validate_betweenness(
    graph: JudgedEdges, result: Result, sources: NDArray[np.uint32] | None
) -> DistancesVerdict:
    """sources: whose paths were counted; None where that is not known. The graph has every edge
    once, undirected ones in both directions. InputError as above.
    """
    check_kind(result, graph.directed)
    names, places, index = graph.names, graph.places, graph.names.index
    value = np.zeros(places)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], some: pa.Array) -> None:
        value[at] = as_numpy(some.cast(pa.float64()).fill_null(np.nan))[known]

    rules = read_column(graph, result, Places(names), "betweenness", put)
    if sources is not None and len(sources) == 1 and len(index) > 2:  # its own is not known
        value[sources] = np.where(np.isnan(value[sources]), 0.0, np.nan)
    wrong = ~(np.isfinite(value[index]) & (value[index] >= 0))
    add_rule(rules, names, BETWEENNESS_RULES, 1, wrong)
    leaving, entering = np.zeros(places), np.zeros(places)
    for ends in graph.batches():
        count_edges(ends[0], leaving)
        count_edges(ends[1], entering)
    end = np.minimum(leaving, entering) < (1 if graph.directed else 2)
    add_rule(rules, names, BETWEENNESS_RULES, 2, (end & (value != 0))[index])
    most = max(_FEW_SOURCES, _FEW_EDGES // max(1, int(leaving.sum())))
    few = sources if sources is not None and len(sources) <= most else ()
    if len(few):
        between = 0
        for source in few:
            distance = _distances(graph, int(source), along=True)
            between += int(distance.sum()) - (len(distance) - 1)
        n = len(index)
        normalized = bool(result.info and result.info.options.get("normalized"))
        others, own = scale_factors(n, len(few), graph.directed, normalized)
        raw = value / others
        raw[few] = 0.0 if math.isnan(own) else value[few] / own
        total = float(raw[index[~wrong]].sum())
        if abs(total - between) > _ROUNDING * max(1.0, between):
            rules.append(rule_of(BETWEENNESS_RULES, 3, 1, []))
    verdict = verdict_of(graph, result, rules)
    return DistancesVerdict(**verdict, rows=len(index), found_anew=len(few))


def _validate_distances(
    graph: JudgedEdges,
    result: Result,
    column: str,
    wanted: Callable[[NDArray[np.int64]], float],
    most: float,
) -> DistancesVerdict:
    """wanted: the value, of the distances between a vertex and those it reaches (eccentricity) or
    is reached from, 0 of itself among them.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    values = np.full(graph.places, np.nan)
    told = np.zeros(graph.places, np.bool_)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], some: pa.Array) -> None:
        values[at] = as_numpy(some.cast(pa.float64()).fill_null(np.nan))[known]
        told[at] = True

    options = result.info.options if result.info else {}
    every = options.get("sources") is None
    rules = read_column(graph, result, Places(names), column, put, every)
    there = told[index]
    good = (values[index] >= 0) & (values[index] <= most)
    add_rule(rules, names, DISTANCE_RULES, 1, there & ~good)
    sample = index[there & good]
    most_anew = max(_FOUND_ANEW, _SMALL // graph.places)
    sample = sample[:: max(1, -(-len(sample) // most_anew))]
    wrong = np.zeros(graph.places, np.bool_)
    for vertex in sample.tolist():
        found = wanted(_distances(graph, vertex, along=column == "eccentricity"))
        wrong[vertex] = abs(values[vertex] - found) > _ROUNDING
    add_rule(rules, names, DISTANCE_RULES, 2, wrong[index])
    rows = int(np.count_nonzero(there))
    verdict = verdict_of(graph, result, rules)
    return DistancesVerdict(**verdict, rows=rows, found_anew=len(sample))


def _distances(graph: JudgedEdges, vertex: int, along: bool) -> NDArray[np.int64]:
    """The same of those that have one."""
    distance = distances_anew(graph, vertex, along)
    return distance[distance != UNREACHED].astype(np.int64)


def distances_anew(graph: JudgedEdges, vertex: int, along: bool) -> NDArray[np.uint32]:
    """From a vertex along edges, or to it, by place; UNREACHED where there is none."""
    distance = np.full(graph.places, UNREACHED, np.uint32)
    distance[vertex] = 0
    shorter = True
    while shorter:
        shorter = False
        for sources, targets in graph.batches():
            ends = (sources, targets) if along else (targets, sources)
            shorter |= shorten(*ends, distance)
    return distance


def _allowed(options: dict[str, Option], damping: float) -> float:
    """What one more iteration changes at most: a change shrinks by the damping at least, and the
    first one is 2 at most.
    """
    tolerance, most = options.get("tolerance") or 0.0, options.get("max_iterations")
    most = options.get("iterations") or most or 0
    return max(damping * float(tolerance), 2 * damping ** int(most))


def _teleport(
    graph: JudgedEdges, result: Result, personalize: VertexFile | None
) -> NDArray[np.float64] | None:
    said = result.info.options.get("personalize") if result.info else None
    if said is None and personalize is None:
        return None
    if personalize is None:
        raise InputError("the result is personalised: give the file, as --personalize FILE")
    weights = personalize.read(graph.names.id_type)
    if result.info is not None and said != weights.digest:
        raise InputError(f"{personalize.path}: not what the result was personalised to")
    teleport = np.zeros(graph.places)
    teleport[weights.places(graph.names)] = weights.shares
    return teleport


def read_column(
    graph: JudgedEdges,
    result: Result,
    places_of: Places,
    column: str,
    put: Callable[[NDArray[np.uint32], NDArray[np.bool_], pa.Array], None],
    every: bool = True,
) -> list[RuleVerdict]:
    """Give a column to ``put``, some rows at a time: places of those that are of the graph, which
    these are, and all values. What is wrong with the rows; every: vertex has to have one.
    """
    seen = np.zeros(graph.places, np.uint8)
    strangers, example = 0, None
    for batch in result.batches(rows_at_once(graph.names.id_type)):
        at, known = places_of(batch.column("vertex"))
        put(at[known], known, batch.column(column))
        places, rows = np.unique(at[known], return_counts=True)
        seen[places] = np.minimum(seen[places] + rows, 2)
        if not known.all():
            strangers += int(np.count_nonzero(~known))
            example = example or batch.column("vertex").filter(pa.array(~known))[0].as_py()
    if not every:
        seen = np.maximum(seen, 1)
    verdict = rows_verdict(graph.names, seen, strangers, example)
    return [verdict] if verdict["violations"] else []


def add_rule(
    rules: list[RuleVerdict],
    names: VertexNames,
    meanings: dict[int, str],
    rule: int,
    wrong: NDArray[np.bool_],
) -> None:
    """wrong: of the vertices by rising user id."""
    count = int(np.count_nonzero(wrong))
    if count:
        example = named(names, (int(names.index[np.argmax(wrong)]),))
        rules.append(rule_of(meanings, rule, count, example))


def rule_of(
    meanings: dict[int, str], rule: int, violations: int, example: list[int | str | None]
) -> RuleVerdict:
    return RuleVerdict(rule=rule, meaning=meanings[rule], violations=violations, example=example)


def verdict_of(graph: JudgedEdges, result: Result, rules: list[RuleVerdict]) -> Verdict:
    return Verdict(
        algorithm=result.algorithm,
        valid=not rules,
        directed=graph.directed,
        vertices=len(graph.names.index),
        same_graph=result.info and result.info.graph == graph.fingerprint,
        rules=sorted(rules, key=lambda rule: rule["rule"]),
    )
