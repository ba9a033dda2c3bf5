"""Validation of components and PageRank. The rules are in kernels/judging/programs.py.

The result's rows are streamed once, and the graph's edges once or twice. Memory holds one to three
values for each vertex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging.programs import (
    COMPONENT_RULES,
    PAGERANK_RULES,
    add_shares,
    add_weighted_shares,
    add_weights,
    check_components,
    count_edges,
)
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ...partition.input.weights import Duplicates
from ..results.names import VertexNames
from ..results.result import Option, Result
from ..results.weights import VertexFile
from .graph import JudgedEdges
from .judge import Judge
from .searches import (
    Judgement,
    PlaceLookup,
    RuleVerdict,
    Verdict,
    check_kind,
    named,
    rows_at_once,
    rows_verdict,
)

_SINGLE_ROUNDING = 1e-5
"""Rounding error of sums of 32-bit floats."""

_BY_DEFAULT: dict[str, Option] = {"damping": 0.85, "tolerance": 1e-6, "max_iterations": 100}
"""Options assumed for a PageRank whose options are unknown."""

_ROUNDING = 1e-9
"""Rounding error of sums of values that add up to 1, in any order."""


class ComponentsVerdict(Verdict):
    components: int


class PageRankVerdict(Verdict):
    """Verdict on a PageRank. sum: of all values. change: of the values by one more iteration, in
    the L1 norm.
    """

    sum: float
    change: float


def validate_components(graph: JudgedEdges, result: Result) -> ComponentsVerdict:
    """Return the verdict on components. Raises InputError if the result is of a graph with another
    kind of edges (directed or not), or with other ids.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    rules, component, is_stray = read_groups(graph, result, "component")
    add_rule(rules, names, COMPONENT_RULES, 1, is_stray[index])
    add_rule(rules, names, COMPONENT_RULES, 3, are_not_least(graph, component))
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
    """Return whether a result, such as a PageRank, follows the weights of edges, in a graph with
    weights. The graph's fingerprint in the result names the treatment of duplicates if the graph
    had weights.
    """
    if result.info is None:
        return True
    weighted = result.info.graph.rpartition("-")[2] in get_args(Duplicates)
    return weighted and not result.info.options.get("unweighted")


def validate_pagerank(
    graph: JudgedEdges, result: Result, personalize: VertexFile | None = None
) -> PageRankVerdict:
    """Return the verdict on a PageRank.

    personalize: the file of a personalized PageRank. The graph has every edge once. Raises
    InputError as ``validate_components`` does, and if the file is missing or is not the result's.
    """
    check_kind(result, graph.directed)
    names, places = graph.names, graph.places
    options = result.info.options if result.info else _BY_DEFAULT
    damping = float(options.get("damping", 0.85) or 0.0)
    rank = np.zeros(places)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        rank[at] = as_numpy(column.cast(pa.float64()).fill_null(np.nan))[known]

    rules = read_column(graph, result, PlaceLookup(names), "pagerank", put)
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
    places_of_loops, loops = graph.loops_by(weighted is not None)
    degree[places_of_loops] += loops
    keeps = options.get("dangling") != "none"
    lost = float(rank[index[degree[index] == 0]].sum()) if keeps else 0.0
    share = np.divide(rank, degree, out=degree, where=degree > 0)  # 0 for vertices without edges
    came = np.zeros(places)
    if weighted is None:
        for sources, targets in graph.batches():
            add_shares(sources, targets, share, came)
    else:
        for sources, targets, weights in weighted():
            add_weighted_shares(sources, targets, weights, share, came)
    came[places_of_loops] += loops * share[places_of_loops]
    came *= damping
    jumps = np.full(n, 1 / n) if teleport is None else teleport[index]
    little = rank[index] < (1 - damping) * jumps * (1 - _SINGLE_ROUNDING)
    add_rule(rules, names, PAGERANK_RULES, 4, little & ~wrong)
    came[index] += (1 - damping + damping * lost) * jumps
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


def _allowed(options: dict[str, Option], damping: float) -> float:
    """Return the greatest change that one more iteration may make. Each iteration multiplies the
    change by at most the damping, and the first change is at most 2.
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
        raise InputError(
            "the result is a personalised PageRank: give its file with --personalize FILE"
        )
    weights = personalize.read(graph.names.id_type)
    if result.info is not None and said != weights.digest:
        raise InputError(
            f"{personalize.path}: not the vertices that the result was personalised with"
        )
    teleport = np.zeros(graph.places)
    teleport[weights.places(graph.names)] = weights.shares
    return teleport


def read_column(
    graph: JudgedEdges,
    result: Result,
    places_of: PlaceLookup,
    column: str,
    put: Callable[[NDArray[np.uint32], NDArray[np.bool_], pa.Array], None],
    is_complete: bool = True,
) -> list[RuleVerdict]:
    """Read a column batch by batch. Returns the rule about rows if it is broken.

    put: called for each batch with the places of the rows that are vertices of the graph, a mask of
    these rows, and all values of the column. is_complete: whether each vertex must have a row.
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
    if not is_complete:
        seen = np.maximum(seen, 1)
    verdict = rows_verdict(graph.names, seen, strangers, example)
    return [verdict] if verdict["violations"] else []


def read_groups(
    graph: JudgedEdges, result: Result, column: str
) -> tuple[list[RuleVerdict], NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the broken rules about rows; by place, the group of each vertex: uint32, the vertex
    that names it; and by place whether a group is not named after one of its own vertices. column:
    of groups. A vertex whose group is no vertex is a group by itself, for the other rules.
    """
    group = np.full(graph.places, UNREACHED, np.uint32)
    places_of = PlaceLookup(graph.names)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], values: pa.Array) -> None:
        place, there = places_of(values)
        group[at] = np.where(there, place, UNREACHED)[known]

    rules = read_column(graph, result, places_of, column, put)
    own = np.arange(graph.places, dtype=np.uint32)
    unnamed = group == UNREACHED
    group = np.where(unnamed, own, group)
    return rules, group, unnamed | (group[group] != group)


def are_not_least(graph: JudgedEdges, group: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return, by rising user id, whether a vertex comes before the one that names its group."""
    index = graph.names.index
    rank = np.empty(graph.places, np.uint32)
    rank[index] = np.arange(len(index), dtype=np.uint32)
    return rank[group[index]] > rank[index]


def read_values(
    graph: JudgedEdges, result: Result, columns: tuple[str, ...], rules: list[RuleVerdict]
) -> list[NDArray[np.float64]]:
    """Return the numbers of each column, by rising user id; NaN for null, and for a vertex without
    a row. Adds the rule about rows to ``rules`` if it is broken.
    """
    places_of, found, broken = PlaceLookup(graph.names), [], []
    for column in columns:
        numbers = np.full(graph.places, np.nan)

        def put(
            at: NDArray[np.uint32],
            known: NDArray[np.bool_],
            values: pa.Array,
            numbers: NDArray[np.float64] = numbers,
        ) -> None:
            numbers[at] = as_numpy(values.cast(pa.float64()).fill_null(np.nan))[known]

        broken = read_column(graph, result, places_of, column, put)
        found.append(numbers[graph.names.index])
    rules += broken
    return found


def add_rule(
    rules: list[RuleVerdict],
    names: VertexNames,
    meanings: dict[int, str],
    rule: int,
    wrong: NDArray[np.bool_],
) -> None:
    """Add the rule to ``rules`` if any vertex breaks it. wrong: by rising user id, whether the
    vertex breaks the rule.
    """
    count = int(np.count_nonzero(wrong))
    if count:
        example = named(names, (int(names.index[np.argmax(wrong)]),))
        rules.append(rule_of(meanings, rule, count, example))


def rule_of(
    meanings: dict[int, str], rule: int, violations: int, example: list[int | str | None]
) -> RuleVerdict:
    return RuleVerdict(rule=rule, meaning=meanings[rule], violations=violations, example=example)


def verdict_of(
    graph: JudgedEdges,
    result: Result,
    rules: list[RuleVerdict],
    judged: Judgement = "all",
    unjudged: int = 0,
) -> Verdict:
    return Verdict(
        algorithm=result.algorithm,
        valid=not rules and judged != "none",
        judged=judged,
        unjudged=unjudged,
        directed=graph.directed,
        vertices=len(graph.names.index),
        same_graph=result.info and result.info.graph == graph.fingerprint,
        rules=sorted(rules, key=lambda rule: rule["rule"]),
    )


COMPONENTS = Judge(validate_components, scans=True)
PAGERANK = Judge(
    validate_pagerank,
    vertex_bytes=24,
    needs_weights=lambda result: result.info is not None and is_by_weights(result),
    personalizes=True,
)
