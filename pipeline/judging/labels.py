"""Validation of label propagation: the labels are computed again, by sorting the labels of each
vertex's neighbours. The rules are in kernels/judging/programs.py.

Edges are streamed in each iteration, or several times where the labels of all neighbours do not fit
in memory: for one range of vertices after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging.programs import LABEL_RULES
from ..questions.labels import ITERATIONS, weight_scale
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, is_by_weights, read_column, verdict_of
from .searches import PlaceLookup, Verdict, check_kind

_ENTRY_BYTES = 60
"""Bytes of sorting a neighbour's label: the entry, its key and amount, their order, copies."""

_LEAST_ENTRIES = 1 << 20


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
    label, is_settled, done = np.arange(len(index)), False, 0
    while done < most and not is_settled:
        before, label = label, propagation.step(label)
        is_settled, done = bool((before == label).all()), done + 1
    add_rule(rules, names, LABEL_RULES, 2, ~unnamed & (found[index] != index[label]))
    return LabelsVerdict(**verdict_of(graph, result, rules), iterations=done)


class _Propagation:
    """Iterations over a graph. Vertices are numbered by rising user id."""

    def __init__(self, graph: JudgedEdges, by_weights: bool) -> None:
        self._graph = graph
        self._scale: float | None = None
        self._number = np.zeros(graph.places, np.int64)
        self._number[graph.names.index] = np.arange(len(graph.names.index))
        if by_weights:
            self._scale = self._found_scale()
        else:
            graph.keep_batches()
        entries = max(_LEAST_ENTRIES, graph.extra_bytes // _ENTRY_BYTES)
        both = 1 + graph.directed
        self._windows = max(1, -(-both * graph.edges // entries))

    def step(self, label: NDArray[np.int64]) -> NDArray[np.int64]:
        following, n = label.copy(), len(label)
        bounds = n * np.arange(self._windows + 1) // self._windows
        for first, last in itertools.pairwise(bounds.tolist()):
            vertices, labels, sums = self._summed(label, first, last)
            # The last one of each vertex is preferred: the greatest sum, then the least label.
            order = np.lexsort((-labels, sums, vertices))
            vertices, labels = vertices[order], labels[order]
            is_last = np.append(vertices[1:] != vertices[:-1], True)[: len(vertices)]
            following[vertices[is_last]] = labels[is_last]
        return following

    def _summed(
        self, label: NDArray[np.int64], first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return vertices ``first <= v < last``, labels of their neighbours, and their sums."""
        parts = [
            (ends[here], label[neighbours[here]], amounts[here])
            for ends, neighbours, amounts in self._ends()
            for here in [(ends >= first) & (ends < last)]
        ]
        none = np.empty(0, np.int64)
        vertices, labels, amounts = (
            np.concatenate([none, *arrays])
            for arrays in (zip(*parts, strict=True) if parts else [()] * 3)
        )
        keys = vertices * len(label) + labels
        order = np.argsort(keys, kind="stable")
        keys, amounts = keys[order], amounts[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        sums = np.add.reduceat(amounts, starts) if len(starts) else none
        vertices, labels = np.divmod(keys[starts], max(1, len(label)))
        return vertices, labels, sums

    def _ends(self) -> Iterator[tuple[NDArray, NDArray, NDArray[np.int64]]]:
        """Yield vertices, their neighbours, and what the edges between them count."""
        for sources, targets, amounts in self._edges():
            u, v = self._number[sources], self._number[targets]
            yield v, u, amounts
            if self._graph.directed:
                yield u, v, amounts

    def _edges(self) -> Iterator[tuple[NDArray, NDArray, NDArray[np.int64]]]:
        graph = self._graph
        if self._scale is None:
            for sources, targets in graph.batches():
                yield sources, targets, np.ones(len(sources), np.int64)
            return
        assert graph.weighted_batches is not None
        for sources, targets, weights in graph.weighted_batches():
            yield sources, targets, np.rint(weights * self._scale).astype(np.int64)

    def _found_scale(self) -> float:
        graph = self._graph
        assert graph.weighted_batches is not None
        greatest = 0.0
        for _, _, weights in graph.weighted_batches():
            greatest = max(greatest, float(weights.max(initial=0.0)))
        return weight_scale(greatest, len(graph.names.index), graph.float_weights)


LABELS = Judge(
    validate_labels,
    vertex_bytes=8 * 4,
    needs_weights=lambda result: result.info is not None and is_by_weights(result),
)
