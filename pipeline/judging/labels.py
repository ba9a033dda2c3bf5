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

_ENTRY_BYTES = 64
"""Bytes of sorting a neighbour's label: its vertex, label and amount, their key, the order, and
copies in this order.
"""

_LEAST_ENTRIES = 1 << 19


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


Entries = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]
"""Vertices, labels of their neighbours, and what the edges between them count."""


class _Propagation:
    """Iterations over a graph. Vertices are numbered by rising user id."""

    def __init__(self, graph: JudgedEdges, by_weights: bool) -> None:
        self._graph = graph
        self._count = len(graph.names.index)
        self._number = np.zeros(graph.places, np.uint32)
        self._number[graph.names.index] = np.arange(self._count, dtype=np.uint32)
        self._scale = self._found_scale() if by_weights else None
        if not by_weights:
            graph.keep_batches()
        entries = max(_LEAST_ENTRIES, graph.extra_bytes // _ENTRY_BYTES)
        self._windows = max(1, -(-graph.edges * (1 + graph.directed) // entries))

    def step(self, label: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the labels after one more iteration."""
        following = label.copy()
        bounds = self._count * np.arange(self._windows + 1) // self._windows
        for first, last in itertools.pairwise(bounds.tolist()):
            vertices, labels, sums = self._summed(label, first, last)
            # The last one of each vertex is preferred: the greatest sum, then the least label.
            order = np.lexsort((~labels, sums, vertices))
            vertices, labels = vertices[order], labels[order]
            is_last = np.append(vertices[1:] != vertices[:-1], True)[: len(vertices)]
            following[vertices[is_last]] = labels[is_last]
        return following

    def _summed(self, label: NDArray[np.uint32], first: int, last: int) -> Entries:
        """Return an entry for each vertex ``first <= v < last`` and label of its neighbours."""
        parts = [_no_entries()]
        for vertices, neighbours, amounts in self._ends():
            here = np.flatnonzero((vertices >= first) & (vertices < last))
            parts.append((vertices[here], label[neighbours[here]], amounts[here]))
        vertices, labels, amounts = map(np.concatenate, zip(*parts, strict=True))
        parts.clear()
        keys = vertices.astype(np.uint64) << np.uint64(32) | labels
        order = np.argsort(keys)
        keys, amounts = keys[order], amounts[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        if not len(starts):
            return _no_entries()
        keys, sums = keys[starts], np.add.reduceat(amounts, starts)
        return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), sums

    def _ends(self) -> Iterator[Entries]:
        """Yield vertices, their neighbours, and what the edges between them count."""
        for sources, targets, amounts in self._edges():
            u, v = self._number[sources], self._number[targets]
            yield v, u, amounts
            if self._graph.directed:
                yield u, v, amounts

    def _edges(self) -> Iterator[Entries]:
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
        greatest = max(
            (float(weights.max(initial=0.0)) for _, _, weights in graph.weighted_batches()),
            default=0.0,
        )
        return weight_scale(greatest, self._count, graph.float_weights)


def _no_entries() -> Entries:
    return np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.int64)


LABELS = Judge(
    validate_labels,
    vertex_bytes=4 * 5,
    needs_weights=lambda result: result.info is not None and is_by_weights(result),
)
