"""Core numbers."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import several, tell_rest
from .parameters import Parameter, Whole
from .question import Cost, Form, Question


class CoresRecord(TypedDict):
    """largest: the largest core number, which is the degeneracy of the graph. innermost: the number
    of vertices that have it. rounds: how many rounds have removed vertices.
    """

    largest: int
    innermost: int
    rounds: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts = record["cores"]
    vertices = several(facts["innermost"], "vertex has", "vertices have")
    return f"the largest core number is {facts['largest']:,}; {vertices} it"


def _tell_verdict(verdict: Any) -> str:
    told = f"{verdict['vertices']:,} vertices, the largest core number is {verdict['largest']:,}"
    return f"{told}{tell_rest(verdict, 'neighbours')}"


CORES = Question(
    name="cores",
    summary="Compute core numbers: how densely connected the surroundings of each vertex are.",
    examples=(
        "delegraph cores graph.dg -o cores/",
        "delegraph cores edges/ -o dense/ --min 10",
    ),
    description="""
The core number of a vertex is the greatest k such that the vertex is in a subgraph in which all
vertices have degree k or more. The vertices with core number k or more are the k-core. The largest
core number is the degeneracy of the graph.

Self-loops are left out, and rows that repeat an edge count once. In a directed graph, the degree is
the number of edges that enter or leave a vertex, so that an edge in both directions counts twice.
""",
    about="""
``core`` is the greatest k such that the vertex is in a subgraph in which all vertices have degree k
or more. In a directed graph, the degree is the number of edges that enter or leave a vertex, so
that an edge in both directions counts twice.
""",
    parameters=(
        Parameter(
            "min",
            Whole(),
            0,
            "Write only vertices with at least this core number: the k-core's vertices.",
            "leave out vertices with a smaller core number, so that the vertices of a k-core are "
            "left.",
        ),
    ),
    forms=(
        Form(
            name="cores",
            title="Core numbers",
            columns={"core": "integer"},
            facts={"cores": CoresRecord},
            cost=Cost(55, 3.5),
            algorithm="algorithms.cores:Cores",
            program="algorithms.cores:planned",
            judge="judging.cores:CORES",
            tell=_tell,
            finding=("values", "core"),
            tell_verdict=_tell_verdict,
        ),
    ),
    checked_by="core numbers computed again",
    in_bench=True,
)
