"""Eccentricity."""

from __future__ import annotations

from typing import Any

from .facts import SourcesRecord, several, tell_recomputed
from .parameters import sources_and_seed
from .question import Cost, Form, Question


class EccentricityRecord(SourcesRecord):
    """Bounds of the diameter, equal where it is known; None where nothing bounds it."""

    diameter_at_least: int
    diameter_at_most: int | None


def _tell(record: Any) -> str:
    facts = record["eccentricity"]
    least, most = facts["diameter_at_least"], facts["diameter_at_most"]
    if least == most:
        diameter = f"the diameter is {least:,}"
    elif most is not None:
        diameter = f"the diameter is at least {least:,} and at most {most:,}"
    elif facts["sources"] == record["graph"]["vertices"]:
        diameter = f"the greatest distance is {least:,}; some vertices do not reach all others"
    else:
        diameter = f"the diameter is at least {least:,}"
    return f"{several(facts['sources'], 'vertex', 'vertices')}; {diameter}"


ECCENTRICITY = Question(
    name="eccentricity",
    summary="Compute eccentricity: each vertex's distance to the farthest vertex that it reaches.",
    examples=(
        "delegraph eccentricity graph.dg -o eccentricity/ --sources 64",
        "delegraph eccentricity edges/ -o eccentricity/",
    ),
    description="""
Distances are in hops; the value is 0 if the vertex reaches no other one.

The command also prints bounds of the diameter. It is at least the greatest eccentricity found. In
an undirected graph it is at most twice the least eccentricity of a vertex that reaches all others.
The values of all vertices give the diameter itself.
""",
    about="""
Distances are in hops. The record holds bounds of the diameter.
""",
    parameters=sources_and_seed(
        "Compute the values of some vertices only", "the vertices to compute values of"
    ),
    forms=(
        Form(
            name="eccentricity",
            title="Eccentricity",
            columns={"eccentricity": "integer"},
            facts={"eccentricity": EccentricityRecord},
            cost=Cost(0.4, 0.01, "sources", None),
            algorithm="algorithms.eccentricity:eccentricity_of",
            program="algorithms.many_sources:planned",
            judge="judging.centralities:ECCENTRICITY",
            tell=_tell,
            finding=("values", "eccentricity"),
            tell_verdict=tell_recomputed,
        ),
    ),
    checked_by="values computed again, of all vertices or of some",
    in_bench=True,
    bench_parameter=("sources", 64),
)
