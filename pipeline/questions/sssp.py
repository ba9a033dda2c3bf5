"""Shortest paths."""

from __future__ import annotations

from .question import Question

SSSP = Question.of_one_form(
    name="sssp",
    title="Shortest paths",
    summary="Find shortest paths from one vertex by edge weights.",
    columns={"distance": "number", "parent": "id"},
    program="algorithms.sssp:planned",
)
