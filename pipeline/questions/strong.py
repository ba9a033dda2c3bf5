"""Strongly connected components."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypedDict

from .facts import several
from .parameters import Flag, Parameter
from .question import Cost, Form, Question


class StrongRecord(TypedDict):
    """largest: the number of vertices of the largest component. alone: the number of components
    of one vertex. rounds: how many rounds of trimming and searching found them; of a depth-first
    search or a scan, into how many parts it was divided.
    """

    components: int
    largest: int
    alone: int
    rounds: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


class CondensationRecord(StrongRecord):
    """edges: the number of pairs of components that edges lead between."""

    edges: int


def _form(given: Collection[str]) -> int:
    return 1 if "condense" in given else 0


def _tell(record: Any) -> str:
    facts = record["strong"]
    counted = several(facts["components"], "strong component", "strong components")
    told = f"{counted}; the largest has {several(facts['largest'], 'vertex', 'vertices')}"
    alone = facts["alone"]
    return f"{told}; {several(alone, 'vertex is', 'vertices are')} alone" if alone else told


def _tell_condensation(record: Any) -> str:
    facts = record["condensation"]
    components = several(facts["components"], "strong component", "strong components")
    return f"{several(facts['edges'], 'edge', 'edges')} between {components}"


def _tell_condensation_verdict(verdict: Any) -> str:
    return f"{several(verdict['rows'], 'edge', 'edges')} between strong components"


def _tell_verdict(verdict: Any) -> str:
    return f"{verdict['vertices']:,} vertices in {verdict['components']:,} strong components"


STRONG = Question(
    name="strong",
    summary="Find strongly connected components: the least vertex of each vertex's component.",
    examples=(
        "delegraph strong edges/ --directed -o strong/",
        "delegraph strong graph.dg -o strong/ --memory-limit 2GB",
        "delegraph strong edges/ --directed -o condensed/ --condense",
    ),
    description="""
\b
              columns of OUTPUT
              vertex, component
--condense    src, dst, edges; a row for each pair of components with edges between them

Two vertices are in the same strong component if a path along the edges leads from each to the
other. A component is named by its least vertex; if ids are strings, this is the first in sorted
order. A vertex that is on no cycle is a component of its own.

In an undirected graph, edges lead both ways, so the strong components are the connected components.

The condensation is the graph of the components, which has no cycles. Its rows name components, as
an edge list does: edges is the number of edges that lead from src to dst. A component without edges
to others has no row.
""",
    about="""
``component`` is the least vertex id of the strong component, in the order of the ids' type. Two
vertices are in the same one if a path along the edges leads from each to the other. In an
undirected graph, these are the connected components.

With ``condense``, the result has a row for each pair of components with edges between them:
``src``, ``dst``, and ``edges``, the number of edges that lead from one to the other.
""",
    parameters=(
        Parameter(
            "condense",
            Flag(),
            False,
            "Write the edges between components: the condensation of the graph.",
            "give the edges between components, the condensation of the graph.",
        ),
    ),
    form=_form,
    forms=(
        Form(
            name="strong",
            title="Strongly connected components",
            columns={"component": "id"},
            facts={"strong": StrongRecord},
            cost=Cost(10, 0.3),
            algorithm="algorithms.strong:Strong",
            program="algorithms.strong:planned",
            judge="judging.strong:STRONG",
            tell=_tell,
            finding=("groups", "component"),
            tell_verdict=_tell_verdict,
        ),
        Form(
            name="condensation",
            title="Condensation: edges between strong components",
            keys=("src", "dst"),
            columns={"edges": "count"},
            facts={"condensation": CondensationRecord},
            algorithm="algorithms.strong:Strong",
            program="algorithms.strong:condensing",
            judge="judging.strong:CONDENSATION",
            tell=_tell_condensation,
            tell_verdict=_tell_condensation_verdict,
            cost=Cost(15, 0.4),
        ),
    ),
    checked_by="paths inside components, and cycles between them",
    in_bench=True,
)
