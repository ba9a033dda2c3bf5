"""Betweenness."""

from __future__ import annotations

from typing import Any

from .facts import SourcesRecord, several, tell_rest
from .parameters import Flag, Parameter, sources_and_seed
from .question import Cost, Form, Question


def _tell(record: Any) -> str:
    vertices, sources = record["graph"]["vertices"], record["betweenness"]["sources"]
    counted = [several(count, "vertex", "vertices") for count in (vertices, sources)]
    return f"betweenness of {counted[0]}, by paths from {counted[1]}"


def _tell_verdict(verdict: Any) -> str:
    rows = f"{verdict['rows']:,} of {verdict['vertices']:,} vertices"
    paths = f"paths from {verdict['found_anew']:,} sources computed again"
    return f"{rows}, with {paths}{tell_rest(verdict, 'sum')}"


BETWEENNESS = Question(
    name="betweenness",
    summary="Compute betweenness: how many shortest paths lead through each vertex.",
    examples=(
        "delegraph betweenness graph.dg -o between/ --sources 64",
        "delegraph betweenness edges/ -o between/ --directed --normalized",
    ),
    description="""
Paths are counted in hops, between all pairs of other vertices; in an undirected graph each pair
counts once. If a pair has several shortest paths, each path counts as a fraction.

Each source takes two passes over the edges that it reaches. If a graph has more than about ten
thousand vertices, give --sources.
""",
    about="""
The value is the vertex's share of the shortest paths between all pairs of other vertices, by hops
(BetweennessProgram 2001).
""",
    parameters=(
        *sources_and_seed(
            "Count only paths from some vertices, and scale the sums up",
            "the vertices to count paths from, with the sums scaled up",
        ),
        Parameter(
            "normalized",
            Flag(),
            False,
            "Divide by the number of pairs of other vertices.",
        ),
    ),
    forms=(
        Form(
            name="betweenness",
            title="Betweenness",
            columns={"betweenness": "float"},
            facts={"betweenness": SourcesRecord},
            cost=Cost(52, 0.04, "sources", None),
            algorithm="algorithms.betweenness:betweenness_of",
            program="algorithms.betweenness:planned",
            judge="judging.centralities:BETWEENNESS",
            tell=_tell,
            finding=("values", "betweenness"),
            tell_verdict=_tell_verdict,
            elsewhere={"duplicates": "igraph counts each row as a path of its own"},
        ),
    ),
    checked_by="values computed again, of all vertices or of some",
    in_bench=True,
    bench_parameter=("sources", 4),
)
