"""Components on a device. The definition is reference.components; the kernel stands in
cuda/programs/components.cu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..gpu.device import pack
from ..gpu.graph import Array
from .ranks import Ranks
from .rows import ProgramGraph, kernel_of

_SOURCE = "programs/components.cu"

PAIRS = np.dtype([("pairs", "u8"), ("count", "u8"), ("room", "u4")], align=True)


def components(graph: ProgramGraph) -> np.ndarray:
    """Return, for each vertex, the least vertex that edges join it to: uint32 (n,), in host
    memory.
    """
    with graph.device.use():
        return join_all(graph).get()


def join_all(graph: ProgramGraph) -> Array:
    """Join the ends of all edges; return the forest on the device."""
    device, cut = graph.device, graph.cut
    with device.use() as cupy:
        forest, arrived = cupy.empty(graph.vertices, np.uint32), cupy.zeros(1, np.uint64)
        kernel(graph)(cut.packed(), forest, np.uint32(graph.twice), arrived)
        return forest


def join_shares(graph: ProgramGraph, ranks: Ranks) -> Array | None:
    """Join the ends of all edges of two or more ranks with a share of the edges each; return the
    forest on rank 0.

    Each rank plants a forest, and all ranks get to know all forests: a rank tells the next one of
    its forest, then tells the one after next what it knows by then, and so on. So all ranks pass
    over the same tree. Of what they join then, half of the ranks tell the others, then half of
    those tell the rest.
    """
    with graph.device.use():
        share = _Share(graph)
        step = 1
        while step < ranks.size:
            to, by = (ranks.rank + step) % ranks.size, (ranks.rank - step) % ranks.size
            share.hear(_swap(ranks, to, share.told_of_forest(), by))
            step *= 2
        share.join_rest()
        while step > 1:
            step //= 2
            told = share.told_of_joined() if step <= ranks.rank < 2 * step else []
            if came := _swap(ranks, ranks.rank - step, told, ranks.rank + step):
                share.hear(came)
            del came  # before others come
        return share.forest if ranks.rank == 0 else None


class _Share:
    """A rank's knowledge of the components. The rank tells of a forest by labels, uint32 (n,), or,
    where these are fewer bytes, by pairs of vertices, uint32 (2 k,), the members of the largest
    tree, bits in uint32, and the root of that tree.
    """

    def __init__(self, graph: ProgramGraph) -> None:
        """Plant the forest."""
        self._graph, self._n = graph, graph.vertices
        device = graph.device
        with device.use() as cupy:
            self.forest = cupy.empty(self._n, np.uint32)
            self._room = _room(self._n)
            self._pairs, self._count = cupy.empty(2 * self._room, np.uint32), cupy.zeros(1, "u4")
            self._arrived = cupy.zeros(1, np.uint64)
            self._joined = pack(PAIRS)  # not listed yet
            self._list = pack(PAIRS, pairs=self._pairs, count=self._count, room=self._room)
        _plant(graph)(graph.cut.packed(), self.forest, self._arrived)

    def told_of_forest(self) -> list[Array]:
        """Return what to tell of the forest, which is flat."""
        device, n = self._graph.device, self._n
        with device.use() as cupy:
            self._count.fill(0)
            members, root = cupy.empty(-(-n // 32), np.uint32), cupy.empty(1, np.uint32)
            _tell_forest(self._graph)(self.forest, np.uint32(n), members, root, self._list)
            return self._told(members, root)

    def join_rest(self) -> None:
        """Join along the edges that were not looked at yet. Pairs that are joined from now on are
        listed.
        """
        self._count.fill(0)
        self._joined = self._list
        _join_share(self._graph)(
            self._graph.cut.packed(),
            self.forest,
            np.uint32(self._graph.twice),
            self._list,
            self._arrived,
        )

    def told_of_joined(self) -> list[Array]:
        with self._graph.device.use() as cupy:
            return self._told(*(cupy.empty(0, np.uint32) for _ in range(2)))

    def hear(self, told: list[Any]) -> None:
        """Join what another rank has told. The forest is flat afterwards."""
        nothing = np.uint64(0)
        with self._graph.device.use() as cupy:
            came = [cupy.asarray(array) for array in told]
            if len(came) == 1:
                of = came[0], nothing, nothing, nothing, np.uint32(0)
            else:
                pairs, members, root = came
                tree = (members, root) if len(members) else (nothing, nothing)
                of = nothing, *tree, pairs, np.uint32(len(pairs) // 2)
            join = _join_told(self._graph)
            join(self.forest, np.uint32(self._n), *of, self._joined, self._arrived)

    def _told(self, members: Array, root: Array) -> list[Array]:
        count = int(self._count[0])
        if count > self._room:
            return [self.forest]
        return [self._pairs[: 2 * count], members, root]


def _swap(ranks: Ranks, to: int, told: list[Any], by: int) -> list[Any]:
    """Tell rank ``to``, and hear rank ``by``, if there are such ranks. All ranks call this
    together.
    """
    nothing: list[Any] = []
    came = ranks.tell([told if rank == to else nothing for rank in range(ranks.size)])
    return came[by] if by < ranks.size else nothing


def _room(vertices: int) -> int:
    """Return the number of pairs of vertices that take half of the bytes of labels."""
    return max(1, vertices // 4)


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels that are called."""
    called = [kernel] if graph.ranks == 1 else [_plant, _tell_forest, _join_told, _join_share]
    for get_kernel in called:
        get_kernel(graph)


def kernel(graph: ProgramGraph) -> Callable[..., None]:
    return _of_rows(graph, "components")


def device_bytes(vertices: int) -> int:
    """Return the bytes that joining holds beside the graph."""
    return 4 * vertices


def exchange_bytes(vertices: int) -> int:
    """Return the bytes that a share holds besides: the arrays that it tells others, and labels that
    come.
    """
    return 8 * _room(vertices) + 4 * -(-vertices // 32) + 4 * vertices


def _plant(graph: ProgramGraph) -> Callable[..., None]:
    return _of_rows(graph, "plant_share")


def _join_share(graph: ProgramGraph) -> Callable[..., None]:
    return _of_rows(graph, "join_share")


def _tell_forest(graph: ProgramGraph) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "tell_forest", ())


def _join_told(graph: ProgramGraph) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "join_told", ())


def _of_rows(graph: ProgramGraph, function: str) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered
    return kernel_of(graph.device, _SOURCE, function, kinds)
