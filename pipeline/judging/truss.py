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
from ..results.names import numbers_by_id
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .pairs import add_pair_rule, edge_keys, find_keys, pair_batches
from .programs import rule_of, verdict_of
from .searches import Verdict, check_kind


class TrussVerdict(Verdict):
    """Verdict on truss numbers. largest: the largest one of the result."""

    rows: int
    largest: int


def validate_truss(graph: JudgedEdges, result: Result) -> TrussVerdict:
    """Return the verdict on truss numbers. Raises InputError as ``validate_components`` does."""
    check_kind(result, graph.directed)
    names, rules = graph.names, []
    keys, number = _found_anew(graph)
    by_id = numbers_by_id(names)
    told = np.full(len(keys), -1, np.int64)
    wrong, largest, example = 0, 0, []
    for batch in pair_batches(names, result):
        rows, src, dst, known = batch
        found = as_numpy(rows.column("truss").cast(pa.int64()).fill_null(-1))
        at, there = find_keys(keys, edge_keys(src, dst))
        there &= known
        there[there] = by_id[src[there]] < by_id[dst[there]]
        there[there] &= told[at[there]] < 0
        first = np.zeros(len(at), np.bool_)
        first[np.unique(at, return_index=True)[1]] = True  # of rows of the same edge
        there &= first
        told[at[there]] = np.maximum(found[there], 0)
        largest = max(largest, int(found.max(initial=0)))
        if not there.all():
            wrong += int(np.count_nonzero(~there))
            example = example or batch.ends(int(np.argmin(there)))
    if wrong:
        rules.append(rule_of(TRUSS_RULES, 1, wrong, example))
    for rule, broken in ((2, told < 0), (3, (told >= 0) & (told != number))):
        add_pair_rule(rules, names, TRUSS_RULES, rule, keys[broken])
    verdict = verdict_of(graph, result, rules)
    return TrussVerdict(**verdict, rows=result.rows, largest=largest)


def _found_anew(graph: JudgedEdges) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all edges as keys of places, the lesser in the high half, and their truss numbers."""
    some = [edge_keys(u, v)[u != v] for u, v, *_ in graph.batches()]
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
