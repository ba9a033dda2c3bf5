"""Degree."""

from __future__ import annotations

from typing import Any, TypedDict

from .facts import elsewhere, tell_number
from .parameters import UNWEIGHTED
from .question import ColumnType, Cost, Form, Question


class DegreeRecord(TypedDict):
    """greatest: the greatest value of each column. mean: the mean degree; in a directed graph, the
    mean in-degree, which is also the mean out-degree. isolated: the number of vertices without
    edges.
    """

    greatest: dict[str, float]
    mean: float
    isolated: int
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def degree_columns(directed: bool, weighted: bool) -> tuple[str, ...]:
    """Return the columns of a result, as its graph is.

    >>> degree_columns(False, True), degree_columns(True, False)
    (('degree', 'weighted_degree'), ('in_degree', 'out_degree'))
    """
    kinds = ("", "weighted_") if weighted else ("",)
    ways = ("in_", "out_") if directed else ("",)
    return tuple(f"{kind}{way}degree" for kind in kinds for way in ways)


_ALTERNATIVES = tuple(
    degree_columns(directed, weighted) for directed in (True, False) for weighted in (True, False)
)


def _type_of(column: str) -> ColumnType:
    return "float" if column.startswith("weighted") else "count"


def _tell(record: Any) -> str:
    facts, vertices = record["degree"], record["graph"]["vertices"]
    greatest = (f"{name} up to {tell_number(most)}" for name, most in facts["greatest"].items())
    told = f"{', '.join(greatest)}; {facts['mean']:.4g} edges on average"
    return f"{told}; {facts['isolated']:,} of {vertices:,} vertices have none"


def _tell_verdict(verdict: Any) -> str:
    return f"{verdict['vertices']:,} vertices, their edges counted again"


DEGREE = Question(
    name="degree",
    summary="Count the neighbours of each vertex, and add up the weights of its edges.",
    examples=(
        "delegraph degree graph.dg -o degrees/",
        "delegraph degree edges/ -o degrees/ --directed",
        "delegraph degree edges/ -o degrees/ --weight amount --duplicates sum",
    ),
    description="""
\b
edges                 columns of OUTPUT
undirected            vertex, degree
directed              vertex, in_degree, out_degree
undirected, weighted  vertex, degree, weighted_degree
directed, weighted    vertex, in_degree, out_degree,
                      weighted_in_degree, weighted_out_degree

A degree is the number of edges of a vertex, and a weighted degree is the sum of their weights.
in_degree counts the edges that enter the vertex, and out_degree those that leave it.

Rows that repeat an edge count once. Self-loops are left out, so a degree is the number of
neighbours; --loops keep counts a self-loop at both of its ends.
""",
    about="""
The columns are ``degree``, or ``in_degree`` and ``out_degree`` of directed edges. If the graph has
weights, there are also their sums: ``weighted_degree``, or ``weighted_in_degree`` and
``weighted_out_degree``. Rows that repeat an edge count once. Self-loops are left out, unless the
graph keeps them: then each counts at both of its ends.
""",
    parameters=(UNWEIGHTED,),
    forms=(
        Form(
            name="degree",
            title="Degree",
            columns={name: _type_of(name) for names in _ALTERNATIVES for name in names},
            alternatives=_ALTERNATIVES,
            facts={"degree": DegreeRecord},
            cost=Cost(5, 0.1),
            algorithm="algorithms.degree:Degree",
            program="algorithms.degree:planned",
            judge="judging.degrees:DEGREE",
            tell=_tell,
            finding=("values", "degree"),
            tell_verdict=_tell_verdict,
            weights=True,
            counts_loops=True,
            elsewhere=elsewhere("degrees"),
        ),
    ),
    checked_by="edges counted again",
    in_bench=True,
)
