"""Shortest paths."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import tell_number
from .parameters import REQUIRED, OneVertex, Parameter, Real
from .question import Cost, Form, Question


class ShortestPathsRecord(TypedDict):
    """farthest: the greatest distance. rounds: of following edges. buckets: of distances."""

    source: int | str
    max_distance: float | None
    reached: int
    farthest: float
    rounds: int
    buckets: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts, vertices = record["sssp"], record["graph"]["vertices"]
    reached = f"{facts['reached']:,} of {vertices:,} vertices reached from {facts['source']}"
    return f"{reached}, the farthest at {tell_number(facts['farthest'])}"


def _tell_verdict(verdict: Any) -> str:
    vertices = f"{verdict['vertices']:,} vertices"
    reached = f"{verdict['reached']:,} of {vertices} reached from {verdict['source']}"
    return f"{reached}, the farthest at {tell_number(verdict['farthest'])}"


SSSP = Question(
    name="sssp",
    summary="Find shortest paths from one vertex by edge weights.",
    examples=(
        "delegraph build roads/ -o roads.dg --weight metres",
        "delegraph sssp roads.dg -o paths/ --source 17",
        "delegraph sssp edges/ -o paths/ --source 17 --weight w --directed",
    ),
    description="""
distance is the least sum of weights of a path from the source, and parent is the vertex before this
vertex on such a path. Both are null if there is no path; the source has no parent. If a vertex has
several correct parents, any one is named.

The graph must have weights: a store its own, an edge list those of --weight. With integer weights,
distances are integers, and exact below 2^53. With float weights, they are 64-bit floats.
""",
    about="""
The graph must have weights: of a store its own, of an edge list the column that ``weight=`` names.
""",
    errors={
        "InputError": "also if the graph has no weights, or the source is not in it.",
        "DelegraphError": "also if a distance of integer weights exceeds 2^53.",
    },
    parameters=(
        Parameter(
            "source",
            OneVertex(),
            REQUIRED,
            "Find paths from this vertex.",
            "the id of the vertex to start from.",
            leads=True,
        ),
        Parameter(
            "max_distance",
            Real(),
            None,
            "Ignore paths that are longer than this.",
        ),
    ),
    forms=(
        Form(
            name="sssp",
            title="Shortest paths",
            columns={"distance": "number", "parent": "id"},
            facts={"sssp": ShortestPathsRecord},
            cost=Cost(80, 0.7),
            algorithm="algorithms.sssp:ShortestPaths",
            program="algorithms.sssp:planned",
            judge="judging.paths:SSSP",
            tell=_tell,
            finding=("distances", "distance"),
            tell_verdict=_tell_verdict,
            weights=True,
        ),
    ),
    checked_by="Graph500's rules",
    in_bench=True,
    bench_parameter=("source", 1),
)
