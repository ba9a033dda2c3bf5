"""Arrangements of the entries of a graph's rows for a product with a vector, chosen so that the
values at their targets are read from near by: in rows, in columns of rows, or by tiles.

All three are judged by the sectors of the second-level cache that they would read. These follow
from where a sample of the targets lead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

from ..gpu.device import Device
from .rows import MOST_PIECES, CutRows, Cuts
from .tiles import LAUNCH, Tiling, tile_shift

_CACHED = 3
"""Part of the second-level cache that a column's values take at most. The entries that stream past
these values take some of the cache, too, and either half of the cache has its own copy of what all
multiprocessors read.
"""

_HUBS = 1 << 14  # vertices whose values the cache of a multiprocessor holds, and room is left

_SAMPLES = 1 << 16  # targets that are looked at
_ROWS = 1 << 11  # the same of rows
_FEW_SAVED = 1 << 22  # sectors of a product that are not worth it

# What things take, in sectors that are read from the second-level cache (measured on an H200).
_ROW_ENTRY = 1.6  # in rows
_HUB_ENTRY = 0.8  # the same, where a multiprocessor's cache holds its value
_MISSED = 3.8  # longer, where no cache holds it
_PIECE = 1.3  # of a row, in columns: its offset, and a sum that is written and read
_NEAR_ENTRY = 0.3  # by tiles, in one of them
_NEAR_SEGMENT = 1.0
_FAR_ENTRY = 1.2  # by tiles, in a column
_FAR_SEGMENT = 2.0
_MISSED_SUM = 4.0  # longer, of either segment, whose sum no cache holds
_HELD = 2.2  # a sector of a tile that a block holds, with its waiting for all warps
_CUT = 0.25  # an entry that is moved into columns, once, in each of some 25 products
_TILED = 0.4  # the same by tiles
_SECTOR_BYTES = 32
_SUM_BYTES = 8

_TILES = 4, 8, 12, 16, 24, 32, 48, 64, 96


def choose(device: Device, cut: CutRows, n: int, kind: DTypeLike) -> Cuts | Tiling | None:
    """Return the order of entries that reads least, if it saves enough; None: rows as they are. n:
    vertices, which targets are of. kind: of values.
    """
    rows, count = cut.rows, cut.count
    size = np.dtype(kind).itemsize
    shift = (device.cache_bytes // _CACHED // size).bit_length() - 1
    if rows.far is not None or rows.edges == 0 or cut.parts + count >= MOST_PIECES:
        return None
    with device.use() as cupy:
        samples = cupy.sort(rows.near[:: max(1, rows.edges // _SAMPLES)]).get()
        sampled_rows = cupy.asarray(np.linspace(0, count - 1, _ROWS).astype(np.int64))
        lengths = (
            (rows.offsets[sampled_rows + 1] - rows.offsets[sampled_rows]).get().astype(np.float64)
        )

    def beyond(vertex: int) -> float:
        """Return the share of entries that lead to ``vertex`` or beyond."""
        return 1.0 - float(np.searchsorted(samples, vertex) / len(samples))

    def segments(share: float) -> float:
        """Return how many rows have an entry where this share of all entries leads, if any entry is
        as likely to lead there.
        """
        return count * float(np.mean(-np.expm1(-share * lengths)))

    as_rows = rows.edges * (
        _HUB_ENTRY
        + (_ROW_ENTRY - _HUB_ENTRY) * beyond(min(n, _HUBS))
        + _MISSED * beyond(min(n, 1 << shift))
    )
    missed_sum = _MISSED_SUM * max(0.0, 1.0 - device.cache_bytes / 2 / (_SUM_BYTES * count))
    best, least = None, as_rows - _FEW_SAVED
    for cuts, saved in _columns(device, cut, n, shift, beyond(min(n, 1 << shift))):
        if as_rows - saved < least:
            best, least = cuts, as_rows - saved
    for tiling in _tilings(n, tile_shift(device, size), shift):
        ends = np.searchsorted(samples, np.arange(tiling.tiles + 1) << tiling.shift)
        far_share = beyond(tiling.tiles << tiling.shift)
        near = sum(map(segments, np.diff(ends) / len(samples)))
        far = tiling.columns * segments(far_share / tiling.columns)
        held = tiling.tiles * (size << tiling.shift) / _SECTOR_BYTES
        takes = (
            rows.edges * (_TILED + _NEAR_ENTRY * (1 - far_share) + _FAR_ENTRY * far_share)
            + (_NEAR_SEGMENT + missed_sum) * near
            + (_FAR_SEGMENT + missed_sum) * far
            + _HELD * held * LAUNCH.blocks * device.multiprocessors
        )
        if takes < least:
            best, least = tiling, takes
    return best


def _columns(
    device: Device, cut: CutRows, n: int, shift: int, missed: float
) -> Iterator[tuple[Cuts, float]]:
    """Yield columns of 2^shift vertices, and the sectors that they save. missed: the share of
    entries that lead beyond the first 2^shift vertices.
    """
    rows, columns = cut.rows, -(-n >> shift)
    if columns < 2:
        return
    with device.use() as cupy:
        # Rows, the first ones, of two entries a column or more.
        dense = int(cupy.count_nonzero(rows.offsets[1:] - rows.offsets[:-1] >= 2 * columns))
        entries = int(rows.offsets[dense])
    if dense and dense * columns + cut.count < MOST_PIECES:
        saved = entries * _MISSED * missed - _PIECE * dense * columns - _CUT * rows.edges
        yield Cuts(dense, columns, shift), saved


def _tilings(n: int, shift: int, column_shift: int) -> Iterator[Tiling]:
    most = -(-n >> shift)
    for tiles in sorted({min(tiles, most) for tiles in _TILES}):
        far_vertices = max(0, n - (tiles << shift))
        yield Tiling(tiles, shift, max(1, -(-far_vertices >> column_shift)), column_shift)
