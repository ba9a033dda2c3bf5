"""One GPU: searches over slices, BLEST's form (slices.cu), beside searches over rows.

    python benchmarks/slices.py [--graphs kron22,cnr-2000,...] [--sources 64] [--data FOLDER]

The graphs are gpu.py's, but for kron27. Slices are cut on the device from the rows, in three orders
of the vertices; what meets the frontier is found by bit operations or by products of bit matrices;
the next level's queue is made at once, by a sweep after each level, or by one after large levels.
Both kinds search from the same sources and find distances and parents; every result over slices is
held against the rules, and against the distances that rows gave.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import environment
import gpu
import numpy as np
import real

from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.gpu import check as gpu_check
from delegraph.kernels.gpu.device import Device, open_device, pack, strip_lanes
from delegraph.kernels.gpu.graph import Array, DeviceGraph, Rows
from delegraph.kernels.gpu.prepare import sort
from delegraph.kernels.gpu.search import widened

SOURCE = str(Path(__file__).with_suffix(".cu").resolve())
SLICES = np.dtype(
    [*((name, "u8") for name in ("rows", "masks", "first")), ("sets", "u4")], align=True
)
CONTROL = np.dtype([("arrived", "u8"), ("queued", "u4", 3), ("level", "u4")], align=True)
SEARCH = np.dtype(
    [
        *((name, "u8") for name in ("distance", "parent", "stamp")),
        ("queue", "u8", 2),
        ("control", "u8"),
        *((name, "u4") for name in ("source", "sweep_from")),
    ],
    align=True,
)
SET = 8  # slices.cu, and the next one
VIRTUAL = 128
THREADS = 1024
NEVER = 0xFFFFFFFF
MOST_LEVELS = 254  # that distances of a byte take
PRODUCTS = ("Bits", "Tensor")
UPDATES: dict[str, Callable[[int], int]] = {
    "at once": lambda sets: NEVER,
    "swept": lambda sets: 0,
    "by level": lambda sets: max(2048, sets // 16),  # where a sweep costs less than atomics do
}
"""Virtual sets of a level from which on it is swept after, of so many sets."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time searches over slices on one GPU.")
    parser.add_argument("--graphs")
    parser.add_argument("--sources", type=int, default=64)
    real.add_option(parser)
    options = parser.parse_args()
    device = open_device()
    about = environment.describe(("numpy", "pyarrow"))
    about["versions"] |= device.versions()
    about["gpu"] = {"name": device.name, **gpu.clocks()}
    environment.show(about)
    print(f"{device}, {about['gpu']}", flush=True)
    found = real.real_graphs(options.data)
    generated = [name for name in gpu.GENERATED.split(",") if name != "kron27"]
    results = []
    for name in options.graphs.split(",") if options.graphs else [*generated, *found]:
        results.append(measure(device, name, found, options.sources))
        show(results[-1])
    summarize(results)
    environment.keep("slices", about, results)


class Sliced(NamedTuple):
    """A graph in slices, on the device (slices.cu).

    place: uint32 (used,), of each vertex, in the order of the slices. number: of slices.
    """

    place: Array
    rows: Array
    masks: Array
    first: Array
    number: int
    order_seconds: float
    seconds: float

    @property
    def sets(self) -> int:
        return len(self.first) - 1

    @property
    def virtual_sets(self) -> int:
        return len(self.rows) // VIRTUAL


def places_by_degree(device: Device, graph: DeviceGraph, ids: Array) -> Array:
    return device.cupy.arange(graph.used, dtype=np.uint32)


def places_by_id(device: Device, graph: DeviceGraph, ids: Array) -> Array:
    return inverse(device.cupy, device.cupy.argsort(ids[: graph.used]))


def places_by_hashes(device: Device, graph: DeviceGraph, ids: Array) -> Array:
    cupy, rows = device.cupy, graph.forward
    hashes = cupy.empty(graph.used, np.uint64)
    arguments = (rows.offsets, rows.near, np.uint32(graph.used), hashes)
    function = f"min_hashes<{rows.offset_type}>"
    device.launch(SOURCE, function, 32 * graph.used, arguments)
    return inverse(cupy, cupy.argsort(hashes))


def inverse(cupy: Any, order: Array) -> Array:
    places = cupy.empty(len(order), np.uint32)
    places[order] = cupy.arange(len(order), dtype=np.uint32)
    return places


ORDERS = {"degree": places_by_degree, "id": places_by_id, "min-hash": places_by_hashes}


def cut(device: Device, graph: DeviceGraph, ids: Array, order: str) -> Sliced:
    """Slices of a graph's forward rows. ids: by position."""
    rows = graph.forward
    with device.use() as cupy:
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        place = ORDERS[order](device, graph, ids)
        cupy.cuda.Device().synchronize()
        ordered = time.perf_counter()
        keys = cupy.empty(rows.edges, np.uint64)
        arguments = (rows.offsets, rows.near, np.uint64(rows.edges), np.uint32(graph.used))
        function = f"slice_keys<{rows.offset_type}>"
        device.launch(SOURCE, function, strip_lanes(rows.edges), (*arguments, place, keys))
        sort(cupy, keys)
        starts = cupy.concatenate(
            [cupy.zeros(1, np.int64), cupy.flatnonzero(keys[1:] >> 3 != keys[:-1] >> 3) + 1]
        )
        sets = -(-graph.used // SET)
        ends = cupy.arange(1, sets + 1, dtype=np.uint64) << np.uint64(35)
        first_slice = cupy.zeros(sets + 1, np.uint64)
        first_slice[1:] = cupy.searchsorted(keys[starts], ends)
        length = first_slice[1:] - first_slice[:-1]
        first = cupy.zeros(sets + 1, np.uint32)
        first[1:] = cupy.cumsum((length + np.uint64(VIRTUAL - 1)) // np.uint64(VIRTUAL))
        room = VIRTUAL * int(first[-1])
        written = cupy.zeros(room, np.uint32), cupy.zeros(room, np.uint8)
        count = len(starts)
        arguments = (keys, np.uint64(rows.edges), starts, np.uint64(count), first_slice, first)
        device.launch(SOURCE, "write_slices", count, (*arguments, *written))
        cupy.cuda.Device().synchronize()
        done = time.perf_counter()
        return Sliced(place, *written, first, count, ordered - began, done - ordered)


@dataclass
class SliceSearch:
    """Searches over slices, in arrays that are made once. deep: of more than MOST_LEVELS levels."""

    device: Device
    sliced: Sliced
    vertices: int
    deep: bool

    def __post_init__(self) -> None:
        sliced = self.sliced
        with self.device.use() as cupy:
            padded = SET * sliced.sets
            self._distance = cupy.empty(padded, np.int32 if self.deep else np.uint8)
            self._parent = cupy.empty(padded, np.uint32)
            self._stamp = cupy.empty(sliced.sets, np.uint32)
            self._queues = [cupy.empty(2 * sliced.virtual_sets, np.uint32) for _ in range(2)]
            self._control = cupy.zeros(CONTROL.itemsize, np.uint8)
            self._vertex = inverse(cupy, sliced.place)
            self._places = sliced.place.get()
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
            self._busy = cupy.zeros(1 << 24, np.uint32)
        self._sliced = pack(
            SLICES, rows=sliced.rows, masks=sliced.masks, first=sliced.first, sets=sliced.sets
        )
        self._search = pack(
            SEARCH,
            distance=self._distance,
            parent=self._parent,
            stamp=self._stamp,
            queue=[queue.data.ptr for queue in self._queues],
            control=self._control,
        )

    def run(self, source: int, product: str, update: str) -> float:
        """Search from a vertex, by position; gives its seconds."""
        search = self._search[0]
        search["source"] = self._places[source]
        search["sweep_from"] = UPDATES[update](self.sliced.sets)
        distance = "int" if self.deep else "u8"
        function = f"search_slices<{product}, {distance}, {THREADS}>"
        with self.device.use() as cupy:
            kernel = self.device.kernel(SOURCE, function, cooperative=True)
            self._busy += np.uint32(1)  # as for rows: pipeline/bench/protocol.py
            self._begun.record()
            kernel((self.device.multiprocessors,), (THREADS,), (self._sliced, self._search))
            self._ended.record()
            self._ended.synchronize()
            return cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3

    def levels(self) -> int:
        return int(self._control.get().view(CONTROL)[0]["level"])

    def result(self) -> tuple[Array, Array]:
        """Distance and parent of the last search, by position, on the device."""
        place = self.sliced.place
        with self.device.use() as cupy:
            distance = cupy.full(self.vertices, -1).astype(self._distance.dtype)
            parent = cupy.full(self.vertices, UNREACHED, np.uint32)
            distance[: len(place)] = self._distance[place]
            found = self._parent[place]
            real_one = self._vertex[cupy.minimum(found, np.uint32(len(place) - 1))]
            parent[: len(place)] = cupy.where(found == UNREACHED, np.uint32(UNREACHED), real_one)
            return distance, parent


def measure(device: Device, name: str, found: dict[str, Path], sources: int) -> dict[str, Any]:
    loaded = gpu.load(device, name, found)
    graph, searcher = loaded.graph, loaded.searcher
    chosen = gpu.choose_sources(loaded, sources)
    searcher.search(chosen[0])
    by_rows: list[float] = []
    depths: list[int] = []
    expected: list[Array] = []
    for source in chosen:
        by_rows.append(searcher.search(source))
        depths.append(searcher.gpu.depth())
        with device.use() as cupy:
            expected.append(cupy.array(searcher.gpu.distance))
    deep = max(depths) > MOST_LEVELS
    variants: list[dict[str, Any]] = []
    for order in ORDERS:
        ids = loaded.prepared.id_of_position
        cut(device, graph, ids, order)  # compiles, and the memory is there
        sliced = cut(device, graph, ids, order)
        search = SliceSearch(device, sliced, graph.vertices, deep)
        for product in PRODUCTS:
            for update in UPDATES:
                search.run(chosen[0], product, update)
                seconds: list[float] = []
                for source, distance in zip(chosen, expected, strict=True):
                    seconds.append(search.run(source, product, update))
                    check(device, graph.forward, search, source, distance)
                milliseconds = [1e3 * value for value in seconds]
                variants.append(
                    {
                        "order": order,
                        "product": product,
                        "update": update,
                        "slices_an_entry": sliced.number / graph.edges,
                        "virtual_sets": sliced.virtual_sets,
                        "order_seconds": sliced.order_seconds,
                        "cut_seconds": sliced.seconds,
                        "median_ms": median(milliseconds),
                        "worst_ms": max(milliseconds),
                    }
                )
        del search, sliced
        with device.use() as cupy:
            cupy.get_default_memory_pool().free_all_blocks()
    return {
        "graph": name,
        "vertices": graph.vertices,
        "entries": graph.edges,
        "sources": len(chosen),
        "levels": median(depths),
        "sort_seconds": loaded.sort_seconds,
        "derive_seconds": loaded.derive_seconds,
        "median_ms": 1e3 * median(by_rows),
        "worst_ms": 1e3 * max(by_rows),
        "slices": variants,
    }


def check(device: Device, rows: Rows, search: SliceSearch, source: int, expected: Array) -> None:
    distance, parent = search.result()
    violations = gpu_check.check(device, rows, distance, parent, source)
    with device.use() as cupy:
        same = bool(cupy.array_equal(widened(distance), widened(expected)))
    if violations or not same:
        raise SystemExit(f"from position {source}: same distances: {same}, {violations}")


def show(result: dict[str, Any]) -> None:
    print(
        f"\n{result['graph']}: {result['vertices']:,} vertices, {result['entries']:,} entries, "
        f"{result['levels']:.0f} levels; rows {result['median_ms']:.4f} ms, worst "
        f"{result['worst_ms']:.4f}, prepared in {1e3 * result['sort_seconds']:.1f} + "
        f"{1e3 * result['derive_seconds']:.1f} ms"
    )
    for one in result["slices"]:
        print(
            f"  {one['order']:<9}{one['product']:<7}{one['update']:<9}"
            f"{one['median_ms']:>10.4f}{one['worst_ms']:>10.4f}  {one['slices_an_entry']:.3f} of "
            f"{one['virtual_sets']:,} sets, {1e3 * one['order_seconds']:.1f} + "
            f"{1e3 * one['cut_seconds']:.1f} ms",
            flush=True,
        )


def summarize(results: list[dict[str, Any]]) -> None:
    print(f"\n{'graph':<22}{'rows':>9}{'worst':>9}{'slices':>9}{'worst':>9}{'ratio':>7}  which")
    for result in results:
        best = min(result["slices"], key=lambda one: one["median_ms"])
        print(
            f"{result['graph']:<22}{result['median_ms']:>9.4f}{result['worst_ms']:>9.4f}"
            f"{best['median_ms']:>9.4f}{best['worst_ms']:>9.4f}"
            f"{best['median_ms'] / result['median_ms']:>7.2f}  "
            f"{best['order']}, {best['product']}, {best['update']}"
        )


if __name__ == "__main__":
    main()
