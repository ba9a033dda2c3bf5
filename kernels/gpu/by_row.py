"""Distances and parents of a search on one GPU, in the order of a result's rows: arrays there."""

from __future__ import annotations

import numpy as np

from .device import Device
from .graph import Array

_SOURCE = "bfs/by_row.cu"
_WARP = 32
FUNCTIONS = (
    *(f"values_by_row<{value}>" for value in ("u8", "u32")),
    *(f"distances_by_row<{distance}>" for distance in ("u8", "int")),
    *("number_rows", "parents_by_row"),
)
"""The kernels."""


class RowPlaces:
    """The places of a result's rows in the arrays of a search, on a device.

    place: uint32 (rows,), each place once.
    """

    def __init__(self, device: Device, place: np.ndarray) -> None:
        self._device, self._rows = device, len(place)
        with device.use() as cupy:
            self._place = cupy.asarray(place)
            self._row_at = cupy.empty(len(place), np.uint32)
            size = np.uint64(self._rows)
            arguments = (self._place, size, self._row_at)
            device.launch(_SOURCE, "number_rows", self._rows, arguments)

    def values(self, value: Array) -> Array:
        """Return values by row, as they are. value: by place, of one byte or of four."""
        with self._device.use() as cupy:
            found = cupy.empty(self._rows, value.dtype)
            arguments = (value, self._place, np.uint64(self._rows), found)
            kind = "u8" if value.dtype.itemsize == 1 else "u32"
            self._device.launch(_SOURCE, f"values_by_row<{kind}>", self._rows, arguments)
        return found

    def distances(self, distance: Array) -> tuple[Array, Array]:
        """Return distances by row, int32, -1 where unreached; and a bit for each row, whether it
        was reached, in words of 32 bits, the lowest bit first.

        distance: by place, uint8 with 255, or int32 with -1, where unreached.
        """
        kind, words = "int" if distance.dtype.kind == "i" else "u8", -(-self._rows // _WARP)
        with self._device.use() as cupy:
            found, known = cupy.empty(self._rows, np.int32), cupy.empty(words, np.uint32)
            arguments = (distance, self._place, np.uint64(self._rows), found, known)
            self._device.launch(_SOURCE, f"distances_by_row<{kind}>", _WARP * words, arguments)
        return found, known

    def parents(self, parent: Array) -> Array:
        """Return the rows of parents by row, int64; -1 where there is none.

        parent: places by place, uint32; UNREACHED where there is none.
        """
        with self._device.use() as cupy:
            found = cupy.empty(self._rows, np.int64)
            arguments = (parent, self._place, self._row_at, np.uint64(self._rows), found)
            self._device.launch(_SOURCE, "parents_by_row", self._rows, arguments)
        return found


def compile_by_row(device: Device) -> None:
    """Compile the kernels, or load them from the cache."""
    for function in FUNCTIONS:
        device.kernel(_SOURCE, function)
