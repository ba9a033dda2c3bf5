"""Validation of truss numbers. The rules are in kernels/judging/programs.py.

All truss numbers are found anew.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.judging import programs, truss
from ...kernels.judging.programs import TRUSS_RULES
from ...kernels.judging.truss import EDGE_BYTES, list_edges, truss_numbers
from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import shown_id
from ..results.names import numbers_by_id
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import rule_of, verdict_of
from .searches import PlaceLookup, RuleVerdict, Verdict, check_kind, named, rows_at_once


class TrussVerdict(Verdict):
    """Verdict on truss numbers. largest: the largest one of the result."""

    rows: int
    largest: int


def validate_truss(graph: JudgedEdges, result: Result) -> TrussVerdict:
    """Return the verdict on truss numbers. Raises InputError as ``validate_components`` does."""
    check_kind(result, graph.directed)
    names, rules = graph.names, []
    keys, number = _found_anew(graph)
    places_of, by_id = PlaceLookup(names), numbers_by_id(names)
    told = np.full(len(keys), -1, np.int64)
    wrong, largest, example = 0, 0, []
    for batch in result.batches(rows_at_once(names.id_type)):
        (src, known), (dst, other_known) = (places_of(batch.column(end)) for end in ("src", "dst"))
        found = as_numpy(batch.column("truss").cast(pa.int64()).fill_null(-1))
        wanted = _keys(src, dst)
        at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        there = known & other_known
        there &= (keys[at] == wanted) if len(keys) else False
        there[there] = by_id[src[there]] < by_id[dst[there]]
        there[there] &= told[at[there]] < 0
        first = np.zeros(len(at), np.bool_)
        first[np.unique(at, return_index=True)[1]] = True  # of rows of the same edge
        there &= first
        told[at[there]] = np.maximum(found[there], 0)
        largest = max(largest, int(found.max(initial=0)))
        if not there.all():
            wrong += int(np.count_nonzero(~there))
            row = int(np.argmin(there))
            example = example or [
                shown_id(batch.column(end)[row].as_py()) for end in ("src", "dst")
            ]
    if wrong:
        rules.append(rule_of(TRUSS_RULES, 1, wrong, example))
    for rule, broken in ((2, told < 0), (3, (told >= 0) & (told != number))):
        _add_edges(rules, graph, rule, keys[broken])
    verdict = verdict_of(graph, result, rules)
    return TrussVerdict(**verdict, rows=result.rows, largest=largest)


def _keys(u: NDArray[np.uint32], v: NDArray[np.uint32]) -> NDArray[np.uint64]:
    return np.minimum(u, v).astype(np.uint64) << np.uint64(32) | np.maximum(u, v)


def _add_edges(
    rules: list[RuleVerdict], graph: JudgedEdges, rule: int, keys: NDArray[np.uint64]
) -> None:
    if len(keys):
        ends = named(graph.names, divmod(int(keys[0]), 1 << 32))
        rules.append(rule_of(TRUSS_RULES, rule, len(keys), ends))


def _found_anew(graph: JudgedEdges) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all edges as keys of places, the lesser in the high half, and their truss numbers."""
    some = [_keys(u, v)[u != v] for u, v, *_ in graph.batches()]
    keys = np.unique(np.concatenate([np.empty(0, np.uint64), *some]))
    n, m = graph.places, len(keys)
    offsets, lists = np.zeros(n + 1, np.int64), np.empty((2, 2 * m), np.uint32)
    list_edges(keys, offsets, np.empty(n, np.int64), *lists)
    support, place, order = np.empty((3, m), np.uint32)
    starts, gone = np.zeros(n + 1, np.int64), np.zeros(m, np.uint8)
    truss_numbers(keys, offsets, *lists, support, place, order, starts, gone)
    return keys, support.astype(np.int64) + 2


TRUSS = Judge(
    validate_truss, vertex_bytes=3 * 8 + 4, edge_bytes=EDGE_BYTES, kernels=(programs, truss)
)
