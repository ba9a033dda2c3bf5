"""PageRank."""

from __future__ import annotations

from .question import Question

PAGERANK = Question.of_one_form(
    name="pagerank",
    title="PageRank",
    summary="Compute PageRank.",
    columns={"pagerank": "float"},
    program="algorithms.pagerank:planned",
)
