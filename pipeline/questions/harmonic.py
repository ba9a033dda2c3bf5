"""Harmonic centrality."""

from __future__ import annotations

from typing import Any

from .facts import SourcesRecord, several, tell_recomputed
from .parameters import Flag, Parameter, sources_and_seed
from .question import Cost, Form, Question


def _tell(record: Any) -> str:
    vertices = several(record["harmonic"]["sources"], "vertex", "vertices")
    return f"harmonic centrality of {vertices}"


HARMONIC = Question(
    name="harmonic",
    summary="Compute harmonic centrality: the sum of 1 / distance from all other vertices.",
    examples=(
        "delegraph harmonic graph.dg -o harmonic/ --sources 1000",
        "delegraph harmonic edges/ -o harmonic/ --directed --normalized",
    ),
    description="""
Distances are in hops, along edges that lead to the vertex. A vertex that does not reach it adds
nothing, so values of vertices in different components can be compared.

With --sources, only some vertices have a value, which is exact: distances from all vertices count.
(The sources of NetworkX are something else: the only vertices whose distances count.)

Every vertex takes a search, and 64 searches share their passes over the edges. If a graph is large,
give --sources.
""",
    about="""
Distances to the vertex are in hops. A vertex that does not reach it adds nothing.
""",
    parameters=(
        *sources_and_seed(
            "Compute the values of some vertices only", "the vertices to compute values of"
        ),
        Parameter(
            "normalized",
            Flag(),
            False,
            "Divide by the number of other vertices.",
        ),
    ),
    forms=(
        Form(
            name="harmonic",
            title="Harmonic centrality",
            columns={"harmonic": "float"},
            facts={"harmonic": SourcesRecord},
            cost=Cost(0.4, 0.01, "sources", None),
            algorithm="algorithms.harmonic:harmonic_of",
            program="algorithms.many_sources:planned",
            judge="judging.centralities:HARMONIC",
            tell=_tell,
            finding=("values", "harmonic"),
            tell_verdict=tell_recomputed,
        ),
    ),
    checked_by="values computed again, of all vertices or of some",
    in_bench=True,
    bench_parameter=("sources", 64),
)
