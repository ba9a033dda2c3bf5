"""Sums of what comes to vertices along all edges, on a device (cuda/walks/gather.cuh): how the
entries of rows stand for it, and the operation ``gather``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..gpu.device import pack, without_fields
from ..gpu.graph import Array
from ..pieces.operators import AnySum, Sum
from . import locality, rows, tiles
from .rows import CutRows, Cuts, ProgramGraph, c_name, kernel_of
from .tiles import Tiling

IN_ROWS = np.dtype(
    [
        ("rows", rows.ROWS),
        *((name, "u8") for name in ("part_sums", "column_sums")),
        *((name, "u4") for name in ("dense", "columns")),
    ],
    align=True,
)
SUM = np.dtype([("weights", "u8")], align=True)

_SOURCE = "walks/gather.cu"
_FUNCTION = "gather_values"


class Arranged(NamedTuple):
    """Entries in the arrangement in which they are gathered. packed: for kernels, an InRows or
    Tiles of gather.cuh. weights: of all entries. tiling: None where entries stand in rows. held:
    arrays that stay while these are in use.
    """

    packed: np.ndarray
    weights: Array | None
    tiling: Tiling | None
    held: tuple[Any, ...]


def arrange(
    graph: ProgramGraph, cut: CutRows, weights: Array | None, kind: DTypeLike, room: int
) -> Arranged:
    """Arrange the entries in columns or by tiles where that pays and there is room.

    weights: of the entries. kind: of the values that are gathered. room: bytes that this may take.
    """
    device, n = graph.device, graph.vertices
    way = locality.choose(device, cut, n, kind)
    if isinstance(way, Tiling):
        made = tiles.tile_rows(device, cut, n, way, weights, room)
        if made is not None:
            return Arranged(made.packed(), made.weights, way, (made,))
    cuts = Cuts(0, 0, 0)
    if isinstance(way, Cuts):
        needed = rows.columns_bytes(device, cut, way, weights is not None) + 8 * way.pieces
        found = rows.in_columns(device, cut, way, weights) if needed <= room else None
        if found is not None:
            (cut, weights), cuts = found, way
    return _in_rows(graph, cut, weights, cuts)


def _in_rows(graph: ProgramGraph, cut: CutRows, weights: Array | None, cuts: Cuts) -> Arranged:
    with graph.device.use() as cupy:
        sums = [cupy.empty(count, np.float64) for count in (cut.parts, cuts.pieces)]
    packed = pack(
        IN_ROWS,
        part_sums=sums[0],
        column_sums=sums[1],
        dense=cuts.dense,
        columns=cuts.columns,
    )
    packed["rows"] = cut.packed()
    return Arranged(packed, weights, None, (cut, *sums))


def warm_up(
    graph: ProgramGraph,
    kind: DTypeLike = np.float64,
    functions: Sequence[str] = (_FUNCTION,),
    source: str = _SOURCE,
) -> None:
    """Compile, or load from the cache, all kernels that gather values of a kind in a graph."""
    for cut in graph.cut, graph.back:
        if cut is None:
            continue
        way = locality.choose(graph.device, cut, graph.vertices, kind)
        tiling = way if isinstance(way, Tiling) else None
        for function in functions:
            kernel(graph, cut, function, kind, None, source)
            if tiling is not None:  # (rows are what is left where there is no room for these)
                kernel(graph, cut, function, kind, tiling, source)
        if tiling is not None:
            tiles.warm_up(graph.device, cut.rows.offset_type)
        elif way is not None:
            rows.warm_up_columns(graph.device, cut.rows.offset_type)


def kernel(
    graph: ProgramGraph,
    cut: CutRows,
    function: str,
    kind: DTypeLike,
    tiling: Tiling | None,
    source: str = _SOURCE,
) -> Callable[..., None]:
    """Return the kernel of entries that stand by tiles, or in rows. kind: of the values."""
    value = np.dtype(kind)
    operator = "Sum" if graph.weights is None else f"WeightedSum<{c_name(str(graph.weight_type))}>"
    stands = f"InRows<{cut.rows.offset_type}, {cut.tiered}>" if tiling is None else "Tiles"
    kinds = stands, operator, c_name(value.name)
    if tiling is None:
        return kernel_of(graph.device, source, function, kinds)
    shared_bytes = tiles.shared_bytes(tiling, value.itemsize)
    return kernel_of(graph.device, source, function, kinds, tiles.LAUNCH, shared_bytes)


class Gathering:
    """The operation ``gather`` along the edges of a graph, or against them.

    back: whether to go through ``graph.back``.
    """

    def __init__(self, graph: ProgramGraph, back: bool) -> None:
        cut, weights = graph.cut, graph.weights
        if back:
            assert graph.back is not None
            cut, weights = graph.back, graph.back_weights
        self.edges = cut.rows.edges
        self._graph = graph
        room = graph.room if graph.back is None else graph.room // 2
        self._in = arrange(graph, cut, weights, np.float64, room)
        self._kernel = kernel(graph, cut, _FUNCTION, np.float64, self._in.tiling)
        self._rows = without_fields(self._in.packed)
        self._sum = without_fields(pack(SUM, weights=self._in.weights))
        with graph.device.use() as cupy:
            self._arrived = cupy.zeros(1, np.uint64)

    def run(self, operator: AnySum, x: Array, y: Array) -> None:
        """Add to ``y`` what edges bring from ``x``: float64 (n,), by vertex, on the device."""
        assert isinstance(operator, Sum) == (self._graph.weights is None)
        with self._graph.device.use():
            self._kernel(self._rows, self._sum, x, y, self._arrived)


def gathering_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that a gathering holds at most, where entries stand in rows."""
    return 8 * (vertices + entries) // 64
