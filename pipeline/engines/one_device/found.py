"""The outcome of a search that stays on its device until it is read.

A search writes to the same arrays as the one before it, unless an outcome still needs them: then
the outcome keeps these arrays, and the search gets others. So a search whose outcome nobody reads
copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any
from weakref import WeakSet, ref

import numpy as np
from numpy.typing import NDArray

from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import Array
from ....kernels.gpu.levels import Level, LevelRecords
from ....kernels.gpu.search import GpuSearch, widened
from ...results.superstep_log import SuperstepLog
from ...run.devices import device_errors

_PART_FOR_OUTCOMES = 1 / 8
"""Outcomes stay on the device up to this part of the memory that may be held there."""


class ValuesOnDevice:
    """Values of vertices on a device (see results/columns.py, Values). The first access copies
    them to host memory, and frees those on the device.

    finish: turns values as the device has them into values of ``dtype``.
    """

    def __init__(
        self,
        device: Device,
        values: Array,
        dtype: type[np.generic],
        finish: Callable[[NDArray], NDArray] | None = None,
    ) -> None:
        self.dtype: np.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self._device = device
        self._on_device: Array | None = values
        self._copied: NDArray | None = None
        self._finish = finish
        self._lock = Lock()  # two threads may read the same result

    def __getitem__(self, at: Any, /) -> Any:
        values = self.fetch()
        # (To take is faster than to index.)
        values = values.take(at) if isinstance(at, np.ndarray) else values[at]
        return values if self._finish is None else self._finish(values)

    @property
    def device_bytes(self) -> int:
        """The bytes that are held on the device."""
        on_device = self._on_device
        return 0 if on_device is None else on_device.nbytes

    def fetch(self) -> NDArray:
        """Return the values as the device has them, in host memory."""
        with self._lock:
            copied = self._copied
            if copied is None:
                assert self._on_device is not None
                with device_errors(), self._device.use():
                    copied = self._on_device.get()
                self._copied, self._on_device = copied, None
            return copied


class FoundOnDevice:
    """The outcome of the last search of ``search`` (see SearchOutcome)."""

    def __init__(self, search: GpuSearch) -> None:
        self.distance = ValuesOnDevice(search.device, search.distance, np.int32, widened)
        self.parent = ValuesOnDevice(search.device, search.parent, np.uint32)
        self._seconds = search.seconds()
        self._records: LevelRecords = search.records
        self._search: GpuSearch | None = search
        self._device_distance: Array | None = search.distance
        self._supersteps: SuperstepLog | None = None
        self._lock = Lock()

    @property
    def device_bytes(self) -> int:
        """The bytes that are held on the device."""
        return self.distance.device_bytes + self.parent.device_bytes

    @property
    def supersteps(self) -> SuperstepLog:
        self.leave()
        if self._supersteps is None:
            with device_errors():
                self._supersteps = superstep_log(self._records.levels(self._seconds))
        return self._supersteps

    def leave(self) -> None:
        """Count what the records of levels lack, while the distances are on the device. From then
        on the outcome needs no graph.
        """
        with self._lock:
            if self._search is not None:
                assert self._device_distance is not None
                with device_errors():
                    self._records.count(
                        self._search.device, self._search.graph, self._device_distance
                    )
                self._search = self._device_distance = None

    def fetch(self) -> None:
        """Copy all to host memory."""
        self.leave()
        self.distance.fetch()
        self.parent.fetch()


def superstep_log(levels: Iterable[Level]) -> SuperstepLog:
    """Return the superstep records of a search, by the work of its levels."""
    log, frontier = SuperstepLog(), 1
    for number, level in enumerate(levels, 1):
        log.add(number, level.direction, frontier, level.found, level.examined, level.seconds)
        frontier = level.found
    return log


class Outcomes:
    """The outcomes of one search on a device that are still referred to."""

    def __init__(self, search: GpuSearch) -> None:
        self._search = search
        self._all: WeakSet[FoundOnDevice] = WeakSet()
        self._last: Callable[[], FoundOnDevice | None] = lambda: None

    def add(self) -> FoundOnDevice:
        """Return the outcome of the search that has just ended."""
        found = FoundOnDevice(self._search)
        self._all.add(found)
        self._last = ref(found)
        return found

    def make_way(self) -> None:
        """Prepare the next search: it may write to the arrays of the last one."""
        last = self._last()
        if last is None:
            return
        last.leave()
        if not last.device_bytes:
            return
        held = sum(found.device_bytes for found in self._all) + last.device_bytes
        if held > _PART_FOR_OUTCOMES * self._search.device.memory_bytes:
            self.fetch()
            return
        try:
            self._search.renew()
        except DeviceMemoryError:
            self.fetch()

    def fetch(self) -> None:
        """Copy all outcomes to host memory."""
        for found in list(self._all):
            found.fetch()
