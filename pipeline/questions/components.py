"""Connected components."""

from __future__ import annotations

from .question import Question

COMPONENTS = Question.of_one_form(
    name="components",
    title="Connected components",
    summary="Find connected components: the least vertex of each vertex's component.",
    columns={"component": "id"},
    program="algorithms.components:planned",
)
