"""Truss numbers on a device (cuda/pieces/truss.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..gpu.device import Device, pack, unsigned_name, without_fields
from ..gpu.graph import Array, offsets_dtype
from ..gpu_programs.rows import TIME, ProgramGraph, kernel_of, rows_at
from .intersect import EarlierRows, count_supports, earlier_bytes
from .intersect import warm_up as warm_up_intersect

_ARRAYS = ("offsets", "targets", "later", "begins", "by_earlier", "support", "state")
TRUSS = np.dtype(
    [*((name, "u8") for name in _ARRAYS), ("queues", "u8", 2), ("lists", "u8", 2)], align=True
)
_NUMBERS = ("queue", "list", "left", "level", "rounds", "least", "stop")
PROGRESS = np.dtype(
    [
        *((name, "u8") for name in ("arrived", "looked")),
        *((name, "u4", 2) for name in ("queued", "listed")),
        *((name, "u4") for name in _NUMBERS),
    ],
    align=True,
)

_SOURCE = "pieces/truss.cu"
_NONE = (1 << 32) - 1


class Peeling:
    """The edges of a graph, which leave in rounds. Directions do not count.

    support: uint32, by edge; once all have left, the truss number less 2. triangles: of the graph.
    left: the number of edges that are left. level: the support of the edges that left last.
    rounds: that were done. looked: the number of entries, and of edges, that were looked at.
    """

    def __init__(self, graph: ProgramGraph) -> None:
        self._device, self._rows = graph.device, EarlierRows(graph, with_ways=False)
        n, edges = graph.vertices, len(self._rows.targets)
        self.support, self.looked = count_supports(graph, self._rows)
        self.left, self.level, self.rounds = edges, 0, 0
        rows = self._rows
        with graph.device.use() as cupy:
            self.triangles = int(self.support.sum(dtype=np.uint64)) // 3
            every = cupy.arange(edges, dtype=rows.offsets.dtype)
            self._later = rows_at(cupy, rows.offsets, every).astype(np.uint32)
            del every
            self._by_earlier = cupy.argsort(rows.targets, kind="stable").astype(np.uint32)
            self._begins = cupy.zeros(n + 1, rows.offsets.dtype)
            counts = cupy.bincount(rows.targets, minlength=n)
            self._begins[1:] = cupy.cumsum(counts, dtype=rows.offsets.dtype)
            del counts
            self._state = cupy.zeros(edges, np.uint8)
            self._lists = [cupy.empty(edges, np.uint32) for _ in range(4)]
            self._lists[0][:] = cupy.arange(edges, dtype=np.uint32)
            progress = np.zeros(1, PROGRESS)
            progress["left"] = progress["listed"][0, 0] = edges
            progress["least"] = _NONE
            self._progress = cupy.asarray(progress.view(np.uint64))

    def groups(self) -> Iterator[None]:
        """Do rounds until no edge is left. Yields now and then."""
        kernel, packed = _kernel(self._device, self._rows.offsets.dtype), self._packed()
        counted = self.looked
        while self.left:
            with self._device.use():
                kernel(packed, self._progress, np.uint64(TIME))
                progress = self._progress.get().view(PROGRESS)[0]
            self.left, self.level, self.rounds = (
                int(progress[name]) for name in ("left", "level", "rounds")
            )
            self.looked = counted + int(progress["looked"])
            yield

    def edges(self) -> tuple[Array, Array]:
        """Return both ends of each edge, vertices: uint32, on the device."""
        with self._device.use() as cupy:
            ends, positions = (self._later, self._rows.targets), self._rows.positions
            if len(positions):
                vertices = cupy.empty_like(positions)
                vertices[positions] = cupy.arange(len(positions), dtype=np.uint32)
                ends = vertices[ends[0]], vertices[ends[1]]
            return ends

    def _packed(self) -> np.ndarray:
        rows = self._rows
        arrays = rows.offsets, rows.targets, self._later, self._begins, self._by_earlier
        packed = pack(
            TRUSS, **dict(zip(_ARRAYS, (*arrays, self.support, self._state), strict=True))
        )
        addresses = [some.data.ptr for some in self._lists]
        packed["lists"], packed["queues"] = addresses[:2], addresses[2:]
        return without_fields(packed)


def _kernel(device: Device, offsets: Any) -> Callable[..., None]:
    return kernel_of(device, _SOURCE, "remove_edges", [unsigned_name(offsets)])


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels."""
    warm_up_intersect(graph, "AtEdges")
    _kernel(graph.device, offsets_dtype(graph.cut.rows.edges // (1 + graph.twice)))


def peeling_bytes(vertices: int, edges: int) -> int:
    """Return the most bytes that a peeling holds."""
    ordering = 4 + 8 + 8 + 8 + 4  # while edges are put in order by their other ends
    by_edge = 4 + 4 + 4 + max(ordering, 4 + 1 + 4 * 4)
    by_vertex = 8 + 8
    return max(
        earlier_bytes(vertices, edges),
        earlier_bytes(vertices, 0) + by_vertex * vertices + by_edge * edges,
    )
