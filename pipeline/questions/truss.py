"""Truss numbers."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import several
from .question import Cost, Form, Question


class TrussRecord(TypedDict):
    """largest: the largest truss number; 0 if there are no edges. innermost: the number of edges
    that have it. triangles: the number of triangles of the graph. rounds: how many rounds have
    removed edges.
    """

    largest: int
    innermost: int
    triangles: int
    rounds: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts = record["truss"]
    edges = several(facts["innermost"], "edge has", "edges have")
    return f"the largest truss number is {facts['largest']:,}; {edges} it"


def _tell_verdict(verdict: Any) -> str:
    edges = several(verdict["rows"], "edge", "edges")
    return f"{edges}, the largest truss number is {verdict['largest']:,}"


TRUSS = Question(
    name="truss",
    summary="Compute truss numbers: how many triangles hold each edge in place.",
    examples=(
        "delegraph truss graph.dg -o truss/",
        "delegraph truss edges/ -o truss/ --memory-limit 8GB",
    ),
    description="""
The truss number of an edge is the greatest k such that the edge is in a subgraph in which every
edge is in k - 2 triangles or more. The edges with truss number k or more are the k-truss. An edge
that is in no triangle has truss number 2.

OUTPUT has each edge once, its lesser end as src. Self-loops are left out, rows that repeat an edge
count once, and the direction of edges makes no difference. All edges are held in memory, in 64
bytes each, or on a GPU in 44; a graph with more edges than fit is refused.
""",
    about="""
``truss`` is the greatest k such that the edge is in a subgraph in which every edge is in k - 2
triangles or more. Each edge has one row, with its lesser end as ``src``, whatever its direction.
""",
    parameters=(),
    forms=(
        Form(
            name="truss",
            title="Truss numbers",
            keys=("src", "dst"),
            columns={"truss": "integer"},
            facts={"truss": TrussRecord},
            algorithm="algorithms.truss:Truss",
            program="algorithms.truss:planned",
            judge="judging.truss:TRUSS",
            tell=_tell,
            tell_verdict=_tell_verdict,
            cost=Cost(6000, 20),
            on_several_gpus=False,
        ),
    ),
    checked_by="truss numbers computed again",
    in_bench=True,
)
