"""Breadth-first search on one GPU: launches what wide_search.cu and narrow_search.cu in
cuda/bfs do.

A search is one launch as a rule. It takes another one where it changes from many vertices a level
to few (or back), where distances outgrow a byte, or where its records fill their buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..base import arrays
from ..base.arrays import allocate, total_bytes
from ..base.graph import UNREACHED
from .device import MOST_BLOCKS, Device, pack
from .graph import (
    LOOKS,
    MOST_PADDED,
    MOST_SHORT,
    NEXT,
    TARGETS,
    WARP_ENTRIES,
    Array,
    DeviceGraph,
)

GRAPH = np.dtype(
    [
        ("offsets", "u8"),
        ("reverse_offsets", "u8"),
        ("targets", TARGETS),
        ("reverse_targets", TARGETS),
        ("first", "u8"),
        ("next", "u8"),
        ("edges", "u8"),
        ("vertices", "u4"),
        ("looks", "f4", LOOKS),
    ],
    align=True,
)
QUEUE = np.dtype([("vertex", "u8"), ("row", "u8"), ("before", "u8")], align=True)
COUNTERS = np.dtype(
    [(name, "u8") for name in ("queued", "found", "examined", "wasted", "rest")], align=True
)
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("counters", COUNTERS, 3),
        *((name, "u8") for name in ("forward", "unvisited_edges", "pull_bound")),
        *((name, "u4") for name in ("status", "level", "frontier", "found", "visited")),
        *((name, "u4") for name in ("queued", "turn", "partial")),
    ],
    align=True,
)
LEVEL = np.dtype(
    [("examined", "u8"), ("clocks", "u8"), ("found", "u4"), ("pulled", "u4")], align=True
)
SEARCH = np.dtype(
    [
        *((name, "u8") for name in ("distance", "parent")),
        ("visited", "u8", 2),
        ("queue", QUEUE, 2),
        *((name, "u8") for name in ("rest", "control", "levels")),
        *((name, "u4") for name in ("source", "resume", "first_level", "level_capacity")),
        *((name, "u4") for name in ("max_level", "enqueue_edges")),
        *((name, "u4") for name in ("narrow_levels", "narrow_frontier")),
        ("push_cost", "f4"),
    ],
    align=True,
)
PADDED = np.dtype([("padded", "u8"), ("spill", "u8")], align=True)

DONE, WIDE, NARROW, WIDEN, MORE = range(1, 6)  # enum Status

PUSH_COST = 2.4
"""What following an edge in a push costs, where looking at an entry in a pull costs 1."""

WIDE_LAUNCH = (1024, 1)  # threads of a block, blocks of a multiprocessor
_SCRATCH = 1920  # bytes of shared memory of a warp (cuda/bfs/pull.cuh)
_STRIP = 128  # vertices (there)
LEVELS = 1 << 16  # records in their buffer
_FEW_LEVELS = 64  # that are read with the state, in one copy
MOST_QUEUED = 1 << 23
_NARROW_THREADS = 256
_BLOCK_FRONTIER = 2048  # cuda/bfs/narrow_search.cu, and the next two
_LIGHT = 32
_COHORT = 40 << 10  # bytes of shared memory of a block of it, beside the bitmap
_SLICE = 1 << 20  # vertices whose degrees are added up at once
_SLACK = 64 << 20  # small arrays, what the pool rounds up, passes over offsets
_NARROW_LEVELS = 4  # small ones, after which the narrow search takes over
_NARROW_FRONTIER = 512  # of a small level, for each block of the cluster


class WideKernel(NamedTuple):
    """A kernel that all of a device's threads run together: a file of cuda/, and its name there."""

    source: str
    name: str

    def on(self, device: Device, offset: str, tiered: bool, deep: bool = False) -> Any:
        """Its instance for a graph with offsets of this type in C++; compiles it, once.

        deep: for distances of more than a byte.
        """
        kinds = f"{offset}, {'int' if deep else 'u8'}, {str(tiered).lower()}"
        name = f"{self.name}<{kinds}, {WIDE_LAUNCH[0]}, {WIDE_LAUNCH[1]}>"
        with device.use():
            return device.kernel(self.source, name, shared_bytes(), cooperative=True)


WIDE_SEARCH = WideKernel("bfs/wide_search.cu", "wide_search")


class Level(NamedTuple):
    """What a level did. found: vertices; examined: entries looked at."""

    direction: str
    found: int
    examined: int
    seconds: float


def bytes_needed(vertices: int, edges: int, directed: bool) -> int:
    """Bytes on the device that a graph and its searches hold at most, but for the targets.

    edges: entries of the forward rows.

    >>> bytes_needed(1 << 20, 1 << 25, False) < 1 << 28
    True
    """
    offset = 4 if edges < MOST_SHORT else 8
    rows = (vertices + 1) * offset * (2 if directed else 1)
    padded = 4 * 8 * vertices if edges <= MOST_PADDED * vertices else 0
    derived = 4 * (1 + NEXT) * vertices + padded
    most = state(vertices, vertices, f"u{offset}", edges // WARP_ENTRIES, MOST_BLOCKS)
    return rows + derived + total_bytes([*most, wide_distance(vertices)]) + _SLACK


def state(
    vertices: int, used: int, offsets: DTypeLike, long_rows: int, blocks: int
) -> list[arrays.Array]:
    """What searches write to, but for ``wide_distance``.

    used, long_rows: see DeviceGraph. offsets: type of the graph's. blocks: of the narrow search.
    """
    spill = blocks * _BLOCK_FRONTIER * _LIGHT
    queued = min(used, _enqueue_edges(used) + spill) + 1
    words = -(-used // _STRIP) * (_STRIP // 32)
    queues = [(f"vertex_{i}", f"row_{i}", f"before_{i}") for i in range(2)]
    kinds = (np.uint32, offsets, offsets)
    return [
        arrays.Array("distance", np.uint8, vertices, fill=255),
        arrays.Array("parent", np.uint32, vertices, fill=UNREACHED),
        *(arrays.Array(f"visited_{i}", np.uint32, words) for i in range(2)),
        *(
            arrays.Array(name, kind, queued)
            for names in queues
            for name, kind in zip(names, kinds, strict=True)
        ),
        arrays.Array("rest", np.uint32, long_rows + 1),
        arrays.Array("control", np.uint8, CONTROL.itemsize + LEVELS * LEVEL.itemsize, fill=0),
        arrays.Array("spill", np.uint64, 2 * spill),
    ]


def wide_distance(vertices: int) -> arrays.Array:
    """Of more than a byte: made when it is needed."""
    return arrays.Array("distance", np.int32, vertices, fill=-1)


def _enqueue_edges(used: int) -> int:
    """Edges of a push that makes a queue of what it finds, at most."""
    return min(max(1 << 16, used // 4), MOST_QUEUED)


def widened(distance: Array) -> Array:
    """Distances as int32, -1 where unreached; uint8 has 255 there. On the device or not."""
    if distance.dtype != np.uint8:
        return distance
    wide = distance.astype(np.int32)
    wide[distance == 255] = -1
    return wide


def pack_graph(graph: DeviceGraph) -> np.ndarray:
    """The structure ``Graph`` of cuda/bfs/search.cuh."""
    return pack(
        GRAPH,
        offsets=graph.forward.offsets,
        reverse_offsets=graph.reverse.offsets,
        targets=graph.forward.targets()[0],
        reverse_targets=graph.reverse.targets()[0],
        first=graph.first,
        next=graph.next,
        edges=graph.edges,
        vertices=graph.used,
        looks=graph.looks,
    )


@dataclass
class GpuSearch:
    """Searches of one graph, one at a time, in arrays that are made once.

    distance: uint8 (n,) with 255, or int32 (n,) with -1, where unreached. parent: uint32 (n,),
    UNREACHED for the source and where unreached. Both are those of the last search.
    """

    device: Device
    graph: DeviceGraph
    push_cost: float = PUSH_COST
    narrow: bool = True

    def __post_init__(self) -> None:
        graph = self.graph
        self._records: list[np.ndarray] = []
        self._lonely_source: int | None = None
        with self.device.use() as cupy:
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
            self._blocks = self.device.cluster_blocks
            kind, long_rows = graph.forward.offsets.dtype, graph.long_rows
            declared = state(graph.vertices, graph.used, kind, long_rows, self._blocks)
            self._made = made = allocate(declared, cupy)
        self.parent: Array = made["parent"]
        self.distance: Array = made["distance"]
        self._bytes, self._control = made["distance"], made["control"]
        self._words: Array | None = None  # distances of more than a byte
        self._graph = pack_graph(graph)
        self._search = pack(
            SEARCH,
            parent=self.parent,
            visited=[made[f"visited_{i}"].data.ptr for i in range(2)],
            queue=[
                tuple(made[f"{part}_{i}"].data.ptr for part in ("vertex", "row", "before"))
                for i in range(2)
            ],
            rest=made["rest"],
            control=self._control,
            levels=self._control.data.ptr + CONTROL.itemsize,
            level_capacity=LEVELS,
            enqueue_edges=_enqueue_edges(graph.used),
            narrow_levels=_NARROW_LEVELS if self.narrow else 0,
            narrow_frontier=_NARROW_FRONTIER * self._blocks,
            push_cost=self.push_cost,
        )
        self._padded = pack(PADDED, padded=graph.padded, spill=made["spill"])

    def warm_up(self) -> None:
        """Compile, or load from the cache, the kernels of a search."""
        with self.device.use():
            self._wide()
            if self.narrow:
                self._narrow()

    def run(self, source: int, max_level: int | None = None) -> None:
        """Search from ``source``.

        max_level: levels to search at most; None for all. What each level did: ``levels``.
        """
        self._records = []
        self.distance = self._bytes
        with self.device.use():
            if self._lonely_source is not None:  # searches do not come there
                self.distance[self._lonely_source] = 255
                self._lonely_source = None
            if source < self.graph.used:
                self._run(source, max_level)
            else:
                self._be_lonely(source)

    def _run(self, source: int, max_level: int | None) -> None:
        # Where degrees are low all over, levels are small: the narrow search begins.
        kernel = NARROW if self.narrow and self.graph.padded is not None else WIDE
        search = self._search[0]
        search["source"] = source
        search["resume"] = search["first_level"] = 0
        search["max_level"] = 0x7FFFFFFF if max_level is None else min(max_level, 0x7FFFFFFF)
        search["distance"] = self.distance.data.ptr
        if kernel == NARROW:
            self._take_words()
        launch = self._launch_of(kernel)  # what the host does for it is not timed
        self._begun.record()
        while True:
            launch()
            self._ended.record()
            status, level = self._outcome()
            if status == DONE:
                return
            search["resume"], search["first_level"] = 1, level
            if status in (WIDE, NARROW):
                kernel = status
            if status in (NARROW, WIDEN) and self.distance is self._bytes:
                used = self.graph.used
                self._take_words()[:used] = self._bytes[:used]
            launch = self._launch_of(kernel)

    def _be_lonely(self, source: int) -> None:
        """Search from a vertex without edges."""
        self._begun.record()
        self.distance.fill(255)
        self.distance[source] = 0
        self.parent.fill(UNREACHED)
        self._ended.record()
        self._ended.synchronize()
        self._lonely_source = source

    def seconds(self) -> float:
        """Time on the device from the first launch of the last search to the end of its last."""
        return self.device.cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3

    def depth(self) -> int:
        """Greatest distance that the last search found."""
        return sum(int(np.count_nonzero(records["found"])) for records in self._records)

    def levels(self) -> list[Level]:
        """What each level of the last search did.

        Their seconds are the whole search's, by events, shared by the clock of a multiprocessor.
        """
        if not self._records:
            return []
        records = np.concatenate(self._records)
        examined = records["examined"].astype(np.int64)
        pushed = records["pulled"] == 0
        if (examined[pushed] == 0).any():  # the narrow search does not count
            examined[pushed] = self._edges_from_levels(len(records))[pushed]
        seconds = records["clocks"] * (self.seconds() / max(1, records["clocks"].sum()))
        return [
            Level("pull" if pulled else "push", *of_level)
            for pulled, *of_level in zip(
                records["pulled"].tolist(),
                records["found"].tolist(),
                examined.tolist(),
                seconds.tolist(),
                strict=True,
            )
        ]

    def _edges_from_levels(self, levels: int) -> np.ndarray:
        """Edges that leave the vertices of each level: what a push looks at."""
        sums = np.zeros(levels, np.int64)
        with self.device.use() as cupy:
            for first in range(0, self.graph.used, _SLICE):
                stop = min(first + _SLICE, self.graph.used)
                offsets = self.graph.forward.offsets[first : stop + 1]
                distance = self.distance[first:stop]
                reached = distance < 255 if distance.dtype == np.uint8 else distance >= 0
                degrees = (offsets[1:] - offsets[:-1])[reached].astype(np.float64)
                counted = cupy.bincount(distance[reached], weights=degrees, minlength=levels)
                sums += counted[:levels].get().astype(np.int64)
        return sums

    def _launch_of(self, kernel: int) -> Callable[[], None]:
        if kernel == WIDE:
            blocks = self.device.multiprocessors * WIDE_LAUNCH[1]
            arguments = (self._graph, self._search)
            wide, shared = self._wide(), shared_bytes()
            return partial(wide, (blocks,), (WIDE_LAUNCH[0],), arguments, shared_mem=shared)
        arguments = (self._graph, self._search, self._padded)
        narrow, shared = self._narrow()
        return partial(narrow, (self._blocks,), (_NARROW_THREADS,), arguments, shared_mem=shared)

    def _wide(self) -> Any:
        forward, tiered = self.graph.forward, self.graph.tiered
        return WIDE_SEARCH.on(
            self.device, forward.offset_type, tiered, self.distance is not self._bytes
        )

    def _narrow(self) -> tuple[Any, int]:
        """The kernel, and the dynamic shared memory that it takes."""
        width = 0 if self.graph.padded is None else self.graph.padded.shape[1]
        bitmap = 4 * -(-len(self._made["visited_0"]) // self._blocks)
        local = bitmap + _COHORT <= self.device.shared_bytes
        kind = self.graph.forward.offset_type
        kinds = f"{kind}, {width}, {self._blocks}, {str(local).lower()}, {_NARROW_THREADS}"
        shared = bitmap if local else 0
        name = f"narrow_search<{kinds}>"
        return self.device.kernel(
            "bfs/narrow_search.cu", name, shared, cluster=self._blocks
        ), shared

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Distance (int32, -1 where unreached) and parent of the last search, in host memory."""
        with self.device.use():
            return widened(self.distance.get()), self.parent.get()  # crosses the bus as it is

    def _outcome(self) -> tuple[int, int]:
        """Status and level of a launch that has ended; keeps its records."""
        few = self._control[: CONTROL.itemsize + _FEW_LEVELS * LEVEL.itemsize].get()
        control = few[: CONTROL.itemsize].view(CONTROL)[0]
        level = int(control["level"])
        count = level - int(self._search["first_level"][0])
        records = few[CONTROL.itemsize :].view(LEVEL)
        if count > _FEW_LEVELS:
            end = CONTROL.itemsize + count * LEVEL.itemsize
            records = self._control[CONTROL.itemsize : end].get().view(LEVEL)
        self._records.append(records[:count])
        return int(control["status"]), level

    def _take_words(self) -> Array:
        """From here on, distances of more than a byte."""
        if self._words is None:
            declared = wide_distance(self.graph.vertices)
            self._words = allocate([declared], self.device.cupy)["distance"]
        self.distance = self._words
        self._search["distance"] = self.distance.data.ptr
        return self._words


def shared_bytes() -> int:
    return WIDE_LAUNCH[0] // 32 * _SCRATCH
