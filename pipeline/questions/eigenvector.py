"""eigenvector centrality."""

from __future__ import annotations

from typing import Any

from .facts import IterationRecord, ScoresRecord, elsewhere, tell_iterations, tell_scores_verdict
from .parameters import UNWEIGHTED, Parameter, Real, max_iterations
from .question import Cost, Form, Question


def _tell(record: Any) -> str:
    return tell_iterations(record["eigenvector"])


EIGENVECTOR = Question(
    name="eigenvector",
    summary="Compute eigenvector centrality: a vertex counts as much as those that point to it.",
    examples=(
        "delegraph eigenvector graph.dg -o scores/",
        "delegraph eigenvector edges/ -o scores/ --weight amount --duplicates sum",
    ),
    description="""
The score of a vertex is in proportion to the sum of the scores of the vertices that have an edge to
it. The squares of all scores add up to 1.

Rows that repeat an edge count once. Self-loops are left out; --loops keep counts each once. If the
graph has weights, an edge counts as much as its weight.

A run that does not converge writes its result, says so, and exits with 0, or with 1 if --strict is
given. In a directed graph without cycles the scores go towards 0 at nearly all vertices, and
converge slowly: use katz. NetworkX multiplies its tolerance by the number of vertices.
""",
    about="""
The squares of the scores add up to 1. The run stops when an iteration changes less than
``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it
has converged. Edges count by their weights, if the graph has any.
""",
    parameters=(
        Parameter(
            "tolerance",
            Real(),
            1e-6,
            "Stop when an iteration changes less than this, summed over all vertices.",
        ),
        max_iterations(100),
        UNWEIGHTED,
    ),
    converges=True,
    forms=(
        Form(
            name="eigenvector",
            title="eigenvector centrality",
            columns={"eigenvector": "float"},
            facts={"eigenvector": ScoresRecord, "iterations": list[IterationRecord]},
            cost=Cost(100, 1),
            algorithm="algorithms.eigenvector:Eigenvector",
            program="algorithms.eigenvector:planned",
            judge="judging.scores:EIGENVECTOR",
            tell=_tell,
            finding=("values", "eigenvector"),
            tell_verdict=tell_scores_verdict,
            weights=True,
            counts_loops=True,
            elsewhere=elsewhere("eigenvector centrality"),
        ),
    ),
    checked_by="scores computed again",
    in_bench=True,
)
