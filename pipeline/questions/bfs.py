"""Breadth-first search: from one source, from several, or from the nearest of several."""

from __future__ import annotations

from .question import Form, Question

BFS = Question(
    name="bfs",
    summary="Search breadth-first: each vertex's distance in hops, and its parent.",
    forms=(
        Form(
            name="bfs",
            title="Breadth-first search",
            columns={"distance": "integer", "parent": "id"},
            record="search",
            program=None,
        ),
        Form(
            name="bfs-each",
            title="Searches from several sources",
            columns={"source": "id", "distance": "integer"},
            record="searches",
            program="algorithms.bfs_each:planned",
        ),
        Form(
            name="bfs-together",
            title="Distance to the nearest of several sources",
            columns={"distance": "integer", "nearest": "id"},
            record="searches",
            program="algorithms.bfs_together:planned",
        ),
    ),
)
