"""Slices of a graph on one GPU, and searches over them (cuda/bfs/slices.cu, slice_search.cu).

A slice holds up to eight entries of a row, as a mask. On small graphs of few levels a search over
slices takes half the time of one over rows; where memory or many levels bound it, several times
as much. Cutting takes some milliseconds: it is for graphs that are searched time and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..base import arrays
from ..base.arrays import allocate, total_bytes
from .device import Device, pack, strip_lanes, without_fields
from .graph import Array, DeviceGraph, Rows
from .prepare import sort

SLICES = np.dtype(
    [
        *((name, "u8") for name in ("rows", "masks", "first", "place", "vertex")),
        *((name, "u4") for name in ("sets", "vertices")),
    ],
    align=True,
)
LAST_LEVEL = 254  # of distances of a byte
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("clocks", "u8", LAST_LEVEL + 1),
        ("queued", "u4", 3),
        *((name, "u4") for name in ("level", "left")),
    ],
    align=True,
)
SEARCH = np.dtype(
    [
        *((name, "u8") for name in ("distance", "parent", "stamp")),
        ("queue", "u8", 2),
        *((name, "u8") for name in ("control", "given_distance", "given_parent")),
        *((name, "u4") for name in ("source", "max_level", "sweep_from")),
    ],
    align=True,
)
SET = 8  # columns of a set
VIRTUAL = 128  # slices of a virtual set
THREADS = 1024  # of a block, one on each multiprocessor
MOST_VIRTUAL = 1 << 27  # virtual sets: their lanes are numbered with 32 bits
SLICE_SEARCH = "bfs/slice_search.cu", f"slice_search<{THREADS}>"
_SOURCE = "bfs/slices.cu"
_CUTTING = 40  # bytes of an entry: its key, what sorting and counting hold beside
_FEW = 2048  # virtual sets of a level that a sweep after it would cost more than it saves
_SHARE = 16  # sets for each virtual set of a level that is swept after
_NEVER = (1 << 32) - 1


@dataclass(frozen=True)
class Slices:
    """A graph's forward rows in slices, on the device; see cuda/bfs/slice_search.cu.

    rows: uint32, masks: uint8 (128 virtual sets). first: uint32 (sets + 1,). place: uint32 (used,),
    of each vertex, in an order that puts like neighbours together; vertex: the inverse. number: of
    slices.
    """

    rows: Array
    masks: Array
    first: Array
    place: Array
    vertex: Array
    number: int

    @property
    def sets(self) -> int:
        return len(self.first) - 1

    @property
    def virtual_sets(self) -> int:
        return len(self.rows) // VIRTUAL

    @property
    def swept_from(self) -> int:
        """Return the least number of virtual sets in a level that is swept after."""
        return max(_FEW, self.sets // _SHARE)

    @property
    def may_be_swept(self) -> bool:
        return self.virtual_sets >= self.swept_from


def bytes_needed(vertices: int, edges: int) -> int | None:
    """Return the bytes on the device that cutting and searches hold at most, beside a graph and its
    own searches; None where there are too many slices.

    >>> bytes_needed(1 << 20, 1 << 24) < 1 << 30
    True
    """
    sets = -(-vertices // SET)
    virtual = edges // VIRTUAL + sets
    if virtual >= MOST_VIRTUAL:
        return None
    kept = 5 * VIRTUAL * virtual + (4 + 4 + 8) * vertices + (4 + 8 + 8) * sets
    return _CUTTING * edges + kept + total_bytes(state(sets, virtual)) + (8 << 20)


def state(sets: int, virtual_sets: int) -> list[arrays.Array]:
    """Return the arrays that searches write to, beside their results."""
    return [
        arrays.Array("distance", np.uint8, SET * sets),
        arrays.Array("parent", np.uint32, SET * sets),
        arrays.Array("stamp", np.uint32, sets),
        *(arrays.Array(f"queue_{i}", np.uint64, virtual_sets) for i in range(2)),
        arrays.Array("control", np.uint8, CONTROL.itemsize, fill=0),
    ]


def cut(device: Device, graph: DeviceGraph) -> Slices:
    """Cut a graph whose targets are all on the device into slices."""
    rows, used = graph.forward, graph.used
    with device.use() as cupy:
        place, vertex = _order(device, rows, used)
        keys = cupy.empty(rows.edges, np.uint64)
        size = (np.uint64(rows.edges), np.uint32(used))
        function = f"slice_keys<{rows.offset_type}>"
        arguments = (rows.offsets, rows.near, *size, place, keys)
        device.launch(_SOURCE, function, strip_lanes(rows.edges), arguments)
        sort(cupy, keys)
        begins = cupy.empty(rows.edges, np.uint8)
        device.launch(_SOURCE, "mark_slices", rows.edges, (keys, size[0], begins))
        starts = cupy.flatnonzero(begins)
        sets = -(-used // SET)
        ends = cupy.arange(1, sets + 1, dtype=np.uint64) << np.uint64(35)
        first_slice = cupy.zeros(sets + 1, np.uint64)
        first_slice[1:] = cupy.searchsorted(keys.take(starts), ends)
        length = first_slice[1:] - first_slice[:-1]
        first = cupy.zeros(sets + 1, np.uint32)
        first[1:] = cupy.cumsum((length + np.uint64(VIRTUAL - 1)) // np.uint64(VIRTUAL))
        room = VIRTUAL * int(first[-1])
        written = cupy.zeros(room, np.uint32), cupy.zeros(room, np.uint8)
        number = len(starts)
        arguments = (keys, size[0], starts, np.uint64(number), first_slice, first, *written)
        device.launch(_SOURCE, "write_slices", number, arguments)
        del keys, begins, starts, length, first_slice, ends
        cupy.get_default_memory_pool().free_all_blocks()
        return Slices(*written, first, place, vertex, number)


def _order(device: Device, rows: Rows, used: int) -> tuple[Array, Array]:
    """Return the places of the vertices, and the vertices by place."""
    cupy = device.cupy
    hashes = cupy.empty(used, np.uint64)
    arguments = (rows.offsets, rows.near, np.uint32(used), hashes)
    device.launch(_SOURCE, f"min_hashes<{rows.offset_type}>", 32 * used, arguments)
    vertex = cupy.argsort(hashes).astype(np.uint32)
    place = cupy.empty(used, np.uint32)
    place[vertex] = cupy.arange(used, dtype=np.uint32)
    return place, vertex


def compile_slice_search(device: Device) -> Any:
    """Return the kernel that searches. Compiles it, once."""
    return device.kernel(*SLICE_SEARCH, cooperative=True)


class SliceSearch:
    """Searches over slices, one at a time, in arrays that are made once.

    swept: whether large levels are swept after, so that finding a vertex takes no atomic operation;
    else all vertices found are queued at once. distance, parent: receive the results, as for
    GpuSearch.
    """

    def __init__(
        self, device: Device, slices: Slices, swept: bool, distance: Array, parent: Array
    ) -> None:
        self._device = device
        self._held = slices  # kernels are given addresses only
        with device.use() as cupy:
            made = allocate(state(slices.sets, slices.virtual_sets), cupy)
            self._place = slices.place.get()
        self._made = made
        self._told = device.pinned(CONTROL.itemsize, np.uint8)
        self._launch: Callable[[], None] | None = None
        self._slices = pack(
            SLICES,
            rows=slices.rows,
            masks=slices.masks,
            first=slices.first,
            place=slices.place,
            vertex=slices.vertex,
            sets=slices.sets,
            vertices=len(slices.place),
        )
        self._search = pack(
            SEARCH,
            distance=made["distance"],
            parent=made["parent"],
            stamp=made["stamp"],
            queue=[made[f"queue_{i}"].data.ptr for i in range(2)],
            control=made["control"],
            given_distance=distance,
            given_parent=parent,
            sweep_from=slices.swept_from if swept else _NEVER,
        )

    def kernel(self) -> Any:
        return compile_slice_search(self._device)

    def write_to(self, distance: Array, parent: Array) -> None:
        """Write what searches find to these arrays from now on."""
        self._search["given_distance"] = distance.data.ptr
        self._search["given_parent"] = parent.data.ptr

    def launch_of(self, source: int, max_level: int | None) -> Callable[[], None]:
        """Return the launch of a search from a vertex, LAST_LEVEL levels at most."""
        self._search["source"] = self._place[source]
        self._search["max_level"] = LAST_LEVEL if max_level is None else min(max_level, LAST_LEVEL)
        if self._launch is None:
            blocks = self._device.multiprocessors
            arguments = tuple(map(without_fields, (self._slices, self._search)))
            self._launch = partial(self.kernel(), (blocks,), (THREADS,), arguments)
        return self._launch

    def outcome(self) -> tuple[np.ndarray, bool]:
        """Return the clocks of each level of the last search (uint64), and whether it came to
        LAST_LEVEL with more to do.
        """
        control = self._made["control"].get(out=self._told).view(CONTROL)[0]
        level = int(control["level"])
        at = control["clocks"]
        return at[1 : level + 1] - at[:level], level == LAST_LEVEL and int(control["left"]) > 0
