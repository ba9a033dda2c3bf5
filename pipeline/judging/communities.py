"""Validation of communities: their quality is counted again. The rules are in
kernels/judging/programs.py.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ...kernels.judging import communities, labels, programs, strong
from ...kernels.judging.communities import find_best_move
from ...kernels.judging.programs import COMMUNITY_RULES
from ...kernels.judging.strong import follow_inside, scan_inside
from ..questions import FORMS
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .neighbours import NOTED_BYTES, Neighbours
from .programs import add_rule, are_not_least, is_by_weights, read_groups, rule_of, verdict_of
from .searches import Verdict, check_kind, named

_TOLERANCE = 1e-9  # of sums of floats, in any order, and of weights that were rounded


class Move(TypedDict):
    """A move of a vertex to another community, in the user's ids. gain: of the quality."""

    vertex: int | str | None
    community: int | str | None
    gain: float


class CommunitiesVerdict(Verdict):
    """Verdict on communities. quality: None where no edge counts. best_move: the single move to a
    neighbour's community that would raise the quality most; None if none would. disconnected: the
    number of communities that edges inside them do not connect.
    """

    communities: int
    objective: str
    quality: float | None
    best_move: Move | None
    disconnected: int


def validate_communities(graph: JudgedEdges, result: Result, connected: bool) -> CommunitiesVerdict:
    """Return the verdict on communities. The graph has undirected edges in both directions.
    connected: whether communities have to be connected. Raises InputError as
    ``validate_components`` does.
    """
    check_kind(result, graph.directed)
    names, index, own = graph.names, graph.names.index, np.arange(graph.places, dtype=np.uint32)
    rules, community, is_stray = read_groups(graph, result, "community")
    add_rule(rules, names, COMMUNITY_RULES, 1, is_stray[index])
    community = np.where(is_stray, own, community)  # for the other rules
    add_rule(rules, names, COMMUNITY_RULES, 2, are_not_least(graph, community))
    groups = _Groups(graph, result)
    is_joined = groups.are_joined(community)
    if connected:
        add_rule(rules, names, COMMUNITY_RULES, 3, ~is_joined[index])
    quality = groups.check_quality("quality", community)
    above, not_nested, apart = community, *np.zeros((2, len(index)), np.bool_)
    for column in reversed(FORMS[result.algorithm].numbered_in(result.values)):
        broken, group, is_stray = read_groups(graph, result, column)
        rules += [] if rules else broken  # about rows: they are the same for all columns
        group = np.where(is_stray, own, group)
        not_nested |= is_stray[index] | are_not_least(graph, group) | (above[group] != above)[index]
        if connected:
            apart |= ~groups.are_joined(group)[index]
        groups.check_quality(column, group)
        above = group
    if groups.wrong:
        rules.append(rule_of(COMMUNITY_RULES, 4, len(groups.wrong), [*groups.wrong]))
    add_rule(rules, names, COMMUNITY_RULES, 5, not_nested)
    add_rule(rules, names, COMMUNITY_RULES, 6, apart)
    move = None if quality is None else groups.best_move(community)
    if move is not None and groups.measured.get("stable"):
        rules.append(rule_of(COMMUNITY_RULES, 7, 1, [move["vertex"]]))
    return CommunitiesVerdict(
        **verdict_of(graph, result, rules),
        communities=int(np.count_nonzero(community[index] == index)),
        objective=groups.objective,
        quality=quality,
        best_move=move,
        disconnected=len(np.unique(community[index][~is_joined[index]])),
    )


class _Groups:
    """Checks of communities and of other groups of vertices, which are named by vertices. wrong:
    what is told of qualities that are not what the run has measured.
    """

    def __init__(self, graph: JudgedEdges, result: Result) -> None:
        options = {} if result.info is None else result.info.options
        self.objective = str(options.get("objective", "modularity"))
        self.measured = {} if result.info is None else result.info.measured
        self.wrong: list[str] = []
        self._graph, self._rows = graph, graph.rows(along=True)
        self._resolution = float(options.get("resolution", 1.0) or 0)
        self._by_weights = is_by_weights(result)

    def are_joined(self, group: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return whether edges inside a group lead to each vertex from the one that names it."""
        reached = (group == np.arange(len(group), dtype=np.uint32)).astype(np.uint8)
        if self._rows is not None:
            follow_inside(*self._rows, group, np.empty(len(group), np.uint32), reached)
            return reached != 0
        while sum(
            scan_inside(sources, targets, group, reached, reached)
            for sources, targets, *_ in self._graph.batches()
        ):
            pass
        return reached != 0

    def check_quality(self, name: str, group: NDArray[np.uint32]) -> float | None:
        """Return the quality of groups. name: under which the run has told it."""
        quality, told = self._quality(group), self.measured.get(name)
        if told is not None and not _is_close(quality, told):
            counted = "none" if quality is None else f"{quality:.9g}"
            of_level = "" if name == "quality" else f"{name}: "
            self.wrong.append(f"{of_level}{counted}, not {told:.9g}")
        return quality

    def _quality(self, group: NDArray[np.uint32]) -> float | None:
        """Return the modularity of groups, or their value by the constant Potts model."""
        graph, by_weights = self._graph, self._by_weights
        batches = graph.weighted_batches if by_weights else graph.batches
        assert batches is not None
        inside, strength = 0.0, np.zeros(graph.places)
        for sources, targets, *weights in batches():
            weight = weights[0] if by_weights else np.ones(len(sources))
            inside += float(weight[group[sources] == group[targets]].sum())
            strength += np.bincount(sources, weight, graph.places)
        places, loops = graph.loops_by(by_weights)
        inside += 2 * float(loops.sum())
        strength[places] += 2 * loops
        if self.objective == "cpm":
            sizes = np.bincount(group[graph.names.index]).astype(np.float64)
            return inside / 2 - self._resolution * float((sizes * (sizes - 1)).sum()) / 2
        total = float(strength.sum())
        if not total:
            return None
        totals = np.bincount(group, strength)
        return inside / total - self._resolution * float(((totals / total) ** 2).sum())

    def best_move(self, community: NDArray[np.uint32]) -> Move | None:
        """Return the single move to a neighbour's community that raises the quality most; None if
        none does.
        """
        graph, index = self._graph, self._graph.names.index
        neighbours = Neighbours(graph, self._by_weights)
        label, is_cpm = neighbours.number[community[index]], self.objective == "cpm"
        mass = np.ones(len(index)) if is_cpm else neighbours.strength.astype(np.float64)
        if not is_cpm:
            places, loops = graph.loops_by(self._by_weights)
            mass[neighbours.number[places]] += 2 * neighbours.scale * loops
        total = float(mass.sum())
        factor = self._resolution * (neighbours.scale if is_cpm else 1 / total)
        totals = np.bincount(label, mass, len(index))
        gain, move = np.zeros(2), np.zeros(2, np.int64)
        for noted in neighbours.labels(label):
            find_best_move(*noted, label, mass, totals, factor, gain, move)
        if gain[1] <= _TOLERANCE:
            return None
        vertex, to = named(graph.names, tuple(index[move].tolist()))
        unit = 1 / neighbours.scale if is_cpm else 2 / total
        return Move(vertex=vertex, community=to, gain=float(gain[0]) * unit)


def _is_close(quality: float | None, told: float) -> bool:
    if quality is None:
        return False
    return math.isclose(quality, told, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _judge(connected: bool) -> Judge:
    return Judge(
        partial(validate_communities, connected=connected),
        vertex_bytes=14 * 8 + NOTED_BYTES,  # a hub may have all vertices as neighbours
        kernels=(programs, strong, labels, communities),
        needs_weights=lambda result: result.info is not None and is_by_weights(result),
    )


LEIDEN, LOUVAIN = _judge(connected=True), _judge(connected=False)
