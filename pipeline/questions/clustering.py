"""Triangles and local clustering coefficients."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import several
from .question import Cost, Form, Question


class ClusteringRecord(TypedDict):
    """triangles: of the whole graph, each once. average: the mean clustering coefficient of all
    vertices. transitivity: three times the triangles over the pairs of neighbours of all vertices;
    0 if there are none, None in a directed graph.
    """

    triangles: int
    average: float
    transitivity: float | None
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts = record["clustering"]
    counted = several(facts["triangles"], "triangle", "triangles")
    return f"{counted}; average clustering {facts['average']:.4g}"


def _tell_verdict(verdict: Any) -> str:
    counted = several(verdict["triangles"], "triangle", "triangles")
    return f"{verdict['vertices']:,} vertices, {counted} counted again"


CLUSTERING = Question(
    name="clustering",
    summary="Count triangles, and compute local clustering coefficients.",
    examples=(
        "delegraph clustering edges/ -o clustering/",
        "delegraph clustering graph.dg -o clustering/ --memory-limit 2GB",
    ),
    description="""
The clustering coefficient of a vertex is the share of the pairs of its neighbours that an edge
joins. It is 0 for a vertex with fewer than two neighbours. The triangles of a vertex are the pairs
of neighbours that are joined.

In a directed graph the neighbours of a vertex are the ends of its edges in either direction, each
once. The coefficient is the number of directed edges between them, over the most that there can be:
this is the local clustering coefficient (LCC) of LDBC Graphalytics. Triangles are counted as if
edges had no direction.

Self-loops are left out, rows that repeat an edge count once, and weights do not count. The record
has the number of triangles of the whole graph, the average of all coefficients and, if the graph is
undirected, its transitivity.
""",
    about="""
``clustering`` is the share of the pairs of a vertex's neighbours that an edge joins, 0 for fewer
than two neighbours. In a directed graph it is the number of directed edges between neighbours, in
either direction, over the most that there can be (LDBC Graphalytics' LCC). ``triangles`` counts the
triangles at the vertex as if edges had no direction. The record has their total, the average
coefficient and the transitivity. Weights do not count.
""",
    parameters=(),
    forms=(
        Form(
            name="clustering",
            title="Local clustering",
            columns={"clustering": "float", "triangles": "integer"},
            facts={"clustering": ClusteringRecord},
            algorithm="algorithms.clustering:Clustering",
            program="algorithms.clustering:planned",
            judge="judging.clustering:CLUSTERING",
            tell=_tell,
            finding=("values", "clustering"),
            tell_verdict=_tell_verdict,
            cost=Cost(500, 3),
            on_several_gpus=False,
        ),
    ),
    checked_by="triangles counted again",
    in_bench=True,
)
