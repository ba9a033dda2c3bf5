"""Validation of strong components. The rules are in kernels/judging/programs.py.

If rows of the edges fit the memory limit, paths are followed by them. If not, the edges are scanned
again and again, which may take as many scans as the longest path has edges.

For a condensation, components are found anew, for which rows must fit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging import programs, strong
from ...kernels.judging.programs import CONDENSATION_RULES, STRONG_RULES
from ...kernels.judging.strong import (
    JUDGING_BYTES,
    find_components,
    follow_inside,
    list_components,
    order_components,
    scan_between,
    scan_inside,
)
from ...partition.input.arrow import as_numpy
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .pairs import add_pair_rule, find_keys, pair_batches, pair_keys
from .programs import ComponentsVerdict, add_rule, are_not_least, read_groups, rule_of, verdict_of
from .searches import Verdict, check_kind


def validate_strong(graph: JudgedEdges, result: Result) -> ComponentsVerdict:
    """Return the verdict on strong components. The graph has undirected edges in both directions.
    Raises InputError as ``validate_components`` does.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    rules, component, is_stray = read_groups(graph, result, "component")
    add_rule(rules, names, STRONG_RULES, 1, is_stray[index])
    own = np.arange(graph.places, dtype=np.uint32)
    component = np.where(is_stray, own, component)  # for the other rules
    is_joined, is_ordered = _by_rows(graph, component) or _by_scans(graph, component)
    add_rule(rules, names, STRONG_RULES, 2, ~is_joined[index])
    add_rule(rules, names, STRONG_RULES, 3, are_not_least(graph, component))
    add_rule(rules, names, STRONG_RULES, 4, ~is_ordered[component[index]])
    claimed = int(np.count_nonzero(component[index] == index))
    return ComponentsVerdict(**verdict_of(graph, result, rules), components=claimed)


Checks = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Whether paths lead to each vertex from the vertex that names its component, and back, inside the
component; and whether the component that a vertex names can be put in order.
"""


def _by_rows(graph: JudgedEdges, component: NDArray[np.uint32]) -> Checks | None:
    """Return None if rows do not fit the memory limit."""
    rows = graph.rows(along=True)
    back = graph.rows(along=False) if graph.directed else rows
    if rows is None or back is None:
        return None
    count = graph.places
    queue = np.empty(count, np.uint32)
    marks = [_names(component), _names(component)]
    for ends, reached in zip((rows, back), marks, strict=True):
        follow_inside(*ends, component, queue, reached)
    lists = np.empty(2 * count, np.uint32)
    list_components(component, lists)
    entering, ordered = np.zeros(count, np.int64), np.zeros(count, np.uint8)
    order_components(*rows, component, lists[:count], lists[count:], entering, queue, ordered)
    return (marks[0] & marks[1]) != 0, ordered != 0


def _by_scans(graph: JudgedEdges, component: NDArray[np.uint32]) -> Checks:
    reached, reaches = _names(component), _names(component)
    while sum(
        scan_inside(sources, targets, component, reached, reaches)
        for sources, targets, *_ in graph.batches()
    ):
        pass
    ordered, count = np.zeros(graph.places, np.uint8), -1
    while count < (count := int(np.count_nonzero(ordered))):
        entered = np.zeros(graph.places, np.uint8)
        for sources, targets, *_ in graph.batches():
            scan_between(sources, targets, component, ordered, entered)
        ordered[entered == 0] = 1
    return (reached & reaches) != 0, ordered != 0


def _names(component: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Mark the vertices that name a component."""
    return (component == np.arange(len(component), dtype=np.uint32)).astype(np.uint8)


class CondensationVerdict(Verdict):
    """Verdict on the edges between strong components."""

    rows: int


def validate_condensation(graph: JudgedEdges, result: Result) -> CondensationVerdict:
    """Return the verdict on the edges between strong components. If rows of the edges do not fit
    the memory limit, only the rows of the result are judged by themselves.
    """
    check_kind(result, graph.directed)
    names, rules = graph.names, []
    component = _named_components(graph)
    keys = np.empty(result.rows, np.uint64)
    told, first, wrong = np.empty(result.rows, np.int64), 0, 0
    example: list[int | str | None] = []
    for batch in pair_batches(names, result):
        rows, src, dst, there = batch
        if component is not None:
            there &= (component[src] == src) & (component[dst] == dst) & (src != dst)
        if not there.all():
            wrong += int(np.count_nonzero(~there))
            example = example or batch.ends(int(np.argmin(there)))
        some = slice(first, first + len(src))
        keys[some] = pair_keys(src, dst)
        told[some] = as_numpy(rows["edges"].cast(pa.int64()).fill_null(-1))
        keys[some][~there] = _NO_PAIR
        first = some.stop
    if wrong:
        rules.append(rule_of(CONDENSATION_RULES, 1, wrong, example))
    order = np.argsort(keys, kind="stable")
    keys, told = keys[order], told[order]
    listed = keys != _NO_PAIR
    again = np.append(False, keys[1:] == keys[:-1])[: len(keys)] & listed
    add_pair_rule(rules, names, CONDENSATION_RULES, 2, keys[again])
    judged, unjudged = ("all", 0) if component is not None else ("some", result.rows)
    if component is not None:
        counted, missing = np.zeros(len(keys), np.int64), np.empty(0, np.uint64)
        for sources, targets, *_ in graph.batches():
            ends = component[sources], component[targets]
            between = np.flatnonzero(ends[0] != ends[1])
            found, counts = np.unique(
                pair_keys(*(end[between] for end in ends)), return_counts=True
            )
            at, there = find_keys(keys, found)
            counted[at[there]] += counts[there]
            missing = np.union1d(missing, found[~there])[:_MOST_MISSING]
        add_pair_rule(
            rules, names, CONDENSATION_RULES, 3, keys[(counted != told) & listed & ~again]
        )
        add_pair_rule(rules, names, CONDENSATION_RULES, 4, missing)
    verdict = verdict_of(graph, result, rules, judged, unjudged)
    return CondensationVerdict(**verdict, rows=result.rows)


_NO_PAIR = np.uint64(2**64 - 1)
_ROW_BYTES = 6 * 8
_MOST_MISSING = 1000
"""The most missing pairs that are counted."""


def _named_components(graph: JudgedEdges) -> NDArray[np.uint32] | None:
    """Return the least vertex of each vertex's strong component, by place; None if rows do not fit
    the memory limit.
    """
    rows = graph.rows(along=True)
    back = graph.rows(along=False) if graph.directed else rows
    if rows is None or back is None:
        return None
    count, index = graph.places, graph.names.index
    component = np.full(count, UNREACHED, np.uint32)
    find_components(
        *rows, *back, component, np.empty(count, np.int64), np.empty(2 * count, np.uint32)
    )
    least = np.empty(count, np.uint32)
    least[component[index[::-1]]] = index[::-1]  # the last one that is put there is the least
    return least[component]


CONDENSATION = Judge(
    validate_condensation,
    vertex_bytes=JUDGING_BYTES,
    row_bytes=_ROW_BYTES,
    kernels=(programs, strong),
)
STRONG = Judge(validate_strong, vertex_bytes=JUDGING_BYTES, kernels=(programs, strong))
