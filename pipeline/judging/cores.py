"""Validation of core numbers. The rules are in kernels/judging/programs.py.

If rows of the edges fit the memory limit, all core numbers are found anew. If not, one scan of the
edges shows whether any is too great.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.judging import cores, programs
from ...kernels.judging.cores import CORE_BYTES, core_numbers
from ...kernels.judging.programs import CORE_RULES, count_inside
from ...partition.input.arrow import as_numpy
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, read_column, verdict_of
from .searches import PlaceLookup, Verdict, check_kind


class CoresVerdict(Verdict):
    """Verdict on core numbers. largest: the largest one of the result."""

    largest: int


def validate_cores(graph: JudgedEdges, result: Result) -> CoresVerdict:
    """Return the verdict on core numbers. The graph has every edge once, undirected edges in both
    directions. Raises InputError as ``validate_components`` does.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    least = int(result.info.options.get("min") or 0) if result.info else 0
    found, told = np.full(graph.places, -1, np.int64), np.zeros(graph.places, np.bool_)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        found[at] = as_numpy(column.cast(pa.int64()).fill_null(-1))[known]
        told[at] = True

    rules = read_column(graph, result, PlaceLookup(names), "core", put, is_complete=not least)
    add_rule(rules, names, CORE_RULES, 1, (told & (found < least))[index])
    true = _found_anew(graph)
    if true is not None:
        add_rule(rules, names, CORE_RULES, 2, (told & (found >= least) & (found != true))[index])
        add_rule(rules, names, CORE_RULES, 4, (told != (true >= least))[index] & bool(least))
    else:
        inside = np.zeros(graph.places, np.int64)
        for ends in graph.batches():
            count_inside(*ends[:2], found, inside)
        inside //= 1 if graph.directed else 2  # undirected edges came twice
        add_rule(rules, names, CORE_RULES, 3, (told & (inside < found))[index])
    judged, unjudged = ("all", 0) if true is not None else ("some", int(np.count_nonzero(told)))
    verdict = verdict_of(graph, result, rules, judged, unjudged)
    return CoresVerdict(**verdict, largest=int(found.max(initial=0)))


def _found_anew(graph: JudgedEdges) -> NDArray[np.int64] | None:
    """Return all core numbers, by place; None if rows do not fit the memory limit."""
    rows = graph.rows(along=True)
    other_rows = graph.rows(along=False) if graph.directed else rows
    if rows is None or other_rows is None:
        return None
    core = np.empty(graph.places, np.int64)
    core_numbers(*rows, *other_rows, graph.directed, core)
    return core


CORES = Judge(validate_cores, vertex_bytes=16 + CORE_BYTES, kernels=(programs, cores))
