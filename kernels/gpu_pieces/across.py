"""The least edges that leave trees, of each vertex, on a device (cuda/pieces/across.cu)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..gpu.device import pack, without_fields
from ..gpu.graph import Array
from ..gpu_programs.rows import CutRows, ProgramGraph, kernel_of
from ..programs.spanning import NO_PAIR

LEAST_LEAVING = np.dtype([("unit", "u8"), ("full", "u8"), ("weights", "u8")], align=True)

_SOURCE = "pieces/across.cu"
_OPERATOR = "LeastLeaving"


class GatheringAcross:
    """A search along the edges of a graph, or against them. edges: that it looks at.

    back: whether to go through ``graph.back``.
    """

    def __init__(self, graph: ProgramGraph, back: bool) -> None:
        cut, weights = (graph.back, graph.back_weights) if back else (graph.cut, graph.weights)
        assert cut is not None
        self.edges = cut.rows.edges
        self._graph, self._kernel = graph, _kernel(graph, cut)
        self._rows = without_fields(cut.packed())
        packed = pack(LEAST_LEAVING, unit=NO_PAIR, full=np.uint64(0), weights=weights)
        self._operator = without_fields(packed)

    def run(self, x: Array, y: Array) -> None:
        """Put, into ``y[v]``, the least edge u -> v that leads to another tree, if it is less than
        what is there. x, y: uint64 (n,), by vertex: words, and edges as spanning.least_of_rows has
        them.
        """
        with self._graph.device.use():
            self._kernel(self._rows, self._operator, x, y)


def _kernel(graph: ProgramGraph, cut: CutRows) -> Callable[..., Any]:
    kinds = cut.rows.offset_type, cut.tiered, _OPERATOR
    return kernel_of(graph.device, _SOURCE, "gather_across", kinds)


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels of a graph."""
    for cut in filter(None, (graph.cut, graph.back)):
        _kernel(graph, cut)
