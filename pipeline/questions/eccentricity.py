"""Eccentricity."""

from __future__ import annotations

from .question import Question

ECCENTRICITY = Question.of_one_form(
    name="eccentricity",
    title="Eccentricity",
    summary="Compute each vertex's distance to the farthest one; bound the diameter.",
    columns={"eccentricity": "integer"},
    program="algorithms.many_sources:planned",
)
