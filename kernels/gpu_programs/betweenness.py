"""Betweenness on a device. The definition is reference.betweenness; the kernels stand in
cuda/programs/betweenness.cu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.arrays import Array
from ..gpu.device import pack
from ..programs.paths import MOST_PATHS
from .rows import Launch, ProgramGraph, allocate_gangs, blocks_of, kernel_of, pool_bytes
from .shortest_paths import PART, items_of

_FIELDS = (
    *("distance", "paths", "exponents", "share", "items", "ends", "part_sums"),
    *("queued", "leaving", "score", "looked"),
)
TREE = np.dtype([(name, "u8") for name in _FIELDS], align=True)
LEFT_OUT = np.dtype([("marks", "u8"), ("most_paths", "f8")], align=True)

LAUNCH = Launch(1024, 1)
"""A launch in which a block that is alone has all warps that a multiprocessor takes."""

EDGES_TO_SHARE = 1 << 16
"""Least mean number of edges in a level, both ways together, for which all blocks share a source.
With fewer edges, blocks would wait for each other longer than one of them looks at the edges.
"""

_MARKS = 1 << 16
"""Number of sources after which the host looks whether any was left out."""

_SOURCE = "programs/betweenness.cu"


class GpuBrandes:
    """Dependencies on the vertices of a graph, added up source by source.

    All blocks together do the first source. Its levels say how the other sources are done: in the
    same way, or each by one block, as many at once as there are blocks and room for. A source that
    has more than MOST_PATHS paths to a vertex is left out, and other kernels do it once somebody
    asks for the score.

    score: float64 (n,), of sources that were done before, in host memory; None if there are none.
    """

    def __init__(self, graph: ProgramGraph, score: np.ndarray | None = None) -> None:
        self._graph = graph
        self._apart: bool | None = None
        with graph.device.use() as cupy:
            offsets = graph.cut.rows.offsets
            self._cut = np.uint32(int((offsets[1:] - offsets[:-1]).max()) > PART)
            self._arrived = cupy.zeros(1, np.uint64)
            self._twice = np.uint32(graph.twice)
            self._marks = cupy.zeros(_MARKS, np.uint32)
            self._marked: list[int] = []  # sources whose marks these are, the first ones
            self._trees = self._allocate(1)
            self._packed = self._pack()
            if score is not None:
                self._trees["score"][0].set(score)

    def _allocate(self, count: int) -> dict[str, Any]:
        """Allocate the arrays of ``count`` gangs, by name. Each gang has a row of an array."""
        declared = _arrays(self._graph.vertices, self._graph.cut.rows.edges)
        return allocate_gangs(self._graph.device, declared, count)

    def _pack(self) -> Any:
        packed = np.zeros(self._gangs, TREE)
        for name in _FIELDS:
            rows = self._trees[name]
            row_bytes = rows.shape[1] * rows.itemsize
            packed[name] = rows.data.ptr + row_bytes * np.arange(self._gangs, dtype=np.uint64)
        return self._graph.device.cupy.asarray(packed.view(np.uint8))

    @property
    def _gangs(self) -> int:
        return len(self._trees["score"])

    def run(self, sources: np.ndarray) -> int:
        """Do some of the sources (global ids), from the first one on. Returns how many were
        done.
        """
        count = self._launch(sources, wide=False)
        if self._apart is None:
            blocks = blocks_of(self._graph.device, LAUNCH)
            with self._graph.device.use():
                self._apart = self._pays_apart(len(sources) - 1, blocks)
        return count

    def _launch(self, sources: np.ndarray, wide: bool) -> int:
        """Launch the kernel over sources, and return how many were done. wide: whether path counts
        have exponents.
        """
        graph, count = self._graph, min(len(sources), self._gangs)
        first = len(self._marked)
        if first + count > _MARKS:
            self._finish()
            first = 0
        with graph.device.use() as cupy:
            left_out = pack(LEFT_OUT, marks=self._marks[first:], most_paths=MOST_PATHS)
            batch = cupy.asarray(sources[:count].astype(np.uint32))
            of = graph.cut.packed(), self._packed, left_out, batch, self._cut, self._twice
            if not self._apart:
                _kernel(graph, "betweenness_together", wide)(*of, self._arrived)
            else:
                _kernel(graph, "betweenness_apart", wide)(*of, np.uint32(count))
                score = self._trees["score"]
                score[0] = score[:count].sum(axis=0)
                score[1:count] = 0
        if not wide:
            self._marked += sources[:count].tolist()
        return count

    def _finish(self) -> None:
        """Do the sources that were left out."""
        with self._graph.device.use():
            marks = self._marks[: len(self._marked)].get()
            left = np.array(self._marked, np.uint32)[marks != 0]
            self._marks.fill(0)
            self._marked = []
        while len(left):
            left = left[self._launch(left, wide=True) :]

    def _pays_apart(self, left: int, blocks: int) -> bool:
        edges, levels = self._trees["looked"][0].get().tolist()
        if edges >= EDGES_TO_SHARE * max(1, levels):
            return False
        gang_bytes = tree_bytes(self._graph.vertices, self._graph.cut.rows.edges)
        gangs = min(left, blocks, self._graph.room // gang_bytes)
        if gangs < 2:
            return False
        first, self._trees = self._trees, self._allocate(gangs)
        for name in ("score", "looked"):
            self._trees[name][0] = first[name][0]
        self._packed = self._pack()
        return True

    @property
    def edges(self) -> int:
        """Return the number of edges that were looked at."""
        self._finish()
        with self._graph.device.use():
            return int(self._trees["looked"][:, 0].sum())

    def score(self) -> np.ndarray:
        """Return the scores: float64 (n,), in host memory."""
        self._finish()
        with self._graph.device.use():
            return self._trees["score"][0].get()


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, both kernels; wide ones are compiled when needed."""
    for function in ("betweenness_together", "betweenness_apart"):
        _kernel(graph, function, wide=False)


def _kernel(graph: ProgramGraph, function: str, wide: bool) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered, str(wide).lower()
    return kernel_of(graph.device, _SOURCE, function, kinds, LAUNCH)


def _arrays(vertices: int, entries: int) -> list[Array]:
    """Return the arrays of a gang."""
    items = items_of(vertices, entries)
    return [
        Array("distance", np.uint32, vertices, fill=0xFFFFFFFF),
        Array("paths", np.float64, vertices, fill=0.0),
        Array("exponents", np.int32, vertices),
        Array("share", np.float64, vertices),
        Array("items", np.uint64, items),
        Array("ends", np.uint32, vertices + 1),
        Array("part_sums", np.float64, items),
        Array("queued", np.uint32, 3, fill=0),
        Array("leaving", np.uint64, 3, fill=0),
        Array("score", np.float64, vertices, fill=0.0),
        Array("looked", np.uint64, 2, fill=0),
    ]


def tree_bytes(vertices: int, entries: int) -> int:
    """Return the bytes of a gang, with what the pool rounds up."""
    return pool_bytes(_arrays(vertices, entries))


def device_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that one gang holds beside the graph. More gangs are added where there is
    room.
    """
    return tree_bytes(vertices, entries) + 8 * vertices + 4 * _MARKS  # rows' lengths, at first
