"""How a question's results are judged: the function, and the data and memory that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal, NamedTuple

from ...kernels.judging import programs
from ..results.result import Result


class Judge(NamedTuple):
    """The judge of a question's results.

    validate: makes the verdict on a result, given the graph and the result. graph: the form of the
    graph for ``validate``: ``"search"``, a Judged (searches.py), which a store and edges in memory
    give alike; ``"store"``, a Store; ``"edges"``, JudgedEdges (graph.py); ``"sources"``,
    JudgedEdges, and after the result the places of the question's sources. scans: whether edges in
    memory suffice, where the graph is ``"edges"``; else a store is built. vertex_bytes: memory for
    each vertex beside the memory that judging a search takes. kernels: modules of the kernels that
    ``validate`` calls. needs_weights: whether the graph must have weights to judge a result.
    personalizes: whether ``validate`` takes the file that a result was personalized by.
    """

    validate: Callable[..., Any]
    graph: Literal["search", "store", "edges", "sources"] = "edges"
    scans: bool = False
    vertex_bytes: int = 0
    kernels: Sequence[ModuleType] = (programs,)
    needs_weights: Callable[[Result], bool] = lambda result: False
    personalizes: bool = False
