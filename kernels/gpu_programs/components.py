"""Components on a device: the definition is reference.components, the kernel stands in
cuda/programs/components.cu.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..gpu.graph import Array
from .rows import ProgramGraph, kernel_of


def components(graph: ProgramGraph) -> np.ndarray:
    """The least vertex that edges join each vertex to: uint32 (n,), in host memory."""
    with graph.device.use():
        return join_all(graph).get()


def join_all(graph: ProgramGraph) -> Array:
    """The same on the device."""
    device, cut = graph.device, graph.cut
    with device.use() as cupy:
        forest, arrived = cupy.empty(cut.vertices, np.uint32), cupy.zeros(1, np.uint64)
        kernel(graph)(cut.packed(), forest, np.uint32(graph.twice), arrived)
        return forest


def kernel(graph: ProgramGraph) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered
    return kernel_of(graph.device, "programs/components.cu", "components", kinds)


def device_bytes(vertices: int) -> int:
    """That it holds beside the graph."""
    return 4 * vertices
