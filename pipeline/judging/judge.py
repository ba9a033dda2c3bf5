"""The declaration of how a question's results are judged: the function, and the data and memory
that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal, NamedTuple

from ...kernels.judging import programs
from ..results.result import Result


class Judge(NamedTuple):
    """The judge of a question's results.

    validate: makes the verdict from the graph and the result. graph: the form of the graph for
    ``validate``. ``"search"``: a Judged (searches.py), made of a store or of edges in memory.
    ``"store"``: a Store. ``"edges"``: JudgedEdges (graph.py). ``"sources"``: JudgedEdges, and a
    third argument with the places of the question's sources. scans: whether edges in memory suffice
    if the graph is ``"edges"``; if not, a store is built. vertex_bytes: bytes for each vertex
    beyond those for judging a search. edge_bytes, row_bytes: bytes for each edge of the graph, and
    for each row of the result. kernels: modules of the kernels that ``validate`` calls.
    needs_weights: tells whether the graph must have weights to judge a result. personalizes:
    whether ``validate`` takes the file that a result was personalized by.
    """

    validate: Callable[..., Any]
    graph: Literal["search", "store", "edges", "sources"] = "edges"
    scans: bool = False
    vertex_bytes: int = 0
    edge_bytes: int = 0
    row_bytes: int = 0
    kernels: Sequence[ModuleType] = (programs,)
    needs_weights: Callable[[Result], bool] = lambda result: False
    personalizes: bool = False
