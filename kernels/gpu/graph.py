"""A graph on a device: its rows, and the forms of them that searches read (cuda/bfs/derive.cu).

Targets that are not to stand on the device are read in place from pinned host memory. Each row's
first entry, which is read most, is on the device in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .device import Device, pack, unsigned_name

Array = Any
"""An array on the device (cupy.ndarray)."""

SHORT_ROW = 4
"""The most entries of a row that is never left to all warps (cuda/bfs/pull.cuh)."""

MOST_REST = 1 << 20  # rows that a pull leaves to all warps: enough work for each

NEXT = 4
LOOKS = 32
MOST_PADDED = 8  # mean degree; search.bytes_needed counts on it
MOST_VERTICES = 2**32 - 2**20  # kernels round up to strips with 32 bits
MOST_SHORT = 2**32 - 64  # entries that offsets of 32 bits are used for: kernels look some ahead
_SOURCE = "bfs/derive.cu"
_WIDTHS = (4, 8)
_LONGER_SHARE = 0.01  # of rows that may be longer than padded ones
_SELDOM = 0.0005  # of rows: what a level of a thousand vertices seldom meets

TARGETS = np.dtype([("near", "u8"), ("far", "u8"), ("near_end", "u8")], align=True)


def offsets_dtype(entries: int) -> np.dtype:
    """Return the type of offsets of rows with so many entries.

    >>> offsets_dtype(2**32 - 65), offsets_dtype(2**32)
    (dtype('uint32'), dtype('uint64'))
    """
    return np.dtype(np.uint32 if entries < MOST_SHORT else np.uint64)


@dataclass(frozen=True)
class Rows:
    """Compressed sparse rows on a device, in two tiers.

    offsets: uint32 or uint64 (n + 1,), on the device. near: uint32, the first entries, on the
    device. far: uint32, the entries after them, in pinned host memory; None if there are none.
    """

    offsets: Array
    near: Array
    far: np.ndarray | None = None

    @property
    def edges(self) -> int:
        return len(self.near) + (0 if self.far is None else len(self.far))

    @property
    def offset_type(self) -> str:
        """Return the name of the offsets' type in C++."""
        return unsigned_name(self.offsets.dtype)

    def targets(self) -> np.ndarray:
        """Return the structure ``Targets`` of cuda/base/targets.cuh."""
        far = 0 if self.far is None else self.far.ctypes.data
        return pack(TARGETS, near=self.near, far=far, near_end=len(self.near))

    @classmethod
    def with_room(cls, device: Device, offsets: Array | np.ndarray, near: int) -> Rows:
        """Return rows of these offsets; targets are yet to be put there, ``near`` of them on the
        device.
        """
        edges = int(offsets[-1])
        near = min(near, edges)
        if edges >= MOST_SHORT:
            offsets = offsets.astype(np.uint64, copy=False)
        with device.use() as cupy:
            on_device = cupy.empty(near, np.uint32)
            far = device.pinned(edges - near, np.uint32) if near < edges else None
            return cls(cupy.asarray(offsets), on_device, far)

    def put(self, device: Device, at: int, targets: np.ndarray) -> None:
        """Write targets, in host memory, to their places from entry ``at`` on."""
        here = max(0, min(len(targets), len(self.near) - at))
        with device.use():
            if here:
                self.near[at : at + here].set(targets[:here])
        if here < len(targets):
            assert self.far is not None
            first = at + here - len(self.near)
            self.far[first : first + len(targets) - here] = targets[here:]


@dataclass(frozen=True)
class DeviceGraph:
    """A graph on a device, in the forms that searches read. forward, reverse: its rows, which are
    the same in an undirected graph.

    used: vertices from this number on have no edges. first: uint32 (used,), the first entry of each
    reverse row. next: uint32 (used, NEXT), the entries after it. long_rows: the number of reverse
    rows of more entries than SHORT_ROW. padded: uint32 (used, width), rows of low degree; None if
    too many rows are longer. looks: float32 (LOOKS,), the mean number of entries of a reverse row
    that a search looks at until it finds one, if each entry is one with probability 2^-k.
    """

    vertices: int
    used: int
    forward: Rows
    reverse: Rows
    first: Array
    next: Array
    long_rows: int
    padded: Array | None
    looks: np.ndarray

    @property
    def edges(self) -> int:
        """Count the entries of the forward rows."""
        return self.forward.edges

    @property
    def bytes(self) -> int:
        """Count the bytes of the rows, which are kept once if both ways are the same."""
        ways = {id(some): some for some in (self.forward, self.reverse)}.values()
        return sum(rows.offsets.nbytes + 4 * rows.edges for rows in ways)

    @property
    def tiered(self) -> bool:
        return self.forward.far is not None or self.reverse.far is not None


def derive(
    device: Device, forward: Rows, reverse: Rows | None = None, padded: bool = True
) -> DeviceGraph:
    """Make the forms of a graph that searches read.

    reverse: None for an undirected graph. padded: whether to make padded rows of low degrees.
    """
    reverse = reverse or forward
    with device.use() as cupy:
        vertices = len(forward.offsets) - 1
        used = max(_used(cupy, forward), _used(cupy, reverse))
        first = cupy.empty(used, np.uint32)
        following = cupy.empty((used, NEXT), np.uint32)
        kind = reverse.offset_type
        device.launch(
            _SOURCE,
            f"first_entries<{kind}>",
            used * NEXT,
            (reverse.offsets, reverse.targets(), first, following, np.uint32(used)),
        )
        in_rows = _longer(device, reverse, used)
        out_rows = in_rows if forward is reverse else _longer(device, forward, used)
        in_padded = None
        width = _padded_width(out_rows, used) if padded else 0
        if width and forward.edges <= MOST_PADDED * used:
            in_padded = cupy.empty((used, width), np.uint32)
            function = f"padded_rows<{forward.offset_type}, {width}>"
            arguments = (forward.offsets, forward.targets(), in_padded, np.uint32(used))
            device.launch(_SOURCE, function, used * width, arguments)
        long_rows = int(in_rows[_place(SHORT_ROW)])
        looks = _looks(in_rows)
        return DeviceGraph(
            vertices, used, forward, reverse, first, following, long_rows, in_padded, looks
        )


def _used(cupy: Any, rows: Rows) -> int:
    """Count the rows up to the last one that has entries."""
    end = cupy.array([rows.edges], rows.offsets.dtype)
    return int(cupy.searchsorted(rows.offsets, end)[0])


def _longer(device: Device, rows: Rows, used: int) -> np.ndarray:
    """Count the rows that are longer than 0, 1, 2, 4, 8, ... entries: int64 (32,); see
    ``_place``.
    """
    cupy = device.cupy
    counts = cupy.zeros(32, np.uint64)
    name = f"long_rows<{rows.offset_type}>"
    device.launch(_SOURCE, name, used, (rows.offsets, np.uint32(used), counts))
    return counts.get().astype(np.int64)


def _place(length: int) -> int:
    """Return the index at which ``_longer`` counts the rows that are longer than ``length``, a
    power of two.
    """
    return length.bit_length()


def _padded_width(longer: np.ndarray, used: int) -> int:
    """Return the number of entries of padded rows. This is the least width for which longer rows
    are met seldom; if there is none, the greatest width for which longer rows are few; 0 if too
    many rows are longer than any width. longer: from ``_longer``.
    """
    few = [width for width in _WIDTHS if longer[_place(width)] <= _LONGER_SHARE * used]
    seldom = (width for width in few if longer[_place(width)] <= _SELDOM * used)
    return next(seldom, max(few, default=0))


def _looks(longer: np.ndarray) -> np.ndarray:
    """Compute ``DeviceGraph.looks`` from ``_longer``.

    >>> _looks(np.array([4, 4] + [0] * 30))[:3].tolist()  # rows of two entries
    [1.0, 1.5, 1.75]
    """
    rows = longer - np.append(longer[1:], 0)
    degree = np.ceil(0.75 * 2.0 ** np.arange(len(rows)))  # of each power of two the middle
    visited = 2.0 ** -np.arange(LOOKS)[:, None]
    looks = -np.expm1(degree * np.log1p(-np.minimum(visited, 1 - 1e-9))) / visited
    return ((looks * rows).sum(1) / max(1, rows.sum())).astype(np.float32)
