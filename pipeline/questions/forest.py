"""Minimum spanning forests."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import several
from .parameters import UNWEIGHTED
from .question import Cost, Form, Question


class ForestRecord(TypedDict):
    """edges: the number of edges of the forest. trees: the number of its trees, which is that of
    connected components. weight: the sum of the edges' weights; None if none count. rounds: how
    many rounds looked for edges.
    """

    edges: int
    trees: int
    weight: float | None
    rounds: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts = record["forest"]
    edges = several(facts["edges"], "edge", "edges")
    told = f"{edges} in {several(facts['trees'], 'tree', 'trees')}"
    weight = facts["weight"]
    return told if weight is None else f"{told}; the sum of weights is {weight:,}"


def _tell_verdict(verdict: Any) -> str:
    return f"{several(verdict['rows'], 'edge', 'edges')} of a minimum spanning forest"


FOREST = Question(
    name="forest",
    summary="Find a minimum spanning forest: the lightest edges that connect what is connected.",
    examples=(
        "delegraph forest roads/ -o forest/ --weight metres",
        "delegraph forest graph.dg -o forest/",
    ),
    description="""
\b
edges       columns of OUTPUT
weighted    src, dst, weight
unweighted  src, dst

OUTPUT has the edges of a spanning tree of each connected component, with the least sum of weights.
Each edge is there once, its lesser end as src. Directions make no difference: if edges lead both
ways, the lesser weight counts.

Of edges with the same weight, the one with the least end comes first, then the one with the least
other end. So a graph has one forest, however it is stored. Without weights, all edges are alike.
""",
    about="""
The result has a row for each edge of the forest: ``src``, its lesser end, ``dst``, and ``weight``
if the graph has weights. Directions make no difference. Of edges with the same weight, the one with
the least end comes first, then the one with the least other end, so that a graph has one forest.
""",
    parameters=(UNWEIGHTED,),
    forms=(
        Form(
            name="forest",
            title="Minimum spanning forest",
            keys=("src", "dst"),
            columns={"weight": "number"},
            alternatives=(("weight",), ()),
            facts={"forest": ForestRecord},
            cost=Cost(160, 0.7),
            algorithm="algorithms.forest:Forest",
            program="algorithms.forest:planned",
            judge="judging.forest:FOREST",
            tell=_tell,
            tell_verdict=_tell_verdict,
            weights=True,
        ),
    ),
    checked_by="the forest found again",
    in_bench=True,
)
