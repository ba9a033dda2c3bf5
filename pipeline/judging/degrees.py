"""Validation of degrees: edges are counted again, and their weights added up again, by streaming
the graph's edges once. The rules are in kernels/judging/programs.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.judging.programs import DEGREE_RULES, add_weights, count_edges
from ...partition.errors import InputError
from ..questions.degree import degree_columns
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, is_by_weights, read_values, verdict_of
from .searches import RuleVerdict, Verdict, check_kind

_ROUNDING = 1e-9
"""Relative rounding error of sums of weights, in any order."""

_MOST_COLUMNS = 4
"""The most columns of numbers that a result has."""


def validate_degrees(graph: JudgedEdges, result: Result) -> Verdict:
    """Return the verdict on degrees.

    graph: has every edge once, undirected edges in both directions. Raises InputError if the result
    is of a graph with another kind of edges (directed or not), or with other ids, or if it has
    other columns than a result of the graph.
    """
    check_kind(result, graph.directed)
    weighted = _is_weighted(result)
    columns = degree_columns(graph.directed, weighted)
    if result.values != columns or (result.info is not None and is_by_weights(result) != weighted):
        raise InputError(
            f"not a result of this graph: it has the columns {', '.join(result.values)}"
        )
    rules: list[RuleVerdict] = []
    found = read_values(graph, result, columns, rules)
    degrees, sums = _counted_again(graph, weighted)
    for rule, right, rounding in ((1, degrees, 0.0), (2, sums, _ROUNDING)):
        wrong = np.zeros(len(graph.names.index), np.bool_)
        for true in right:
            wrong |= ~(np.abs(found.pop(0) - true) <= rounding * true)
        add_rule(rules, graph.names, DEGREE_RULES, rule, wrong)
    return verdict_of(graph, result, rules)


def _is_weighted(result: Result) -> bool:
    return any(column.startswith("weighted") for column in result.values)


def _counted_again(
    graph: JudgedEdges, weighted: bool
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Return the degrees and, if ``weighted``, the sums of weights, in the order of the columns, by
    rising user id.
    """
    ends = (1, 0) if graph.directed else (0,)  # the targets of edges have them as in-degree
    degrees = [np.zeros(graph.places) for _ in ends]
    sums = [np.zeros(graph.places) for _ in ends if weighted]
    batches = graph.weighted_batches if weighted else graph.batches
    assert batches is not None
    for batch in batches():
        for end, degree in zip(ends, degrees, strict=True):
            count_edges(batch[end], degree)
        for end, total in zip(ends, sums, strict=False):
            add_weights(batch[end], batch[2], total)
    times = 1 if graph.directed else 2  # at each end
    for of_kind, by_weights in ((degrees, False), (sums, True)):
        places, loops = graph.loops_by(by_weights)
        for total in of_kind:
            total[places] += times * loops
    index = graph.names.index
    return [degree[index] for degree in degrees], [total[index] for total in sums]


DEGREE = Judge(validate_degrees, vertex_bytes=8 * 3 * _MOST_COLUMNS, needs_weights=_is_weighted)
