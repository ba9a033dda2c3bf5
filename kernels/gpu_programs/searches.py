"""Searches from many vertices on a device. pipeline/algorithms/searches.py says what they find, and
when searching together pays; the kernels stand in cuda/programs/searches.cu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Array, allocate
from ..base.together import BITS_TO_PAY, DIGITS, LEVELS_TO_JUDGE, RARE, WIDTH
from ..gpu.device import Device, pack
from .rows import (
    LAUNCH,
    Launch,
    ProgramGraph,
    allocate_gangs,
    blocks_of,
    kernel_of,
    pool_bytes,
)
from .shortest_paths import items_of

ASKED_FOR_TOLD = 16
"""Number of entries that vertices look at, stopping early, in the time that one entry takes along
which a vertex is told.
"""

APART = Launch(1024, 1)
"""A launch in which a block that is alone has all warps that a multiprocessor takes."""
MOST_TAKEN_BYTES = 2
"""Most bytes for each vertex that the receiver of one search's distances holds."""

HOPS = np.dtype(
    [
        *((name, "u8") for name in ("reached", "total")),
        ("harmonic", "f8"),
        *((name, "u4") for name in ("farthest", "unused")),
    ],
    align=True,
)
CONTROL = np.dtype(
    [
        *((name, "u8") for name in ("arrived", "looked")),
        *((name, "u8", 3) for name in ("leaving", "open", "found")),
        *((name, "u4", 3) for name in ("queued", "listed")),
        ("counts", "u4", (3, WIDTH)),
        *((name, "u4") for name in ("levels", "outcome", "listed_open", "unused")),
        ("hops", HOPS, WIDTH),
    ],
    align=True,
)
TOGETHER = np.dtype(
    [
        ("seen", "u8"),
        *((name, "u8", 2) for name in ("words", "queue")),
        *((name, "u8") for name in ("open", "any", "bits", "control")),
        *((name, "u4") for name in ("digits", "unused")),
    ],
    align=True,
)
NEAREST = np.dtype(
    [(name, "u8") for name in ("distance", "nearest", "items", "control")], align=True
)
WAYS = np.dtype(
    [(name, "u4") for name in ("most", "twice", "asked", "rare", "judged", "pays")], align=True
)
_APART = ("distance", "items", "hops", "looked", "room")
APART_STATE = np.dtype([(name, "u8") for name in _APART], align=True)

_EMPTY = ("seen", "now", "next", "bits")
"""Arrays of searches together that are empty before the searches begin."""

FOUND, SELDOM_MEET, DEEPER = range(3)
_SOURCE = "programs/searches.cu"
_UNREACHED = 0xFFFFFFFF
_ANY_LEVEL = 0xFFFFFFFE


class Met(NamedTuple):
    """The result of searches together. outcome: FOUND; SELDOM_MEET; or DEEPER, if distances have
    more digits than there is room for. If the outcome is not FOUND, the rest says nothing.

    hops: of HOPS, by source. reached: uint64 (n,), a bit by source. bits: uint64 (digits, n), the
    bits of distances, as many as any distance has. Both are on the device, and belong to whoever
    asked; None where nobody wants them.
    """

    outcome: int
    hops: np.ndarray
    reached: Any
    bits: Any


class GpuSearches:
    """Searches of a graph from many vertices. most: sources in all. distances: whether distances
    are wanted. keeps: whether there is room on the device for those of all sources.

    Searches apart take the room that searches together have left, and room that is spare.
    """

    def __init__(self, graph: ProgramGraph, most: int, distances: bool = False) -> None:
        self._graph = graph
        self._most = most
        self._distances = distances
        self._arrays: dict[str, Any] | None = None
        self._gangs: dict[str, Any] | None = None
        self._edges = 0
        one = MOST_TAKEN_BYTES * graph.vertices
        self.keeps = distances and most * one <= graph.room // 2
        self._taken_bytes = (most * one if self.keeps else one) * distances
        with graph.device.use():
            self._rows = graph.cut.packed()

    @property
    def device(self) -> Device:
        return self._graph.device

    @property
    def edges(self) -> int:
        """Return the number of edges that were looked at."""
        return self._edges

    @property
    def batches_apart(self) -> int:
        """Return the number of batches of WIDTH sources that are worth giving to ``apart``
        at once.
        """
        return max(1, self._blocks_apart // WIDTH)

    @property
    def _blocks_apart(self) -> int:
        """Return the number of blocks that there is room, and work, for."""
        graph, n, entries = self._graph, self._graph.vertices, self._graph.cut.rows.edges
        room = device_bytes(n, entries, self._distances) + graph.room
        room -= self._taken_bytes
        blocks = min(self._most, blocks_of(graph.device, APART))
        return min(max(1, room // gang_bytes(n, entries)), blocks)

    def together(self, sources: np.ndarray, most: int | None = None) -> Met:
        """Search from ``sources`` at the same time. sources: global ids, each once, WIDTH of them
        at most. most: levels.
        """
        graph, count, n = self._graph, len(sources), self._graph.vertices
        with graph.device.use() as cupy:
            if self._arrays is None:
                declared = _together_arrays(n, graph.cut.rows.edges, self._distances)
                self._arrays = allocate(declared, cupy)
            arrays = self._arrays
            for name in _EMPTY:
                arrays[name].fill(0)
            control = cupy.zeros(CONTROL.itemsize, np.uint8)
            of = pack(
                TOGETHER,
                seen=arrays["seen"],
                words=[arrays[name].data.ptr for name in ("now", "next")],
                queue=[arrays[name].data.ptr for name in ("queue", "other_queue")],
                open=arrays["open"],
                any=arrays["any"],
                bits=arrays["bits"].data.ptr if self._distances else 0,
                control=control,
                digits=DIGITS,
            )
            ways = pack(
                WAYS,
                most=_levels(most),
                twice=graph.twice,
                asked=ASKED_FOR_TOLD,
                rare=RARE,
                judged=LEVELS_TO_JUDGE,
                pays=BITS_TO_PAY,
            )
            device_sources = cupy.asarray(sources.astype(np.uint32))
            self._kernel("search_together")(self._rows, of, device_sources, np.uint32(count), ways)
            now = control.get().view(CONTROL)[0]
            self._edges += int(now["looked"])
            reached = bits = None
            if self._distances and now["outcome"] == FOUND:
                digits = int(now["levels"]).bit_length()
                reached, bits = arrays["seen"], arrays["bits"].reshape(DIGITS, n)[:digits]
                self._arrays = None  # the next searches get others
            return Met(int(now["outcome"]), now["hops"][:count].copy(), reached, bits)

    def apart(
        self,
        sources: np.ndarray,
        most: int | None = None,
        take: Callable[[int, Any], None] | None = None,
        nowhere: int = _UNREACHED,
    ) -> np.ndarray | None:
        """Search from each of ``sources`` by itself. Returns an array of HOPS.

        take: a function that is given each source's place in ``sources`` and its distances: uint32
        (n,), on the device, the greatest number where unreached. It may hold MOST_TAKEN_BYTES there
        for each vertex, and those of all sources if ``keeps`` is set. nowhere: if a distance is as
        great as that, None is returned.
        """
        graph, done = self._graph, 0
        most = nowhere if most is None else min(most, nowhere)
        found: np.ndarray | None = np.zeros(len(sources), HOPS)
        with graph.device.use() as cupy:
            if self._gangs is None:
                self._arrays, count = None, self._blocks_apart
                declared = _gang_arrays(graph.vertices, graph.cut.rows.edges)
                self._gangs = allocate_gangs(graph.device, declared, count)
            gangs = self._gangs
            looked = cupy.zeros(1, np.uint64)
            items = gangs["items"]
            of = pack(APART_STATE, **gangs, looked=looked, room=items.shape[1])
            while done < len(sources):
                batch = sources[done : done + len(items)].astype(np.uint32)
                keep = np.uint32(take is not None)
                how = np.uint32(len(batch)), _levels(most), keep
                self._kernel("search_apart")(self._rows, of, cupy.asarray(batch), *how)
                hops = gangs["hops"].get().view(HOPS).ravel()[: len(batch)]
                found[done : done + len(batch)] = hops
                if int(hops["farthest"].max()) >= nowhere:
                    found = None
                    break
                if take is not None:
                    for i in range(len(batch)):
                        take(done + i, gangs["distance"][i])
                    gangs["distance"][: len(batch)] = _UNREACHED
                done += len(batch)
            self._edges += int(looked[0])
        return found

    def _kernel(self, function: str) -> Callable[..., None]:
        return _kernel(self._graph, function)


class Near(NamedTuple):
    """The result of a search from the nearest of several sources. distance: uint32 (n,), hops to
    the nearest source. nearest: uint32 (n,), that source's number, the least if there are several.
    Both are in host memory, and have the greatest number where unreached. levels: the greatest
    distance. edges: the number of edges that were looked at.
    """

    distance: np.ndarray
    nearest: np.ndarray
    levels: int
    edges: int


def nearest(graph: ProgramGraph, sources: np.ndarray, most: int | None = None) -> Near:
    """Search from all ``sources`` at the same time. sources: global ids, each once. most:
    levels.
    """
    with graph.device.use() as cupy:
        arrays = allocate(_nearest_arrays(graph.vertices, graph.cut.rows.edges), cupy)
        control = cupy.zeros(CONTROL.itemsize, np.uint8)
        of = pack(NEAREST, **arrays, control=control)
        device_sources = cupy.asarray(sources.astype(np.uint32))
        how = np.uint32(len(sources)), _levels(most), np.uint32(graph.twice)
        _kernel(graph, "search_nearest")(graph.cut.packed(), of, device_sources, *how)
        now = control.get().view(CONTROL)[0]
        levels, looked = int(now["levels"]), int(now["looked"])
        return Near(arrays["distance"].get(), arrays["nearest"].get(), levels, looked)


def _levels(most: int | None) -> np.uint32:
    return np.uint32(_ANY_LEVEL if most is None else min(most, _ANY_LEVEL))


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels that ``GpuSearches`` calls."""
    for function in ("search_together", "search_apart"):
        _kernel(graph, function)


def warm_up_nearest(graph: ProgramGraph) -> None:
    _kernel(graph, "search_nearest")


def _kernel(graph: ProgramGraph, function: str) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered
    launch = APART if function == "search_apart" else LAUNCH
    return kernel_of(graph.device, _SOURCE, function, kinds, launch)


def _together_arrays(vertices: int, entries: int, distances: bool) -> list[Array]:
    items = items_of(vertices, entries)
    words = [Array(name, np.uint64, vertices) for name in ("seen", "now", "next")]
    queues = [Array(name, np.uint64, items) for name in ("queue", "other_queue", "open")]
    found = Array("any", np.uint32, -(-vertices // 32))
    return [*words, *queues, found, Array("bits", np.uint64, DIGITS * vertices if distances else 0)]


def _gang_arrays(vertices: int, entries: int) -> list[Array]:
    """Return the arrays of a block."""
    return [
        Array("distance", np.uint32, vertices, fill=_UNREACHED),
        Array("items", np.uint64, items_of(vertices, entries)),
        Array("hops", np.uint8, HOPS.itemsize),
    ]


def _nearest_arrays(vertices: int, entries: int) -> list[Array]:
    return [
        Array("distance", np.uint32, vertices, fill=_UNREACHED),
        Array("nearest", np.uint32, vertices, fill=_UNREACHED),
        Array("items", np.uint64, items_of(vertices, entries)),
    ]


def nearest_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that ``nearest`` holds beside the graph."""
    return pool_bytes(_nearest_arrays(vertices, entries)) + 4 * vertices  # sources


def gang_bytes(vertices: int, entries: int) -> int:
    return pool_bytes(_gang_arrays(vertices, entries))


def device_bytes(vertices: int, entries: int, distances: bool) -> int:
    """Return the bytes that searches together hold beside the graph; these are more than one search
    apart holds.
    """
    return pool_bytes(_together_arrays(vertices, entries, distances))
