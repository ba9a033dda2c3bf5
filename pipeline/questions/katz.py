"""Katz centrality."""

from __future__ import annotations

from typing import Any

from .facts import IterationRecord, ScoresRecord, elsewhere, tell_iterations, tell_scores_verdict
from .parameters import UNWEIGHTED, Parameter, Real, max_iterations
from .question import Cost, Form, Question

OF_BOUND = 0.9
"""The product of the alpha that ``auto`` takes and a bound of the greatest eigenvalue."""

BOUNDING_STEPS = 8
"""Number of steps that make this bound closer."""


class KatzRecord(ScoresRecord):
    """alpha: what a further edge counts, as asked for or chosen."""

    alpha: float


def _tell(record: Any) -> str:
    return tell_iterations(record["katz"])


KATZ = Question(
    name="katz",
    summary="Compute Katz centrality: how many walks end at a vertex, longer ones counting less.",
    examples=(
        "delegraph katz graph.dg -o scores/ --tolerance 1e-9",
        "delegraph katz edges/ -o scores/ --directed --alpha 0.01",
    ),
    description="""
The score of a vertex is 1 plus --alpha times the sum of the scores of the vertices that have an
edge to it, scaled so that the squares of all scores add up to 1. --alpha must be less than 1 over
the greatest eigenvalue of the graph: otherwise scores grow more and more, which is an error.
NetworkX takes 0.1 unless it is told otherwise, which is too great for most graphs.

Rows that repeat an edge count once. Self-loops are left out; --loops keep counts each once. If the
graph has weights, an edge counts as much as its weight.

A run that does not converge writes its result, says so, and exits with 0, or with 1 if --strict is
given.
""",
    about="""
The squares of the scores add up to 1. ``alpha`` must be less than 1 over the greatest eigenvalue
of the graph; the record names the one that ``"auto"`` has chosen. The run stops when an iteration
changes less than ``tolerance`` on average over the vertices, or after ``max_iterations``. Edges
count by their weights, if the graph has any.
""",
    parameters=(
        Parameter(
            "alpha",
            Real(words=("auto",)),
            "auto",
            "Factor of a walk for each of its edges: a number, or auto, which is 0.9 over a bound "
            "of the greatest eigenvalue.",
            'the factor of a walk for each of its edges; ``"auto"`` is 0.9 over a bound of the '
            "greatest eigenvalue.",
        ),
        Parameter(
            "tolerance",
            Real(),
            1e-6,
            "Stop when an iteration changes less than this, on average over the vertices.",
        ),
        max_iterations(1000),
        UNWEIGHTED,
    ),
    converges=True,
    forms=(
        Form(
            name="katz",
            title="Katz centrality",
            columns={"katz": "float"},
            facts={"katz": KatzRecord, "iterations": list[IterationRecord]},
            cost=Cost(100, 1),
            algorithm="algorithms.katz:Katz",
            program="algorithms.katz:planned",
            judge="judging.scores:KATZ",
            tell=_tell,
            finding=("values", "katz"),
            tell_verdict=tell_scores_verdict,
            weights=True,
            counts_loops=True,
            elsewhere=elsewhere("Katz centrality"),
        ),
    ),
    checked_by="scores computed again",
    in_bench=True,
)
