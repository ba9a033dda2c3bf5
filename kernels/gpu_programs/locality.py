"""How the entries of a graph's rows stand for a product with a vector, so that the values which
they lead to are read from near by: in rows, in columns of these, or by tiles.

All three are judged by what they would read, in sectors of the second-level cache, which follows
from where a sample of the targets lead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from .rows import MOST_PIECES, Cuts, ProgramGraph
from .tiles import LAUNCH, Tiling, tile_shift

_CACHED = 3
"""The part of the second-level cache that a column's values take at most: what streams past them
takes some, too, and either half of the cache has its own copy of what all multiprocessors read.
"""

_HUBS = 1 << 14  # vertices whose values the cache of a multiprocessor holds, and room is left

_SAMPLES = 1 << 16
_FEW_SAVED = 1 << 22  # sectors of a product that are not worth it
_PAID_BACK = 6  # a product saves at least this part of the entries, as all of them are moved once

# What things take, in sectors that are read from the second-level cache (measured on an H200).
_HUB = 0.25  # an entry whose value a multiprocessor's cache holds
_NEAR = 0.3  # an entry of a tile
_MISSED = 2  # what an entry takes longer whose value is in no cache
_PIECE = 0.6  # of a row, in columns: its offset, and a sum that is written and read
_SEGMENT = 0.8  # by tiles: its row, and a sum that is added
_SECTOR_BYTES = 32

_TILES = 4, 8, 12, 16, 24, 32, 48, 64, 96


def choose(graph: ProgramGraph, kind: DTypeLike) -> Cuts | Tiling | None:
    """What reads least, if it saves enough; None: rows as they are. kind: of values."""
    rows, n = graph.cut.rows, graph.cut.vertices
    size = np.dtype(kind).itemsize
    shift = (graph.device.cache_bytes // _CACHED // size).bit_length() - 1
    if rows.far is not None or rows.edges == 0 or graph.cut.parts + n >= MOST_PIECES:
        return None
    with graph.device.use() as cupy:
        samples = cupy.sort(rows.near[:: max(1, rows.edges // _SAMPLES)]).get()
        filled = int(cupy.count_nonzero(rows.offsets[1:] != rows.offsets[:-1]))

    def beyond(vertex: int) -> float:
        """The share of entries that lead there, from it on."""
        return 1.0 - float(np.searchsorted(samples, vertex) / len(samples))

    as_rows = rows.edges * (
        _HUB + (1 - _HUB) * beyond(min(n, _HUBS)) + _MISSED * beyond(min(n, 1 << shift))
    )
    best, least = None, as_rows - max(_FEW_SAVED, rows.edges / _PAID_BACK)
    for cuts, saved in _columns(graph, shift, beyond(min(n, 1 << shift))):
        if as_rows - saved < least:
            best, least = cuts, as_rows - saved
    for tiling in _tilings(n, tile_shift(graph.device, size), shift):
        edges = np.arange(tiling.tiles + 1) << tiling.shift
        shares = np.diff(np.searchsorted(samples, edges)) / len(samples)
        rest = beyond(tiling.tiles << tiling.shift)
        each = [*(shares * rows.edges), *[rest * rows.edges / tiling.columns] * tiling.columns]
        segments = sum(min(entries, filled) for entries in each)
        held = tiling.tiles * (size << tiling.shift) / _SECTOR_BYTES
        takes = (
            rows.edges * (_NEAR * (1 - rest) + rest)
            + _SEGMENT * segments
            + held * LAUNCH.blocks * graph.device.multiprocessors
        )
        if takes < least:
            best, least = tiling, takes
    return best


def _columns(graph: ProgramGraph, shift: int, missed: float) -> Iterator[tuple[Cuts, float]]:
    """Columns of 2^shift vertices, and the sectors that they save. missed: the share of entries
    that lead beyond as many.
    """
    rows, n = graph.cut.rows, graph.cut.vertices
    count = -(-n >> shift)
    if count < 2:
        return
    with graph.device.use() as cupy:
        # Rows, the first ones, of two entries a column or more.
        dense = int(cupy.count_nonzero(rows.offsets[1:] - rows.offsets[:-1] >= 2 * count))
        entries = int(rows.offsets[dense])
    if dense and dense * count + n < MOST_PIECES:
        yield Cuts(dense, count, shift), entries * _MISSED * missed - _PIECE * dense * count


def _tilings(n: int, shift: int, column_shift: int) -> Iterator[Tiling]:
    most = -(-n >> shift)
    for tiles in sorted({min(tiles, most) for tiles in _TILES}):
        rest = max(0, n - (tiles << shift))
        yield Tiling(tiles, shift, max(1, -(-rest >> column_shift)), column_shift)
