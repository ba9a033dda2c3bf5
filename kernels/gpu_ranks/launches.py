"""How a rank of a search by several devices launches its kernel: once for a whole search, or again
wherever the host has to carry mail, distances outgrow a byte, or records fill their buffer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.graph import UNREACHED
from ..gpu.device import Device, pack
from ..gpu.graph import Array, DeviceGraph
from ..gpu.search import (
    DONE,
    LEVELS,
    MORE,
    SEARCH,
    WIDE_LAUNCH,
    WIDEN,
    WideKernel,
    pack_graph,
    shared_bytes,
)

EXCHANGE, STOPPED = 6, 7  # enum Status, beside those of gpu_search
BEGIN, GO_ON, RECEIVE, MEET = range(4)  # enum Stage

_MOST_LEVEL = 0x7FFFFFFF
_NOT_READY = 600  # cudaErrorNotReady
_SPIN_SECONDS = 0.002
_LOOK_SECONDS = 1e-4


class RankLaunches:
    """Launches of one rank, on its graph.

    own: numbers of its own vertices, which have
    distances. control, record: types of what the kernel keeps from launch to launch, and of what
    it tells of a level. check: raises if another rank is known to have failed. distance: uint8 with
    255, or int32 with -1, where unreached, of the last search.
    """

    def __init__(
        self,
        device: Device,
        kernel: WideKernel,
        graph: DeviceGraph,
        own: int,
        control: np.dtype[Any],
        record: np.dtype[Any],
        check: Callable[[], None],
    ) -> None:
        self._device = device
        self._wide = kernel
        self._graph = graph
        self._packed_graph = pack_graph(graph)
        self._control_type, self._record_type = control, record
        self._check = check
        self._records: list[np.ndarray] = []
        with device.use() as cupy:
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
            self._bytes = cupy.full(own, 255, np.uint8)
            self._words: Array | None = None  # distances of more than a byte
            self.distance: Array = self._bytes
            begins = np.zeros(1, control)
            begins["round"] = 1  # what nobody has told yet
            self._control = cupy.asarray(begins.view(np.uint8))
            self._levels = cupy.zeros(LEVELS * record.itemsize, np.uint8)
            self._stop = device.pinned(1, np.uint32)
            self._stop[0] = 0

    def search(
        self, parent: Array, numbers: int, queued: int, enqueue_edges: int, push_cost: float
    ) -> np.void:
        """The kernel's structure of a search, and what it writes to beside ``parent``.

        numbers: that the rank knows. queued: vertices that its queue has room for.
        """
        graph, kind = self._graph, self._graph.forward.offsets.dtype
        with self._device.use() as cupy:
            self._visited = [cupy.empty(numbers // 32, np.uint32) for _ in range(2)]
            self._queue = [cupy.empty(queued, dtype) for dtype in (np.uint32, kind, kind)]
            self._rest = cupy.empty(graph.long_rows + 1, np.uint32)
        return pack(
            SEARCH,
            parent=parent,
            visited=[bitmap.data.ptr for bitmap in self._visited],
            queue=[tuple(part.data.ptr for part in self._queue)] * 2,
            rest=self._rest,
            level_capacity=LEVELS,
            enqueue_edges=enqueue_edges,
            push_cost=push_cost,
        )[0]

    @property
    def places(self) -> dict[str, Any]:
        """What the kernel's structure of a rank is to say of these."""
        return {
            "control": self._control,
            "levels": self._levels,
            "stop": self._stop.ctypes.data,
        }

    def control(self) -> np.void:
        """As the last launch left it."""
        return self._control.get().view(self._control_type)[0]

    def warm_up(self) -> None:
        """Compile, or load from the cache, the kernel of a search."""
        with self._device.use():
            self._kernel()

    def align(self, rank: np.ndarray) -> None:
        """Have the devices wait for each other: what follows begins on all of them at once.

        The links between them, where they were idle, are awake then.
        """
        rank["stage"] = MEET
        with self._device.use():
            self._start(rank)

    def run(
        self,
        rank: np.ndarray,
        source: int | None,
        max_level: int | None,
        carry: Callable[[np.void], None],
    ) -> None:
        """A search. rank: the kernel's structure. source: this rank's number of it.

        carry: brings the mail of a round to its receivers; is given ``control``.
        """
        search = rank["search"]
        self._records = []
        self.distance = self._bytes
        search["source"] = UNREACHED if source is None else source
        search["first_level"] = 0
        search["max_level"] = _MOST_LEVEL if max_level is None else min(max_level, _MOST_LEVEL)
        search["distance"] = self.distance.data.ptr
        rank["stage"] = BEGIN
        with self._device.use():
            self._begun.record()
            while True:
                self._launch(rank)
                control = self.control()
                status, level = int(control["status"]), int(control["level"])
                if status == EXCHANGE:
                    carry(control)
                    rank["stage"] = RECEIVE
                    continue
                self._keep_records(level - int(search["first_level"][0]))
                if status == DONE:
                    return
                if status == WIDEN:
                    self._widen()
                    search["distance"] = self.distance.data.ptr
                elif status != MORE:
                    self._check()
                    raise RuntimeError("a rank's search was stopped")
                search["first_level"] = level
                rank["stage"] = GO_ON

    def end(self) -> None:
        """What was done on the device since ``run`` belongs to the search."""
        self._ended.record()
        self._ended.synchronize()

    def seconds(self) -> float:
        """Time on the device from the first launch of the last search to its end."""
        return self._device.cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3

    def records(self) -> np.ndarray:
        """Of the levels of the last search."""
        return np.concatenate(self._records)

    def _launch(self, rank: np.ndarray) -> None:
        """Run the kernel to its end, or until ``check`` raises."""
        self._start(rank)
        self._ended.record()
        spinning = time.monotonic() + _SPIN_SECONDS
        try:
            # (The event's ``done`` would take a kernel that failed for one that runs.)
            runtime = self._device.cupy.cuda.runtime
            while (status := runtime.eventQuery(self._ended.ptr)) == _NOT_READY:
                if time.monotonic() > spinning:
                    self._check()
                    time.sleep(_LOOK_SECONDS)
            if status:
                self._ended.synchronize()  # raises what went wrong
        except BaseException:
            self._stop[0] = 1
            try:
                self._ended.synchronize()
            finally:
                self._stop[0] = 0
            raise

    def _start(self, rank: np.ndarray) -> None:
        blocks = self._device.multiprocessors * WIDE_LAUNCH[1]
        arguments = (self._packed_graph, rank)
        self._kernel()((blocks,), (WIDE_LAUNCH[0],), arguments, shared_mem=shared_bytes())

    def _kernel(self) -> Any:
        graph, deep = self._graph, self.distance is not self._bytes
        return self._wide.on(self._device, graph.forward.offset_type, graph.tiered, deep)

    def _widen(self) -> None:
        """From here on, distances of more than a byte."""
        words = self._words
        if words is None:
            words = self._words = self._device.cupy.empty(len(self._bytes), np.int32)
        words[:] = self._bytes
        self.distance = words

    def _keep_records(self, count: int) -> None:
        size = self._record_type.itemsize
        self._records.append(self._levels[: count * size].get().view(self._record_type))
