"""Validation of minimum spanning forests. The rules are in kernels/judging/programs.py.

There is one forest, which is found anew.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.judging import forest, programs
from ...kernels.judging.forest import EDGE_BYTES, take_edges
from ...kernels.judging.programs import FOREST_RULES
from ...partition.input.arrow import as_numpy
from ..results.names import numbers_by_id
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .pairs import add_pair_rule, edge_keys, find_keys, pair_batches, pair_keys
from .programs import rule_of, verdict_of
from .searches import Verdict, check_kind


class ForestVerdict(Verdict):
    """Verdict on a minimum spanning forest. rows: of the result."""

    rows: int


def validate_forest(graph: JudgedEdges, result: Result) -> ForestVerdict:
    """Return the verdict on a forest. Raises InputError as ``validate_components`` does."""
    check_kind(result, graph.directed)
    weighted, names = _is_weighted(result), graph.names
    by_id = numbers_by_id(names)
    keys, weights = _found_anew(graph, by_id, weighted)
    rows, wrong = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    strange, example = 0, []
    for batch in pair_batches(names, result):
        at, there = find_keys(keys, pair_keys(by_id[batch.src], by_id[batch.dst]))
        there &= batch.known
        strange += int(np.count_nonzero(~there))
        if not example and not there.all():
            example = batch.ends(int(np.argmin(there)))
        np.add.at(rows, at[there], 1)
        if weighted:
            told = as_numpy(batch.rows.column("weight").cast(pa.float64()).fill_null(np.nan))
            wrong[at[there]] |= told[there] != weights[at[there]]
    rules = []
    if strange:
        rules.append(rule_of(FOREST_RULES, 1, strange, example))
    for rule, broken in ((2, rows == 0), (3, rows > 1), (4, wrong)):
        wrong_keys = keys[broken]  # of numbers by id
        ends = wrong_keys >> np.uint64(32), wrong_keys & np.uint64(0xFFFFFFFF)
        places = pair_keys(*(names.index[end] for end in ends))
        add_pair_rule(rules, names, FOREST_RULES, rule, places)
    return ForestVerdict(**verdict_of(graph, result, rules), rows=result.rows)


def _is_weighted(result: Result) -> bool:
    return "weight" in result.values


def _found_anew(
    graph: JudgedEdges, by_id: NDArray[np.uint32], weighted: bool
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the edges of the forest as rising keys, the lesser of two numbers by id in the high
    half, and their weights.
    """
    batches = graph.weighted_batches if weighted else graph.batches
    assert batches is not None
    some, heavy = [np.empty(0, np.uint64)], [np.empty(0)]
    for sources, targets, *weights in batches():
        ends = by_id[sources], by_id[targets]
        some.append(edge_keys(*ends))
        heavy.append(weights[0].astype(np.float64) if weighted else np.zeros(len(sources)))
    keys, weight = np.concatenate(some), np.concatenate(heavy)
    some.clear()
    heavy.clear()
    order = np.lexsort((keys, weight))
    keys, weight = keys[order], weight[order]
    taken = np.zeros(len(keys), np.uint8)
    take_edges(keys, np.arange(len(by_id), dtype=np.uint32), taken)
    keys, weight = keys[taken > 0], weight[taken > 0]
    order = np.argsort(keys)
    return keys[order], weight[order]


FOREST = Judge(
    validate_forest,
    vertex_bytes=6 * 8,
    edge_bytes=EDGE_BYTES,
    kernels=(programs, forest),
    needs_weights=_is_weighted,
)
