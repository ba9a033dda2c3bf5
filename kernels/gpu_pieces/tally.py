"""The operation ``tally`` on a device (cuda/pieces/tally.cu)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..gpu.device import pack, without_fields
from ..gpu.graph import TARGETS, Array
from ..gpu_programs.rows import ProgramGraph, c_name
from ..pieces.operators import MostCommon, ScaledWeights, UnitAmounts

FEW = 32
"""Most edges of a vertex whose edges are in registers."""

SOME = 256
"""Most edges of a vertex whose labels are in the table of a warp."""

MANY = 1024
"""Most edges of a vertex whose labels are in the table of a block."""

WAY = np.dtype(
    [("offsets", "u8"), ("targets", TARGETS), ("weights", "u8"), ("scale", "f8")], align=True
)
NEIGHBOURS = np.dtype([("ways", WAY, 2), ("count", "u4")], align=True)

MORE = (1 << 13, 1 << 16, (1 << 32) - 1)
"""Most edges of other vertices, whose labels are in tables in device memory: as many tables as have
room, and so more of small ones.
"""

_SOURCE = "pieces/tally.cu"
_THREADS, _BLOCK = 256, 1024
SLOT_BYTES = 4 + 8
_RULE = np.uint64(0)  # the rule's field


class Tallying:
    """The operation by the rule ``MostCommon`` over all edges of a graph, in either direction.

    edges: that an operation looks at. Vertices are listed by the number of their edges, once.
    """

    def __init__(self, graph: ProgramGraph, amounts: UnitAmounts | ScaledWeights) -> None:
        self._graph = graph
        self._packed = without_fields(_packed(graph, amounts))
        self._kinds = _kinds(graph)
        ways = [graph.cut] if graph.back is None else [graph.cut, graph.back]
        self.edges = sum(way.rows.edges for way in ways)
        with graph.device.use() as cupy:
            degree = cupy.zeros(graph.vertices, np.uint32)
            for way in ways:
                degree += (way.rows.offsets[1:] - way.rows.offsets[:-1]).astype(np.uint32)
            bounds = [0, *(1 << bit for bit in range(6)), SOME, MANY, *MORE]
            lists = [_listed(cupy, degree, *ends) for ends in pairwise(bounds)]
            *few, self._some, self._many = lists[: -len(MORE)]
            self._few = list(zip(bounds[1:], few, strict=False))
            self._more: list[tuple[Array, int, int]] = []  # vertices, bits of their tables, tables
            for most in lists[-len(MORE) :]:
                if len(most):
                    longest = min(int(degree[most].max()), graph.vertices)
                    bits = max(1, 2 * longest - 1).bit_length()
                    in_turn = most[cupy.argsort(~degree[most])]  # the longest ones begin first
                    self._more.append((in_turn, bits, _tables(graph, len(most), bits)))
            slots = max((tables << bits for _, bits, tables in self._more), default=0)
            self._labels = cupy.empty(slots, np.uint32)
            self._totals = cupy.empty(slots, np.uint64)

    def run(self, x: Array, y: Array) -> None:
        """Set ``y[v]`` to the label that the vertex prefers of its neighbours' labels ``x[u]``:
        uint32 (n,), by vertex. ``y`` stays where a vertex has no edges.
        """
        device, ends = self._graph.device, (x, y)
        with device.use():
            for width, some in self._few:
                strips = -(-len(some) // (FEW // width))
                arguments = some, np.uint32(len(some)), np.uint32(width), *ends
                self._launch("tally_few", -(-32 * strips // _THREADS), _THREADS, *arguments)
            some = self._some
            blocks = -(-32 * len(some) // _THREADS)
            self._launch("tally_some", blocks, _THREADS, some, np.uint32(len(some)), *ends)
            for some, bits, blocks in ((self._many, 1, len(self._many)), *self._more):
                tables = np.uint32(bits), self._labels, self._totals
                arguments = some, np.uint32(len(some)), *tables, *ends
                self._launch("tally_many", blocks, _BLOCK, *arguments)

    def _launch(self, function: str, blocks: int, threads: int, *arguments: Any) -> None:
        device = self._graph.device
        if blocks:
            kernel = device.kernel(_SOURCE, f"{function}<{_of(function, self._kinds)}>")
            blocks = min(blocks, 64 * device.multiprocessors)
            kernel((blocks,), (threads,), (self._packed, _RULE, *arguments))


def _listed(cupy: Any, degree: Array, more: int, most: int) -> Array:
    """Return the vertices of more than ``more`` edges, and of at most ``most``."""
    chosen = (degree > np.uint32(more)) & (degree <= np.uint32(most))
    return cupy.flatnonzero(chosen).astype(np.uint32)


def _tables(graph: ProgramGraph, rows: int, bits: int) -> int:
    """Return the number of tables in device memory: one for each row, as far as there is room."""
    room = tables_bytes(graph.vertices, graph.cut.rows.edges)
    return min(rows, 2 * graph.device.multiprocessors, max(1, room // (SLOT_BYTES << bits)))


def _packed(graph: ProgramGraph, amounts: UnitAmounts | ScaledWeights) -> np.ndarray:
    packed, scale = np.zeros(1, NEIGHBOURS), None
    if isinstance(amounts, ScaledWeights):
        scale = amounts.scale
    of_ways = [(graph.cut, graph.weights), (graph.back, graph.back_weights)]
    for at, (way, weights) in enumerate(of_ways):
        if way is not None:
            packed["ways"][0, at] = pack(
                WAY,
                offsets=way.rows.offsets,
                targets=way.rows.targets()[0],
                weights=None if scale is None else weights,
                scale=scale,
            )[0]
            packed["count"] = at + 1
    return packed


def _kinds(graph: ProgramGraph) -> str:
    ways = [graph.cut] if graph.back is None else [graph.cut, graph.back]
    tiered = "true" if any(way.tiered == "true" for way in ways) else "false"
    amounts = amounts_name(graph.weight_type)
    return ", ".join((graph.cut.rows.offset_type, tiered, amounts, MostCommon.__name__))


def amounts_name(weights: str | None) -> str:
    """Return the name in C++ of the type of what edges amount to. weights: the type of their
    weights; None if they are all alike.
    """
    return (
        UnitAmounts.__name__ if weights is None else f"{ScaledWeights.__name__}<{c_name(weights)}>"
    )


def _of(function: str, kinds: str) -> str:
    return f"{kinds}, {_THREADS}" if function == "tally_some" else kinds


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels."""
    for function in ("tally_few", "tally_some", "tally_many"):
        graph.device.kernel(_SOURCE, f"{function}<{_of(function, _kinds(graph))}>")


def tables_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that tables in device memory may hold: at least one for any row."""
    return 2 * 2 * SLOT_BYTES * min(vertices, entries)


def tallying_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that a tallying holds: lists, which are made of degrees, and tables."""
    return (4 + 4 + 4) * vertices + tables_bytes(vertices, entries)
