"""Results that stay on their device until they are read: the outcome of a search, and values of
programs.

A search writes to the same arrays as the one before it, unless an outcome still needs them: then
the outcome keeps these arrays, and the search gets others. So a search whose outcome nobody reads
copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Literal
from weakref import WeakSet, ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....kernels.gpu.by_row import RowPlaces
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import Array
from ....kernels.gpu.levels import Level
from ....kernels.gpu.search import GpuSearch, widened
from ...results.names import Names
from ...results.superstep_log import SuperstepLog
from ...run.devices import device_errors

_PART_FOR_OUTCOMES = 1 / 8
"""Outcomes of a search stay on the device up to this part of the memory that may be held there."""

Name = Literal["distance", "parent"]


class Tree:
    """The distances and parents of one search, on its device or in host memory, and the records of
    its levels. Several threads may read them while the next search runs.
    """

    def __init__(self, search: GpuSearch, rows: RowsOnDevice) -> None:
        self._device = search.device
        self._rows = rows
        self._on_device: dict[str, Array] = {"distance": search.distance, "parent": search.parent}
        self._copied: dict[str, NDArray] = {}
        self._records, self._seconds = search.records, search.seconds()
        self._graph = search.graph.forward.offsets, search.graph.used
        self._supersteps: SuperstepLog | None = None
        self._lock = Lock()

    @property
    def device_bytes(self) -> int:
        """Count the bytes of values that are only on the device."""
        return sum(array.nbytes for array in list(self._on_device.values()))

    def fetch(self, name: Name) -> NDArray:
        """Return values as the device has them, in host memory. The first call copies them, and
        lets go of those on the device.
        """
        with self._lock:
            if name not in self._copied:
                with device_errors(), self._device.use():
                    if name == "distance":
                        self._count()
                    self._copied[name] = self._device.fetch(self._on_device[name])
                del self._on_device[name]
            return self._copied[name]

    def by_row(self, name: Name, names: Names) -> Array:
        """Return values in the order of a result's rows, on the device. names: of the vertices."""
        with self._lock, device_errors(), self._device.use() as cupy:
            there = self._on_device.get(name)
            values = cupy.asarray(self._copied[name]) if there is None else there
            rows = self._rows.of(names)
            return rows.distances(values)[0] if name == "distance" else rows.parents(values)

    def fetch_by_row(self, name: Name, names: Names) -> NDArray | None:
        """Return values as the device has them in the order of a result's rows, in host memory;
        None if they were copied before, or the device has no room to put them in order.
        """
        found = self._fetch_put(name, lambda values: (self._rows.of(names).values(values),))
        return None if found is None else found[0]

    def fetch_distances(self, names: Names) -> tuple[NDArray, ...] | None:
        """Return distances by row, and whether rows have one, as RowPlaces gives them, in host
        memory. None as of ``fetch_by_row``.
        """
        return self._fetch_put("distance", lambda values: self._rows.of(names).distances(values))

    def _fetch_put(
        self, name: Name, put: Callable[[Array], tuple[Array, ...]]
    ) -> tuple[NDArray, ...] | None:
        """Return what ``put`` makes of values that are only on the device, in host memory."""
        with self._lock, device_errors(), self._device.use():
            if name not in self._on_device:
                return None
            try:
                return tuple(map(self._device.fetch, put(self._on_device[name])))
            except DeviceMemoryError:
                return None

    def fetch_all(self) -> None:
        """Copy all to host memory."""
        self.fetch("distance")
        self.fetch("parent")
        with self._lock, device_errors():
            self._records.fetch()

    def count_levels(self) -> None:
        """Count what the records of levels lack, before a search writes to the distances."""
        with self._lock, device_errors():
            self._count()

    def _count(self) -> None:
        if "distance" in self._on_device:
            self._records.count(self._device, *self._graph, self._on_device["distance"])

    @property
    def supersteps(self) -> SuperstepLog:
        """Return the records of the search's supersteps."""
        with self._lock, device_errors():
            if self._supersteps is None:
                self._count()
                self._supersteps = superstep_log(self._records.levels(self._seconds))
            return self._supersteps


class RowsOnDevice:
    """The places of a result's rows, on a device: made when they are first asked for."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._made: RowPlaces | None = None

    def of(self, names: Names) -> RowPlaces:
        if self._made is None:
            pieces = [names.piece(number)[1] for number in range(len(names.pieces))]
            self._made = RowPlaces(self._device, np.concatenate(pieces))
        return self._made

    def let_go(self) -> None:
        self._made = None


class ValuesOnDevice:
    """Distances or parents, as values of a column (results/columns.py, Values).

    finish: turns values as the device has them into values of ``dtype``.
    """

    def __init__(
        self,
        tree: Tree,
        name: Name,
        dtype: type[np.generic],
        finish: Callable[[NDArray], NDArray] | None = None,
    ) -> None:
        self.dtype: np.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self._tree = tree
        self._name: Name = name
        self._finish = finish

    def __getitem__(self, at: Any, /) -> Any:
        values = self._tree.fetch(self._name)
        # (To take is faster than to index.)
        values = values.take(at) if isinstance(at, np.ndarray) else values[at]
        return values if self._finish is None else self._finish(values)

    def by_row(self, names: Names) -> Array:
        return self._tree.by_row(self._name, names)

    def column(self, names: Names) -> pa.Array | None:
        fetched = self._tree.fetch_distances(names) if self._name == "distance" else None
        if fetched is None:
            return None
        values, known = fetched
        return pa.Array.from_buffers(
            pa.int32(), len(values), [pa.py_buffer(known), pa.py_buffer(values)]
        )

    def fetched_by_row(self, names: Names) -> ValuesByRow | None:
        values = self._tree.fetch_by_row(self._name, names)
        return None if values is None else ValuesByRow(values, self.dtype, self._finish)


class ValuesByRow:
    """Values of a column in host memory, by row. finish: as of ValuesOnDevice."""

    def __init__(
        self, values: NDArray, dtype: np.dtype, finish: Callable[[NDArray], NDArray] | None
    ) -> None:
        self.dtype, self.itemsize = dtype, dtype.itemsize
        self._values = values
        self._finish = finish

    def __getitem__(self, at: Any, /) -> Any:
        values = self._values[at]
        return values if self._finish is None else self._finish(values)


class DeviceValues:
    """Values of a program, on a device until they are read: ``np.asarray`` reads them."""

    def __init__(self, device: Device, values: Array) -> None:
        self._device = device
        self._on_device: Array | None = values
        self._copied: NDArray | None = None
        self._lock = Lock()
        _values.add(self)

    @property
    def device(self) -> Device:
        return self._device

    @property
    def is_on_device(self) -> bool:
        return self._on_device is not None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return np.array(self.fetch(), dtype, copy=copy)

    def fetch(self) -> NDArray:
        """Return the values in host memory. The first call copies them, and lets go of those on the
        device.
        """
        with self._lock:
            if self._on_device is not None:
                with device_errors(), self._device.use():
                    self._copied = self._device.fetch(self._on_device)
                self._on_device = None
            assert self._copied is not None
            return self._copied


class FoundOnDevice:
    """The outcome of a search on a device (see SearchOutcome)."""

    def __init__(self, tree: Tree) -> None:
        self.distance = ValuesOnDevice(tree, "distance", np.int32, widened)
        self.parent = ValuesOnDevice(tree, "parent", np.uint32)
        self._tree = tree

    @property
    def supersteps(self) -> SuperstepLog:
        return self._tree.supersteps


def superstep_log(levels: Iterable[Level]) -> SuperstepLog:
    """Return the superstep records of a search, by the work of its levels."""
    log, frontier = SuperstepLog(), 1
    for number, level in enumerate(levels, 1):
        log.add(number, level.direction, frontier, level.found, level.examined, level.seconds)
        frontier = level.found
    return log


class Outcomes:
    """Searches of one graph on a device, and those of their outcomes that are still referred to."""

    def __init__(self, search: GpuSearch) -> None:
        self._search = search
        self._rows = RowsOnDevice(search.device)
        self._trees: WeakSet[Tree] = WeakSet()
        self._last: Callable[[], Tree | None] = lambda: None
        _open_searches.add(self)

    @property
    def device(self) -> Device:
        return self._search.device

    def search(self, source: int, max_depth: int | None) -> FoundOnDevice:
        """Search from ``source``. Outcomes move to host memory if the search needs their room."""
        try:
            self._make_way()
            self._search.run(source, max_depth)
        except DeviceMemoryError:
            if not self.fetch():
                raise
            self._search.run(source, max_depth)
        tree = Tree(self._search, self._rows)
        self._trees.add(tree)
        self._last = ref(tree)
        return FoundOnDevice(tree)

    def _make_way(self) -> None:
        """Prepare for a search that writes to the arrays of the last one."""
        last = self._last()
        if last is None:
            return
        if last.device_bytes:
            held = sum(tree.device_bytes for tree in self._trees) + last.device_bytes
            if held <= _PART_FOR_OUTCOMES * self.device.memory_bytes:
                self._search.renew()  # the last outcome keeps its arrays
                return
            self.fetch()
        last.count_levels()

    def fetch(self) -> bool:
        """Copy all outcomes to host memory. Returns whether any held memory of the device."""
        trees = list(self._trees)
        self._rows.let_go()
        held = any(tree.device_bytes for tree in trees)
        for tree in trees:
            tree.fetch_all()
        return held


_open_searches: WeakSet[Outcomes] = WeakSet()
_values: WeakSet[DeviceValues] = WeakSet()


def fetch_outcomes(device: Device) -> None:
    """Copy the outcomes of all searches and programs on a device to host memory: something else
    needs the room that they take.
    """
    for values in list(_values):
        if values.device.number == device.number:
            values.fetch()
    for outcomes in list(_open_searches):
        if outcomes.device.number == device.number:
            outcomes.fetch()
