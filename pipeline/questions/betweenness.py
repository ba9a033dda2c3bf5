"""Betweenness."""

from __future__ import annotations

from .question import Question

BETWEENNESS = Question.of_one_form(
    name="betweenness",
    title="Betweenness",
    summary="Compute betweenness: how many shortest paths lead through each vertex.",
    columns={"betweenness": "float"},
    program="algorithms.betweenness:planned",
)
