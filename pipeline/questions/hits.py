"""HITS."""

from __future__ import annotations

from typing import Any

from .facts import IterationRecord, ScoresRecord, elsewhere, tell_iterations, tell_scores_verdict
from .parameters import UNWEIGHTED, Parameter, Real, max_iterations
from .question import Cost, Form, Question


def _tell(record: Any) -> str:
    return tell_iterations(record["hits"])


HITS = Question(
    name="hits",
    summary="Compute HITS: hubs, which point to authorities, and authorities, which hubs point to.",
    examples=(
        "delegraph hits edges/ -o hits/ --directed",
        "delegraph hits graph.dg -o hits/ --tolerance 1e-6",
    ),
    description="""
The authority of a vertex is the sum of the hub scores of the vertices that have an edge to it, and
its hub score is the sum of the authorities of the vertices that it has an edge to. Either score
adds up to 1. In a connected undirected graph that is not bipartite, both converge to the same.

Rows that repeat an edge count once. Self-loops are left out; --loops keep counts each once. If the
graph has weights, an edge counts as much as its weight.

A run that does not converge writes its result, says so, and exits with 0, or with 1 if --strict is
given.
""",
    about="""
Both scores add up to 1. The run stops when an iteration changes the hub scores less than
``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it has
converged. Edges count by their weights, if the graph has any.
""",
    parameters=(
        Parameter(
            "tolerance",
            Real(),
            1e-8,
            "Stop when an iteration changes the hub scores less than this, summed over all "
            "vertices.",
        ),
        max_iterations(100),
        UNWEIGHTED,
    ),
    converges=True,
    forms=(
        Form(
            name="hits",
            title="HITS",
            columns={"hub": "float", "authority": "float"},
            facts={"hits": ScoresRecord, "iterations": list[IterationRecord]},
            cost=Cost(100, 1),
            algorithm="algorithms.hits:Hits",
            program="algorithms.hits:planned",
            judge="judging.scores:HITS",
            tell=_tell,
            finding=("values", "authority"),
            tell_verdict=tell_scores_verdict,
            weights=True,
            counts_loops=True,
            elsewhere=elsewhere("HITS"),
        ),
    ),
    checked_by="scores computed again",
    in_bench=True,
)
