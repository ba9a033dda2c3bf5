"""The labels of each vertex's neighbours, sorted, for one range of vertices after the other: as
many as fit in memory. Edges are streamed once for each range.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.judging.labels import note_labels
from ..questions.labels import weight_scale
from .graph import JudgedEdges

NOTED_BYTES = 8 + 8 + 8
"""Bytes of a neighbour's label: its key, the place in the order of keys, the edge's weight."""

_LEAST_NOTED = 1 << 18


class Noted(NamedTuple):
    """The labels of the neighbours of some vertices. keys: uint64; the number of a vertex less
    ``first``, and a label, as 32 bits each; sorted, unless edges count by weights. order: int64;
    the order that sorts ``keys``, if edges count by weights. amounts: int64; the rounded weights,
    by the place in ``keys``.
    """

    keys: NDArray[np.uint64]
    order: NDArray[np.int64]
    amounts: NDArray[np.int64]
    by_weights: bool
    first: int


class Neighbours:
    """The neighbours of all vertices, which are numbered by rising user id. Those along edges that
    leave a vertex count, and those along edges that enter it.

    scale: by which weights are multiplied before they are rounded. strength: int64, by number, what
    the edges of each vertex amount to.
    """

    def __init__(self, graph: JudgedEdges, by_weights: bool) -> None:
        self._graph = graph
        self._by_weights = by_weights
        self._count = len(graph.names.index)
        self.number = np.zeros(graph.places, np.uint32)
        self.number[graph.names.index] = np.arange(self._count, dtype=np.uint32)
        self.scale = self._found_scale() if by_weights else 1.0
        if not by_weights:
            graph.keep_batches()
        self._room = max(_LEAST_NOTED, graph.extra_bytes // NOTED_BYTES)
        self.strength = np.zeros(self._count, np.int64)
        self._bounds = self._cut()

    def labels(self, label: NDArray[np.uint32]) -> Iterator[Noted]:
        """Yield the labels of the neighbours of one range of vertices after the other. label:
        uint32, by number.
        """
        for first, last in itertools.pairwise(self._bounds):
            keys = np.empty(self._room, np.uint64)
            amounts = np.empty(self._room if self._by_weights else 0, np.int64)
            noted = 0
            given = self.scale, self._by_weights, self.number, label, first, last
            for ends, neighbours, weights in self._edges():
                noted = note_labels(ends, neighbours, weights, *given, noted, keys, amounts)
            keys = keys[:noted]
            if self._by_weights:
                order = np.argsort(keys)
            else:
                order = amounts
                keys.sort()
            yield Noted(keys, order, amounts, self._by_weights, first)

    def _cut(self) -> list[int]:
        """Return the bounds of ranges of vertices that have no more neighbours than there is room
        for; one vertex may have more.
        """
        degree = np.zeros(self._count, np.int64)
        for ends, _, weights in self._edges():
            numbers = self.number[ends]
            degree += np.bincount(numbers, minlength=self._count)
            if self._by_weights:
                amounts = np.rint(weights * self.scale).astype(np.int64)
                np.add.at(self.strength, numbers, amounts)
        if not self._by_weights:
            self.strength[:] = degree
        before = np.append(0, np.cumsum(degree))
        self._room = max(int(degree.max(initial=0)), min(self._room, int(before[-1])))
        bounds = [0]
        while bounds[-1] < self._count:
            upto = int(np.searchsorted(before, before[bounds[-1]] + self._room, side="right")) - 1
            bounds.append(upto)
        return bounds

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
