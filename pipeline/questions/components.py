"""Connected components."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import several
from .question import Cost, Form, Question


class ComponentsRecord(TypedDict):
    """largest: the number of vertices of the largest component. alone: the number of components
    of one vertex.
    """

    components: int
    largest: int
    alone: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _tell(record: Any) -> str:
    facts = record["components"]
    counted = several(facts["components"], "component", "components")
    told = f"{counted}; the largest has {several(facts['largest'], 'vertex', 'vertices')}"
    alone = facts.get("alone")  # older records lack it
    return f"{told}; {several(alone, 'vertex is', 'vertices are')} alone" if alone else told


def _tell_verdict(verdict: Any) -> str:
    return f"{verdict['vertices']:,} vertices in {verdict['components']:,} components"


COMPONENTS = Question(
    name="components",
    summary="Find connected components: the least vertex of each vertex's component.",
    examples=(
        "delegraph components graph.dg -o components/",
        "delegraph components edges/ -o components/ --memory-limit 2GB",
    ),
    description="""
A component is named by its least vertex; if ids are strings, this is the first in sorted order.
Edges count both ways, so the components of a directed graph are the weakly connected ones.

An edge list that fits in memory is read once, and needs no store.
""",
    about="""
``component`` is the least vertex id of the component, in the order of the ids' type. The components
of a directed graph are the weakly connected ones.
""",
    parameters=(),
    forms=(
        Form(
            name="components",
            title="Connected components",
            columns={"component": "id"},
            facts={"components": ComponentsRecord},
            cost=Cost(2, 0.1, scans=True),
            algorithm="algorithms.components:Components",
            program="algorithms.components:planned",
            judge="judging.programs:COMPONENTS",
            tell=_tell,
            finding=("groups", "component"),
            tell_verdict=_tell_verdict,
        ),
    ),
    checked_by="the edges between and inside components",
    in_bench=True,
)
