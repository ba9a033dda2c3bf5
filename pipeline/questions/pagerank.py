"""PageRank."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import IterationRecord, elsewhere, tell_iterations
from .parameters import (
    UNWEIGHTED,
    Choice,
    Parameter,
    Real,
    VertexWeights,
    Whole,
    max_iterations,
)
from .question import Cost, Form, Question


class PageRankRecord(TypedDict):
    """change: L1, of the last iteration. converged: None where a number of iterations was asked."""

    iterations: int
    change: float
    converged: bool | None
    method: str


def _tell(record: Any) -> str:
    return tell_iterations(record["pagerank"])


def _tell_verdict(verdict: Any) -> str:
    change = f"one more iteration changes {verdict['change']:.1e}"
    return f"{verdict['vertices']:,} vertices, {change}"


PAGERANK = Question(
    name="pagerank",
    summary="Compute PageRank: how often a random walk along the edges is at each vertex.",
    examples=(
        "delegraph pagerank graph.dg -o ranks/",
        "delegraph pagerank edges/ -o ranks/ --directed --tolerance 1e-8",
        "delegraph pagerank graph.dg -o ranks/ --iterations 20",
        "delegraph pagerank edges/ -o ranks/ --weight amount --duplicates sum",
    ),
    description="""
The scores add up to 1, unless --dangling none drops some. Rows that repeat an edge count once.
Self-loops are left out; --loops keep counts each once, on CPUs. If the graph has weights, the
random walk follows an edge with a probability in proportion to its weight.

A run that does not converge writes its result, says so, and exits with 0, or with 1 if --strict is
given. NetworkX multiplies its tolerance by the number of vertices.
""",
    about="""
The scores add up to 1, unless ``dangling="none"`` drops some. The run stops when an iteration
changes less than ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says
whether it has converged. Edges count by their weights, if the graph has any.
""",
    parameters=(
        Parameter(
            "damping",
            Real(),
            0.85,
            "Probability that the random walk follows an edge; otherwise it jumps to some vertex.",
            "the probability to follow an edge, at least 0 and below 1.",
        ),
        Parameter(
            "tolerance",
            Real(),
            1e-6,
            "Stop when an iteration changes less than this, summed over all vertices.",
        ),
        max_iterations(100),
        Parameter(
            "iterations",
            Whole(1),
            None,
            "Run exactly this many iterations.",
        ),
        Parameter(
            "personalize",
            VertexWeights(),
            None,
            "Jump to these vertices only: a file with a column vertex and, optionally, weight.",
            "where the walk jumps to: a weight for each of some vertices, or a Parquet file with "
            "``vertex`` and, unless all weights are equal, ``weight``.",
        ),
        Parameter(
            "dangling",
            Choice(("even", "none")),
            "even",
            "What becomes of the scores of vertices that no edge leaves: even (they are spread as "
            "jumps are) or none (they are dropped).",
            '``"even"`` spreads the score of vertices that no edge leaves as jumps are spread; '
            '``"none"`` drops it.',
        ),
        UNWEIGHTED,
        Parameter(
            "precision",
            Choice(("double", "single")),
            "double",
            "single: 32-bit values with a relative error of at most 1e-6, faster on GPUs.",
            '``"double"``, or ``"single"`` for float32 values with a relative error of at most '
            "1e-6, which GPUs compute faster.",
        ),
    ),
    conflicts=(("iterations", "tolerance"), ("iterations", "max_iterations")),
    converges=True,
    forms=(
        Form(
            name="pagerank",
            title="PageRank",
            columns={"pagerank": "float"},
            facts={"pagerank": PageRankRecord, "iterations": list[IterationRecord]},
            cost=Cost(2.7, 0.02, "iterations", 20),
            algorithm="algorithms.pagerank:PageRank",
            program="algorithms.pagerank:planned",
            judge="judging.programs:PAGERANK",
            tell=_tell,
            finding=("values", "pagerank"),
            tell_verdict=_tell_verdict,
            assumed="PageRank with default options",
            weights=True,
            counts_loops=True,
            counts_loops_on_gpus=False,
            elsewhere=elsewhere("PageRank", loops="NetworkX, igraph and cuGraph"),
        ),
    ),
    checked_by="one more iteration",
    in_bench=True,
)
