"""Validation of communities: their quality is counted again. The rules are in
kernels/judging/programs.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...kernels.judging import programs, strong
from ...kernels.judging.programs import COMMUNITY_RULES
from ...kernels.judging.strong import follow_inside, scan_inside
from ..questions import FORMS
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, are_not_least, is_by_weights, read_groups, rule_of, verdict_of
from .searches import RuleVerdict, Verdict, check_kind

_TOLERANCE = 1e-9  # of sums of floats, in any order, and of weights that were rounded


class CommunitiesVerdict(Verdict):
    """Verdict on communities. quality: None where no edge counts. disconnected: the number of
    communities that edges inside them do not connect.
    """

    communities: int
    objective: str
    quality: float | None
    disconnected: int


def validate_communities(graph: JudgedEdges, result: Result, connected: bool) -> CommunitiesVerdict:
    """Return the verdict on communities. The graph has undirected edges in both directions.
    connected: whether communities have to be connected. Raises InputError as
    ``validate_components`` does.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    rules, community, is_stray = read_groups(graph, result, "community")
    add_rule(rules, names, COMMUNITY_RULES, 1, is_stray[index])
    own = np.arange(graph.places, dtype=np.uint32)
    community = np.where(is_stray, own, community)  # for the other rules
    add_rule(rules, names, COMMUNITY_RULES, 2, are_not_least(graph, community))
    is_joined = _find_joined(graph, community)
    if connected:
        add_rule(rules, names, COMMUNITY_RULES, 3, ~is_joined[index])
    judge = _QualityJudge.of(graph, result)
    quality = judge.check("quality", community)
    _judge_hierarchy(graph, result, community, connected, judge, rules)
    if judge.wrong:
        rules.append(rule_of(COMMUNITY_RULES, 4, len(judge.wrong), judge.wrong))
    return CommunitiesVerdict(
        **verdict_of(graph, result, rules),
        communities=int(np.count_nonzero(community[index] == index)),
        objective=judge.objective,
        quality=quality,
        disconnected=len(np.unique(community[index][~is_joined[index]])),
    )


def _judge_hierarchy(
    graph: JudgedEdges,
    result: Result,
    community: NDArray[np.uint32],
    connected: bool,
    judge: _QualityJudge,
    rules: list[RuleVerdict],
) -> None:
    """Judge the groups of each level, from the highest one down. Adds the broken rules to
    ``rules``, and wrong qualities to the judge's.
    """
    names, index, above = graph.names, graph.names.index, community
    own = np.arange(graph.places, dtype=np.uint32)
    wrong, is_joined = np.zeros(len(index), np.bool_), np.ones(len(index), np.bool_)
    for column in reversed(FORMS[result.algorithm].numbered_in(result.values)):
        broken, group, is_stray = read_groups(graph, result, column)
        rules += [] if rules else broken  # about rows: they are the same for all columns
        group = np.where(is_stray, own, group)
        apart = (above[group] != above)[index]
        wrong |= is_stray[index] | are_not_least(graph, group) | apart
        if connected:
            is_joined &= _find_joined(graph, group)[index]
        judge.check(column, group)
        above = group
    add_rule(rules, names, COMMUNITY_RULES, 5, wrong)
    add_rule(rules, names, COMMUNITY_RULES, 6, ~is_joined)


@dataclass
class _QualityJudge:
    """Counts qualities again. wrong: what is told of those that are not what the run has
    measured.
    """

    graph: JudgedEdges
    objective: str
    resolution: float
    by_weights: bool
    measured: Mapping[str, float]
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, graph: JudgedEdges, result: Result) -> _QualityJudge:
        options = {} if result.info is None else result.info.options
        objective = str(options.get("objective", "modularity"))
        resolution = float(options.get("resolution", 1.0) or 0)
        measured = {} if result.info is None else result.info.measured
        return cls(graph, objective, resolution, is_by_weights(result), measured)

    def check(self, name: str, community: NDArray[np.uint32]) -> float | None:
        """Return the quality of communities. name: under which the run has told it."""
        given = self.graph, community, self.objective, self.resolution, self.by_weights
        quality, told = _quality(*given), self.measured.get(name)
        if told is not None and not _is_close(quality, told):
            counted = "none" if quality is None else f"{quality:.9g}"
            of_level = "" if name == "quality" else f"{name}: "
            self.wrong.append(f"{of_level}{counted}, not {told:.9g}")
        return quality


def _is_close(quality: float | None, told: float) -> bool:
    if quality is None:
        return False
    return math.isclose(quality, told, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _find_joined(graph: JudgedEdges, community: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether edges inside a community lead to each vertex from the one that names it."""
    reached = (community == np.arange(len(community), dtype=np.uint32)).astype(np.uint8)
    rows = graph.rows(along=True)
    if rows is not None:
        follow_inside(*rows, community, np.empty(len(community), np.uint32), reached)
        return reached != 0
    while sum(
        scan_inside(sources, targets, community, reached, reached)
        for sources, targets, *_ in graph.batches()
    ):
        pass
    return reached != 0


def _quality(
    graph: JudgedEdges,
    community: NDArray[np.uint32],
    objective: str,
    resolution: float,
    by_weights: bool,
) -> float | None:
    """Return the modularity of communities, or their value by the constant Potts model."""
    batches = graph.weighted_batches if by_weights else graph.batches
    assert batches is not None
    inside, strength = 0.0, np.zeros(graph.places)
    for sources, targets, *weights in batches():
        weight = weights[0] if by_weights else np.ones(len(sources))
        inside += float(weight[community[sources] == community[targets]].sum())
        strength += np.bincount(sources, weight, graph.places)
    if objective == "cpm":
        sizes = np.bincount(community[graph.names.index]).astype(np.float64)
        return inside / 2 - resolution * float((sizes * (sizes - 1)).sum()) / 2
    total = float(strength.sum())
    if not total:
        return None
    totals = np.bincount(community, strength)
    return inside / total - resolution * float(((totals / total) ** 2).sum())


def _judge(connected: bool) -> Judge:
    return Judge(
        partial(validate_communities, connected=connected),
        vertex_bytes=10 * 8,
        kernels=(programs, strong),
        needs_weights=lambda result: result.info is not None and is_by_weights(result),
    )


LEIDEN, LOUVAIN = _judge(connected=True), _judge(connected=False)
