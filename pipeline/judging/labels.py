"""Validation of label propagation: the labels are computed again, by sorting the labels of each
vertex's neighbours. The rules are in kernels/judging/programs.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging import labels, programs
from ...kernels.judging.labels import count_labels
from ...kernels.judging.programs import LABEL_RULES
from ..questions.labels import ITERATIONS
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .neighbours import NOTED_BYTES, Neighbours
from .programs import add_rule, is_by_weights, read_column, verdict_of
from .searches import PlaceLookup, Verdict, check_kind


class LabelsVerdict(Verdict):
    """Verdict on labels. iterations: number of iterations that were computed again."""

    iterations: int


def validate_labels(graph: JudgedEdges, result: Result) -> LabelsVerdict:
    """Return the verdict on labels. Raises InputError as ``validate_components`` does."""
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    found = np.full(graph.places, UNREACHED, np.uint32)
    places_of = PlaceLookup(names)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        place, there = places_of(column)
        found[at] = np.where(there, place, UNREACHED)[known]

    rules = read_column(graph, result, places_of, "label", put)
    unnamed = found[index] == UNREACHED
    add_rule(rules, names, LABEL_RULES, 1, unnamed)
    options = result.info.options if result.info else {}
    most = int(options.get("iterations") or ITERATIONS)
    neighbours = Neighbours(graph, is_by_weights(result))
    label, is_settled, done = np.arange(len(index), dtype=np.uint32), False, 0
    while done < most and not is_settled:
        before, label = label, label.copy()
        for noted in neighbours.labels(before):
            count_labels(*noted, label)
        is_settled, done = bool((before == label).all()), done + 1
    add_rule(rules, names, LABEL_RULES, 2, ~unnamed & (found[index] != index[label]))
    return LabelsVerdict(**verdict_of(graph, result, rules), iterations=done)


LABELS = Judge(
    validate_labels,
    vertex_bytes=4 * 4 + NOTED_BYTES * 2,  # a hub may have all vertices as neighbours, twice
    kernels=(programs, labels),
    needs_weights=lambda result: result.info is not None and is_by_weights(result),
)
