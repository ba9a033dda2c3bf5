"""Lists of vertices on a device (cuda/pieces/vertices.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..gpu.device import Device
from ..gpu.graph import Array
from .tracing import TYPES

_SOURCE = "pieces/vertices.cu"


def list_others(device: Device, values: Array, other: Any, places: Array | None) -> Array:
    """Return the vertices whose value is not ``other``, in any order: of ``places``, None for
    all.
    """
    count = len(values) if places is None else len(places)
    with device.use() as cupy:
        listed, found = cupy.zeros(1, np.uint32), cupy.empty(count, np.uint32)
        among = np.uint64(0) if places is None else places
        arguments = values, values.dtype.type(other), among, np.uint64(count), found, listed
        name = f"list_others<{TYPES[values.dtype.char]}>"
        device.launch(_SOURCE, name, -(-count // 32) * 32, arguments)
        return found[: int(listed.get()[0])]


def list_once(device: Device, sets: Sequence[Array], vertices: int) -> Array:
    """Return the vertices of several lists, each once, in any order."""
    with device.use() as cupy:
        listed, marks = cupy.zeros(1, np.uint32), cupy.zeros(-(-vertices // 32), np.uint32)
        found = cupy.empty(min(vertices, sum(map(len, sets))), np.uint32)
        for places in sets:
            arguments = places, np.uint64(len(places)), marks, found, listed
            device.launch(_SOURCE, "list_unmarked", -(-len(places) // 32) * 32, arguments)
        return found[: int(listed.get()[0])]


def fill_places(device: Device, values: Array, value: Any, places: Array) -> None:
    """Set the values of some vertices."""
    arguments = places, np.uint64(len(places)), values.dtype.type(value), values
    with device.use():
        name = f"fill_places<{TYPES[values.dtype.char]}>"
        device.launch(_SOURCE, name, len(places), arguments)
