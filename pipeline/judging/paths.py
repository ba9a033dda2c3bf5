"""Validation of shortest paths by Graph500's rules for its third kernel. The rules are in
kernels/judging/programs.py.

The result's rows are streamed twice, and the graph's edges, with their weights, once.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.bfs.check import leads_to
from ...kernels.judging.programs import PATH_RULES, check_paths
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import told_id
from ...partition.store.store import Store
from ..results.result import Result
from .graph import judged_edges
from .judge import Judge
from .programs import add_rule, read_column, rule_of, verdict_of
from .searches import PlaceLookup, Verdict, check_kind, named

PATHS_BYTES = 40
"""Bytes for each vertex, beyond those for judging a search."""


class PathsVerdict(Verdict):
    """Verdict on shortest paths. source: in the user's ids. reached: number of vertices reached.
    farthest: the greatest distance.
    """

    source: int | str
    reached: int
    farthest: float


def validate_paths(store: Store, result: Result, team: Team) -> PathsVerdict:
    """Return the verdict on shortest paths. Raises InputError if the result is of a graph with
    another kind of edges (directed or not) or with other ids, or does not name its source.
    """
    if result.info is None:
        raise InputError(
            "the result does not name its source: only results of delegraph can be judged"
        )
    graph = judged_edges(store, team)
    assert graph.weighted_batches is not None
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    asked = result.info.options["source"]
    source = None if (known := told_id(asked, names.id_type)) is None else names.find(known)
    if source is None:
        raise InputError(f"the result's source, {asked!r}, is not a vertex of the graph")
    most = result.info.options["max_distance"]
    limit = math.inf if most is None else float(most)
    distance = np.full(graph.places, np.inf)
    parent = np.full(graph.places, UNREACHED, np.uint32)
    places_of = PlaceLookup(names)
    nobody = np.zeros(graph.places, np.bool_)

    def put_distance(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        distance[at] = as_numpy(column.cast(pa.float64()).fill_null(np.inf))[known]

    def put_parent(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        place, there = places_of(column)
        parent[at] = np.where(there, place, UNREACHED)[known]
        nobody[at] = (as_numpy(column.is_valid().cast(pa.uint8())).view(np.bool_) & ~there)[known]

    rules = read_column(graph, result, places_of, "distance", put_distance)
    read_column(graph, result, places_of, "parent", put_parent)
    wrong = np.isnan(distance) | (distance < 0) | ((distance > limit) & np.isfinite(distance))
    wrong[source] = distance[source] != 0
    add_rule(rules, names, PATH_RULES, 2, wrong[index])
    distance[wrong] = np.inf
    distance[source] = 0
    reached = np.isfinite(distance)
    has_parent = parent != UNREACHED
    astray = nobody | (has_parent & ~leads_to(source, parent))
    astray |= reached & ~has_parent
    astray |= has_parent & ~reached
    astray[source] = nobody[source] | has_parent[source]
    add_rule(rules, names, PATH_RULES, 1, astray[index])
    joined = np.zeros(graph.places, np.uint8)
    joined[source] = 1
    found = np.zeros(6, np.int64)
    for edges in graph.weighted_batches():
        check_paths(*edges, distance, parent, limit, joined, found)
    for rule, at in ((3, 0), (4, 3)):
        if found[at]:
            example = named(names, (int(found[at + 1]), int(found[at + 2])))
            rules.append(rule_of(PATH_RULES, rule, int(found[at]), example))
    unjoined = reached & has_parent & (joined == 0)
    add_rule(rules, names, PATH_RULES, 5, unjoined[index])
    return PathsVerdict(
        **verdict_of(graph, result, rules),
        source=asked,  # pyright: ignore - an id
        reached=int(np.count_nonzero(reached[index])),
        farthest=float(distance.max(where=reached, initial=0.0)),
    )


SSSP = Judge(
    validate_paths, graph="store", vertex_bytes=PATHS_BYTES, needs_weights=lambda result: True
)
