"""Rows whose entries are grouped by tiles. A tile is a set of vertices so small that a block of GPU
threads keeps all their values in its shared memory.

kernels/cuda/walks/tiles.cuh defines tiles, bands, cells, segments and groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device, pack
from ..gpu.graph import Array
from .rows import CutRows, Launch, blocks_of

LAUNCH = Launch(1024, 1)
"""The launch of kernels that go through tiles: a block has all of a multiprocessor's memory."""

TILES = np.dtype(
    [
        *((name, "u8") for name in ("groups", "band_rows", "near", "far", "pieces", "sums")),
        *((name, "u8") for name in ("long_rows", "first_parts", "near_end")),
        *((name, "u4") for name in ("vertices", "longs", "parts", "bands")),
        *((name, "u4") for name in ("tiles", "columns", "shift")),
    ],
    align=True,
)
GROUP = np.dtype(
    [*((name, "u8") for name in ("entries", "segments")), ("chunks", "u4"), ("before", "u4")],
    align=True,
)
TILING = np.dtype(
    [(name, "u4") for name in ("tiles", "shift", "columns", "column_shift")], align=True
)
BANDS = np.dtype([("first", "u8"), ("count", "u4")], align=True)

_SOURCE = "walks/tiles.cu"
_LANES = 32
_WEIGHED = 1024  # units of a band whose cost is looked at
_MOST_SHIFT = 15  # entries of tiles have 16 bits, and one number is none
_STATIC_BYTES = 2048  # shared memory that a kernel has besides
_LONGEST = np.array(
    [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024], np.int64
)
"""The most entries of a segment of each group: as ``longest`` of cuda/walks/tiles.cuh."""
_WIDTH = np.array([1] * 7 + [2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 32, 32], np.int64)
"""Number of lanes that share a segment of each group: two to ``lanes_shift``."""


class Tiling(NamedTuple):
    """A grouping of vertices by tiles. The first ``tiles`` tiles have 2^shift vertices each.
    ``columns`` columns of 2^column_shift vertices, of all vertices, come next.
    """

    tiles: int
    shift: int
    columns: int
    column_shift: int

    @property
    def cells(self) -> int:
        return self.tiles + self.columns


def tile_shift(device: Device, itemsize: int) -> int:
    """Return the largest shift for which a block has room for 2^shift values of ``itemsize`` bytes
    each.
    """
    room = (device.shared_bytes - _STATIC_BYTES) // itemsize
    return min(_MOST_SHIFT, room.bit_length() - 1)


def shared_bytes(tiling: Tiling, itemsize: int) -> int:
    """Return the bytes of shared memory that a kernel needs for one tile: a value for each vertex
    of the tile, and one zero.
    """
    return ((1 << tiling.shift) + 1) * itemsize


@dataclass(frozen=True)
class TiledRows:
    """The members of the structure ``Tiles`` of cuda/walks/tiles.cuh, on the device.

    weights: uint32, bits of the weights of all entries in their new order; None where there are
    none.
    """

    vertices: int
    tiling: Tiling
    whole: CutRows
    bands: int
    groups: Array
    band_rows: Array
    near: Array
    far: Array
    pieces: Array
    sums: Array
    weights: Array | None

    def packed(self) -> np.ndarray:
        return pack(
            TILES,
            groups=self.groups,
            band_rows=self.band_rows,
            near=self.near,
            far=self.far,
            pieces=self.pieces,
            sums=self.sums,
            long_rows=self.whole.long_rows,
            first_parts=self.whole.first_parts,
            near_end=len(self.near),
            vertices=self.vertices,
            longs=len(self.whole.long_rows),
            parts=self.whole.parts,
            bands=self.bands,
            tiles=self.tiling.tiles,
            columns=self.tiling.columns,
            shift=self.tiling.shift,
        )


def tile_rows(
    device: Device,
    whole: CutRows,
    vertices: int,
    tiling: Tiling,
    weights: Array | None,
    room: int,
) -> TiledRows | None:
    """Group the entries of rows by tiles, with their weights. Returns None if the cells of a row do
    not rise (they do if its targets rise), if the result needs more than ``room`` bytes, or if a
    block's shared memory is too small for the counters.

    whole: rows that stand on the device. vertices: the number of vertices that targets may name.
    weights: uint32, by entry.
    """
    assert (tiling.tiles - 1) << tiling.shift < vertices
    reached = (tiling.tiles << tiling.shift) + (tiling.columns << tiling.column_shift)
    assert reached >= vertices
    kind, units = whole.rows.offset_type, whole.parts + len(whole.turn_rows) - 1
    pieces, blocks = whole.parts + whole.count, blocks_of(device, LAUNCH)
    counters = 4 * tiling.cells * len(_LONGEST)  # of a band
    if counters > device.shared_bytes:
        return None
    of = whole.packed(), pack(TILING, **tiling._asdict())
    with device.use() as cupy:
        first = _cut_bands(device, kind, of, units, blocks)
        bands = pack(BANDS, first=first, count=blocks)
        counts = cupy.empty(blocks * tiling.cells * len(_LONGEST), np.uint32)
        unsorted = cupy.zeros(1, np.uint32)

        def visit(function: str, *arguments: object) -> None:
            kernel = device.kernel(_SOURCE, f"{function}<{kind}>", counters)
            grid = (blocks,), (LAUNCH.threads,)
            kernel(*grid, (*of, bands, *arguments), shared_mem=counters)

        visit("count_segments", counts, unsorted)
        if int(unsorted[0]):
            return None
        groups, near, far, segments = _lay_out(counts.get(), tiling)
        weighed = 0 if weights is None else 4 * (near + far)
        entries = 2 * near + 4 * far + 4 * segments + weighed
        if entries + 8 * pieces + 2 * groups.nbytes > room:
            return None
        made = TiledRows(
            vertices,
            tiling,
            whole,
            blocks,
            groups=cupy.asarray(groups.view(np.uint8)),
            band_rows=whole.turn_rows.take(cupy.maximum(first.astype(np.int64) - whole.parts, 0)),
            near=cupy.full(near, 1 << tiling.shift, np.uint16),
            far=cupy.full(far, 0xFFFFFFFF, np.uint32),
            pieces=cupy.full(segments, 0xFFFFFFFF, np.uint32),
            sums=cupy.zeros(pieces, np.float64),
            weights=None if weights is None else cupy.zeros(near + far, np.uint32),
        )
        made.sums[whole.parts + whole.long_rows.astype(np.int64)] = np.nan
        none, end = np.uint64(0), np.uint64(near)
        given = none if weights is None else weights
        moved = none if made.weights is None else made.weights
        to = made.near, made.far, made.pieces, end, moved
        visit("place_segments", made.groups, given, *to)
        return made


def warm_up(device: Device, offset_type: str) -> None:
    """Compile, or load from the cache, the kernels that ``tile_rows`` calls."""
    with device.use():
        for function in ("weigh_units", "count_segments", "place_segments"):
            device.kernel(_SOURCE, f"{function}<{offset_type}>")


def _cut_bands(device: Device, kind: str, of: tuple[Any, ...], units: int, bands: int) -> Array:
    """Return uint32 (bands + 1,): the first unit of each band, and an end, so that all bands cost
    about as much, as far as some units tell.
    """
    apart = max(1, units // (bands * _WEIGHED))
    samples = -(-units // apart)
    with device.use() as cupy:
        costs = cupy.empty(samples, np.uint32)
        weigh = f"weigh_units<{kind}>"
        device.launch(_SOURCE, weigh, samples * _LANES, (*of, np.uint32(apart), costs))
        ends = cupy.cumsum(costs, dtype=np.uint64)
        shares = np.arange(1, bands, dtype=np.float64) * (float(ends[-1]) / bands)
        first = cupy.zeros(bands + 1, np.uint32)
        first[1:-1] = cupy.searchsorted(ends, cupy.asarray(shares.astype(np.uint64))) * apart
        first[-1] = units
        return first


def _lay_out(counts: np.ndarray, tiling: Tiling) -> tuple[np.ndarray, int, int, int]:
    """Return the GROUP structure of each group, from the number of its segments; then the number of
    entries in tiles, the number in columns, and the number of segments, padding included.
    """
    shape = -1, tiling.cells, len(_LONGEST)
    segments_a_chunk = _LANES // _WIDTH  # segments of a chunk
    chunks = -(-counts.astype(np.int64).reshape(shape) // segments_a_chunk)
    entries, segments = chunks * (_LONGEST // _WIDTH * _LANES), chunks * segments_a_chunk
    groups = np.zeros(chunks.shape, GROUP)
    groups["chunks"] = chunks
    groups["before"] = chunks[..., ::-1].cumsum(-1)[..., ::-1] - chunks  # longer ones come first
    groups["segments"] = segments.cumsum().reshape(chunks.shape) - segments
    sizes = []
    for cells in (slice(tiling.tiles), slice(tiling.tiles, None)):
        part = entries[:, cells]
        groups["entries"][:, cells] = part.cumsum().reshape(part.shape) - part
        sizes.append(int(part.sum()))
    return groups, sizes[0], sizes[1], int(segments.sum())
