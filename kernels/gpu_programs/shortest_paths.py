"""Shortest paths on a device. The definition is reference.shortest_paths; the kernels stand in
cuda/programs/shortest_paths.cu.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.graph import UNREACHED
from ..gpu.device import pack
from ..gpu.graph import Array
from . import rows
from .rows import Launch, ProgramGraph, c_name, kernel_of

STATE = np.dtype(
    [
        *((name, "u8") for name in ("edges", "taken", "again")),
        *((name, "f8") for name in ("begin", "width", "limit")),
        *((name, "u4") for name in ("round", "buckets", "bucket_round", "piled", "done")),
    ],
    align=True,
)
CONTROL = np.dtype(
    [
        *((name, "u8") for name in ("arrived", "edges", "taken", "again")),
        ("least", "u8", 2),
        ("queued", "u4", 3),
        ("piled", "u4", 2),
        ("stop", "u4", 2),
        ("beyond", "u4"),
        ("state", STATE),
    ],
    align=True,
)
PATHS = np.dtype(
    [
        *((name, "u8") for name in ("distance", "queued_in")),
        *((name, "u8", 2) for name in ("queue", "pile")),
        ("control", "u8"),
        ("most", "f8"),
        ("clocks", "u8"),
        *((name, "u4") for name in ("few", "few_piled", "stays")),
    ],
    align=True,
)
PART = 128  # cuda/programs/queue.cuh

LAUNCH = Launch(1024, 1)
"""The launch of one block, which does small rounds alone with all warps that a multiprocessor
takes.
"""

_FEW = 512  # items of a round that one block does
_FEW_PILED = 1 << 14  # vertices of a pile that it looks through
_SOURCE = "programs/shortest_paths.cu"
FAR_BITS = np.float64(np.inf).view(np.uint64)


class GpuPaths:
    """Paths from ``source``, a global id, that are no longer than ``most``. Call ``run`` until
    ``done``.

    width: of the first bucket. saved: distances of an earlier run, float64 (n,) in host memory, and
    the distance at which its bucket began: all vertices that are nearer have shortened what they
    can.
    """

    _FUNCTION = "shortest_paths"
    _NOWHERE = FAR_BITS

    def __init__(
        self,
        graph: ProgramGraph,
        source: int,
        width: float,
        most: float,
        saved: tuple[np.ndarray, float] | None = None,
    ) -> None:
        self._graph = graph
        self._source = source
        n = graph.vertices
        items = items_of(n, graph.cut.rows.edges)
        with graph.device.use() as cupy:
            self._distance: Array = cupy.full(n, self._NOWHERE, np.uint64).view(np.float64)
            self._queued_in: Array = cupy.zeros(n, np.uint32)
            self._queues: list[Array] = [cupy.empty(items, np.uint64) for _ in range(2)]
            self._piles: list[Array] = [cupy.empty(n, np.uint32) for _ in range(2)]
            begun, pile = 0.0, np.array([source], np.uint32)
            if saved is None:
                self._distance[source] = 0.0
            else:
                distance, begun = saved
                self._distance.set(distance)
                pile = np.flatnonzero(np.isfinite(distance) & (distance >= begun)).astype(np.uint32)
            # All begins in a pile, that of the first, even bucket.
            self._piles[0][: len(pile)].set(pile)
            self._control = self._control_of(width=width / 2, limit=begun, piled=len(pile))
            self._read()
        self._rows = graph.cut.packed()
        self._paths = pack(
            PATHS,
            distance=self._distance,
            queued_in=self._queued_in,
            queue=[queue.data.ptr for queue in self._queues],
            pile=[pile.data.ptr for pile in self._piles],
            control=self._control,
            most=most,
            clocks=rows.TIME,
            few=_FEW,
            few_piled=_FEW_PILED,
        )

    def _control_of(self, width: float = 0.0, limit: float = 0.0, piled: int = 0) -> Array:
        """Return a new control structure on the device. width: half of the first bucket's. limit:
        no vertex of the pile is nearer.
        """
        least = np.float64(limit).view(np.uint64)
        control = pack(CONTROL, least=[least, self._NOWHERE], piled=[piled, 0])
        state = control["state"]
        state["width"], state["limit"], state["round"], state["bucket_round"] = width, limit, 1, 1
        return self._graph.device.cupy.asarray(control.view(np.uint8))

    def _read(self) -> None:
        self._now = self._control.get().view(CONTROL)[0]

    @property
    def done(self) -> bool:
        return bool(self._now["state"]["done"])

    @property
    def rounds(self) -> int:
        return int(self._now["state"]["round"]) - 1

    @property
    def buckets(self) -> int:
        return int(self._now["state"]["buckets"])

    @property
    def edges(self) -> int:
        """Return the number of edges that were followed."""
        return int(self._now["edges"])

    @property
    def bucket(self) -> tuple[float, float]:
        """Return the distance at which the bucket begins, and the bucket's width."""
        state = self._now["state"]
        return float(state["begin"]), float(state["width"])

    def run(self) -> None:
        """Run for about rows.TIME."""
        with self._graph.device.use():
            stop = CONTROL.fields["stop"][1]  # pyright: ignore[reportOptionalSubscript]
            self._control[stop : stop + 8] = 0
            self._launch()
            self._read()

    def _launch(self) -> None:
        self._kernel(self._FUNCTION)(self._rows, self._graph.weights, self._paths)

    @property
    def distance(self) -> Array:
        """Return the distances on the device: float64 (n,), infinite where unreached."""
        return self._distance

    def distances(self) -> np.ndarray:
        """Return the distances in host memory: float64 (n,), infinite where unreached."""
        with self._graph.device.use():
            return self._distance.get()

    def parents(self) -> np.ndarray:
        """Return the parents in host memory: uint32 (n,), UNREACHED for the source and where
        unreached. If the distances are done, the parents form a tree.
        """
        with self._graph.device.use():
            return self.adopt().get()

    def adopt(self) -> Array:
        """Give parents to vertices, and return them on the device."""
        graph = self._graph
        with graph.device.use() as cupy:
            parent = cupy.full(graph.vertices, UNREACHED, np.uint32)
            arguments = (self._rows, graph.weights, self._distance, parent)
            self._kernel("adopt_nearer")(*arguments)
            return self._with_those_alike(parent)

    def _with_those_alike(self, parent: Array) -> Array:
        """Add parents at the same distance, for vertices that have no parent yet, and return
        ``parent``. parent: has the parents of all vertices to which an edge leads that makes a path
        longer.
        """
        with self._graph.device.use() as cupy:
            settled = self._settled(parent)
            if bool((settled != cupy.isfinite(self._distance)).any()):
                self._adopt_alike(parent, settled)
            return parent

    def _settled(self, parent: Array) -> Array:
        settled = parent != UNREACHED
        settled[self._source] = True
        return settled

    def _adopt_alike(self, parent: Array, settled: Array) -> None:
        graph = self._graph
        with graph.device.use():
            self._queued_in[...] = settled
            paths, control = self._paths.copy(), self._control_of()
            paths["control"] = control.data.ptr
            self._queue_marked(paths)
            self._kernel("adopt_alike")(self._rows, graph.weights, paths, parent)

    def _queue_marked(self, paths: np.ndarray) -> None:
        """Queue the vertices whose ``queued_in`` is not 0, for round 1."""
        graph, n = self._graph, self._graph.vertices
        name = f"queue_marked<{graph.cut.rows.offset_type}>"
        of = graph.cut.rows.offsets, np.uint32(n), paths
        graph.device.launch(_SOURCE, name, -(-n // 32) * 32, of)

    def _kernel(self, function: str) -> Callable[..., None]:
        return kernel(self._graph, function)


class GpuWholePaths(GpuPaths):
    """Shortest paths where weights are whole numbers. Distances have 32 bits, with the parents
    beside them, so that nobody looks for parents afterwards.

    If a path that was looked at is ``beyond`` 32 bits, the result is of no use, and GpuPaths have
    to find it. GpuPaths also go on from a save, as parents are not saved.
    """

    _FUNCTION = "whole_paths"
    _NOWHERE = np.uint64((1 << 64) - 1)

    def __init__(self, graph: ProgramGraph, source: int, width: float, most: float) -> None:
        super().__init__(graph, source, width, most)
        self._apart = False  # whether parents stand apart from distances
        with graph.device.use():
            self._distance.view(np.uint64)[source] = UNREACHED  # 0, and no parent

    @property
    def beyond(self) -> bool:
        return bool(self._now["beyond"])

    def distances(self) -> np.ndarray:
        found = super().distances()
        if self._apart:
            return found
        words = found.view(np.uint64)
        distance = (words >> np.uint64(32)).astype(np.float64)
        distance[words == self._NOWHERE] = np.inf
        return distance

    def adopt(self) -> Array:
        """Give parents to vertices, and return them on the device. Call this once, and before
        ``distance`` is looked at.
        """
        n = self._graph.vertices
        with self._graph.device.use() as cupy:
            parent = cupy.empty(n, np.uint32)
            arguments = (self._distance, np.uint32(n), parent)
            self._graph.device.launch(_SOURCE, "take_apart", n, arguments)
            self._apart = True
            return self._with_those_alike(parent)


def warm_up(graph: ProgramGraph, alone: bool = True) -> None:
    """Compile, or load from the cache, all kernels that paths may come to. alone: whether for one
    rank.
    """
    for function in ("shortest_paths", "adopt_nearer", "adopt_alike"):
        kernel(graph, function)
    with graph.device.use():
        graph.device.kernel(_SOURCE, f"queue_marked<{graph.cut.rows.offset_type}>")
        if alone and graph.weight_type == "uint32":
            kernel(graph, "whole_paths")
            graph.device.kernel(_SOURCE, "take_apart")


def kernel(graph: ProgramGraph, function: str, source: str = _SOURCE) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, c_name(str(graph.weight_type)), graph.cut.tiered
    return kernel_of(graph.device, source, function, kinds, LAUNCH)


def items_of(vertices: int, entries: int) -> int:
    """Return the number of items of a queue of all vertices, of 8 bytes each."""
    return vertices + entries // PART


def device_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that paths hold beside the graph."""
    distance, parent, queued_in, piles, looking = 8, 4, 4, 2 * 4, 3
    vertex_bytes = distance + parent + queued_in + piles + looking
    return vertex_bytes * vertices + 2 * 8 * items_of(vertices, entries)
