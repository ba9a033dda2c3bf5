"""Validation of HITS, eigenvector and Katz centrality: the scores are computed again, by streaming
the graph's edges once or twice for each iteration. The rules are in kernels/judging/programs.py.

Memory holds at most nine values for each vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.judging.programs import SCORES_RULES, add_shares, add_weighted_shares
from .. import questions
from ..questions.katz import BOUNDING_STEPS, OF_BOUND
from ..questions.question import Question
from ..results.result import Option, Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, is_by_weights, read_values, verdict_of
from .searches import Verdict, check_kind

_ROUNDING, _LEAST = 1e-6, 1e-290
"""Relative rounding error of scores, and the least score that is told from 0. Judges add up one
edge after the other: the error of a sum of 10^8 equal values is some 10^-9, in each iteration.
"""

_ABOUT, _NOISE = 1e-3, 1e-14
"""Differences up to which a change may be taken as less than the tolerance or not: in relation to
the tolerance, and to the sum of all scores, whose rounding is part of the change.
"""

Scores = NDArray[np.float64]


class ScoresVerdict(Verdict):
    """Verdict on scores. iterations: number of iterations that were computed again."""

    iterations: int


class _Sums(NamedTuple):
    """Sums of values over the edges of a graph. places: of vertices, by rising user id."""

    graph: JudgedEdges
    weighted: bool

    @property
    def places(self) -> NDArray[np.uint32]:
        return self.graph.names.index

    def first(self, value: float) -> Scores:
        """Return the same score for all vertices."""
        scores = np.zeros(self.graph.places)
        scores[self.places] = value
        return scores

    def into(self, values: Scores) -> Scores:
        """Return, for each vertex, the sum of values over the edges that enter it."""
        return self._sums(values, False)

    def along(self, values: Scores) -> Scores:
        """Return, for each vertex, the sum of values over the edges that leave it."""
        return self._sums(values, True)

    def _sums(self, values: Scores, turned: bool) -> Scores:
        came, graph = np.zeros(self.graph.places), self.graph
        if self.weighted:
            assert graph.weighted_batches is not None
            for u, v, weights in graph.weighted_batches():
                ends = (v, u) if turned else (u, v)
                add_weighted_shares(*ends, weights, values, came)
        else:
            for u, v in graph.batches():
                add_shares(*((v, u) if turned else (u, v)), values, came)
        places, times = graph.loops_by(self.weighted)
        came[places] += times * values[places]
        return came


Iterates = Iterator[tuple[float, float, tuple[Scores, ...]]]
"""The change of each iteration, the sum of the scores that it has changed, and the scores of each
column, by rising user id.
"""


def _hits(sums: _Sums, options: Mapping[str, Option]) -> Iterates:
    hub = sums.first(1 / len(sums.places))
    while True:
        authority = sums.into(hub)
        came = sums.along(authority)
        came /= came.sum() or 1.0
        change = float(np.abs(came - hub).sum())
        hub = came
        yield change, 1.0, (hub[sums.places], authority[sums.places] / (authority.sum() or 1.0))


def _eigenvector(sums: _Sums, options: Mapping[str, Option]) -> Iterates:
    score = sums.first(1 / len(sums.places))
    while True:
        came = sums.into(score)
        came += score
        came /= np.linalg.norm(came)
        change = float(np.abs(came - score).sum())
        score = came
        yield change, float(score.sum()), (score[sums.places],)


def _katz(sums: _Sums, options: Mapping[str, Option]) -> Iterates:
    given = options["alpha"]
    alpha = (
        OF_BOUND / (_eigenvalue_bound(sums) or math.inf) if given == "auto" else float(given or 0)
    )
    score = sums.first(0.0)
    while True:
        came = sums.into(score)
        came *= alpha
        came[sums.places] += 1.0
        change = float(np.abs(came - score).sum())
        score = came
        yield change, float(score.sum()), (score[sums.places] / np.linalg.norm(score),)


def _eigenvalue_bound(sums: _Sums) -> float:
    x, bound = sums.into(sums.first(1.0)), math.inf
    if not x.any():
        return 0.0
    x[sums.places] = np.sqrt(np.maximum(x[sums.places], x[x > 0].min()))
    for _ in range(BOUNDING_STEPS):
        came = sums.into(x)
        with np.errstate(over="ignore"):
            bound = min(bound, float((came[sums.places] / x[sums.places]).max()))
        x += came
        x /= x.max()
        x[sums.places] = np.maximum(x[sums.places], _LEAST)
    return bound


class _Question(NamedTuple):
    """A question for scores. by_vertex: whether the tolerance is compared with the mean change of a
    vertex, rather than with the sum of all changes.
    """

    declared: Question
    iterates: Callable[[_Sums, Mapping[str, Option]], Iterates]
    by_vertex: bool = False

    @property
    def defaults(self) -> dict[str, Option]:
        return {parameter.name: parameter.default for parameter in self.declared.parameters}


def _validate(question: _Question, graph: JudgedEdges, result: Result) -> ScoresVerdict:
    """Return the verdict on scores. Raises InputError as ``validate_components`` does.

    A run ends once an iteration changes less than the tolerance. Where the change is about the
    tolerance, a judge who adds up in another order cannot tell whether it was the last one: a
    result may then be that of this iteration, or of a later one.
    """
    check_kind(result, graph.directed)
    index, rules = graph.names.index, []
    found = read_values(graph, result, result.values, rules)
    wrong = np.zeros(len(index), np.bool_)
    for scores in found:
        wrong |= ~((scores >= 0) & (scores <= 1 + _ROUNDING))
    add_rule(rules, graph.names, SCORES_RULES, 1, wrong)
    options = {**question.defaults, **(result.info.options if result.info else {})}
    tolerance, most = float(options["tolerance"] or 0), int(options["max_iterations"] or 0)
    tolerance *= len(index) if question.by_vertex else 1
    differs, iterations = np.ones(len(index), np.bool_), 0
    iterates = question.iterates(_Sums(graph, is_by_weights(result)), options)
    for iterations, (change, total, right) in zip(range(1, most + 1), iterates, strict=False):
        about = tolerance * _ABOUT + total * _NOISE
        if change < tolerance + about or iterations == most:
            differing = _differing(found, right)
            if np.count_nonzero(differing) < np.count_nonzero(differs):
                differs = differing
        del right  # before the next ones are made
        if not differs.any() or change < tolerance - about:
            break
    add_rule(rules, graph.names, SCORES_RULES, 2, differs & ~wrong)
    return ScoresVerdict(**verdict_of(graph, result, rules), iterations=iterations)


def _differing(found: list[Scores], right: tuple[Scores, ...]) -> NDArray[np.bool_]:
    """Return, for each vertex, whether any of its scores is not the right one."""
    differing = np.zeros(len(found[0]), np.bool_)
    for scores, true in zip(found, right, strict=True):
        differing |= ~(np.abs(scores - true) <= _ROUNDING * true + _LEAST)
    return differing


def _judge(question: _Question, held: int) -> Judge:
    """Return the judge of a question. held: the number of values of each vertex that it holds."""
    return Judge(
        partial(_validate, question),
        vertex_bytes=8 * held,
        needs_weights=lambda result: result.info is not None and is_by_weights(result),
    )


HITS = _judge(_Question(questions.HITS, _hits), 9)
EIGENVECTOR = _judge(_Question(questions.EIGENVECTOR, _eigenvector), 6)
KATZ = _judge(_Question(questions.KATZ, _katz, by_vertex=True), 6)
