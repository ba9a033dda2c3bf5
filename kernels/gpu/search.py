"""Breadth-first search on one GPU: launches of the kernels wide_search.cu and narrow_search.cu in
cuda/bfs.

A search is one launch as a rule. It takes another launch where it changes from many vertices a
level to few (or back), where distances outgrow a byte, or where its records fill their buffer. A
search over slices (slices.py) that has too many levels for slices begins anew over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..base import arrays
from ..base.arrays import allocate, total_bytes
from ..base.graph import UNREACHED
from . import by_row
from .device import MOST_BLOCKS, Device, pack, unsigned_name, without_fields
from .graph import (
    LOOKS,
    MOST_PADDED,
    MOST_REST,
    NEXT,
    SHORT_ROW,
    TARGETS,
    Array,
    DeviceGraph,
    Rows,
    derive,
    offsets_dtype,
)
from .levels import LEVEL, Level, LevelRecords, compile_counting, counting_of
from .slices import LAST_LEVEL, SLICE_SEARCH, Slices, SliceSearch, compile_slice_search, cut

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
    [(name, "u8") for name in ("queued", "found", "examined", "wasted", "rest", "full")], align=True
)
CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        ("counters", COUNTERS, 3),
        *((name, "u8") for name in ("forward", "unvisited_edges", "pull_bound")),
        *((name, "u4") for name in ("status", "level", "frontier", "found", "visited")),
        *((name, "u4") for name in ("queued", "turn", "partial", "small_levels")),
        ("more", "f4"),
    ],
    align=True,
)
SEARCH = np.dtype(
    [
        *((name, "u8") for name in ("distance", "parent")),
        ("visited", "u8", 2),
        ("queue", QUEUE, 2),
        ("rest", QUEUE),
        *((name, "u8") for name in ("control", "levels")),
        *((name, "u4") for name in ("source", "resume", "first_level", "level_capacity")),
        *((name, "u4") for name in ("max_level", "enqueue_edges")),
        *((name, "u4") for name in ("narrow_levels", "narrow_frontier")),
        *((name, "u4") for name in ("rest_capacity", "resident")),
        *((name, "f4") for name in ("wait", "push_cost")),
    ],
    align=True,
)
PADDED = np.dtype([("padded", "u8"), ("spill", "u8")], align=True)

DONE, WIDE, NARROW, WIDEN, MORE = range(1, 6)  # enum Status

PUSH_COST = 2.4
"""Cost of following an edge in a push, where looking at an entry in a pull costs 1."""

HOT_PUSH_COST = 1.2
"""Cost of following an edge in a push whose writes stay in the second-level cache."""

WIDE_LAUNCH = (512, 1)  # threads of a block, blocks of a multiprocessor
_SCRATCH = 1920  # bytes of shared memory of a warp (cuda/bfs/pull.cuh)
_STRIP = 128  # vertices (there)
LEVELS = 1 << 16  # records in their buffer
_FEW_LEVELS = 64  # that are read with the state, in one copy
MOST_QUEUED = 1 << 23
ROOM_FOR_ALL = 1 << 22  # vertices, up to which a queue takes all that a level finds
NO_LIMIT = 0xFFFFFFFF
_HOT_BYTES = 6  # of a vertex, that pushes write to: distance, parent, bits
_WAIT = 12288  # entries that each multiprocessor could look at while a pull waits for its loads
NARROW_THREADS = 256
_BLOCK_FRONTIER = 2048  # cuda/bfs/narrow_search.cu, and the next two
_LIGHT = 32
_SPILL = (_BLOCK_FRONTIER + 256) * _LIGHT
_COHORT = 33 << 10  # bytes of shared memory of a block of it, beside the bitmap
_SLACK = 64 << 20  # small arrays, what the pool rounds up, passes over offsets
_NARROW_LEVELS = 96  # small ones, after which the narrow search takes over
_REPEATS = 3  # of a search that is timed alone
_NARROW_FRONTIER = 512  # of a small level, for each block of the cluster


class WideKernel(NamedTuple):
    """A kernel that all of a device's threads run together: a file of cuda/, and its name there."""

    source: str
    name: str

    def compiled_for(self, device: Device, offset: str, tiered: bool, deep: bool = False) -> Any:
        """Return the kernel's instance for a graph with offsets of this type in C++. Compiles it,
        once.

        deep: for distances of more than a byte.
        """
        kinds = f"{offset}, {'int' if deep else 'u8'}, {str(tiered).lower()}"
        name = f"{self.name}<{kinds}, {WIDE_LAUNCH[0]}, {WIDE_LAUNCH[1]}>"
        with device.use():
            return device.kernel(self.source, name, shared_bytes(), cooperative=True)


WIDE_SEARCH = WideKernel("bfs/wide_search.cu", "wide_search")


def bytes_needed(vertices: int, edges: int, directed: bool) -> int:
    """Return the bytes on the device that a graph and its searches hold at most, but for the
    targets.

    edges: entries of the forward rows.

    >>> bytes_needed(1 << 20, 1 << 25, False) < 1 << 28
    True
    """
    offset = offsets_dtype(edges)
    rows = (vertices + 1) * offset.itemsize * (2 if directed else 1)
    padded = 4 * 8 * vertices if edges <= MOST_PADDED * vertices else 0
    derived = 4 * (1 + NEXT) * vertices + padded
    # (Queues that take all vertices are longer than some of a graph with more.)
    most = max(
        total_bytes(state(vertices, used, offset, edges // SHORT_ROW, MOST_BLOCKS))
        for used in (vertices, min(vertices, ROOM_FOR_ALL))
    )
    return rows + derived + most + total_bytes([wide_distance(vertices)]) + _SLACK


def state(
    vertices: int, used: int, offsets: DTypeLike, long_rows: int, blocks: int
) -> list[arrays.Array]:
    """Return the arrays that searches write to, but for ``wide_distance``.

    used, long_rows: see DeviceGraph. offsets: type of the graph's. blocks: of the narrow search.
    """
    spill = blocks * _SPILL
    queued = min(used, _enqueue_edges(used) + spill) + 1
    words = -(-used // _STRIP) * (_STRIP // 32)
    return [
        *tree(vertices),
        *(arrays.Array(f"visited_{i}", np.uint32, words) for i in range(2)),
        *queue_arrays("queue_0", offsets, queued),
        *queue_arrays("queue_1", offsets, queued),
        *queue_arrays("rest", offsets, rest_capacity(long_rows)),
        arrays.Array("control", np.uint8, CONTROL.itemsize + LEVELS * LEVEL.itemsize, fill=0),
        arrays.Array("spill", np.uint64, 2 * spill),
    ]


def tree(vertices: int) -> list[arrays.Array]:
    """Return the arrays of a search's result, but for ``wide_distance``."""
    return [
        arrays.Array("distance", np.uint8, vertices, fill=255),
        arrays.Array("parent", np.uint32, vertices, fill=UNREACHED),
    ]


def queue_arrays(name: str, offsets: DTypeLike, length: int) -> list[arrays.Array]:
    """Return the arrays that a structure ``Queue`` of cuda/bfs/search.cuh names."""
    kinds = {"vertex": np.uint32, "row": offsets, "before": offsets}
    return [arrays.Array(f"{name}_{part}", kind, length) for part, kind in kinds.items()]


def queue_of(made: dict[str, Array], name: str) -> tuple[int, ...]:
    """Return the structure ``Queue`` over the arrays that ``queue_arrays`` names."""
    return tuple(made[f"{name}_{part}"].data.ptr for part in QUEUE.fields or ())


def rest_capacity(long_rows: int) -> int:
    """Return the number of rows that a pull may leave to all warps. long_rows: see DeviceGraph."""
    return max(1, min(long_rows, MOST_REST))


def wide_distance(vertices: int) -> arrays.Array:
    """Return the array of distances of more than a byte, which is made when it is needed."""
    return arrays.Array("distance", np.int32, vertices, fill=-1)


def _filled_from(declared: arrays.Array, first: int, cupy: Any) -> Array:
    """Make an array of a search's result, and fill it from a place on: a search writes what stands
    before.
    """
    made = cupy.empty(declared.length, declared.dtype)
    if first < declared.length:
        made[first:] = declared.fill
    return made


def is_resident(device: Device, graph: DeviceGraph) -> bool:
    """Return whether the arrays that a search writes to stay in the second-level cache."""
    return graph.used <= min(ROOM_FOR_ALL, device.cache_bytes // 2 // _HOT_BYTES)


def _enqueue_edges(used: int) -> int:
    """Return the most edges of a push that makes a queue of the vertices that it finds."""
    return min(max(1 << 16, used // 4), MOST_QUEUED) if used > ROOM_FOR_ALL else NO_LIMIT


def widened(distance: Array) -> Array:
    """Return distances as int32, -1 where unreached; uint8 has 255 there. On the device or not; of
    one vertex, too.
    """
    if distance.dtype != np.uint8:
        return distance
    wide = distance.astype(np.int32)
    wide += 1
    wide &= 255
    wide -= 1
    return wide


def widen(distance: Array, to: Array) -> None:
    """Write distances as int32 to another array on the device. This sets the distances of vertices
    that will be reached; others may have any value.
    """
    to[...] = distance


def pack_graph(graph: DeviceGraph) -> np.ndarray:
    """Return the structure ``Graph`` of cuda/bfs/search.cuh."""
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


def compile_beforehand(device: Device, offsets: np.dtype, tiered: bool, slices: bool) -> None:
    """Compile what searches call, as far as it is known before their graph is loaded, or load it
    from the cache: several kernels at a time.

    offsets: type of the graph's offsets. slices: whether slices will be cut.
    """
    device.together(
        [
            *_tasks(device, unsigned_name(offsets), tiered, (False, True), slices),
            partial(_rehearse_graph, device, offsets, slices),
        ]
    )


def functions_of_searches(blocks: int) -> Iterator[tuple[str, str]]:
    """Yield the sources and the functions that searches call if all targets are on the device:
    those that come with the package. blocks: of a cluster.
    """
    wide = ", ".join(map(str, WIDE_LAUNCH))
    for offset in ("u32", "u64"):
        for distance in ("u8", "int"):
            yield WIDE_SEARCH.source, f"{WIDE_SEARCH.name}<{offset}, {distance}, false, {wide}>"
            yield "bfs/levels.cu", counting_of(offset, distance == "int")
        for width, local in product((0, 4, 8), ("true", "false")):
            kinds = f"{offset}, {width}, {blocks}, {local}, {NARROW_THREADS}"
            yield "bfs/narrow_search.cu", f"narrow_search<{kinds}>"
        for name in ("first_entries", "long_rows"):
            yield "bfs/derive.cu", f"{name}<{offset}>"
        for width in (4, 8):
            yield "bfs/derive.cu", f"padded_rows<{offset}, {width}>"
        for name in ("min_hashes", "slice_keys"):
            yield "bfs/slices.cu", f"{name}<{offset}>"
    for name in ("mark_slices", "write_slices"):
        yield "bfs/slices.cu", name
    yield SLICE_SEARCH
    for name in by_row.FUNCTIONS:
        yield "bfs/by_row.cu", name


def _tasks(
    device: Device, offset: str, tiered: bool, depths: Iterable[bool], slices: bool
) -> list[Callable[[], object]]:
    """Return tasks that compile what any search, and reading its outcome, may come to.

    offset: type of the graph's offsets in C++. depths: False for wide searches with distances of a
    byte, True for those with more. slices: whether searches go over slices.
    """
    tasks: list[Callable[[], object]] = [
        *(partial(WIDE_SEARCH.compiled_for, device, offset, tiered, deep) for deep in depths),
        partial(compile_counting, device, offset),
        partial(by_row.compile_by_row, device),
        partial(_rehearse_arrays, device),
    ]
    if slices:
        tasks.append(partial(compile_slice_search, device))
    return tasks


def _rehearse_arrays(device: Device) -> None:
    """Fill and convert arrays as searches do, for the kernels that CuPy compiles by type."""
    with device.use() as cupy:
        made = allocate(tree(1), cupy)
        made["distance"][0] = 0
        widen(made["distance"], allocate([wide_distance(1)], cupy)["distance"])


def _rehearse_graph(device: Device, offsets: np.dtype, slices: bool) -> None:
    """Derive the forms of a graph of two vertices, for the kernels that this compiles."""
    rows = Rows.with_room(device, np.arange(3, dtype=offsets), 2)
    rows.put(device, 0, np.array([1, 0], np.uint32))
    graph = derive(device, rows)
    if slices:
        cut(device, graph)


@dataclass
class GpuSearch:
    """A graph's searches, one at a time, in arrays that are made once.

    distance: uint8 (n,) with 255, or int32 (n,) with -1, where unreached. parent: uint32 (n,),
    UNREACHED for the source and where unreached. Both are those of the last search. push_cost: see
    PUSH_COST; None for what the graph's size asks for.
    """

    device: Device
    graph: DeviceGraph
    push_cost: float | None = None
    narrow: bool = True

    def __post_init__(self) -> None:
        graph = self.graph
        self._launches: dict[tuple[int, bool], Callable[[], None]] = {}
        self._only_launch: Callable[[], None] | None = None  # of the last search, if it took one
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
        few = CONTROL.itemsize + _FEW_LEVELS * LEVEL.itemsize
        self._few, self._told = self._control[:few], self.device.pinned(few, np.uint8)
        self._words: Array | None = None  # distances of more than a byte
        resident = is_resident(self.device, graph)
        push_cost = self.push_cost
        if push_cost is None:
            push_cost = HOT_PUSH_COST if resident else PUSH_COST
        self._graph = pack_graph(graph)
        self._search = pack(
            SEARCH,
            parent=self.parent,
            visited=[made[f"visited_{i}"].data.ptr for i in range(2)],
            queue=[queue_of(made, f"queue_{i}") for i in range(2)],
            rest=queue_of(made, "rest"),
            rest_capacity=rest_capacity(long_rows),
            control=self._control,
            levels=self._control.data.ptr + CONTROL.itemsize,
            level_capacity=LEVELS,
            enqueue_edges=_enqueue_edges(graph.used),
            narrow_levels=_NARROW_LEVELS if self.narrow else 0,
            narrow_frontier=_NARROW_FRONTIER * self._blocks,
            resident=resident,
            wait=_WAIT * self.device.multiprocessors,
            push_cost=push_cost,
        )
        self._padded = pack(PADDED, padded=graph.padded, spill=made["spill"])
        self._over_slices: SliceSearch | None = None

    def search_over(self, slices: Slices | None, swept: bool = True) -> None:
        """Search over slices of the graph from now on; None: over its rows. swept: as for
        SliceSearch.
        """
        self._over_slices = None
        if slices is not None:
            self._over_slices = SliceSearch(self.device, slices, swept, self._bytes, self.parent)

    @property
    def over_slices(self) -> bool:
        return self._over_slices is not None

    def warm_up(self) -> None:
        """Compile, or load from the cache, all kernels that a search, or reading its outcome, may
        need, several at a time.
        """
        graph = self.graph
        depths = (True,) if self._narrow_first else (False, True)
        offset = graph.forward.offset_type
        tasks = _tasks(self.device, offset, graph.tiered, depths, self.over_slices)
        if self.narrow:
            tasks.append(self._narrow)
        self.device.together(tasks)

    def renew(self) -> None:
        """Leave the result of the last search to whoever holds its arrays: the next search writes
        to others. Raises DeviceMemoryError where there is no room for them; nothing is lost then.
        """
        distance, parent = tree(self.graph.vertices)
        deep = self.distance is not self._bytes
        with self.device.use() as cupy:
            wanted = wide_distance(self.graph.vertices) if deep else distance
            self.distance, self.parent = (
                _filled_from(declared, self.graph.used, cupy) for declared in (wanted, parent)
            )
        if deep:
            self._words = self.distance
        else:
            self._bytes = self.distance
        self._search["parent"] = self.parent.data.ptr
        self._lonely_source = None
        if self._over_slices is not None:
            self._over_slices.write_to(self._bytes, self.parent)

    def run(self, source: int, max_level: int | None = None) -> None:
        """Search from ``source``.

        max_level: levels to search at most; None for all. ``records`` tells afterwards what each
        level did.
        """
        self.distance = self._bytes
        self._only_launch = None
        with self.device.use():
            if self._lonely_source is not None:  # searches do not come there
                self.distance[self._lonely_source] = 255
                self._lonely_source = None
            if source >= self.graph.used:
                self._be_lonely(source)
            elif self._over_slices is None or not self._run_over_slices(source, max_level):
                self._run(source, max_level)

    def _run_over_slices(self, source: int, max_level: int | None) -> bool:
        """Search over slices, and return whether the levels were few enough. If they were not, the
        next searches do without slices.
        """
        search = self._over_slices
        assert search is not None
        launch = search.launch_of(source, max_level)  # what the host does for it is not timed
        self._begun.record()
        launch()
        self._ended.record()
        clocks, more = search.outcome()
        if more and (max_level is None or max_level > LAST_LEVEL):
            self._over_slices = None
            return False
        records = np.zeros(len(clocks), LEVEL)
        records["clocks"] = clocks
        self.records = LevelRecords(records, lacks_found=True)
        self._only_launch = launch
        return True

    def _run(self, source: int, max_level: int | None) -> None:
        kernel = NARROW if self._narrow_first else WIDE
        search = self._search[0]
        search["source"] = source
        search["resume"] = search["first_level"] = 0
        search["max_level"] = 0x7FFFFFFF if max_level is None else min(max_level, 0x7FFFFFFF)
        search["distance"] = self.distance.data.ptr
        if kernel == NARROW:
            self._take_words()
        records: list[np.ndarray] = []
        launch = first_launch = self._launch_of(kernel)  # what the host does for it is not timed
        self._begun.record()
        while True:
            launch()
            self._ended.record()
            status, level = self._outcome(records)
            if status == DONE:
                all_records = records[0] if len(records) == 1 else np.concatenate(records)
                self.records = LevelRecords(all_records)
                self._only_launch = first_launch if len(records) == 1 else None
                return
            search["resume"], search["first_level"] = 1, level
            if status in (WIDE, NARROW):
                kernel = status
            if status in (NARROW, WIDEN) and self.distance is self._bytes:
                used = self.graph.used
                widen(self._bytes[:used], self._take_words()[:used])
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
        self.records = LevelRecords(np.zeros(0, LEVEL))

    def seconds(self) -> float:
        """Return the time on the device from the first launch of the last search to the end of its
        last launch.
        """
        return self.device.cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3

    def seconds_alone(self, source: int) -> float:
        """Search, and return the seconds on the device without the host's work between an event
        and a launch: several launches are queued. A search that takes several launches, between
        which the host decides, is timed as it is.
        """
        self.run(source)
        launch = self._only_launch
        if launch is None:
            return self.seconds()
        with self.device.use():
            launch()  # keeps the device busy until the timed ones are queued
            self._begun.record()
            for _ in range(_REPEATS):
                launch()
            self._ended.record()
            self._ended.synchronize()
        return self.seconds() / _REPEATS

    def levels(self) -> list[Level]:
        """Return the work of each level of the last search."""
        graph = self.graph
        self.records.count(self.device, graph.forward.offsets, graph.used, self.distance)
        return self.records.levels(self.seconds())

    def depth(self) -> int:
        """Return the greatest distance that the last search found."""
        return sum(level.found > 0 for level in self.levels())

    def _launch_of(self, kernel: int) -> Callable[[], None]:
        key = kernel, self.distance is not self._bytes
        if key not in self._launches:
            self._launches[key] = self._make_launch(*key)
        return self._launches[key]

    def _make_launch(self, kernel: int, deep: bool) -> Callable[[], None]:
        if kernel == WIDE:
            blocks = self.device.multiprocessors * WIDE_LAUNCH[1]
            arguments = tuple(map(without_fields, (self._graph, self._search)))
            wide, shared = self._wide(deep), shared_bytes()
            return partial(wide, (blocks,), (WIDE_LAUNCH[0],), arguments, shared_mem=shared)
        arguments = tuple(map(without_fields, (self._graph, self._search, self._padded)))
        narrow, shared = self._narrow()
        return partial(narrow, (self._blocks,), (NARROW_THREADS,), arguments, shared_mem=shared)

    @property
    def _narrow_first(self) -> bool:
        """Return whether a search begins with the narrow kernel: if degrees are low all over,
        levels are small.
        """
        return self.narrow and self.graph.padded is not None

    def _wide(self, deep: bool) -> Any:
        forward, tiered = self.graph.forward, self.graph.tiered
        return WIDE_SEARCH.compiled_for(self.device, forward.offset_type, tiered, deep)

    def _narrow(self) -> tuple[Any, int]:
        """Return the narrow kernel, and the dynamic shared memory that it takes."""
        width = 0 if self.graph.padded is None else self.graph.padded.shape[1]
        bitmap = 4 * -(-len(self._made["visited_0"]) // self._blocks)
        local = bitmap + _COHORT <= self.device.shared_bytes
        kind = self.graph.forward.offset_type
        kinds = f"{kind}, {width}, {self._blocks}, {str(local).lower()}, {NARROW_THREADS}"
        shared = bitmap if local else 0
        name = f"narrow_search<{kinds}>"
        return self.device.kernel(
            "bfs/narrow_search.cu", name, shared, cluster=self._blocks
        ), shared

    def _outcome(self, all_records: list[np.ndarray]) -> tuple[int, int]:
        """Wait for a launch to end. Returns its status and level; appends its records."""
        few = self._few.get(out=self._told)
        control = few[: CONTROL.itemsize].view(CONTROL)[0]
        level = int(control["level"])
        count = level - int(self._search["first_level"][0])
        records = few[CONTROL.itemsize :].view(LEVEL)
        if count > _FEW_LEVELS:
            end = CONTROL.itemsize + count * LEVEL.itemsize
            records = self._control[CONTROL.itemsize : end].get().view(LEVEL)
        all_records.append(records[:count].copy())  # the next search writes there
        return int(control["status"]), level

    def _take_words(self) -> Array:
        """Hold distances of more than a byte from now on, and return their array."""
        if self._words is None:
            declared = wide_distance(self.graph.vertices)
            self._words = allocate([declared], self.device.cupy)["distance"]
        self.distance = self._words
        self._search["distance"] = self.distance.data.ptr
        return self._words


def shared_bytes() -> int:
    return WIDE_LAUNCH[0] // 32 * _SCRATCH
