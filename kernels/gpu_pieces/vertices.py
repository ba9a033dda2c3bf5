"""Lists of vertices on a device (cuda/pieces/vertices.cu)."""

from __future__ import annotations

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
        kind = values.dtype
        among = np.uint64(0) if places is None else places
        arguments = values, kind.type(other), among, np.uint64(count), found, listed
        name = f"list_others<{TYPES[kind.name]}>"
        device.launch(_SOURCE, name, -(-count // 32) * 32, arguments)
        return found[: int(listed[0])].copy()
