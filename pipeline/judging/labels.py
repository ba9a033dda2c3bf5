"""Validation of label propagation: the labels are computed again, by sorting the labels of each
vertex's neighbours. The rules are in kernels/judging/programs.py.

Edges are streamed in each iteration; several times if the labels of all neighbours do not fit in
memory: for one range of vertices after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging import labels, programs
from ...kernels.judging.labels import count_labels, note_labels
from ...kernels.judging.programs import LABEL_RULES
from ..questions.labels import ITERATIONS, weight_scale
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, is_by_weights, read_column, verdict_of
from .searches import PlaceLookup, Verdict, check_kind

_NOTED_BYTES = 8 + 8 + 8
"""Bytes of a neighbour's label: its key, the place in the order of keys, the edge's weight."""

_LEAST_NOTED = 1 << 18


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
    propagation = _Propagation(graph, is_by_weights(result))
    label, is_settled, done = np.arange(len(index), dtype=np.uint32), False, 0
    while done < most and not is_settled:
        before, label = label, propagation.step(label)
        is_settled, done = bool((before == label).all()), done + 1
    add_rule(rules, names, LABEL_RULES, 2, ~unnamed & (found[index] != index[label]))
    return LabelsVerdict(**verdict_of(graph, result, rules), iterations=done)


class _Propagation:
    """Iterations over a graph. Vertices are numbered by rising user id."""

    def __init__(self, graph: JudgedEdges, by_weights: bool) -> None:
        self._graph = graph
        self._by_weights = by_weights
        self._count = len(graph.names.index)
        self._number = np.zeros(graph.places, np.uint32)
        self._number[graph.names.index] = np.arange(self._count, dtype=np.uint32)
        self._scale = self._found_scale() if by_weights else 1.0
        if not by_weights:
            graph.keep_batches()
        self._room = max(_LEAST_NOTED, graph.extra_bytes // _NOTED_BYTES)
        self._bounds = self._cut()

    def step(self, label: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the labels after one more iteration."""
        following = label.copy()
        for first, last in itertools.pairwise(self._bounds):
            self._count_range(label, first, last, following)
        return following

    def _cut(self) -> list[int]:
        """Return the bounds of ranges of vertices that have no more neighbours than there is room
        for; one vertex may have more.
        """
        degree = np.zeros(self._count, np.int64)
        for ends, _, _ in self._edges():
            degree += np.bincount(self._number[ends], minlength=self._count)
        before = np.append(0, np.cumsum(degree))
        self._room = max(int(degree.max(initial=0)), min(self._room, int(before[-1])))
        bounds = [0]
        while bounds[-1] < self._count:
            upto = int(np.searchsorted(before, before[bounds[-1]] + self._room, side="right")) - 1
            bounds.append(upto)
        return bounds

    def _count_range(
        self, label: NDArray[np.uint32], first: int, last: int, following: NDArray[np.uint32]
    ) -> None:
        keys = np.empty(self._room, np.uint64)
        amounts = np.empty(self._room if self._by_weights else 0, np.int64)
        noted = 0
        given = self._scale, self._by_weights, self._number, label, first, last
        for ends, neighbours, weights in self._edges():
            noted = note_labels(ends, neighbours, weights, *given, noted, keys, amounts)
        keys = keys[:noted]
        if self._by_weights:
            order = np.argsort(keys)
        else:
            order = amounts
            keys.sort()
        count_labels(keys, order, amounts, self._by_weights, first, following)

    def _edges(
        self,
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]]:
        """Yield vertices, their neighbours, and the weights of the edges, if these count."""
        graph, none = self._graph, np.empty(0)
        if self._by_weights:
            assert graph.weighted_batches is not None
            batches = graph.weighted_batches()
        else:
            batches = ((sources, targets, none) for sources, targets in graph.batches())
        for sources, targets, weights in batches:
            yield targets, sources, weights
            if graph.directed:
                yield sources, targets, weights

    def _found_scale(self) -> float:
        graph = self._graph
        assert graph.weighted_batches is not None
        greatest = max(
            (float(weights.max(initial=0.0)) for _, _, weights in graph.weighted_batches()),
            default=0.0,
        )
        return weight_scale(greatest, self._count, graph.float_weights)


LABELS = Judge(
    validate_labels,
    vertex_bytes=4 * 4 + _NOTED_BYTES * 2,  # a hub may have all vertices as neighbours, twice
    kernels=(programs, labels),
    needs_weights=lambda result: result.info is not None and is_by_weights(result),
)
