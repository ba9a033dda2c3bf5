"""Closeness."""

from __future__ import annotations

from .question import Question

CLOSENESS = Question.of_one_form(
    name="closeness",
    title="Closeness",
    summary="Compute closeness: how near each vertex is to the others.",
    columns={"closeness": "float"},
    program="algorithms.many_sources:planned",
)
