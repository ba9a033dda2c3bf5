"""Components on a device: the definition is reference.components, the kernel stands in
cuda/programs/components.cu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..gpu.graph import Array
from .ranks import Ranks
from .rows import ProgramGraph, kernel_of

_SOURCE = "programs/components.cu"


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


def join_shares(graph: ProgramGraph, ranks: Ranks) -> Array | None:
    """The same of ranks with a share of the edges each, on rank 0: half of them tell the others
    what they have found, half of those the rest, and so on.
    """
    n = graph.cut.vertices
    with graph.device.use() as cupy:
        forest, step = join_all(graph), 1
        while step < ranks.size:
            messages: list[list[Any]] = [[] for _ in range(ranks.size)]
            if ranks.rank % (2 * step) == step:
                messages[ranks.rank - step] = [forest]
            came = ranks.tell(messages)
            if ranks.rank % (2 * step) == 0 and ranks.rank + step < ranks.size:
                labels, arrived = cupy.asarray(came[ranks.rank + step][0]), cupy.zeros(1, np.uint64)
                _join_labels(graph)(forest, labels, np.uint32(n), arrived)
            step *= 2
        return forest if ranks.rank == 0 else None


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, what is called."""
    kernel(graph)
    if graph.ranks > 1:
        _join_labels(graph)


def kernel(graph: ProgramGraph) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered
    return kernel_of(graph.device, _SOURCE, "components", kinds)


def device_bytes(vertices: int) -> int:
    """That it holds beside the graph."""
    return 4 * vertices


def told_bytes(vertices: int) -> int:
    """That a share holds besides: what another rank has found."""
    return 4 * vertices


def _join_labels(graph: ProgramGraph) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "join_labels", ())
