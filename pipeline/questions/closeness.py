"""Closeness."""

from __future__ import annotations

from typing import Any

from .facts import SourcesRecord, several, tell_recomputed
from .parameters import sources_and_seed
from .question import Cost, Form, Question


def _tell(record: Any) -> str:
    return f"closeness of {several(record['closeness']['sources'], 'vertex', 'vertices')}"


CLOSENESS = Question(
    name="closeness",
    summary="Compute closeness: how near each vertex is to the vertices that reach it.",
    examples=(
        "delegraph closeness graph.dg -o closeness/ --sources 1000",
        "delegraph closeness edges/ -o closeness/ --directed --sources some.parquet",
    ),
    description="""
Distances are in hops, along edges that lead to the vertex. Values are scaled as Wasserman and Faust
do: by the share of the graph that reaches the vertex. If no other vertex reaches it, the value is
0.

Every vertex takes a search, and 64 searches share their passes over the edges. If a graph is large,
give --sources.
""",
    about="""
Distances to the vertex are in hops; values are scaled as Wasserman and Faust do.
""",
    parameters=sources_and_seed(
        "Compute the values of some vertices only", "the vertices to compute values of"
    ),
    forms=(
        Form(
            name="closeness",
            title="Closeness",
            columns={"closeness": "float"},
            facts={"closeness": SourcesRecord},
            cost=Cost(0.4, 0.01, "sources", None),
            algorithm="algorithms.closeness:closeness_of",
            program="algorithms.many_sources:planned",
            judge="judging.centralities:CLOSENESS",
            tell=_tell,
            finding=("values", "closeness"),
            tell_verdict=tell_recomputed,
        ),
    ),
    checked_by="values computed again, of all vertices or of some",
    in_bench=True,
    bench_parameter=("sources", 64),
)
